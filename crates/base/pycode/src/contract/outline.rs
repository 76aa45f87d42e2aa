//! What a file offers to others: functions with their parameters, classes with their members, variables, imports;
//! and the command-line flags, environment variables and string keys that it knows.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::helpers::{is_docstring_stmt, map_callable};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Parameters, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::defaults::{default_text, parameter_text};
use super::lazy::read_lazy;
use super::made::made_class;
use super::marks::{SetOn, read_marks, set_by_call, set_by_statement};
use super::slots::slots;
use super::top_level::read_top_level;
use super::words::read_words;
use crate::definitions::{Node, Scope, dotted, is_decorated, walk};
use crate::module::Module;

/// One parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// `a: int = 3`, `*args`, as the file has it.
    pub text: String,
    /// Whether it may be left out.
    pub optional: bool,
}

/// One function or method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Line of its name, from 1.
    pub line: usize,
    /// Its parameters, without the one that a method is bound to.
    pub parameters: Vec<Parameter>,
    /// `(a: int, *, b: str = "x") -> int`, without what a method is bound to.
    pub signature: String,
    /// Whether it is read like an attribute.
    pub is_property: bool,
    /// What it returns, as annotated.
    pub returns: Option<String>,
    /// The first line of its docstring.
    pub about: Option<String>,
}

/// Something that a class or a module holds by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Line where it is set first, from 1.
    pub line: usize,
    /// `int = 3`, `int`, or nothing where there is no annotation.
    pub declared: Option<String>,
    /// Whether it may be left out where a dataclass is made.
    pub optional: bool,
}

/// One class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Line of its name, from 1.
    pub line: usize,
    /// Dotted names of its bases.
    pub bases: Vec<String>,
    /// Whether it is a dataclass or a named tuple: its fields are its parameters.
    pub is_record: bool,
    /// Variables of the body, in order, and those set on `self`.
    pub variables: BTreeMap<String, Variable>,
    /// The annotated variables of the body, in order; the fields of a class that a call makes.
    pub fields: Vec<String>,
    /// The first line of its docstring.
    pub about: Option<String>,
}

/// A string in a place that gives it a meaning, and the function that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its line, from 1.
    pub line: usize,
    /// The qualified name of the innermost function or class around it, or of the variable outside of functions that holds it;
    /// empty where there is none.
    pub within: String,
}

/// An attribute that is set on an object whose class is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Where.
    pub word: Word,
    /// What the object is reached from, where that is imported by an absolute name: another package's attributes are not new.
    pub on: Option<String>,
}

/// What a file offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// Functions and methods by qualified name; none inside functions.
    pub functions: BTreeMap<String, Function>,
    /// Classes by qualified name; none inside functions.
    pub classes: BTreeMap<String, Class>,
    /// Module-level variables.
    pub variables: BTreeMap<String, Variable>,
    /// Imported names with what they stand for: leading dots for relative imports, then a dotted path.
    pub imports: BTreeMap<String, String>,
    /// Modules of which everything is imported.
    pub stars: Vec<String>,
    /// Flags of `add_argument`.
    pub flags: BTreeMap<String, Word>,
    /// Environment variables that are read.
    pub environment: BTreeMap<String, Word>,
    /// Dotted names that stand where an environment variable's name is asked for: `os.environ[LEVEL]`.
    pub environment_by_name: BTreeMap<String, Word>,
    /// Strings that variables of the module and of its classes hold, by qualified name.
    pub constants: BTreeMap<String, String>,
    /// Keys of dictionaries that are written as strings or as keywords, and of `TypedDict` classes.
    pub keys: BTreeMap<String, Word>,
    /// Sub-commands of a command line.
    pub commands: BTreeMap<String, Word>,
    /// Attributes of parsed arguments, by `dest` or by the flag's name; with the flag in the place of what is around it.
    pub arguments: BTreeMap<String, Word>,
    /// Attributes that are set on other objects than the one that a method is bound to, of classes that are not known.
    pub marks: BTreeMap<String, Mark>,
}

impl Outline {
    /// Reads it off a parsed file.
    pub fn of(module: &Module) -> Outline {
        let mut outline = Outline::default();
        walk(module.body(), &Scope::module(), &mut |site| match site.node {
            Node::Function(function) => {
                let method = site.kind() == crate::DefinitionKind::Method;
                let read = read_function(module, function, method);
                outline.functions.entry(site.qualified_name.clone()).or_insert(read);
                if let Some((class, _)) = site.qualified_name.rsplit_once('.')
                    && let Some(class) = outline.classes.get_mut(class)
                {
                    bound(module, function, class);
                }
                false
            }
            Node::Class(class) => {
                let read = read_class(module, class);
                outline.classes.entry(site.qualified_name.clone()).or_insert(read);
                true
            }
        });
        read_top_level(module, &mut outline);
        read_lazy(module, &mut outline);
        read_words(module, &mut outline);
        read_marks(module, &mut outline);
        outline
    }
}

pub(super) fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.replace("[ ", "[").replace(" ]", "]").replace("( ", "(").replace(", )", ")").replace(" )", ")")
}

fn docstring(body: &[Stmt]) -> Option<String> {
    let Stmt::Expr(first) = body.first().filter(|first| is_docstring_stmt(first))? else { return None };
    let text = first.value.as_string_literal_expr()?.value.to_str();
    text.trim().lines().next().map(str::to_owned)
}

fn read_function(module: &Module, function: &StmtFunctionDef, method: bool) -> Function {
    let bound = method && !is_decorated(function, &["staticmethod"]);
    let (parameters, text) = read_parameters(module, &function.parameters, bound);
    let returns = function.returns.as_ref().map(|returns| one_line(module.text(&**returns)));
    let arrow = returns.as_ref().map_or(String::new(), |returns| format!(" -> {returns}"));
    Function {
        line: module.line_column(function.name.start().to_usize()).0,
        parameters,
        signature: format!("({text}){arrow}"),
        is_property: is_decorated(function, &["property", "cached_property"]),
        returns,
        about: docstring(&function.body),
    }
}

/// The parameters, and how they are written between their parentheses; the first is left out where `bound`.
pub(crate) fn read_parameters(
    module: &Module,
    parameters: &Parameters,
    bound: bool,
) -> (Vec<Parameter>, String) {
    let mut read = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let push = |name: &str, text: String, optional: bool, read: &mut Vec<Parameter>| {
        read.push(Parameter { name: name.to_owned(), text: text.clone(), optional });
        text
    };
    let skip = usize::from(bound);
    let positional = parameters.posonlyargs.len();
    for (at, parameter) in parameters.posonlyargs.iter().chain(&parameters.args).enumerate() {
        if at >= skip {
            let text = parameter_text(module, parameter);
            texts.push(push(parameter.name(), text, parameter.default.is_some(), &mut read));
        }
        if positional > 0 && at + 1 == positional && at >= skip {
            texts.push("/".to_owned());
        }
    }
    match &parameters.vararg {
        Some(vararg) => {
            let text = starred("*", module, vararg);
            texts.push(push(&vararg.name, text, true, &mut read));
        }
        None if !parameters.kwonlyargs.is_empty() => texts.push("*".to_owned()),
        None => {}
    }
    for parameter in &parameters.kwonlyargs {
        let text = parameter_text(module, parameter);
        texts.push(push(parameter.name(), text, parameter.default.is_some(), &mut read));
    }
    if let Some(kwarg) = &parameters.kwarg {
        let text = starred("**", module, kwarg);
        texts.push(push(&kwarg.name, text, true, &mut read));
    }
    (read, texts.join(", "))
}

/// A parameter that takes what is left; the stars may be part of its range.
fn starred(stars: &str, module: &Module, parameter: &ruff_python_ast::Parameter) -> String {
    let text = one_line(module.text(parameter));
    format!("{stars}{}", text.trim_start_matches(['*', ' ']))
}

fn read_class(module: &Module, class: &StmtClassDef) -> Class {
    let decorated = class.decorator_list.iter().any(|decorator| {
        let name = dotted(map_callable(&decorator.expression));
        name.last().is_some_and(|last| ["dataclass", "define", "frozen", "attrs"].contains(last))
    });
    let bases: Vec<String> = crate::definitions::bases(class).map(|base| base.join(".")).collect();
    let record = bases.iter().any(|base| {
        let last = base.rsplit('.').next().unwrap_or(base);
        ["NamedTuple", "BaseModel", "TypedDict"].contains(&last)
    });
    let mut variables = BTreeMap::new();
    let mut fields = Vec::new();
    for statement in &class.body {
        let line = module.line_column(statement.start().to_usize()).0;
        match statement {
            Stmt::AnnAssign(assign) => {
                let Some(target) = assign.target.as_name_expr() else { continue };
                let declared = Some(declared(module, assign));
                let optional = assign.value.is_some();
                variables.insert(target.id.to_string(), Variable { line, declared, optional });
                fields.push(target.id.to_string());
            }
            Stmt::Assign(assign) => {
                for target in assign.targets.iter().filter_map(Expr::as_name_expr) {
                    let variable = Variable { line, declared: None, optional: true };
                    variables.insert(target.id.to_string(), variable);
                }
            }
            _ => {}
        }
    }
    for (name, at) in slots(class) {
        let line = module.line_column(at).0;
        variables.entry(name.to_owned()).or_insert(Variable { line, declared: None, optional: true });
    }
    // `class Row(namedtuple("Row", "a b"))` has the fields of the class that the call makes.
    let made = class.bases().iter().filter_map(|base| made_class(module, base)).collect::<Vec<_>>();
    for base in &made {
        fields.splice(0..0, base.fields.iter().cloned());
        for (name, variable) in &base.variables {
            variables.entry(name.clone()).or_insert_with(|| variable.clone());
        }
    }
    Class {
        line: module.line_column(class.name.start().to_usize()).0,
        bases,
        is_record: decorated || record || made.iter().any(|base| base.is_record),
        variables,
        fields,
        about: docstring(&class.body),
    }
}

pub(super) fn declared(module: &Module, assign: &ruff_python_ast::StmtAnnAssign) -> String {
    let annotation = one_line(module.text(&*assign.annotation));
    match &assign.value {
        Some(value) => format!("{annotation} = {}", default_text(module, value)),
        None => annotation,
    }
}

/// Adds what a method sets on the object that it is bound to.
fn bound(module: &Module, function: &StmtFunctionDef, class: &mut Class) {
    let Some(first) = function.parameters.posonlyargs.first().or(function.parameters.args.first()) else {
        return;
    };
    let mut sets = Sets { module, owner: first.name(), class };
    sets.visit_body(&function.body);
}

struct Sets<'a> {
    module: &'a Module,
    owner: &'a str,
    class: &'a mut Class,
}

impl Sets<'_> {
    fn set(&mut self, set: &SetOn<'_>) {
        if set.object.as_name_expr().is_some_and(|name| name.id == self.owner) {
            let line = self.module.line_column(set.at).0;
            let declared = set.annotation.map(|annotation| one_line(self.module.text(annotation)));
            let variable = Variable { line, declared, optional: true };
            self.class.variables.entry(set.name.to_owned()).or_insert(variable);
        }
    }
}

impl<'a> Visitor<'a> for Sets<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        set_by_statement(statement).iter().for_each(|set| self.set(set));
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr {
            set_by_call(call).iter().for_each(|set| self.set(set));
        }
        visitor::walk_expr(self, expr);
    }
}

/// Every identifier and every word of a string in a text.
pub(crate) fn words_of(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}
