//! Whether two texts mean the same tree.

use ruff_python_ast::comparable::{ComparableModModule, ComparableStmt};
use ruff_python_ast::helpers::is_docstring_stmt;
use ruff_python_ast::visitor::transformer::{Transformer, walk_stmt};
use ruff_python_ast::{ElifElseClause, Stmt, StmtPass};
use ruff_python_parser::parse_module;

use crate::module::{Module, ParseError};

/// Whether two texts have the same syntax tree apart from docstrings, comments, formatting, quoting, redundant
/// parentheses and line positions. `elif` equals `else:` with one `if` in it, as it does in Python's own tree, and a
/// body that is only a docstring equals one that is only `pass`. Errors name the text that does not parse, `a` or `b`.
pub fn ast_equal(a: &str, b: &str) -> Result<bool, ParseError> {
    if a == b {
        Module::parse("a", a)?;
        return Ok(true);
    }
    let (a, b) = (normalised_module("a", a)?, normalised_module("b", b)?);
    Ok(ComparableModModule::from(&a) == ComparableModModule::from(&b))
}

fn normalised_module(name: &str, source: &str) -> Result<ruff_python_ast::ModModule, ParseError> {
    match parse_module(source) {
        Ok(parsed) => {
            let mut module = parsed.into_syntax();
            if module.body.first().is_some_and(is_docstring_stmt) {
                module.body.remove(0);
            }
            Normalise.visit_body(&mut module.body);
            Ok(module)
        }
        // Parsed again for an error that says where.
        Err(_) => Err(Module::parse(name, source).err().unwrap_or(ParseError {
            file: name.to_owned(),
            line: 1,
            column: 1,
            what: "could not be parsed".to_owned(),
        })),
    }
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
            Stmt::FunctionDef(function) => {
                if function.body.first().is_some_and(is_docstring_stmt) {
                    function.body.remove(0);
                    if function.body.is_empty() {
                        function.body.push(pass());
                    }
                }
            }
            Stmt::ClassDef(class) => {
                if class.body.first().is_some_and(is_docstring_stmt) {
                    class.body.remove(0);
                    if class.body.is_empty() {
                        class.body.push(pass());
                    }
                }
            }
            Stmt::If(conditional) => fold_elif(&mut conditional.elif_else_clauses),
            _ => {}
        }
        walk_stmt(self, statement);
    }
}

fn pass() -> Stmt {
    Stmt::Pass(StmtPass { node_index: Default::default(), range: Default::default() })
}

/// Turns `else: if …` into `elif …`, as deep as it goes.
fn fold_elif(clauses: &mut Vec<ElifElseClause>) {
    loop {
        let inner = match clauses.last_mut() {
            Some(ElifElseClause { test: None, body, .. }) if body.len() == 1 && body[0].is_if_stmt() => body.pop(),
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
