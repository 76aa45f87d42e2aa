//! Neighbouring statements in the other order, where one of them only names a value.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::block::{Place, each_statement, is_inert, is_names, is_plain, names_of_statement};
use super::{Candidate, Edits};
use crate::module::Span;

/// Swaps each pair of neighbours of which one is inert (`count = 0`, `held = []`) and neither reads or binds what
/// the other binds.
pub(crate) fn reordered(candidate: &Candidate<'_>) -> Option<Edits> {
    let mut edits = Edits::new();
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    each_statement(&candidate.function.body, &candidate.scope, &mut |place| {
        let Some(second) = place.block.get(place.at + 1) else { return };
        let first = &place.block[place.at];
        let starts = [first, second].map(|statement| statement.start().to_usize());
        if place.in_try
            || starts.iter().any(|start| taken.contains(start))
            || !independent(place, first, second)
        {
            return;
        }
        let own_line = |statement: &Stmt| candidate.module.own_indent(statement.start().to_usize()).is_some();
        if !own_line(first) || !own_line(second) {
            return;
        }
        taken.extend(starts);
        let (one, other) =
            (candidate.module.text(first).to_owned(), candidate.module.text(second).to_owned());
        edits.push((Span::from(first.range()), other));
        edits.push((Span::from(second.range()), one));
    });
    (!edits.is_empty()).then_some(edits)
}

fn independent(place: &Place<'_, '_>, first: &Stmt, second: &Stmt) -> bool {
    let inert = |statement: &Stmt| {
        let value = match statement {
            Stmt::Assign(assign) if assign.targets.iter().all(Expr::is_name_expr) => &assign.value,
            Stmt::AnnAssign(assign) if assign.target.is_name_expr() => match &assign.value {
                Some(value) => value,
                None => return false,
            },
            _ => return false,
        };
        is_inert(value, place.bound)
    };
    let simple = |statement: &Stmt| match statement {
        Stmt::Assign(assign) => {
            // A target that is an attribute or an item runs code of its own, which may not come before what it reads.
            assign.targets.iter().all(is_names) && is_plain(&assign.value)
        }
        Stmt::AnnAssign(assign) => {
            assign.target.is_name_expr() && assign.value.as_ref().is_some_and(|value| is_plain(value))
        }
        _ => false,
    };
    if !(inert(first) && simple(second) || inert(second) && simple(first)) {
        return false;
    }
    let ((first_reads, first_binds), (second_reads, second_binds)) =
        (names_of_statement(first), names_of_statement(second));
    first_binds.is_disjoint(&second_reads)
        && first_binds.is_disjoint(&second_binds)
        && second_binds.is_disjoint(&first_reads)
}
