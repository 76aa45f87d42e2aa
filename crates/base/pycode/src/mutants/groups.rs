//! Process groups: another one, or the default one.

use infradev_model::Operator;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::collectives::transfer;
use super::walk::{Edits, Site, callee, segments};
use crate::definitions::dotted;
use crate::module::{Module, Span};

/// The process groups that a file names.
pub(super) struct Groups<'a> {
    /// Names and attributes, with the byte where each stands, in the order of the text.
    named: Vec<(usize, &'a str)>,
    /// The functions that return one, by name.
    getters: Vec<&'a str>,
    /// Names with the group that each is given: two names of one.
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Groups<'a> {
    pub(super) fn of(module: &'a Module) -> Groups<'a> {
        struct Found<'a> {
            module: &'a Module,
            groups: Groups<'a>,
        }
        impl<'a> Visitor<'a> for Found<'a> {
            fn visit_expr(&mut self, expr: &'a Expr) {
                let named = (expr.start().to_usize(), self.module.text(expr));
                match expr {
                    // A function that returns a group is none; nor is one that it makes anew another to use.
                    Expr::Name(_) | Expr::Attribute(_)
                        if is_group(expr) && !dotted(expr).is_empty() && !is_function(expr) =>
                    {
                        self.groups.named.push(named);
                    }
                    Expr::Call(call) if is_group(&call.func) => {
                        if is_getter(callee(call)) {
                            self.groups.getters.push(callee(call));
                        }
                        if is_function(&call.func) && is_same_anywhere(call) {
                            self.groups.named.push(named);
                        }
                        if let Expr::Attribute(function) = &*call.func {
                            self.visit_expr(&function.value);
                        }
                        return self.visit_arguments(&call.arguments);
                    }
                    _ => {}
                }
                visitor::walk_expr(self, expr);
            }
            fn visit_stmt(&mut self, statement: &'a Stmt) {
                if let Stmt::Assign(assign) = statement
                    && is_group(&assign.value)
                {
                    let value = self.module.text(&*assign.value);
                    let targets = assign.targets.iter().map(|target| (self.module.text(target), value));
                    self.groups.given.extend(targets);
                }
                visitor::walk_stmt(self, statement);
            }
            fn visit_parameter(&mut self, parameter: &'a ruff_python_ast::Parameter) {
                if is_group_name(&parameter.name) {
                    let name = self.module.text(&parameter.name);
                    self.groups.named.push((parameter.start().to_usize(), name));
                }
            }
            fn visit_annotation(&mut self, _: &'a Expr) {}
        }
        let groups = Groups { named: Vec::new(), getters: Vec::new(), given: Vec::new() };
        let mut found = Found { module, groups };
        found.visit_body(module.body());
        found.groups.named.sort();
        found.groups
    }

    /// Another group that can be named where `this` stands: of the same function, else an attribute of the same object.
    fn other_than(&self, this: &str, function: Option<Span>) -> Option<&'a str> {
        let here = |at: usize| function.is_some_and(|span| span.range().contains(&at));
        let last = |name: &str| name.rsplit('.').next().unwrap_or_default().trim_matches('_').to_owned();
        // `group` and `self.group` are likely one.
        let is_one = |name: &str| self.given.contains(&(this, name)) || self.given.contains(&(name, this));
        let differs = |name: &&(usize, &'a str)| last(name.1) != last(this) && !is_one(name.1);
        let in_function = self.named.iter().filter(differs).find(|(at, _)| here(*at));
        let owner = this.rsplit_once('.').map(|(owner, _)| owner);
        let of_object = || {
            let named = self.named.iter().filter(differs);
            named.into_iter().find(|(_, name)| owner.is_some() && name.rsplit_once('.').map(|n| n.0) == owner)
        };
        in_function.or_else(of_object).map(|(_, name)| *name)
    }

    fn getter_other_than(&self, this: &str) -> Option<&'a str> {
        let other = self.getters.iter().find(|name| **name != this).copied();
        other.or(match this {
            "get_tensor_model_parallel_group" => Some("get_data_parallel_group"),
            "get_data_parallel_group"
            | "get_pipeline_model_parallel_group"
            | "get_context_parallel_group"
            | "get_expert_model_parallel_group" => Some("get_tensor_model_parallel_group"),
            _ => None,
        })
    }
}

fn is_getter(name: &str) -> bool {
    name.starts_with("get_") && name.ends_with("_parallel_group")
}

/// Whether a name that is called is a function that returns a group, by how such functions are named.
fn is_function(expr: &Expr) -> bool {
    segments(expr).last().is_some_and(|name| name.trim_start_matches('_').starts_with("get_"))
}

/// Whether a call has no arguments but such as are the same wherever they stand.
fn is_same_anywhere(call: &ExprCall) -> bool {
    call.arguments
        .args
        .iter()
        .chain(call.arguments.keywords.iter().map(|keyword| &keyword.value))
        .all(Expr::is_literal_expr)
}

fn is_group_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.trim_matches('_');
    let not_of_ranks = ["param_group", "params_group", "num_group", "use_group", "id_group", "conv_group"];
    (name == "group" || name == "pg" || name.ends_with("_group") || name.ends_with("_pg"))
        && !not_of_ranks.iter().any(|part| name.ends_with(part))
}

/// Whether an expression names a process group, or is a call that returns one.
pub(super) fn is_group(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) => {
            segments(expr).last().is_some_and(|n| is_group_name(n))
        }
        _ => false,
    }
}

pub(super) fn call(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    let name = callee(call);
    let function = site.function().map(|function| Span::from(function.range()));
    if is_getter(name)
        && let Some(other) = site.groups().getter_other_than(name)
    {
        let end = call.func.end();
        let start = end - ruff_text_size::TextSize::of(name);
        // Another's keywords may be none of its own.
        let (end, other) = match call.arguments.keywords.is_empty() {
            true => (end, other.to_owned()),
            false => (call.end(), format!("{other}()")),
        };
        edits.replace(Operator::WrongGroup, &TextRange::new(start, end), other);
    }
    let asks_torch =
        matches!(name, "get_world_size" | "get_rank" | "get_global_rank" | "get_process_group_ranks");
    let is_transfer = transfer(site, call).is_some();
    let replace = |group: &Expr, edits: &mut Edits| {
        if is_group(group)
            && let Some(other) = site.groups().other_than(site.text(group), function)
        {
            edits.replace(Operator::WrongGroup, group, other);
        }
    };
    for keyword in &call.arguments.keywords {
        let names_group = keyword.arg.as_ref().is_some_and(|name| is_group_name(name));
        if !names_group || keyword.value.is_none_literal_expr() {
            continue;
        }
        if is_transfer || asks_torch {
            edits.cut(Operator::WrongGroup, site.argument_part(keyword, call));
        }
        replace(&keyword.value, edits);
    }
    if is_transfer || asks_torch {
        for group in call.arguments.args.iter().filter(|argument| is_group(argument)) {
            edits.replace(Operator::WrongGroup, group, "None");
            replace(group, edits);
        }
    }
    // `group.size()`, `group.rank()`
    if matches!(name, "size" | "rank")
        && let Expr::Attribute(method) = &*call.func
        && is_group(&method.value)
    {
        replace(&method.value, edits);
    }
}
