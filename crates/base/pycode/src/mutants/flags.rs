//! Conditions: a flag taken for off, and one path always taken.

use infradev_model::Operator;
use ruff_python_ast::{CmpOp, Expr, ExprCall, Stmt, StmtTry, UnaryOp};
use ruff_text_size::{Ranged, TextRange};

use super::drops::{is_guard, only_leaves};
use super::quiet;
use super::walk::{Edits, Site, callee};
use crate::definitions::dotted;

pub(super) fn statement(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    match statement {
        Stmt::If(conditional) => {
            // That a guard never leaves is its own mutant, and that it always does fails at once.
            let is_guard = is_guard(conditional);
            let known = edits.has(Operator::DropGuard, statement).then_some(false);
            condition(&conditional.test, known, !is_guard, edits);
            for clause in &conditional.elif_else_clauses {
                let Some(test) = &clause.test else { continue };
                // That it never holds is the same as the branch being gone.
                let known = edits.has(Operator::DropBranch, clause).then_some(false);
                condition(test, known, !only_leaves(&clause.body), edits);
            }
        }
        Stmt::Try(s) => given_up(site, s, edits),
        Stmt::While(s) => condition(&s.test, None, false, edits),
        Stmt::Assign(s) if s.value.is_bool_op_expr() => condition(&s.value, None, false, edits),
        Stmt::Return(s) => {
            if let Some(value) = s.value.as_deref().filter(|value| value.is_bool_op_expr()) {
                condition(value, None, false, edits);
            }
        }
        _ => {}
    }
}

pub(super) fn expression(site: &Site<'_>, expr: &Expr, edits: &mut Edits<'_>) {
    match expr {
        Expr::If(conditional) => condition(&conditional.test, None, true, edits),
        Expr::Call(call) => handed_on(site, call, edits),
        _ => {}
    }
}

/// Each flag in a condition is taken for off; and, where `is_forced`, the condition always goes one way and the other. `known`
/// is a value of the whole condition that another operator has made, and no two mutants give it one value.
fn condition(test: &Expr, known: Option<bool>, is_forced: bool, edits: &mut Edits<'_>) {
    let mut made = Vec::from_iter(known);
    let flags = flags_of(test);
    for flag in flags.iter().filter(|flag| edits.take(flag.place)).collect::<Vec<_>>() {
        match flag.settles {
            Some(value) if made.contains(&value) => continue,
            Some(value) => made.push(value),
            None => {}
        }
        edits.replace(Operator::IgnoredFlag, flag.place, if flag.is_off_when { "True" } else { "False" });
    }
    for value in [false, true] {
        if is_forced && !made.contains(&value) {
            edits.replace(Operator::FallbackAlways, test, if value { "True" } else { "False" });
        }
    }
}

/// What a condition asks for its truth, or whether it is `None`.
struct Flag<'a> {
    place: &'a Expr,
    /// The value of the place when the flag is off: `x is None` holds then.
    is_off_when: bool,
    /// The value that the whole condition then has, whatever the rest.
    settles: Option<bool>,
}

fn flags_of(test: &Expr) -> Vec<Flag<'_>> {
    let flag = |is_off_when| vec![Flag { place: test, is_off_when, settles: Some(is_off_when) }];
    match test {
        Expr::BoolOp(boolean) => {
            let decisive = boolean.op.is_or();
            let mut flags: Vec<Flag<'_>> = boolean.values.iter().flat_map(flags_of).collect();
            for flag in &mut flags {
                flag.settles = flag.settles.filter(|value| *value == decisive);
            }
            flags
        }
        Expr::UnaryOp(unary) if unary.op == UnaryOp::Not => {
            let mut flags = flags_of(&unary.operand);
            for flag in &mut flags {
                flag.settles = flag.settles.map(|value| !value);
            }
            flags
        }
        Expr::Name(_) | Expr::Attribute(_) if !dotted(test).is_empty() => flag(false),
        Expr::Compare(compare) if !dotted(&compare.left).is_empty() => {
            match (&*compare.ops, &*compare.comparators) {
                ([CmpOp::IsNot], [Expr::NoneLiteral(_)]) => flag(false),
                ([CmpOp::Is], [Expr::NoneLiteral(_)]) => flag(true),
                _ => Vec::new(),
            }
        }
        Expr::Call(call) if matches!(callee(call), "getattr" | "get") => flag(false),
        _ => Vec::new(),
    }
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
            // `enabled=self.config.amp` says so by the other name.
            None => is_flag_name(last) || keyword.arg.as_ref().is_some_and(|name| is_flag_name(name)),
        };
        if is_flag {
            edits.replace(Operator::IgnoredFlag, &keyword.value, "False");
        }
    }
}

fn is_flag_name(name: &str) -> bool {
    let prefixes = ["use_", "enable_", "is_", "has_", "should_", "with_", "allow_", "disable_"];
    let name = name.trim_start_matches('_');
    prefixes.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with("_enabled")
        || matches!(name, "enabled" | "training")
}

/// What a `try` tries fails at once, so that a handler's other way is taken; not where that only says so, leaves a loop or raises.
fn given_up(site: &Site<'_>, statement: &StmtTry, edits: &mut Edits<'_>) {
    let ([first, ..], [.., last]) = (&*statement.body, &*statement.body) else { return };
    if statement.is_star {
        return;
    }
    for handler in statement.handlers.iter().filter_map(|handler| handler.as_except_handler()) {
        let does_something = handler.body.iter().any(|s| !s.is_pass_stmt() && !quiet::is_talk_statement(s));
        let leaves = matches!(handler.body.last(), Some(Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_)));
        if !does_something || leaves {
            continue;
        }
        let caught = match handler.type_.as_deref() {
            None => Some("Exception"),
            Some(Expr::Tuple(tuple)) => tuple.elts.first().map(|first| site.text(first)),
            Some(caught) => Some(site.text(caught)),
        };
        // Made without its constructor, which may want arguments.
        let thrown = caught.map(|caught| match caught {
            "ImportError"
            | "ModuleNotFoundError"
            | "AttributeError"
            | "KeyError"
            | "IndexError"
            | "ValueError"
            | "TypeError"
            | "RuntimeError"
            | "OSError"
            | "Exception"
            | "FileNotFoundError"
            | "StopIteration"
            | "NotImplementedError"
            | "TimeoutError" => caught.to_owned(),
            other => format!("{other}.__new__({other})"),
        });
        if let Some(thrown) = thrown {
            let body = TextRange::new(first.start(), last.end());
            edits.replace(Operator::FallbackAlways, &body, format!("raise {thrown}"));
        }
    }
}
