//! What is an assertion, where it stands, what counts: cases that each were wrong once or could be.

use std::collections::BTreeSet;

use infradev_model::Property;
use infradev_model::atif::Trajectory;
use infradev_patch::{Patch, looks_like_test};
use infradev_pycode::assertions::{
    Share, added_assertions, assertions, assertions_of_patch, assertions_of_trajectory, property_at,
};
use proptest::prelude::*;

fn all(text: &str) -> Vec<(usize, String, Property)> {
    let all = assertions("test_x.py", text).unwrap();
    all.into_iter().map(|one| (one.line, one.within, one.property)).collect()
}

fn one(body: &str) -> Property {
    let text = format!("def test_a(a, b, c):\n    {}\n", body.replace('\n', "\n    "));
    let found = assertions("test_x.py", &text).unwrap();
    assert_eq!(found.len(), 1, "{body}: {found:?}");
    found[0].property
}

#[test]
fn a_pair_that_is_compared_with_numbers_is_checked_and_a_pair_that_is_asserted_is_not() {
    assert_eq!(one("assert (a, b) == (4, 4)"), Property::Value);
    assert_eq!(one("assert (a == 4, 'not four')"), Property::None);
    assert_eq!(one("assert (4, 4) == (4, 4)"), Property::None);
    assert_eq!(one("assert ()"), Property::Condition);
}

#[test]
fn an_address_within_bounds_is_no_memory_though_the_bounds_are_counted_in_bytes() {
    let text = "start = a.data_ptr()\nend = start + a.numel() * a.element_size()\nassert start <= b.data_ptr() < end";
    assert_eq!(one(text), Property::State);
}

#[test]
fn bytes_of_an_expected_shape_are_no_measure_unless_bytes_are_compared() {
    let bytes = "size = a.numel() * a.element_size()\n";
    assert_eq!(one(&format!("{bytes}assert b.file_size >= size")), Property::Condition);
    assert_eq!(one(&format!("{bytes}assert b.offloaded_bytes == size")), Property::Memory);
}

#[test]
fn a_time_of_day_and_an_estimate_are_no_resources() {
    assert_eq!(one("before = time.time()\nassert before <= a.timestamp"), Property::Condition);
    assert_eq!(one("assert estimate_memory(a) > estimate_memory(b)"), Property::Condition);
    assert_eq!(one("assert a.gpu_memory_utilization <= 0.9"), Property::Condition);
}

#[test]
fn names_are_followed_to_their_last_definition_through_tuples_helpers_and_what_is_added() {
    assert_eq!(one("x = torch.cuda.memory_allocated()\nx = f(a)\nassert x < 3"), Property::Condition);
    assert_eq!(
        one("free, total = torch.cuda.mem_get_info()\nused = total - free\nassert used < 3"),
        Property::Memory
    );
    assert_eq!(one("t0, n = time.perf_counter(), 3\nassert n == a"), Property::Value);
    assert_eq!(one("spent = []\nspent.append(time.monotonic())\nassert max(spent) < 3"), Property::Time);
    let text = "def run():\n    t = time.perf_counter()\n    return f(), time.perf_counter() - t\n\ndef test_a():\n    out, x = run()\n    assert out == 1\n    assert x < 1\n";
    let found: Vec<Property> = all(text).into_iter().map(|(.., property)| property).collect();
    assert_eq!(found, [Property::Value, Property::Time]);
}

const HELPED: &str = "\
def check(a, b):
    assert a.shape == b.shape
    assert a == b
    assert a != 0

def outer(a):
    check(a, 1)

class TestA:
    def verify(self, x):
        assert torch.cuda.memory_allocated() < x
        assert x > 0
        assert x > 1

    def test_a(self):
        outer(3)
        self.verify(4)
        other.verify(5)
        plain(6)

def plain(a):
    return a
";

#[test]
fn calls_of_helpers_count_and_their_bodies_do_not() {
    let found = assertions("test_x.py", HELPED).unwrap();
    let calls: Vec<(usize, Property, bool)> = found
        .iter()
        .filter(|one| one.calls.is_some())
        .map(|one| (one.line, one.property, one.counted_at_calls))
        .collect();
    assert_eq!(
        calls,
        [(7, Property::Value, true), (16, Property::Value, false), (17, Property::Memory, false)]
    );
    assert_eq!(Share::of(&found).to_string(), "1 of 2 check a resource (memory 1; value 1)");
}

#[test]
fn a_line_in_a_helper_says_more_than_the_line_that_calls_it() {
    let at = |line| property_at("test_x.py", HELPED, line).unwrap().map(|one| one.property);
    assert_eq!(at(2), Some(Property::ShapeOrDtype));
    assert_eq!(at(17), Some(Property::Memory));
    assert_eq!(at(18), None);
}

#[test]
fn helpers_that_call_each_other_end() {
    let text = "def f(a):\n    g(a)\n    assert a == 1\n\ndef g(a):\n    f(a)\n\ndef test_a():\n    g(1)\n";
    assert_eq!(all(text).last().unwrap(), &(9, "test_a".into(), Property::Value));
}

#[test]
fn lines_and_tests_are_named_as_tracebacks_and_pytest_name_them() {
    let text = "class TestA:\r\n    def test_b(self):\r\n        def inner():\r\n            assert (\r\n                1 + a\r\n            ) == 2\r\n        with pytest.raises(\r\n            KeyError\r\n        ):\r\n            run(\r\n                inner)\r\n";
    let found = assertions("test_x.py", text).unwrap();
    let shown: Vec<_> = found.iter().map(|one| (one.line, one.last_line, one.within.as_str())).collect();
    assert_eq!(shown, [(4, 6, "TestA::test_b"), (7, 9, "TestA::test_b")]);
    assert_eq!(property_at("test_x.py", text, 11).unwrap(), None);
}

#[test]
fn a_text_that_is_no_python_is_refused_with_its_place() {
    let error = property_at("test_x.py", "def test_a(:\n", 1).unwrap_err();
    assert!(error.to_string().starts_with("test_x.py:1:12: not valid Python"), "{error}");
}

const PATCH: &str = "\
diff --git a/tests/test_new.py b/tests/test_new.py
new file mode 100644
--- /dev/null
+++ b/tests/test_new.py
@@ -0,0 +1,4 @@
+def test_new():
+    peak = torch.cuda.max_memory_allocated()
+    assert peak < 3
+    assert f() == 1
diff --git a/tests/test_old.py b/tests/test_old.py
--- a/tests/test_old.py
+++ b/tests/test_old.py
@@ -1,2 +1,3 @@
 def test_old():
     assert g() == 1
+    assert g().shape == (1,)
diff --git a/src/model.py b/src/model.py
--- a/src/model.py
+++ b/src/model.py
@@ -1 +1,2 @@
 x = 1
+assert x
";

#[test]
fn a_patch_adds_the_assertions_on_its_added_lines_of_tests() {
    let patch = Patch::parse(PATCH.as_bytes()).unwrap();
    let after = "def test_old():\n    assert g() == 1\n    assert g().shape == (1,)\n";
    let added = assertions_of_patch(&patch, looks_like_test, |_| Some(after.into()));
    assert_eq!(added.unread, []);
    let share = Share::of(added.assertions());
    assert_eq!(share.to_string(), "1 of 3 check a resource (memory 1; value 1, shape_or_dtype 1)");
    assert_eq!(share.of_resources(), Some(1.0 / 3.0));
}

#[test]
fn a_file_without_its_text_or_with_another_is_told_and_not_guessed() {
    let patch = Patch::parse(PATCH.as_bytes()).unwrap();
    for (after, why) in [
        (None, "its text after the patch is not at hand"),
        (
            Some(b"def test_old():\n    pass\n".to_vec()),
            "line 3 of the text is not the one that the patch adds: give the text after the patch",
        ),
    ] {
        let added = assertions_of_patch(&patch, looks_like_test, |_| after.clone());
        assert_eq!(added.files.len(), 1);
        assert_eq!((added.unread[0].path.as_str(), added.unread[0].why.as_str()), ("tests/test_old.py", why));
    }
}

#[test]
fn an_assertion_added_to_a_helper_that_was_called_before_counts_by_itself() {
    let text = "def check(a):\n    assert a == 1\n    assert a.shape\n\ndef test_a():\n    check(1)\n";
    let added = added_assertions("test_x.py", text, &BTreeSet::from([3])).unwrap();
    assert_eq!(Share::of(&added).total(), 1);
    let both = added_assertions("test_x.py", text, &BTreeSet::from([3, 6])).unwrap();
    assert_eq!((both.len(), Share::of(&both).total()), (2, 1));
}

/// A trajectory of one call a step.
fn trajectory(calls: &[serde_json::Value]) -> Trajectory {
    let steps: Vec<serde_json::Value> = calls
        .iter()
        .enumerate()
        .map(|(at, arguments)| {
            serde_json::json!({"step_id": at + 1, "source": "agent", "message": "",
                "tool_calls": [{"tool_call_id": "a", "function_name": "tool", "arguments": arguments}]})
        })
        .collect();
    let whole = serde_json::json!({"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": steps});
    Trajectory::parse("trajectory.json", whole.to_string().as_bytes()).unwrap()
}

#[test]
fn a_trajectory_wrote_what_its_calls_put_into_tests_and_gave_to_python() {
    use serde_json::json;
    let written = assertions_of_trajectory(&trajectory(&[
        json!({"file_path": "/w/tests/test_a.py", "content": "def test_a():\n    assert f() == 1\n"}),
        json!({"file_path": "/w/tests/test_a.py", "old_string": "f() == 1", "new_string": "f() == 1\n    assert g() is None"}),
        json!({"file_path": "/w/model.py", "content": "assert x == 1\n"}),
        json!({"command": "str_replace", "path": "/w/tests/test_b.py", "old_str": "x", "new_str": "        assert h().shape == (1,)\n        assert h() == 2"}),
        json!({"command": "cd /w && python - <<'EOF'\nt = time.time()\nrun()\nassert time.time() - t < 1\nEOF"}),
        json!({"command": ["bash", "-lc", "python -c 'assert f() == 3'"]}),
        json!({"file_path": "/w/tests/test_c.py", "edits": [{"old_string": "a", "new_string": "assert a.grad is None"}]}),
        json!({"file_path": "/w/tests/test_d.py", "content": "def test_d(:\n"}),
    ]));
    assert_eq!(written.unparsed, 1);
    let share = written.share().to_string();
    assert_eq!(share, "1 of 7 check a resource (time 1; value 3, state 1, shape_or_dtype 1, condition 1)");
    let steps: Vec<u64> = written.assertions.iter().map(|(at, _)| at.step).collect();
    assert_eq!(steps, [1, 2, 4, 4, 5, 6, 7]);
}

/// The snippets of the fixtures.
fn snippets() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fixtures/assertions");
    ["tuning", "held_out"]
        .iter()
        .flat_map(|set| std::fs::read_dir(format!("{folder}/{set}")).unwrap())
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn lines_of_any_order_give_assertions_on_lines_that_hold_them(
        which in 0..6usize, picks in prop::collection::vec(0..200usize, 1..40)
    ) {
        let texts = snippets();
        let lines: Vec<&str> = texts[which].lines().map(str::trim).filter(|line| line.starts_with("assert")).collect();
        let picked = picks.iter().map(|at| lines[at % lines.len()]).filter(|line| !line.ends_with('('));
        let text = format!("def test_a():\n    pass\n{}", picked.map(|line| format!("    {line}\n")).collect::<String>());
        let total = text.lines().count();
        for one in assertions("test_x.py", &text).unwrap() {
            prop_assert!(one.line >= 3 && one.last_line <= total);
            prop_assert!(text.lines().nth(one.line - 1).unwrap().trim_start().starts_with("assert"));
        }
    }

    #[test]
    fn any_cut_of_a_file_is_read_or_refused(which in 0..6usize, cut in 0..4000usize, text in "\\PC{0,80}") {
        let texts = snippets();
        let whole = &texts[which];
        let cut: String = whole.chars().take(cut).collect();
        let _ = assertions("test_x.py", &cut);
        let _ = assertions("test_x.py", &text);
        let _ = property_at("test_x.py", &cut, text.len());
    }

    #[test]
    fn any_command_is_read(command in "(python|bash|-c|-lc|<<EOF|<<'E'|EOF|assert x|\\PC|\\n| |'|\"|>a.py){0,30}") {
        let call = serde_json::json!({"command": command});
        let _ = assertions_of_trajectory(&trajectory(&[call]));
    }
}
