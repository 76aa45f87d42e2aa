//! What a function's own scope holds: which names are its locals, where they stand, and whether anything looks at
//! them from outside.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Alias, Comprehension, ExceptHandler, Expr, ExprContext, InterpolatedStringElement, Stmt, StmtFunctionDef,
};
use ruff_text_size::Ranged;

use crate::contract::words_of;
use crate::module::Span;
use crate::stub::after_docstring;

/// Functions that see the names of whoever calls them, or run code that does.
const SEES_NAMES: [&str; 9] =
    ["locals", "globals", "vars", "eval", "exec", "dir", "compile", "breakpoint", "__import__"];
/// Attributes by which frames, sources and bytecode are reached.
const SEES_FRAMES: [&str; 9] = [
    "_getframe",
    "currentframe",
    "getsource",
    "getframeinfo",
    "extract_stack",
    "format_stack",
    "f_locals",
    "__code__",
    "stack",
];

/// A function without anything that looks at its names: no closures, no `global`, no `locals()`, no frames.
#[derive(Debug, Default)]
pub(crate) struct FunctionScope<'a> {
    /// Parameters.
    pub(crate) parameters: BTreeSet<&'a str>,
    /// Names that the function binds by assignment, `for`, `with` or `:=`.
    pub(crate) assigned: BTreeSet<&'a str>,
    /// Names that it binds by `import`, `except` or `match`.
    pub(crate) bound_otherwise: BTreeSet<&'a str>,
    /// Targets of comprehensions: names of a scope of their own.
    pub(crate) of_comprehensions: BTreeSet<&'a str>,
    /// Names that it deletes.
    pub(crate) deleted: BTreeSet<&'a str>,
    /// Where each name stands, reading or binding, in the body.
    pub(crate) places: BTreeMap<&'a str, Vec<Span>>,
    /// Words of its strings.
    pub(crate) words: BTreeSet<String>,
    /// Yields or awaits.
    pub(crate) suspends: bool,
}

impl<'a> FunctionScope<'a> {
    /// Reads it off a function; `None` where something looks at its names.
    pub(crate) fn of(function: &'a StmtFunctionDef) -> Option<FunctionScope<'a>> {
        if function.type_params.is_some() {
            return None;
        }
        let parameters = function.parameters.iter().map(|parameter| parameter.name().as_str()).collect();
        let mut reader = Reader {
            scope: FunctionScope { parameters, ..FunctionScope::default() },
            refused: false,
            in_comprehension_target: false,
        };
        reader.visit_body(after_docstring(&function.body));
        (!reader.refused).then_some(reader.scope)
    }

    /// Whether a name is the function's own: a parameter, or bound or deleted by it in whatever way.
    pub(crate) fn is_local(&self, name: &str) -> bool {
        [&self.parameters, &self.assigned, &self.bound_otherwise, &self.deleted]
            .iter()
            .any(|names| names.contains(name))
    }
}

struct Reader<'a> {
    scope: FunctionScope<'a>,
    refused: bool,
    in_comprehension_target: bool,
}

impl<'a> Visitor<'a> for Reader<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(_)
            | Stmt::ClassDef(_)
            | Stmt::Global(_)
            | Stmt::Nonlocal(_)
            | Stmt::Match(_)
            | Stmt::TypeAlias(_)
            | Stmt::IpyEscapeCommand(_) => self.refused = true,
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Lambda(_) | Expr::TString(_) | Expr::IpyEscapeCommand(_) => {
                self.refused = true;
                return;
            }
            Expr::Name(name) => {
                let id = name.id.as_str();
                self.scope.places.entry(id).or_default().push(name.range().into());
                match name.ctx {
                    ExprContext::Store if self.in_comprehension_target => {
                        self.scope.of_comprehensions.insert(id);
                    }
                    ExprContext::Store => {
                        self.scope.assigned.insert(id);
                    }
                    ExprContext::Del => {
                        self.scope.deleted.insert(id);
                    }
                    _ => self.refused |= SEES_NAMES.contains(&id) || id == "__class__",
                }
            }
            Expr::Attribute(attribute) => self.refused |= SEES_FRAMES.contains(&attribute.attr.as_str()),
            Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Await(_) => self.scope.suspends = true,
            Expr::StringLiteral(string) => {
                self.scope.words.extend(words_of(string.value.to_str()).into_iter().map(str::to_owned));
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.scope.suspends |= comprehension.is_async;
        self.visit_expr(&comprehension.iter);
        let outer = std::mem::replace(&mut self.in_comprehension_target, true);
        self.visit_expr(&comprehension.target);
        self.in_comprehension_target = outer;
        comprehension.ifs.iter().for_each(|test| self.visit_expr(test));
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(named) = handler;
        self.scope.bound_otherwise.extend(named.name.as_ref().map(|name| name.as_str()));
        visitor::walk_except_handler(self, handler);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let name = alias
            .asname
            .as_ref()
            .map_or_else(|| alias.name.as_str().split('.').next().unwrap_or_default(), |name| name.as_str());
        self.scope.bound_otherwise.insert(name);
    }

    fn visit_interpolated_string_element(&mut self, element: &'a InterpolatedStringElement) {
        match element {
            // `{x=}` prints its own source.
            InterpolatedStringElement::Interpolation(inner) => self.refused |= inner.debug_text.is_some(),
            InterpolatedStringElement::Literal(literal) => {
                self.scope.words.extend(words_of(&literal.value).into_iter().map(str::to_owned));
            }
        }
        visitor::walk_interpolated_string_element(self, element);
    }
}
