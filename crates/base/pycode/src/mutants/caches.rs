//! Caches, buffers of captured graphs, versions: not brought up to date.

use infradev_model::Operator;
use ruff_python_ast::{CmpOp, Expr, Stmt};

use super::walk::{Edits, Site, call_statement, callee, segments};

pub(super) fn statement(_: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    match statement {
        Stmt::Expr(_) => {
            let Some(call) = call_statement(statement) else { return };
            let name = callee(call).trim_start_matches('_');
            let refreshes =
                ["invalidate", "refresh", "update", "sync_", "mark_", "bump", "copy_", "touch", "rebuild"];
            if refreshes.iter().any(|prefix| name.starts_with(prefix))
                || matches!(name, "cache_clear" | "move_to_end" | "replay" | "load_state_dict" | "setdefault")
            {
                edits.drop(Operator::StaleCache, statement);
            }
        }
        Stmt::Assign(assign) => {
            let stores = |target: &Expr| target.as_subscript_expr().is_some_and(|s| is_cache(&s.value));
            if assign.targets.iter().all(stores) {
                edits.drop(Operator::StaleCache, statement);
            }
        }
        Stmt::AugAssign(assign) => {
            let counts = ["version", "epoch", "generation", "revision"];
            let name =
                segments(&assign.target).last().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
            if counts.iter().any(|word| name.contains(word)) {
                edits.drop(Operator::StaleCache, statement);
            }
        }
        Stmt::If(conditional) => {
            assumed_hit(&conditional.test, edits);
            let tests = conditional.elif_else_clauses.iter().filter_map(|clause| clause.test.as_ref());
            tests.for_each(|test| assumed_hit(test, edits));
        }
        _ => {}
    }
}

/// `if key in cache` always holds.
fn assumed_hit(test: &Expr, edits: &mut Edits<'_>) {
    let Expr::Compare(compare) = test else { return };
    let ([op], [container]) = (&*compare.ops, &*compare.comparators) else { return };
    if is_cache(container) {
        match op {
            CmpOp::In => edits.replace(Operator::StaleCache, test, "True"),
            CmpOp::NotIn => edits.replace(Operator::StaleCache, test, "False"),
            _ => {}
        }
    }
}

fn is_cache(container: &Expr) -> bool {
    let name = segments(container).last().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    ["cache", "registry", "graph", "pool", "memo", "seen", "blocks", "table"]
        .iter()
        .any(|word| name.contains(word))
}
