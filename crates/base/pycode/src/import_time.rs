//! Which functions run while their modules are imported, as far as names tell: decorators, registrations, instances made
//! at module level, hooks of class creation, what Python calls by protocol, and what those call in turn. A hollow tree must
//! import, so these stay.

mod calls;
mod file;

use std::collections::HashSet;

use ruff_python_ast::StmtClassDef;
use ruff_python_ast::visitor::Visitor;

use self::calls::Calls;
use self::file::File;
use crate::definitions::{bases, dotted};
use crate::hollow::QualifiedName;
use crate::module::Module;

const ON_WITH: [&str; 2] = ["__enter__", "__exit__"];
/// Functions of a module that `from module import name` asks, for `__path__` even where the name is there.
const OF_MODULE: [&str; 2] = ["__getattr__", "__dir__"];
/// Methods that creating, subscripting or deriving from a class calls, without an instance of it.
const OF_CLASS: [&str; 9] = [
    "__set_name__",
    "__init_subclass__",
    "__subclasshook__",
    "__instancecheck__",
    "__subclasscheck__",
    "__class_getitem__",
    "__mro_entries__",
    "_missing_",
    "_generate_next_value_",
];

/// The functions of `modules` that importing one of them would call. Names are resolved within a file and through its
/// imports to the other files given. Of a class that code run on import makes an instance of, all that Python calls by
/// protocol (`__hash__`, `__get__`, …) counts, and what has the name of an attribute that such code reads (a property, a method
/// of what a call returned). Calls through containers, arguments or files not given are not seen.
pub(crate) fn runs_on_import(modules: &[Module]) -> HashSet<QualifiedName> {
    let mut reach = Reach { files: modules.iter().map(File::of).collect(), ..Reach::default() };
    for (at, module) in modules.iter().enumerate() {
        reach.begin(at);
        let mut calls = Calls::default();
        calls.visit_body(module.body());
        reach.follow(at, None, calls);
    }
    while let Some((at, name)) = reach.queue.pop() {
        for function in reach.files[at].functions.get(name.as_str()).cloned().unwrap_or_default() {
            let mut calls = Calls::default();
            calls.visit_body(&function.body);
            reach.follow(at, Some(&name), calls);
        }
    }
    let path = |at: usize| reach.files[at].path.to_owned();
    reach.seen.iter().map(|(at, name)| QualifiedName { path: path(*at), name: name.clone() }).collect()
}

/// A definition: the number of its file, its qualified name.
type Place = (usize, String);

#[derive(Default)]
struct Reach<'a> {
    files: Vec<File<'a>>,
    seen: HashSet<Place>,
    queue: Vec<Place>,
    /// Classes that have instances, and their bases.
    made: HashSet<Place>,
    /// Attributes that are read, of whatever may be an instance.
    read: HashSet<&'a str>,
    /// Those of them whose result is called to decorate.
    factories: HashSet<&'a str>,
}

impl<'a> Reach<'a> {
    /// Marks what Python calls of a file whatever its code does.
    fn begin(&mut self, at: usize) {
        let file = &self.files[at];
        let mut names: Vec<String> = OF_MODULE.map(str::to_owned).to_vec();
        let mut metaclasses = Vec::new();
        for (class, methods) in &file.methods {
            let hooks = methods.iter().filter(|method| OF_CLASS.contains(method));
            names.extend(hooks.map(|method| format!("{class}.{method}")));
            if file.classes.get(class).is_some_and(|definition| file::is_metaclass(definition)) {
                metaclasses.push(class.clone());
            }
        }
        for name in names {
            self.mark(at, &name);
        }
        for class in metaclasses {
            self.make(at, &class);
        }
    }

    /// Marks what the calls of one place reach; `within` is the function that makes them.
    fn follow(&mut self, at: usize, within: Option<&str>, calls: Calls<'a>) {
        let method = within.map(|name| name.split_once(".<locals>").map_or(name, |(outer, _)| outer));
        let class = method.and_then(|name| name.rsplit_once('.')).map(|(class, _)| class);
        for factory in &calls.factories {
            for (file, name) in self.resolve_within(at, within, factory) {
                self.mark_inner(file, &name);
            }
            if let [_, .., attribute] = factory.as_slice() {
                self.factories.insert(attribute);
            }
        }
        for (receiver, attribute) in &calls.attributes {
            if self.is_foreign(at, receiver) {
                continue;
            }
            self.read_attribute(attribute);
            let full: Vec<&str> = receiver.iter().chain([attribute]).copied().collect();
            for (file, name) in self.resolve_within(at, within, &full) {
                if !receiver.is_empty() && self.files[file].runs_when_read(&name) {
                    self.mark(file, &name);
                }
            }
        }
        for callee in &calls.called {
            match (callee.as_slice(), class) {
                (["self", method], Some(class)) => {
                    self.mark_method(at, class, method, &mut HashSet::new());
                }
                (["cls", method], Some(class)) => {
                    for (file, class) in self.with_derived(at, class) {
                        self.mark_method(file, &class, method, &mut HashSet::new());
                    }
                }
                (["cls"], Some(class)) => {
                    for (file, class) in self.with_derived(at, class) {
                        self.make(file, &class);
                    }
                }
                _ => {
                    for (file, name) in self.resolve_within(at, within, callee) {
                        self.mark(file, &name);
                    }
                }
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

    /// What creating a class runs, its hooks apart: its metaclass, its members if it is an enum.
    fn create(&mut self, at: usize, class: &'a StmtClassDef) {
        if bases(class)
            .any(|base| base.last().is_some_and(|name| name.ends_with("Enum") || name.ends_with("Flag")))
        {
            let known = &self.files[at].classes;
            let name =
                known.iter().find(|(_, known)| std::ptr::eq(**known, class)).map(|(name, _)| name.clone());
            if let Some(name) = name {
                self.make(at, &name);
            }
        }
        let keywords = class.arguments.iter().flat_map(|arguments| arguments.keywords.iter());
        for keyword in keywords.filter(|k| k.arg.as_ref().is_some_and(|name| name == "metaclass")) {
            for (file, name) in self.resolve(at, &dotted(&keyword.value)) {
                self.mark(file, &name);
            }
        }
    }

    fn mark(&mut self, at: usize, name: &str) {
        if self.files[at].classes.contains_key(name) {
            self.make(at, name);
        } else if self.files[at].functions.contains_key(name) && self.seen.insert((at, name.to_owned())) {
            self.queue.push((at, name.to_owned()));
            if self.files[at].dispatches(name) {
                for (file, registered) in self.registered_with(at, name) {
                    self.mark(file, &registered);
                }
            }
        }
    }

    /// The implementations that a dispatching function may choose from.
    fn registered_with(&self, at: usize, dispatcher: &str) -> Vec<Place> {
        let mut found = Vec::new();
        for (from, file) in self.files.iter().enumerate() {
            for (by, name) in &file.registered {
                let class = name.rsplit_once('.').map_or("", |(class, _)| class);
                let beside = !class.is_empty() && format!("{class}.{}", by.join(".")) == dispatcher;
                let is_it = |(file, name): &Place| *file == at && name == dispatcher;
                if from == at && beside || self.resolve_within(from, Some(name), by).iter().any(is_it) {
                    found.push((from, name.clone()));
                }
            }
        }
        found
    }

    /// Marks a class as one that has instances, and its bases with it: what Python calls of them by protocol runs, and what has
    /// the name of an attribute that is read.
    fn make(&mut self, at: usize, class: &str) {
        if !self.made.insert((at, class.to_owned())) {
            return;
        }
        for method in self.files[at].methods.get(class).cloned().unwrap_or_default() {
            let by_protocol = method.starts_with("__") && method.ends_with("__") || method == "mro";
            if by_protocol || self.read.contains(method) {
                self.mark_read(at, class, method);
            }
        }
        let Some(class) = self.files[at].classes.get(class).copied() else { return };
        for base in bases(class) {
            for (file, base) in self.resolve(at, &base) {
                self.make(file, &base);
            }
        }
    }

    fn read_attribute(&mut self, attribute: &'a str) {
        if !self.read.insert(attribute) && !self.factories.contains(attribute) {
            return;
        }
        let has = |(at, class): &&Place| {
            self.files[*at].methods.get(class).is_some_and(|methods| methods.contains(&attribute))
        };
        let having: Vec<Place> = self.made.iter().filter(has).cloned().collect();
        for (at, class) in having {
            self.mark_read(at, &class, attribute);
        }
    }

    fn mark_read(&mut self, at: usize, class: &str, method: &str) {
        let name = format!("{class}.{method}");
        self.mark(at, &name);
        if self.factories.contains(method) {
            self.mark_inner(at, &name);
        }
    }

    /// A class and those given that derive from it, whichever of them `cls` is.
    fn with_derived(&self, at: usize, class: &str) -> Vec<Place> {
        let mut found = vec![(at, class.to_owned())];
        let mut next = 0;
        while next < found.len() {
            let of = found[next].clone();
            for (from, file) in self.files.iter().enumerate() {
                for (name, derived) in &file.classes {
                    let place = (from, name.clone());
                    if !found.contains(&place)
                        && bases(derived).any(|base| self.resolve(from, &base).contains(&of))
                    {
                        found.push(place);
                    }
                }
            }
            next += 1;
        }
        found
    }

    /// Whether a dotted name begins with a module that is none of the files given, nor lies in a folder of theirs.
    fn is_foreign(&self, at: usize, name: &[&str]) -> bool {
        let Some(imported) = name.first().and_then(|first| self.files[at].imports.get(first)) else {
            return false;
        };
        let ours = |module: &&str| {
            self.files.iter().any(|file| *module == file.module_name() || self.is_package_of(module, file))
        };
        !imported.iter().any(ours)
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
    fn mark_method(&mut self, at: usize, class: &str, method: &str, visited: &mut HashSet<Place>) {
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
    fn resolve_within(&self, at: usize, within: Option<&str>, callee: &[&str]) -> Vec<Place> {
        let mut scope = within;
        while let Some(name) = scope {
            let local = format!("{name}.<locals>.{}", callee.join("."));
            if self.files[at].has(&local) {
                return vec![(at, local)];
            }
            scope = name.rsplit_once(".<locals>.").map(|(outer, _)| outer);
        }
        self.resolve(at, callee)
    }

    /// The functions and classes that a dotted name may mean in a file.
    fn resolve(&self, at: usize, callee: &[&str]) -> Vec<Place> {
        self.resolve_through(at, callee, true)
    }

    /// `instances`: whether the first name may be a variable; looked through once, since variables may name each other.
    fn resolve_through(&self, at: usize, callee: &[&str], instances: bool) -> Vec<Place> {
        let Some(first) = callee.first() else { return Vec::new() };
        let file = &self.files[at];
        let local = callee.join(".");
        if file.has(&local) {
            return vec![(at, local)];
        }
        if let Some(name) = file.aliases.get(first)
            && instances
            && !name.is_empty()
        {
            let full = name.iter().chain(&callee[1..]).copied().collect::<Vec<_>>();
            return self.resolve_through(at, &full, false);
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
                if file.has(&rest) && (*module == file.module_name() || self.is_package_of(module, file)) {
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
