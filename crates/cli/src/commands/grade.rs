//! `infradev grade`.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use infradev_grade::{Content, GradePlan, Submission, submissions};
use infradev_model::{Grade, GradeDocument, SealedTask, Verdict};

use crate::cli::{Global, GradeArgs};
use crate::report::{self, Failure, visible};
use crate::session::{self, Session};
use crate::tables::{Cell, Table};

/// Grades.
pub async fn run(global: &Global, args: GradeArgs) -> Result<ExitCode, Failure> {
    let session = Session::new(global, args.running.sandbox.into(), args.running.jobs)?;
    let mut pack = session.load(&args.path)?;
    let all: Vec<Arc<SealedTask>> = pack.tasks.iter().map(|task| Arc::new(task.task.clone())).collect();
    session::select(&mut pack, &args.tasks)?;
    let wanted = chosen(&args.patches, &all, |id| pack.tasks.iter().any(|task| task.task.id() == id))?;
    let plan = session.plan("grade", &pack, &identity(&wanted));
    let executor = session.executor()?;
    let run = session.start(&plan)?;
    let grading = GradePlan { tasks: session::tasks(pack), submissions: wanted };
    let progress = Arc::clone(&session.progress);
    let on_grade = move |grade: &Grade| progress.line(&line(grade));
    let document = infradev_grade::run(&executor, &run, &grading, &on_grade).await?;
    run.write_document("grade.json", &document)?;
    let folder = run.path().to_path_buf();
    run.finish()?;
    session.progress.clear();
    if args.running.json {
        report::print_json(&document)?;
    } else {
        report::print(table(&document) + &reasons(&document) + &summary(&document, &folder))?;
    }
    let all_resolved = document.submissions.iter().all(|grade| grade.verdict == Verdict::Resolved);
    Ok(if args.require.is_some() && !all_resolved { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// What `--patches` names, for the tasks that are asked for.
fn chosen(
    patches: &str,
    all: &[Arc<SealedTask>],
    asked: impl Fn(&str) -> bool,
) -> Result<Vec<Submission>, Failure> {
    let path = Path::new(patches);
    let one_patch = path.is_file() && path.extension().is_some_and(|end| end == "patch" || end == "diff");
    let of: Vec<Arc<SealedTask>> = all.iter().filter(|task| asked(task.id())).cloned().collect();
    if one_patch && of.len() != 1 {
        let ids: Vec<&str> = of.iter().map(|task| task.id()).collect();
        let message = format!("{patches} is one patch, and {} tasks are asked for", of.len());
        return Err(Failure::usage(message).hint(format!("name one with --task: {}", ids.join(", "))));
    }
    // Files may name tasks of the pack that are not asked for.
    let mut wanted = submissions(patches, if one_patch { &of } else { all })?;
    wanted.retain(|submission| asked(&submission.task));
    if wanted.is_empty() {
        let ids: Vec<&str> = of.iter().map(|task| task.id()).collect();
        let message = format!("{patches} holds nothing to grade on {}", ids.join(", "));
        return Err(Failure::bad_input(message));
    }
    Ok(wanted)
}

/// What of the submissions decides which trials are run.
fn identity(submissions: &[Submission]) -> Vec<(&str, Vec<u8>)> {
    let of = |submission: &Submission| match &submission.content {
        Content::Patch(bytes) => session::digest_bytes(bytes),
        other => format!("{other:?}").into_bytes(),
    };
    let named = |submission: &Submission| {
        let mut bytes = submission.name.clone().into_bytes();
        bytes.push(0);
        bytes.extend(of(submission));
        bytes
    };
    submissions.iter().map(|submission| (submission.task.as_str(), named(submission))).collect()
}

fn line(grade: &Grade) -> String {
    format!("{} · {}: {} ({}/{})", grade.task, grade.submission, grade.verdict.word(), grade.passed, grade.of)
}

/// A verdict in its colour.
fn word(verdict: Verdict) -> Cell {
    match verdict {
        Verdict::Resolved => Cell::good(verdict.word()),
        Verdict::Fault | Verdict::Tampered => Cell::odd(verdict.word()),
        _ => Cell::bad(verdict.word()),
    }
}

/// The table.
pub fn table(document: &GradeDocument) -> String {
    let header = ["task", "submission", "verdict", "passed", "official", "probe", "wall"];
    let mut table = Table::new(&header, &[3, 4, 5, 6]);
    for grade in &document.submissions {
        let (official, probe) = (grade.suites.official, grade.suites.probe);
        table.row(vec![
            grade.task.as_str().into(),
            grade.submission.as_str().into(),
            word(grade.verdict),
            format!("{}/{}", grade.passed, grade.of).into(),
            format!("{}/{}", official.passed, official.of).into(),
            format!("{}/{}", probe.passed, probe.of).into(),
            format!("{:.1} s", grade.wall_s).into(),
        ]);
    }
    table.text()
}

/// What decided, a paragraph a submission; faults come last.
pub fn reasons(document: &GradeDocument) -> String {
    let mut text = String::new();
    let (faults, graded): (Vec<&Grade>, Vec<&Grade>) =
        document.submissions.iter().partition(|grade| grade.verdict == Verdict::Fault);
    for (title, grades) in [(None, graded), (Some("Faults, counted in no rate:"), faults)] {
        let said: Vec<&Grade> = grades.into_iter().filter(|grade| !grade.reasons.is_empty()).collect();
        if let (Some(title), false) = (title, said.is_empty()) {
            let _ = write!(text, "\n{title}\n");
        }
        for grade in said {
            let _ = write!(text, "\n{} · {}: {}\n", grade.task, grade.submission, grade.verdict.word());
            for reason in &grade.reasons {
                let _ = writeln!(text, "  {}", visible(reason).replace('\n', "\n    "));
            }
        }
    }
    text
}

fn summary(document: &GradeDocument, folder: &Path) -> String {
    let faults = document.submissions.iter().filter(|grade| grade.verdict == Verdict::Fault).count();
    let scored = document.submissions.len() - faults;
    let resolved = document.submissions.iter().filter(|grade| grade.verdict == Verdict::Resolved).count();
    let mut text = format!("\nresolved {resolved} of {scored}");
    if faults > 0 {
        let _ = write!(text, ", {faults} faults apart");
    }
    let bare = document.submissions.iter().any(|grade| grade.sandbox.kind == "none");
    if bare {
        text.push_str("; sandbox: none, so a patch could have changed its own grade");
    }
    let _ = writeln!(text, "\nrun {} ({})", document.run, folder.display());
    text
}
