//! Hunks, files and calls as base had them.

use std::collections::HashMap;

use infradev_model::Operator;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::Edit;
use super::lines::AddedLines;
use super::walk::{Edits, Site, callee};
use crate::definitions::{Scope, walk};
use crate::module::{Module, Span};

/// The whole file, and each hunk of it where there is more than one.
pub(super) fn edits(golden: &Module, base: Option<&str>, added: &AddedLines) -> Vec<Edit> {
    let whole = Span { start: 0, end: golden.source().len() };
    let file = |text| Edit { span: whole, text, operator: Operator::TakeBackFile };
    let Some(base) = base else { return vec![file(None)] };
    let hunk = |hunk: &super::lines::Hunk| Edit {
        span: hunk.golden,
        text: Some(base[hunk.base.range()].to_owned()),
        operator: Operator::TakeBackHunk,
    };
    added.hunks().iter().map(hunk).chain([file(Some(base.to_owned()))]).collect()
}

/// The calls of base, by the function that makes them: what a call of golden may be taken back to.
#[derive(Default)]
pub(super) struct BaseCalls<'a> {
    by_function: HashMap<String, Vec<BaseCall<'a>>>,
}

struct BaseCall<'a> {
    callee: &'a str,
    arguments: &'a str,
    text: &'a str,
}

impl<'a> BaseCalls<'a> {
    pub(super) fn of(base: &'a Module) -> BaseCalls<'a> {
        let mut by_function: HashMap<String, Vec<BaseCall<'a>>> = HashMap::new();
        let mut module_level = Calls { module: base, found: Vec::new() };
        module_level.visit_body(base.body());
        by_function.insert(String::new(), module_level.found);
        walk(base.body(), &Scope::module(), &mut |site| {
            if let Some(function) = site.function() {
                let mut calls = Calls { module: base, found: Vec::new() };
                calls.visit_body(&function.body);
                by_function.insert(site.qualified_name.clone(), calls.found);
            }
            true
        });
        BaseCalls { by_function }
    }

    /// The calls of base's function of that name that golden's text of it no longer has.
    fn gone<'b>(&'b self, function: &str, golden: &'b str) -> impl Iterator<Item = &'b BaseCall<'a>> {
        self.by_function.get(function).into_iter().flatten().filter(|call| !golden.contains(call.text))
    }
}

struct Calls<'a> {
    module: &'a Module,
    found: Vec<BaseCall<'a>>,
}

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            visitor::walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr {
            self.found.push(BaseCall {
                callee: self.module.text(&*call.func),
                arguments: self.module.text(&call.arguments),
                text: self.module.text(call),
            });
        }
        visitor::walk_expr(self, expr);
    }
}

/// A new call that stands as a statement is dropped.
pub(super) fn statement(statement: &Stmt, edits: &mut Edits<'_>) {
    let Stmt::Expr(expr) = statement else { return };
    let call = match &*expr.value {
        Expr::Await(awaited) => &awaited.value,
        other => other,
    };
    if call.is_call_expr() {
        edits.drop(Operator::TakeBackCall, statement);
    }
}

/// A call is made as the same function of base made it: with its arguments, or of its callee with the same arguments.
pub(super) fn call(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    let (name, golden) = (site.function_name(), site.function_text());
    let of_python = matches!(
        callee(call),
        "" | "len"
            | "int"
            | "float"
            | "str"
            | "list"
            | "tuple"
            | "dict"
            | "set"
            | "reversed"
            | "sorted"
            | "range"
            | "enumerate"
            | "zip"
            | "isinstance"
            | "getattr"
            | "hasattr"
            | "super"
            | "min"
            | "max"
            | "sum"
            | "any"
            | "all"
            | "id"
            | "type"
            | "repr"
            | "bool"
            | "iter"
            | "next"
            | "format"
            | "join"
            | "append"
            | "get"
    );
    let (function, arguments) = (site.module.text(&*call.func), site.module.text(&call.arguments));
    let mut gone = site.base_calls.gone(&name, golden).filter(|was| {
        was.callee == function || (!of_python && was.arguments == arguments && call.arguments.len() > 1)
    });
    if let Some(was) = gone.next() {
        edits.replace(Operator::TakeBackCall, call, was.text);
    }
}
