//! Whether two texts mean the same tree.

use ruff_python_ast::comparable::{ComparableModModule, ComparableStmt};
use ruff_python_ast::helpers::is_docstring_stmt;
use ruff_python_ast::visitor::transformer::{Transformer, walk_stmt};
use ruff_python_ast::{ElifElseClause, ModModule, Stmt, StmtPass, Suite};

use crate::module::{ParseError, parse_bounded};

/// Whether two texts have the same syntax tree apart from docstrings, comments, formatting, quoting, redundant
/// parentheses and line positions. `elif` equals `else:` with one `if` in it, as it does in Python's own tree, and a
/// body that is only a docstring equals one that is only `pass`. `f"{x=}"` prints its own source, so its spacing counts
/// and it differs from `f"x={x!r}"`. Errors name the text that does not parse, `a` or `b`.
pub fn ast_equal(a: &str, b: &str) -> Result<bool, ParseError> {
    if a == b {
        return parse_bounded("a", a).map(|_| true);
    }
    let (a, b) = (normalised_module("a", a)?, normalised_module("b", b)?);
    Ok(ComparableModModule::from(&a) == ComparableModModule::from(&b))
}

fn normalised_module(name: &str, source: &str) -> Result<ModModule, ParseError> {
    let mut module = parse_bounded(name, source)?.into_syntax();
    if module.body.first().is_some_and(is_docstring_stmt) {
        module.body.remove(0);
    }
    Normalise.visit_body(&mut module.body);
    Ok(module)
}

/// A function's body as compared: docstrings out, `elif` folded. Owns the tree that [`same_statements`] borrows.
pub(crate) fn normalised_body(body: &[Stmt]) -> Vec<Stmt> {
    let body = crate::stub::after_docstring(body);
    body.iter()
        .cloned()
        .map(|mut statement| {
            Normalise.visit_stmt(&mut statement);
            statement
        })
        .collect()
}

/// Whether two normalised bodies are the same tree.
pub(crate) fn same_statements(a: &[Stmt], b: &[Stmt]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| ComparableStmt::from(a) == ComparableStmt::from(b))
}

struct Normalise;

impl Transformer for Normalise {
    fn visit_stmt(&self, statement: &mut Stmt) {
        match statement {
            Stmt::FunctionDef(function) => drop_docstring(&mut function.body),
            Stmt::ClassDef(class) => drop_docstring(&mut class.body),
            Stmt::If(conditional) => fold_elif(&mut conditional.elif_else_clauses),
            _ => {}
        }
        walk_stmt(self, statement);
    }
}

pub(crate) fn drop_docstring(body: &mut Suite) {
    if body.first().is_some_and(is_docstring_stmt) {
        body.remove(0);
        if body.is_empty() {
            body.push(Stmt::Pass(StmtPass { node_index: Default::default(), range: Default::default() }));
        }
    }
}

/// Turns `else: if …` into `elif …`, as deep as it goes.
pub(crate) fn fold_elif(clauses: &mut Vec<ElifElseClause>) {
    loop {
        let inner = match clauses.last_mut() {
            Some(ElifElseClause { test: None, body, .. }) if body.len() == 1 && body[0].is_if_stmt() => {
                body.pop()
            }
            _ => None,
        };
        let Some(Stmt::If(inner)) = inner else { return };
        clauses.pop();
        clauses.push(ElifElseClause {
            range: inner.range,
            node_index: inner.node_index,
            test: Some(*inner.test),
            body: inner.body,
        });
        clauses.extend(inner.elif_else_clauses);
    }
}
