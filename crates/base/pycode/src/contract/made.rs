//! Classes that a call makes: `namedtuple("Pair", "left right")`, `Enum("Kind", ["FAST", "SLOW"])`.

use std::collections::BTreeMap;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::outline::{Class, Variable, one_line};
use crate::definitions::dotted;
use crate::module::Module;

/// Makers of enumerations.
const ENUMERATIONS: [&str; 5] = ["Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"];

/// A field or member: its name, where it stands, its annotation, and whether it has a default.
struct Field<'a> {
    name: &'a str,
    at: usize,
    annotation: Option<&'a Expr>,
    optional: bool,
}

/// The class that an expression makes, if it is such a call.
pub(super) fn made_class(module: &Module, expr: &Expr) -> Option<Class> {
    let call = expr.as_call_expr()?;
    let callee = dotted(&call.func);
    let (fields, is_record) = match *callee.last()? {
        "namedtuple" => (with_defaults(named(call, "field_names")?, call), true),
        "NamedTuple" | "make_dataclass" => (named(call, "fields")?, true),
        "TypedDict" => (named(call, "fields")?, true),
        maker if ENUMERATIONS.contains(&maker) => (named(call, "names")?, false),
        _ => return None,
    };
    let variables: BTreeMap<String, Variable> = fields
        .iter()
        .map(|field| {
            let line = module.line_column(field.at).0;
            let declared = field.annotation.filter(|_| is_record).map(|a| one_line(module.text(a)));
            (field.name.to_owned(), Variable { line, declared, optional: field.optional || !is_record })
        })
        .collect();
    let names = fields.iter().map(|field| field.name.to_owned());
    Some(Class {
        line: module.line_column(call.start().to_usize()).0,
        bases: if is_record { Vec::new() } else { vec![callee.join(".")] },
        is_record,
        fields: if is_record { names.collect() } else { Vec::new() },
        variables,
        about: None,
    })
}

/// What the second argument of such a call names: words of a string, strings or pairs in a list, keys of a dictionary.
fn named<'a>(call: &'a ExprCall, keyword: &str) -> Option<Vec<Field<'a>>> {
    let second = call.arguments.args.get(1);
    let list = second.or_else(|| call.arguments.find_keyword(keyword).map(|keyword| &keyword.value))?;
    let field = |expr: &'a Expr| -> Option<Field<'a>> {
        let parts = match expr {
            Expr::Tuple(parts) => &parts.elts[..],
            Expr::List(parts) => &parts.elts[..],
            one => std::slice::from_ref(one),
        };
        let name = parts.first()?.as_string_literal_expr()?.value.to_str();
        let at = expr.start().to_usize();
        Some(Field { name, at, annotation: parts.get(1), optional: parts.len() > 2 })
    };
    match list {
        Expr::StringLiteral(text) => {
            let names = text.value.to_str().split([' ', ',', '\n', '\t']).filter(|name| !name.is_empty());
            let at = text.start().to_usize();
            Some(names.map(|name| Field { name, at, annotation: None, optional: false }).collect())
        }
        Expr::Tuple(list) => Some(list.elts.iter().filter_map(field).collect()),
        Expr::List(list) => Some(list.elts.iter().filter_map(field).collect()),
        Expr::Dict(dict) => {
            let items = dict.items.iter().filter_map(|item| {
                let key = item.key.as_ref()?.as_string_literal_expr()?;
                let (name, at) = (key.value.to_str(), key.start().to_usize());
                Some(Field { name, at, annotation: Some(&item.value), optional: false })
            });
            Some(items.collect())
        }
        _ => None,
    }
}

/// The last fields of a `namedtuple` have the `defaults`.
fn with_defaults<'a>(mut fields: Vec<Field<'a>>, call: &ExprCall) -> Vec<Field<'a>> {
    let given = match call.arguments.find_keyword("defaults").map(|keyword| &keyword.value) {
        Some(Expr::Tuple(values)) => values.elts.len(),
        Some(Expr::List(values)) => values.elts.len(),
        _ => 0,
    };
    fields.iter_mut().rev().take(given).for_each(|field| field.optional = true);
    fields
}
