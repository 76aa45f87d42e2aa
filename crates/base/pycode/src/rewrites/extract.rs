//! An expression computed by a new function of the module.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::block::{each_statement, is_plain, names_of};
use super::{Candidate, Edits};
use crate::module::Span;

/// Most arguments that a helper takes.
const MOST: usize = 6;

/// The value of the first assignment or `return` that computes something from locals that are bound for certain.
pub(crate) fn extracted(candidate: &Candidate<'_>) -> Option<Edits> {
    let module = candidate.module;
    let outermost = module.body().iter().find(|statement| {
        let range = statement.range();
        range.contains_range(candidate.function.range())
    })?;
    if !matches!(outermost, Stmt::FunctionDef(_) | Stmt::ClassDef(_))
        || !module.own_indent(outermost.start().to_usize())?.is_empty()
    {
        return None;
    }
    let mut edits = None;
    each_statement(&candidate.function.body, &candidate.scope, &mut |place| {
        if edits.is_some() {
            return;
        }
        let value = match &place.block[place.at] {
            Stmt::Assign(assign) if matches!(assign.targets.as_slice(), [Expr::Name(_)]) => &*assign.value,
            Stmt::Return(returned) => match &returned.value {
                Some(value) => &**value,
                None => return,
            },
            _ => return,
        };
        if !computes(value) || !is_plain(value) {
            return;
        }
        let (reads, binds) = names_of(value);
        let scope = &candidate.scope;
        // A comprehension's name that is also the function's own would be read in both ways.
        if binds.iter().any(|name| scope.is_local(name)) {
            return;
        }
        let arguments: Vec<&String> = reads.iter().filter(|name| scope.is_local(name)).collect();
        let certain = arguments.iter().all(|name| place.bound.contains(name.as_str()));
        if !certain || arguments.len() > MOST || arguments.iter().any(|name| name.starts_with("__")) {
            return;
        }
        let helper = candidate.fresh(&format!("_part_of_{}", candidate.function.name.trim_matches('_')));
        let arguments = arguments.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let newline = module.newline();
        let text = module.text(value);
        let body = format!(
            "def {helper}({arguments}):{newline}    return ({newline}        {text}{newline}    ){newline}{newline}{newline}"
        );
        let at = outermost.start().to_usize();
        edits = Some(vec![
            (Span { start: at, end: at }, body),
            (Span::from(value.range()), format!("{helper}({arguments})")),
        ]);
    });
    edits
}

/// Whether an expression does something: a name, a constant or an attribute alone is not worth a function.
fn computes(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Call(_)
            | Expr::BinOp(_)
            | Expr::BoolOp(_)
            | Expr::Compare(_)
            | Expr::Subscript(_)
            | Expr::If(_)
            | Expr::ListComp(_)
            | Expr::DictComp(_)
            | Expr::SetComp(_)
    )
}
