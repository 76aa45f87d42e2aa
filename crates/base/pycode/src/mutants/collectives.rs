//! Collectives and transfers between ranks: left out, done twice, reduced otherwise, on rank 0 alone, not divided.

use infradev_model::Operator;
use ruff_python_ast::{Expr, ExprBinOp, ExprCall, ExprStringLiteral, Operator as Arithmetic, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::groups::is_group;
use super::ranks::{self, is_world_size};
use super::walk::{Edits, Site, call_statement, callee, segments};
use super::{pending, quiet};
use crate::definitions::dotted;

/// What passes between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transfer {
    /// Each rank's values added or compared into one.
    Reduce,
    /// Anything else: gathered, scattered, sent, waited for.
    Other,
}

/// What a call transfers: the functions of `torch.distributed`, its functional collectives, and helpers and autograd
/// functions named after them (`reduce_from_tensor_model_parallel_region`, `_AllToAll.apply`), under an import's other name too.
pub(super) fn transfer(site: &Site<'_>, call: &ExprCall) -> Option<Transfer> {
    let names = site.imports().segments(&call.func);
    let (mut name, owners) = match names.as_slice() {
        [owners @ .., class, "apply"] => (snake_case(class), owners),
        [owners @ .., name] if !name.starts_with(char::is_uppercase) => ((*name).to_owned(), owners),
        _ => return None,
    };
    name = name.trim_matches('_').to_owned();
    let asks =
        ["get_", "is_", "has_", "use_", "set_", "make_", "build_", "create_", "init_", "register_", "can_"];
    let things = [
        "group", "groups", "size", "sizes", "rank", "ranks", "stream", "handle", "handles", "hook", "hooks",
        "kernel", "config", "fn", "func", "event", "events", "buffer", "buffers", "bytes", "count",
        "impl_for", "enabled",
    ];
    let last_word = name.rsplit('_').next().unwrap_or_default();
    if asks.iter().any(|prefix| name.starts_with(prefix)) || things.contains(&last_word) {
        return None;
    }
    let has = |part: &str| name.contains(part);
    if has("all_reduce") || has("allreduce") || has("reduce_scatter") || has("reducescatter") {
        return Some(Transfer::Reduce);
    }
    if has("all_gather") || has("allgather") || has("all_to_all") || has("alltoall") || has("all2all") {
        return Some(Transfer::Other);
    }
    if name.starts_with("reduce_from_") || name.starts_with("reduce_to_") {
        return Some(Transfer::Reduce);
    }
    let starts = ["gather_from_", "scatter_to_", "isend", "irecv", "batch_isend", "p2p_", "send_forward"];
    if starts.iter().any(|prefix| name.starts_with(prefix)) || has("recv_forward") || has("_backward_recv") {
        return Some(Transfer::Other);
    }
    if matches!(name.as_str(), "barrier" | "monitored_barrier") {
        return Some(Transfer::Other);
    }
    // Words that others use too.
    let distributed = owners.iter().any(|owner| {
        let owner = owner.to_ascii_lowercase();
        ["dist", "comm", "c10d", "funcol", "nccl", "group", "transport"]
            .iter()
            .any(|part| owner.contains(part))
            || owner == "pg"
    }) || call.arguments.find_keyword("group").is_some();
    let exact = matches!(
        name.as_str(),
        "reduce"
            | "gather"
            | "scatter"
            | "broadcast"
            | "send"
            | "recv"
            | "gather_object"
            | "scatter_object_list"
            | "broadcast_object_list"
            | "broadcast_object"
            | "send_object_list"
            | "recv_object_list"
            | "exchange"
    );
    match name.as_str() {
        "reduce" if distributed => Some(Transfer::Reduce),
        _ if exact && distributed => Some(Transfer::Other),
        "broadcast" if owners.first().is_none_or(|owner| *owner == "self") => Some(Transfer::Other),
        "gather_object" | "scatter_object_list" | "broadcast_object_list" => Some(Transfer::Other),
        _ => None,
    }
}

/// `_ReduceScatter` is `reduce_scatter`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

pub(super) fn statement(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    if let Some(call) = call_statement(statement)
        && let Some(transfer) = transfer(site, call)
    {
        edits.drop(Operator::DropCollective, statement);
        let text = site.text(statement);
        if transfer == Transfer::Reduce && in_place(site, call) && !is_idempotent(site, call) {
            edits.replace(Operator::DoubleCollective, statement, format!("{text}; {text}"));
        }
        not_waited_for(site, call, edits);
    }
    pending::statement(site, statement, edits);
    rank_zero_only(site, statement, edits);
    missing_division_statement(site, statement, edits);
}

/// A collective of `torch.distributed` that returns before it is done, and no one waits.
fn not_waited_for(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    let Expr::Attribute(function) = &*call.func else { return };
    if !is_torch_distributed(site, &function.value) || !takes_async_op(site.imports().callee(call)) {
        return;
    }
    let asked = call.arguments.find_keyword("async_op");
    let last = call
        .arguments
        .args
        .iter()
        .map(Ranged::range)
        .chain(call.arguments.keywords.iter().map(Ranged::range));
    match (asked, last.max_by_key(|range| range.end())) {
        (Some(asked), _) if site.text(&asked.value) == "False" => {
            edits.replace(Operator::MissingWait, &asked.value, "True");
        }
        (Some(_), _) => {}
        (None, Some(last)) => {
            edits.replace(Operator::MissingWait, &last, format!("{}, async_op=True", site.text(&last)));
        }
        (None, None) => edits.replace(Operator::MissingWait, &call.arguments, "(async_op=True)"),
    }
}

fn takes_async_op(name: &str) -> bool {
    let starts = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"];
    (starts.iter().any(|prefix| name.starts_with(prefix)) && !name.ends_with("object"))
        || matches!(name, "broadcast" | "reduce" | "gather" | "scatter" | "barrier")
}

fn is_torch_distributed(site: &Site<'_>, owner: &Expr) -> bool {
    !dotted(owner).is_empty()
        && matches!(
            site.imports().segments(owner).as_slice(),
            ["dist" | "distributed" | "torch_dist"] | ["torch", "distributed"]
        )
}

/// Whether a second call would reduce what the first one wrote.
fn in_place(site: &Site<'_>, call: &ExprCall) -> bool {
    !site.imports().callee(call).to_ascii_lowercase().contains("scatter")
}

/// The greatest of the greatest is the greatest.
fn is_idempotent(site: &Site<'_>, call: &ExprCall) -> bool {
    let arguments = site.text(&call.arguments);
    ["ReduceOp.MAX", "ReduceOp.MIN", "ReduceOp.AVG"].iter().any(|op| arguments.contains(op))
        || reduce_ops(call).any(|op| matches!(op.value.to_str(), "max" | "min" | "avg" | "mean"))
}

/// A collective inside an expression: its input stands for its result.
pub(super) fn call(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    missing_division_call(site, call, edits);
    let Some(transfer) = transfer(site, call) else { return };
    reduce_op_left_out(site, call, transfer, edits);
    // Dropped as a statement.
    if edits.has(Operator::DropCollective, call) || pending::gives_handle(site, call) {
        return;
    }
    let input =
        call.arguments.args.iter().find(|argument| !is_group(argument) && !argument.is_starred_expr());
    let Some(input) = input else { return };
    if !matches!(input, Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_)) {
        return;
    }
    edits.replace(Operator::DropCollective, call, site.text(input));
    if transfer == Transfer::Reduce && in_place(site, call) && !is_idempotent(site, call) {
        edits.replace(Operator::DoubleCollective, input, site.text(call));
    }
}

/// `all_reduce` without an operator sums; the maximum is taken instead.
fn reduce_op_left_out(site: &Site<'_>, call: &ExprCall, transfer: Transfer, edits: &mut Edits<'_>) {
    let Expr::Attribute(function) = &*call.func else { return };
    let owner = site.text(&*function.value);
    let of_torch = is_torch_distributed(site, &function.value);
    let has_op =
        call.arguments.find_keyword("op").is_some() || site.text(&call.arguments).contains("ReduceOp");
    // How many of its arguments stand before the operator, where they go by place.
    let before = match function.attr.as_str() {
        "all_reduce" => 1,
        "reduce" | "reduce_scatter" | "reduce_scatter_tensor" => 2,
        _ => return,
    };
    if transfer != Transfer::Reduce || !of_torch || has_op {
        return;
    }
    if let [.., last] = &*call.arguments.args
        && call.arguments.args.len() <= before
        && !call.arguments.args.iter().any(Expr::is_starred_expr)
    {
        let text = format!("{}, op={owner}.ReduceOp.MAX", site.text(last));
        edits.replace(Operator::WrongReduceOp, last, text);
    }
}

pub(super) fn expression(site: &Site<'_>, expr: &Expr, edits: &mut Edits<'_>) {
    match expr {
        Expr::Attribute(attribute) if segments(&attribute.value).last() == Some(&"ReduceOp") => {
            let others: &[&str] = match attribute.attr.as_str() {
                "SUM" => &["MAX", "AVG"],
                "AVG" => &["SUM", "MAX"],
                "MAX" => &["MIN", "SUM"],
                "MIN" => &["MAX", "SUM"],
                "PRODUCT" => &["SUM"],
                _ => &[],
            };
            for other in others {
                edits.replace(Operator::WrongReduceOp, &attribute.attr, *other);
            }
        }
        Expr::Call(call) => {
            // By its place only a collective's: any call may take such a word.
            let is_transfer = transfer(site, call) == Some(Transfer::Reduce);
            let named = reduce_ops(call)
                .filter(|op| is_transfer || !call.arguments.args.iter().any(|a| a.range() == op.range()));
            for op in named {
                let others: &[&str] = match op.value.to_str() {
                    "sum" if is_transfer => &["max", "avg"],
                    "sum" | "min" => &["max"],
                    "avg" | "mean" | "max" => &["sum"],
                    _ => &[],
                };
                for other in others {
                    edits.replace(Operator::WrongReduceOp, op, format!("\"{other}\""));
                }
            }
        }
        Expr::BinOp(binary) => missing_division(site, binary, edits),
        _ => {}
    }
}

/// The strings of a call that may name how it reduces: by the keyword, or in a place.
fn reduce_ops(call: &ExprCall) -> impl Iterator<Item = &ExprStringLiteral> {
    let names_op = |name: &str| matches!(name, "op" | "reduceOp" | "reduce_op" | "reduction");
    let keywords = call.arguments.keywords.iter();
    let by_keyword = keywords.filter(move |keyword| keyword.arg.as_ref().is_some_and(|name| names_op(name)));
    let values = by_keyword.map(|keyword| &keyword.value);
    call.arguments.args.iter().chain(values).filter_map(Expr::as_string_literal_expr)
}

fn missing_division(site: &Site<'_>, binary: &ExprBinOp, edits: &mut Edits<'_>) {
    let Some(operator) = site.operator(binary.left.end(), binary.right.start()) else { return };
    let is_reciprocal =
        |factor: &Expr| factor.as_call_expr().is_some_and(|call| ranks::is_reciprocal(site, call));
    let part = match binary.op {
        Arithmetic::Div | Arithmetic::FloorDiv if is_world_size(site, &binary.right) => {
            TextRange::new(operator.start(), binary.end())
        }
        Arithmetic::Mult if is_reciprocal(&binary.right) => TextRange::new(operator.start(), binary.end()),
        Arithmetic::Mult if is_reciprocal(&binary.left) => TextRange::new(binary.start(), operator.end()),
        _ => return,
    };
    edits.cut(Operator::MissingWorldSizeDivision, part);
}

fn missing_division_statement(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    let is_left_out = match statement {
        Stmt::AugAssign(assign) => match assign.op {
            Arithmetic::Div | Arithmetic::FloorDiv => is_world_size(site, &assign.value),
            _ => false,
        },
        _ => call_statement(statement).is_some_and(|call| divided(site, call).is_some()),
    };
    if is_left_out {
        edits.drop(Operator::MissingWorldSizeDivision, statement);
    }
}

/// A call that divides inside an expression: what it divides stands for it.
fn missing_division_call(site: &Site<'_>, call: &ExprCall, edits: &mut Edits<'_>) {
    if edits.has(Operator::MissingWorldSizeDivision, call) {
        return;
    }
    match divided(site, call) {
        Some(Divided::Argument(tensor)) => {
            edits.replace(Operator::MissingWorldSizeDivision, call, site.operand(tensor));
        }
        Some(Divided::Receiver(method)) => edits.cut(Operator::MissingWorldSizeDivision, method),
        None => {}
    }
}

/// What a call divides by the number of ranks.
enum Divided<'e> {
    /// The argument of a module's function: `torch.div(x, world_size)`.
    Argument(&'e Expr),
    /// What the method that stands here is called on: `x.div_(world_size)`, `x.mul_(1.0 / world_size)`.
    Receiver(TextRange),
}

fn divided<'e>(site: &Site<'_>, call: &'e ExprCall) -> Option<Divided<'e>> {
    let function = call.func.as_attribute_expr()?;
    let (divided, by) = match (site.imports().is_module(&function.value), &*call.arguments.args) {
        (true, [tensor, by, ..]) => (Divided::Argument(tensor), by),
        (false, [by, ..]) => (Divided::Receiver(site.method_part(call)?), by),
        _ => return None,
    };
    let divides = match function.attr.as_str() {
        "div_" | "div" | "true_divide" | "true_divide_" | "divide" | "divide_" => is_world_size(site, by),
        "mul_" | "mul" | "multiply" | "scale_" => ranks::is_one_by_ranks(site, by),
        _ => false,
    };
    divides.then_some(divided)
}

/// A condition that holds on rank 0, also where no process group has been made.
const ON_RANK_ZERO: &str = "__import__(\"os\").environ.get(\"RANK\", \"0\") == \"0\"";

/// In functions that deal with ranks: an effect that is left to rank 0. A collective would only hang.
fn rank_zero_only(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    if site.function().is_none() || site.in_constructor() || !deals_with_ranks(site.function_text()) {
        return;
    }
    let has_effect = match statement {
        Stmt::Expr(_) => call_statement(statement).is_some_and(|call| {
            let container =
                matches!(callee(call), "append" | "extend" | "add" | "wait" | "synchronize" | "insert");
            transfer(site, call).is_none()
                && !container
                && !quiet::is_talk(call)
                && callee(call) != "__init__"
        }),
        Stmt::AugAssign(assign) => !assign.target.is_name_expr() && !contains_transfer(site, &assign.value),
        _ => false,
    };
    if has_effect {
        let text = site.text(statement);
        edits.replace(Operator::RankZeroOnly, statement, format!("if {ON_RANK_ZERO}: {text}"));
    }
}

fn contains_transfer(site: &Site<'_>, expr: &Expr) -> bool {
    use ruff_python_ast::helpers::any_over_expr;
    any_over_expr(expr, |e| e.as_call_expr().is_some_and(|call| transfer(site, call).is_some()))
}

fn deals_with_ranks(text: &str) -> bool {
    [
        "rank",
        "dist.",
        "distributed",
        "world_size",
        "_group",
        "all_reduce",
        "all_gather",
        "all_to_all",
        "broadcast",
    ]
    .iter()
    .any(|word| text.contains(word))
}
