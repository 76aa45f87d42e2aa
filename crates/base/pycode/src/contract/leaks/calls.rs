//! Calls of a library's functions as methods of their first argument, and the other way round: `torch.cumsum(x, 0)` and
//! `x.cumsum(0)` are one.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange, TextSize};

use crate::module::{Module, Span};

/// Libraries whose functions are methods of their arrays, too. The first stands for all of them.
const LIBRARIES: [&str; 4] = ["torch", "np", "numpy", "jnp"];

/// The one name of libraries whose functions are each other's, `torch` for `np`, too. `None` for other words.
pub(super) fn library(word: &str) -> Option<&'static str> {
    LIBRARIES.contains(&word).then_some(LIBRARIES[0])
}

/// Calls of which every mixture of the forms is written; of more of them at most one at a time is in another form than all others.
const MIXED: usize = 4;

/// How a call is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `torch.f(x, y)`.
    Function,
    /// `x.f(y)`.
    Method,
}

impl Form {
    fn other(self) -> Form {
        match self {
            Form::Function => Form::Method,
            Form::Method => Form::Function,
        }
    }
}

/// An expression with all such calls in the one form, in the other, and in mixtures of both; those of them that are not as it is.
pub(super) fn other_forms(module: &Module, expr: &Expr) -> Vec<String> {
    let mut calls = Calls::default();
    calls.visit_expr(expr);
    let calls: Vec<(&ExprCall, Form)> =
        calls.0.into_iter().filter_map(|call| Some((call, form_of(call)?))).collect();
    let all_in = |form| vec![form; calls.len()];
    let as_it_is: Vec<Form> = calls.iter().map(|(_, form)| *form).collect();
    let mut mixtures = vec![all_in(Form::Method), all_in(Form::Function)];
    if calls.len() <= MIXED {
        let forms = |mixture: usize| {
            (0..calls.len())
                .map(|at| if mixture >> at & 1 == 0 { Form::Method } else { Form::Function })
                .collect()
        };
        mixtures.extend((0..1 << calls.len()).map(forms));
    } else {
        for whole in [as_it_is, all_in(Form::Method), all_in(Form::Function)] {
            mixtures.extend((0..calls.len()).map(|at| {
                let mut forms = whole.clone();
                forms[at] = forms[at].other();
                forms
            }));
            mixtures.push(whole);
        }
    }
    let mut written: Vec<String> = Vec::new();
    for forms in mixtures {
        let text = Writer { module, calls: &calls, forms: &forms }.written(expr.range());
        if text != module.text(expr) && !written.contains(&text) {
            written.push(text);
        }
    }
    written
}

/// How a call is written, if it can be written in the other form.
fn form_of(call: &ExprCall) -> Option<Form> {
    let function = call.func.as_attribute_expr()?;
    let is_library = function.value.as_name_expr().is_some_and(|name| library(&name.id).is_some());
    match is_library {
        true => call.arguments.args.first().filter(|first| is_atom(first)).map(|_| Form::Function),
        false => is_atom(&function.value).then_some(Form::Method),
    }
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
    /// Calls with the form in which each is.
    calls: &'a [(&'a ExprCall, Form)],
    /// The form in which each is to be.
    forms: &'a [Form],
}

impl Writer<'_> {
    /// A range of the source with the calls in it in their forms.
    fn written(&self, range: TextRange) -> String {
        let mut text = String::new();
        let mut from = range.start();
        for ((call, is), form) in self.calls.iter().zip(self.forms) {
            if is == form || call.start() < from || call.end() > range.end() {
                continue;
            }
            if let Some(other) = self.call(call, *form) {
                text.push_str(self.source(from, call.start()));
                text.push_str(&other);
                from = call.end();
            }
        }
        text + self.source(from, range.end())
    }

    /// A call in the form that it is not in.
    fn call(&self, call: &ExprCall, form: Form) -> Option<String> {
        let function = call.func.as_attribute_expr()?;
        let name = function.attr.as_str();
        match form {
            Form::Method => {
                let first = call.arguments.args.first()?;
                let rest = call.arguments.iter_source_order().nth(1);
                let rest = rest.map(|next| self.written(TextRange::new(next.start(), call.end())));
                Some(format!("{}.{name}({}", self.written(first.range()), rest.as_deref().unwrap_or(")")))
            }
            Form::Function => {
                let first = call.arguments.iter_source_order().next();
                let rest = first.map(|first| self.written(TextRange::new(first.start(), call.end())));
                let rest = rest.map_or(")".to_owned(), |rest| format!(", {rest}"));
                Some(format!("{}.{name}({}{rest}", LIBRARIES[0], self.written(function.value.range())))
            }
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
    fn of_many_calls_one_at_a_time_is_in_another_form() {
        let module = Module::parse("m.py", "x.a().b().c().d().e()").expect("an expression");
        let Stmt::Expr(statement) = &module.body()[0] else { panic!("no expression") };
        let forms = other_forms(&module, &statement.value);
        for form in [
            "torch.e(torch.d(torch.c(torch.b(torch.a(x)))))",
            "torch.e(x.a().b().c().d())",
            "torch.c(x.a().b()).d().e()",
            "torch.d(torch.c(torch.b(torch.a(x)))).e()",
        ] {
            assert!(forms.contains(&form.to_owned()), "{form} {forms:?}");
        }
        assert_eq!(forms.len(), 11, "{forms:?}");
    }

    #[test]
    fn a_call_of_a_library_s_function_is_a_method_s_and_the_other_way_round() {
        for (code, others) in [
            ("torch.cumsum(n, dim=0) - n", &["n.cumsum(dim=0) - n"][..]),
            ("n.cumsum(0) - n", &["torch.cumsum(n, 0) - n"]),
            ("torch.sum(torch.abs(x))", &["x.abs().sum()", "torch.sum(x.abs())", "torch.abs(x).sum()"]),
            (
                "x.abs().sum(dim=1)",
                &["torch.sum(torch.abs(x), dim=1)", "torch.sum(x.abs(), dim=1)", "torch.abs(x).sum(dim=1)"],
            ),
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
