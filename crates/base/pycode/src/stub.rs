//! Bodies that do nothing: what a docstring, `pass`, `...` or `raise NotImplementedError` leave to others.

use ruff_python_ast::helpers::{is_docstring_stmt, map_callable};
use ruff_python_ast::{Expr, Stmt};

use crate::definitions::dotted;

/// The statements after the docstring.
pub(crate) fn after_docstring(body: &[Stmt]) -> &[Stmt] {
    match body {
        [first, rest @ ..] if is_docstring_stmt(first) => rest,
        _ => body,
    }
}

/// Whether a body has nothing in it that runs: a docstring, `pass` and `...`, in any number.
pub(crate) fn is_stub(body: &[Stmt]) -> bool {
    after_docstring(body).iter().all(|statement| match statement {
        Stmt::Pass(_) => true,
        Stmt::Expr(e) => e.value.is_ellipsis_literal_expr(),
        _ => false,
    })
}

/// Whether the first thing that a body does is to raise `NotImplementedError`: it is hollow already.
pub(crate) fn raises_not_implemented(body: &[Stmt]) -> bool {
    let Some(Stmt::Raise(raise)) = after_docstring(body).first() else {
        return false;
    };
    let exception = raise.exc.as_deref().map(map_callable).map(dotted);
    exception.is_some_and(|name| name.last() == Some(&"NotImplementedError"))
}

/// Whether a statement is `Expr` of a call; its call.
pub(crate) fn call_of(statement: &Stmt) -> Option<&Expr> {
    match statement {
        Stmt::Expr(e) => Some(&e.value),
        _ => None,
    }
}
