//! What one scope binds, and to what.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};

/// Where the value of a target comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// It is this.
    Whole(&'a Expr),
    /// It is an element of this, or what entering this gives.
    Part(&'a Expr),
    Unknown,
}

/// Assignments and functions of one scope.
#[derive(Default)]
pub(super) struct Bindings<'a> {
    pub assigned: Vec<(&'a Expr, Source<'a>)>,
    pub functions: Vec<&'a StmtFunctionDef>,
    /// The names that `with` binds.
    pub entered: Vec<&'a str>,
    /// The names that bodies of classes bind: attributes of `self`.
    pub fields: Vec<(&'a str, Source<'a>)>,
    in_class: bool,
}

impl<'a> Bindings<'a> {
    fn targets(&mut self, target: &'a Expr, source: Source<'a>) {
        match target {
            Expr::Tuple(tuple) => self.unpacked(&tuple.elts, source),
            Expr::List(list) => self.unpacked(&list.elts, source),
            Expr::Starred(starred) => self.targets(&starred.value, source),
            _ => {
                if let Expr::Name(name) = target
                    && self.in_class
                {
                    self.fields.push((name.id.as_str(), source));
                }
                self.assigned.push((target, source));
            }
        }
    }

    fn unpacked(&mut self, targets: &'a [Expr], source: Source<'a>) {
        let values = match source {
            Source::Whole(Expr::Tuple(values)) => &values.elts[..],
            Source::Whole(Expr::List(values)) => &values.elts[..],
            _ => &[],
        };
        let starred = targets.iter().chain(values).any(Expr::is_starred_expr);
        if values.len() == targets.len() && !starred {
            targets.iter().zip(values).for_each(|(t, value)| self.targets(t, Source::Whole(value)));
            return;
        }
        let part = match source {
            Source::Whole(value) | Source::Part(value) => Source::Part(value),
            Source::Unknown => Source::Unknown,
        };
        targets.iter().for_each(|target| self.targets(target, part));
    }
}

impl<'a> Visitor<'a> for Bindings<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => return self.functions.push(function),
            Stmt::ClassDef(class) => {
                let around = std::mem::replace(&mut self.in_class, true);
                self.visit_body(&class.body);
                self.in_class = around;
                return;
            }
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.targets(target, Source::Whole(&assign.value)));
            }
            Stmt::AnnAssign(assign) => {
                let source = assign.value.as_deref().map_or(Source::Unknown, Source::Whole);
                self.targets(&assign.target, source);
            }
            Stmt::AugAssign(assign) => self.targets(&assign.target, Source::Unknown),
            Stmt::For(s) => self.targets(&s.target, Source::Part(&s.iter)),
            Stmt::With(s) => {
                for item in &s.items {
                    if let Some(target) = &item.optional_vars {
                        self.entered.extend(target.as_name_expr().map(|name| name.id.as_str()));
                        self.targets(target, Source::Part(&item.context_expr));
                    }
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Named(named) = expr {
            self.targets(&named.target, Source::Whole(&named.value));
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a ruff_python_ast::Comprehension) {
        self.targets(&comprehension.target, Source::Part(&comprehension.iter));
        visitor::walk_comprehension(self, comprehension);
    }
}
