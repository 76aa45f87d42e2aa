//! Statements in their blocks, with the names that are bound for certain when they run; and what expressions read.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprContext, Stmt};

use super::scope::FunctionScope;
use crate::definitions::blocks;

/// One statement where it stands.
pub(crate) struct Place<'a, 'b> {
    /// Its block.
    pub(crate) block: &'a [Stmt],
    /// Which one of it.
    pub(crate) at: usize,
    /// Local names that are bound when it runs, for certain.
    pub(crate) bound: &'b BTreeSet<&'a str>,
    /// Whether a `try` or `with` of the function stands around it: what is half done may be seen by a handler.
    pub(crate) in_try: bool,
}

/// Visits every statement of a function, in the order of the text.
pub(crate) fn each_statement<'a>(
    body: &'a [Stmt],
    scope: &FunctionScope<'a>,
    visit: &mut dyn FnMut(&Place<'a, '_>),
) {
    let bound: BTreeSet<&str> =
        certain(scope.parameters.iter().copied().collect(), scope).into_iter().collect();
    each(body, scope, &bound, false, visit);
}

fn each<'a>(
    block: &'a [Stmt],
    scope: &FunctionScope<'a>,
    outer: &BTreeSet<&'a str>,
    in_try: bool,
    visit: &mut dyn FnMut(&Place<'a, '_>),
) {
    let mut bound = outer.clone();
    for (at, statement) in block.iter().enumerate() {
        visit(&Place { block, at, bound: &bound, in_try });
        // A context manager may swallow an exception as a handler does.
        let in_try = in_try || statement.is_try_stmt() || statement.is_with_stmt();
        for (number, inner_block) in blocks(statement).into_iter().enumerate() {
            let mut inner = bound.clone();
            if let (Stmt::For(s), 0) = (statement, number) {
                inner.extend(certain(stored(&s.target), scope));
            }
            each(inner_block, scope, &inner, in_try, visit);
        }
        match statement {
            Stmt::Assign(assign) => bound.extend(assign.targets.iter().flat_map(stored)),
            Stmt::AnnAssign(assign) if assign.value.is_some() => bound.extend(stored(&assign.target)),
            _ => {}
        }
        bound.retain(|name| !is_unbound_somewhere(name, scope));
    }
}

/// Whether a function takes a name back anywhere: by `del`, or at the end of an `except … as`.
fn is_unbound_somewhere(name: &str, scope: &FunctionScope<'_>) -> bool {
    scope.deleted.contains(name) || scope.bound_otherwise.contains(name)
}

fn certain<'a>(names: Vec<&'a str>, scope: &FunctionScope<'a>) -> Vec<&'a str> {
    names.into_iter().filter(|name| !is_unbound_somewhere(name, scope)).collect()
}

struct Names<'a> {
    read: BTreeSet<&'a str>,
    stored: BTreeSet<&'a str>,
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr {
            let set = if name.ctx == ExprContext::Load { &mut self.read } else { &mut self.stored };
            set.insert(name.id.as_str());
        }
        visitor::walk_expr(self, expr);
    }
}

fn owned(names: Names<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
    let owned = |set: BTreeSet<&str>| set.into_iter().map(str::to_owned).collect();
    (owned(names.read), owned(names.stored))
}

/// Names that an expression reads, and those that it binds (targets of comprehensions among both).
pub(crate) fn names_of(expr: &Expr) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut names = Names { read: BTreeSet::new(), stored: BTreeSet::new() };
    names.visit_expr(expr);
    owned(names)
}

/// Names that a statement reads and binds.
pub(crate) fn names_of_statement(statement: &Stmt) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut names = Names { read: BTreeSet::new(), stored: BTreeSet::new() };
    names.visit_stmt(statement);
    owned(names)
}

/// Names that a target binds.
pub(crate) fn stored(target: &Expr) -> Vec<&str> {
    match target {
        Expr::Name(name) => vec![name.id.as_str()],
        Expr::Tuple(tuple) => tuple.elts.iter().flat_map(stored).collect(),
        Expr::List(list) => list.elts.iter().flat_map(stored).collect(),
        Expr::Starred(starred) => stored(&starred.value),
        _ => Vec::new(),
    }
}

/// Whether a target is a name or made of names alone.
pub(crate) fn is_names(target: &Expr) -> bool {
    match target {
        Expr::Name(_) => true,
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_names),
        Expr::List(list) => list.elts.iter().all(is_names),
        Expr::Starred(starred) => is_names(&starred.value),
        _ => false,
    }
}

/// Whether computing an expression can neither fail nor do anything: constants, bound locals, and displays of these.
pub(crate) fn is_inert(expr: &Expr, bound: &BTreeSet<&str>) -> bool {
    match expr {
        Expr::NumberLiteral(_)
        | Expr::StringLiteral(_)
        | Expr::BytesLiteral(_)
        | Expr::BooleanLiteral(_)
        | Expr::NoneLiteral(_)
        | Expr::EllipsisLiteral(_) => true,
        Expr::Name(name) => bound.contains(name.id.as_str()),
        Expr::Tuple(tuple) => tuple.elts.iter().all(|element| is_inert(element, bound)),
        Expr::List(list) => list.elts.iter().all(|element| is_inert(element, bound)),
        Expr::Dict(dict) => dict.items.iter().all(|item| {
            item.key.as_ref().is_some_and(|key| key.is_string_literal_expr() || key.is_number_literal_expr())
                && is_inert(&item.value, bound)
        }),
        Expr::UnaryOp(unary) => {
            unary.op == ruff_python_ast::UnaryOp::USub && unary.operand.is_number_literal_expr()
        }
        _ => false,
    }
}

/// Whether an expression is plain: no `yield`, `await`, `:=`, `super`, mangled name or call that looks at frames.
pub(crate) fn is_plain(expr: &Expr) -> bool {
    struct Plain(bool);
    impl<'a> Visitor<'a> for Plain {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.0 &= match expr {
                Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Await(_) | Expr::Named(_) | Expr::Lambda(_) => {
                    false
                }
                Expr::Name(name) => name.id.as_str() != "super" && !is_mangled(&name.id),
                Expr::Attribute(attribute) => {
                    // Warnings and logs say which line they come from.
                    !is_mangled(&attribute.attr)
                        && !["warn", "warn_explicit"].contains(&attribute.attr.as_str())
                }
                _ => true,
            };
            visitor::walk_expr(self, expr);
        }

        fn visit_comprehension(&mut self, comprehension: &'a ruff_python_ast::Comprehension) {
            self.0 &= !comprehension.is_async;
            visitor::walk_comprehension(self, comprehension);
        }
    }
    let mut plain = Plain(true);
    plain.visit_expr(expr);
    plain.0
}

fn is_mangled(name: &str) -> bool {
    name.starts_with("__") && !name.ends_with("__")
}

/// Whether an expression holds a comprehension.
pub(crate) fn has_comprehension(expr: &Expr) -> bool {
    struct Has(bool);
    impl<'a> Visitor<'a> for Has {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.0 |=
                matches!(expr, Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_));
            visitor::walk_expr(self, expr);
        }
    }
    let mut has = Has(false);
    has.visit_expr(expr);
    has.0
}
