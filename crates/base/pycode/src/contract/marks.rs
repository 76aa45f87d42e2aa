//! Attributes that code sets on objects: by an assignment, by `setattr`, through `__dict__`.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Parameters, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::outline::{Mark, Outline, Variable, Word};
use super::reflected::{literal, names_of};
use crate::definitions::{dotted, is_decorated};
use crate::module::Module;

/// Methods whose first argument is the name of an attribute that they set on their object.
const REGISTERING: [&str; 4] = ["register_buffer", "register_parameter", "register_module", "add_module"];

/// An attribute that is set.
pub(super) struct SetOn<'a> {
    pub object: &'a Expr,
    pub name: &'a str,
    /// Where it stands.
    pub at: usize,
    pub annotation: Option<&'a Expr>,
}

/// The attributes that a statement itself sets, not the statements and expressions in it.
pub(super) fn set_by_statement(statement: &Stmt) -> Vec<SetOn<'_>> {
    let mut found = Vec::new();
    match statement {
        Stmt::Assign(assign) => assign.targets.iter().for_each(|target| targets(target, None, &mut found)),
        Stmt::AnnAssign(assign) => targets(&assign.target, Some(&assign.annotation), &mut found),
        Stmt::AugAssign(assign) => targets(&assign.target, None, &mut found),
        _ => {}
    }
    found
}

fn targets<'a>(target: &'a Expr, annotation: Option<&'a Expr>, found: &mut Vec<SetOn<'a>>) {
    let at = target.start().to_usize();
    match target {
        Expr::Attribute(attribute) => {
            found.push(SetOn { object: &attribute.value, name: &attribute.attr, at, annotation });
        }
        Expr::Subscript(subscript) => {
            if let (Some(object), Some(name)) = (names_of(&subscript.value), literal(&subscript.slice)) {
                found.push(SetOn { object, name, at, annotation: None });
            }
        }
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|target| targets(target, None, found)),
        Expr::List(list) => list.elts.iter().for_each(|target| targets(target, None, found)),
        Expr::Starred(starred) => targets(&starred.value, None, found),
        _ => {}
    }
}

/// The attributes that a call sets.
pub(super) fn set_by_call(call: &ExprCall) -> Vec<SetOn<'_>> {
    let at = call.start().to_usize();
    let set = |object, name| SetOn { object, name, at, annotation: None };
    let arguments = &call.arguments.args;
    let name_at = |at: usize| arguments.get(at).and_then(literal);
    match &*call.func {
        Expr::Name(name) if name.id.as_str() == "setattr" => {
            arguments.first().zip(name_at(1)).map(|(object, name)| set(object, name)).into_iter().collect()
        }
        Expr::Attribute(method) => match method.attr.as_str() {
            // `object.__setattr__(self, "name", value)`.
            "__setattr__" if arguments.len() == 3 => {
                name_at(1).map(|name| set(&arguments[0], name)).into_iter().collect()
            }
            "update" => {
                let Some(object) = names_of(&method.value) else { return Vec::new() };
                let keywords = call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_deref());
                let keys = arguments.first().and_then(Expr::as_dict_expr).into_iter();
                let keys = keys.flat_map(|dict| dict.iter_keys().flatten().filter_map(literal));
                keywords.chain(keys).map(|name| set(object, name)).collect()
            }
            method_name if REGISTERING.contains(&method_name) => {
                name_at(0).map(|name| set(&method.value, name)).into_iter().collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Notes in an outline what is set on other objects than the one that a method is bound to.
pub(super) fn read_marks(module: &Module, outline: &mut Outline) {
    let mut marks = Marks {
        module,
        outline,
        within: Vec::new(),
        bound: Vec::new(),
        of_class: Vec::new(),
        in_class: false,
    };
    marks.visit_body(module.body());
}

struct Marks<'m, 'o> {
    module: &'m Module,
    outline: &'o mut Outline,
    /// Names of the functions and classes around.
    within: Vec<String>,
    /// What the methods around are bound to.
    bound: Vec<String>,
    /// Parameters of the functions around, with the class that annotates each, if the file has it.
    of_class: Vec<(String, Option<String>)>,
    /// Whether a function would be a method.
    in_class: bool,
}

impl Marks<'_, '_> {
    fn set(&mut self, set: &SetOn<'_>) {
        let line = self.module.line_column(set.at).0;
        let owner = dotted(set.object);
        if let [one] = owner[..] {
            if self.bound.iter().any(|bound| bound == one) {
                return;
            }
            let parameter = self.of_class.iter().rev().find(|(name, _)| name == one);
            let class = match parameter {
                Some((_, class)) => class.clone(),
                None => self.outline.classes.contains_key(one).then(|| one.to_owned()),
            };
            if let Some(class) = class {
                let is_method = self.outline.functions.contains_key(&format!("{class}.{}", set.name));
                if let Some(class) = self.outline.classes.get_mut(&class).filter(|_| !is_method) {
                    let variable = Variable { line, declared: None, optional: true };
                    class.variables.entry(set.name.to_owned()).or_insert(variable);
                }
                return;
            }
        }
        let first = owner.first().filter(|first| !self.of_class.iter().any(|(name, _)| name == *first));
        let imported = first.and_then(|first| self.outline.imports.get(*first));
        let on = imported.filter(|target| !target.starts_with('.')).cloned();
        let mark = Mark { word: Word { line, within: self.within.join(".") }, on };
        let known = self.outline.marks.entry(set.name.to_owned()).or_insert_with(|| mark.clone());
        if known.on.is_some() && mark.on.is_none() {
            *known = mark;
        }
    }

    fn parameters(&self, parameters: &Parameters) -> Vec<(String, Option<String>)> {
        let class = |annotation: &Expr| {
            // Quoted or not.
            let name = literal(annotation).map_or_else(|| dotted(annotation).join("."), str::to_owned);
            self.outline.classes.contains_key(&name).then_some(name)
        };
        parameters.iter().map(|p| (p.name().to_string(), p.annotation().and_then(class))).collect()
    }

    fn function(&mut self, function: &StmtFunctionDef) {
        let (parameters, bound) = (self.of_class.len(), self.bound.len());
        let read = self.parameters(&function.parameters);
        if self.in_class && !is_decorated(function, &["staticmethod"]) {
            self.bound.extend(read.first().map(|(name, _)| name.clone()));
        }
        self.of_class.extend(read);
        let in_class = std::mem::replace(&mut self.in_class, false);
        self.visit_body(&function.body);
        self.in_class = in_class;
        self.of_class.truncate(parameters);
        self.bound.truncate(bound);
    }
}

impl<'a> Visitor<'a> for Marks<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.within.push(function.name.to_string());
                self.function(function);
                self.within.pop();
                return;
            }
            Stmt::ClassDef(class) => {
                self.within.push(class.name.to_string());
                let in_class = std::mem::replace(&mut self.in_class, true);
                self.visit_body(&class.body);
                self.in_class = in_class;
                self.within.pop();
                return;
            }
            _ => set_by_statement(statement).iter().for_each(|set| self.set(set)),
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr {
            set_by_call(call).iter().for_each(|set| self.set(set));
        }
        visitor::walk_expr(self, expr);
    }
}
