//! What the local names of a function stand for.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{ExceptHandler, Expr, Stmt, WithItem};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use crate::definitions::dotted;

/// Where a name got what it holds.
#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    /// The value of an assignment; for one element of a tuple that a call gives, which.
    Value(&'a Expr, Option<usize>),
    /// Added to what it held: `+=`, `append`.
    Added(&'a Expr),
    /// An exception or warning that was caught.
    Caught,
    /// Records of a log.
    Logged,
}

/// The definitions of a function's names, those of functions within it included.
#[derive(Default)]
pub(super) struct Locals<'a> {
    by_name: FxHashMap<&'a str, Vec<(u32, Origin<'a>)>>,
}

/// Most definitions of one name that are looked at.
const MOST: usize = 6;

impl<'a> Locals<'a> {
    /// Those of a block.
    pub(super) fn of(body: &'a [Stmt]) -> Locals<'a> {
        let mut collected = Collect { locals: Locals::default() };
        collected.visit_body(body);
        collected.locals
    }

    /// Those of a module, without what its functions hold.
    pub(super) fn of_module(body: &'a [Stmt]) -> Locals<'a> {
        let mut collected = Collect { locals: Locals::default() };
        let outside = |statement: &&Stmt| !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_));
        for statement in body.iter().filter(outside) {
            collected.visit_stmt(statement);
        }
        collected.locals
    }

    /// What a name stands for at an offset: its last definition before (else its first), and what is added to it anywhere.
    pub(super) fn at(&self, name: &str, offset: u32) -> Vec<Origin<'a>> {
        let Some(all) = self.by_name.get(name) else { return Vec::new() };
        let whole = |(_, origin): &&(u32, Origin<'a>)| !matches!(origin, Origin::Added(_));
        let last = all.iter().filter(whole).rfind(|(at, _)| *at < offset);
        let mut found: Vec<Origin<'a>> =
            last.or_else(|| all.iter().find(whole)).into_iter().map(|(_, origin)| *origin).collect();
        found.extend(all.iter().filter(|one| !whole(one)).take(MOST).map(|(_, origin)| *origin));
        found
    }

    fn add(&mut self, name: &'a str, offset: u32, origin: Origin<'a>) {
        let all = self.by_name.entry(name).or_default();
        if all.len() < 4096 {
            all.push((offset, origin));
        }
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr, element: Option<usize>) {
        match (target, value) {
            (Expr::Name(name), _) => {
                self.add(name.id.as_str(), name.start().to_u32(), Origin::Value(value, element));
            }
            (Expr::Starred(starred), _) => self.assign(&starred.value, value, None),
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.elts.len() == values.elts.len() => {
                for (target, value) in targets.elts.iter().zip(&values.elts) {
                    self.assign(target, value, None);
                }
            }
            (Expr::Tuple(targets), _) => {
                for (at, target) in targets.elts.iter().enumerate() {
                    self.assign(target, value, Some(at));
                }
            }
            _ => {}
        }
    }

    fn with(&mut self, item: &'a WithItem) {
        let Some(target) = item.optional_vars.as_deref() else { return };
        let Expr::Call(call) = &item.context_expr else {
            return self.assign(target, &item.context_expr, None);
        };
        let caught = match dotted(&call.func).last().copied().unwrap_or_default() {
            "raises" | "warns" | "assertRaises" | "assertRaisesRegex" | "assertWarns"
            | "assertWarnsRegex" | "catch_warnings" | "deprecated_call" => Origin::Caught,
            "assertLogs" | "assertNoLogs" | "redirect_stdout" | "redirect_stderr" => Origin::Logged,
            _ => return self.assign(target, &item.context_expr, None),
        };
        if let Expr::Name(name) = target {
            self.add(name.id.as_str(), name.start().to_u32(), caught);
        }
    }
}

struct Collect<'a> {
    locals: Locals<'a>,
}

impl<'a> Visitor<'a> for Collect<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.locals.assign(target, &assign.value, None);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.locals.assign(&assign.target, value, None);
                }
            }
            Stmt::AugAssign(assign) => {
                if let Expr::Name(name) = &*assign.target {
                    self.locals.add(name.id.as_str(), name.start().to_u32(), Origin::Added(&assign.value));
                }
            }
            Stmt::For(each) => self.locals.assign(&each.target, &each.iter, None),
            Stmt::With(with) => with.items.iter().for_each(|item| self.locals.with(item)),
            Stmt::ClassDef(_) => return,
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.locals.add(name.id.as_str(), name.start().to_u32(), Origin::Caught);
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Named(named) => self.locals.assign(&named.target, &named.value, None),
            Expr::Call(call) => {
                if let Expr::Attribute(attribute) = &*call.func
                    && matches!(attribute.attr.as_str(), "append" | "add" | "extend")
                    && let (Expr::Name(name), [value, ..]) = (&*attribute.value, &call.arguments.args[..])
                {
                    self.locals.add(name.id.as_str(), name.start().to_u32(), Origin::Added(value));
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
