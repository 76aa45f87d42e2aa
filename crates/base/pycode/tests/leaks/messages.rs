//! Messages with values in them.

use super::{leaks_of, shown};

const GOLDEN: &str = r#"
def publish(version, other, name):
    if version <= other:
        raise ValueError(f"version {version} is not newer than {other}, which was published before")
    raise KeyError(
        "of these names "
        f"none is {name!r:>{other}}, but"
        " others are {there}"
    )
"#;

fn found(base: &str, test: &str, text: &str) -> Vec<(u32, String)> {
    let found = leaks_of(GOLDEN, base, test, text);
    let messages = found.into_iter().filter(|finding| finding.what.contains("a message of golden's code"));
    messages
        .map(|finding| {
            assert_eq!(finding.rule.name(), "constant");
            (finding.golden.map_or(0, |at| at.line), finding.passage.unwrap_or_default())
        })
        .collect()
}

#[test]
fn a_message_with_values_in_it_is_found_by_what_stands_between_them() {
    let newer = (4, "is not newer than".to_owned());
    let before = (4, ", which was published before".to_owned());
    let both = found("", "", "It says: version 4 is not newer than 3, which was published before.");
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both.contains(&newer) && both.contains(&before), "{both:?}");
    assert_eq!(found("", "", "One that\nis not  newer\nthan the last is refused."), [newer]);
    assert_eq!(found("", "", "A number, which was published before."), [before]);
    assert_eq!(
        found("", "", "`of these names none is 'x', but others are {there}`")
            .iter()
            .map(|(line, _)| *line)
            .collect::<Vec<_>>(),
        [6, 6]
    );
}

#[test]
fn a_message_with_values_in_it_that_others_have_or_that_is_short_is_no_finding() {
    for text in [
        "A version is newer than the last, or refused.",
        // Its short pieces, and one with a value's place filled by words of its own.
        "The version 4 is new, but others are there.",
        "None of these names is here.",
    ] {
        assert_eq!(shown(&leaks_of(GOLDEN, "", "", text)), "", "{text}");
    }
    let text = "Version 4 is not newer than 3.";
    assert_eq!(found("", "", text).len(), 1);
    for known in [
        "def f(a, b):\n    raise ValueError(f'{a} is not newer than {b}')\n",
        "def f(a, b):\n    raise ValueError(f'{a} is not '\n        f'newer than {b}')\n",
        "def test():\n    with pytest.raises(ValueError, match='is not newer than'): pass\n",
    ] {
        assert_eq!(found(known, "", text), [], "{known}");
        assert_eq!(found("", known, text), [], "{known}");
    }
}
