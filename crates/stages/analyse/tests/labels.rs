//! The rules, each on what trials record: exceptions are structural, assertions go by the property that they check.

use infradev_analyse::Seen;
use infradev_model::{Detail, Expectation, Judgement, Outcome, Property, RankOutcome, Rejection, Word};

const CASE: &str = "tests/test_moe.py::test_layer";

fn raised(outcome: Outcome, exception: &str, message: &str, file: &str) -> RankOutcome {
    let file = (!file.is_empty()).then(|| file.to_owned());
    let line = file.as_ref().map(|_| 7);
    RankOutcome::with(outcome, Detail { exception: exception.into(), message: message.into(), file, line })
}

fn seen(word: Word, culprit: Option<&RankOutcome>) -> Seen<'_> {
    Seen { case: CASE, word, culprit, judgement: None, asserted: None, exact_passes: None }
}

fn said(what: &str, seen: Seen<'_>) -> String {
    let label = seen.label();
    let word = label.label.map_or("unlabelled", |label| label.word());
    format!("{what:<34} {word:<27} {:<18} {}", label.rule, label.evidence)
}

#[test]
fn official_cases_go_by_what_was_raised_and_what_their_assertion_says() {
    let test = "tests/test_moe.py";
    let source = "mini/moe.py";
    let lines = [
        ("a name that is not there", Outcome::Failed, "AttributeError", "no attribute 'x'", source),
        (
            "a name with a telling word",
            Outcome::Failed,
            "AttributeError",
            "no attribute 'reshape_state_dict'",
            source,
        ),
        (
            "an argument of that name",
            Outcome::Failed,
            "TypeError",
            "unexpected keyword argument 'dtype'",
            source,
        ),
        ("memory that ran out", Outcome::Failed, "torch.OutOfMemoryError", "Tried to allocate 2 GiB", source),
        (
            "shapes that do not fit",
            Outcome::Failed,
            "RuntimeError",
            "mat1 and mat2 shapes cannot be multiplied",
            source,
        ),
        ("a wrong type", Outcome::Error, "RuntimeError", "expected scalar type Half but found Float", source),
        (
            "a lost key",
            Outcome::Failed,
            "RuntimeError",
            "Error(s) in loading state_dict: Missing key(s)",
            source,
        ),
        (
            "a captured graph",
            Outcome::Failed,
            "RuntimeError",
            "operation not permitted when stream is capturing",
            source,
        ),
        ("a crash", Outcome::Crashed, "SIGSEGV", "", ""),
        ("a hang", Outcome::Timeout, "", "", ""),
        ("a file that does not import", Outcome::NotCollected, "ImportError", "cannot import name 'x'", test),
        ("an assertion of the repository", Outcome::Failed, "AssertionError", "assert 1 == 2", source),
        (
            "an error that is not raised",
            Outcome::Failed,
            "Failed",
            "DID NOT RAISE <class 'ValueError'>",
            test,
        ),
        ("values that are not close", Outcome::Failed, "AssertionError", "Tensor-likes are not close!", test),
        (
            "another shape",
            Outcome::Failed,
            "AssertionError",
            "The values for attribute 'shape' do not match",
            test,
        ),
        ("whole numbers", Outcome::Failed, "AssertionError", "assert [8, 1] == [6, 1]", test),
        ("fractions", Outcome::Failed, "AssertionError", "assert 0.25 == 0.5", test),
        (
            "how many there are",
            Outcome::Failed,
            "AssertionError",
            "assert 3 == 2\n + where 3 = len([1])",
            test,
        ),
        ("something else", Outcome::Failed, "AssertionError", "assert False", test),
    ];
    let mut all: Vec<String> = Vec::new();
    for (what, outcome, exception, message, file) in lines {
        let entry = raised(outcome, exception, message, file);
        all.push(said(what, seen(Word::Failed, Some(&entry))));
    }
    all.push(said("a case that is not there", seen(Word::Missing, None)));
    all.push(said("a case that is skipped", seen(Word::Skipped, None)));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_an_assertion_checks_wins_over_its_message() {
    let entry = raised(Outcome::Failed, "AssertionError", "assert 3 == 2", "tests/test_moe.py");
    let asserted = |property, exact| Seen {
        asserted: Some(property),
        exact_passes: exact,
        ..seen(Word::Failed, Some(&entry))
    };
    insta::assert_snapshot!(
        [
            said("memory", asserted(Property::Memory, None)),
            said("an exception", asserted(Property::Exception, None)),
            said("values", asserted(Property::Value, None)),
            said("values, exact inputs pass", asserted(Property::Value, Some(true))),
            said("values, exact inputs fail", asserted(Property::Value, Some(false))),
        ]
        .join("\n")
    );
}

/// What a judge's text of the expected value says of its type decides whether a comparison is exact.
#[test]
fn values_of_a_floating_type_that_are_not_equal_may_lack_precision_alone() {
    let failed = raised(Outcome::Failed, "ExpectationFailed", "got 1", "probes/judge_x.py");
    let label = |expected: &str| {
        let mut judgement = judged("numbers", Some(Rejection::Substantive), "equal", "", &[]);
        judgement.expectations[0].expected = expected.into();
        let seen = Seen { judgement: Some(&judgement), ..seen(Word::Failed, Some(&failed)) };
        seen.label().label.map(|label| label.word())
    };
    for floating in ["bfloat16[4] [0.5 1.25]", "float32[2, 2] [1. 2. 3. …]", "0.5", "[1.0, 2.0]", "'x'", ""]
    {
        assert_eq!(label(floating), Some("numerical/undetermined"), "{floating}");
    }
    for whole in ["int64[3] [1 2 3]", "2793", "[1, -2]", "bool[1] [True]"] {
        assert_eq!(label(whole), Some("numerical/wrong_algorithm"), "{whole}");
    }
}

fn judged(
    checks: &str,
    rejection: Option<Rejection>,
    kind: &str,
    detail: &str,
    traits: &[&str],
) -> Judgement {
    let made = Expectation {
        kind: kind.into(),
        what: String::new(),
        ok: false,
        expected: String::new(),
        got: String::new(),
        detail: detail.into(),
        line: None,
    };
    let traits = traits.iter().map(|word| (*word).to_owned()).collect();
    Judgement { checks: checks.into(), rejection, expectations: vec![made], traits, ..Judgement::default() }
}

#[test]
fn probes_go_by_the_property_that_they_declare() {
    let failed =
        raised(Outcome::Failed, "infradev_probe.expect.ExpectationFailed", "got 1", "probes/judge_x.py");
    let rank = raised(Outcome::Error, "KeyError", "'x'", "mini/moe.py");
    let substantive = Some(Rejection::Substantive);
    let rows = [
        ("numbers, close", judged("numbers", substantive, "close", "value[1]: |1 - 2| = 1", &[]), &failed),
        ("numbers, equal", judged("numbers", substantive, "equal", "value: 1, expected 2", &[]), &failed),
        (
            "numbers, shape",
            judged("numbers", substantive, "close", "value: shape (2,), expected (3,)", &[]),
            &failed,
        ),
        ("precision", judged("precision", substantive, "close", "", &[]), &failed),
        ("shape", judged("shape", substantive, "equal", "", &[]), &failed),
        ("state", judged("state", substantive, "raises", "", &[]), &failed),
        ("memory", judged("memory", substantive, "between", "", &[]), &failed),
        ("traffic", judged("traffic", substantive, "between", "", &[]), &failed),
        ("time", judged("time", substantive, "between", "", &[]), &failed),
        ("liveness", judged("liveness", substantive, "finishes", "", &[]), &failed),
        ("error", judged("error", substantive, "raises", "", &[]), &failed),
        ("condition", judged("condition", substantive, "equal", "", &["cuda-graph"]), &failed),
        ("condition at a boundary", judged("condition", substantive, "equal", "", &["boundary"]), &failed),
        ("condition of fallback", judged("condition", substantive, "equal", "", &["fallback"]), &failed),
        ("memory, a rank raises", judged("memory", Some(Rejection::Broken), "", "", &[]), &rank),
        ("numbers, nothing there", judged("numbers", Some(Rejection::Trivial), "", "", &[]), &rank),
        ("the judge itself", judged("numbers", None, "", "", &[]), &rank),
    ];
    let said = rows.iter().map(|(what, judgement, culprit)| {
        let mut all = seen(Word::Failed, Some(culprit));
        (all.case, all.judgement) = ("probes/judge_x.py::c[world=2]", Some(judgement));
        said(what, all)
    });
    insta::assert_snapshot!(Vec::from_iter(said).join("\n"));
}

#[test]
fn an_expectation_that_is_plainly_about_something_else_goes_by_itself() {
    let failed = raised(Outcome::Failed, "infradev_probe.expect.ExpectationFailed", "", "probes/judge_x.py");
    let rows = [
        ("an error among numbers", "numbers", "raises", "ValueError", "rank 0 crashed"),
        ("an end among state", "state", "finishes", "within 3 s", "rank 1 did not"),
        ("a type among traffic", "traffic", "equal", "'bfloat16'", "'float32'"),
        ("a word among traffic", "traffic", "equal", "'sent'", "'kept'"),
        ("names among numbers", "numbers", "equal", "[]", "['router', 'down']"),
        ("names among conditions", "condition", "equal", "[]", "['router', 'down']"),
        ("values among traffic", "traffic", "close", "float32[2] [1, 2]", "float32[2] [1, 3]"),
        ("equal values among errors", "error", "equal", "float32[2] [1, 2]", "float32[2] [1, 3]"),
        ("values among state", "state", "close", "float32[2] [1, 2]", "float32[2] [1, 3]"),
        ("bytes among memory", "memory", "between", "0 to 100", "200"),
    ];
    let said = rows.map(|(what, checks, kind, expected, got)| {
        let mut judgement = judged(checks, Some(Rejection::Substantive), kind, "", &[]);
        let made = &mut judgement.expectations[0];
        (made.expected, made.got) = (expected.into(), got.into());
        said(what, Seen { judgement: Some(&judgement), ..seen(Word::Failed, Some(&failed)) })
    });
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn an_equality_of_texts_and_whole_numbers_is_exact_and_one_of_fractions_is_not() {
    let label = |message: &str| {
        let entry = raised(Outcome::Failed, "AssertionError", message, "tests/test_moe.py");
        let seen = Seen { asserted: Some(Property::Value), ..seen(Word::Failed, Some(&entry)) };
        seen.label().label.unwrap().word()
    };
    for exact in ["assert 8 == 6", "assert None == 1", "assert [['a'], ['b']] == [['a', 'b']]"] {
        assert_eq!(label(exact), "numerical/wrong_algorithm", "{exact}");
    }
    for other in
        ["assert 0.25 == 0.5", "assert tensor([1]) == 1", "assert 1e-05 == 1", "Tensor-likes are not close!"]
    {
        assert_eq!(label(other), "numerical/undetermined", "{other}");
    }
}
