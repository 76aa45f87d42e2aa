//! Attributes of objects whose class a test shows: made by a call of what it imports, under a name or an attribute
//! that is bound to nothing else; and of objects that are reached from such ones, whose class is not known.

use std::collections::{BTreeMap, HashMap, HashSet};

use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{Expr, Parameters, Stmt, StmtFunctionDef};

use super::accesses::Accesses;
use super::bindings::{Bindings, Source};
use super::reflected::{literal, module_of, value_of};
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
pub(super) enum Known {
    /// The result of calling what has this absolute dotted name.
    Made(String),
    /// Reached from an object that calling this made: an element, an attribute, what a method or `with` gives.
    Within(String),
    /// Another name of a dotted expression, such as `rank.state`.
    Alias(String),
    /// What has this absolute dotted name: `importlib.import_module("toy.model")`.
    Named(String),
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
    /// Absolute dotted names of what is reached by other ways than the names of imports.
    pub named: BTreeMap<String, usize>,
    /// Keyword arguments of calls of such names.
    pub calls: Accessed,
    /// Names given as strings, of objects that are not known.
    pub spelled: BTreeMap<String, usize>,
    /// Those of them that the file sets itself.
    pub own: BTreeMap<String, usize>,
}

/// Reads them off a file. `names` are its imports.
pub(crate) fn typed_attributes(module: &Module, names: &BTreeMap<String, String>) -> Typed {
    let mut reader = Reader {
        module,
        names,
        fixtures: HashMap::new(),
        attributes: HashMap::new(),
        entered: HashSet::new(),
        found: Typed::default(),
    };
    // Twice: what one function keeps under an attribute, another reads, in any order.
    for _ in 0..2 {
        reader.found = Typed::default();
        reader.scope(module.body(), None, &HashMap::new());
    }
    reader.found
}

pub(super) struct Reader<'m> {
    pub(super) module: &'m Module,
    names: &'m BTreeMap<String, String>,
    /// What functions of the file return: pytest passes a fixture's result under its name.
    fixtures: HashMap<String, Known>,
    /// What dotted expressions are bound to, in all of the file.
    attributes: HashMap<String, Known>,
    /// Names that `with` binds: most often to the object itself.
    entered: HashSet<String>,
    pub(super) found: Typed,
}

pub(super) type Bound = HashMap<String, Known>;

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
        self.entered.extend(bindings.entered.iter().map(|name| (*name).to_owned()));
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
        for (name, value) in &bindings.fields {
            let known = self.source(*value, &bound);
            bind(&mut self.attributes, format!("self.{name}"), known);
        }
        let mut accesses = Accesses::of(self, &bound);
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
                    if bindings.entered.iter().any(|name| dotted(value) == [*name]) {
                        self.entered.insert(function.name.to_string());
                    }
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
            Some(Known::Alias(path) | Known::Named(path)) => path.as_str(),
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
            Known::Alias(_) | Known::Named(_) | Known::Unclear => None,
        }
    }

    /// The absolute dotted name of what an expression is: through imports, other names of it, and strings.
    pub(super) fn absolute(&self, expr: &Expr, bound: &Bound) -> Option<String> {
        let imported = |name: &str| self.names.get(name).filter(|target| !target.starts_with('.')).cloned();
        match expr {
            Expr::Name(name) => match bound.get(name.id.as_str()) {
                Some(Known::Named(path)) => Some(path.clone()),
                Some(Known::Alias(path)) => {
                    let (first, rest) = path.split_once('.')?;
                    imported(first).map(|first| format!("{first}.{rest}"))
                }
                Some(_) => None,
                None => imported(&name.id),
            },
            Expr::Attribute(attribute) => {
                let kept = self.path(expr, bound).and_then(|path| self.attributes.get(&path));
                match kept {
                    Some(Known::Named(path)) => Some(path.clone()),
                    Some(Known::Alias(path)) => {
                        let (first, rest) = path.split_once('.')?;
                        imported(first).map(|first| format!("{first}.{rest}"))
                    }
                    Some(_) => None,
                    None => Some(format!("{}.{}", self.absolute(&attribute.value, bound)?, attribute.attr)),
                }
            }
            Expr::Call(_) | Expr::Subscript(_) => {
                if let Some(module) = module_of(expr) {
                    return Some(module.to_owned());
                }
                if let Some((object, name)) = value_of(expr) {
                    return Some(format!("{}.{name}", self.absolute(object, bound)?));
                }
                if let Expr::Call(call) = expr
                    && let Expr::Name(name) = &*call.func
                    && let Some(Known::Named(path)) = self.fixtures.get(name.id.as_str())
                {
                    return Some(path.clone());
                }
                // A member of an enumeration, by its name.
                let subscript = expr.as_subscript_expr()?;
                let name = literal(&subscript.slice)?;
                Some(format!("{}.{name}", self.absolute(&subscript.value, bound)?))
            }
            _ => None,
        }
    }

    pub(super) fn known(&self, expr: &Expr, bound: &Bound) -> Option<Known> {
        match expr {
            Expr::Name(name) => {
                let known = bound.get(name.id.as_str()).cloned();
                known.or_else(|| self.absolute(expr, bound).map(Known::Named))
            }
            Expr::Attribute(attribute) => {
                let path = self.path(expr, bound);
                if let Some(known) = path.as_ref().and_then(|path| self.attributes.get(path)) {
                    return Some(known.clone());
                }
                let within = self.root(&attribute.value, bound).map(Known::Within);
                within.or_else(|| match path {
                    Some(path) if !self.is_named(expr, bound) => Some(Known::Alias(path)),
                    _ => self.absolute(expr, bound).map(Known::Named),
                })
            }
            Expr::Subscript(subscript) => {
                let named = self.absolute(expr, bound).map(Known::Named);
                named.or_else(|| self.root(&subscript.value, bound).map(Known::Within))
            }
            Expr::Starred(starred) => self.known(&starred.value, bound),
            Expr::Await(awaited) => self.known(&awaited.value, bound),
            Expr::Call(call) => {
                if let Some(named) = self.absolute(expr, bound) {
                    return Some(Known::Named(named));
                }
                if let Some((object, _)) = value_of(expr) {
                    return self.root(object, bound).map(Known::Within);
                }
                if let Expr::Attribute(method) = &*call.func {
                    match self.known(&method.value, bound) {
                        Some(Known::Made(of)) if SAME.contains(&method.attr.as_str()) => {
                            return Some(Known::Made(of));
                        }
                        Some(Known::Made(root) | Known::Within(root)) => return Some(Known::Within(root)),
                        _ => {}
                    }
                }
                if let Expr::Name(name) = &*call.func
                    && HANDED_ON.contains(&name.id.as_str())
                    && !self.names.contains_key(name.id.as_str())
                    && !self.fixtures.contains_key(name.id.as_str())
                {
                    return self.root(expr, bound).map(Known::Within);
                }
                if let Expr::Name(name) = &*call.func
                    && !bound.contains_key(name.id.as_str())
                    && let Some(made) = self.fixtures.get(name.id.as_str())
                {
                    return Some(made.clone());
                }
                self.absolute(&call.func, bound).map(Known::Made)
            }
            _ => None,
        }
    }

    /// What was called to make an object; one that `with` binds is taken for the object that is entered.
    pub(super) fn maker(&self, expr: &Expr, bound: &Bound) -> Option<String> {
        match self.known(expr, bound)? {
            Known::Made(by) => Some(by),
            Known::Within(by) => {
                let is_entered = match expr {
                    Expr::Name(name) => self.entered.contains(name.id.as_str()),
                    _ => false,
                };
                is_entered.then_some(by)
            }
            Known::Alias(_) | Known::Named(_) | Known::Unclear => None,
        }
    }

    /// Whether a dotted expression begins with another name of something absolute.
    fn is_named(&self, expr: &Expr, bound: &Bound) -> bool {
        dotted(expr).first().is_some_and(|first| matches!(bound.get(*first), Some(Known::Named(_))))
    }
}

/// What a function returns or yields, where that is all that it does in the end: of a fixture also inside of its `with`.
fn returned(function: &StmtFunctionDef) -> Option<&Expr> {
    let mut last = function.body.last()?;
    while let Stmt::With(with) = last {
        last = with.body.last()?;
    }
    match last {
        Stmt::Return(returned) => returned.value.as_deref(),
        Stmt::Expr(e) => e.value.as_yield_expr()?.value.as_deref(),
        _ => None,
    }
}
