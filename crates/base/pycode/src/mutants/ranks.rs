//! What tells ranks apart: this rank's number, and how many there are, also under the names that a function gives them.

use std::collections::HashSet;

use ruff_python_ast::helpers::any_over_expr;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Operator as Arithmetic, Stmt};

use super::walk::{Site, callee, segments};

/// The plain names of one function, or of the module, that hold such numbers.
#[derive(Debug, Default)]
pub(super) struct Ranks<'a> {
    numbers: HashSet<&'a str>,
    counts: HashSet<&'a str>,
}

impl<'a> Ranks<'a> {
    /// The names are followed in the order of the text, not into inner functions.
    pub(super) fn of(body: &'a [Stmt]) -> Ranks<'a> {
        let mut ranks = Ranks::default();
        ranks.visit_body(body);
        ranks
    }

    /// Whether a name holds this rank's number, or what is computed from it.
    pub(super) fn is_number(&self, name: &str) -> bool {
        self.numbers.contains(name)
    }

    /// Whether a name holds how many ranks there are.
    pub(super) fn is_count(&self, name: &str) -> bool {
        self.counts.contains(name)
    }

    fn give(&mut self, target: &'a Expr, value: &'a Expr) {
        match (target, value) {
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
                targets.iter().zip(values).for_each(|(target, value)| self.give(target, value));
            }
            (Expr::Name(name), _) if self.numbers_rank(value) => {
                self.numbers.insert(name.id.as_str());
            }
            (Expr::Name(name), _) if self.counts_ranks(value) => {
                self.counts.insert(name.id.as_str());
            }
            _ => {}
        }
    }

    /// `get_rank()`, `group.rank()`, `self.tp_rank`, `int(os.environ["RANK"])`, and arithmetic with one.
    fn numbers_rank(&self, value: &Expr) -> bool {
        match value {
            Expr::Name(name) => self.is_number(&name.id) || is_rank_name(&name.id),
            Expr::Attribute(attribute) => is_rank_name(&attribute.attr),
            Expr::Subscript(subscript) => is_rank_variable(&subscript.slice),
            Expr::Call(call) => match callee(call) {
                "int" => call.arguments.args.first().is_some_and(|inner| self.numbers_rank(inner)),
                "get" | "getenv" => call.arguments.args.first().is_some_and(is_rank_variable),
                // `rank_by_score` puts in order.
                name => is_rank_name(name) && name.ends_with("rank"),
            },
            Expr::BinOp(binary) if binary.op != Arithmetic::MatMult => {
                self.numbers_rank(&binary.left) || self.numbers_rank(&binary.right)
            }
            _ => false,
        }
    }

    fn counts_ranks(&self, value: &Expr) -> bool {
        match value {
            Expr::Name(name) => self.is_count(&name.id) || is_count_of_ranks(value),
            Expr::Call(call) if matches!(callee(call), "float" | "int" | "max") => {
                call.arguments.args.iter().any(|inner| self.counts_ranks(inner))
            }
            value => is_count_of_ranks(value),
        }
    }
}

impl<'a> Visitor<'a> for Ranks<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.give(target, &assign.value));
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.give(&assign.target, value);
                }
            }
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Named(named) = expr {
            self.give(&named.target, &named.value);
        }
        visitor::walk_expr(self, expr);
    }
}

/// `rank`, `tp_rank`, `get_rank`, `rank_in_group`; the rank of a matrix is another.
fn is_rank_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split('_');
    let is_of_matrix = words.clone().any(|word| matches!(word, "lora" | "low" | "full" | "matrix" | "max"));
    !is_of_matrix && words.any(|word| word == "rank")
}

/// `"LOCAL_RANK"`, the key of a variable of the environment.
fn is_rank_variable(key: &Expr) -> bool {
    key.as_string_literal_expr().is_some_and(|key| is_rank_name(key.value.to_str()))
}

/// Whether an index names this rank's part: by words in it, or by a name that the function gave a rank's number.
pub(super) fn is_by_rank(site: &Site<'_>, index: &Expr) -> bool {
    let text = site.text(index);
    text.contains("rank")
        || text.contains("shard")
        || text.contains("local_")
        || any_over_expr(index, |part| {
            part.as_name_expr().is_some_and(|name| site.ranks(|ranks| ranks.is_number(&name.id)))
        })
}

/// Whether an expression is a number of ranks, by how it is named or by what the function gave its name.
pub(super) fn is_world_size(site: &Site<'_>, expr: &Expr) -> bool {
    match expr {
        Expr::Name(name) if site.ranks(|ranks| ranks.is_count(&name.id)) => true,
        Expr::Call(call) if matches!(callee(call), "float" | "int" | "max") => {
            call.arguments.args.iter().any(|inner| is_world_size(site, inner))
        }
        expr => is_count_of_ranks(expr),
    }
}

/// `1 / world_size`, `torch.reciprocal(n)`, `n.reciprocal()` where `n` is made from a number of ranks.
pub(super) fn is_one_by_ranks(site: &Site<'_>, expr: &Expr) -> bool {
    match expr {
        Expr::BinOp(binary) => binary.op == Arithmetic::Div && is_world_size(site, &binary.right),
        Expr::Call(call) => is_reciprocal(site, call),
        _ => false,
    }
}

/// The call among these.
pub(super) fn is_reciprocal(site: &Site<'_>, call: &ExprCall) -> bool {
    let mut of = call.arguments.args.iter().chain(call.func.as_attribute_expr().map(|f| &*f.value));
    callee(call) == "reciprocal" && of.any(|part| any_over_expr(part, |inner| is_world_size(site, inner)))
}

/// By its name alone.
fn is_count_of_ranks(expr: &Expr) -> bool {
    let names = segments(expr);
    let [owners @ .., last] = names.as_slice() else { return false };
    let last = last.to_ascii_lowercase();
    last.ends_with("world_size")
        || last.ends_with("parallel_size")
        || matches!(
            last.as_str(),
            "num_ranks"
                | "n_ranks"
                | "nranks"
                | "dp_size"
                | "tp_size"
                | "cp_size"
                | "ep_size"
                | "pp_size"
                | "sp_size"
                | "group_size"
                | "world"
                | "ws"
                | "num_replicas"
        )
        || (last == "size" && owners.last().is_some_and(|owner| owner.ends_with("group") || *owner == "pg"))
}
