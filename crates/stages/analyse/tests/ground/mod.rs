//! Runs as the store writes them, made of values.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;

use infradev_analyse::{AnalyseError, Settings, analyse};
use infradev_model::{Analysis, Digest};
use infradev_store::{Plan, RunEvent, RunFolder, RunView, Runs};
use serde_json::{Value, json};

/// A word that no public report may hold: it stands in names, messages and traits of probes alone.
pub const SECRET: &str = "zanzibar";
pub const PROBE: &str = "probes/judge_x.py::zanzibar_is_kept[world=1]";

pub struct Store {
    pub folder: tempfile::TempDir,
}

impl Store {
    pub fn new() -> Store {
        Store { folder: tempfile::tempdir().unwrap() }
    }

    pub fn runs(&self) -> Runs {
        Runs::new(self.runs_folder())
    }

    pub fn runs_folder(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// A run's folder.
    pub fn path(&self, run: &str) -> PathBuf {
        self.runs_folder().join(run)
    }

    pub fn begin(&self, verb: &str) -> RunFolder {
        let plan = Plan {
            verb: verb.into(),
            pack: "toy".into(),
            command: vec!["infradev".into(), verb.into()],
            digest: Digest::of(verb.as_bytes()),
        };
        self.runs().create(&plan).unwrap()
    }

    /// A finished run of `grade`, with the record of each trial.
    pub fn graded(&self, grades: &[Value]) -> String {
        let run = self.begin("grade");
        for grade in grades {
            keep(&run, grade);
        }
        run.write_document("grade.json", &document(run.id(), grades)).unwrap();
        let id = run.id().to_owned();
        run.finish().unwrap();
        id
    }

    pub fn views(&self, ids: &[&str]) -> Vec<RunView> {
        ids.iter().map(|id| self.runs().view(id).unwrap()).collect()
    }

    pub fn analysis(&self, ids: &[&str], settings: Settings<'_>) -> Result<Analysis, AnalyseError> {
        analyse(self.views(ids), settings)
    }

    pub fn public(&self, ids: &[&str]) -> Analysis {
        self.analysis(ids, Settings::default()).unwrap()
    }
}

pub fn document(run: &str, grades: &[Value]) -> Value {
    json!({
        "schema": 1, "run": run, "submissions": grades,
        "tasks": [{"task": "triple", "area": "training", "kind": "feature", "repository": "ada/toy"}],
    })
}

/// A grade of `triple`: `official` and `probe` cases passed of 2 each; the failing ones are made up.
pub fn grade(name: &str, verdict: &str, official: u32, probe: u32) -> Value {
    let mut failing = Vec::new();
    if verdict == "unresolved" && official < 2 {
        failing.push(failing_case(
            "official",
            "tests/test_model.py::test_triple",
            "AssertionError",
            "assert 8 == 6",
        ));
    }
    if verdict == "unresolved" && probe < 2 {
        failing.push(failing_case(
            "probe",
            PROBE,
            "infradev_probe.expect.ExpectationFailed",
            "zanzibar: got 1, expected 2",
        ));
    }
    json!({
        "task": "triple", "submission": name, "verdict": verdict, "passed": official + probe, "of": 4,
        "suites": {"official": {"passed": official, "of": 2}, "probe": {"passed": probe, "of": 2}},
        "fail_to_pass": {"passed": 0, "of": 0}, "pass_to_pass": {"passed": 0, "of": 0},
        "wall_s": 1.5, "fault": null, "reasons": ["zanzibar"], "failing": failing, "tampering": [],
        "sandbox": {"kind": "namespaces", "uid_separation": true, "memory_limit": "cgroup-v1", "network": "isolated"},
        "trials": [Digest::of(name.as_bytes())],
    })
}

pub fn failing_case(suite: &str, id: &str, exception: &str, message: &str) -> Value {
    let file = id.split("::").next().unwrap();
    let detail = json!({"exception": exception, "message": message, "file": file, "line": 9});
    json!({
        "suite": suite, "id": id, "world": 1, "word": "failed", "fail_to_pass": true,
        "vector": [{"outcome": "failed", "detail": detail}],
    })
}

/// The part of a trial's record that an analysis reads.
pub fn keep(run: &RunFolder, grade: &Value) {
    let key = Digest::of(grade["submission"].as_str().unwrap().as_bytes());
    let expectation = json!({"kind": "equal", "ok": false, "detail": "zanzibar"});
    let judgement = json!({
        "seed": 1, "checks": "condition", "traits": ["zanzibar-boundary"], "rejection": "substantive",
        "expectations": [expectation],
    });
    let case = json!({
        "suite": "probe", "id": PROBE, "vector": [{"outcome": "failed"}], "duration_s": 0.1, "launch": 0,
        "judgement": judgement,
    });
    let record = json!({"schema": 1, "inputs": {"world": 1}, "cases": [case]});
    run.record(&RunEvent::TrialStarted {
        trial: key.clone(),
        task: "triple".into(),
        what: "x".into(),
        world: 1,
    })
    .unwrap();
    run.stage(&key).unwrap().finish(&record).unwrap();
    run.record(&RunEvent::TrialFinished { trial: key, wall_s: 1.0 }).unwrap();
}

pub fn record(name: &str, attempt: u32, ending: &str) -> Value {
    json!({
        "schema": 1, "task": "triple", "submission": name, "attempt": attempt,
        "agent": {"name": "codex", "version": "1"}, "prompt": Digest::of(b"p"), "ending": ending,
        "agent_s": 12.0, "wall_s": 15.0,
        "metered": {"requests": 2, "failed": 0, "unmetered": 0,
            "tokens": {"input": 100, "cached": 0, "output": 20, "reasoning": 0}},
        "lookups": [{"method": "GET", "target": "x", "times": 3, "first_s": 1.0}], "left_running": [],
        "patch": Digest::of(b"d"), "patch_bytes": 10, "test_edits": [], "skipped": [],
        "sandbox": {"kind": "namespaces", "uid_separation": true, "memory_limit": "cgroup-v1", "network": "isolated"},
        "folder": "trials/x",
    })
}
