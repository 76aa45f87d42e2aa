//! What is accessed of the objects whose making a test shows: attributes, names that are given as strings, and the special
//! methods that syntax calls.

use std::collections::BTreeMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, Stmt};
use ruff_text_size::Ranged;

use super::reflected::{Spelled, spelled};
use super::special;
use super::typed::{Bound, Known, Reader};

/// Notes the accesses of one scope.
pub(super) struct Accesses<'r, 'm> {
    reader: &'r mut Reader<'m>,
    bound: &'r Bound,
}

impl<'r, 'm> Accesses<'r, 'm> {
    pub(super) fn of(reader: &'r mut Reader<'m>, bound: &'r Bound) -> Accesses<'r, 'm> {
        Accesses { reader, bound }
    }

    /// Notes the special methods that syntax calls, where the class of the object is known.
    fn special(&mut self, calls: &[special::Call<'_>]) {
        for (object, method) in calls {
            if let Some(made_by) = self.reader.maker(object, self.bound) {
                let line = self.reader.module.line_column(object.start().to_usize()).0;
                self.reader.found.made.entry((made_by, (*method).to_owned())).or_insert(line);
            }
        }
    }

    /// Notes a name of what an expression is, as it is known.
    fn access(&mut self, object: &Expr, name: &str, line: usize) -> bool {
        if let Some(path) = self.reader.absolute(object, self.bound) {
            // All on the way are touched as well.
            for (at, _) in name.match_indices('.').chain([(name.len(), "")]) {
                note(&mut self.reader.found.named, &format!("{path}.{}", &name[..at]), line);
            }
            return true;
        }
        let known = self.reader.known(object, self.bound);
        let found = &mut self.reader.found;
        let (map, by) = match known {
            Some(Known::Made(by)) => (&mut found.made, by),
            Some(Known::Within(by)) => (&mut found.within, by),
            _ => return false,
        };
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        map.entry((by.clone(), first.to_owned())).or_insert(line);
        for name in rest.split('.').filter(|name| !name.is_empty()) {
            found.within.entry((by.clone(), name.to_owned())).or_insert(line);
        }
        true
    }

    fn spelled(&mut self, spelled: &Spelled<'_>, line: usize) {
        if spelled.object.is_some_and(|object| self.access(object, spelled.path, line)) {
            return;
        }
        let found = &mut self.reader.found;
        let map = if spelled.sets { &mut found.own } else { &mut found.spelled };
        spelled.path.split('.').for_each(|name| note(map, name, line));
    }
}

impl<'a> Visitor<'a> for Accesses<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.special(&special::of_statement(statement));
        let Stmt::FunctionDef(function) = statement else { return visitor::walk_stmt(self, statement) };
        function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
        function.parameters.iter().filter_map(|p| p.default()).for_each(|default| self.visit_expr(default));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.special(&special::of_expression(expr));
        let line = |at: usize| self.reader.module.line_column(at).0;
        match expr {
            Expr::Attribute(attribute) => {
                let line = line(attribute.attr.start().to_usize());
                self.access(&attribute.value, &attribute.attr, line);
            }
            Expr::Call(_) | Expr::Subscript(_) | Expr::Compare(_) => {
                let line = line(expr.start().to_usize());
                for spelled in spelled(expr) {
                    self.spelled(&spelled, line);
                }
                if let Some(path) = self.reader.absolute(expr, self.bound) {
                    note(&mut self.reader.found.named, &path, line);
                }
                if let Expr::Call(call) = expr
                    && let Some(callee) = self.reader.absolute(&call.func, self.bound)
                {
                    for name in call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_ref()) {
                        let call = (callee.clone(), name.to_string());
                        self.reader.found.calls.entry(call).or_insert(line);
                    }
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.special(&special::of_loop(&comprehension.iter, comprehension.is_async));
        visitor::walk_comprehension(self, comprehension);
    }
}

fn note(map: &mut BTreeMap<String, usize>, name: &str, line: usize) {
    map.entry(name.to_owned()).or_insert(line);
}
