//! Constants that are left alone: another fails at once, or differs in time alone.

use ruff_python_ast::{Expr, ExprCall, Number, Operator as Arithmetic, UnaryOp};

use super::walk::{callee, segments};

/// Whether an argument of a call is such a constant: the `-1` of a shape, how long to sleep, how much to read at once.
pub(super) fn is_kept(call: &ExprCall, argument: &Expr) -> bool {
    let is_positional = call.arguments.args.iter().any(|other| std::ptr::eq(other, argument));
    match callee(call) {
        "view" | "reshape" | "expand" | "broadcast_to" => is_to_infer(argument),
        "sleep" => is_number(argument),
        "read" if segments(&call.func) == ["os", "read"] => is_number(argument),
        "read" | "read1" | "recv" | "recvfrom" | "iter_content" | "iter_chunked" | "copyfileobj" => {
            is_amount(argument)
        }
        _ if is_positional => false,
        _ => {
            let is_it = |value: &Expr| std::ptr::eq(value, argument);
            let named = call.arguments.keywords.iter().find(|keyword| is_it(&keyword.value));
            let name = named.and_then(|keyword| keyword.arg.as_ref()).map_or("", |name| name.as_str());
            matches!(name, "bufsize" | "buffering") && is_amount(argument)
        }
    }
}

/// The sizes of a shape that stand in one argument: `x.view((n, -1))`.
pub(super) fn sizes<'a>(call: &ExprCall, argument: &'a Expr) -> Option<&'a [Expr]> {
    let takes = matches!(callee(call), "view" | "reshape" | "expand" | "broadcast_to" | "unflatten");
    match argument {
        Expr::Tuple(tuple) if takes => Some(&tuple.elts),
        Expr::List(list) if takes => Some(&list.elts),
        _ => None,
    }
}

/// `-1`
pub(super) fn is_to_infer(size: &Expr) -> bool {
    let Expr::UnaryOp(unary) = size else { return false };
    let is_one = |number: &Number| matches!(number, Number::Int(int) if int.as_u64() == Some(1));
    unary.op == UnaryOp::USub
        && unary.operand.as_number_literal_expr().is_some_and(|literal| is_one(&literal.value))
}

/// Made of numbers alone.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::NumberLiteral(_) => true,
        Expr::BinOp(binary) => is_number(&binary.left) && is_number(&binary.right),
        Expr::UnaryOp(unary) => is_number(&unary.operand),
        _ => false,
    }
}

/// A number of bytes that only bounds what is taken at once: none of a header's few.
fn is_amount(expr: &Expr) -> bool {
    match expr {
        Expr::NumberLiteral(literal) => {
            matches!(&literal.value, Number::Int(int) if int.as_u64().is_some_and(|n| n >= 512))
        }
        Expr::BinOp(binary) => {
            matches!(binary.op, Arithmetic::Mult | Arithmetic::LShift | Arithmetic::Pow) && is_number(expr)
        }
        _ => false,
    }
}
