//! Runs that go on while they are read, and records that are damaged, of another version or gone.

mod ground;

use ground::{Store, document, grade, record};
use infradev_analyse::{Analyser, Settings, analyse};
use infradev_model::{Analysis, Digest};
use infradev_store::{RunFolder, RunView};
use serde_json::{Value, json};

/// Keeps the record of an attempt as `attempt` does, with a patch that adds one assertion.
fn attempted(run: &RunFolder, name: &str) {
    let key = Digest::of(name.as_bytes());
    let mut kept = record(name, 1, "finished");
    kept["folder"] = json!(format!("trials/{key}"));
    let staging = run.stage(&key).unwrap();
    let patch =
        "--- /dev/null\n+++ b/tests/test_x.py\n@@ -0,0 +1,2 @@\n+def test_x():\n+    assert f() == 1\n";
    std::fs::write(staging.kept().join("patch.diff"), patch).unwrap();
    staging.finish(&kept).unwrap();
}

fn names(analysis: &Analysis) -> Vec<(&str, u64)> {
    let assertions =
        |of: &infradev_model::AnalysedSubmission| of.own_tests.as_ref().map_or(0, |own| own.resources().0);
    analysis.submissions.iter().map(|one| (one.submission.as_str(), assertions(one))).collect()
}

#[test]
fn of_a_run_that_goes_on_only_what_is_new_is_read() {
    let store = Store::new();
    let run = store.begin("attempt");
    attempted(&run, "codex#1");
    let id = run.id().to_owned();
    let mut view = store.runs().view(&id).unwrap();
    let mut analyser = Analyser::keeping();
    let mut look = |view: &RunView| analyser.analyse(vec![view.clone()], Settings::default()).unwrap();
    assert_eq!(names(&look(&view)), [("codex#1", 1)]);
    // What was read is not read again: without its patch it is as it was.
    std::fs::remove_file(
        store.path(&id).join("trials").join(Digest::of(b"codex#1").as_str()).join("patch.diff"),
    )
    .unwrap();
    attempted(&run, "codex#2");
    view = view.again().unwrap();
    let second = look(&view);
    let mut found = names(&second);
    found.sort_unstable();
    assert_eq!(found, [("codex#1", 1), ("codex#2", 1)]);
    // One that was made again is another record.
    attempted(&run, "codex#1");
    assert_eq!(look(&view).submissions.len(), 2);
    // Whoever reads it the first time finds no less.
    let afresh = analyse(store.views(&[&id]), Settings::default()).unwrap();
    assert_eq!(afresh.figures, second.figures);
    run.finish().unwrap();
    assert!(view.again().unwrap().finished);
}

#[test]
fn a_record_of_another_version_or_a_damaged_one_is_told_by_its_file_and_costs_its_own_labels() {
    let store = Store::new();
    let grades = [grade("codex", "unresolved", 1, 1), grade("claude", "unresolved", 1, 1)];
    let run = store.graded(&grades);
    let of = |name: &str| {
        store.path(&run).join("trials").join(Digest::of(name.as_bytes()).as_str()).join("result.json")
    };
    std::fs::write(of("codex"), r#"{"schema": 0, "trial": 1}"#).unwrap();
    std::fs::write(of("claude"), r#"{"schema": 1, "inp"#).unwrap();
    let analysis = store.analysis(&[&run], Settings { sealed: true, ..Settings::default() }).unwrap();
    let notes = analysis.notes.join("\n");
    assert!(notes.contains(&of("codex").display().to_string()), "{notes}");
    assert!(notes.contains(&of("claude").display().to_string()), "{notes}");
    let labels: Vec<bool> = analysis.cases.iter().map(|case| case.label.label.is_some()).collect();
    assert_eq!(labels, [true, false, true, false], "official cases have theirs: {:?}", analysis.cases);
}

#[test]
fn what_is_no_patch_and_no_trajectory_costs_its_readings_alone() {
    let store = Store::new();
    let run = store.begin("attempt");
    attempted(&run, "codex#1");
    let folder = run.path().join("trials").join(Digest::of(b"codex#1").as_str());
    std::fs::write(folder.join("patch.diff"), b"\xff\xfe no patch").unwrap();
    std::fs::write(folder.join("trajectory.json"), r#"{"schema_version": "ATIF-v0"}"#).unwrap();
    let id = run.id().to_owned();
    run.finish().unwrap();
    let analysis = store.public(&[&id]);
    let submission = &analysis.submissions[0];
    assert_eq!((submission.agent_s, submission.tokens.map(|tokens| tokens.input)), (Some(12.0), Some(100)));
    assert!(submission.tried.is_none() && submission.likeness.is_none());
}

#[test]
fn a_grade_document_of_an_older_infradev_is_read_without_what_it_lacks() {
    let store = Store::new();
    let run = store.begin("grade");
    let mut older: Value = document(run.id(), &[grade("codex", "unresolved", 1, 1)]);
    older.as_object_mut().unwrap().remove("tasks");
    run.write_document("grade.json", &older).unwrap();
    let id = run.id().to_owned();
    run.finish().unwrap();
    let analysis = store.public(&[&id]);
    assert!(analysis.figures.traits.is_empty() && analysis.submissions[0].likeness.is_none());
    // The official case goes by its message, as no text of its test is kept.
    assert_eq!(analysis.cases[0].label.rule, "assertion-message");
    assert!(analysis.notes.iter().any(|note| note.contains("unknown of triple")), "{:?}", analysis.notes);
}

#[test]
fn a_task_that_names_another_place_is_looked_for_nowhere() {
    let store = Store::new();
    let mut named = grade("codex", "resolved", 2, 2);
    named["task"] = json!("../../outside");
    std::fs::create_dir_all(store.folder.path()).unwrap();
    std::fs::write(store.folder.path().join("outside.json"), "{").unwrap();
    let run = store.graded(&[named]);
    assert_eq!(store.public(&[&run]).submissions.len(), 1);
}
