//! Tensors: shards, copies and views, memory, types, gradients, pending operations.

use infradev_model::Operator;
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};
use ruff_text_size::{Ranged, TextRange};

use super::ranks::is_by_rank;
use super::walk::{Edits, Site, callee, segments};
use crate::definitions::dotted;

pub(super) fn statement(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    match statement {
        Stmt::Delete(delete) if delete.targets.iter().all(Expr::is_name_expr) => {
            edits.drop(Operator::NoFree, statement);
        }
        // A local name let go of; one that has no value before is only declared, and dropping that changes little.
        Stmt::Assign(assign)
            if assign.value.is_none_literal_expr()
                && assign.targets.iter().all(Expr::is_name_expr)
                && is_bound_before(site, statement) =>
        {
            edits.drop(Operator::NoFree, statement);
        }
        Stmt::Assign(assign) => {
            assign.targets.iter().for_each(|target| copied(site, target, &assign.value, edits));
        }
        Stmt::Return(returned) => {
            if let Some(value) = &returned.value {
                copied_view(site, value, edits);
                copied_part(site, value, edits);
                cut_gradient(site, value, edits);
            }
        }
        Stmt::With(with) => {
            for item in &with.items {
                if let Expr::Call(call) = &item.context_expr
                    && let Expr::Attribute(function) = &*call.func
                    && matches!(function.attr.as_str(), "no_grad" | "inference_mode")
                {
                    edits.replace(Operator::MissingDetach, &function.attr, "enable_grad");
                }
            }
        }
        Stmt::Expr(expr) => {
            let call = match &*expr.value {
                Expr::Await(awaited) => awaited.value.as_call_expr(),
                other => other.as_call_expr(),
            };
            let Some(name) = call.map(callee) else { return };
            if let Some(call) = call.filter(|_| matches!(name, "append" | "appendleft" | "insert" | "add"))
                && let (Expr::Attribute(method), [.., kept]) = (&*call.func, &*call.arguments.args)
            {
                copied(site, &method.value, kept, edits);
            }
            let arguments = call.map(|call| site.text(&call.arguments)).unwrap_or_default();
            let bare = name.trim_start_matches('_');
            if is_release(bare) || (bare == "resize_" && arguments == "(0)") {
                edits.drop(Operator::NoFree, statement);
            } else if is_wait(bare) {
                edits.drop(Operator::MissingWait, statement);
            } else if bare == "detach_" {
                edits.drop(Operator::MissingDetach, statement);
            }
        }
        _ => {}
    }
}

fn is_bound_before(site: &Site<'_>, statement: &Stmt) -> bool {
    let Stmt::Assign(assign) = statement else { return false };
    let Some(function) = site.function() else { return false };
    let before = site.text(&TextRange::new(function.start(), statement.start()));
    assign.targets.iter().any(|target| {
        let name = site.text(target);
        before.match_indices(name).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.');
            edge(before[..at].chars().next_back()) && edge(before[at + name.len()..].chars().next())
        })
    })
}

fn is_release(name: &str) -> bool {
    let starts = ["free", "release", "offload", "deallocate", "dealloc", "unpin", "evict", "reclaim"];
    starts.iter().any(|prefix| name == *prefix || name.starts_with(&format!("{prefix}_")))
        || matches!(
            name,
            "empty_cache" | "collect" | "ipc_collect" | "shutdown" | "close" | "unlink" | "destroy"
        )
}

fn is_wait(name: &str) -> bool {
    matches!(
        name,
        "wait" | "synchronize" | "join" | "result" | "drain" | "flush" | "wait_stream" | "wait_event"
    ) || name.starts_with("wait_")
        || name.ends_with("_wait")
        || (name.starts_with("finish_") && name.contains("sync"))
}

pub(super) fn call(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    let name = callee(call);
    let arguments = &call.arguments;
    let without = arguments.args.is_empty() && arguments.keywords.is_empty();
    let method = site.method_part(call);
    let mut cut = |operator| {
        if let Some(method) = method {
            edits.cut(operator, method);
        }
    };
    match name {
        "float" | "double" if without => cut(Operator::WrongDtype),
        "to" | "type" | "type_as" => {
            let text = site.text(arguments);
            if text.contains("\"cpu\"") || text.contains("'cpu'") {
                cut(Operator::NoFree);
            } else if text.contains("float32")
                || text.contains("float64")
                || text.contains("dtype")
                || name != "to"
            {
                cut(Operator::WrongDtype);
            }
        }
        "cpu" if without => cut(Operator::NoFree),
        "detach" if without => cut(Operator::MissingDetach),
        "clone" | "contiguous" if arguments.args.is_empty() => cut(Operator::ViewForCopy),
        "copy" if without => cut(Operator::ViewForCopy),
        "narrow" if arguments.len() == 3 || is_function(site, call) => whole(site, call, call, edits),
        "deepcopy" | "copy" if arguments.args.len() == 1 => {
            let text = site.text(&arguments.args[0]);
            edits.replace(Operator::ViewForCopy, call, text);
        }
        "list" | "dict" | "set" if arguments.args.len() == 1 && arguments.keywords.is_empty() => {
            let argument = &arguments.args[0];
            if call.func.is_name_expr() && matches!(argument, Expr::Name(_) | Expr::Attribute(_)) {
                edits.replace(Operator::ViewForCopy, call, site.text(argument));
            }
        }
        _ if name.starts_with("split_tensor_into_") || name.starts_with("get_local_shard") => {
            if let Some(first) = arguments.args.first() {
                edits.replace(Operator::FullMaterialisation, call, site.text(first));
            }
        }
        _ => {}
    }
    for keyword in &arguments.keywords {
        let is_dtype = keyword.arg.as_ref().is_some_and(|name| name.ends_with("dtype"));
        if is_dtype && segments(&keyword.value).last().is_some_and(|last| last.ends_with("dtype")) {
            edits.replace(Operator::WrongDtype, &keyword.value, "__import__(\"torch\").bfloat16");
        }
    }
}

/// Whether a call is of a module's function, which takes the tensor that a method is called on: `torch.narrow(x, 0, …)`.
fn is_function(site: &Site<'_>, call: &ExprCall) -> bool {
    match &*call.func {
        Expr::Attribute(function) => site.imports().is_module(&function.value),
        function => function.is_name_expr(),
    }
}

/// In place of a part, the tensor of which a call takes it.
fn whole(site: &Site<'_>, call: &ExprCall, part: &impl Ranged, edits: &mut Edits<'_>) {
    if !is_function(site, call) {
        if let Some(method) = site.method_part(call) {
            edits.cut(Operator::FullMaterialisation, TextRange::new(method.start(), part.end()));
        }
        return;
    }
    let named = |name| call.arguments.find_keyword(name).map(|keyword| &keyword.value);
    let tensor = call.arguments.args.first().or_else(|| named("input")).or_else(|| named("tensor"));
    if let Some(tensor) = tensor.filter(|tensor| !tensor.is_starred_expr()) {
        edits.replace(Operator::FullMaterialisation, part, site.operand(tensor));
    }
}

/// What a module's `forward` returns is cut off from what made it. Only what looks like one tensor. Not in a function of
/// autograd, whose result gets its node whatever it is.
fn cut_gradient(site: &Site<'_>, value: &Expr, edits: &mut Edits<'_>) {
    let forward = site.function().is_some_and(|function| function.name.as_str() == "forward")
        && !site.class().is_some_and(|class| is_autograd_function(site, class));
    let text = site.text(value);
    match value {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_) if forward => {
            edits.replace(Operator::CutGradient, value, format!("{text}.detach()"));
        }
        Expr::BinOp(_) if forward => {
            edits.replace(Operator::CutGradient, value, format!("({text}).detach()"))
        }
        _ => {}
    }
}

fn is_autograd_function(site: &Site<'_>, class: &StmtClassDef) -> bool {
    let is_one = |base: &Expr| {
        matches!(
            site.imports().segments(base).as_slice(),
            ["Function" | "InplaceFunction"]
                | [.., "function", "Function" | "InplaceFunction"]
                | [.., "autograd", "Function"]
        )
    };
    class.bases().iter().any(is_one)
}

/// What is given to a name, stored in an attribute or kept in a container becomes a copy, each of several by itself.
fn copied(site: &Site<'_>, target: &Expr, value: &Expr, edits: &mut Edits<'_>) {
    if let (Expr::Tuple(targets), Expr::Tuple(values)) = (target, value) {
        let pairs = targets.iter().zip(values).filter(|_| targets.len() == values.len());
        return pairs.for_each(|(target, value)| copied(site, target, value, edits));
    }
    copied_view(site, value, edits);
    if target.is_attribute_expr() {
        copied_part(site, value, edits);
    }
}

/// A view as the value of a statement becomes a copy.
fn copied_view(site: &Site<'_>, value: &Expr, edits: &mut Edits<'_>) {
    let Expr::Call(call) = value else { return };
    if matches!(callee(call), "view" | "view_as" | "narrow" | "from_numpy" | "as_strided")
        && call.func.is_attribute_expr()
    {
        edits.replace(Operator::CopyForView, call, format!("{}.clone()", site.text(call)));
    }
}

/// A view that outlives its statement, stored on an object or returned, becomes a copy: a slice, or other axes. A list has slices too,
/// an array axes, and neither has `clone`: only of what is a tensor where it stands.
fn copied_part(site: &Site<'_>, value: &Expr, edits: &mut Edits<'_>) {
    let is_part = match value {
        Expr::Subscript(subscript) => has_slice(&subscript.slice) && is_tensor(site, &subscript.value),
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(method) if site.imports().is_module(&method.value) => {
                site.imports().segments(&method.value) == ["torch"] && moves_axes(&method.attr)
            }
            Expr::Attribute(method) => moves_axes(&method.attr) && site.module.source().contains("torch"),
            _ => false,
        },
        _ => false,
    };
    if is_part {
        edits.replace(Operator::CopyForView, value, format!("{}.clone()", site.text(value)));
    }
}

fn moves_axes(name: &str) -> bool {
    matches!(name, "transpose" | "permute" | "movedim" | "swapaxes")
}

/// Whether an expression is a tensor by how it is made, or by what its function does with a name elsewhere.
fn is_tensor(site: &Site<'_>, expr: &Expr) -> bool {
    const ONLY_TENSORS: [&str; 14] = [
        "view(",
        "view_as(",
        "detach(",
        "contiguous(",
        "unsqueeze(",
        "permute(",
        "narrow(",
        "index_select(",
        "copy_(",
        "mul_(",
        "add_(",
        "zero_(",
        "is_cuda",
        "requires_grad",
    ];
    if let Expr::Call(call) = expr {
        let made_by_torch = site.imports().segments(&call.func).first() == Some(&"torch");
        let is_method = call.func.is_attribute_expr()
            && (callee(call) == "reshape" && site.module.source().contains("torch")
                || ONLY_TENSORS.iter().any(|word| word.strip_suffix('(') == Some(callee(call))));
        return made_by_torch || is_method;
    }
    if dotted(expr).is_empty() {
        return false;
    }
    let (name, text) = (site.text(expr), site.function_text());
    let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "_.".contains(c));
    let is_used_as_one = |rest: &str| {
        let annotation = rest.strip_prefix(": ").map(|rest| rest.trim_start_matches("torch."));
        annotation.is_some_and(|rest| rest.starts_with("Tensor"))
            || rest
                .strip_prefix('.')
                .is_some_and(|rest| ONLY_TENSORS.iter().any(|word| rest.starts_with(word)))
    };
    text.match_indices(name).any(|(at, _)| begins(at) && is_used_as_one(&text[at + name.len()..]))
}

pub(super) fn expression(site: &Site<'_>, expr: &Expr, edits: &mut Edits<'_>) {
    match expr {
        Expr::Attribute(attribute) => {
            let owner = segments(&attribute.value);
            let other = match (owner.as_slice(), attribute.attr.as_str()) {
                (["torch"], "float32" | "float") => "bfloat16",
                (["torch"], "float64" | "double") => "float32",
                (["np" | "numpy"], "float64") => "float32",
                (["np" | "numpy"], "float32") => "float16",
                _ => return,
            };
            edits.replace(Operator::WrongDtype, &attribute.attr, other);
        }
        Expr::Subscript(subscript) if subscript.ctx.is_load() => {
            let index = site.text(&*subscript.slice);
            let part = TextRange::new(subscript.value.end(), subscript.end());
            let by_rank = is_by_rank(site, &subscript.slice);
            let chunked = subscript
                .value
                .as_call_expr()
                .is_some_and(|call| matches!(callee(call), "chunk" | "split" | "tensor_split" | "unbind"));
            if chunked && by_rank {
                if let Some(call) = subscript.value.as_call_expr() {
                    whole(site, call, subscript, edits);
                }
            } else if has_slice(&subscript.slice)
                && (by_rank || index.contains("start") || index.contains("offset"))
            {
                let open = site.opening_bracket(part);
                edits.cut(Operator::FullMaterialisation, TextRange::new(open, subscript.end()));
            }
        }
        _ => {}
    }
}

fn has_slice(index: &Expr) -> bool {
    match index {
        Expr::Slice(slice) => slice.lower.is_some() || slice.upper.is_some(),
        Expr::Tuple(tuple) => tuple.elts.iter().any(has_slice),
        _ => false,
    }
}
