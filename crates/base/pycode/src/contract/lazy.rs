//! Names of a module that only its `__getattr__` gives: the strings with which that compares the name that it is asked for.

use std::collections::HashMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Expr, Pattern, Stmt};
use ruff_text_size::Ranged;

use super::outline::{Outline, Variable};
use super::reflected::literal;
use crate::module::Module;

/// Notes them in the file's outline, as variables of the module.
pub(super) fn read_lazy(module: &Module, outline: &mut Outline) {
    let functions = module.body().iter().filter_map(Stmt::as_function_def_stmt);
    for function in functions.filter(|function| function.name.as_str() == "__getattr__") {
        let Some(asked) = function.parameters.iter().next().map(|parameter| parameter.name()) else {
            continue;
        };
        let mut lazy = Lazy { asked, tables: tables(module.body()), names: Vec::new() };
        lazy.visit_body(&function.body);
        for name in lazy.names {
            let line = module.line_column(name.start().to_usize()).0;
            let Some(name) = literal(name).filter(|name| !name.contains('.')) else { continue };
            let is_known = outline.classes.contains_key(name)
                || outline.functions.contains_key(name)
                || outline.imports.contains_key(name);
            if !is_known {
                let variable = Variable { line, declared: None, optional: true };
                outline.variables.entry(name.to_owned()).or_insert(variable);
            }
        }
    }
}

/// The variables of a module, with what each holds.
fn tables(body: &[Stmt]) -> HashMap<&str, &Expr> {
    let tables = body.iter().filter_map(|statement| match statement {
        Stmt::Assign(assign) => Some((assign.targets.first()?.as_name_expr()?, &*assign.value)),
        Stmt::AnnAssign(assign) => Some((assign.target.as_name_expr()?, assign.value.as_deref()?)),
        _ => None,
    });
    tables.map(|(name, value)| (name.id.as_str(), value)).collect()
}

struct Lazy<'a> {
    /// The parameter that the name is given as.
    asked: &'a str,
    tables: HashMap<&'a str, &'a Expr>,
    names: Vec<&'a Expr>,
}

impl<'a> Lazy<'a> {
    fn is_asked(&self, expr: &Expr) -> bool {
        expr.as_name_expr().is_some_and(|name| name.id.as_str() == self.asked)
    }

    /// Notes what a table holds: the elements of a list, the keys of a dictionary, also under a name of the module.
    fn table(&mut self, table: &'a Expr) {
        let table = match table {
            Expr::Name(name) => self.tables.get(name.id.as_str()).copied().unwrap_or(table),
            _ => table,
        };
        match table {
            Expr::List(list) => self.names.extend(&list.elts),
            Expr::Tuple(tuple) => self.names.extend(&tuple.elts),
            Expr::Set(set) => self.names.extend(&set.elts),
            Expr::Dict(dict) => self.names.extend(dict.items.iter().filter_map(|item| item.key.as_ref())),
            // `frozenset({…})`.
            Expr::Call(call) => {
                if let [only] = &*call.arguments.args {
                    self.table(only);
                }
            }
            _ => {}
        }
    }
}

impl<'a> Visitor<'a> for Lazy<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Match(matched) = statement
            && self.is_asked(&matched.subject)
        {
            let mut patterns: Vec<&Pattern> = matched.cases.iter().map(|case| &case.pattern).collect();
            while let Some(pattern) = patterns.pop() {
                match pattern {
                    Pattern::MatchValue(value) => self.names.push(&value.value),
                    Pattern::MatchOr(either) => patterns.extend(&either.patterns),
                    _ => {}
                }
            }
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Compare(compare) => {
                if let ([op], [right]) = (&*compare.ops, &*compare.comparators) {
                    match op {
                        CmpOp::Eq if self.is_asked(&compare.left) => self.names.push(right),
                        CmpOp::Eq if self.is_asked(right) => self.names.push(&compare.left),
                        CmpOp::NotEq if self.is_asked(&compare.left) => self.names.push(right),
                        CmpOp::In | CmpOp::NotIn if self.is_asked(&compare.left) => self.table(right),
                        _ => {}
                    }
                }
            }
            Expr::Subscript(subscript) if self.is_asked(&subscript.slice) => self.table(&subscript.value),
            Expr::Call(call) => {
                if let (Expr::Attribute(method), Some(first)) = (&*call.func, call.arguments.args.first())
                    && method.attr.as_str() == "get"
                    && self.is_asked(first)
                {
                    self.table(&method.value);
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
