//! Names that are given as strings: `getattr(model, "Engine")`, `vars(model)["Engine"]`, `mock.patch.object(model,
//! "Engine")`, `importlib.import_module("toy.model")`.

use ruff_python_ast::{CmpOp, Expr, ExprCall};

/// Calls whose first argument is an object and whose second is the name of an attribute of it.
const BY_NAME: [&str; 8] =
    ["getattr", "hasattr", "setattr", "delattr", "getattr_static", "object", "spy", "__setattr__"];

/// Calls that import the module that their first argument names.
const IMPORTING: [&str; 3] = ["import_module", "importorskip", "__import__"];

/// A name that is given as a string.
#[derive(Debug)]
pub(crate) struct Spelled<'a> {
    /// Of what it is the name, where that is written beside it.
    pub object: Option<&'a Expr>,
    /// The names, from the object's on: `Engine.level_of` of an `attrgetter` are two.
    pub path: &'a str,
    /// Whether the name is set, so that it is the file's own if the object is not known.
    pub sets: bool,
}

/// The names that an expression itself, not its parts, gives as strings.
pub(crate) fn spelled(expr: &Expr) -> Vec<Spelled<'_>> {
    let one = |object, path| vec![Spelled { object: Some(object), path, sets: false }];
    match expr {
        Expr::Call(call) => of_call(call),
        Expr::Subscript(subscript) => match (names_of(&subscript.value), literal(&subscript.slice)) {
            (Some(object), Some(name)) => one(object, name),
            _ => Vec::new(),
        },
        Expr::Compare(compare) => {
            let is_in = matches!(compare.ops[..], [CmpOp::In | CmpOp::NotIn]);
            match (literal(&compare.left), compare.comparators.first().and_then(names_of)) {
                (Some(name), Some(object)) if is_in => one(object, name),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn of_call(call: &ExprCall) -> Vec<Spelled<'_>> {
    let name = called(&call.func);
    let argument = |at: usize, names: &[&str]| {
        let keyword = || names.iter().find_map(|name| call.arguments.find_keyword(name)).map(|k| &k.value);
        call.arguments.args.get(at).or_else(keyword)
    };
    if name.is_some_and(|name| BY_NAME.contains(&name)) {
        let object = argument(0, &["target", "obj"]);
        let path = argument(1, &["name", "attribute"]).and_then(literal);
        // `monkeypatch.setattr` is refused what is not there; the builtin makes it.
        let sets = call.func.as_name_expr().is_some() && name == Some("setattr");
        return path.into_iter().map(|path| Spelled { object, path, sets }).collect();
    }
    if let Expr::Call(getter) = &*call.func {
        let object = call.arguments.args.first();
        return getter_paths(getter).into_iter().map(|path| Spelled { object, path, sets: false }).collect();
    }
    if name == Some("multiple") {
        let object = argument(0, &["target"]).filter(|object| literal(object).is_none());
        let names = call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_ref());
        return object.map_or(Vec::new(), |object| {
            names.map(|name| Spelled { object: Some(object), path: name.as_str(), sets: false }).collect()
        });
    }
    if let (Some("get" | "pop"), Expr::Attribute(method)) = (name, &*call.func)
        && let (Some(object), Some(path)) = (names_of(&method.value), argument(0, &[]).and_then(literal))
    {
        return vec![Spelled { object: Some(object), path, sets: false }];
    }
    getter_paths(call).into_iter().map(|path| Spelled { object: None, path, sets: false }).collect()
}

/// What `attrgetter("a.b", "c")` and `methodcaller("a", …)` name.
fn getter_paths(call: &ExprCall) -> Vec<&str> {
    let arguments = call.arguments.args.iter();
    match called(&call.func) {
        Some("attrgetter") => arguments.filter_map(literal).collect(),
        Some("methodcaller") => arguments.take(1).filter_map(literal).collect(),
        _ => Vec::new(),
    }
}

/// The object and the name whose value an expression is: `getattr(object, "name")` and its like.
pub(crate) fn value_of(expr: &Expr) -> Option<(&Expr, &str)> {
    let gives = match expr {
        Expr::Call(call) => match called(&call.func) {
            Some(name) => ["getattr", "getattr_static", "get", "pop"].contains(&name),
            None => call.func.as_call_expr().is_some_and(|c| called(&c.func) == Some("attrgetter")),
        },
        Expr::Subscript(_) => true,
        _ => false,
    };
    match spelled(expr)[..] {
        [Spelled { object: Some(object), path, .. }] if gives => Some((object, path)),
        _ => None,
    }
}

/// The module that an expression imports by name or looks up among those that are imported.
pub(crate) fn module_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Call(call) => {
            let name = called(&call.func).filter(|name| IMPORTING.contains(name))?;
            let module = literal(call.arguments.args.first()?)?;
            let is_first = name == "__import__" && call.arguments.len() == 1;
            if is_first { module.split('.').next() } else { Some(module) }
        }
        Expr::Subscript(subscript) => {
            let modules = called(&subscript.value) == Some("modules");
            literal(&subscript.slice).filter(|_| modules)
        }
        _ => None,
    }
}

/// The object of which `vars(object)`, `object.__dict__`, `dir(object)` or `object.__all__` holds the names.
pub(super) fn names_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Call(call) => {
            let is_one = call.func.as_name_expr().is_some_and(|f| ["vars", "dir"].contains(&f.id.as_str()));
            call.arguments.args.first().filter(|_| is_one)
        }
        Expr::Attribute(attribute) => {
            let is_one =
                ["__dict__", "__all__", "__members__", "__annotations__"].contains(&attribute.attr.as_str());
            is_one.then_some(&*attribute.value)
        }
        _ => None,
    }
}

/// The last word of what is called.
fn called(callee: &Expr) -> Option<&str> {
    match callee {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

/// A string that is a name or some, joined by dots.
pub(crate) fn literal(expr: &Expr) -> Option<&str> {
    expr.as_string_literal_expr().map(|string| string.value.to_str()).filter(|text| is_path(text))
}

/// Whether a text is a name or some, joined by dots.
pub(crate) fn is_path(text: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split('.').all(is_name)
}
