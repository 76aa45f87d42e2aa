//! Attributes of objects whose class a test shows: made by a call of what it imports, under a name or an attribute that is bound to
//! nothing else.

use std::collections::{BTreeMap, HashMap};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Parameters, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::definitions::dotted;
use crate::module::Module;

/// Methods that give back the object itself, by the custom of tensors and modules.
const SAME: [&str; 10] =
    ["to", "train", "eval", "cuda", "cpu", "float", "half", "bfloat16", "double", "requires_grad_"];

/// What an expression is known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// The result of calling what has this absolute dotted name.
    Made(String),
    /// Another name of a dotted expression, such as `rank.state`.
    Alias(String),
    /// Bound to several things.
    Unclear,
}

/// `(what was called to make it, attribute)` with the line of the first access. `names` are the file's imports.
pub(crate) fn typed_attributes(
    module: &Module,
    names: &BTreeMap<String, String>,
) -> BTreeMap<(String, String), usize> {
    let mut reader = Reader {
        module,
        names,
        fixtures: HashMap::new(),
        attributes: HashMap::new(),
        found: BTreeMap::new(),
    };
    // Twice: what one function keeps under an attribute, another reads, in any order.
    for _ in 0..2 {
        reader.found.clear();
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
    found: BTreeMap<(String, String), usize>,
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
            let known = self.fixtures.get(&name).cloned().unwrap_or(Known::Unclear);
            bound.insert(name, known);
        }
        let mut bindings = Bindings::default();
        bindings.visit_body(body);
        let mut own = Bound::new();
        for (target, value) in &bindings.assigned {
            let known = value.and_then(|value| self.known(value, &bound));
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
                        let known = value.and_then(|value| self.known(value, &inner));
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

    fn known(&self, expr: &Expr, bound: &Bound) -> Option<Known> {
        match expr {
            Expr::Name(name) => bound.get(name.id.as_str()).cloned(),
            Expr::Attribute(_) => {
                let path = self.path(expr, bound)?;
                Some(self.attributes.get(&path).cloned().unwrap_or(Known::Alias(path)))
            }
            Expr::Call(call) => {
                if let Expr::Attribute(method) = &*call.func
                    && SAME.contains(&method.attr.as_str())
                    && let Some(Known::Made(of)) = self.known(&method.value, bound)
                {
                    return Some(Known::Made(of));
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

/// Assignments and functions of one scope.
#[derive(Default)]
struct Bindings<'a> {
    assigned: Vec<(&'a Expr, Option<&'a Expr>)>,
    functions: Vec<&'a StmtFunctionDef>,
}

impl<'a> Bindings<'a> {
    fn targets(&mut self, target: &'a Expr, value: Option<&'a Expr>) {
        match target {
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|target| self.targets(target, None)),
            Expr::List(list) => list.elts.iter().for_each(|target| self.targets(target, None)),
            Expr::Starred(starred) => self.targets(&starred.value, None),
            _ => self.assigned.push((target, value)),
        }
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
                assign.targets.iter().for_each(|target| self.targets(target, Some(&assign.value)));
            }
            Stmt::AnnAssign(assign) => self.targets(&assign.target, assign.value.as_deref()),
            Stmt::AugAssign(assign) => self.targets(&assign.target, None),
            Stmt::For(s) => self.targets(&s.target, None),
            Stmt::With(s) => {
                s.items
                    .iter()
                    .filter_map(|item| item.optional_vars.as_deref())
                    .for_each(|t| self.targets(t, None));
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Named(named) = expr {
            self.targets(&named.target, None);
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a ruff_python_ast::Comprehension) {
        self.targets(&comprehension.target, None);
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
            && let Some(Known::Made(by)) = self.reader.known(&attribute.value, self.bound)
        {
            let line = self.reader.module.line_column(attribute.attr.start().to_usize()).0;
            self.reader.found.entry((by, attribute.attr.to_string())).or_insert(line);
        }
        visitor::walk_expr(self, expr);
    }
}
