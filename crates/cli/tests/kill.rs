//! `kill -9` at random instants spread over one acceptance, with a resume after each.
//!
//! By default over a small pack, ten times. `make kill-test` does it over the core pack:
//!
//! ```text
//! INFRADEV_KILL_PACK=packs/core    the pack, copied before it is used
//! INFRADEV_KILLS=50                kills
//! INFRADEV_KILL_SEED=7             the instants of an earlier run
//! ```

#![allow(clippy::disallowed_macros, reason = "a test of minutes says how far it is, and its seed")]

mod ground;
mod harm;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ground::Ground;
use harm::{Ended, Running, assert_nothing_left, no_process_of, tells_an_end};
use infradev_supervise::Exit;
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// With a seed: which case rejects a patch depends on the inputs that it was given, and the record names the case.
const ACCEPT: [&str; 7] = ["accept", "pack", "--runs", "1", "--seed", "7", "--json"];

/// What an acceptance leaves: its records by path, its document without the run's name.
#[derive(Debug, PartialEq)]
struct Outcome {
    exit: Exit,
    records: BTreeMap<PathBuf, Vec<u8>>,
    tasks: serde_json::Value,
}

/// What is known of the acceptance before it is hurt.
struct Undisturbed {
    outcome: Outcome,
    /// From the start to the beginning of the first trial.
    set_up: Duration,
    /// Of each trial in order.
    trials: Vec<Duration>,
}

#[tokio::test]
async fn an_acceptance_killed_at_random_instants_ends_in_the_record_of_an_undisturbed_one() {
    let kills: usize = setting("INFRADEV_KILLS").unwrap_or(10);
    let seed = setting("INFRADEV_KILL_SEED").unwrap_or_else(rand::random::<u64>);
    println!("{kills} kills, INFRADEV_KILL_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);

    let calm = undisturbed().await;
    println!("undisturbed: {} trials after {:?} of set-up", calm.trials.len(), calm.set_up);
    let ground = pack();
    let here = ground.path();
    let mut pids = Vec::new();
    let mut finished = None;
    for kill in 0..kills {
        // Spread by progress: after so many trials of the acceptance, at any instant of the next, or of the set-up before.
        let after = kill * calm.trials.len() / kills;
        let next = if after == 0 { calm.set_up + calm.trials[0] } else { calm.trials[after] };
        let delay = next.mul_f64(rng.random_range(0.0..1.0));
        let mut running = Running::start(here, &ACCEPT, &[]);
        pids.push(running.pid());
        for _ in 0..after {
            running.says(tells_an_end).await;
        }
        // A trial that is quicker than it was is hit at its end.
        let _ = tokio::time::timeout(delay, running.says(tells_an_end)).await;
        running.signal(Signal::SIGKILL);
        let ended = running.end().await;
        println!("kill {}: {delay:?} after trial {after}, {:?}", kill + 1, ended.exit);
        if ended.exit != Exit::Signal(9) {
            // All was done when the last trial's kill came: nothing is left to be hurt.
            assert_eq!(after + 1, calm.trials.len(), "{}", ended.err);
            finished = Some(ended);
            break;
        }
        // Half of the resumes meet a dying tree.
        if rng.random() {
            no_process_of(here).await;
        }
    }
    let landed = pids.len() - usize::from(finished.is_some());
    let ended = match finished {
        Some(ended) => ended,
        None => {
            let last = Running::start(here, &ACCEPT, &[]);
            pids.push(last.pid());
            last.end().await
        }
    };
    let outcome = outcome(here, ended);

    assert_eq!(outcome.exit, calm.outcome.exit);
    assert_eq!(outcome.tasks, calm.outcome.tasks);
    let names = |outcome: &Outcome| outcome.records.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&outcome), names(&calm.outcome));
    for (path, record) in &outcome.records {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(record), text(&calm.outcome.records[path]), "{}", path.display());
    }
    no_process_of(here).await;
    assert_nothing_left(here, &pids);
    let (run, starts) = one_run_that_repeats_no_finished_trial(here);
    println!("{landed} kills landed; {run}: {starts} trials begun for {} finished", calm.trials.len());
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// The small pack, or a copy of the one that is asked for.
fn pack() -> Ground {
    let ground = Ground::new();
    let Some(given) = setting::<PathBuf>("INFRADEV_KILL_PACK") else { return ground };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = ground.path().join("pack");
    fs::remove_dir_all(&target).unwrap();
    copy(&repository.join(given), &target);
    for record in records(ground.path()).keys() {
        fs::remove_file(ground.path().join(record)).unwrap();
    }
    ground
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

async fn undisturbed() -> Undisturbed {
    let ground = pack();
    let task = fs::read_dir(ground.path().join("pack/tasks")).unwrap().next().unwrap().unwrap().path();
    // Builds the environments: that is not measured.
    let list = ["probe", "list", task.to_str().unwrap()];
    Running::start(ground.path(), &list, &[]).end().await.exits(0);
    let begin = Instant::now();
    let mut running = Running::start(ground.path(), &ACCEPT, &[]);
    assert!(running.says(tells_an_end).await, "no trial ended");
    let first = begin.elapsed();
    let outcome = outcome(ground.path(), running.end().await);
    let trials: Vec<Duration> = journal(ground.path())
        .1
        .iter()
        .filter(|event| event["kind"] == "trial_finished")
        .map(|event| Duration::from_secs_f64(event["wall_s"].as_f64().unwrap()))
        .collect();
    let set_up = first.saturating_sub(trials[0]);
    Undisturbed { outcome, set_up, trials }
}

fn outcome(here: &Path, ended: Ended) -> Outcome {
    let tasks = ended.json()["tasks"].clone();
    Outcome { exit: ended.exit, records: records(here), tasks }
}

fn records(here: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut records = BTreeMap::new();
    for entry in fs::read_dir(here.join("pack/tasks")).unwrap() {
        let path = entry.unwrap().path().join("acceptance.json");
        if let Ok(bytes) = fs::read(&path) {
            records.insert(path.strip_prefix(here).unwrap().to_owned(), bytes);
        }
    }
    records
}

/// The one run of the store: its name, and the events of its journal.
fn journal(here: &Path) -> (String, Vec<serde_json::Value>) {
    let runs = fs::read_dir(here.join("home/runs")).unwrap().flatten();
    let names: Vec<String> = runs.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| !name.starts_with('.')).collect();
    let [run] = &names[..] else { panic!("one run, not {names:?}") };
    let text = fs::read_to_string(here.join("home/runs").join(run).join("journal.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    (run.clone(), lines.map(|line| line["event"].clone()).collect())
}

/// The run's name and how often a trial began.
fn one_run_that_repeats_no_finished_trial(here: &Path) -> (String, usize) {
    let (run, events) = journal(here);
    let trials = here.join("home/runs").join(&run).join("trials");
    let mut finished = Vec::new();
    let mut starts = 0;
    for event in &events {
        match event["kind"].as_str().unwrap() {
            "trial_started" => {
                assert!(!finished.contains(&&event["trial"]), "a finished trial began again: {event}");
                starts += 1;
            }
            "trial_finished" => {
                assert!(!finished.contains(&&event["trial"]), "a trial finished twice: {event}");
                finished.push(&event["trial"]);
            }
            "trial_fault" => panic!("a kill was taken for a fault: {event}"),
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["kind"], "finished");
    assert!(fs::read_dir(&trials).unwrap().count() >= finished.len());
    (run, starts)
}
