//! Conditions in other forms that say the same: `a != b or c` and `not (a == b and not c)` are one, and the second of two operands may
//! as well be the first.

use ruff_python_ast::{BoolOp, CmpOp, Expr, UnaryOp};

use crate::module::Module;

/// Most operands of which every order is written.
const ORDERED: usize = 3;
/// Most operands whose comparisons are each by itself in another form than the others.
const MIXED: usize = 2;
/// Most forms of a condition within another that are tried.
const FORMS: usize = 8;

/// A condition with its negations at its operands.
enum Term {
    /// Operands, and the word between them.
    Joined(&'static str, Vec<Term>),
    /// An operand: as it is, with its sides changed, as a negation of its opposite.
    Operand([String; 3]),
}

/// A condition of several operands in its other forms, and its opposite, which tells as much, in all of them.
pub(super) fn other_forms(module: &Module, expr: &Expr) -> Vec<String> {
    let mut inner = expr;
    while let Expr::UnaryOp(not) = inner
        && not.op == UnaryOp::Not
    {
        inner = &not.operand;
    }
    if !inner.is_bool_op_expr() {
        return Vec::new();
    }
    let mut forms: Vec<String> = Vec::new();
    for is_opposite in [false, true] {
        for form in written(&term(module, expr, is_opposite)) {
            if form != module.text(expr) && !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

fn term(module: &Module, expr: &Expr, negated: bool) -> Term {
    match expr {
        Expr::UnaryOp(not) if not.op == UnaryOp::Not => term(module, &not.operand, !negated),
        Expr::BoolOp(joined) => {
            let word = if (joined.op == BoolOp::And) == negated { "or" } else { "and" };
            Term::Joined(word, joined.values.iter().map(|value| term(module, value, negated)).collect())
        }
        Expr::Compare(compare) => match (&*compare.ops, &*compare.comparators) {
            ([op], [right]) => {
                let (left, right) = (module.text(&*compare.left), module.text(right));
                let op = if negated { op.negate() } else { *op };
                let direct = format!("{left} {op} {right}");
                let turned = turned(op).map_or(direct.clone(), |op| format!("{right} {op} {left}"));
                let denied = format!("not {left} {} {right}", op.negate());
                Term::Operand([direct, turned, denied])
            }
            _ => plain(module.text(expr), negated),
        },
        _ => plain(module.text(expr), negated),
    }
}

fn plain(text: &str, negated: bool) -> Term {
    let text = if negated { format!("not {text}") } else { text.to_owned() };
    Term::Operand([text.clone(), text.clone(), text])
}

/// The comparison with its sides changed.
fn turned(op: CmpOp) -> Option<CmpOp> {
    Some(match op {
        CmpOp::Eq => CmpOp::Eq,
        CmpOp::NotEq => CmpOp::NotEq,
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::LtE => CmpOp::GtE,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::GtE => CmpOp::LtE,
        _ => return None,
    })
}

fn written(term: &Term) -> Vec<String> {
    match term {
        Term::Operand(forms) => forms.to_vec(),
        Term::Joined(word, operands) => {
            let mut operands: Vec<Vec<String>> = operands.iter().map(written).collect();
            operands.iter_mut().for_each(|forms| forms.truncate(FORMS));
            let mixtures: Vec<Vec<&str>> = if operands.len() <= MIXED {
                operands.iter().fold(vec![Vec::new()], |mixtures, forms| {
                    mixtures
                        .iter()
                        .flat_map(|mixture| {
                            forms.iter().map(|form| {
                                let mut longer = mixture.clone();
                                longer.push(form.as_str());
                                longer
                            })
                        })
                        .collect()
                })
            } else {
                (0..3)
                    .map(|form| {
                        operands.iter().map(|forms| forms[form.min(forms.len() - 1)].as_str()).collect()
                    })
                    .collect()
            };
            let joint = format!(" {word} ");
            mixtures
                .into_iter()
                .flat_map(|mixture| orders(&mixture))
                .map(|order| order.join(&joint))
                .collect()
        }
    }
}

/// The orders in which operands are written.
fn orders<'a>(operands: &[&'a str]) -> Vec<Vec<&'a str>> {
    if operands.len() > ORDERED {
        return vec![operands.to_vec(), operands.iter().rev().copied().collect()];
    }
    if operands.len() < 2 {
        return vec![operands.to_vec()];
    }
    let from = |first: usize| {
        let mut rest = operands.to_vec();
        let head = rest.remove(first);
        orders(&rest).into_iter().map(move |tail| [vec![head], tail].concat()).collect::<Vec<_>>()
    };
    (0..operands.len()).flat_map(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(text: &str) -> Vec<String> {
        let module = Module::parse("m.py", text).expect("Python");
        let [ruff_python_ast::Stmt::Expr(only)] = module.body() else { panic!("one expression") };
        other_forms(&module, &only.value)
    }

    #[test]
    fn a_condition_is_said_in_other_forms() {
        let forms = forms("a != b or c");
        for form in ["a == b and not c", "c or a != b", "b != a or c", "not a == b or c", "not c and a == b"]
        {
            assert!(forms.iter().any(|other| other == form), "{form} in {forms:?}");
        }
        assert!(!forms.iter().any(|form| form == "a == b or c"), "{forms:?}");
    }

    #[test]
    fn three_operands_are_said_in_every_order_and_four_in_two() {
        assert!(forms("a and b and c < d").contains(&"c >= d or not a or not b".to_owned()));
        assert!(forms("a and b and c and d").len() < 8);
    }

    #[test]
    fn conditions_within_conditions_have_a_bounded_number_of_forms() {
        let mut text = "a != b and c < d".to_owned();
        for _ in 0..6 {
            text = format!("({text}) or ({text}) and e == f");
        }
        assert!(forms(&text).len() <= 2 * FORMS * FORMS * 2);
    }

    #[test]
    fn one_comparison_is_no_condition_of_several_operands() {
        assert!(forms("a != b").is_empty());
        assert!(forms("not a").is_empty());
    }
}
