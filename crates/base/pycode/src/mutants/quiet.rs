//! What is said to people and to type checkers: no mutants there, and no behaviour.

use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::walk::{callee, segments};

/// Whether a call only tells someone something: logging, warnings, printing, ranges of a profiler.
pub(super) fn is_talk(call: &ExprCall) -> bool {
    let name = callee(call).trim_start_matches('_');
    let segments = segments(&call.func);
    let of_a_logger = segments.iter().rev().skip(1).any(|segment| {
        let segment = segment.trim_start_matches('_').to_ascii_lowercase();
        segment.contains("log") || segment == "warnings" || segment == "rich"
    });
    match name {
        "print" | "print_rank_0" | "print_rank_last" | "print_rank0" | "warn" | "warn_once"
        | "warn_rank_0" => true,
        "debug" | "info" | "warning" | "error" | "critical" | "exception" | "fatal" | "log" => of_a_logger,
        "warning_once" | "info_once" | "debug_once" | "warning_rank_0" => true,
        _ => {
            ["log_", "print_", "nvtx_", "warn_"].iter().any(|prefix| name.starts_with(prefix))
                && !name.starts_with("log_prob")
                && !name.starts_with("log_soft")
                || segments.iter().any(|segment| *segment == "nvtx" || *segment == "timers")
        }
    }
}

/// Whether a statement is such a call.
pub(super) fn is_talk_statement(statement: &Stmt) -> bool {
    let Stmt::Expr(expr) = statement else { return false };
    expr.value.as_call_expr().is_some_and(is_talk)
}

/// `if TYPE_CHECKING:`
pub(super) fn is_for_type_checkers(test: &Expr) -> bool {
    segments(test).last() == Some(&"TYPE_CHECKING")
}

/// `__all__ = …` and its like: names for `import *`, words for tools.
pub(super) fn is_declaration(statement: &Stmt) -> bool {
    let target = match statement {
        Stmt::Assign(assign) => match assign.targets.as_slice() {
            [target] => target,
            _ => return false,
        },
        Stmt::AnnAssign(assign) => &assign.target,
        Stmt::AugAssign(assign) => &assign.target,
        _ => return false,
    };
    let name = segments(target);
    matches!(name.as_slice(), ["__all__" | "__version__" | "__author__" | "__doc__"])
}

/// Methods whose result is read by people.
pub(super) fn is_for_people(function: &str) -> bool {
    matches!(function, "__repr__" | "__str__" | "__format__" | "extra_repr" | "__rich_repr__")
}

/// Keyword arguments that hold words.
pub(super) fn is_words_keyword(name: &str) -> bool {
    matches!(
        name,
        "help"
            | "desc"
            | "description"
            | "msg"
            | "message"
            | "stacklevel"
            | "epilog"
            | "metavar"
            | "title"
            | "metadata"
            | "doc"
            | "flush"
            | "category"
    )
}

/// `if __name__ == "__main__":`
pub(super) fn is_main_guard(test: &Expr) -> bool {
    test.as_compare_expr().is_some_and(|compare| segments(&compare.left).as_slice() == ["__name__"])
}
