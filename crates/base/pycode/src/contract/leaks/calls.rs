//! Calls of a library's functions as methods of their first argument, and the other way round: `torch.cumsum(x, 0)` and
//! `x.cumsum(0)` are one.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange, TextSize};

use crate::module::{Module, Span};

/// Libraries whose functions are methods of their arrays, too.
const LIBRARIES: [&str; 4] = ["torch", "np", "numpy", "jnp"];

/// How a call is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `torch.f(x, y)`.
    Function,
    /// `x.f(y)`.
    Method,
}

/// An expression with all such calls in the one form, and in the other; those of them that are not as it is.
pub(super) fn other_forms(module: &Module, expr: &Expr) -> Vec<String> {
    let mut calls = Calls::default();
    calls.visit_expr(expr);
    let written = |form| Writer { module, calls: &calls.0, form }.written(expr.range());
    let mut forms = vec![written(Form::Method), written(Form::Function)];
    forms.retain(|form| form != module.text(expr));
    forms
}

/// Calls of attributes, outer ones before those in them.
#[derive(Default)]
struct Calls<'a>(Vec<&'a ExprCall>);

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr
            && call.func.is_attribute_expr()
        {
            self.0.push(call);
        }
        visitor::walk_expr(self, expr);
    }
}

struct Writer<'a> {
    module: &'a Module,
    calls: &'a [&'a ExprCall],
    form: Form,
}

impl Writer<'_> {
    /// A range of the source with the calls in it in the form.
    fn written(&self, range: TextRange) -> String {
        let mut text = String::new();
        let mut from = range.start();
        for call in self.calls {
            if call.start() < from || call.end() > range.end() {
                continue;
            }
            if let Some(other) = self.call(call) {
                text.push_str(self.source(from, call.start()));
                text.push_str(&other);
                from = call.end();
            }
        }
        text + self.source(from, range.end())
    }

    /// A call in the form, where it is in the other one.
    fn call(&self, call: &ExprCall) -> Option<String> {
        let function = call.func.as_attribute_expr()?;
        let name = function.attr.as_str();
        let library = function.value.as_name_expr().filter(|name| LIBRARIES.contains(&name.id.as_str()));
        match (self.form, library) {
            (Form::Method, Some(_)) => {
                let first = call.arguments.args.first().filter(|first| is_atom(first))?;
                let rest = call.arguments.iter_source_order().nth(1);
                let rest = rest.map(|next| self.written(TextRange::new(next.start(), call.end())));
                Some(format!("{}.{name}({}", self.written(first.range()), rest.as_deref().unwrap_or(")")))
            }
            (Form::Function, None) if is_atom(&function.value) => {
                let first = call.arguments.iter_source_order().next();
                let rest = first.map(|first| self.written(TextRange::new(first.start(), call.end())));
                let rest = rest.map_or(")".to_owned(), |rest| format!(", {rest}"));
                Some(format!("torch.{name}({}{rest}", self.written(function.value.range())))
            }
            _ => None,
        }
    }

    fn source(&self, from: TextSize, to: TextSize) -> &str {
        &self.module.source()[Span::from(TextRange::new(from, to)).range()]
    }
}

/// Whether what stands before a point needs no brackets.
fn is_atom(expr: &Expr) -> bool {
    matches!(expr, Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_))
}

#[cfg(test)]
mod tests {
    use ruff_python_ast::Stmt;

    use super::*;

    #[test]
    fn a_call_of_a_library_s_function_is_a_method_s_and_the_other_way_round() {
        for (code, others) in [
            ("torch.cumsum(n, dim=0) - n", &["n.cumsum(dim=0) - n"][..]),
            ("n.cumsum(0) - n", &["torch.cumsum(n, 0) - n"]),
            ("torch.sum(torch.abs(x))", &["x.abs().sum()"]),
            ("x.abs().sum(dim=1)", &["torch.sum(torch.abs(x), dim=1)"]),
            ("torch.where(x > 0, a.neg(), b)", &["torch.where(x > 0, torch.neg(a), b)"]),
            ("torch.zeros(3)", &[]),
            ("f(x) + torch.pi", &[]),
            ("torch.add(*xs)", &[]),
        ] {
            let module = Module::parse("m.py", code).expect("an expression");
            let Stmt::Expr(statement) = &module.body()[0] else { panic!("{code}") };
            assert_eq!(other_forms(&module, &statement.value), others, "{code}");
        }
    }
}
