//! How a default is written in a signature that others read: without golden's own code and private names.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::outline::one_line;
use crate::definitions::dotted;
use crate::module::Module;

/// A default, with `...` in the place of what is golden's own: a default that names something private or has a function in it,
/// and a field's factory of more than a public name.
pub(super) fn default_text(module: &Module, default: &Expr) -> String {
    if let Expr::Call(call) = default
        && !is_own(&call.func)
        && call.arguments.keywords.iter().any(|keyword| is_own(&keyword.value) || is_factory(keyword))
    {
        return field_text(module, call);
    }
    if is_own(default) { "...".to_owned() } else { one_line(module.text(default)) }
}

/// `field(default_factory=..., repr=False)`.
fn field_text(module: &Module, call: &ExprCall) -> String {
    let values = call.arguments.args.iter().map(|value| default_text(module, value));
    let keywords = call.arguments.keywords.iter().map(|keyword| {
        let factory = is_factory(keyword) && dotted(&keyword.value).is_empty();
        let value = if factory { "...".to_owned() } else { default_text(module, &keyword.value) };
        keyword.arg.as_ref().map_or_else(|| format!("**{value}"), |name| format!("{name}={value}"))
    });
    let arguments: Vec<String> = values.chain(keywords).collect();
    format!("{}({})", one_line(module.text(&*call.func)), arguments.join(", "))
}

fn is_factory(keyword: &ruff_python_ast::Keyword) -> bool {
    keyword.arg.as_ref().is_some_and(|name| ["default_factory", "factory"].contains(&name.as_str()))
}

/// Whether an expression names something private or has code of a function in it.
fn is_own(expr: &Expr) -> bool {
    let mut own = Own(false);
    own.visit_expr(expr);
    own.0
}

struct Own(bool);

impl<'a> Visitor<'a> for Own {
    fn visit_expr(&mut self, expr: &'a Expr) {
        let is_private =
            |name: &str| name.starts_with('_') && !(name.starts_with("__") && name.ends_with("__"));
        self.0 |= match expr {
            Expr::Name(name) => is_private(&name.id),
            Expr::Attribute(attribute) => is_private(&attribute.attr),
            Expr::Lambda(_) => true,
            _ => false,
        };
        visitor::walk_expr(self, expr);
    }
}

/// A parameter with its default written so.
pub(super) fn parameter_text(module: &Module, parameter: &ruff_python_ast::ParameterWithDefault) -> String {
    let Some(default) = &parameter.default else { return one_line(module.text(parameter)) };
    let shown = default_text(module, default);
    if shown == one_line(module.text(&**default)) {
        return one_line(module.text(parameter));
    }
    let start = parameter.start().to_usize();
    let before = &module.text(parameter)[..default.start().to_usize() - start];
    // What stands in parentheses begins before the expression itself.
    let before = before.trim_end_matches([' ', '(', '\n', '\t']);
    let gap = if parameter.parameter.annotation.is_some() { " " } else { "" };
    format!("{}{gap}{}", one_line(before), shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_shows_neither_code_nor_private_names() {
        for (written, shown) in [
            ("3", "3"),
            ("(1,\n  2)", "(1, 2)"),
            ("Mode.FAST", "Mode.FAST"),
            ("field(default_factory=list)", "field(default_factory=list)"),
            ("field(default_factory=lambda: _slow(1) + 1)", "field(default_factory=...)"),
            ("field(default_factory=lambda: [1, 2], repr=False)", "field(default_factory=..., repr=False)"),
            ("field(default_factory=partial(list, [7]))", "field(default_factory=...)"),
            ("dataclasses.field(default_factory=_fresh)", "dataclasses.field(default_factory=...)"),
            ("field(default=_UNSET)", "field(default=...)"),
            ("_UNSET", "..."),
            ("engine._mode", "..."),
            ("max(_LOW, 3)", "..."),
            ("lambda v: -v", "..."),
            ("__name__", "__name__"),
        ] {
            let code = format!("def f(a: int = {written}, *, b={written}): ...\n");
            let module = Module::parse("t.py", &code).unwrap();
            let function = module.body()[0].as_function_def_stmt().unwrap();
            let (read, _) = super::super::outline::read_parameters(&module, &function.parameters, false);
            assert_eq!(read[0].text, format!("a: int = {shown}"));
            assert_eq!(read[1].text, format!("b={shown}"));
        }
    }
}
