//! Lists filled by a loop or made by a comprehension.

use ruff_python_ast::{Comprehension, Expr, ExprListComp, Stmt, StmtFor};
use ruff_text_size::Ranged;

use super::block::{Place, each_statement, has_comprehension, is_plain, names_of, stored};
use super::{Candidate, Edits};
use crate::module::Span;
use crate::replace::replace_spans;

/// The first list comprehension that is assigned or returned, as a loop. What the loop binds has a name of its own,
/// and holds nothing afterwards.
pub(crate) fn to_loop(candidate: &Candidate<'_>) -> Option<Edits> {
    let mut edits = None;
    each_statement(&candidate.function.body, &candidate.scope, &mut |place| {
        if edits.is_none() {
            edits = loop_of(candidate, place);
        }
    });
    edits
}

fn loop_of(candidate: &Candidate<'_>, place: &Place<'_, '_>) -> Option<Edits> {
    let statement = &place.block[place.at];
    let value = match statement {
        Stmt::Assign(assign) if matches!(assign.targets.as_slice(), [Expr::Name(_)]) => &*assign.value,
        Stmt::Return(returned) => returned.value.as_deref()?,
        _ => return None,
    };
    let Expr::ListComp(ExprListComp { elt, generators, .. }) = value else { return None };
    let [Comprehension { target, iter, ifs, is_async: false, .. }] = generators.as_slice() else {
        return None;
    };
    let parts: Vec<&Expr> = std::iter::once(&**elt).chain(ifs).collect();
    let simple = parts.iter().all(|part| is_plain(part) && !has_comprehension(part));
    if !simple || !is_plain(iter) || !is_name_or_names(target) {
        return None;
    }
    if !reads_bound(candidate, place, &parts, &stored(target)) {
        return None;
    }
    let module = candidate.module;
    let indent = module.own_indent(statement.start().to_usize())?;
    let end = statement.end().to_usize();
    let after = module.source()[end..module.line_end(end)].trim_start();
    // Parentheses around the list, or another statement on its line.
    if value.end() != statement.end() || !(after.is_empty() || after.starts_with('#')) {
        return None;
    }
    // A text of several lines would be indented anew, strings in it too.
    if [&**elt, iter].into_iter().chain(ifs).any(|part| module.text(part).contains(['\n', '\r'])) {
        return None;
    }
    let names = stored(target);
    let fresh: Vec<String> = names.iter().map(|name| candidate.fresh(&format!("{name}_each"))).collect();
    let anew = |expr: &Expr| renamed(candidate, expr, &names, &fresh);
    let list = candidate.fresh("filled_here");
    let newline = module.newline();
    let mut text = format!("{list} = []{newline}{indent}for {} in {}:", anew(target), module.text(iter));
    let mut depth = format!("{indent}    ");
    if indent.contains('\t') {
        depth = format!("{indent}\t");
    }
    let step = depth[indent.len()..].to_owned();
    for test in ifs {
        text.push_str(&format!("{newline}{depth}if {}:", anew(test)));
        depth.push_str(&step);
    }
    text.push_str(&format!("{newline}{depth}{list}.append({})", argument(elt, &anew(elt))));
    let nothing = fresh.iter().map(|name| format!("{name} = ")).collect::<String>();
    text.push_str(&format!("{newline}{indent}{nothing}None"));
    // The list is to live as long as it did.
    let last =
        if statement.is_return_stmt() { list } else { format!("{list}{newline}{indent}{list} = None") };
    let start = statement.start().to_usize();
    Some(vec![
        (Span { start, end: start }, format!("{text}{newline}{indent}")),
        (Span::from(value.range()), last),
    ])
}

/// Whether all locals that parts of a comprehension read are bound for certain: one that is not fails in another
/// way inside of a comprehension. `own` are its own names.
fn reads_bound(candidate: &Candidate<'_>, place: &Place<'_, '_>, parts: &[&Expr], own: &[&str]) -> bool {
    parts.iter().flat_map(|part| names_of(part).0).all(|name| {
        let name = name.as_str();
        own.contains(&name) || !candidate.scope.is_local(name) || place.bound.contains(name)
    })
}

/// An element as an argument: a generator or a tuple without parentheses would be read otherwise.
fn argument(expr: &Expr, text: &str) -> String {
    if expr.is_tuple_expr() && !text.starts_with('(') { format!("({text})") } else { text.to_owned() }
}

fn is_name_or_names(target: &Expr) -> bool {
    match target {
        Expr::Name(_) => true,
        Expr::Tuple(tuple) => tuple.elts.iter().all(Expr::is_name_expr),
        _ => false,
    }
}

/// A text with names in place of others.
fn renamed(candidate: &Candidate<'_>, expr: &Expr, names: &[&str], fresh: &[String]) -> String {
    let range = Span::from(expr.range());
    let mut edits = Edits::new();
    for (name, fresh) in names.iter().zip(fresh) {
        for span in candidate.scope.places.get(name).into_iter().flatten() {
            if range.start <= span.start && span.end <= range.end {
                edits.push((
                    Span { start: span.start - range.start, end: span.end - range.start },
                    fresh.clone(),
                ));
            }
        }
    }
    replace_spans(candidate.module.text(expr), edits)
}

/// The first `held = []` with a loop after it that does nothing but append to it, as a comprehension.
pub(crate) fn from_loop(candidate: &Candidate<'_>) -> Option<Edits> {
    let mut edits = None;
    each_statement(&candidate.function.body, &candidate.scope, &mut |place| {
        if edits.is_none() && !place.in_try {
            edits = comprehension_of(candidate, place);
        }
    });
    edits
}

fn comprehension_of(candidate: &Candidate<'_>, place: &Place<'_, '_>) -> Option<Edits> {
    let module = candidate.module;
    let (list, value) = match &place.block[place.at] {
        Stmt::Assign(assign) => match assign.targets.as_slice() {
            [Expr::Name(name)] => (name.id.as_str(), &*assign.value),
            _ => return None,
        },
        Stmt::AnnAssign(assign) => (assign.target.as_name_expr()?.id.as_str(), assign.value.as_deref()?),
        _ => return None,
    };
    let Expr::List(empty) = value else { return None };
    let Stmt::For(each) = place.block.get(place.at + 1)? else { return None };
    if !empty.elts.is_empty() || each.is_async || !each.orelse.is_empty() || !is_name_or_names(&each.target) {
        return None;
    }
    let (element, test) = appended(each, list)?;
    let parts: Vec<&Expr> = [element, &*each.iter].into_iter().chain(test).collect();
    let plain = parts
        .iter()
        .all(|part| is_plain(part) && !has_comprehension(part) && !names_of(part).0.contains(list));
    let one_line = parts.iter().all(|part| !module.text(*part).contains(['\n', '\r', '#']));
    // What the loop binds would be bound no longer: nothing else may use it.
    let within = Span::from(each.range());
    let used_elsewhere = stored(&each.target).into_iter().any(|name| {
        let places = candidate.scope.places.get(name).map(Vec::as_slice).unwrap_or_default();
        candidate.scope.parameters.contains(name)
            || candidate.scope.of_comprehensions.contains(name)
            || candidate.scope.bound_otherwise.contains(name)
            || places.iter().any(|span| span.start < within.start || within.end < span.end)
            || names_of(&each.iter).0.contains(name)
    });
    let certain = reads_bound(candidate, place, &parts, &stored(&each.target));
    if !plain || !one_line || used_elsewhere || !certain {
        return None;
    }
    let element_text = argument(element, module.text(element));
    let condition = test.map_or(String::new(), |test| format!(" if {}", grouped(test, module.text(test))));
    let text = format!(
        "[{element_text} for {} in {}{condition}]",
        module.text(&*each.target),
        grouped(&each.iter, module.text(&*each.iter))
    );
    let span = Span { start: value.start().to_usize(), end: each.end().to_usize() };
    Some(vec![(span, text)])
}

/// `a if b else c` is read otherwise inside a comprehension.
fn grouped(expr: &Expr, text: &str) -> String {
    let open = matches!(expr, Expr::If(_) | Expr::Tuple(_) | Expr::BoolOp(_) | Expr::Starred(_));
    if open && !text.starts_with('(') { format!("({text})") } else { text.to_owned() }
}

/// What a loop's body appends to a list, and under which condition, where it does nothing else.
fn appended<'a>(each: &'a StmtFor, list: &str) -> Option<(&'a Expr, Option<&'a Expr>)> {
    let (body, test): (&[Stmt], Option<&Expr>) = match &each.body[..] {
        [Stmt::If(conditional)] if conditional.elif_else_clauses.is_empty() => {
            (&conditional.body, Some(&conditional.test))
        }
        body => (body, None),
    };
    let [Stmt::Expr(statement)] = body else { return None };
    let Expr::Call(call) = &*statement.value else { return None };
    let method = call.func.as_attribute_expr()?;
    let is_append = method.attr.as_str() == "append" && method.value.as_name_expr()?.id.as_str() == list;
    let [element] = &*call.arguments.args else { return None };
    let whole = is_append && call.arguments.keywords.is_empty() && !element.is_starred_expr();
    whole.then_some((element, test))
}
