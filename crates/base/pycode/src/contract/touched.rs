//! What a test or an observer touches: imports, attributes, keyword arguments, strings.

use std::collections::BTreeMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprContext, Stmt};
use ruff_text_size::Ranged;

use super::outline::add_imports;
use super::typed::typed_attributes;
use crate::definitions::dotted;
use crate::module::Module;

/// What one file touches, each with the line where it stands first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// The file, as the caller named it.
    pub file: String,
    /// Absolute dotted names that are imported, or reached through what is imported: `package.module.Name`.
    pub imports: BTreeMap<String, usize>,
    /// Names of attributes that are read or called.
    pub attributes: BTreeMap<String, usize>,
    /// Names of attributes that the file itself sets: read again, they are the file's own.
    pub own: BTreeMap<String, usize>,
    /// Names of keyword arguments.
    pub keywords: BTreeMap<String, usize>,
    /// Keyword arguments of calls of what is imported: the callee's dotted name, then the keyword.
    pub calls: BTreeMap<(String, String), usize>,
    /// Attributes of objects whose making is seen: what was called, then the attribute.
    pub typed: BTreeMap<(String, String), usize>,
    /// Attributes of what is reached from such an object (an element, what a method gives, what `with` binds): what was called to
    /// make the object, then the attribute.
    pub within: BTreeMap<(String, String), usize>,
    /// Strings, apart from docstrings.
    pub strings: BTreeMap<String, usize>,
}

impl Touched {
    /// Reads it off a parsed file.
    pub fn of(module: &Module) -> Touched {
        let mut found = Finder {
            module,
            names: BTreeMap::new(),
            touched: Touched { file: module.path().to_owned(), ..Touched::default() },
        };
        found.visit_body(module.body());
        // Names are bound inside functions, too, in any order: what they reach is looked for once all are known.
        let typed = typed_attributes(module, &found.names);
        (found.touched.typed, found.touched.within) = (typed.made, typed.within);
        let mut reached = Reached { module, names: found.names, touched: found.touched };
        reached.visit_body(module.body());
        reached.touched
    }

    /// The line where a word is touched in any way, if it is.
    pub fn line_of(&self, word: &str) -> Option<usize> {
        let imported = self
            .imports
            .iter()
            .find(|(name, _)| name.split('.').any(|part| part == word))
            .map(|(_, line)| line);
        let lines = [self.attributes.get(word), self.keywords.get(word), self.strings.get(word), imported];
        lines.into_iter().flatten().min().copied()
    }
}

fn note(map: &mut BTreeMap<String, usize>, name: &str, line: usize) {
    map.entry(name.to_owned()).or_insert(line);
}

struct Finder<'m> {
    module: &'m Module,
    /// Local names of what is imported.
    names: BTreeMap<String, String>,
    touched: Touched,
}

impl Finder<'_> {
    fn line(&self, ranged: &impl Ranged) -> usize {
        self.module.line_column(ranged.start().to_usize()).0
    }
}

impl<'a> Visitor<'a> for Finder<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let line = self.line(alias);
                    note(&mut self.touched.imports, &alias.name, line);
                }
            }
            Stmt::ImportFrom(import) if import.level == 0 => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                for alias in &import.names {
                    let line = self.line(alias);
                    note(&mut self.touched.imports, &format!("{module}.{}", alias.name), line);
                }
            }
            Stmt::Expr(e) if e.value.is_string_literal_expr() => return,
            _ => {}
        }
        add_imports(statement, &mut self.names, &mut Vec::new());
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Attribute(attribute) => {
                let line = self.line(&attribute.attr);
                let map = match attribute.ctx {
                    ExprContext::Load => &mut self.touched.attributes,
                    _ => &mut self.touched.own,
                };
                note(map, &attribute.attr, line);
            }
            Expr::Call(call) => {
                for keyword in &call.arguments.keywords {
                    if let Some(name) = &keyword.arg {
                        let line = self.line(keyword);
                        note(&mut self.touched.keywords, name, line);
                    }
                }
            }
            Expr::StringLiteral(string) => {
                let line = self.line(string);
                note(&mut self.touched.strings, string.value.to_str(), line);
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

struct Reached<'m> {
    module: &'m Module,
    names: BTreeMap<String, String>,
    touched: Touched,
}

impl Reached<'_> {
    /// The absolute name of a dotted expression that begins with something imported.
    fn absolute(&self, expr: &Expr) -> Option<String> {
        let parts = dotted(expr);
        let target = self.names.get(*parts.first()?)?;
        if target.starts_with('.') {
            return None;
        }
        Some(std::iter::once(target.as_str()).chain(parts[1..].iter().copied()).collect::<Vec<_>>().join("."))
    }
}

impl<'a> Visitor<'a> for Reached<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        let line = self.module.line_column(expr.start().to_usize()).0;
        match expr {
            Expr::Attribute(_) => {
                if let Some(name) = self.absolute(expr) {
                    note(&mut self.touched.imports, &name, line);
                }
            }
            Expr::Call(call) => {
                if let Some(callee) = self.absolute(&call.func) {
                    for name in call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_ref()) {
                        self.touched.calls.entry((callee.clone(), name.to_string())).or_insert(line);
                    }
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
