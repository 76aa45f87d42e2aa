//! `infradev run list` and `infradev run show`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use infradev_model::{AcceptDocument, AttemptDocument, GradeDocument, Run};
use infradev_store::{RunEvent, RunView, Runs};
use serde::Serialize;

use crate::cli::{Global, RunListArgs, RunShowArgs};
use crate::commands::{accept, attempt_shown, grade};
use crate::progress::counted;
use crate::report::{self, Failure, visible};
use crate::session;
use crate::tables::{Cell, Table, middle};

/// The schema version of both documents.
const SCHEMA: u32 = 1;

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Finished,
    Running,
    Unfinished,
    Refused,
}

impl State {
    fn of(view: &RunView) -> State {
        match (view.finished, view.in_use) {
            (true, _) => State::Finished,
            (false, true) => State::Running,
            (false, false) if refusal(view).is_some() => State::Refused,
            (false, false) => State::Unfinished,
        }
    }

    fn cell(self) -> Cell {
        match self {
            State::Finished => Cell::good("finished"),
            State::Running => "running".into(),
            State::Unfinished => Cell::odd("unfinished"),
            State::Refused => Cell::bad("refused"),
        }
    }
}

/// Why the verb gave up, where it did so after all else.
fn refusal(view: &RunView) -> Option<&str> {
    match view.journal.events.last() {
        Some((_, RunEvent::Refused { what })) => Some(what),
        _ => None,
    }
}

#[derive(Serialize)]
struct Trial {
    key: String,
    task: String,
    what: String,
    world: u32,
    state: &'static str,
    wall_s: Option<f64>,
    evidence: Option<String>,
}

#[derive(Serialize)]
struct DamagedLine {
    file: String,
    line: usize,
    what: String,
    torn: bool,
}

#[derive(Serialize)]
struct RunDocument {
    schema: u32,
    run: Run,
    folder: String,
    state: State,
    refused: Option<String>,
    trials: Vec<Trial>,
    damaged: Vec<DamagedLine>,
    grade: Option<GradeDocument>,
    accept: Option<AcceptDocument>,
    attempt: Option<AttemptDocument>,
}

#[derive(Serialize)]
struct ListDocument {
    schema: u32,
    runs: Vec<ListedRun>,
}

#[derive(Serialize)]
struct ListedRun {
    id: String,
    verb: String,
    pack: String,
    started: u64,
    state: State,
    trials: usize,
}

/// Lists runs.
pub fn list(global: &Global, args: RunListArgs) -> Result<ExitCode, Failure> {
    let runs = Runs::new(session::home(global)?.runs());
    let mut document = ListDocument { schema: SCHEMA, runs: Vec::new() };
    for id in runs.list()? {
        let view = runs.view(&id)?;
        let trials = trials(&view).iter().filter(|trial| trial.state == "finished").count();
        let state = State::of(&view);
        let Run { id, verb, pack, started, .. } = view.run;
        document.runs.push(ListedRun { id, verb, pack, started, state, trials });
    }
    for unreadable in runs.unreadable()? {
        report::warn(unreadable);
    }
    if args.json {
        report::print_json(&document)?;
    } else if document.runs.is_empty() {
        report::note("no runs yet");
    } else {
        let mut table = Table::new(&["run", "pack", "state", "trials"], &[3]);
        for run in document.runs {
            table.row(vec![run.id.into(), run.pack.into(), run.state.cell(), run.trials.to_string().into()]);
        }
        report::print(table.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a run.
pub fn show(global: &Global, args: RunShowArgs) -> Result<ExitCode, Failure> {
    let runs = Runs::new(session::home(global)?.runs());
    let id = complete(&runs, &args.id)?;
    let view = runs.view(&id)?;
    let document = document(view)?;
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(text(&document))?;
    }
    for line in &document.damaged {
        let after = if line.torn { " (the run's next start cuts it off)" } else { "" };
        report::warn(format!("{}:{}: {}{after}", line.file, line.line, line.what));
    }
    Ok(ExitCode::SUCCESS)
}

/// The run whose id is this, or begins so.
pub fn complete(runs: &Runs, given: &str) -> Result<String, Failure> {
    let all = runs.list()?;
    if given == "last" {
        return all.last().cloned().ok_or_else(|| Failure::usage("there are no runs yet"));
    }
    let begin: Vec<&String> = all.iter().filter(|id| id.starts_with(given) && !given.is_empty()).collect();
    match begin[..] {
        _ if all.iter().any(|id| id == given) => Ok(given.to_string()),
        [one] => Ok(one.clone()),
        [] => {
            // Says which folder was searched.
            let missing: Failure = match runs.view(given) {
                Err(error) => error.into(),
                Ok(_) => Failure::usage(format!("there is no run `{given}`")),
            };
            Err(missing.hint("`infradev run list` lists them"))
        }
        _ => {
            let ids: Vec<&str> = begin.iter().map(|id| id.as_str()).collect();
            Err(Failure::usage(format!("`{given}` could be any of {}", ids.join(", "))))
        }
    }
}

fn trials(view: &RunView) -> Vec<Trial> {
    let mut order: Vec<Trial> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (_, event) in &view.journal.events {
        match event {
            RunEvent::TrialStarted { trial, task, what, world } => {
                let key = trial.to_string();
                let entry = Trial {
                    key: key.clone(),
                    task: task.clone(),
                    what: what.clone(),
                    world: *world,
                    state: if view.in_use { "running" } else { "stopped" },
                    wall_s: None,
                    evidence: None,
                };
                match places.get(&key) {
                    Some(place) => order[*place] = entry,
                    None => {
                        places.insert(key, order.len());
                        order.push(entry);
                    }
                }
            }
            RunEvent::TrialFinished { trial, wall_s } => {
                if let Some(place) = places.get(trial.as_str()) {
                    (order[*place].state, order[*place].wall_s) = ("finished", Some(*wall_s));
                }
            }
            RunEvent::TrialFault { trial, evidence } => {
                if let Some(place) = places.get(trial.as_str()) {
                    (order[*place].state, order[*place].evidence) = ("fault", Some(evidence.clone()));
                }
            }
            RunEvent::Opened { .. } | RunEvent::Refused { .. } | RunEvent::Finished => {}
        }
    }
    order
}

fn document(view: RunView) -> Result<RunDocument, Failure> {
    let journal = view.folder.join("journal.jsonl").display().to_string();
    let line = |damage: &infradev_store::journal::Damage, torn| DamagedLine {
        file: journal.clone(),
        line: damage.line,
        what: damage.what.clone(),
        torn,
    };
    let mut damaged: Vec<DamagedLine> = view.journal.damaged.iter().map(|found| line(found, false)).collect();
    damaged.extend(view.journal.torn.iter().map(|found| line(found, true)));
    Ok(RunDocument {
        schema: SCHEMA,
        state: State::of(&view),
        refused: refusal(&view).map(str::to_string),
        trials: trials(&view),
        damaged,
        grade: read(&view, "grade.json")?,
        accept: read(&view, "accept.json")?,
        attempt: read(&view, "attempt.json")?,
        folder: view.folder.display().to_string(),
        run: view.run,
    })
}

/// A document of the run, once it is there.
fn read<T: serde::de::DeserializeOwned>(view: &RunView, name: &str) -> Result<Option<T>, Failure> {
    let path = view.folder.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(infradev_model::format::json(&path.display().to_string(), &bytes)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::fault(format!("cannot read {}: {error}", path.display()))),
    }
}

fn text(document: &RunDocument) -> String {
    let run = &document.run;
    let state = match document.state {
        State::Finished => "finished",
        State::Running => "running: a process works on it",
        State::Unfinished if document.damaged.iter().any(|line| !line.torn) => {
            "unfinished: its journal is damaged, so that it cannot be resumed; move its folder away to begin anew"
        }
        State::Unfinished => "unfinished: the same command resumes it",
        State::Refused => "refused: once its cause is mended, the same command goes on",
    };
    let mut text = String::new();
    let _ = writeln!(text, "{}\n  {state}\n  pack {}", run.id, run.pack);
    if let Some(what) = &document.refused {
        let _ = writeln!(text, "  error: {}", visible(what).replace('\n', "\n    "));
    }
    let _ = writeln!(text, "  command: {}\n  folder: {}", run.command.join(" "), document.folder);
    let finished = document.trials.iter().filter(|trial| trial.state == "finished").count();
    let _ = writeln!(
        text,
        "  {} finished of {} begun\n",
        counted(finished as u32, "trial"),
        document.trials.len()
    );
    let mut table = Table::new(&["task", "patch", "ranks", "state", "wall", "trial"], &[2, 4]);
    for trial in &document.trials {
        table.row(vec![
            trial.task.as_str().into(),
            middle(&trial.what, grade::NAME).into(),
            // An attempt has no ranks.
            if trial.world == 0 { String::new() } else { trial.world.to_string() }.into(),
            match trial.state {
                "finished" => "finished".into(),
                other => Cell::odd(other),
            },
            trial.wall_s.map(|seconds| format!("{seconds:.1} s")).unwrap_or_default().into(),
            trial.key.chars().take(12).collect::<String>().into(),
        ]);
    }
    if !document.trials.is_empty() {
        text.push_str(&table.text());
    }
    for trial in document.trials.iter().filter_map(|trial| Some((trial, trial.evidence.as_ref()?))) {
        let _ = writeln!(text, "\nfault in {} · {}: {}", trial.0.task, trial.0.what, trial.1);
    }
    if let Some(graded) = &document.grade {
        let _ = write!(text, "\n{}{}", grade::table(graded), grade::reasons(graded));
    }
    if let Some(accepted) = &document.accept {
        let _ = write!(text, "\n{}{}", accept::table(accepted), accept::reasons(accepted));
    }
    if let Some(attempted) = &document.attempt {
        let _ = write!(text, "\n{}{}", attempt_shown::table(attempted), attempt_shown::details(attempted));
    }
    text
}
