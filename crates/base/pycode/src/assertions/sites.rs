//! Where a file asserts something.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, ExceptHandler, Expr, ExprCall, Stmt, StmtTry, StmtWith};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::functions::Functions;
use crate::definitions::dotted;

/// How two things are held against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// Equal or not.
    Equal,
    /// The same content, as functions for arrays compare it.
    Close,
    /// Before or after.
    Order,
    /// The same object or not.
    Is,
    /// In it or not.
    In,
}

impl From<CmpOp> for Relation {
    fn from(op: CmpOp) -> Relation {
        match op {
            CmpOp::Eq | CmpOp::NotEq => Relation::Equal,
            CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE => Relation::Order,
            CmpOp::Is | CmpOp::IsNot => Relation::Is,
            CmpOp::In | CmpOp::NotIn => Relation::In,
        }
    }
}

/// What an assertion says.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    /// An expression is true.
    Truth(&'a Expr),
    /// Two expressions are related; without a second, the first is `None`.
    Related(Relation, &'a Expr, Option<&'a Expr>),
    /// An exception or warning is raised.
    Raises(&'a ExprCall),
    /// Something is logged.
    Logs(&'a ExprCall),
    /// A thing is of a type.
    Kind(&'a ExprCall),
    /// A mock was called so.
    Called(&'a ExprCall, &'a Expr),
    /// The line is not to be reached; true where it stands in a `try`.
    Unreached(bool),
    /// A method that asserts is named and not called.
    NotCalled(&'a Expr),
    /// A function of the same file that asserts.
    Helper(usize),
    /// A function from elsewhere that asserts by its name.
    Named(&'a ExprCall),
}

/// An assertion where it stands.
pub(super) struct Site<'a> {
    pub(super) form: Form<'a>,
    pub(super) range: TextRange,
    /// The index of its function; none outside of any.
    pub(super) function: Option<usize>,
}

/// All sites of a module, in the order of the text. `helpers` says which functions assert; call sites of others are no assertions.
pub(super) fn sites<'a>(
    body: &'a [Stmt],
    functions: &Functions<'a>,
    helpers: &dyn Fn(usize) -> bool,
) -> Vec<Site<'a>> {
    let mut walk = Walk { functions, helpers, sites: Vec::new(), function: None, tried: 0 };
    walk.visit_body(body);
    walk.sites.sort_by_key(|site| (site.range.start(), std::cmp::Reverse(site.range.end())));
    walk.sites
}

struct Walk<'a, 'f> {
    functions: &'f Functions<'a>,
    helpers: &'f dyn Fn(usize) -> bool,
    sites: Vec<Site<'a>>,
    function: Option<usize>,
    tried: u32,
}

impl<'a> Walk<'a, '_> {
    fn add(&mut self, form: Form<'a>, range: TextRange) {
        self.sites.push(Site { form, range, function: self.function });
    }

    fn with(&mut self, with: &'a StmtWith) {
        for item in &with.items {
            if let Expr::Call(call) = &item.context_expr
                && let Some(form) = expecting(call)
            {
                let end = with.body.first().map_or(with.end(), Ranged::start).min(header_end(with));
                self.add(form, TextRange::new(with.start(), end.max(item.end())));
            }
        }
    }

    /// A call that asserts; whether it does.
    fn call(&mut self, call: &'a ExprCall, range: TextRange) -> bool {
        if let Some(called) = self.functions.called(call)
            && (self.helpers)(called)
            && self.function != Some(called)
        {
            self.add(Form::Helper(called), range);
            return true;
        }
        let Some(form) = self.asserting(call) else { return false };
        self.add(form, range);
        true
    }

    fn asserting(&self, call: &'a ExprCall) -> Option<Form<'a>> {
        let (name, receiver) = match &*call.func {
            Expr::Name(name) => (name.id.as_str(), None),
            Expr::Attribute(attribute) => (attribute.attr.as_str(), Some(&*attribute.value)),
            _ => return None,
        };
        if let Some(form) = expecting(call) {
            return Some(form);
        }
        let arguments = &call.arguments.args;
        let two = |relation| Some(Form::Related(relation, arguments.first()?, Some(arguments.get(1)?)));
        match name {
            "assertTrue" | "assertFalse" => Some(Form::Truth(arguments.first()?)),
            "assertIsNone" | "assertIsNotNone" => Some(Form::Related(Relation::Is, arguments.first()?, None)),
            "assertIs" | "assertIsNot" => two(Relation::Is),
            "assertIn" | "assertNotIn" => two(Relation::In),
            "assertIsInstance" | "assertNotIsInstance" => Some(Form::Kind(call)),
            "assertGreater" | "assertGreaterEqual" | "assertLess" | "assertLessEqual"
            | "assert_array_less" => two(Relation::Order),
            "fail" if receiver.is_some_and(|of| matches!(dotted(of)[..], ["self"] | ["pytest"])) => {
                Some(Form::Unreached(self.tried > 0))
            }
            "assert_called"
            | "assert_called_once"
            | "assert_called_with"
            | "assert_called_once_with"
            | "assert_any_call"
            | "assert_has_calls"
            | "assert_not_called"
            | "assert_awaited"
            | "assert_awaited_once"
            | "assert_awaited_with"
            | "assert_awaited_once_with"
            | "assert_any_await"
            | "assert_has_awaits"
            | "assert_not_awaited" => Some(Form::Called(call, receiver?)),
            "assert_close"
            | "assert_allclose"
            | "assert_equal"
            | "assert_array_equal"
            | "assert_almost_equal"
            | "assert_array_almost_equal"
            | "assert_allclose_units" => two(Relation::Close).or(Some(Form::Named(call))),
            _ if name.starts_with("assert") && name.ends_with("Equal") => {
                two(Relation::Equal).or(Some(Form::Named(call)))
            }
            _ if name.trim_start_matches('_').starts_with("assert") => Some(Form::Named(call)),
            _ => None,
        }
    }
}

/// The end of a `with` statement's header, as far as its items tell.
fn header_end(with: &StmtWith) -> TextSize {
    let last = with.items.last();
    last.map_or(with.end(), |item| item.optional_vars.as_ref().map_or(item.end(), |target| target.end()))
}

/// A call that expects an exception, a warning or a log.
fn expecting(call: &ExprCall) -> Option<Form<'_>> {
    let name = dotted(&call.func);
    match *name.last()? {
        "raises" if name.len() < 3 => Some(Form::Raises(call)),
        "warns" if name.len() < 3 => Some(Form::Raises(call)),
        "deprecated_call"
        | "assertRaises"
        | "assertRaisesRegex"
        | "assertWarns"
        | "assertWarnsRegex"
        | "assert_raises"
        | "assert_raises_regex"
        | "assert_warns" => Some(Form::Raises(call)),
        "assertLogs" | "assertNoLogs" => Some(Form::Logs(call)),
        _ => None,
    }
}

impl<'a> Visitor<'a> for Walk<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) if self.function.is_none() => {
                self.function = self.functions.all.iter().position(|one| std::ptr::eq(one.node, function));
                visitor::walk_stmt(self, statement);
                self.function = None;
            }
            Stmt::Assert(assert) => {
                let form = match &*assert.test {
                    Expr::BooleanLiteral(literal) if !literal.value => Form::Unreached(self.tried > 0),
                    test => Form::Truth(test),
                };
                self.add(form, assert.range());
            }
            Stmt::With(with) => {
                self.with(with);
                for item in &with.items {
                    let expects = matches!(&item.context_expr, Expr::Call(call) if expecting(call).is_some());
                    if !expects {
                        self.visit_expr(&item.context_expr);
                    }
                }
                self.visit_body(&with.body);
            }
            Stmt::Expr(inner) => {
                if let Expr::Attribute(attribute) = &*inner.value
                    && attribute.attr.starts_with("assert")
                {
                    self.add(Form::NotCalled(&inner.value), statement.range());
                }
                let value = match &*inner.value {
                    Expr::Await(awaited) => &awaited.value,
                    value => value,
                };
                match value {
                    Expr::Call(call) if self.call(call, statement.range()) => {}
                    _ => visitor::walk_stmt(self, statement),
                }
            }
            Stmt::Try(tried) => self.tried(tried),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr
            && let Some(called) = self.functions.called(call)
            && (self.helpers)(called)
            && self.function != Some(called)
        {
            self.add(Form::Helper(called), expr.range());
        }
        visitor::walk_expr(self, expr);
    }
}

impl<'a> Walk<'a, '_> {
    /// A line that is not to be reached in a `try`'s body or `else`, where handlers expect an exception.
    fn tried(&mut self, tried: &'a StmtTry) {
        let expects = u32::from(!tried.handlers.is_empty());
        self.tried += expects;
        self.visit_body(&tried.body);
        for ExceptHandler::ExceptHandler(handler) in &tried.handlers {
            self.visit_body(&handler.body);
        }
        self.visit_body(&tried.orelse);
        self.tried -= expects;
        self.visit_body(&tried.finalbody);
    }
}
