//! Run folders and calibrations: resumed after kills, held by one process, whole on a full disk.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use infradev_model::{CALIBRATION_SCHEMA, Calibration, CalibrationKey, Class, Classified, Digest};
use infradev_store::{Calibrations, Plan, RunEvent, RunFolder, Runs, StoreError, journal};
use infradev_supervise::{Exit, Invocation};

/// Set for a child that works on runs below this folder until it is killed.
const RUNS: &str = "INFRADEV_TEST_RUNS";
const TRIALS: u32 = 400;

fn plan(what: &str) -> Plan {
    Plan {
        verb: "accept".into(),
        pack: "core".into(),
        command: vec!["infradev".into(), "accept".into(), what.into()],
        digest: Digest::of(what.as_bytes()),
    }
}

fn trial(number: u32) -> Digest {
    Digest::of(&number.to_le_bytes())
}

/// Some trials of a run: finished ones are not repeated.
fn work(run: &RunFolder) -> u32 {
    let mut ran = 0;
    for number in 0..TRIALS {
        let key = trial(number);
        if run.finished::<u32>(&key).unwrap().is_some() {
            continue;
        }
        let event = RunEvent::TrialStarted {
            trial: key.clone(),
            task: "t".into(),
            what: "golden 1/3".into(),
            world: 2,
        };
        run.record(&event).unwrap();
        let staging = run.stage(&key).unwrap();
        fs::write(staging.kept().join("rank0.log"), vec![b'x'; 2000]).unwrap();
        fs::write(staging.scratch().join("socket"), "").unwrap();
        staging.finish(&number).unwrap();
        run.record(&RunEvent::TrialFinished { trial: key, wall_s: 0.25 }).unwrap();
        ran += 1;
    }
    ran
}

/// Also what a child does until it is killed.
#[test]
fn a_run_that_is_killed_again_and_again_ends_as_an_undisturbed_one() {
    if let Some(root) = std::env::var_os(RUNS).map(PathBuf::from) {
        let (run, _) = Runs::new(root).start(&plan("a")).unwrap();
        work(&run);
        run.finish().unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path());
    let mut kills = 0;
    for step in 0..80 {
        let output = Invocation::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_run_that_is_killed_again_and_again_ends_as_an_undisturbed_one",
                "--test-threads=1",
            ])
            .env(RUNS, folder.path())
            .deadline(Duration::from_millis(10).mul_f64(1.15_f64.powi(step)))
            .run()
            .unwrap();
        kills += usize::from(output.status == Exit::TimedOut);
        // Whatever the instant, what is there can be read.
        for id in runs.list().unwrap() {
            let view = runs.view(&id).unwrap();
            assert_eq!(view.journal.damaged, []);
            assert!(!view.in_use);
        }
        if output.status == Exit::Code(0) {
            break;
        }
        assert_eq!(output.status, Exit::TimedOut, "{}", output.stderr_text());
    }
    assert!(kills > 0);
    let ids = runs.list().unwrap();
    assert_eq!(ids.len(), 1, "one command, one run: {ids:?}");
    let view = runs.view(&ids[0]).unwrap();
    assert!(view.finished);
    let finished = |n: u32| {
        view.journal
            .events
            .iter()
            .filter(|(_, e)| matches!(e, RunEvent::TrialFinished { trial: t, .. } if *t == trial(n)))
            .count()
    };
    // A kill between the record's rename and the journal's line leaves the record, which is what counts.
    assert!((0..TRIALS).all(|n| finished(n) <= 1), "a finished trial was repeated");
    for number in 0..TRIALS {
        let path = view.folder.join("trials").join(trial(number).as_str());
        assert_eq!(fs::read_to_string(path.join("result.json")).unwrap().trim(), number.to_string());
        assert_eq!(fs::metadata(path.join("rank0.log")).unwrap().len(), 2000);
    }
    assert!(!view.folder.join("scratch").exists());
    let left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    assert_eq!(left.iter().filter(|name| name.starts_with(".creating-")).count(), 0);
}

#[test]
fn the_same_command_resumes_and_another_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path().join("runs"));
    let (run, resumed) = runs.start(&plan("a")).unwrap();
    assert!(!resumed && run.torn().is_none());
    let (id, key) = (run.id().to_owned(), trial(1));
    run.stage(&key).unwrap().finish(&"record").unwrap();
    assert_eq!(run.run().command, ["infradev", "accept", "a"]);
    drop(run);

    let (other, resumed) = runs.start(&plan("b")).unwrap();
    assert!(!resumed && other.id() != id);
    assert!(other.finished::<String>(&key).unwrap().is_none());

    let (again, resumed) = runs.start(&plan("a")).unwrap();
    assert!(resumed);
    assert_eq!(again.id(), id);
    assert_eq!(again.finished::<String>(&key).unwrap().as_deref(), Some("record"));
    assert!(again.finished::<String>(&trial(2)).unwrap().is_none());
    again.finish().unwrap();
    let (fresh, resumed) = runs.start(&plan("a")).unwrap();
    assert!(!resumed && fresh.id() != id, "a finished run is not resumed");
}

#[test]
fn two_holders_do_not_share_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path());
    let (first, _) = runs.start(&plan("a")).unwrap();
    let error = runs.open(first.id()).unwrap_err();
    assert_eq!(error.class(), Class::Usage);
    assert!(
        error.to_string().ends_with(&format!("is in use by another process ({})", std::process::id())),
        "{error}"
    );
    assert!(runs.view(first.id()).unwrap().in_use);
    let (second, resumed) = runs.start(&plan("a")).unwrap();
    assert!(!resumed && second.id() != first.id());
    assert_eq!(runs.list().unwrap().len(), 2);
}

#[test]
fn runs_of_one_second_are_listed_in_the_order_in_which_they_began() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path());
    let of_verb = |verb: &str| Plan { verb: verb.into(), ..plan(verb) };
    let verbs = ["grade", "accept", "synthesize", "attempt", "grade", "accept", "eval", "attempt"];
    let began: Vec<String> =
        verbs.iter().map(|verb| runs.create(&of_verb(verb)).unwrap().id().to_string()).collect();
    assert_eq!(runs.list().unwrap(), began);
}

#[test]
fn an_id_that_is_no_run_is_a_usage_error_and_never_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path().join("runs"));
    drop(runs.create(&plan("a")).unwrap());
    fs::copy(
        folder.path().join("runs").join(&runs.list().unwrap()[0]).join("run.json"),
        folder.path().join("run.json"),
    )
    .unwrap();
    for id in ["nope", "..", "", "../runs", ".creating-x"] {
        let error = runs.view(id).unwrap_err();
        assert!(matches!(error, StoreError::NoRun { .. }), "{error}");
        assert_eq!(error.class(), Class::Usage);
    }
}

#[test]
fn a_run_of_another_schema_version_is_told_by_its_version_whatever_else_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("old")).unwrap();
    fs::write(folder.path().join("old/run.json"), r#"{"schema": 0, "name": "x"}"#).unwrap();
    let error = Runs::new(folder.path()).view("old").unwrap_err().to_string();
    assert!(error.ends_with("key `schema`: version 0 is no longer read; this one reads 1"), "{error}");
}

#[test]
fn a_trials_key_names_a_folder_of_its_run_and_nothing_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path().join("runs"));
    let id = runs.create(&plan("a")).unwrap().id().to_owned();
    fs::create_dir_all(folder.path().join("elsewhere")).unwrap();
    fs::write(folder.path().join("elsewhere/result.json"), r#"{"schema": 1}"#).unwrap();
    let found = runs.view(&id).unwrap().trial::<serde_json::Value>("../../../elsewhere", 1).unwrap();
    assert_eq!(found, None);
}

fn journal_of(run: &Path) -> PathBuf {
    run.join("journal.jsonl")
}

#[test]
fn a_line_torn_by_a_kill_is_reported_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path());
    let (run, _) = runs.start(&plan("a")).unwrap();
    let path = journal_of(run.path());
    drop(run);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], &whole[..20]].concat()).unwrap();
    let (run, resumed) = runs.start(&plan("a")).unwrap();
    assert!(resumed);
    assert_eq!(run.torn().unwrap().line, 2);
    run.record(&RunEvent::Finished).unwrap();
    let read = journal::read::<RunEvent>(&path).unwrap();
    assert_eq!((read.events.len(), read.torn), (3, None));
}

#[test]
fn a_damaged_line_names_file_and_line_and_the_rest_can_still_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path());
    let (run, _) = runs.start(&plan("a")).unwrap();
    for number in 0..3 {
        run.record(&RunEvent::TrialFault { trial: trial(number), evidence: "disk full".into() }).unwrap();
    }
    let (id, path) = (run.id().to_owned(), journal_of(run.path()));
    drop(run);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("disk full", "disk fine", 1)).unwrap();

    let error = runs.start(&plan("a")).unwrap_err();
    assert_eq!(error.class(), Class::Fault);
    let said = format!("{error}\nhint: {}", error.hint().unwrap());
    let said = said.replace(&*path.to_string_lossy(), "[journal]").replace(&id, "[run]");
    insta::assert_snapshot!(said);
    let view = runs.view(&id).unwrap();
    assert_eq!(view.journal.events.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4]);
    assert_eq!(view.journal.damaged[0].line, 2);
}

#[test]
fn a_record_that_cannot_be_read_runs_again_and_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = Runs::new(folder.path()).start(&plan("a")).unwrap();
    let key = trial(1);
    let path = run.stage(&key).unwrap().finish(&1u32).unwrap();
    fs::write(path.join("result.json"), "").unwrap();
    assert_eq!(run.finished::<u32>(&key).unwrap(), None);
    run.stage(&key).unwrap().finish(&2u32).unwrap();
    assert_eq!(run.finished::<u32>(&key).unwrap(), Some(2));
}

#[test]
fn scratch_of_killed_processes_is_swept_from_every_run_and_of_live_ones_from_none() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(folder.path());
    let (live, _) = runs.start(&plan("live")).unwrap();
    let staging = live.stage(&trial(1)).unwrap();
    let dead = runs.create(&plan("dead")).unwrap();
    let left = dead.path().join("scratch/1-0-x");
    drop(dead);
    fs::create_dir_all(&left).unwrap();
    fs::create_dir_all(folder.path().join(".creating-x/y")).unwrap();
    runs.start(&plan("other")).unwrap();
    assert!(!left.exists() && !folder.path().join(".creating-x").exists());
    assert!(staging.kept().is_dir());
    let path = staging.scratch().to_owned();
    drop(staging);
    assert!(!path.exists());
}

fn calibration() -> Calibration {
    let digest = Digest::of(b"x");
    let key = CalibrationKey {
        task: "t".into(),
        suites: digest.clone(),
        tree: digest.clone(),
        environment: digest.clone(),
        layer: None,
        kit: digest,
        device_class: "cpu".into(),
        world: 2,
        sandbox: "namespaces".into(),
    };
    let (cases, quarantined, twins) = (vec![], vec![], vec![]);
    Calibration { schema: CALIBRATION_SCHEMA, key, golden_runs: 3, cases, quarantined, twins, wall_s: 4.5 }
}

#[test]
fn a_calibration_is_found_by_its_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Calibrations::new(folder.path());
    let calibration = calibration();
    assert_eq!(store.get(&calibration.key).unwrap(), None);
    let path = store.put(&calibration).unwrap();
    assert_eq!(store.get(&calibration.key).unwrap(), Some(calibration.clone()));
    assert_eq!(store.get(&CalibrationKey { world: 4, ..calibration.key.clone() }).unwrap(), None);
    fs::write(&path, "{\n  \"schema\": 1,\n  \"key\": 3\n}").unwrap();
    let error = store.get(&calibration.key).unwrap_err().to_string();
    assert!(error.contains(".json:3: key `key`:"), "{error}");
}

#[test]
fn a_second_run_waits_while_a_calibration_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = Calibrations::new(folder.path());
    let made = calibration();
    let held = store.lock(&made.key, &|| panic!("nobody holds it")).unwrap();
    let (say, hear) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let _held = store.lock(&made.key, &|| say.send(()).unwrap()).unwrap();
            store.get(&made.key).unwrap()
        });
        hear.recv().unwrap();
        store.put(&made).unwrap();
        drop(held);
        assert_eq!(waiter.join().unwrap(), Some(made.clone()));
    });
}

/// Also what a child runs: an interrupt ends a process's work for good.
#[test]
fn an_interrupt_ends_the_wait_for_another_run() {
    let Some(root) = std::env::var_os(RUNS) else {
        let folder = tempfile::tempdir().unwrap();
        let output = Invocation::new(std::env::current_exe().unwrap())
            .args(["--exact", "an_interrupt_ends_the_wait_for_another_run", "--test-threads=1"])
            .env(RUNS, folder.path())
            .deadline(Duration::from_secs(60))
            .run()
            .unwrap();
        assert!(output.status.success(), "{}", output.stderr_text());
        return;
    };
    let store = Calibrations::new(root);
    let key = calibration().key;
    let _held = store.lock(&key, &|| panic!("nobody holds it")).unwrap();
    let error = store.lock(&key, &infradev_supervise::cancel).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
}

/// A file system of 256 KiB, in a mount namespace of this thread alone.
fn on_a_small_disk(test: impl FnOnce(&Path) + Send) {
    use nix::mount::{MsFlags, mount};
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        let path = folder.path();
        scope.spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).expect("a mount namespace needs root");
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
                .unwrap();
            mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), Some("size=256k")).unwrap();
            test(path);
        });
    });
}

fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("ballast");
    let mut size = 256 << 10;
    let mut ballast = fs::File::create(&path).unwrap();
    while size > 0 {
        match std::io::Write::write(&mut ballast, &vec![0u8; size]) {
            Ok(0) | Err(_) => size /= 2,
            Ok(_) => {}
        }
    }
    path
}

#[test]
fn on_a_full_disk_each_write_is_refused_by_type_and_nothing_is_half_written() {
    on_a_small_disk(|disk| {
        let runs = Runs::new(disk.join("runs"));
        let (run, _) = runs.start(&plan("a")).unwrap();
        let staging = run.stage(&trial(1)).unwrap();
        let ballast = fill(disk);
        let full = |result: Result<(), StoreError>| {
            let error = result.unwrap_err();
            assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
            assert_eq!(error.class(), Class::Fault);
            assert!(error.hint().unwrap().contains("INFRADEV_HOME"));
        };
        // Lines go into the last page until it is full, then one is refused in its middle.
        let event = RunEvent::TrialFault { trial: trial(1), evidence: "e".repeat(500) };
        let mut lines = 1;
        let refused = loop {
            match run.record(&event) {
                Ok(()) => lines += 1,
                Err(error) => break Err(error),
            }
        };
        full(refused);
        full(staging.finish(&"r".repeat(9000)).map(|_| ()));
        full(run.write_document("grade.json", &"d".repeat(9000)).map(|_| ()));
        full(Calibrations::new(disk.join("calibrations")).put(&calibration()).map(|_| ()));
        let names: Vec<_> = fs::read_dir(run.path())
            .unwrap()
            .flatten()
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        assert!(!names.iter().any(|name| name == "grade.json" || name.starts_with(".writing")), "{names:?}");
        assert!(run.finished::<String>(&trial(1)).unwrap().is_none());

        fs::remove_file(ballast).unwrap();
        run.record(&RunEvent::Finished).unwrap();
        let read = journal::read::<RunEvent>(&journal_of(run.path())).unwrap();
        assert_eq!((read.events.len(), read.torn, read.damaged), (lines + 1, None, vec![]));
    });
}
