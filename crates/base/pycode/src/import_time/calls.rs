//! What running a block calls, reads and creates, without the bodies of the functions that it defines.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};

use crate::definitions::{decorator_name, dotted};

/// Keyword arguments that are called by whom they are given to.
const CALLED_AS: [&str; 3] = ["key", "default_factory", "factory"];
/// Functions that call what they are given, by the last part of their name.
const CALLERS: [&str; 8] =
    ["map", "filter", "reduce", "cmp_to_key", "starmap", "accumulate", "takewhile", "dropwhile"];

/// The calls made by running a block. A lambda counts as called where it is written: who holds it is not followed.
#[derive(Default)]
pub(super) struct Calls<'a> {
    pub called: Vec<Vec<&'a str>>,
    /// Called to make a decorator, whose result is called in turn.
    pub factories: Vec<Vec<&'a str>>,
    pub entered: Vec<Vec<&'a str>>,
    pub classes: Vec<&'a StmtClassDef>,
    /// Attributes read or set: of what, if that is a dotted name, and which.
    pub attributes: Vec<(Vec<&'a str>, &'a str)>,
}

impl<'a> Calls<'a> {
    fn note(&mut self, call: &'a ExprCall) {
        let callee = dotted(&call.func);
        if callee.last().is_some_and(|name| CALLERS.contains(name))
            && let Some(first) = call.arguments.args.first()
        {
            self.called.push(dotted(first));
        }
        for keyword in &call.arguments.keywords {
            if keyword.arg.as_ref().is_some_and(|name| CALLED_AS.contains(&name.as_str())) {
                self.called.push(dotted(&keyword.value));
            }
        }
        self.called.push(callee);
    }
}

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                for decorator in &function.decorator_list {
                    self.visit_decorator(decorator);
                }
                self.visit_parameters(&function.parameters);
            }
            Stmt::ClassDef(class) => {
                self.classes.push(class);
                visitor::walk_stmt(self, statement);
            }
            Stmt::If(conditional) if never_on_import(&conditional.test) => {
                for clause in &conditional.elif_else_clauses {
                    self.visit_body(&clause.body);
                }
            }
            Stmt::With(with) => {
                for item in &with.items {
                    if let Expr::Call(call) = &item.context_expr {
                        self.entered.push(dotted(&call.func));
                    }
                }
                visitor::walk_stmt(self, statement);
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_decorator(&mut self, decorator: &'a ruff_python_ast::Decorator) {
        let name = decorator_name(decorator);
        if decorator.expression.is_call_expr() {
            self.factories.push(name.clone());
        }
        self.called.push(name);
        visitor::walk_decorator(self, decorator);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => self.note(call),
            Expr::Attribute(attribute) => {
                self.attributes.push((dotted(&attribute.value), attribute.attr.as_str()));
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

/// `__name__ == "__main__"` and `TYPE_CHECKING`.
fn never_on_import(test: &Expr) -> bool {
    match test {
        Expr::Compare(compare) => compare.left.as_name_expr().is_some_and(|name| name.id == "__name__"),
        other => dotted(other).last() == Some(&"TYPE_CHECKING"),
    }
}
