//! Guards, branches, keyword arguments, state resets and decorators left out.

use std::collections::{HashMap, HashSet};

use infradev_model::Operator;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Decorator, Expr, ExprCall, Stmt, StmtIf};
use ruff_text_size::{Ranged, TextRange};

use super::quiet;
use super::walk::{Edits, Site, call_statement, callee, segments};
use crate::definitions::{Node, Scope, decorator_name, dotted, walk};
use crate::module::Module;

pub(super) fn statement(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    match statement {
        Stmt::If(conditional) => {
            if is_guard(conditional) {
                edits.drop(Operator::DropGuard, statement);
            }
            for clause in &conditional.elif_else_clauses {
                edits.cut(Operator::DropBranch, clause.range);
            }
        }
        Stmt::While(s) => else_branch(site, &s.body, &s.orelse, edits),
        Stmt::For(s) => else_branch(site, &s.body, &s.orelse, edits),
        Stmt::Try(s) => {
            let handlers = s.handlers.last().and_then(|h| h.as_except_handler());
            else_branch(site, handlers.map_or(&s.body, |handler| &handler.body), &s.orelse, edits);
        }
        Stmt::Assert(_) => edits.drop(Operator::DropGuard, statement),
        Stmt::Assign(assign)
            if !site.in_constructor()
                && site.function().is_some()
                && (assign.targets.iter().all(Expr::is_attribute_expr)
                    || assign.targets.iter().all(is_stretch) && is_blank(&assign.value)) =>
        {
            edits.drop(Operator::DropReset, statement);
        }
        Stmt::AugAssign(assign) if assign.target.is_attribute_expr() => {
            edits.drop(Operator::DropReset, statement);
        }
        Stmt::Delete(delete) if !delete.targets.iter().all(Expr::is_name_expr) => {
            edits.drop(Operator::DropReset, statement);
        }
        Stmt::Expr(_) => {
            let name = call_statement(statement).map(callee).unwrap_or_default();
            if matches!(name, "clear" | "zero_" | "pop" | "popitem" | "popleft" | "zero_grad" | "discard")
                || name.trim_start_matches('_').starts_with("reset")
                || name.trim_start_matches('_').starts_with("clear_")
                || name == "fill_"
            {
                edits.drop(Operator::DropReset, statement);
            }
        }
        _ => {}
    }
}

/// The `else` of a loop or a `try`.
fn else_branch(site: &Site<'_>, before: &[Stmt], branch: &[Stmt], edits: &mut Edits<'_>) {
    if let ([.., before], [first, ..], [.., last]) = (before, branch, branch)
        && let Some(keyword) = site.keyword(TokenKind::Else, TextRange::new(before.end(), first.start()))
    {
        edits.cut(Operator::DropBranch, TextRange::new(keyword, last.end()));
    }
}

/// `self.m[:]`, `counts[0:n]`
fn is_stretch(target: &Expr) -> bool {
    target.as_subscript_expr().is_some_and(|subscript| {
        !dotted(&subscript.value).is_empty()
            && match &*subscript.slice {
                Expr::Slice(_) | Expr::EllipsisLiteral(_) => true,
                Expr::Tuple(tuple) => tuple.elts.iter().any(Expr::is_slice_expr),
                _ => false,
            }
    })
}

/// A value with nothing of before in it: `0`, `-1`, `None`, `float("-inf")`.
fn is_blank(value: &Expr) -> bool {
    match value {
        Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) | Expr::NoneLiteral(_) => true,
        Expr::UnaryOp(unary) => is_blank(&unary.operand),
        Expr::Call(call) => callee(call) == "float" && call.arguments.args.iter().all(Expr::is_literal_expr),
        _ => false,
    }
}

/// An `if` whose only purpose is to leave.
pub(super) fn is_guard(conditional: &StmtIf) -> bool {
    conditional.elif_else_clauses.is_empty() && only_leaves(&conditional.body)
}

/// A block that says something to people at most, and leaves.
pub(super) fn only_leaves(block: &[Stmt]) -> bool {
    let leaves =
        |s: &Stmt| matches!(s, Stmt::Raise(_) | Stmt::Return(_) | Stmt::Continue(_) | Stmt::Break(_));
    let [before @ .., last] = block else { return false };
    leaves(last) && before.iter().all(quiet::is_talk_statement)
}

/// A keyword argument is left out, where that does not end in a `TypeError` that the file itself lets one foresee.
pub(super) fn call(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    for keyword in &call.arguments.keywords {
        let Some(name) = &keyword.arg else { continue };
        // Turned round it says more: the default may be the same.
        if keyword.value.is_boolean_literal_expr() {
            continue;
        }
        // A device is the same where there is but one; `zip(strict=True)` only checks.
        if matches!(name.as_str(), "device" | "strict")
            || quiet::is_words_keyword(name)
            || site.required.has(callee(call), name)
        {
            continue;
        }
        edits.cut(Operator::DropKeyword, site.argument_part(keyword, call));
    }
}

/// Decorators without which the definition is not one of its kind any more are kept.
pub(super) fn decorators(decorators: &[Decorator], edits: &mut Edits<'_>) {
    for decorator in decorators {
        let name = decorator_name(decorator);
        let kind = matches!(
            name.last().copied(),
            Some(
                "overload"
                    | "abstractmethod"
                    | "abstractproperty"
                    | "staticmethod"
                    | "classmethod"
                    | "property"
                    | "setter"
                    | "getter"
                    | "deleter"
                    | "cached_property"
                    | "dataclass"
                    | "contextmanager"
                    | "asynccontextmanager"
                    | "wraps"
                    | "override"
                    | "final"
                    | "deprecated"
                    | "runtime_checkable"
                    | "fixture"
                    | "unique"
                    | "total_ordering"
                    | "jit"
                    | "njit"
                    | "autotune"
                    | "heuristics"
                    | "script"
            )
        );
        if !kind && !name.contains(&"pytest") {
            edits.cut(Operator::DropDecorator, decorator.range);
        }
    }
}

/// The parameters without a default, of the functions and constructors that the file defines.
pub(super) struct Required<'a> {
    by_callee: HashMap<&'a str, HashSet<&'a str>>,
}

impl<'a> Required<'a> {
    pub(super) fn of(module: &'a Module) -> Required<'a> {
        let mut by_callee: HashMap<&str, HashSet<&str>> = HashMap::new();
        walk(module.body(), &Scope::module(), &mut |site| {
            match site.node {
                Node::Function(function) => {
                    by_callee.entry(&function.name).or_default().extend(without_default(function));
                }
                Node::Class(class) => {
                    let required = by_callee.entry(&class.name).or_default();
                    for statement in &class.body {
                        match statement {
                            Stmt::FunctionDef(f) if f.name.as_str() == "__init__" => {
                                required.extend(without_default(f));
                            }
                            // A field of a dataclass.
                            Stmt::AnnAssign(field) if field.value.is_none() => {
                                required.extend(segments(&field.target).last().copied());
                            }
                            _ => {}
                        }
                    }
                }
            }
            true
        });
        Required { by_callee }
    }

    fn has(&self, callee: &str, keyword: &str) -> bool {
        self.by_callee.get(callee).is_some_and(|required| required.contains(keyword))
    }
}

fn without_default(function: &ruff_python_ast::StmtFunctionDef) -> impl Iterator<Item = &str> {
    let parameters = function.parameters.iter_non_variadic_params();
    parameters.filter(|parameter| parameter.default().is_none()).map(|parameter| parameter.name().as_str())
}
