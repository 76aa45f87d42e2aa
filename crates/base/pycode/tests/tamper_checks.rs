//! Twins and canaries: tests that must fail.

use infradev_pycode::{Module, canary, names_of_tests, twins};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

const ROUTER: &str = include_str!("fixtures/test_router.py");

fn twin_of(text: &str) -> String {
    let twins = twins("test_x.py", text).expect("parses");
    assert_eq!(twins.len(), 1, "{twins:#?}");
    twins[0].text.clone()
}

#[test]
fn tests_are_named_as_pytest_names_them() {
    insta::assert_snapshot!(names_of_tests("test_router.py", ROUTER).expect("parses").join("\n"));
}

#[test]
fn each_twin_changes_one_assertion_that_is_surely_reached() {
    let twins = twins("test_router.py", ROUTER).expect("parses");
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
    for twin in twins("test_router.py", ROUTER).expect("parses") {
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
    assert_eq!(
        twin_of("def test_x():\n    assert(a == b), (m, n)\n"),
        "def test_x():\n    assert ((a == b)) in (), (m, n)\n"
    );
    assert_eq!(
        twin_of("def test_x():\r\n\tassert a == \\\r\n\t\tb\r\n"),
        "def test_x():\r\n\tassert (a == \\\r\n\t\tb) in ()\r\n"
    );
}

#[test]
fn a_file_marked_as_failing_or_skipped_has_no_twins() {
    for mark in ["pytest.mark.xfail", "[pytest.mark.skip(reason='x')]"] {
        let text = format!("pytestmark = {mark}\ndef test_x():\n    assert 1\n");
        assert!(twins("t.py", &text).expect("parses").is_empty(), "{mark}");
    }
    let text = "pytestmark = pytest.mark.skipif(OLD, reason='old')\ndef test_x():\n    assert 1\n";
    assert_eq!(twins("t.py", text).expect("parses").len(), 1);
}

#[test]
fn an_assertion_whose_failure_is_swallowed_is_not_taken() {
    for block in ["with pytest.raises(AssertionError):", "with contextlib.suppress(Exception):", "try:"] {
        let rest = if block == "try:" { "    except Exception: pass\n" } else { "" };
        let text = format!("def test_x():\n    {block}\n        assert 1\n{rest}    assert 2\n");
        assert!(twin_of(&text).contains("assert (2) in ()"), "{block}");
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
        prop_assert_eq!(twins(&canary.file_name, &canary.text).expect("parses").len(), 1);
    }
}
