//! What an expression that must be true checks.

use std::cell::Cell;

use infradev_model::Property;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, UnaryOp};
use ruff_text_size::Ranged;

use super::evidence::{Evidence, together};
use super::functions::Functions;
use super::locals::Origin;
use super::resource::{Look, offset};
use super::signals::Signal;
use super::sites::Relation;
use super::{meters, words};
use crate::definitions::dotted;
use crate::module::Module;

/// How many names and calls are followed one after another, and how many expressions are looked at for one assertion.
const DEPTH: u32 = 10;
const BUDGET: u32 = 3000;

/// Reads the expressions of one function.
pub(super) struct Reader<'a, 'm> {
    pub(super) module: &'m Module,
    pub(super) functions: &'m Functions<'a>,
    pub(super) function: Option<usize>,
    budget: &'m Cell<u32>,
}

impl<'a, 'm> Reader<'a, 'm> {
    /// A reader for one assertion of a function.
    pub(super) fn new(
        module: &'m Module,
        functions: &'m Functions<'a>,
        function: Option<usize>,
        budget: &'m Cell<u32>,
    ) -> Reader<'a, 'm> {
        budget.set(BUDGET);
        Reader { module, functions, function, budget }
    }

    /// A reader for what another function holds, on the same budget.
    pub(super) fn within(&self, function: usize) -> Reader<'a, 'm> {
        Reader { function: Some(function), ..*self }
    }

    /// Whether one more expression may be looked at.
    pub(super) fn spend(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0
    }

    pub(super) fn text(&self, ranged: &impl Ranged) -> &'m str {
        self.module.text(ranged)
    }

    pub(super) fn evidence(&self, property: Property, at: &impl Ranged) -> Evidence {
        Evidence { property, text: super::one_line(self.text(at)) }
    }

    /// What a name stands for where an expression stands.
    pub(super) fn origins(&self, name: &str, expr: &Expr) -> Vec<Origin<'a>> {
        let own = self.function.map(|at| self.functions.all[at].locals.at(name, offset(expr)));
        match own {
            Some(found) if !found.is_empty() => found,
            _ => self.functions.outside.at(name, u32::MAX),
        }
    }

    /// What a function of the file returns.
    pub(super) fn returned(&self, function: usize) -> Vec<&'a Expr> {
        struct Returns<'a>(Vec<&'a Expr>);
        impl<'a> Visitor<'a> for Returns<'a> {
            fn visit_stmt(&mut self, statement: &'a Stmt) {
                match statement {
                    Stmt::Return(given) => self.0.extend(given.value.as_deref()),
                    Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
                    _ => visitor::walk_stmt(self, statement),
                }
            }
            fn visit_expr(&mut self, _: &'a Expr) {}
        }
        let mut returns = Returns(Vec::new());
        returns.visit_body(&self.functions.all[function].node.body);
        returns.0
    }

    /// Whether an expression is a module, or a name of one, as far as imports tell.
    pub(super) fn is_module(&self, expr: &Expr) -> bool {
        dotted(expr).first().is_some_and(|root| self.functions.imported.contains(root))
    }

    /// What an expression checks that must be true, or false.
    pub(super) fn truth(&self, expr: &'a Expr) -> Evidence {
        if !self.spend() {
            return self.evidence(Property::Condition, expr);
        }
        match expr {
            Expr::UnaryOp(not) if not.op == UnaryOp::Not => self.truth(&not.operand),
            Expr::UnaryOp(one) => self.truth(&one.operand),
            Expr::BoolOp(both) => self.all(both.values.iter(), expr),
            Expr::BinOp(both) if matches!(both.op, Operator::BitAnd | Operator::BitOr) => {
                self.all([&*both.left, &*both.right], expr)
            }
            Expr::Compare(compare) => {
                let mut left = &*compare.left;
                let pairs = compare.ops.iter().zip(&compare.comparators).map(|(op, right)| {
                    let found = self.related(Relation::from(*op), left, Some(right));
                    left = right;
                    found
                });
                together(pairs).unwrap_or_else(|| self.evidence(Property::Condition, expr))
            }
            Expr::If(either) => self.all([&*either.body, &*either.orelse], expr),
            Expr::Await(awaited) => self.truth(&awaited.value),
            Expr::Named(named) => self.truth(&named.value),
            Expr::Starred(starred) => self.truth(&starred.value),
            Expr::Name(name) => self.truth_of_name(expr, name.id.as_str()),
            Expr::Attribute(_) => self.truth_of_attribute(expr),
            Expr::Subscript(_) => self.truth_of_subscript(expr),
            Expr::Call(call) => self.truth_of_call(expr, call),
            // A display with elements is true whatever they are, and one without is never.
            Expr::Tuple(tuple) => {
                let never = tuple.elts.is_empty();
                self.evidence(if never { Property::Condition } else { Property::None }, expr)
            }
            other if is_constant(other) => self.evidence(Property::None, other),
            other => self.evidence(Property::Condition, other),
        }
    }

    fn all(&self, parts: impl IntoIterator<Item = &'a Expr>, whole: &Expr) -> Evidence {
        let found = together(parts.into_iter().map(|part| self.truth(part)));
        found.unwrap_or_else(|| self.evidence(Property::Condition, whole))
    }

    fn truth_of_name(&self, expr: &'a Expr, name: &str) -> Evidence {
        let origin = self.origins(name, expr).into_iter().next();
        let found = match origin {
            Some(Origin::Caught) => return self.evidence(Property::Exception, expr),
            Some(Origin::Value(value @ (Expr::Compare(_) | Expr::BoolOp(_) | Expr::UnaryOp(_)), None)) => {
                Some(self.truth(value))
            }
            Some(Origin::Value(value @ Expr::Call(_), None)) => {
                let found = self.truth(value);
                let says = !matches!(found.property, Property::State | Property::Condition | Property::None);
                says.then_some(found)
            }
            _ => None,
        };
        match found {
            Some(found) => Evidence { text: format!("{}, by {name}", found.text), ..found },
            None => self.evidence(Property::Condition, expr),
        }
    }

    fn truth_of_attribute(&self, expr: &'a Expr) -> Evidence {
        let signals = self.signals(expr);
        if let Some(found) = signals.first_of(&[Signal::Caught, Signal::Logged]) {
            return found;
        }
        if let Expr::Attribute(attribute) = expr
            && words::RECORDS.contains(&attribute.attr.as_str())
            && self.is_collective(&attribute.value)
        {
            return self.evidence(Property::Traffic, expr);
        }
        signals.first_of(&[Signal::Shape]).unwrap_or_else(|| self.evidence(Property::State, expr))
    }

    fn truth_of_subscript(&self, expr: &'a Expr) -> Evidence {
        let signals = self.signals(expr);
        let found = signals.first_of(&[Signal::Caught, Signal::Logged, Signal::Recorded, Signal::State]);
        found.unwrap_or_else(|| self.evidence(Property::Condition, expr))
    }

    fn truth_of_call(&self, expr: &'a Expr, call: &'a ExprCall) -> Evidence {
        let name = last_name(&call.func).unwrap_or_default();
        let arguments = &call.arguments.args;
        let method =
            call.func.as_attribute_expr().filter(|of| !self.is_module(&of.value) || arguments.is_empty());
        match (name, &arguments[..], method) {
            ("all" | "any" | "bool" | "len" | "sum", [inner], None) => self.truth_of_elements(inner, name),
            ("all" | "any" | "item" | "bool", _, Some(of)) => self.truth_of_elements(&of.value, name),
            ("all" | "any", [inner, ..], _) => self.truth_of_elements(inner, name),
            ("isinstance" | "assertIsInstance", [of, ..], _)
                if self.signals(of).first_of(&[Signal::Caught]).is_some() =>
            {
                self.evidence(Property::Exception, of)
            }
            ("called_once" | "called_once_with" | "called_with" | "has_calls" | "not_called", _, Some(_)) => {
                self.evidence(Property::None, expr)
            }
            ("eq" | "ne", [left, right], _) => self.related(Relation::Equal, left, Some(right)),
            ("lt" | "le" | "gt" | "ge", [left, right], _) => self.related(Relation::Order, left, Some(right)),
            ("hasattr", ..) => self.evidence(Property::State, expr),
            _ if words::KINDS.contains(&name) || words::SHAPES.contains(&name) => {
                self.evidence(Property::ShapeOrDtype, expr)
            }
            _ if words::asks_the_disk(name) => self.evidence(Property::State, expr),
            _ => self.truth_of_other_call(expr, call, name),
        }
    }

    fn truth_of_other_call(&self, expr: &'a Expr, call: &'a ExprCall, name: &str) -> Evidence {
        let signals = self.signals_of_call(call);
        if let Some(found) = signals.first_of(&[Signal::Caught, Signal::Logged]) {
            return found;
        }
        if words::compares_content(name) {
            return self.evidence(Property::Value, expr);
        }
        if let Some(called) = self.functions.called(call) {
            let reader = self.within(called);
            let found = together(reader.returned(called).into_iter().map(|returned| reader.truth(returned)));
            let says = |found: &Evidence| !matches!(found.property, Property::None | Property::Condition);
            if let Some(found) = found.filter(says) {
                return Evidence { text: format!("{}, by {name}", found.text), ..found };
            }
        }
        let look = Look { depth: 4, words: false, sending: false };
        if let Some(found) = call.arguments.args.iter().find_map(|argument| self.measured(argument, look)) {
            return found;
        }
        let of_an_object = call.arguments.is_empty()
            && call.func.as_attribute_expr().is_some_and(|of| !self.is_module(&of.value));
        self.evidence(if of_an_object { Property::State } else { Property::Condition }, expr)
    }

    /// `all(…)`, `x.any()`: what is said of each element. The truth of tensors' own elements is their content.
    fn truth_of_elements(&self, inner: &'a Expr, name: &str) -> Evidence {
        match inner {
            Expr::Generator(each) => self.truth(&each.elt),
            Expr::ListComp(each) => self.truth(&each.elt),
            Expr::SetComp(each) => self.truth(&each.elt),
            Expr::Compare(_) | Expr::BoolOp(_) | Expr::UnaryOp(_) | Expr::BinOp(_) => self.truth(inner),
            _ if name == "len" => self.evidence(Property::Condition, inner),
            _ => {
                let found = self.truth(inner);
                let vague = matches!(found.property, Property::Condition | Property::State);
                if vague { self.evidence(Property::Value, inner) } else { found }
            }
        }
    }

    /// What a relation of two expressions checks; without a second, of the first and `None`.
    pub(super) fn related(&self, relation: Relation, left: &'a Expr, right: Option<&'a Expr>) -> Evidence {
        let Some(right) = right else { return self.related_to_none(left) };
        if is_constant(left) && is_constant(right) || self.is_itself(relation, left, right) {
            return self.evidence(Property::None, left);
        }
        let (left, right) =
            if is_constant(left) && relation != Relation::In { (right, left) } else { (left, right) };
        if !matches!(relation, Relation::Is | Relation::In)
            && let Some(found) = self.resource(relation, left, right)
        {
            return found;
        }
        let (ours, theirs) = (self.signals(left), self.signals(right));
        let roots = [Signal::Caught, Signal::Logged, Signal::Recorded];
        if let Some(found) = ours.first_of(&roots).or_else(|| theirs.first_of(&roots)) {
            return found;
        }
        let singleton = matches!(relation, Relation::Is | Relation::Equal);
        match (relation, right) {
            (_, Expr::NoneLiteral(_)) if singleton => self.related_to_none(left),
            (_, Expr::BooleanLiteral(_)) if singleton => self.truth(left),
            (Relation::Is, Expr::UnaryOp(_) | Expr::BoolOp(_) | Expr::Compare(_)) => {
                self.evidence(Property::Condition, right)
            }
            (Relation::Is, _) => ours
                .first_of(&[Signal::Shape])
                .or_else(|| theirs.first_of(&[Signal::Shape]))
                .unwrap_or_else(|| self.evidence(Property::State, left)),
            (Relation::In, _) => ours
                .first_of(&[Signal::Shape, Signal::State])
                .or_else(|| theirs.first_of(&[Signal::State]))
                .unwrap_or_else(|| self.evidence(Property::Value, right)),
            (Relation::Order, _) => ours
                .first_of(&[Signal::Identity, Signal::Tolerance])
                .or_else(|| theirs.first_of(&[Signal::Identity, Signal::Tolerance]))
                .or_else(|| ours.first_of(&[Signal::Shape]))
                .unwrap_or_else(|| self.evidence(Property::Condition, left)),
            (Relation::Close, _) => {
                ours.first_of(&[Signal::Shape]).unwrap_or_else(|| self.evidence(Property::Value, left))
            }
            (Relation::Equal, _) => ours
                .first_of(&[Signal::Shape, Signal::Identity])
                .or_else(|| theirs.first_of(&[Signal::Shape]))
                .or_else(|| ours.first_of(&[Signal::State]))
                .or_else(|| ours.first_of(&[Signal::Length]))
                .unwrap_or_else(|| self.evidence(Property::Value, left)),
        }
    }

    fn resource(&self, relation: Relation, left: &'a Expr, right: &'a Expr) -> Option<Evidence> {
        let name = self.function.map_or("", |at| self.functions.all[at].node.name.as_str());
        let look = Look {
            depth: DEPTH,
            words: relation == Relation::Order,
            sending: meters::tells_of_sending(name),
        };
        if self.is_no_amount(left) || self.is_no_amount(right) {
            return None;
        }
        // What is expected may be named after anything, and bytes of an expected shape are none that were measured.
        let expected = || self.measured(right, Look { words: false, ..look });
        self.measured(left, look)
            .or_else(|| expected().filter(|found| is_meter(found) || self.names_bytes(left)))
    }

    /// An address, a time of day: no amount, though computed of some.
    fn is_no_amount(&self, expr: &'a Expr) -> bool {
        let named =
            last_name(expr).is_some_and(|name| words::words(name).iter().any(|word| word == "timestamp"));
        named || self.signals(expr).first_of(&[Signal::Identity]).is_some()
    }

    fn names_bytes(&self, expr: &Expr) -> bool {
        last_name(expr).is_some_and(
            |name| matches!(meters::by_words(name), Some(property) if property != Property::Time),
        )
    }

    /// An attribute that is or isn't `None` is state; a result that is or isn't tells which way was taken.
    fn related_to_none(&self, left: &'a Expr) -> Evidence {
        let signals = self.signals(left);
        let roots = [Signal::Caught, Signal::Logged, Signal::Recorded, Signal::State];
        if let Some(found) = signals.first_of(&roots) {
            return found;
        }
        let kept = match left {
            Expr::Attribute(_) => true,
            Expr::Name(name) => self.origins(name.id.as_str(), left).first().is_some_and(
                |origin| matches!(origin, Origin::Value(Expr::Attribute(of), None) if !self.is_module(&of.value)),
            ),
            Expr::Call(call) => match &*call.func {
                Expr::Name(name) if name.id.as_str() == "getattr" => true,
                Expr::Name(name) => self.origins(name.id.as_str(), left).first().is_some_and(|origin| {
                    matches!(origin, Origin::Value(value, _) if self.text(*value).contains("ref("))
                }),
                _ => false,
            },
            _ => false,
        };
        self.evidence(if kept { Property::State } else { Property::Condition }, left)
    }

    /// A thing that is compared with itself, where nothing runs in between.
    fn is_itself(&self, relation: Relation, left: &Expr, right: &Expr) -> bool {
        matches!(relation, Relation::Equal | Relation::Is)
            && matches!(left, Expr::Name(_) | Expr::Attribute(_))
            && !dotted(left).is_empty()
            && self.text(left) == self.text(right)
    }
}

/// The evidence is a reading of a meter, not the size of a tensor.
fn is_meter(found: &Evidence) -> bool {
    found.property != Property::Memory
        || !["element_size", "itemsize"].iter().any(|size| found.text.contains(size))
}

/// The last segment of a name, an attribute, or a call's function.
pub(super) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

/// A literal whose truth is known.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp(one) => is_constant(&one.operand),
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_constant),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::BooleanLiteral(_) => {
            true
        }
        Expr::NoneLiteral(_) | Expr::EllipsisLiteral(_) | Expr::FString(_) | Expr::Lambda(_) => true,
        _ => false,
    }
}
