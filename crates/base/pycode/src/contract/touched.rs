//! What a test or an observer touches: imports, attributes, keyword arguments, strings.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Parameter, Stmt};
use ruff_text_size::Ranged;

use super::embedded::code_in;
use super::reflected::is_path;
use super::top_level::add_imports;
use super::typed::{Typed, typed_attributes};
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
    /// Those of them that are dotted names: `mock.patch("package.module.Name")`.
    pub paths: BTreeMap<String, usize>,
    /// Names of attributes that are given as strings, of objects that are not known: `getattr(x, "name")`.
    pub spelled: BTreeMap<String, usize>,
}

impl Touched {
    /// Reads it off a parsed file.
    pub fn of(module: &Module) -> Touched {
        let mut found = Finder {
            module,
            names: BTreeMap::new(),
            stars: Vec::new(),
            loaded: BTreeMap::new(),
            bound: BTreeSet::new(),
            touched: Touched { file: module.path().to_owned(), ..Touched::default() },
        };
        found.visit_body(module.body());
        let Finder { names, stars, mut loaded, bound, mut touched, .. } = found;
        // What the file binds nowhere may be what any `import *` binds.
        loaded.retain(|name, _| !names.contains_key(name) && !bound.contains(name));
        let mut readings = Vec::new();
        for star in stars.iter().filter(|star| !star.starts_with('.')) {
            let mut starred = names.clone();
            for (name, line) in &loaded {
                let path = format!("{star}.{name}");
                note(&mut touched.imports, &path, *line);
                starred.insert(name.clone(), path);
            }
            readings.push(starred);
        }
        if readings.is_empty() {
            readings.push(names);
        }
        for names in readings {
            // Names are bound inside functions, too, in any order: what they reach is looked for once all are known.
            let typed = typed_attributes(module, &names);
            let mut reached = Reached { module, names, touched };
            reached.visit_body(module.body());
            touched = reached.touched;
            touched.add(typed);
        }
        touched
    }

    fn add(&mut self, typed: Typed) {
        add(&mut self.typed, typed.made);
        add(&mut self.within, typed.within);
        add(&mut self.imports, typed.named);
        add(&mut self.calls, typed.calls);
        add(&mut self.spelled, typed.spelled);
        add(&mut self.own, typed.own);
    }

    /// Adds what code in a string touches; its first line and its last one stand on these of the file.
    fn add_code(&mut self, code: Touched, first: usize, last: usize) {
        fn moved<K: Ord>(map: BTreeMap<K, usize>, first: usize, last: usize) -> BTreeMap<K, usize> {
            map.into_iter().map(|(key, line)| (key, (first + line - 1).min(last))).collect()
        }
        add(&mut self.imports, moved(code.imports, first, last));
        add(&mut self.attributes, moved(code.attributes, first, last));
        add(&mut self.own, moved(code.own, first, last));
        add(&mut self.keywords, moved(code.keywords, first, last));
        add(&mut self.calls, moved(code.calls, first, last));
        add(&mut self.typed, moved(code.typed, first, last));
        add(&mut self.within, moved(code.within, first, last));
        add(&mut self.strings, moved(code.strings, first, last));
        add(&mut self.paths, moved(code.paths, first, last));
        add(&mut self.spelled, moved(code.spelled, first, last));
    }

    /// The line where a word is touched in any way, if it is.
    pub fn line_of(&self, word: &str) -> Option<usize> {
        let imported = self
            .imports
            .iter()
            .chain(&self.paths)
            .find(|(name, _)| name.split('.').any(|part| part == word))
            .map(|(_, line)| line);
        let lines = [
            self.attributes.get(word),
            self.keywords.get(word),
            self.strings.get(word),
            self.spelled.get(word),
            imported,
        ];
        lines.into_iter().flatten().min().copied()
    }
}

/// The words of a text that a call parts: `"-n --old=3".split()`, `shlex.split("-n")`, `run("tool -n", shell=True)`.
fn split_words(call: &ExprCall) -> Vec<&str> {
    let name = dotted(&call.func);
    let first = call.arguments.args.first();
    let parted = match &*call.func {
        Expr::Attribute(method)
            if method.value.is_string_literal_expr() && method.attr.as_str() == "split" =>
        {
            first.is_none().then_some(&*method.value)
        }
        _ => {
            let shell = call.arguments.find_keyword("shell").is_some() || name == ["os", "system"];
            first.filter(|_| shell || name == ["shlex", "split"])
        }
    };
    let literal = parted.and_then(Expr::as_string_literal_expr);
    literal.map_or(Vec::new(), |literal| literal.value.to_str().split_whitespace().collect())
}

fn add<K: Ord>(map: &mut BTreeMap<K, usize>, more: BTreeMap<K, usize>) {
    for (key, line) in more {
        map.entry(key).or_insert(line);
    }
}

fn note(map: &mut BTreeMap<String, usize>, name: &str, line: usize) {
    map.entry(name.to_owned()).or_insert(line);
}

struct Finder<'m> {
    module: &'m Module,
    /// Local names of what is imported.
    names: BTreeMap<String, String>,
    /// Modules of which everything is imported.
    stars: Vec<String>,
    /// Names that are read, with the first line that does.
    loaded: BTreeMap<String, usize>,
    /// Names that the file binds by other ways than imports.
    bound: BTreeSet<String>,
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
            Stmt::FunctionDef(function) => {
                self.bound.insert(function.name.to_string());
            }
            Stmt::ClassDef(class) => {
                self.bound.insert(class.name.to_string());
            }
            _ => {}
        }
        add_imports(statement, &mut self.names, &mut self.stars);
        visitor::walk_stmt(self, statement);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bound.insert(parameter.name.to_string());
        visitor::walk_parameter(self, parameter);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                let line = self.line(name);
                note(&mut self.loaded, &name.id, line);
            }
            Expr::Name(name) => {
                self.bound.insert(name.id.to_string());
            }
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
                for word in split_words(call) {
                    let line = self.line(call);
                    note(&mut self.touched.strings, word, line);
                }
            }
            Expr::StringLiteral(string) => {
                let line = self.line(string);
                let text = string.value.to_str();
                note(&mut self.touched.strings, text, line);
                // `package.module:Name` is what entry points are called by.
                let path = text.replacen(':', ".", 1);
                if path.contains('.') && is_path(&path) {
                    note(&mut self.touched.paths, &path, line);
                }
                if let Some(code) = code_in(text) {
                    let last = self.module.line_column(string.end().to_usize()).0;
                    self.touched.add_code(Touched::of(&code), line, last);
                }
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
