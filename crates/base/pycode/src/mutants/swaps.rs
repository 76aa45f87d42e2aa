//! Operators and constants swapped. Kept few: nothing in text for people, strings not at all, `is None` not here.

use infradev_model::Operator;
use ruff_python_ast::{
    BoolOp, CmpOp, Expr, ExprBinOp, ExprCompare, Number, Operator as Arithmetic, Stmt, UnaryOp,
};
use ruff_text_size::{Ranged, TextRange};

use super::ranks::is_world_size;
use super::walk::{Edits, Site, segments};

pub(super) fn statement(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    let Stmt::AugAssign(assign) = statement else { return };
    // What is left out whole is not counted backwards as well.
    let dropped = [Operator::StaleCache, Operator::DropReset].iter().any(|op| edits.has(*op, statement));
    if dropped || is_text_or_list(&assign.value) {
        return;
    }
    let by_ranks =
        matches!(assign.op, Arithmetic::Div | Arithmetic::FloorDiv) && is_world_size(site, &assign.value);
    if let Some(other) = arithmetic(assign.op)
        && !by_ranks
        && let Some(operator) = site.operator(assign.target.end(), assign.value.start())
    {
        edits.replace(Operator::SwapArithmetic, &operator, format!("{other}="));
    }
}

pub(super) fn expression(site: &Site<'_>, expr: &Expr, edits: &mut Edits<'_>) {
    match expr {
        Expr::Compare(compare) => comparison(site, compare, edits),
        Expr::BinOp(binary) => binary_operator(site, binary, edits),
        Expr::BoolOp(boolean) => {
            // An operand that has no say.
            let neutral = if boolean.op == BoolOp::And { "True" } else { "False" };
            for operand in &boolean.values {
                edits.replace(Operator::SwapBoolean, operand, neutral);
            }
            let other = match boolean.op {
                BoolOp::And => "or",
                BoolOp::Or => "and",
            };
            // One operator stands between each two operands; all of them change, else the rest would group anew.
            let operators: Option<Vec<TextRange>> =
                boolean.values.windows(2).map(|pair| site.operator(pair[0].end(), pair[1].start())).collect();
            if let Some([operator]) = operators.as_deref() {
                edits.replace(Operator::SwapBoolean, operator, other);
            } else if let Some(operators) = operators {
                let start = operators[0].start();
                let end = operators[operators.len() - 1].end();
                let mut text = String::new();
                let mut at = start;
                for operator in operators {
                    text.push_str(site.text(&TextRange::new(at, operator.start())));
                    text.push_str(other);
                    at = operator.end();
                }
                edits.replace(Operator::SwapBoolean, &TextRange::new(start, end), text);
            }
        }
        Expr::UnaryOp(unary) if unary.op == UnaryOp::Not => {
            let start = unary.start();
            let keyword = TextRange::new(start, start + ruff_text_size::TextSize::from(3));
            edits.replace(Operator::SwapBoolean, &keyword, "");
        }
        Expr::BooleanLiteral(literal) => {
            edits.replace(Operator::SwapConstant, literal, if literal.value { "False" } else { "True" });
        }
        Expr::NumberLiteral(literal) => {
            let other = match &literal.value {
                Number::Int(int) => int.as_u64().and_then(|n| n.checked_add(1)).map(|n| n.to_string()),
                Number::Float(0.0) => Some("1.0".to_owned()),
                Number::Float(value) => Some(format!("{:?}", value * 2.0)),
                Number::Complex { .. } => None,
            };
            if let Some(other) = other {
                edits.replace(Operator::SwapConstant, literal, other);
            }
        }
        _ => {}
    }
}

/// A statement whose constant only tells one thing from another, or whose step is left out whole: `self.epoch = 0`, `_ROOT = 0`,
/// `self.total += 1`.
pub(super) fn is_label(statement: &Stmt) -> bool {
    let (target, value) = match statement {
        Stmt::Assign(assign) if assign.targets.len() == 1 => (&assign.targets[0], Some(&*assign.value)),
        Stmt::AnnAssign(assign) => (&*assign.target, assign.value.as_deref()),
        Stmt::AugAssign(assign) if assign.target.is_attribute_expr() => {
            return assign.value.is_number_literal_expr();
        }
        _ => return false,
    };
    let name = segments(target).last().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    let labels = ["id", "uid", "epoch", "version", "generation", "revision", "root", "sentinel"];
    value.is_some_and(Expr::is_number_literal_expr) && name.split('_').any(|word| labels.contains(&word))
}

fn comparison(site: &Site<'_>, compare: &ExprCompare, edits: &mut Edits<'_>) {
    // Where both paths are forced, the contrary of the condition says no more.
    let is_forced = edits.has(Operator::FallbackAlways, compare);
    let mut left = compare.left.end();
    for (op, right) in compare.ops.iter().zip(&compare.comparators) {
        let other = match op {
            CmpOp::Lt => Some("<="),
            CmpOp::LtE => Some("<"),
            CmpOp::Gt => Some(">="),
            CmpOp::GtE => Some(">"),
            _ if is_forced || right.is_none_literal_expr() => None,
            CmpOp::Eq => Some("!="),
            CmpOp::NotEq => Some("=="),
            CmpOp::In => Some("not in"),
            CmpOp::NotIn => Some("in"),
            CmpOp::Is => Some("is not"),
            CmpOp::IsNot => Some("is"),
        };
        if let Some(other) = other
            && let Some(operator) = site.operator(left, right.start())
        {
            edits.replace(Operator::SwapComparison, &operator, other);
        }
        left = right.end();
    }
}

fn binary_operator(site: &Site<'_>, binary: &ExprBinOp, edits: &mut Edits<'_>) {
    let by_ranks =
        matches!(binary.op, Arithmetic::Div | Arithmetic::FloorDiv) && is_world_size(site, &binary.right);
    if by_ranks || is_text_or_list(&binary.left) || is_text_or_list(&binary.right) {
        return;
    }
    if let Some(other) = arithmetic(binary.op)
        && let Some(operator) = site.operator(binary.left.end(), binary.right.start())
    {
        edits.replace(Operator::SwapArithmetic, &operator, other);
    }
}

/// `+` of texts and lists has no other that would run.
fn is_text_or_list(expr: &Expr) -> bool {
    match expr {
        Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::FString(_) | Expr::TString(_) => true,
        Expr::List(_) | Expr::ListComp(_) | Expr::Tuple(_) => true,
        Expr::BinOp(binary) => is_text_or_list(&binary.left) || is_text_or_list(&binary.right),
        Expr::Call(call) => matches!(super::walk::callee(call), "str" | "list" | "tuple" | "join" | "format"),
        _ => false,
    }
}

fn arithmetic(op: Arithmetic) -> Option<&'static str> {
    Some(match op {
        Arithmetic::Add => "-",
        Arithmetic::Sub => "+",
        Arithmetic::Mult => "/",
        Arithmetic::Div | Arithmetic::FloorDiv => "*",
        Arithmetic::Mod => "//",
        Arithmetic::Pow => "*",
        Arithmetic::LShift => ">>",
        Arithmetic::RShift => "<<",
        Arithmetic::BitAnd => "|",
        Arithmetic::BitOr => "&",
        Arithmetic::BitXor => "&",
        Arithmetic::MatMult => return None,
    })
}
