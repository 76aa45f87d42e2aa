//! `infradev eval`: attempts, then their grades, then a table.

use std::fmt::Write;
use std::process::ExitCode;

use infradev_grade::{Content, Submission};
use infradev_model::{Class, Ending, EvalDocument, Verdict};
use infradev_sandbox::Kind;

use crate::cli::{EvalArgs, Global};
use crate::commands::attempt_built_in::BuiltIn;
use crate::commands::{attempt, attempt_shown, grade};
use crate::report::{self, Failure};
use crate::session::{self, Session};
use crate::tables::{Cell, Table};

/// Has an agent attempt tasks, and grades what comes of it.
pub async fn run(global: &Global, args: EvalArgs) -> Result<ExitCode, Failure> {
    let asked = &args.attempt;
    if asked.plan {
        return attempt::run(global, args.attempt).await;
    }
    let session = Session::new(global, Kind::Namespaces, asked.jobs)?;
    // Before anything is spent: what can be attempted may still lack what grading needs.
    let mut pack = session.load(&asked.path)?;
    session::select(&mut pack, &asked.tasks)?;
    let made = attempt::make(&session, asked, BuiltIn::of(&asked.agent).as_ref()).await?;
    let graded = grade::make(&session, pack, submissions(&made)?).await?;
    let document = EvalDocument::of(made.document.clone(), graded.document);
    made.run.write_document("eval.json", &document)?;
    // Not before: killed while it grades, the same command goes on with these attempts.
    let folder = made.run.path().to_path_buf();
    made.tell_unreached();
    let unreached = made.unreached;
    made.finish()?;
    session.progress.clear();
    if asked.json {
        report::print_json(&document)?;
    } else {
        let attempts = attempt_shown::table(&document.attempt) + &attempt_shown::details(&document.attempt);
        let grades = grade::table(&document.grade) + &grade::reasons(&document.grade);
        let runs = format!(
            "\nrun {} ({}), graded in {}\n",
            document.attempt.run,
            folder.display(),
            document.grade.run
        );
        report::print(attempts + "\n" + &grades + "\n" + &table(&document) + &runs)?;
    }
    let all_resolved = document.grade.submissions.iter().all(|grade| grade.verdict == Verdict::Resolved);
    Ok(match (unreached, args.require.is_some() && !all_resolved) {
        (1.., _) => ExitCode::from(Class::Fault.exit_code()),
        (0, true) => ExitCode::from(1),
        (0, false) => ExitCode::SUCCESS,
    })
}

/// What is graded: the patch of each attempt that reached its model.
fn submissions(made: &attempt::Made) -> Result<Vec<Submission>, Failure> {
    let mut wanted = Vec::new();
    for record in &made.document.submissions {
        if record.ending == Ending::EndpointUnreachable {
            continue;
        }
        let path = made.run.path().join(&record.folder).join("patch.diff");
        let patch = std::fs::read(&path)
            .map_err(|error| Failure::fault(format!("cannot read {}: {error}", path.display())))?;
        wanted.push(Submission {
            task: record.task.clone(),
            name: record.submission.clone(),
            content: Content::Patch(patch),
        });
    }
    Ok(wanted)
}

/// The table by arm.
fn table(document: &EvalDocument) -> String {
    let header = ["arm", "resolved", "of", "faults", "unreached", "tokens", "cost", "agent"];
    let mut table = Table::new(&header, &[1, 2, 3, 4, 5, 6, 7]);
    for arm in &document.arms {
        let cost = arm.usd.map_or("unknown".to_owned(), |usd| format!("${usd:.2}"));
        let odd = |count: u32| if count > 0 { Cell::odd(count.to_string()) } else { "0".into() };
        table.row(vec![
            arm.arm.as_str().into(),
            arm.resolved.to_string().into(),
            arm.scored.to_string().into(),
            odd(arm.faults),
            odd(arm.unreached),
            format!("{}+{}", arm.tokens.input, arm.tokens.output).into(),
            cost.into(),
            format!("{:.1} s", arm.agent_s).into(),
        ]);
    }
    let mut text = table.text();
    if document.arms.iter().any(|arm| arm.usd.is_none()) {
        let _ = writeln!(
            text,
            "\nA cost is unknown where no price table names the model at its endpoint: --prices FILE"
        );
    }
    text
}
