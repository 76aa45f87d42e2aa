//! What is read of patches, trajectories and a task's own texts.

mod ground;

use ground::{PROBE, Store, document, grade};
use infradev_analyse::Settings;
use infradev_model::{Analysis, Digest, Label, Property, TraitOf, Tried};
use infradev_store::RunFolder;
use serde_json::{Value, json};

const TESTS: &str = "\
from toy import model


def test_triple():
    got = model.triple(2)
    print(got)
    peak = model.peak()
    # what is promised
    assert peak < 8
";

const GOLDEN: &str = "\
--- a/toy/model.py
+++ b/toy/model.py
@@ -2 +2,4 @@
     return 2 * x
+def triple(value, offset):
+    shifted = value + offset * 2
+    return 3 * shifted - offset
";

/// A patch that is golden's but for a line, and adds a test to a file of base's and one of its own.
const PATCH: &str = "\
--- a/toy/model.py
+++ b/toy/model.py
@@ -2 +2,4 @@
     return 2 * x
+def triple(value, offset):
+    shifted = value + offset * 2
+    return shifted + shifted + shifted
--- a/tests/test_model.py
+++ b/tests/test_model.py
@@ -5 +5,3 @@
     assert model.double(2) == 4
+    peak = torch.cuda.max_memory_allocated()
+    assert peak < 1_000
--- /dev/null
+++ b/tests/test_mine.py
@@ -0,0 +1,3 @@
+def test_mine():
+    assert triple(1, 0) == 3
+    assert triple(1, 0).shape == ()
";

const BASE_TEST: &str =
    "from toy import model\nimport torch\n\ndef test_double():\n    assert model.double(2) == 4\n";

/// The run's own copy of the task's texts.
fn reference() -> Value {
    json!({"schema": 1, "task": "triple", "roots": ["tests"], "golden": GOLDEN, "official": {"tests/test_model.py": TESTS}})
}

fn trial(tree: &Digest, checks: &str, exact: Option<&str>) -> Value {
    let expectation =
        json!({"kind": "close", "ok": false, "expected": "float32 [0.5]", "got": "float32 [0.25]"});
    let judged = json!({
        "seed": 1, "checks": checks, "rejection": "substantive", "expectations": [expectation], "exact": exact,
    });
    let exact = json!({"seed": 1, "checks": "numbers"});
    let case = |id: &str, outcome: &str, judgement: Value| json!({"suite": "probe", "id": id, "vector": [{"outcome": outcome}], "duration_s": 0.1, "launch": 0, "judgement": judgement});
    json!({
        "schema": 1, "inputs": {"world": 1, "tree": tree},
        "cases": [case(PROBE, "failed", judged), case("probes/judge_x.py::exactly[world=1]", "passed", exact)],
    })
}

fn keep(run: &RunFolder, name: &str, record: &Value) {
    let key = Digest::of(name.as_bytes());
    let staging = run.stage(&key).unwrap();
    std::fs::write(staging.kept().join("patch.diff"), PATCH).unwrap();
    staging.finish(record).unwrap();
}

/// A run of one unresolved submission; with the base tree in the store where `with_tree`.
fn analysed(record: &dyn Fn(&Digest) -> Value, with_tree: bool, settings: Settings<'_>) -> Analysis {
    let store = Store::new();
    let tree = Digest::of(b"tree");
    if with_tree {
        let tests = store.folder.path().join("builds/trees").join(tree.as_str()).join("tests");
        std::fs::create_dir_all(&tests).unwrap();
        std::fs::write(tests.join("test_model.py"), BASE_TEST).unwrap();
    }
    let run = store.begin("grade");
    keep(&run, "codex", &record(&tree));
    let mut shown = document(run.id(), &[grade("codex", "unresolved", 1, 1)]);
    shown["tasks"][0]["traits"] = json!(["cuda-graph"]);
    run.write_document("grade.json", &shown).unwrap();
    run.write_document("sealed/triple.json", &reference()).unwrap();
    let id = run.id().to_owned();
    run.finish().unwrap();
    store.analysis(&[&id], settings).unwrap()
}

fn sealed() -> Settings<'static> {
    Settings { sealed: true, ..Settings::default() }
}

#[test]
fn an_official_case_goes_by_the_assertion_that_stopped_it() {
    let numbers = |tree: &Digest| trial(tree, "numbers", None);
    let analysis = analysed(&numbers, false, sealed());
    let case = &analysis.cases[0];
    assert_eq!(case.at.as_deref(), Some("tests/test_model.py:9"));
    assert_eq!(case.label.label, Some(Label::Memory));
    assert_eq!((case.label.rule.as_str(), case.checks.as_deref()), ("assertion-property", Some("memory")));
    assert_eq!(case.assertion.as_deref(), Some("assert peak < 8"));
    // The text of the tests is sealed.
    let public = analysed(&numbers, false, Settings::default());
    assert_eq!(public.cases[0].label, case.label);
    assert!(!serde_json::to_string(&public).unwrap().contains("peak"), "{:?}", public.cases[0]);
}

#[test]
fn precision_is_given_only_where_the_case_on_exact_inputs_passes() {
    let label = |checks: &str, exact: Option<&str>| {
        let record = |tree: &Digest| trial(tree, checks, exact);
        let analysis = analysed(&record, false, sealed());
        analysis.cases.iter().find(|case| case.case == PROBE).unwrap().label.clone()
    };
    let exactly = Some("probes/judge_x.py::exactly[world=1]");
    assert_eq!(label("numbers", None).label, Some(Label::Undetermined));
    assert_eq!(label("numbers", exactly).label, Some(Label::Precision));
    assert!(label("precision", exactly).evidence.ends_with("; the case's exact inputs pass"));
    // One that was not run says nothing, and neither does one of another property.
    assert_eq!(label("numbers", Some("probes/judge_x.py::gone[world=1]")).label, Some(Label::Undetermined));
    assert_eq!(label("state", exactly).label, Some(Label::State));
    // Its own failure as exact inputs' is a wrong algorithm.
    assert_eq!(label("numbers", Some(PROBE)).label, Some(Label::WrongAlgorithm));
}

#[test]
fn a_patch_is_held_against_golden_and_its_own_tests_are_classed() {
    let record = |tree: &Digest| trial(tree, "memory", None);
    let analysis = analysed(&record, true, Settings::default());
    let submission = &analysis.submissions[0];
    let like = submission.likeness.unwrap();
    assert_eq!((like.lines, like.shared_lines), (3, 2));
    assert_eq!((like.files, like.shared_files, like.own_files), (1, 1, 1));
    assert!(like.shingles > 0.3 && like.shingles < 1.0, "{like:?}");
    let tests = submission.own_tests.as_ref().unwrap();
    let counts: Vec<(Property, u64)> =
        tests.added.iter().map(|(property, count)| (*property, *count)).collect();
    assert_eq!(counts, [(Property::Memory, 1), (Property::Value, 1), (Property::ShapeOrDtype, 1)]);
    assert_eq!((tests.unread, tests.written.is_none()), (0, true));
    let figures = &analysis.figures;
    assert_eq!((figures.own_tests[0].resources.count, figures.own_tests[0].resources.of), (1, 3));
    assert_eq!(figures.likeness[0].recall, 1.0);
    let checks = figures.resource_checks.as_ref().unwrap();
    assert_eq!(((checks.failed.count, checks.failed.of), checks.others.of), ((1, 1), 0));
    // Without the tree a file that is not new cannot be read, and that is counted.
    let analysis = analysed(&record, false, Settings::default());
    let tests = analysis.submissions[0].own_tests.as_ref().unwrap();
    assert_eq!((tests.added.values().sum::<u64>(), tests.unread), (2, 1));
}

#[test]
fn conditional_errors_are_counted_by_trait_of_the_task_in_public_too() {
    let record = |tree: &Digest| trial(tree, "condition", None);
    let analysis = analysed(&record, false, Settings::default());
    let row = &analysis.figures.traits[0];
    assert_eq!((row.of, row.name.as_str()), (TraitOf::Task, "cuda-graph"));
    assert_eq!(((row.with.count, row.with.of), row.without.of), ((1, 1), 0));
}

#[test]
fn a_trajectory_tells_how_far_its_agent_tried_and_what_it_wrote() {
    let store = Store::new();
    let run = store.begin("attempt");
    let call = |id: &str, arguments: Value| json!({"tool_call_id": id, "function_name": "shell", "arguments": arguments});
    let steps = json!([
        {"step_id": 1, "source": "agent", "message": "", "metrics": {"prompt_tokens": 40, "completion_tokens": 2},
         "tool_calls": [call("a", json!({"path": "tests/test_x.py", "content": "def test_x():\n    assert f() == 1\n"}))]},
        {"step_id": 2, "source": "agent", "message": "", "metrics": {"prompt_tokens": 50, "completion_tokens": 8},
         "tool_calls": [call("b", json!({"command": "pytest -q tests"}))],
         "observation": {"results": [{"source_call_id": "b", "content": "1 passed"}]}},
    ]);
    let trajectory =
        json!({"schema_version": "ATIF-v1.8", "agent": {"name": "codex", "version": "1"}, "steps": steps});
    run.write_document("trials/x/trajectory.json", &trajectory).unwrap();
    let attempts = json!({"schema": 1, "run": run.id(), "predictions": "p", "submissions": [ground::record("codex#1", 1, "finished")]});
    run.write_document("attempt.json", &attempts).unwrap();
    let id = run.id().to_owned();
    run.finish().unwrap();
    let analysis = store.public(&[&id]);
    let submission = &analysis.submissions[0];
    let tried: Vec<(Tried, u64, Option<u64>)> =
        submission.tried.iter().flatten().map(|one| (one.gate, one.step, one.tokens)).collect();
    let gates = [Tried::Imports, Tried::Collects, Tried::OneRank];
    assert_eq!(tried, gates.map(|gate| (gate, 2, Some(100))));
    assert_eq!(submission.own_tests.as_ref().unwrap().resources(), (1, 0));
    assert_eq!(analysis.figures.tried.len(), 4);
    assert_eq!(analysis.figures.tried[3].reached.count, 0);
}

#[test]
fn texts_of_another_schema_version_are_refused_by_name() {
    let store = Store::new();
    let run = store.graded(&[grade("codex", "resolved", 2, 2)]);
    std::fs::create_dir_all(store.path(&run).join("sealed")).unwrap();
    std::fs::write(store.path(&run).join("sealed/triple.json"), r#"{"schema": 7, "text": 1}"#).unwrap();
    let error = store.analysis(&[&run], Settings::default()).unwrap_err().to_string();
    assert!(error.contains("sealed/triple.json") && error.contains('7'), "{error}");
}
