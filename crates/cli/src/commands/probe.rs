//! `infradev probe try` and `infradev probe list`: the loop in which probes are written.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use infradev_executor::{Ask, Executor, FoundCase, ReadyTask};
use infradev_model::{CaseResult, Digest, Expectation, Outcome, RankOutcome, Selection, TrialResult};
use infradev_sandbox::Kind;
use infradev_store::{Plan, RunFolder, Runs};
use infradev_trial::Twins;
use serde::Serialize;

use crate::cli::{Global, ListProbesArgs, TryArgs};
use crate::progress::counted;
use crate::report::{self, Failure, visible};
use crate::session::{self, Session, nearest};
use crate::tables::{Cell, Table, short};
use crate::terminal;

/// The schema version of both documents.
const SCHEMA: u32 = 1;
/// Lines of each rank's output that are shown.
const LOG_LINES: usize = 15;

#[derive(Serialize)]
struct TryDocument<'a> {
    schema: u32,
    task: &'a str,
    patch: &'a str,
    world: u32,
    passed: bool,
    not_applied: &'a Option<String>,
    fault: &'a Option<infradev_model::Fault>,
    notes: &'a [String],
    #[serde(flatten)]
    case: Option<&'a CaseResult>,
    logs: &'a [RankLog],
}

#[derive(Serialize)]
struct RankLog {
    rank: String,
    text: String,
}

/// One task, ready, with what runs it.
struct Ready {
    session: Session,
    executor: Executor,
    task: ReadyTask,
}

async fn ready(session: Session, folder: &Path) -> Result<Ready, Failure> {
    let task = session::one(folder, session::tasks(session.load(folder)?), |task| task.id().to_owned())?;
    let executor = session.executor()?;
    let task = executor.ready(task).await?;
    Ok(Ready { session, executor, task })
}

/// Lists a task's probe cases.
pub async fn list(global: &Global, args: ListProbesArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Listed {
        world: u32,
        id: String,
        checks: String,
        traits: Vec<String>,
    }
    #[derive(Serialize)]
    struct Document {
        schema: u32,
        task: String,
        cases: Vec<Listed>,
    }
    let Ready { session, executor, task } =
        ready(Session::reading(global, Kind::Namespaces)?, &args.task).await?;
    let mut document = Document { schema: SCHEMA, task: task.task.id().to_string(), cases: Vec::new() };
    for world in task.task.public.spec.worlds.clone() {
        for FoundCase { id, checks, traits } in executor.probe_cases(&task, world).await? {
            document.cases.push(Listed { world, id, checks, traits });
        }
    }
    session.progress.clear();
    if args.json {
        report::print_json(&document)?;
    } else if document.cases.is_empty() {
        report::note(format!("task {} has no probes", document.task));
    } else {
        let mut table = Table::new(&["ranks", "case", "checks", "traits"], &[0]);
        for case in document.cases {
            let traits = case.traits.join(", ");
            table.row(vec![case.world.to_string().into(), case.id.into(), case.checks.into(), traits.into()]);
        }
        report::print(table.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs one probe, or opens a shell.
pub async fn run(global: &Global, args: TryArgs) -> Result<ExitCode, Failure> {
    let Ready { session, executor, task } =
        ready(Session::new(global, args.sandbox.into(), 1)?, &args.task).await?;
    let patch = patch(&task, &args.patch)?;
    let (world, case) = find(&executor, &task, args.world, &args.case).await?;
    if args.shell {
        report::note(format!(
            "{} with {} applied, at {}; the tree is read-only; leave with `exit`",
            task.task.id(),
            args.patch,
            counted(world, "rank")
        ));
        session.progress.clear();
        let (streams, terminal) = terminal::open()?;
        let ended = executor.shell(&task, patch, world, streams).await;
        drop(terminal);
        ended?;
        return Ok(ExitCode::SUCCESS);
    }
    let runs = Runs::new(session.home.root().join("tries"));
    remove_old(&runs);
    let plan = Plan {
        verb: "try".into(),
        pack: task.task.pack.clone(),
        command: std::env::args().collect(),
        digest: Digest::of(&rand::random::<[u8; 16]>()),
    };
    let run = runs.create(&plan)?;
    let mut ask = Ask::new(format!("{case} · {}", args.patch), Arc::new(patch), world, Twins::Nothing);
    ask.selection = Selection::Case(case.clone());
    ask.case_seed = args.seed;
    ask.expected = Some(1);
    let result = executor.trial(&run, &task, ask).await?;
    let logs = logs(&run, &result);
    run.finish()?;
    session.progress.clear();
    let found = result.cases.iter().find(|found| found.case.id == case);
    let passed = found.is_some_and(|found| found.outcomes() == [Outcome::Passed]);
    if args.json {
        report::print_json(&TryDocument {
            schema: SCHEMA,
            task: task.task.id(),
            patch: &args.patch,
            world,
            passed,
            not_applied: &result.not_applied,
            fault: &result.fault,
            notes: &result.notes,
            case: found,
            logs: &logs,
        })?;
    } else {
        report::print(text(&args, &case, world, &result, found, &logs))?;
    }
    if let Some(fault) = &result.fault {
        let hint = "run `infradev doctor`";
        return Err(Failure::fault(format!("the harness failed: {}", fault.evidence)).hint(hint));
    }
    if let Some(why) = &result.not_applied {
        return Err(Failure::bad_input(format!("{} does not apply: {why}", args.patch)));
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Tries leave no trace but the last one's logs.
fn remove_old(runs: &Runs) {
    for id in runs.list().unwrap_or_default() {
        if let Ok(view) = runs.view(&id)
            && !view.in_use
        {
            let _ = std::fs::remove_dir_all(&view.folder);
        }
    }
}

/// The bytes of what `--patch` names.
fn patch(task: &ReadyTask, name: &str) -> Result<Vec<u8>, Failure> {
    if let Some(bytes) = task.patch_named(name)? {
        return Ok(bytes);
    }
    if name == "hollow" {
        let message = format!("task {} has no hollow patch: golden adds no function", task.task.id());
        return Err(Failure::bad_input(message));
    }
    let path = Path::new(name);
    if path.is_file() {
        return std::fs::read(path).map_err(|error| Failure::bad_input(format!("{name}: {error}")));
    }
    let own = ["golden", "base", "hollow"].map(str::to_string).into_iter();
    let known: Vec<String> =
        own.chain(task.task.adversarial.iter().map(|found| found.name.clone())).collect();
    let message = format!("`{name}` is neither a file nor a patch of task {}", task.task.id());
    Err(Failure::usage(message).hint(match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", known.join(", ")),
    }))
}

/// The first world size at which a case has this id, or this text in its id.
async fn find(
    executor: &Executor,
    task: &ReadyTask,
    world: Option<u32>,
    wanted: &str,
) -> Result<(u32, String), Failure> {
    let known = &task.task.public.spec.worlds;
    if let Some(world) = world.filter(|world| !known.contains(world)) {
        let known: Vec<String> = known.iter().map(u32::to_string).collect();
        let message = format!("task {} runs at no world size {world}", task.task.id());
        return Err(Failure::usage(message).hint(format!("its `worlds` are {}", known.join(", "))));
    }
    let worlds = world.map_or_else(|| known.clone(), |world| vec![world]);
    let mut all: Vec<String> = Vec::new();
    for world in worlds {
        let cases = executor.probe_cases(task, world).await?;
        if let Some(same) = cases.iter().find(|case| case.id == wanted) {
            return Ok((world, same.id.clone()));
        }
        let alike: Vec<&FoundCase> = cases.iter().filter(|case| case.id.contains(wanted)).collect();
        match alike[..] {
            [one] => return Ok((world, one.id.clone())),
            [] => all.extend(cases.into_iter().map(|case| case.id)),
            _ => {
                let ids = list_of(alike.iter().map(|case| case.id.as_str()));
                let message = format!("`{wanted}` is part of {} cases' ids", alike.len());
                return Err(Failure::usage(message).hint(format!("give more of one:{ids}")));
            }
        }
    }
    let message = format!("task {} has no probe case `{wanted}`", task.task.id());
    Err(Failure::usage(message).hint(if all.is_empty() {
        match world {
            Some(world) => format!("none of its probes is for world size {world}"),
            None => "it has no probes; put them into its folder `probes`".to_string(),
        }
    } else {
        format!("its cases are{}", list_of(all.iter().map(String::as_str)))
    }))
}

fn list_of<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    ids.map(|id| format!("\n  {id}")).collect()
}

/// The last lines that each rank wrote.
fn logs(run: &RunFolder, result: &TrialResult) -> Vec<RankLog> {
    let folder = run.trial_path(&result.inputs.key()).join("logs");
    let mut found: Vec<RankLog> = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(bytes) = std::fs::read(entry.path()) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        found.push(RankLog { rank: name.trim_end_matches(".log").to_string(), text: last });
    }
    found.sort_by(|a, b| a.rank.cmp(&b.rank));
    found
}

fn text(
    args: &TryArgs,
    case: &str,
    world: u32,
    result: &TrialResult,
    found: Option<&CaseResult>,
    logs: &[RankLog],
) -> String {
    let mut text = String::new();
    let word = found.and_then(|found| found.vector.first()).map_or("not run", |entry| entry.outcome.word());
    let seconds = result.timing.wall_s;
    let ranks = counted(world, "rank");
    let _ = writeln!(text, "{case}\n  {} at {ranks}: {word} ({seconds:.1} s)", args.patch);
    for note in &result.notes {
        let _ = writeln!(text, "  {note}");
    }
    let Some(judgement) = found.and_then(|found| found.judgement.as_ref()) else { return text };
    if let Some(rejection) = judgement.rejection {
        use infradev_model::Rejection::{Broken, Substantive, Trivial};
        let _ = writeln!(
            text,
            "  {}",
            match rejection {
                Substantive => "a substantive rejection: the ranks answered, and the answer is wrong",
                Trivial => "a trivial rejection: something is missing, or hollow raised",
                Broken => "broken: a rank failed on its way to an answer",
            }
        );
    } else if word != "passed" {
        text.push_str("  the judge failed by itself: its author's error, which counts as no rejection\n");
    }
    if !judgement.expectations.is_empty() {
        text.push('\n');
        text.push_str(&expectations(&judgement.expectations));
    }
    if let Some(entry) = found.and_then(|found| found.vector.first())
        && let Some(detail) = &entry.detail
    {
        let _ = writeln!(text, "\n{}{}: {}", place(detail), detail.exception, visible(&detail.message));
    }
    text.push_str(&ranks_text(&judgement.ranks));
    if word != "passed" {
        for log in logs.iter().filter(|log| !log.text.trim().is_empty()) {
            let _ = writeln!(text, "\n{} wrote\n  {}", log.rank, visible(&log.text).replace('\n', "\n  "));
        }
    }
    let again = format!("--seed {} --world {world}", judgement.seed);
    let _ = writeln!(text, "\nreplay with {again}");
    text
}

/// Expected beside got.
fn expectations(all: &[Expectation]) -> String {
    let mut table = Table::new(&["", "line", "what", "expected", "got", ""], &[1]);
    for one in all {
        table.row(vec![
            Cell::either(one.ok, "ok", "no"),
            one.line.map(|line| line.to_string()).unwrap_or_default().into(),
            short(&format!("{} {}", one.kind, one.what), 50).into(),
            short(&one.expected, 50).into(),
            short(&one.got, 50).into(),
            short(&one.detail, 70).into(),
        ]);
    }
    table.text()
}

fn ranks_text(ranks: &[RankOutcome]) -> String {
    let mut text = String::new();
    for (rank, entry) in ranks.iter().enumerate() {
        let Some(detail) = &entry.detail else { continue };
        let word = entry.outcome.word();
        let message = visible(&detail.message).replace('\n', "\n  ");
        let _ = write!(text, "\nrank {rank} {word}: {}{}: {message}\n", place(detail), detail.exception);
    }
    text
}

fn place(detail: &infradev_model::Detail) -> String {
    match (&detail.file, detail.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        _ => String::new(),
    }
}
