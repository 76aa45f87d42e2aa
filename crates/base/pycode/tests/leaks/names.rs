//! Names whose underscores Markdown escapes.

use super::{leaks_of, shown};

const GOLDEN: &str = "\
class Plan:
    def __init__(self, rows):
        self._limit = rows
        by_rank = rows
";

#[test]
fn a_word_that_goes_on_behind_an_escaped_underscore_is_not_the_name_that_it_ends_or_begins_with() {
    for text in [
        r"The rate\_limit holds.",
        r"`rate\_limit`",
        r"Of rate\_\_limit and 3\_limit.",
        r"The by_rank\_of it, and \_limit\_of.",
        r"by\_rank\_of",
    ] {
        assert_eq!(shown(&leaks_of(GOLDEN, "", "", text)), "", "{text}");
    }
}

#[test]
fn a_name_with_escaped_underscores_is_found_as_a_whole() {
    for (text, line) in [
        (r"It is by\_rank.", 4),
        (r"`by\_rank`", 4),
        (r"by_rank\", 4),
        (r"The \_limit holds.", 3),
        (r"self.\_limit", 3),
        ("The _limit holds.", 3),
        (r"rate \_limit", 3),
        (r"C:\_limit", 3),
    ] {
        let found = leaks_of(GOLDEN, "", "", text);
        let places: Vec<_> =
            found.iter().map(|f| (f.rule.name(), f.golden.as_ref().map(|at| at.line))).collect();
        assert_eq!(places, [("private-name", Some(line))], "{text}\n{}", shown(&found));
    }
}
