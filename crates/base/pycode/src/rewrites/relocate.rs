//! Private functions elsewhere in their module.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::inline::is_bound_once;
use super::{Candidate, Edits};
use crate::module::{Module, Span};

/// A private function of the module that nothing calls on import goes to the module's end, or from there before the
/// first definition.
pub(crate) fn moved(candidate: &Candidate<'_>, on_import: &HashSet<&str>) -> Option<Edits> {
    let (module, function) = (candidate.module, candidate.function);
    let name = function.name.as_str();
    let body = module.body();
    let at = body.iter().position(|statement| statement.range() == function.range())?;
    let private = name.starts_with('_') && !name.starts_with("__") && candidate.name == name;
    let timeless = function.decorator_list.is_empty() && has_no_early_values(candidate);
    if !private
        || !timeless
        || on_import.contains(name)
        || !is_bound_once(module, name)
        || named_early(module, name)
    {
        return None;
    }
    let line = |offset: usize| offset - module.line_prefix(offset).len();
    let span =
        Span { start: line(function.start().to_usize()), end: module.line_end(function.end().to_usize()) };
    let newline = module.newline();
    let text = &module.source()[span.range()];
    let rest = &body[at + 1..];
    let defines = |statement: &Stmt| matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_));
    if !rest.is_empty() {
        if !rest.iter().all(defines) {
            return None;
        }
        let end = module.source().len();
        let gap = if module.source().ends_with(['\n', '\r']) { "" } else { newline };
        let after = format!("{gap}{newline}{newline}{text}{newline}");
        return Some(vec![(span, String::new()), (Span { start: end, end }, after)]);
    }
    let first = body[..at].iter().position(defines)?;
    if !body[first..at].iter().all(defines) {
        return None;
    }
    let start = line(body[first].start().to_usize());
    Some(vec![
        (Span { start, end: start }, format!("{text}{newline}{newline}{newline}")),
        (span, String::new()),
    ])
}

/// Whether nothing in the function's header is computed when it is defined: constants for defaults, and annotations
/// that are kept as text or are names of builtins.
fn has_no_early_values(candidate: &Candidate<'_>) -> bool {
    let parameters = &candidate.function.parameters;
    let constants =
        parameters.iter_non_variadic_params().all(|parameter| match parameter.default.as_deref() {
            None => true,
            Some(default) => default.is_literal_expr(),
        });
    let postponed = candidate.module.body().iter().any(|statement| match statement {
        Stmt::ImportFrom(import) => {
            import.module.as_ref().is_some_and(|module| module.as_str() == "__future__")
                && import.names.iter().any(|alias| alias.name.as_str() == "annotations")
        }
        _ => false,
    });
    let bare = candidate.function.returns.is_none()
        && parameters.iter().all(|parameter| parameter.annotation().is_none());
    constants && (postponed || bare)
}

/// Whether a name stands where code runs on import: outside of the bodies of functions.
fn named_early(module: &Module, name: &str) -> bool {
    struct Early<'n> {
        name: &'n str,
        found: bool,
    }
    impl<'a> Visitor<'a> for Early<'_> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::FunctionDef(function) => {
                    function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
                    self.visit_parameters(&function.parameters);
                }
                _ => visitor::walk_stmt(self, statement),
            }
        }

        fn visit_expr(&mut self, expr: &'a Expr) {
            self.found |= expr.as_name_expr().is_some_and(|found| found.id.as_str() == self.name);
            visitor::walk_expr(self, expr);
        }
    }
    let mut early = Early { name, found: false };
    early.visit_body(module.body());
    early.found
}
