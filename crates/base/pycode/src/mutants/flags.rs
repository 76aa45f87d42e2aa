//! Conditions: a flag taken for off, and one path always taken.

use infradev_model::Operator;
use ruff_python_ast::{CmpOp, Expr, ExprCall, Stmt, UnaryOp};

use super::walk::{Edits, Site};
use crate::definitions::dotted;

pub(super) fn statement(_: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    match statement {
        Stmt::If(conditional) => {
            ignored(&conditional.test, edits);
            if !conditional.elif_else_clauses.is_empty() {
                forced(&conditional.test, edits);
            }
            let last = conditional.elif_else_clauses.len().saturating_sub(1);
            for (at, clause) in conditional.elif_else_clauses.iter().enumerate() {
                let Some(test) = &clause.test else { continue };
                ignored(test, edits);
                if at < last {
                    forced(test, edits);
                }
            }
        }
        Stmt::While(s) => ignored(&s.test, edits),
        _ => {}
    }
}

pub(super) fn expression(site: &Site<'_>, expr: &Expr, edits: &mut Edits<'_>) {
    match expr {
        Expr::If(conditional) => {
            ignored(&conditional.test, edits);
            forced(&conditional.test, edits);
        }
        Expr::BoolOp(boolean) if boolean.op.is_and() => {
            // The last operand is the value itself.
            let [operands @ .., _] = boolean.values.as_slice() else { return };
            operands.iter().for_each(|operand| ignored(operand, edits));
        }
        Expr::UnaryOp(unary) if unary.op == UnaryOp::Not => ignored(&unary.operand, edits),
        Expr::Call(call) => handed_on(site, call, edits),
        _ => {}
    }
}

/// Each flag in a condition is taken for off: a name or an attribute asked for its truth, or whether it is `None`.
fn ignored(test: &Expr, edits: &mut Edits<'_>) {
    match test {
        Expr::BoolOp(boolean) => boolean.values.iter().for_each(|value| ignored(value, edits)),
        Expr::UnaryOp(unary) if unary.op == UnaryOp::Not => ignored(&unary.operand, edits),
        Expr::Name(_) | Expr::Attribute(_) if !dotted(test).is_empty() => {
            edits.replace(Operator::IgnoredFlag, test, "False");
        }
        Expr::Compare(compare) if !dotted(&compare.left).is_empty() => {
            match (&*compare.ops, &*compare.comparators) {
                ([CmpOp::IsNot], [Expr::NoneLiteral(_)]) => {
                    edits.replace(Operator::IgnoredFlag, test, "False")
                }
                ([CmpOp::Is], [Expr::NoneLiteral(_)]) => edits.replace(Operator::IgnoredFlag, test, "True"),
                _ => {}
            }
        }
        Expr::Call(call) if super::walk::callee(call) == "getattr" || super::walk::callee(call) == "get" => {
            edits.replace(Operator::IgnoredFlag, test, "False");
        }
        _ => {}
    }
}

/// A condition between two paths always goes one way. That a flag is off is [`ignored`]'s.
fn forced(test: &Expr, edits: &mut Edits<'_>) {
    edits.replace(Operator::FallbackAlways, test, "False");
    edits.replace(Operator::FallbackAlways, test, "True");
}

/// A flag that is handed on to a call arrives as off.
fn handed_on(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    let Some(function) = site.function() else { return };
    for keyword in &call.arguments.keywords {
        let names = dotted(&keyword.value);
        let Some(last) = names.last() else { continue };
        let parameter =
            function.parameters.iter_non_variadic_params().find(|p| names.as_slice() == [p.name().as_str()]);
        let is_flag = match parameter {
            Some(parameter) => {
                parameter.annotation().is_some_and(|a| site.text(a) == "bool")
                    || parameter.default().is_some_and(Expr::is_boolean_literal_expr)
            }
            None => {
                let prefixes = ["use_", "enable_", "is_", "has_", "should_", "with_", "allow_", "disable_"];
                let last = last.trim_start_matches('_');
                prefixes.iter().any(|prefix| last.starts_with(prefix)) || last.ends_with("_enabled")
            }
        };
        if is_flag {
            edits.replace(Operator::IgnoredFlag, &keyword.value, "False");
        }
    }
}
