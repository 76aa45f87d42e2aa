//! Which lines must run for a piece of a file's text to matter.

use std::collections::BTreeSet;

use ruff_python_ast::{ExceptHandler, Stmt};
use ruff_text_size::Ranged;

use crate::module::{Module, ParseError, Span};

/// The lines (from 1) of the innermost statements that a span of `source` overlaps, and of their headers: where none of
/// them runs, neither does the span's text. A span between statements has the lines of the body that it stands in. Lines
/// that hold no code are among them; they run never, and so tell nothing.
pub fn lines_around(path: &str, source: &str, span: Span) -> Result<BTreeSet<u32>, ParseError> {
    let module = Module::parse(path, source)?;
    let mut lines = BTreeSet::new();
    let whole = Span { start: 0, end: source.len() };
    within(&module, module.body(), span, whole, &mut lines);
    Ok(lines)
}

fn within(module: &Module, body: &[Stmt], span: Span, holder: Span, lines: &mut BTreeSet<u32>) {
    let met: Vec<&Stmt> = body.iter().filter(|statement| touches(statement, span)).collect();
    if met.is_empty() {
        add(module, holder, lines);
    }
    for statement in met {
        let all = Span::from(statement.range());
        let bodies = bodies(statement);
        let Some(first) = bodies.first().and_then(|body| body.first()) else {
            add(module, all, lines);
            continue;
        };
        let inner = |body: &&&[Stmt]| match (body.first(), body.last()) {
            (Some(first), Some(last)) => {
                first.start().to_usize() <= span.start && span.end <= last.end().to_usize()
            }
            _ => false,
        };
        if let Some(body) = bodies.iter().find(inner) {
            within(module, body, span, all, lines);
            continue;
        }
        add(module, Span { start: all.start, end: first.start().to_usize() }, lines);
        add(module, Span { start: all.start.max(span.start), end: all.end.min(span.end) }, lines);
    }
}

/// Whether a statement holds a part of the span; one of no length, where it stands inside or at an end.
fn touches(statement: &Stmt, span: Span) -> bool {
    let (start, end) = (statement.start().to_usize(), statement.end().to_usize());
    if span.start == span.end {
        return start < span.start && span.start < end;
    }
    start < span.end && span.start < end
}

fn add(module: &Module, span: Span, lines: &mut BTreeSet<u32>) {
    let text = module.source()[span.range()].trim_end();
    let (first, _) = module.line_column(span.start);
    let (last, _) = module.line_column(span.start + text.len());
    lines.extend(first as u32..=last as u32);
}

/// The bodies that a statement holds, in order.
fn bodies(statement: &Stmt) -> Vec<&[Stmt]> {
    match statement {
        Stmt::FunctionDef(function) => vec![&function.body],
        Stmt::ClassDef(class) => vec![&class.body],
        Stmt::If(conditional) => {
            let clauses = conditional.elif_else_clauses.iter().map(|clause| clause.body.as_slice());
            [conditional.body.as_slice()].into_iter().chain(clauses).collect()
        }
        Stmt::For(repeated) => vec![&repeated.body, &repeated.orelse],
        Stmt::While(repeated) => vec![&repeated.body, &repeated.orelse],
        Stmt::With(with) => vec![&with.body],
        Stmt::Try(tried) => {
            let handlers = tried.handlers.iter().map(|handler| {
                let ExceptHandler::ExceptHandler(handler) = handler;
                handler.body.as_slice()
            });
            let rest = [tried.orelse.as_slice(), tried.finalbody.as_slice()];
            [tried.body.as_slice()].into_iter().chain(handlers).chain(rest).collect()
        }
        Stmt::Match(matched) => matched.cases.iter().map(|case| case.body.as_slice()).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
import a

def f(x):
    if x:
        return (1 +
                2)
    else:
        y = 3

    return y
";

    fn around(text: &str) -> Vec<u32> {
        let start = SOURCE.find(text).unwrap();
        let span = Span { start, end: start + text.len() };
        lines_around("f.py", SOURCE, span).unwrap().into_iter().collect()
    }

    #[test]
    fn a_part_of_a_statement_has_all_of_its_lines() {
        assert_eq!(around("2)"), [5, 6]);
        assert_eq!(around("3"), [8]);
    }

    #[test]
    fn a_condition_has_its_header_and_a_branch_what_it_holds() {
        assert_eq!(around("f(x)"), [3]);
        assert_eq!(around("if x"), [4]);
        assert_eq!(around("else:\n        y = 3"), [4, 7, 8]);
    }

    #[test]
    fn what_stands_between_statements_has_the_lines_of_its_function() {
        let at = SOURCE.find("\n    return y").unwrap();
        let lines = lines_around("f.py", SOURCE, Span { start: at, end: at }).unwrap();
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), (3..=10).collect::<Vec<_>>());
    }
}
