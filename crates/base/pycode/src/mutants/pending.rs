//! Collectives that give a handle to wait on: what stands for one that is left out.
//!
//! Its input would be no handle, and any test fails at `wait`.

use infradev_model::Operator;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::collectives::transfer;
use super::walk::{Edits, Site, call_statement, callee};
use crate::definitions::{blocks, dotted};

/// Whether what a call returns is waited on, and not its values.
pub(super) fn gives_handle(site: &Site<'_>, call: &ExprCall) -> bool {
    is_pending(site, call)
        || statements(body(site)).iter().any(|statement| {
            let assigned = assigned(statement).filter(|(_, other)| other.range() == call.range());
            assigned.is_some_and(|(name, _)| Uses::of(name, body(site)).is_waited_on)
        })
}

/// Whether a call returns before it is done.
fn is_pending(site: &Site<'_>, call: &ExprCall) -> bool {
    let name = site.imports().callee(call).trim_start_matches('_');
    ["isend", "irecv", "batch_isend"].iter().any(|prefix| name.starts_with(prefix))
        || call.arguments.find_keyword("async_op").is_some_and(|k| site.text(&k.value) != "False")
}

/// `h = dist.all_reduce(x, async_op=True)`: nothing is pending where the code asks for that, else the wait goes with it, if that is
/// all that becomes of the handle.
pub(super) fn statement(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    none_of_many(site, statement, edits);
    let Some((name, call)) = assigned(statement) else { return one_of_many(site, statement, edits) };
    if transfer(site, call).is_none() || !gives_handle(site, call) {
        return;
    }
    let uses = Uses::of(name, body(site));
    let is_batch = site.imports().callee(call).contains("batch_isend");
    match (uses.asked, uses.looped, uses.waits, uses.others) {
        (_, 1.., 0, 0) if is_batch => return edits.replace(Operator::DropCollective, call, "[]"),
        (1.., 0, 0, 0) => return edits.replace(Operator::DropCollective, call, "None"),
        _ => {}
    }
    let is_all = (uses.asked, uses.looped, uses.waits, uses.others) == (0, 0, 1, 0);
    if let Some(wait) = following(body(site), statement).iter().find(|other| waits_on(other, name))
        && is_all
    {
        let between = site.text(&TextRange::new(statement.end(), wait.start()));
        let pair = TextRange::new(statement.start(), wait.end());
        edits.replace(Operator::DropCollective, &pair, format!("pass{between}pass"));
    }
}

/// `[dist.isend(x, 1), dist.irecv(y, 1)]`: there is one less; `for work in dist.batch_isend_irecv(ops)`: there are none.
fn none_of_many(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    let many = match statement {
        // One by its number would be missed at once.
        Stmt::Assign(s) => match s.targets.as_slice() {
            [target] if dotted(target).is_empty() => return,
            [target] if site.function_text().contains(&format!("{}[", site.text(target))) => return,
            // What becomes of one that a name has is looked at by itself.
            [Expr::Name(_)] if s.value.is_call_expr() => return,
            _ => &*s.value,
        },
        Stmt::AugAssign(s) => &*s.value,
        Stmt::For(s) => &*s.iter,
        Stmt::Return(s) => match s.value.as_deref() {
            Some(value @ (Expr::List(_) | Expr::ListComp(_))) => value,
            _ => return,
        },
        Stmt::Expr(s) => match &*s.value {
            Expr::ListComp(comprehension) => &comprehension.generators[0].iter,
            Expr::Call(call) if callee(call) == "extend" => match &*call.arguments.args {
                [many] => many,
                _ => return,
            },
            _ => return,
        },
        _ => return,
    };
    let is_one = |expr: &Expr| {
        expr.as_call_expr().is_some_and(|call| transfer(site, call).is_some() && is_pending(site, call))
    };
    match many {
        Expr::List(list) => {
            for work in list.elts.iter().filter(|work| is_one(work)) {
                edits.cut(Operator::DropCollective, site.argument_part(work, list));
            }
        }
        Expr::ListComp(comprehension) if is_one(&comprehension.elt) => {
            edits.replace(Operator::DropCollective, many, "[]");
        }
        Expr::Call(call) if is_one(many) && site.imports().callee(call).contains("batch_isend") => {
            edits.replace(Operator::DropCollective, many, "[]");
        }
        _ => {}
    }
}

/// `handles.append(dist.isend(x, 1))`: there is one less.
fn one_of_many(site: &Site<'_>, statement: &Stmt, edits: &mut Edits<'_>) {
    if let Some(call) = call_statement(statement)
        && callee(call) == "append"
        && let [Expr::Call(appended)] = &*call.arguments.args
        && transfer(site, appended).is_some()
        && is_pending(site, appended)
    {
        edits.drop(Operator::DropCollective, statement);
    }
}

/// The statements of the innermost function, or of the module.
fn body<'a>(site: &Site<'a>) -> &'a [Stmt] {
    site.function().map_or(site.module.body(), |function| &function.body)
}

/// A plain name and the call whose result it is given.
fn assigned(statement: &Stmt) -> Option<(&str, &ExprCall)> {
    let assign = statement.as_assign_stmt()?;
    let [Expr::Name(name)] = assign.targets.as_slice() else { return None };
    Some((&name.id, assign.value.as_call_expr()?))
}

/// `h.wait()`
fn waits_on(statement: &Stmt, name: &str) -> bool {
    call_statement(statement).and_then(|call| call.func.as_attribute_expr()).is_some_and(|function| {
        function.attr.as_str() == "wait"
            && function.value.as_name_expr().is_some_and(|owner| owner.id.as_str() == name)
    })
}

/// All statements of a body, those in its blocks too.
fn statements(body: &[Stmt]) -> Vec<&Stmt> {
    let inner = |statement| blocks(statement).into_iter().flat_map(statements);
    body.iter().flat_map(|statement| std::iter::once(statement).chain(inner(statement))).collect()
}

/// What follows a statement in its block.
fn following<'a>(body: &'a [Stmt], statement: &Stmt) -> &'a [Stmt] {
    match body.iter().position(|other| other.range() == statement.range()) {
        Some(at) => &body[at + 1..],
        None => {
            let holds = |other: &&Stmt| other.range().contains_range(statement.range());
            let blocks = body.iter().find(holds).map(blocks).unwrap_or_default();
            blocks
                .into_iter()
                .map(|block| following(block, statement))
                .find(|rest| !rest.is_empty())
                .unwrap_or_default()
        }
    }
}

/// What a body does with a name.
#[derive(Default)]
struct Uses<'n> {
    name: &'n str,
    /// How often it is waited on by a statement that nothing but a block holds; not behind a question.
    waits: usize,
    /// Whether it is waited on at all.
    is_waited_on: bool,
    /// How often a `for` goes through it.
    looped: usize,
    /// How often an `if` asks whether it is there.
    asked: usize,
    /// All else, behind such a question apart.
    others: usize,
}

impl<'n> Uses<'n> {
    fn of(name: &'n str, body: &[Stmt]) -> Uses<'n> {
        let mut uses = Uses { name, ..Uses::default() };
        uses.visit_body(body);
        uses
    }

    fn is_it(&self, expr: &Expr) -> bool {
        expr.as_name_expr().is_some_and(|name| name.id.as_str() == self.name)
    }

    /// `h`, `h is not None`
    fn asks(&self, test: &Expr) -> bool {
        match test {
            Expr::Compare(compare) => {
                self.is_it(&compare.left)
                    && matches!((&*compare.ops, &*compare.comparators), ([CmpOp::IsNot], [other]) if other.is_none_literal_expr())
            }
            test => self.is_it(test),
        }
    }
}

impl<'a> Visitor<'a> for Uses<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::If(s) if self.asks(&s.test) => {
                self.asked += 1;
                self.is_waited_on |= statements(&s.body).iter().any(|inner| waits_on(inner, self.name));
                for clause in &s.elif_else_clauses {
                    visitor::walk_elif_else_clause(self, clause);
                }
            }
            Stmt::For(s) if self.is_it(&s.iter) => {
                self.looped += 1;
                self.visit_body(&s.body);
                self.visit_body(&s.orelse);
            }
            _ if waits_on(statement, self.name) => {
                self.waits += 1;
                self.is_waited_on = true;
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if self.is_it(expr) && expr.as_name_expr().is_some_and(|name| name.ctx.is_load()) {
            self.others += 1;
        }
        visitor::walk_expr(self, expr);
    }
}
