//! `infradev accept`.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use infradev_accept::AcceptPlan;
use infradev_model::{AcceptDocument, Acceptance};
use infradev_store::LACKS_CANARY;

use crate::cli::{AcceptArgs, Global};
use crate::report::{self, Failure, visible};
use crate::session::{self, Session};
use crate::tables::{Cell, Table};

/// Accepts, or says why not.
pub async fn run(global: &Global, args: AcceptArgs) -> Result<ExitCode, Failure> {
    let session = Session::new(global, args.running.sandbox.into(), args.running.jobs)?;
    let pack = session.load(&args.path)?;
    let more = [
        ("runs", args.runs.unwrap_or(0).to_le_bytes().to_vec()),
        ("shuffle", vec![u8::from(args.shuffle)]),
        ("rewrites", args.rewrites.to_string().into_bytes()),
        ("write", vec![u8::from(!args.no_write)]),
        ("seed", args.seed.map(|seed| seed.to_le_bytes().to_vec()).unwrap_or_default()),
    ];
    let plan = session.plan("accept", &pack, &more);
    let executor = session.executor_from(args.seed)?;
    let run = session.start(&plan)?;
    let accepting = AcceptPlan {
        tasks: session::tasks(pack),
        runs: args.runs,
        shuffled: args.shuffle,
        rewrites: args.rewrites,
        write: !args.no_write,
    };
    let progress = Arc::clone(&session.progress);
    let on_accept = move |record: &Acceptance| {
        let word = if record.accepted { "accepted" } else { "not accepted" };
        progress.line(&format!("{}: {word}", record.id));
    };
    let accepted = infradev_accept::run(&executor, &run, &accepting, &on_accept).await;
    let document = session.concluded(&run, accepted)?;
    run.write_document("accept.json", &document)?;
    let folder = run.path().to_path_buf();
    run.finish()?;
    session.progress.clear();
    if args.running.json {
        report::print_json(&document)?;
    } else {
        report::print(table(&document) + &reasons(&document) + &ending(&document, &folder))?;
    }
    let mut reasons = document.tasks.iter().flat_map(|record| &record.reasons);
    if reasons.any(|reason| reason.ends_with(LACKS_CANARY)) {
        report::hint(format!("infradev canary {} --write", args.path.display()));
    }
    let all = document.tasks.iter().all(|record| record.accepted);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The table.
pub fn table(document: &AcceptDocument) -> String {
    let header = ["task", "accepted", "golden", "flake ≤", "base", "hollow", "adversarial", "probes"];
    let mut table = Table::new(&header, &[2, 3, 6, 7]);
    for record in &document.tasks {
        let patch = |name: &str| match record.rejected.get(name) {
            Some(Some(rejected)) => Cell::either(*rejected, "rejected", "passes"),
            Some(None) => "n/a".into(),
            None => "–".into(),
        };
        let all = record.adversarial.len();
        let caught = record.adversarial.values().filter(|found| found.rejected).count();
        let caught_text = format!("{caught}/{all} rejected");
        table.row(vec![
            record.id.as_str().into(),
            Cell::either(record.accepted, "yes", "no"),
            format!("{}×", record.golden_runs).into(),
            format!("{:.0} %", record.flake_bound * 100.0).into(),
            patch("base"),
            patch("hollow"),
            if caught == all { Cell::good(caught_text) } else { Cell::bad(caught_text) },
            record.cases.len().to_string().into(),
        ]);
    }
    table.text()
}

/// What decided and what a reader should know, a paragraph a task.
pub fn reasons(document: &AcceptDocument) -> String {
    let mut text = String::new();
    for record in &document.tasks {
        let mut lines: Vec<String> = record.reasons.clone();
        if !record.unstable.is_empty() {
            lines.push(format!("unstable: {}", record.unstable.join(", ")));
        }
        if !record.existence_only.is_empty() {
            lines.push(format!("existence only: {}", record.existence_only.join(", ")));
        }
        if !record.unprobed_hunks.is_empty() {
            let hunks = record.unprobed_hunks.iter().map(|hunk| format!("{}:{}", hunk.file, hunk.line));
            lines.push(format!("unprobed hunks: {}", hunks.collect::<Vec<_>>().join(", ")));
        }
        lines.extend(record.remarks.iter().map(|remark| format!("note: {remark}")));
        if lines.is_empty() {
            continue;
        }
        let word = if record.accepted { "accepted" } else { "not accepted" };
        let _ = write!(text, "\n{}: {word}\n", record.id);
        for line in lines {
            let _ = writeln!(text, "  {}", visible(&line).replace('\n', "\n    "));
        }
    }
    text
}

fn ending(document: &AcceptDocument, folder: &Path) -> String {
    let accepted = document.tasks.iter().filter(|record| record.accepted).count();
    let mut text = format!("\naccepted {accepted} of {}", document.tasks.len());
    if document.tasks.iter().any(|record| record.sandbox.kind == "none") {
        text.push_str("; sandbox: none");
    }
    let _ = writeln!(text, "\nrun {} ({})", document.run, folder.display());
    text
}
