//! `infradev grade`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use infradev_grade::{Content, GradePlan, Submission, submissions};
use infradev_model::{Grade, GradeDocument, SealedTask, Verdict};
use infradev_store::LoadedPack;

use crate::cli::{Global, GradeArgs};
use crate::report::{self, Failure, visible};
use crate::session::{self, Session};
use crate::tables::{Cell, Table, middle};

/// Grades.
pub async fn run(global: &Global, args: GradeArgs) -> Result<ExitCode, Failure> {
    let session = Session::new(global, args.running.sandbox.into(), args.running.jobs)?;
    let mut pack = session.load(&args.path)?;
    session::select(&mut pack, &args.tasks)?;
    let tasks: Vec<Arc<SealedTask>> = pack.tasks.iter().map(|task| Arc::new(task.task.clone())).collect();
    let wanted = chosen(&args.patches, &tasks, &pack.ids)?;
    let Made { document, folder } = make(&session, pack, wanted).await?;
    session.progress.clear();
    if args.running.json {
        report::print_json(&document)?;
    } else {
        report::print(table(&document) + &reasons(&document) + &summary(&document, &folder))?;
    }
    let all_resolved = document.submissions.iter().all(|grade| grade.verdict == Verdict::Resolved);
    Ok(if args.require.is_some() && !all_resolved { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Grades that were given.
pub struct Made {
    /// The grades.
    pub document: GradeDocument,
    /// The run's folder.
    pub folder: PathBuf,
}

/// Grades submissions of a pack's tasks in a run of its own.
pub async fn make(session: &Session, pack: LoadedPack, wanted: Vec<Submission>) -> Result<Made, Failure> {
    let plan = session.plan("grade", &pack, &identity(&wanted));
    let executor = session.executor()?;
    let run = session.start(&plan)?;
    let grading = GradePlan { tasks: session::tasks(pack), submissions: wanted };
    let progress = Arc::clone(&session.progress);
    let on_grade = move |grade: &Grade| progress.line(&line(grade));
    let graded = infradev_grade::run(&executor, &run, &grading, &on_grade).await;
    let document = session.concluded(&run, graded)?;
    run.write_document("grade.json", &document)?;
    let folder = run.path().to_path_buf();
    run.finish()?;
    Ok(Made { document, folder })
}

/// What `--patches` names, for the tasks that are asked for; `pack` holds the ids of all.
fn chosen(patches: &str, asked: &[Arc<SealedTask>], pack: &[String]) -> Result<Vec<Submission>, Failure> {
    let path = Path::new(patches);
    let one_patch = path.is_file() && path.extension().is_some_and(|end| end == "patch" || end == "diff");
    let ids = || asked.iter().map(|task| task.id()).collect::<Vec<_>>().join(", ");
    if one_patch && asked.len() != 1 {
        let message = format!("{patches} is one patch, and {} tasks are asked for", asked.len());
        return Err(Failure::usage(message).hint(format!("name one with --task: {}", ids())));
    }
    let wanted = submissions(patches, asked, pack)?;
    if wanted.is_empty() {
        return Err(Failure::bad_input(format!("{patches} holds nothing to grade on {}", ids())));
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

/// Characters of a submission's name in a table; documents have all of it.
pub const NAME: usize = 48;

fn line(grade: &Grade) -> String {
    let name = middle(&grade.submission, NAME);
    format!("{} · {name}: {} ({}/{})", grade.task, grade.verdict.word(), grade.passed, grade.of)
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
            middle(&grade.submission, NAME).into(),
            word(grade.verdict),
            format!("{}/{}", grade.passed, grade.of).into(),
            format!("{}/{}", official.passed, official.of).into(),
            if grade.without_probes {
                Cell::odd("none")
            } else {
                format!("{}/{}", probe.passed, probe.of).into()
            },
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
    let unprobed: BTreeSet<&str> = document
        .submissions
        .iter()
        .filter(|grade| grade.without_probes)
        .map(|grade| grade.task.as_str())
        .collect();
    if !unprobed.is_empty() {
        let tasks = Vec::from_iter(unprobed).join(", ");
        let _ = write!(
            text,
            "; no probes: verdicts on {tasks} rest on official tests alone, which a patch can forge"
        );
    }
    let bare = document.submissions.iter().any(|grade| grade.sandbox.kind == "none");
    if bare {
        text.push_str("; sandbox: none, so a patch could have changed its own grade");
    }
    let _ = writeln!(text, "\nrun {} ({})", document.run, folder.display());
    text
}
