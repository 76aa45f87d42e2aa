//! Twins and canaries: tests that must fail.

use infradev_pycode::{Module, canary, names_of_tests, twins};
use infradev_supervise::Invocation;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

const ROUTER: &str = include_str!("fixtures/test_router.py");

fn rng(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn twin_of(text: &str, seed: u64) -> String {
    let twins = twins("test_x.py", text, &mut rng(seed)).expect("parses");
    assert_eq!(twins.len(), 1, "{twins:#?}");
    twins[0].text.clone()
}

#[test]
fn tests_are_named_as_pytest_names_them() {
    insta::assert_snapshot!(names_of_tests("test_router.py", ROUTER).expect("parses").join("\n"));
}

#[test]
fn each_twin_changes_one_assertion_that_is_surely_reached() {
    let twins = twins("test_router.py", ROUTER, &mut rng(1)).expect("parses");
    let shown: Vec<String> = twins
        .iter()
        .map(|twin| {
            let grown = twin.text.len() + twin.span.end - ROUTER.len();
            format!(
                "{}, line {}\n- {}\n+ {}\n",
                twin.test_function,
                twin.line,
                &ROUTER[twin.span.range()],
                &twin.text[twin.span.start..grown]
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn every_twin_parses_and_leaves_the_rest_of_the_file_alone() {
    for twin in twins("test_router.py", ROUTER, &mut rng(1)).expect("parses") {
        assert!(Module::parse("test_router.py", &twin.text).is_ok(), "{}", twin.test_function);
        assert!(twin.text.starts_with(&ROUTER[..twin.span.start]));
        assert!(twin.text.ends_with(&ROUTER[twin.span.end..]));
        assert_ne!(twin.text, ROUTER);
        assert_eq!(
            names_of_tests("t.py", &twin.text).expect("parses"),
            names_of_tests("t.py", ROUTER).expect("parses")
        );
    }
}

#[test]
fn an_assertion_keeps_its_message_and_its_parentheses() {
    for seed in 0..40 {
        let twin = twin_of("def test_x():\n    assert(a == b), (m, n)\n", seed);
        assert!(twin.ends_with(", (m, n)\n"), "{twin}");
        let twin = twin_of("def test_x():\r\n\tassert a == \\\r\n\t\tb\r\n", seed);
        assert!(twin.starts_with("def test_x():\r\n\tassert") && twin.ends_with("\r\n"), "{twin}");
        assert!(Module::parse("test_x.py", &twin).is_ok(), "{twin}");
    }
}

#[test]
fn a_literal_is_most_often_what_a_twin_changes() {
    let text = "def test_x():\n    assert total(x) == 3\n";
    let literal = |seed| {
        let twin = twin_of(text, seed);
        let changed = twin.trim().rsplit_once("assert total(x) == ").map(|(_, number)| number.to_owned());
        changed.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number >= 1_000))
    };
    assert!((0..60).filter(|seed| literal(*seed)).count() > 30);
}

/// Each pair: a test's lines, and lines that make its expectation true and false.
const EXPECTATIONS: [(&str, &str, &str); 12] = [
    ("assert v == 3", "v = 3", "v = 4"),
    ("assert 3 == v, 'why'", "v = 3", "v = 4"),
    ("assert v == -3.5", "v = -3.5", "v = None"),
    ("assert v == 'ab'", "v = 'ab'", "v = ''"),
    ("assert v == [1, *w]", "w = [2]; v = [1, 2]", "w = []; v = []"),
    ("assert v == []", "v = []", "v = [0]"),
    ("assert v == {'a': 1}", "v = {'a': 1}", "v = {}"),
    ("assert v == {1, 2}", "v = {1, 2}", "v = set()"),
    ("assert (lambda: 1) == v or v", "v = 1", "v = 0"),
    ("assert sum(x for x in v) == w", "v = [1, 2]; w = 3", "v = []; w = 1"),
    ("assert v", "v = 1", "v = 0"),
    ("assert 0 < v < 3 and v", "v = 1", "v = 9"),
];

/// What the real interpreter says of each twin: whether it fails where the original passes, and where it fails too.
#[test]
fn a_twin_fails_whether_its_original_passes_or_fails() {
    let mut program = String::from("passed = []\n");
    for (expectation, right, wrong) in EXPECTATIONS {
        for seed in 0..30 {
            let twin = twin_of(&format!("def test_x():\n    {expectation}\n"), seed);
            for given in [right, wrong] {
                program.push_str(&format!(
                    "{given}\n{twin}try:\n    test_x()\n    passed.append({:?})\nexcept AssertionError:\n    pass\n",
                    format!("{given}: {twin}")
                ));
            }
        }
    }
    program.push_str("assert not passed, passed\n");
    assert_eq!(python(&program), "");
}

/// The standard error of a Python program.
fn python(program: &str) -> String {
    let output = Invocation::new("python3")
        .args(["-W", "ignore", "-"])
        .inherit_env("PATH")
        .stdin(program)
        .run()
        .expect("python3 runs");
    output.stderr_text()
}

#[test]
fn a_file_marked_as_failing_or_skipped_has_no_twins() {
    for mark in ["pytest.mark.xfail", "[pytest.mark.skip(reason='x')]"] {
        let text = format!("pytestmark = {mark}\ndef test_x():\n    assert 1\n");
        assert!(twins("t.py", &text, &mut rng(1)).expect("parses").is_empty(), "{mark}");
    }
    let text = "pytestmark = pytest.mark.skipif(OLD, reason='old')\ndef test_x():\n    assert 1\n";
    assert_eq!(twins("t.py", text, &mut rng(1)).expect("parses").len(), 1);
}

#[test]
fn an_assertion_whose_failure_is_swallowed_is_not_taken() {
    for block in ["with pytest.raises(AssertionError):", "with contextlib.suppress(Exception):", "try:"] {
        let rest = if block == "try:" { "    except Exception: pass\n" } else { "" };
        let text = format!("def test_x():\n    {block}\n        assert 1\n{rest}    assert 2\n");
        let twin = twin_of(&text, 5);
        assert!(twin.contains("assert 1\n") && !twin.contains("assert 2\n"), "{block}: {twin}");
    }
}

#[test]
fn canaries_look_like_any_small_test_file() {
    let shown: Vec<String> = (0..8)
        .map(|seed| {
            let canary = canary(&mut StdRng::seed_from_u64(seed));
            format!("{}: {}\n{}", canary.file_name, canary.test_name, canary.text)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn no_word_but_test_is_common_to_all_canary_names() {
    let names: Vec<String> =
        (0..400).map(|seed| canary(&mut StdRng::seed_from_u64(seed)).file_name).collect();
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert!(distinct.len() > 380, "{} of 400", distinct.len());
    for second in names.iter().filter_map(|name| name.split('_').nth(1)) {
        let share = names.iter().filter(|name| name.contains(second)).count();
        assert!(share < 80, "{second} is in {share} of 400");
    }
}

proptest! {
    #[test]
    fn a_canary_is_one_test_with_one_assertion_and_imports_nothing(seed in any::<u64>()) {
        let canary = canary(&mut StdRng::seed_from_u64(seed));
        prop_assert_eq!(names_of_tests(&canary.file_name, &canary.text).expect("parses"), [canary.test_name]);
        prop_assert!(canary.file_name.starts_with("test_") && canary.file_name.ends_with(".py"));
        prop_assert_eq!(canary.text.matches("assert ").count(), 1);
        prop_assert!(!canary.text.contains("import"));
        // The twin of a failing comparison is still a valid file, and the assertion is at the test's own level.
        prop_assert_eq!(twins(&canary.file_name, &canary.text, &mut rng(seed)).expect("parses").len(), 1);
    }
}
