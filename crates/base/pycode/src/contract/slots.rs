//! The attributes that a class names in its `__slots__`: objects have them, whoever sets them.

use ruff_python_ast::{Expr, Stmt, StmtClassDef};
use ruff_text_size::Ranged;

/// Their names, each with where it stands; not those that Python itself gives a meaning.
pub(super) fn slots(class: &StmtClassDef) -> Vec<(&str, usize)> {
    let is_slots = |target: &Expr| target.as_name_expr().is_some_and(|name| name.id.as_str() == "__slots__");
    let mut found = Vec::new();
    for statement in &class.body {
        match statement {
            Stmt::Assign(assign) if assign.targets.iter().any(is_slots) => names(&assign.value, &mut found),
            Stmt::AnnAssign(assign) if is_slots(&assign.target) => {
                assign.value.iter().for_each(|value| names(value, &mut found));
            }
            Stmt::AugAssign(assign) if is_slots(&assign.target) => names(&assign.value, &mut found),
            _ => {}
        }
    }
    found.retain(|(name, _)| !(name.starts_with("__") && name.ends_with("__")));
    found
}

/// A string is one name; a list, a tuple, a set and the keys of a dictionary are some, as are two of them joined.
fn names<'a>(value: &'a Expr, found: &mut Vec<(&'a str, usize)>) {
    match value {
        Expr::StringLiteral(text) => found.push((text.value.to_str(), text.start().to_usize())),
        Expr::Tuple(list) => list.elts.iter().for_each(|name| names(name, found)),
        Expr::List(list) => list.elts.iter().for_each(|name| names(name, found)),
        Expr::Set(list) => list.elts.iter().for_each(|name| names(name, found)),
        Expr::Dict(dict) => dict.iter_keys().flatten().for_each(|name| names(name, found)),
        Expr::BinOp(both) => [&both.left, &both.right].into_iter().for_each(|side| names(side, found)),
        _ => {}
    }
}
