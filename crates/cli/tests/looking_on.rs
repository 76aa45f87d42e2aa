//! Reports on runs that are not whole: under way, killed, with records gone, of another version.

mod ground;

use std::io::Read;
use std::os::fd::OwnedFd;

use ground::Ground;
use infradev_supervise::{Exit, Sink, Spawn};
use nix::sys::signal::Signal;
use serde_json::Value;

const RIGHT: &str = "def triple(x):\n+    return 3 * x\n";
const WRONG: &str = "def triple(x):\n+    return 3 * x if x < 10 else 4 * x\n";
const HANGS: &str = "def triple(x):\n+    while True:\n+        pass\n";

/// A pack, and patches of these bodies as attempts of `codex`.
fn ground(bodies: &[&str]) -> Ground {
    let ground = Ground::new();
    for (at, body) in bodies.iter().enumerate() {
        let path = format!("patches/codex#{}/triple.patch", at + 1);
        let lines = format!("+1,{} @@", body.matches("\n+").count() + 5);
        ground.write(&path, &ground::GOLDEN.replace(RIGHT, body).replace("+1,6 @@", &lines));
    }
    ground
}

fn graded(ground: &Ground) -> String {
    let document = ground.infradev(&["grade", "pack", "--patches", "patches", "--json"]).exits(0).json();
    document["run"].as_str().unwrap().to_owned()
}

fn verdicts(document: &Value) -> Vec<(&str, &str)> {
    let each = document["submissions"].as_array().unwrap().iter();
    each.map(|one| (one["submission"].as_str().unwrap(), one["verdict"].as_str().unwrap())).collect()
}

#[test]
fn a_run_of_grade_shows_each_verdict_while_the_next_trial_is_under_way() {
    let ground = ground(&[RIGHT, HANGS]);
    // Long enough that the second one is under way for as long as this test looks on.
    ground.edit("pack/tasks/triple/task.toml", "case = 10.0", "case = 1000.0");
    ground.edit("pack/tasks/triple/task.toml", "trial = 120.0", "trial = 2000.0");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut spawn = Spawn::new(env!("CARGO_BIN_EXE_infradev"));
        spawn.args = ["grade", "pack", "--patches", "patches"].iter().map(Into::into).collect();
        spawn.env = ground.variables().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        spawn.cwd = Some(ground.path().to_path_buf());
        spawn.stderr = Sink::Fd(OwnedFd::from(writer));
        let mut child = spawn.start().unwrap();
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("codex#1: resolved") {
            let mut buffer = [0; 1024];
            let count = reader.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "it ended early: {}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&buffer[..count]);
        }
        let document = ground.infradev(&["report", "last", "--json"]).exits(0).json();
        assert_eq!(document["runs"][0]["state"], "running");
        assert_eq!(document["runs"][0]["submissions"], 1);
        assert_eq!(verdicts(&document), [("codex#1", "resolved")]);
        assert_eq!(document["tasks"][0]["repository"], "repo");
        let note = document["notes"][0].as_str().unwrap();
        assert!(note.ends_with("is running: what it holds so far is counted"), "{note}");
        ground.infradev(&["report", "last", "--site", "site"]).exits(0);
        assert!(ground.read("site/index.html").contains(">resolved</a>"));
        child.signal(Signal::SIGINT);
        assert_eq!(child.wait().await.unwrap(), Exit::Code(130));
    });
    // Killed, the run still says what it had graded.
    let document = ground.infradev(&["report", "last", "--json"]).exits(0).json();
    assert_eq!(document["runs"][0]["state"], "unfinished");
    assert_eq!(verdicts(&document), [("codex#1", "resolved")]);
}

#[test]
fn a_line_of_grades_that_a_kill_cut_off_costs_no_other_and_the_document_wins_once_it_is_there() {
    let ground = ground(&[RIGHT, WRONG]);
    let run = graded(&ground);
    let folder = format!("home/runs/{run}");
    let whole = ground.infradev(&["report", &run, "--json"]).exits(0).json();
    let lines = ground.read(&format!("{folder}/grades.jsonl"));
    assert_eq!(lines.lines().count(), 2);
    ground.write(&format!("{folder}/grades.jsonl"), &lines[..lines.len() - 9]);
    assert_eq!(ground.infradev(&["report", &run, "--json"]).exits(0).json(), whole);
    for gone in ["grade.json", "finished.json"] {
        std::fs::remove_file(ground.path().join(&folder).join(gone)).unwrap();
    }
    let half = ground.infradev(&["report", &run, "--json"]).exits(0).json();
    assert_eq!(verdicts(&half), [("codex#1", "resolved")]);
    std::fs::remove_file(ground.path().join(&folder).join("grades.jsonl")).unwrap();
    let none = ground.infradev(&["report", &run]).exits(0).out;
    assert!(none.contains("is unfinished: none of its submissions has a grade yet"), "{none}");
    // The same command goes on, of the records that are there, and the report is whole again.
    let again = ground.infradev(&["grade", "pack", "--patches", "patches", "--json"]).exits(0);
    assert_eq!(again.json()["run"], run.as_str());
    let after = ground.infradev(&["report", &run, "--json"]).exits(0).json();
    assert_eq!(verdicts(&after), verdicts(&whole));
}

#[test]
fn trials_without_logs_and_trials_that_are_gone_are_told_and_the_rest_is_shown() {
    let ground = ground(&[RIGHT, WRONG]);
    let run = graded(&ground);
    let whole = ground.infradev(&["report", &run, "--sealed", "--json"]).exits(0).json();
    let key = {
        let text = ground.read(&format!("home/runs/{run}/grade.json"));
        let grades: Value = serde_json::from_str(&text).unwrap();
        grades["submissions"][1]["trials"][0].as_str().unwrap().to_owned()
    };
    let trial = ground.path().join("home/runs").join(&run).join("trials").join(&key);
    std::fs::remove_dir_all(trial.join("logs")).unwrap();
    let page = |ground: &Ground| {
        ground.infradev(&["report", &run, "--sealed", "--site", "site"]).exits(0);
        let pages = std::fs::read_dir(ground.path().join("site/submissions")).unwrap();
        let mut texts = pages.map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap());
        texts.find(|text| text.contains("<h1>codex#2</h1>")).unwrap()
    };
    assert!(page(&ground).contains("No log was found in the run's folder."));
    let without = ground.infradev(&["report", &run, "--sealed", "--json"]).exits(0).json();
    assert_eq!(without, whole, "logs are shown and decide nothing");

    std::fs::remove_dir_all(&trial).unwrap();
    let gone = ground.infradev(&["report", &run, "--sealed", "--json"]).exits(0).json();
    assert_eq!(verdicts(&gone), verdicts(&whole));
    assert_eq!(gone["notes"][0], format!("trial {key} of {run} is gone"));
    assert_eq!(gone["cases"].as_array().unwrap().len(), 1, "its failing case stands in the grade");
    assert!(page(&ground).contains("No patch was found in the run"));
}

#[test]
fn documents_of_another_version_and_labels_of_cases_that_are_gone_are_refused_by_name() {
    let ground = ground(&[WRONG]);
    let run = graded(&ground);
    ground.write(
        "labels.toml",
        "schema = 1\n\n[[label]]\ntask = \"triple\"\nsubmission = \"codex#1\"\ncase = \"tests/test_model.py::test_gone\"\n\
         label = \"structural/state\"\nwhy = \"it is stale\"\nby = \"ada\"\n",
    );
    let mut said = String::new();
    let mut tell = |args: &[&str]| {
        let told = ground.infradev(args);
        let line = format!("$ infradev {}\n{}[exit {}]\n\n", args.join(" "), told.err, told.code);
        said.push_str(&line.replace(&run, "RUN"));
    };
    tell(&["report", "last", "--labels", "labels.toml"]);
    let document = format!("home/runs/{run}/grade.json");
    let text = ground.read(&document);
    let older = |version: u32| text.replacen("\"schema\": 1", &format!("\"schema\": {version}"), 1);
    assert_ne!(older(0), text);
    for version in [0, 2] {
        ground.write(&document, &older(version));
        tell(&["report", "last"]);
    }
    ground.write(&document, &text[..text.len() / 2]);
    tell(&["report", "last"]);
    insta::assert_snapshot!(said);
}
