//! Which functions run while their modules are imported, as far as names tell: decorators, registrations, instances made
//! at module level, hooks of class creation, and what those call in turn. A hollow tree must import, so these stay.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};

use crate::definitions::{Node, Scope, bases, decorator_name, dotted, walk};
use crate::hollow::QualifiedName;
use crate::module::Module;

const ON_INSTANCE: [&str; 4] = ["__init__", "__new__", "__post_init__", "__set_name__"];
const ON_WITH: [&str; 2] = ["__enter__", "__exit__"];
const ON_ENUM: [&str; 3] = ["__init__", "__new__", "_generate_next_value_"];
const ON_METACLASS: [&str; 4] = ["__new__", "__init__", "__prepare__", "__call__"];

/// The functions of `modules` that importing one of them would call. Names are resolved within a file and through its
/// imports to the other files given; calls through containers, arguments or files not given are not seen.
pub(crate) fn runs_on_import(modules: &[Module]) -> HashSet<QualifiedName> {
    let mut reach = Reach { files: modules.iter().map(File::of).collect(), ..Reach::default() };
    for (at, module) in modules.iter().enumerate() {
        let mut calls = Calls::default();
        calls.visit_body(module.body());
        reach.follow(at, None, calls);
    }
    while let Some((at, name)) = reach.queue.pop() {
        if let Some(function) = reach.files[at].functions.get(name.as_str()).copied() {
            let mut calls = Calls::default();
            calls.visit_body(&function.body);
            reach.follow(at, Some(&name), calls);
        }
    }
    let path = |at: usize| reach.files[at].path.to_owned();
    reach.seen.iter().map(|(at, name)| QualifiedName { path: path(*at), name: name.clone() }).collect()
}

/// What one file defines and imports.
struct File<'a> {
    path: &'a str,
    functions: HashMap<String, &'a StmtFunctionDef>,
    classes: HashMap<String, &'a StmtClassDef>,
    /// Local name to the dotted name that it was imported as.
    imports: HashMap<&'a str, Vec<&'a str>>,
    /// Module-level variables to the dotted name of what was called to make them.
    instances: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> File<'a> {
    fn of(module: &'a Module) -> File<'a> {
        let mut file = File {
            path: module.path(),
            functions: HashMap::new(),
            classes: HashMap::new(),
            imports: HashMap::new(),
            instances: HashMap::new(),
        };
        walk(module.body(), &Scope::module(), &mut |site| {
            let name = site.qualified_name.clone();
            match site.node {
                Node::Function(function) => {
                    file.functions.insert(name, function);
                }
                Node::Class(class) => {
                    file.classes.insert(name, class);
                }
            }
            true
        });
        let mut statements: Vec<&'a Stmt> = module.body().iter().collect();
        while let Some(statement) = statements.pop() {
            file.note(statement);
            statements.extend(crate::definitions::blocks(statement).into_iter().flatten());
        }
        file
    }

    fn note(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let full: Vec<&str> = alias.name.split('.').collect();
                    let (local, full) = match &alias.asname {
                        Some(local) => (local.as_str(), full),
                        None => (full[0], vec![full[0]]),
                    };
                    self.imports.insert(local, full);
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    let mut full: Vec<&str> = import.module.iter().flat_map(|m| m.split('.')).collect();
                    full.push(alias.name.as_str());
                    self.imports.insert(alias.asname.as_ref().unwrap_or(&alias.name).as_str(), full);
                }
            }
            Stmt::Assign(assign) => {
                if let ([Expr::Name(target)], Expr::Call(call)) = (assign.targets.as_slice(), &*assign.value)
                {
                    self.instances.insert(target.id.as_str(), dotted(&call.func));
                }
            }
            _ => {}
        }
    }

    /// The last part of the file's module name: the stem, or the folder's name of an `__init__.py`.
    fn module_name(&self) -> &str {
        let path = self.path.strip_suffix(".py").unwrap_or(self.path);
        let path = path.strip_suffix("/__init__").unwrap_or(path);
        path.rsplit('/').next().unwrap_or(path)
    }
}

#[derive(Default)]
struct Reach<'a> {
    files: Vec<File<'a>>,
    seen: HashSet<(usize, String)>,
    queue: Vec<(usize, String)>,
}

impl<'a> Reach<'a> {
    /// Marks what the calls of one place reach; `within` is the function that makes them.
    fn follow(&mut self, at: usize, within: Option<&str>, calls: Calls<'a>) {
        let method = within.map(|name| name.split_once(".<locals>").map_or(name, |(outer, _)| outer));
        let class = method.and_then(|name| name.rsplit_once('.')).map(|(class, _)| class);
        for factory in &calls.factories {
            for (file, name) in self.resolve_within(at, within, factory) {
                self.mark_inner(file, &name);
            }
        }
        for callee in &calls.called {
            if let (["self" | "cls", method], Some(class)) = (callee.as_slice(), class) {
                self.mark_method(at, class, method, &mut HashSet::new());
                continue;
            }
            for (file, name) in self.resolve_within(at, within, callee) {
                self.mark(file, &name);
            }
        }
        for entered in &calls.entered {
            for (file, name) in self.resolve(at, entered) {
                for method in ON_WITH {
                    self.mark_method(file, &name, method, &mut HashSet::new());
                }
            }
        }
        for created in calls.classes {
            self.create(at, created);
        }
    }

    /// What creating a class runs: its bases' hooks, its metaclass, its members if it is an enum.
    fn create(&mut self, at: usize, class: &'a StmtClassDef) {
        for base in bases(class) {
            for (file, name) in self.resolve(at, &base) {
                self.mark_method(file, &name, "__init_subclass__", &mut HashSet::new());
            }
            if base.last().is_some_and(|name| name.ends_with("Enum") || name.ends_with("Flag")) {
                for method in ON_ENUM {
                    self.mark_method(at, class.name.as_str(), method, &mut HashSet::new());
                }
            }
        }
        let keywords = class.arguments.iter().flat_map(|arguments| arguments.keywords.iter());
        for keyword in keywords.filter(|k| k.arg.as_ref().is_some_and(|name| name == "metaclass")) {
            for (file, name) in self.resolve(at, &dotted(&keyword.value)) {
                for method in ON_METACLASS {
                    self.mark_method(file, &name, method, &mut HashSet::new());
                }
            }
        }
    }

    fn mark(&mut self, at: usize, name: &str) {
        if self.files[at].classes.contains_key(name) {
            for method in ON_INSTANCE {
                self.mark_method(at, name, method, &mut HashSet::new());
            }
        } else if self.files[at].functions.contains_key(name) && self.seen.insert((at, name.to_owned())) {
            self.queue.push((at, name.to_owned()));
        }
    }

    /// Marks the functions right inside one, which a decorator with arguments returns to be called.
    fn mark_inner(&mut self, at: usize, name: &str) {
        let prefix = format!("{name}.<locals>.");
        let is_inner = |inner: &&String| inner.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('.'));
        let inner: Vec<String> = self.files[at].functions.keys().filter(is_inner).cloned().collect();
        for name in inner {
            self.mark(at, &name);
        }
    }

    /// Marks a method where the class or one of its bases defines it.
    fn mark_method(&mut self, at: usize, class: &str, method: &str, visited: &mut HashSet<(usize, String)>) {
        if !visited.insert((at, class.to_owned())) {
            return;
        }
        let name = format!("{class}.{method}");
        if self.files[at].functions.contains_key(&name) {
            self.mark(at, &name);
        }
        let Some(class) = self.files[at].classes.get(class).copied() else { return };
        for base in bases(class) {
            for (file, base) in self.resolve(at, &base) {
                self.mark_method(file, &base, method, visited);
            }
        }
    }

    /// What a name means in a function: one of its own definitions or of the functions around it, else the module's.
    fn resolve_within(&self, at: usize, within: Option<&str>, callee: &[&str]) -> Vec<(usize, String)> {
        let mut scope = within;
        while let Some(name) = scope {
            let local = format!("{name}.<locals>.{}", callee.join("."));
            if self.files[at].functions.contains_key(&local) || self.files[at].classes.contains_key(&local) {
                return vec![(at, local)];
            }
            scope = name.rsplit_once(".<locals>.").map(|(outer, _)| outer);
        }
        self.resolve(at, callee)
    }

    /// The functions and classes that a dotted name may mean in a file.
    fn resolve(&self, at: usize, callee: &[&str]) -> Vec<(usize, String)> {
        self.resolve_through(at, callee, true)
    }

    /// `instances`: whether the first name may be a variable; looked through once, since variables may name each other.
    fn resolve_through(&self, at: usize, callee: &[&str], instances: bool) -> Vec<(usize, String)> {
        let Some(first) = callee.first() else { return Vec::new() };
        let file = &self.files[at];
        let local = callee.join(".");
        if file.functions.contains_key(&local) || file.classes.contains_key(&local) {
            return vec![(at, local)];
        }
        if let Some(made_by) = file.instances.get(first)
            && instances
            && callee.len() > 1
            && !made_by.is_empty()
        {
            let of_class = made_by.iter().chain(&callee[1..]).copied().collect::<Vec<_>>();
            return self.resolve_through(at, &of_class, false);
        }
        let Some(imported) = file.imports.get(first) else { return Vec::new() };
        let full: Vec<&str> = imported.iter().chain(&callee[1..]).copied().collect();
        let mut found = Vec::new();
        for (at, file) in self.files.iter().enumerate() {
            for (split, module) in full.iter().enumerate().rev() {
                let rest = full[split + 1..].join(".");
                let known = file.functions.contains_key(&rest) || file.classes.contains_key(&rest);
                if known && (*module == file.module_name() || self.is_package_of(module, file)) {
                    found.push((at, rest));
                    break;
                }
            }
        }
        found
    }

    /// Whether `module` is a folder above the file, which may offer the file's names as its own.
    fn is_package_of(&self, module: &str, file: &File<'_>) -> bool {
        file.path.split('/').rev().skip(1).any(|folder| folder == module)
    }
}

/// The calls made by running a block, without the bodies of the functions it defines.
#[derive(Default)]
struct Calls<'a> {
    called: Vec<Vec<&'a str>>,
    /// Called to make a decorator, whose result is called in turn.
    factories: Vec<Vec<&'a str>>,
    entered: Vec<Vec<&'a str>>,
    classes: Vec<&'a StmtClassDef>,
}

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                for decorator in &function.decorator_list {
                    self.visit_decorator(decorator);
                }
                self.visit_parameters(&function.parameters);
            }
            Stmt::ClassDef(class) => {
                self.classes.push(class);
                visitor::walk_stmt(self, statement);
            }
            Stmt::If(conditional) if never_on_import(&conditional.test) => {
                for clause in &conditional.elif_else_clauses {
                    self.visit_body(&clause.body);
                }
            }
            Stmt::With(with) => {
                for item in &with.items {
                    if let Expr::Call(call) = &item.context_expr {
                        self.entered.push(dotted(&call.func));
                    }
                }
                visitor::walk_stmt(self, statement);
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_decorator(&mut self, decorator: &'a ruff_python_ast::Decorator) {
        let name = decorator_name(decorator);
        if decorator.expression.is_call_expr() {
            self.factories.push(name.clone());
        }
        self.called.push(name);
        visitor::walk_decorator(self, decorator);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Lambda(_) => return,
            Expr::Call(call) => self.called.push(dotted(&call.func)),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

/// `__name__ == "__main__"` and `TYPE_CHECKING`.
fn never_on_import(test: &Expr) -> bool {
    match test {
        Expr::Compare(compare) => compare.left.as_name_expr().is_some_and(|name| name.id == "__name__"),
        other => dotted(other).last() == Some(&"TYPE_CHECKING"),
    }
}
