//! Special methods that syntax calls: `with pool` enters it, `len(pool)` asks for its length.

use ruff_python_ast::{CmpOp, Expr, ExprContext, Operator, Stmt, UnaryOp};

/// An object, and the special method of its class that is called.
pub(super) type Call<'a> = (&'a Expr, &'static str);

/// Builtins that call a special method of their first argument.
const BUILTINS: [(&str, &str); 27] = [
    ("abs", "__abs__"),
    ("aiter", "__aiter__"),
    ("all", "__iter__"),
    ("anext", "__anext__"),
    ("any", "__iter__"),
    ("bool", "__bool__"),
    ("bytes", "__bytes__"),
    ("dict", "__iter__"),
    ("enumerate", "__iter__"),
    ("float", "__float__"),
    ("frozenset", "__iter__"),
    ("hash", "__hash__"),
    ("int", "__int__"),
    ("iter", "__iter__"),
    ("len", "__len__"),
    ("list", "__iter__"),
    ("max", "__iter__"),
    ("min", "__iter__"),
    ("next", "__next__"),
    ("repr", "__repr__"),
    ("reversed", "__reversed__"),
    ("set", "__iter__"),
    ("sorted", "__iter__"),
    ("str", "__str__"),
    ("sum", "__iter__"),
    ("tuple", "__iter__"),
    ("zip", "__iter__"),
];

/// Those that no builtin of the above calls.
const OTHERS: [&str; 24] = [
    "__add__",
    "__aenter__",
    "__aexit__",
    "__await__",
    "__call__",
    "__contains__",
    "__delitem__",
    "__enter__",
    "__eq__",
    "__exit__",
    "__ge__",
    "__getitem__",
    "__gt__",
    "__invert__",
    "__le__",
    "__lt__",
    "__matmul__",
    "__mul__",
    "__ne__",
    "__neg__",
    "__or__",
    "__setitem__",
    "__sub__",
    "__truediv__",
];

/// Whether a method is one that is found by the syntax that calls it.
pub(super) fn is_special(name: &str) -> bool {
    OTHERS.contains(&name) || BUILTINS.iter().any(|(_, method)| *method == name)
}

/// What a statement itself, not its parts, calls.
pub(super) fn of_statement(statement: &Stmt) -> Vec<Call<'_>> {
    match statement {
        Stmt::With(with) => {
            let [enter, exit] =
                if with.is_async { ["__aenter__", "__aexit__"] } else { ["__enter__", "__exit__"] };
            let objects = with.items.iter().map(|item| &item.context_expr);
            objects.flat_map(|object| [(object, enter), (object, exit)]).collect()
        }
        Stmt::For(s) => of_loop(&s.iter, s.is_async),
        _ => Vec::new(),
    }
}

/// What a loop calls of what it goes over, which may be its own iterator.
pub(super) fn of_loop(iterated: &Expr, is_async: bool) -> Vec<Call<'_>> {
    let methods = if is_async { ["__aiter__", "__anext__"] } else { ["__iter__", "__next__"] };
    methods.into_iter().map(|method| (iterated, method)).collect()
}

/// What an expression itself, not its parts, calls.
pub(super) fn of_expression(expr: &Expr) -> Vec<Call<'_>> {
    match expr {
        Expr::Call(call) => {
            let mut calls = vec![(&*call.func, "__call__")];
            if let (Expr::Name(name), Some(first)) = (&*call.func, call.arguments.args.first()) {
                let of_name = BUILTINS.iter().filter(|(builtin, _)| *builtin == name.id.as_str());
                calls.extend(of_name.map(|(_, method)| (first, *method)));
            }
            calls
        }
        Expr::Subscript(subscript) => {
            let method = match subscript.ctx {
                ExprContext::Store => "__setitem__",
                ExprContext::Del => "__delitem__",
                _ => "__getitem__",
            };
            vec![(&subscript.value, method)]
        }
        Expr::Compare(compare) => {
            let left = std::iter::once(&*compare.left).chain(&compare.comparators);
            let pairs = left.zip(&compare.comparators).zip(&compare.ops);
            pairs.flat_map(|((left, right), op)| of_comparison(left, op, right)).collect()
        }
        Expr::BinOp(operation) => {
            let method = match operation.op {
                Operator::Add => "__add__",
                Operator::Sub => "__sub__",
                Operator::Mult => "__mul__",
                Operator::MatMult => "__matmul__",
                Operator::Div => "__truediv__",
                Operator::BitOr => "__or__",
                _ => return Vec::new(),
            };
            vec![(&operation.left, method)]
        }
        Expr::UnaryOp(operation) => match operation.op {
            UnaryOp::USub => vec![(&operation.operand, "__neg__")],
            UnaryOp::Invert => vec![(&operation.operand, "__invert__")],
            UnaryOp::Not => vec![(&operation.operand, "__bool__")],
            UnaryOp::UAdd => Vec::new(),
        },
        Expr::Await(awaited) => vec![(&awaited.value, "__await__")],
        Expr::Starred(starred) => vec![(&starred.value, "__iter__")],
        _ => Vec::new(),
    }
}

fn of_comparison<'a>(left: &'a Expr, op: &CmpOp, right: &'a Expr) -> Vec<Call<'a>> {
    match op {
        CmpOp::In | CmpOp::NotIn => vec![(right, "__contains__")],
        CmpOp::Eq => vec![(left, "__eq__"), (right, "__eq__")],
        CmpOp::NotEq => vec![(left, "__ne__"), (right, "__ne__"), (left, "__eq__"), (right, "__eq__")],
        CmpOp::Lt => vec![(left, "__lt__"), (right, "__gt__")],
        CmpOp::LtE => vec![(left, "__le__"), (right, "__ge__")],
        CmpOp::Gt => vec![(left, "__gt__"), (right, "__lt__")],
        CmpOp::GtE => vec![(left, "__ge__"), (right, "__le__")],
        CmpOp::Is | CmpOp::IsNot => Vec::new(),
    }
}
