//! What one file defines and imports, as far as names tell.

use std::collections::HashMap;

use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};

use crate::definitions::{Node, Scope, bases, blocks, decorator_name, dotted, is_decorated, walk};
use crate::module::Module;

pub(super) struct File<'a> {
    pub path: &'a str,
    /// By name; a property and its setter, or implementations that are all called `_`, share theirs.
    pub functions: HashMap<String, Vec<&'a StmtFunctionDef>>,
    pub classes: HashMap<String, &'a StmtClassDef>,
    /// What each class defines, by its last name.
    pub methods: HashMap<String, Vec<&'a str>>,
    /// Functions registered with a dispatcher (`@dispatcher.register`): its dotted name, and theirs.
    pub registered: Vec<(Vec<&'a str>, String)>,
    /// Local name to the dotted name that it was imported as.
    pub imports: HashMap<&'a str, Vec<&'a str>>,
    /// Module-level variables to the dotted name of what was called to make them.
    pub instances: HashMap<&'a str, Vec<&'a str>>,
    /// Module-level variables to the dotted name that they stand for.
    pub aliases: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> File<'a> {
    pub(super) fn of(module: &'a Module) -> File<'a> {
        let mut file = File {
            path: module.path(),
            functions: HashMap::new(),
            classes: HashMap::new(),
            methods: HashMap::new(),
            registered: Vec::new(),
            imports: HashMap::new(),
            instances: HashMap::new(),
            aliases: HashMap::new(),
        };
        walk(module.body(), &Scope::module(), &mut |site| {
            let name = site.qualified_name.clone();
            match site.node {
                Node::Function(function) => file.define(name, function),
                Node::Class(class) => {
                    file.classes.insert(name, class);
                }
            }
            true
        });
        let mut statements: Vec<&'a Stmt> = module.body().iter().collect();
        while let Some(statement) = statements.pop() {
            file.note(statement);
            statements.extend(blocks(statement).into_iter().flatten());
        }
        file
    }

    fn define(&mut self, name: String, function: &'a StmtFunctionDef) {
        for decorator in &function.decorator_list {
            if let [dispatcher @ .., "register"] = decorator_name(decorator).as_slice()
                && !dispatcher.is_empty()
            {
                self.registered.push((dispatcher.to_vec(), name.clone()));
            }
        }
        if let Some((class, _)) = name.rsplit_once('.')
            && self.classes.contains_key(class)
        {
            self.methods.entry(class.to_owned()).or_default().push(function.name.as_str());
        }
        self.functions.entry(name).or_default().push(function);
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
                if let [Expr::Name(target)] = assign.targets.as_slice() {
                    self.assign(target.id.as_str(), &assign.value);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let (Expr::Name(target), Some(value)) = (&*assign.target, &assign.value) {
                    self.assign(target.id.as_str(), value);
                }
            }
            _ => {}
        }
    }

    fn assign(&mut self, target: &'a str, value: &'a Expr) {
        match value {
            Expr::Call(call) => {
                self.instances.insert(target, dotted(&call.func));
            }
            Expr::Name(_) | Expr::Attribute(_) => {
                self.aliases.insert(target, dotted(value));
            }
            _ => {}
        }
    }

    /// Whether it defines this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name) || self.classes.contains_key(name)
    }

    /// Whether a function dispatches on its argument's type.
    pub(super) fn dispatches(&self, name: &str) -> bool {
        let dispatches =
            |function: &&StmtFunctionDef| is_decorated(function, &["singledispatch", "singledispatchmethod"]);
        self.functions.get(name).is_some_and(|functions| functions.iter().any(dispatches))
    }

    /// Whether a function runs where its name is read of a class.
    pub(super) fn runs_when_read(&self, name: &str) -> bool {
        let runs = |function: &&StmtFunctionDef| {
            function.decorator_list.iter().any(|decorator| {
                decorator_name(decorator).last().is_some_and(|last| last.to_lowercase().ends_with("property"))
            })
        };
        self.functions.get(name).is_some_and(|functions| functions.iter().any(runs))
    }

    /// The last part of the file's module name: the stem, or the folder's name of an `__init__.py`.
    pub(super) fn module_name(&self) -> &str {
        let path = self.path.strip_suffix(".py").unwrap_or(self.path);
        let path = path.strip_suffix("/__init__").unwrap_or(path);
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// Whether a class is one of classes: a metaclass.
pub(super) fn is_metaclass(class: &StmtClassDef) -> bool {
    bases(class).any(|base| {
        base.last().is_some_and(|name| *name == "type" || name.ends_with("Meta") || *name == "EnumType")
    })
}
