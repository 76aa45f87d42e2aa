//! Expectations that nothing meets. A perturbed one still evaluates what the original evaluates, once, and reads like any other
//! test: its form, numbers and words are drawn anew, so that no pattern of text tells it (design: Trust).

use rand::Rng;
use rand::seq::IndexedRandom;
use ruff_python_ast::{CmpOp, Expr, Stmt, StmtAssert};
use ruff_text_size::Ranged;

use crate::canary::word;
use crate::definitions::dotted;
use crate::module::{Module, Span};
use crate::replace::replace_spans;

/// Raised by next to nothing, and no base of what tests expect.
const RARE_EXCEPTIONS: [&str; 5] = [
    "StopAsyncIteration",
    "UnicodeTranslateError",
    "ChildProcessError",
    "InterruptedError",
    "ProcessLookupError",
];

/// What replaces `assert E` up to `end`, the end of what is tested; a message stays behind it. Fails whatever `E` comes to, but
/// for a value that happens to be the number or words drawn here.
pub(crate) fn assertion<R: Rng + ?Sized>(
    module: &Module,
    assert: &StmtAssert,
    end: usize,
    rng: &mut R,
) -> String {
    let start = assert.start().to_usize() + "assert".len();
    let whole = module.source()[start..end].trim();
    if let Expr::Compare(compare) = &*assert.test
        && let ([CmpOp::Eq], [right]) = (&*compare.ops, &*compare.comparators)
    {
        let mut forms = vec![format!("assert {}", unequal(module, &compare.left, right, rng))];
        for side in [&*compare.left, right] {
            if let Some((span, text)) = another(module, side, rng) {
                let inside = Span { start: span.start - start, end: span.end - start };
                let tested = replace_spans(&module.source()[start..end], vec![(inside, text)]);
                // The likeliest form where there is a literal to change: as an author would have mistaken it.
                forms.extend([format!("assert{tested}"), format!("assert{tested}")]);
            }
        }
        return pick(rng, &forms);
    }
    met_by_nothing(whole, rng)
}

/// What replaces a statement that calls something which raises unless its arguments are as they should be.
pub(crate) fn call<R: Rng + ?Sized>(module: &Module, statement: &Stmt, rng: &mut R) -> String {
    if let Stmt::Expr(expression) = statement
        && let Expr::Call(call) = &*expression.value
        && let [.., owner, name] = dotted(&call.func).as_slice()
        && matches!(*owner, "testing" | "self")
        && matches!(
            *name,
            "assert_close" | "assertEqual" | "assert_equal" | "assert_allclose" | "assert_array_equal"
        )
        && let [left, right, ..] = &*call.arguments.args
        && !left.is_starred_expr()
        && !right.is_starred_expr()
    {
        let (ours, theirs) = two_numbers(rng);
        let (open, close) = pick(rng, &[("(", ")"), ("[", "]")]);
        let edits = [(left, ours), (right, theirs)].map(|(side, number)| {
            let span = Span::from(side.range());
            let from = statement.start().to_usize();
            let inside = Span { start: span.start - from, end: span.end - from };
            (inside, format!("{open}{}, {number}{close}", module.text(side)))
        });
        return replace_spans(module.text(statement), edits.to_vec());
    }
    met_by_nothing(module.text(statement), rng)
}

/// An exception that a block under `pytest.raises` does not raise, if it does not name one of ours.
pub(crate) fn exception<R: Rng + ?Sized>(text: &str, rng: &mut R) -> Option<String> {
    let other = pick(rng, &RARE_EXCEPTIONS);
    (!RARE_EXCEPTIONS.iter().any(|name| text.contains(name))).then(|| other.to_owned())
}

/// Any expression compared with what it is not.
fn met_by_nothing<R: Rng + ?Sized>(tested: &str, rng: &mut R) -> String {
    let (number, other) = two_numbers(rng);
    match rng.random_range(0..5) {
        0 => format!("assert ({tested}) == {number}"),
        1 => format!("assert {number} == ({tested})"),
        2 => format!("assert ({tested}) == {}", words(rng)),
        3 => format!("assert ({tested}) in ({number}, {other})"),
        _ => format!("assert [{tested}] == [{number}]"),
    }
}

/// Both sides with a companion that differs.
fn unequal<R: Rng + ?Sized>(module: &Module, left: &Expr, right: &Expr, rng: &mut R) -> String {
    let (ours, theirs) = two_numbers(rng);
    let (open, close) = pick(rng, &[("(", ")"), ("[", "]")]);
    let (left, right) = (in_a_list(module, left), in_a_list(module, right));
    match rng.random_bool(0.5) {
        true => format!("{open}{left}, {ours}{close} == {open}{right}, {theirs}{close}"),
        false => format!("{open}{ours}, {left}{close} == {open}{theirs}, {right}{close}"),
    }
}

/// The text of an expression as an element of a display: in parentheses where it would be read otherwise.
fn in_a_list(module: &Module, expr: &Expr) -> String {
    match expr {
        Expr::Generator(_) | Expr::Named(_) | Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Lambda(_) => {
            format!("({})", module.text(expr))
        }
        _ => module.text(expr).to_owned(),
    }
}

/// Another value in place of a literal.
fn another<R: Rng + ?Sized>(module: &Module, literal: &Expr, rng: &mut R) -> Option<(Span, String)> {
    let span = Span::from(literal.range());
    let number = rng.random_range(1_000..100_000);
    match literal {
        Expr::NumberLiteral(_) | Expr::UnaryOp(_) if is_number(literal) => Some((span, number.to_string())),
        Expr::StringLiteral(_) => Some((span, words(rng))),
        Expr::List(list) => {
            let place = list.elts.choose(rng).map(|element| element.start().to_usize());
            Some(match place {
                Some(start) => (Span { start, end: start }, format!("{number}, ")),
                None => (span, format!("[{number}]")),
            })
        }
        Expr::Dict(dict) => {
            let first = dict.items.first();
            let key = first.and_then(|item| item.key.as_ref())?.start().to_usize();
            Some((Span { start: key, end: key }, format!("{}: {number}, ", words(rng))))
        }
        Expr::Set(set) => {
            let start = set.elts.first()?.start().to_usize();
            Some((Span { start, end: start }, format!("{number}, ")))
        }
        _ => None,
    }
    .filter(|(span, text)| module.source().get(span.range()) != Some(text.as_str()))
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::NumberLiteral(_) => true,
        Expr::UnaryOp(operation) => operation.operand.is_number_literal_expr(),
        _ => false,
    }
}

/// Two that no relative tolerance below 0.9 takes for one.
fn two_numbers<R: Rng + ?Sized>(rng: &mut R) -> (u32, u32) {
    let (small, large) = (rng.random_range(1_000..9_000), rng.random_range(100_000..900_000));
    if rng.random_bool(0.5) { (small, large) } else { (large, small) }
}

fn words<R: Rng + ?Sized>(rng: &mut R) -> String {
    let separator = pick(rng, &["_", ".", "-", " "]);
    format!("\"{}{separator}{}\"", word(rng), word(rng))
}

fn pick<T: Clone, R: Rng + ?Sized>(rng: &mut R, from: &[T]) -> T {
    from.choose(rng).unwrap_or(&from[0]).clone()
}
