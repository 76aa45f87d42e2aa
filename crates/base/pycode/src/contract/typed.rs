//! Attributes of objects whose class a test shows: made by a call of what it imports, under a name or an attribute
//! that is bound to nothing else; and of objects that are reached from such ones, whose class is not known.

use std::collections::{BTreeMap, HashMap};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Parameters, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::definitions::dotted;
use crate::module::Module;

/// Methods that give back the object itself, by the custom of tensors and modules.
const SAME: [&str; 10] =
    ["to", "train", "eval", "cuda", "cpu", "float", "half", "bfloat16", "double", "requires_grad_"];

/// Builtins that give back what their arguments hold.
const HANDED_ON: [&str; 12] = [
    "enumerate",
    "filter",
    "frozenset",
    "iter",
    "list",
    "max",
    "min",
    "next",
    "reversed",
    "set",
    "sorted",
    "tuple",
];

/// What an expression is known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// The result of calling what has this absolute dotted name.
    Made(String),
    /// Reached from an object that calling this made: an element, an attribute, what a method or `with` gives.
    Within(String),
    /// Another name of a dotted expression, such as `rank.state`.
    Alias(String),
    /// Bound to several things.
    Unclear,
}

/// `(what was called to make it, attribute)` with the line of the first access.
pub(crate) type Accessed = BTreeMap<(String, String), usize>;

/// Attributes of objects that are made by known calls.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    /// Of these objects themselves.
    pub made: Accessed,
    /// Of what is reached from them.
    pub within: Accessed,
}

/// Reads them off a file. `names` are its imports.
pub(crate) fn typed_attributes(module: &Module, names: &BTreeMap<String, String>) -> Typed {
    let mut reader = Reader {
        module,
        names,
        fixtures: HashMap::new(),
        attributes: HashMap::new(),
        found: Typed::default(),
    };
    // Twice: what one function keeps under an attribute, another reads, in any order.
    for _ in 0..2 {
        reader.found = Typed::default();
        reader.scope(module.body(), None, &HashMap::new());
    }
    reader.found
}

struct Reader<'m> {
    module: &'m Module,
    names: &'m BTreeMap<String, String>,
    /// What functions of the file return: pytest passes a fixture's result under its name.
    fixtures: HashMap<String, Known>,
    /// What dotted expressions are bound to, in all of the file.
    attributes: HashMap<String, Known>,
    found: Typed,
}

type Bound = HashMap<String, Known>;

fn bind(bound: &mut Bound, name: String, known: Option<Known>) {
    let known = known.unwrap_or(Known::Unclear);
    match bound.get(&name) {
        Some(before) if *before != known => bound.insert(name, Known::Unclear),
        _ => bound.insert(name, known),
    };
}

impl Reader<'_> {
    /// Reads one scope: its bindings first, then what it accesses, then the functions in it.
    fn scope(&mut self, body: &[Stmt], parameters: Option<&Parameters>, outer: &Bound) {
        let mut bound = outer.clone();
        for parameter in parameters.into_iter().flat_map(Parameters::iter) {
            let name = parameter.name().to_string();
            // `self.pool` is what some method of the file bound it to; where methods differ, it is unclear.
            if ["self", "cls"].contains(&name.as_str()) {
                continue;
            }
            let known = self.fixtures.get(&name).cloned().unwrap_or(Known::Unclear);
            bound.insert(name, known);
        }
        let mut bindings = Bindings::default();
        bindings.visit_body(body);
        let mut own = Bound::new();
        for (target, value) in &bindings.assigned {
            let known = self.source(*value, &bound);
            match target {
                Expr::Name(name) => {
                    bind(&mut own, name.id.to_string(), known.clone());
                    bound.insert(name.id.to_string(), own[name.id.as_str()].clone());
                }
                Expr::Attribute(_) => {
                    if let Some(path) = self.path(target, &bound) {
                        bind(&mut self.attributes, path, known);
                    }
                }
                _ => {}
            }
        }
        let mut accesses = Accesses { reader: self, bound: &bound };
        accesses.visit_body(body);
        for function in bindings.functions {
            self.scope(&function.body, Some(&function.parameters), &bound);
            if let Some(value) = returned(function) {
                let mut inner = bound.clone();
                let mut bindings = Bindings::default();
                bindings.visit_body(&function.body);
                for (target, value) in &bindings.assigned {
                    if let Expr::Name(name) = target {
                        let known = self.source(*value, &inner);
                        bind(&mut inner, name.id.to_string(), known);
                    }
                }
                if let Some(known) = self.known(value, &inner) {
                    self.fixtures.insert(function.name.to_string(), known);
                }
            }
        }
    }

    /// A dotted expression with its first name's alias put in its place.
    fn path(&self, expr: &Expr, bound: &Bound) -> Option<String> {
        let parts = dotted(expr);
        let (first, rest) = parts.split_first()?;
        let first = match bound.get(*first) {
            Some(Known::Alias(path)) => path.as_str(),
            Some(_) => return None,
            None => first,
        };
        Some(std::iter::once(first).chain(rest.iter().copied()).collect::<Vec<_>>().join("."))
    }

    fn source(&self, source: Source<'_>, bound: &Bound) -> Option<Known> {
        match source {
            Source::Whole(value) => self.known(value, bound),
            Source::Part(value) => self.root(value, bound).map(Known::Within),
            Source::Unknown => None,
        }
    }

    /// What was called to make the object that an expression is, or is reached from.
    fn root(&self, expr: &Expr, bound: &Bound) -> Option<String> {
        if let Expr::Call(call) = expr
            && let Expr::Name(name) = &*call.func
            && (HANDED_ON.contains(&name.id.as_str()) || ["zip", "map"].contains(&name.id.as_str()))
            && !bound.contains_key(name.id.as_str())
        {
            return call.arguments.args.iter().find_map(|argument| self.root(argument, bound));
        }
        match self.known(expr, bound)? {
            Known::Made(root) | Known::Within(root) => Some(root),
            Known::Alias(_) | Known::Unclear => None,
        }
    }

    fn known(&self, expr: &Expr, bound: &Bound) -> Option<Known> {
        match expr {
            Expr::Name(name) => bound.get(name.id.as_str()).cloned(),
            Expr::Attribute(attribute) => {
                let path = self.path(expr, bound);
                if let Some(known) = path.as_ref().and_then(|path| self.attributes.get(path)) {
                    return Some(known.clone());
                }
                let within = self.root(&attribute.value, bound).map(Known::Within);
                within.or_else(|| path.map(Known::Alias))
            }
            Expr::Subscript(subscript) => self.root(&subscript.value, bound).map(Known::Within),
            Expr::Starred(starred) => self.known(&starred.value, bound),
            Expr::Await(awaited) => self.known(&awaited.value, bound),
            Expr::Call(call) => {
                if let Expr::Attribute(method) = &*call.func
                    && SAME.contains(&method.attr.as_str())
                    && let Some(Known::Made(of)) = self.known(&method.value, bound)
                {
                    return Some(Known::Made(of));
                }
                if let Expr::Attribute(method) = &*call.func
                    && let Some(root) = self.root(&method.value, bound)
                {
                    return Some(Known::Within(root));
                }
                if let Expr::Name(name) = &*call.func
                    && HANDED_ON.contains(&name.id.as_str())
                    && !self.names.contains_key(name.id.as_str())
                    && !self.fixtures.contains_key(name.id.as_str())
                {
                    return self.root(expr, bound).map(Known::Within);
                }
                let parts = dotted(&call.func);
                let first = parts.first()?;
                // A name of the file's own hides what is imported under it.
                if bound.contains_key(*first) {
                    return None;
                }
                if parts.len() == 1
                    && let Some(made) = self.fixtures.get(*first)
                {
                    return Some(made.clone());
                }
                let target = self.names.get(*first).filter(|target| !target.starts_with('.'))?;
                let full = std::iter::once(target.as_str()).chain(parts[1..].iter().copied());
                Some(Known::Made(full.collect::<Vec<_>>().join(".")))
            }
            _ => None,
        }
    }
}

/// What a function returns, where all that it does in the end is to return it.
fn returned(function: &StmtFunctionDef) -> Option<&Expr> {
    match function.body.last()? {
        Stmt::Return(returned) => returned.value.as_deref(),
        _ => None,
    }
}

/// Where the value of a target comes from.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// It is this.
    Whole(&'a Expr),
    /// It is an element of this, or what entering this gives.
    Part(&'a Expr),
    Unknown,
}

/// Assignments and functions of one scope.
#[derive(Default)]
struct Bindings<'a> {
    assigned: Vec<(&'a Expr, Source<'a>)>,
    functions: Vec<&'a StmtFunctionDef>,
}

impl<'a> Bindings<'a> {
    fn targets(&mut self, target: &'a Expr, source: Source<'a>) {
        match target {
            Expr::Tuple(tuple) => self.unpacked(&tuple.elts, source),
            Expr::List(list) => self.unpacked(&list.elts, source),
            Expr::Starred(starred) => self.targets(&starred.value, source),
            _ => self.assigned.push((target, source)),
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
                return self.visit_body(&class.body);
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

struct Accesses<'r, 'm> {
    reader: &'r mut Reader<'m>,
    bound: &'r Bound,
}

impl<'a> Visitor<'a> for Accesses<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !statement.is_function_def_stmt() {
            visitor::walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Attribute(attribute) = expr
            && let Some(known) = self.reader.known(&attribute.value, self.bound)
        {
            let line = self.reader.module.line_column(attribute.attr.start().to_usize()).0;
            let found = &mut self.reader.found;
            let (map, by) = match known {
                Known::Made(by) => (&mut found.made, by),
                Known::Within(by) => (&mut found.within, by),
                Known::Alias(_) | Known::Unclear => return visitor::walk_expr(self, expr),
            };
            map.entry((by, attribute.attr.to_string())).or_insert(line);
        }
        visitor::walk_expr(self, expr);
    }
}
