//! The names that a function binds.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprContext, Parameter, Stmt};

/// The names that a function binds, those of what stands in it too.
#[derive(Default)]
pub(super) struct Bound(pub(super) HashSet<String>);

impl<'a> Visitor<'a> for Bound {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.0.insert(function.name.as_str().to_owned());
            }
            Stmt::ClassDef(class) => {
                self.0.insert(class.name.as_str().to_owned());
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Some(name) = expr.as_name_expr().filter(|name| name.ctx == ExprContext::Store) {
            self.0.insert(name.id.as_str().to_owned());
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.0.insert(parameter.name.as_str().to_owned());
        visitor::walk_parameter(self, parameter);
    }
}
