//! The names that a file's imports bind, and what they stand for.

use std::collections::HashMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::walk::{callee, segments};
use crate::definitions::dotted;
use crate::module::Module;

/// What imports of a file bind, wherever they stand.
#[derive(Debug, Default)]
pub(super) struct Imports<'a> {
    /// The dotted name that each other name stands for.
    names: HashMap<&'a str, &'a str>,
    /// Those that are surely modules.
    modules: Vec<&'a str>,
}

impl<'a> Imports<'a> {
    pub(super) fn of(module: &'a Module) -> Imports<'a> {
        let mut imports = Imports::default();
        imports.visit_body(module.body());
        imports
    }

    /// The names in an expression, first to last, with an imported one as its module calls it: `rtp(x)` is
    /// `reduce_from_region` after `from m import reduce_from_region as rtp`.
    pub(super) fn segments<'e>(&self, expr: &'e Expr) -> Vec<&'e str>
    where
        'a: 'e,
    {
        let mut segments = segments(expr);
        if let Some(name) = segments.first().and_then(|first| self.names.get(first)).copied() {
            segments.splice(..1, name.split('.'));
        }
        segments
    }

    /// The name of the function that a call calls, as its module has it; empty for what has none.
    pub(super) fn callee<'e>(&self, call: &'e ExprCall) -> &'e str
    where
        'a: 'e,
    {
        match &*call.func {
            Expr::Name(_) => self.segments(&call.func).last().copied().unwrap_or_default(),
            _ => callee(call),
        }
    }

    /// Whether an expression is a module, as `torch` is in `torch.split`.
    pub(super) fn is_module(&self, expr: &Expr) -> bool {
        let Some(first) = dotted(expr).first().copied() else { return false };
        // A file that is only a part of a program may use these without an import.
        self.modules.contains(&first) || matches!(first, "torch" | "np" | "numpy" | "jnp")
    }
}

impl<'a> Visitor<'a> for Imports<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let first = alias.name.split('.').next().unwrap_or_default();
                    let bound = alias.asname.as_ref().map_or(first, |name| name.as_str());
                    if alias.asname.is_some() {
                        self.names.insert(bound, &alias.name);
                    }
                    self.modules.push(bound);
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    if let Some(bound) = &alias.asname {
                        self.names.insert(bound, alias.name.as_str());
                    }
                }
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}
