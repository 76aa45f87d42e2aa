//! The expression that a private function returns, in place of its call.

use std::collections::BTreeMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::block::{each_statement, has_comprehension, is_plain, names_of};
use super::{Candidate, Edits};
use crate::module::{Module, Span};
use crate::replace::replace_spans;
use crate::stub;

/// The first call of a private function of the module that does nothing but return an expression, with bound locals
/// and constants for arguments.
pub(crate) fn inlined(candidate: &Candidate<'_>, all: &[Candidate<'_>]) -> Option<Edits> {
    let helpers: Vec<Helper<'_>> =
        all.iter().filter_map(|other| Helper::of(candidate.module, other)).collect();
    if helpers.is_empty() {
        return None;
    }
    let mut edits = None;
    each_statement(&candidate.function.body, &candidate.scope, &mut |place| {
        if edits.is_some() {
            return;
        }
        let value = match &place.block[place.at] {
            Stmt::Assign(assign) => &*assign.value,
            Stmt::Expr(statement) => &*statement.value,
            Stmt::Return(returned) => match &returned.value {
                Some(value) => &**value,
                None => return,
            },
            _ => return,
        };
        // A comprehension's names are bound in it alone.
        if has_comprehension(value) {
            return;
        }
        let mut calls = Calls(Vec::new());
        calls.visit_expr(value);
        edits = calls.0.into_iter().find_map(|call| {
            let name = call.func.as_name_expr()?;
            let helper = helpers.iter().find(|helper| helper.name == name.id.as_str())?;
            let local = candidate.scope.is_local(helper.name)
                || helper.function.range() == candidate.function.range();
            let text = helper.with(candidate, call, place.bound)?;
            (!local).then(|| vec![(Span::from(call.range()), text)])
        });
    });
    edits
}

struct Calls<'a>(Vec<&'a ExprCall>);

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => self.0.push(call),
            // An argument's quotes may be those of the f-string.
            Expr::FString(_) => return,
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

/// A private function of one expression.
struct Helper<'a> {
    name: &'a str,
    function: &'a StmtFunctionDef,
    value: &'a Expr,
    parameters: Vec<&'a str>,
}

impl<'a> Helper<'a> {
    fn of(module: &Module, candidate: &Candidate<'a>) -> Option<Helper<'a>> {
        let function = candidate.function;
        let name = function.name.as_str();
        let [Stmt::Return(returned)] = stub::after_docstring(&function.body) else { return None };
        let value = returned.value.as_deref()?;
        let parameters = &function.parameters;
        let positional =
            parameters.kwonlyargs.is_empty() && parameters.vararg.is_none() && parameters.kwarg.is_none();
        let defaults = parameters.iter_non_variadic_params().any(|parameter| parameter.default.is_some());
        let private = name.starts_with('_') && !name.starts_with("__") && candidate.name == name;
        let whole =
            private && positional && !defaults && function.decorator_list.is_empty() && !function.is_async;
        let plain = is_plain(value) && !has_comprehension(value) && is_bound_once(module, name);
        (whole && plain).then(|| Helper {
            name,
            function,
            value,
            parameters: parameters.iter().map(|parameter| parameter.name().as_str()).collect(),
        })
    }

    /// The expression with a call's arguments in it.
    fn with(
        &self,
        caller: &Candidate<'_>,
        call: &ExprCall,
        bound: &std::collections::BTreeSet<&str>,
    ) -> Option<String> {
        let module = caller.module;
        if !call.arguments.keywords.is_empty() || call.arguments.args.len() != self.parameters.len() {
            return None;
        }
        let mut texts: BTreeMap<&str, &str> = BTreeMap::new();
        for (parameter, argument) in self.parameters.iter().zip(&call.arguments.args) {
            let simple = match argument {
                Expr::Name(name) => bound.contains(name.id.as_str()),
                Expr::NumberLiteral(_)
                | Expr::StringLiteral(_)
                | Expr::BooleanLiteral(_)
                | Expr::NoneLiteral(_) => true,
                _ => false,
            };
            if !simple {
                return None;
            }
            texts.insert(parameter, module.text(argument));
        }
        let (reads, _) = names_of(self.value);
        let hidden = reads.iter().any(|name| {
            !self.parameters.contains(&name.as_str())
                && (caller.scope.is_local(name) || caller.scope.of_comprehensions.contains(name.as_str()))
        });
        if hidden {
            return None;
        }
        let mut uses = Uses { parameters: &self.parameters, found: Vec::new(), in_string: false };
        uses.visit_expr(self.value);
        if uses.in_string {
            return None;
        }
        let start = self.value.start().to_usize();
        let edits = uses
            .found
            .into_iter()
            .map(|(name, span)| {
                let span = Span { start: span.start - start, end: span.end - start };
                // A number is no object to ask for an attribute without these.
                (span, format!("({})", texts[name]))
            })
            .collect();
        Some(format!("({})", replace_spans(module.text(self.value), edits)))
    }
}

/// Where parameters stand in an expression.
struct Uses<'p, 'a> {
    parameters: &'p [&'a str],
    found: Vec<(&'a str, Span)>,
    in_string: bool,
}

impl<'a> Visitor<'a> for Uses<'_, '_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => {
                if let Some(parameter) =
                    self.parameters.iter().find(|parameter| **parameter == name.id.as_str())
                {
                    self.found.push((parameter, name.range().into()));
                }
            }
            // An argument's quotes may be those of the f-string around it.
            Expr::FString(_) => self.in_string = true,
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

/// Whether a module binds a name only once: nothing puts another function in its place.
pub(crate) fn is_bound_once(module: &Module, name: &str) -> bool {
    struct Bindings<'n> {
        name: &'n str,
        count: usize,
    }
    impl<'a> Visitor<'a> for Bindings<'_> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            self.count += match statement {
                Stmt::FunctionDef(function) => usize::from(function.name.as_str() == self.name),
                Stmt::ClassDef(class) => usize::from(class.name.as_str() == self.name),
                Stmt::Global(global) => global.names.iter().filter(|name| name.as_str() == self.name).count(),
                _ => 0,
            };
            visitor::walk_stmt(self, statement);
        }

        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(name) = expr {
                self.count += usize::from(name.id.as_str() == self.name && !name.ctx.is_load());
            }
            visitor::walk_expr(self, expr);
        }

        fn visit_alias(&mut self, alias: &'a ruff_python_ast::Alias) {
            let bound = alias.asname.as_ref().unwrap_or(&alias.name);
            self.count += usize::from(bound.as_str() == self.name);
        }
    }
    let mut bindings = Bindings { name, count: 0 };
    bindings.visit_body(module.body());
    bindings.count == 1
}
