//! A statement of golden's as a pattern: found with golden's names, or with other names in the place of its locals.

use std::collections::{BTreeSet, HashSet};

use infradev_model::GoldenLine;

use super::spelling::{self, Role, Stream, Text, Token};

/// Fewest tokens of a statement that is told with golden's names.
const SHORT: usize = 4;
/// Fewest tokens of a value that is told with golden's names without the rest of its statement.
const VALUE: usize = 6;
/// Fewest tokens of what is told with other names.
const RENAMED: usize = 6;

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

/// One token of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    text: String,
    role: Role,
    /// A name of the function's own, which may be another.
    is_local: bool,
}

/// A statement, or the value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// As golden writes it, and with its calls in other forms.
    patterns: Vec<Pattern>,
    pub(super) golden: GoldenLine,
}

/// One way to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    pieces: Vec<Piece>,
    /// Whether it is found with golden's names.
    by_name: bool,
    /// Whether it is found with other names in its locals' place.
    by_place: bool,
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
        self.patterns.iter().filter(|pattern| pattern.by_name).flat_map(|pattern| pattern.find(text, false))
    }

    /// The same with other names in its locals' place, one for each.
    pub(super) fn by_place(&self, text: &Stream) -> impl Iterator<Item = (usize, usize)> {
        self.patterns.iter().filter(|pattern| pattern.by_place).flat_map(|pattern| pattern.find(text, true))
    }
}

impl Pattern {
    fn of(text: &str, part: Part, locals: &HashSet<String>) -> Option<Pattern> {
        let tokens = spelling::tokens(text, Text::Code);
        let after_point = |at: usize| at > 0 && tokens[at - 1].text == ".";
        let pieces: Vec<Piece> = tokens
            .iter()
            .enumerate()
            .map(|(at, token)| {
                let is_own = token.role == Role::Plain && token.is_word() && !after_point(at);
                Piece {
                    text: token.text.clone(),
                    role: token.role,
                    is_local: is_own && !is_keyword(&token.text) && locals.contains(&token.text),
                }
            })
            .collect();
        let plain: Vec<&Piece> = pieces.iter().filter(|piece| piece.role == Role::Plain).collect();
        let names: BTreeSet<&str> =
            plain.iter().map(|piece| piece.text.as_str()).filter(|text| is_telling(text)).collect();
        // `a in b` may be English.
        let is_code = plain.iter().any(|piece| {
            !spelling::is_word(&piece.text)
                && !piece.text.starts_with(|c: char| c.is_ascii_digit() || c == ',')
        });
        let shortest = if part == Part::Value { VALUE } else { SHORT };
        let is_named = names.len() >= 2 && names.iter().any(|name| name.chars().count() > 2);
        let by_name = is_code && plain.len() >= shortest && (is_named || returns_a_sum(&plain));
        let tells = plain
            .iter()
            .any(|piece| !piece.is_local && is_telling(&piece.text) && piece.text.chars().count() > 2);
        let by_place = is_code
            && part != Part::Around
            && tells
            && plain.iter().any(|piece| piece.is_local)
            && !matches!(plain[0].text.as_str(), "assert" | "raise")
            && plain.len() >= RENAMED;
        (by_name || by_place).then_some(Pattern { pieces, by_name, by_place })
    }

    fn find(&self, text: &Stream, renamed: bool) -> impl Iterator<Item = (usize, usize)> {
        let is_free = |piece: &Piece| piece.role != Role::Plain || renamed && piece.is_local;
        let is_possible = self.pieces.iter().all(|piece| is_free(piece) || text.has(&piece.text));
        let places = if is_possible { 0..text.tokens.len() } else { 0..0 };
        places.filter_map(move |from| Some((from, self.stands_at(&text.tokens, from, renamed)?)))
    }

    /// The last token of it, where it begins with this one.
    fn stands_at(&self, tokens: &[Token], from: usize, renamed: bool) -> Option<usize> {
        let mut bound: Vec<(&str, &str)> = Vec::new();
        let (mut at, mut piece_at, mut last) = (from, 0, from);
        while let Some(piece) = self.pieces.get(piece_at) {
            let token = tokens.get(at);
            let same = token.is_some_and(|token| match renamed && piece.is_local {
                true => is_name(token) && binds(&mut bound, &piece.text, &token.text),
                false => token.text == piece.text,
            });
            if same {
                last = at;
                at += 1;
                piece_at += 1;
            } else if piece.role != Role::Plain {
                piece_at += 1;
            } else if at > from && token.is_some_and(|token| token.role != Role::Plain) {
                at += 1;
            } else {
                return None;
            }
        }
        Some(last)
    }
}

/// Whether a value is too short to be told by itself with other names.
pub(super) fn is_short(value: &str) -> bool {
    let tokens = spelling::tokens(value, Text::Code);
    tokens.iter().filter(|token| token.role == Role::Plain).count() < RENAMED
}

/// Whether a statement returns what it computes of a number: `return 3 * x`.
fn returns_a_sum(plain: &[&Piece]) -> bool {
    let is_number = |piece: &Piece| piece.text.starts_with(|c: char| c.is_ascii_digit());
    let is_operand = |piece: &Piece| is_number(piece) || piece.text == "]" || is_telling(&piece.text);
    plain[0].text == "return"
        && plain.iter().any(|piece| is_number(piece))
        && plain.iter().any(|piece| is_telling(&piece.text))
        && plain.windows(2).any(|pair| is_operand(pair[0]) && "*/%+-<>".contains(&pair[1].text))
}

/// Whether a token is a name that not any code has.
pub(super) fn is_telling(token: &str) -> bool {
    spelling::is_word(token) && !is_keyword(token) && !COMMON.contains(&token)
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Whether a token may be a local's other name.
fn is_name(token: &Token) -> bool {
    token.is_word() && !is_keyword(&token.text) && token.role == Role::Plain
}

/// Whether one name can stand for the other: each for one only.
fn binds<'a>(bound: &mut Vec<(&'a str, &'a str)>, golden: &'a str, other: &'a str) -> bool {
    match bound.iter().find(|(known, with)| *known == golden || *with == other) {
        Some(pair) => *pair == (golden, other),
        None => {
            bound.push((golden, other));
            true
        }
    }
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
