//! A statement of golden's as a pattern: found with golden's names, or with other names in the place of its locals.

use std::collections::HashSet;

use infradev_model::GoldenLine;

use super::pattern::{Pattern, RENAMED};
use super::spelling::{self, Role, Stream, Text};

/// Python's own words, and the names that stand for nothing.
const KEYWORDS: [&str; 34] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "raise", "return", "try", "while", "with", "yield", "self", "cls",
];
/// Names that any code has: alone they make no two statements alike.
const COMMON: [&str; 60] = [
    "None",
    "True",
    "False",
    "Any",
    "abs",
    "all",
    "any",
    "append",
    "args",
    "bool",
    "ceil",
    "copy",
    "cpu",
    "device",
    "dict",
    "dtype",
    "enumerate",
    "extend",
    "float",
    "flatten",
    "format",
    "get",
    "getattr",
    "hasattr",
    "int",
    "isinstance",
    "item",
    "items",
    "join",
    "keys",
    "kwargs",
    "len",
    "list",
    "long",
    "math",
    "max",
    "min",
    "ndim",
    "next",
    "numel",
    "numpy",
    "pop",
    "print",
    "range",
    "reshape",
    "set",
    "shape",
    "size",
    "sorted",
    "split",
    "str",
    "sum",
    "super",
    "tensor",
    "to",
    "torch",
    "tuple",
    "values",
    "view",
    "zip",
];

/// A statement, or the value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// As golden writes it, and with its calls in other forms.
    patterns: Vec<Pattern>,
    pub(super) golden: GoldenLine,
}

/// How much of a statement a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// All of it, where only its value tells anything: what gives that to a name, or returns it. One that is too short by itself is told
    /// with the whole.
    Around,
    /// The value that it gives or returns.
    Value,
}

impl Statement {
    /// Reads it off its texts, without comments: golden's own, then other forms of it. `None` where they are too short or too common to
    /// tell anything.
    pub(super) fn of(
        texts: &[String],
        part: Part,
        locals: &HashSet<String>,
        golden: GoldenLine,
    ) -> Option<Statement> {
        let patterns: Vec<Pattern> =
            texts.iter().filter_map(|text| Pattern::of(text, part, locals)).collect();
        (!patterns.is_empty()).then_some(Statement { patterns, golden })
    }

    /// Where it stands in a text with golden's names: the first and the last of its tokens, each time.
    pub(super) fn by_name(&self, text: &Stream) -> impl Iterator<Item = (usize, usize)> {
        self.patterns.iter().flat_map(|pattern| pattern.find(text, false))
    }

    /// The same with other names in its locals' place, one for each.
    pub(super) fn by_place(&self, text: &Stream) -> impl Iterator<Item = (usize, usize)> {
        self.patterns.iter().flat_map(|pattern| pattern.find(text, true))
    }
}

/// Whether a value is too short to be told by itself with other names.
pub(super) fn is_short(value: &str) -> bool {
    let tokens = spelling::tokens(value, Text::Code);
    tokens.iter().filter(|token| token.role == Role::Plain).count() < RENAMED
}

/// Whether a token is a name that not any code has.
pub(super) fn is_telling(token: &str) -> bool {
    spelling::is_word(token) && !is_keyword(token) && !COMMON.contains(&token)
}

/// Whether a word is one of Python's own, or stands for nothing.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str, part: Part) -> Option<Statement> {
        let locals = ["counts", "offsets", "x", "y", "n", "places", "capacity"].map(str::to_owned);
        Statement::of(
            &[text.to_owned()],
            part,
            &HashSet::from(locals),
            GoldenLine { file: "m.py".into(), line: 1 },
        )
    }

    #[test]
    fn short_and_common_statements_tell_nothing() {
        for text in [
            "return x",
            "self.x = x",
            "self.x = 0",
            "x = []",
            "return None",
            "return self.x",
            "n = len(x)",
            "super().__init__()",
            "assert x in y",
            "x.append(y)",
            "not self.training",
            "x = x + 1",
            "func(*args, **kwargs)",
            "return func(*args)",
            "return x[-1]",
        ] {
            assert_eq!(statement(text, Part::Whole), None, "{text}");
        }
    }

    #[test]
    fn a_statement_that_returns_a_sum_tells_something() {
        for text in ["return 3 * x", "return x + 1", "return x[-1] / 2"] {
            assert!(statement(text, Part::Around).is_some(), "{text}");
        }
    }

    #[test]
    fn a_local_has_another_name_and_only_one() {
        let golden = statement("torch.cumsum(counts, dim=0) - counts", Part::Value).expect("it tells");
        let found = |text: &str| golden.by_place(&Stream::of(text, Text::Prose)).next().is_some();
        for text in [
            "torch.cumsum(n, 0) - n",
            "begin = torch.cumsum(per_expert, dim=0) - per_expert",
            "- torch.cumsum(a, 0)\n- a",
        ] {
            assert!(found(text), "{text}");
        }
        for text in [
            "torch.cumsum(n, 0) - m",
            "torch.cumsum(n, 1) - n",
            "torch.cumprod(n, 0) - n",
            "torch.cumsum(n, 0)",
            "",
        ] {
            assert!(!found(text), "{text}");
        }
        let two = statement("self.rotate(x, y, x)", Part::Value).expect("it tells");
        assert!(two.by_place(&Stream::of("self.rotate(q, q, q)", Text::Prose)).next().is_none());
        assert!(two.by_name(&Stream::of("self.rotate(x, y, x)", Text::Prose)).next().is_some());
    }
}
