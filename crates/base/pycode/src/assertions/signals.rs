//! What stands on the way from an expression to what it is read from: attributes, calls, names.

use infradev_model::Property;
use ruff_python_ast::{Expr, ExprAttribute, ExprCall};

use super::evidence::Evidence;
use super::locals::Origin;
use super::reading::{Reader, last_name};
use super::{meters, words};
use crate::definitions::{decorator_name, dotted};

/// What was met on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// An exception or warning that was caught.
    Caught,
    /// A log or what was printed.
    Logged,
    /// What a mock recorded.
    Recorded,
    /// A shape, a dtype, a device, a type.
    Shape,
    /// A number of elements.
    Length,
    /// Something kept on an object.
    State,
    /// An address.
    Identity,
    /// A difference, a norm.
    Tolerance,
}

impl Signal {
    fn property(self) -> Property {
        match self {
            Signal::Caught => Property::Exception,
            Signal::Logged => Property::Condition,
            Signal::Shape | Signal::Length => Property::ShapeOrDtype,
            Signal::Recorded | Signal::State | Signal::Identity => Property::State,
            Signal::Tolerance => Property::Value,
        }
    }
}

/// All that was met.
pub(super) struct Signals(Vec<(Signal, Evidence)>);

impl Signals {
    /// The evidence of the first of these signals that was met.
    pub(super) fn first_of(&self, signals: &[Signal]) -> Option<Evidence> {
        signals.iter().find_map(|signal| {
            self.0.iter().find(|(met, _)| met == signal).map(|(_, evidence)| evidence.clone())
        })
    }
}

/// How a walk goes on.
#[derive(Clone, Copy)]
struct Way {
    depth: u32,
    /// Only what is at the root counts: exceptions, logs, mocks.
    roots: bool,
}

impl Way {
    fn to_roots(self) -> Way {
        Way { roots: true, ..self }
    }
}

impl<'a> Reader<'a, '_> {
    /// What stands on the way of an expression.
    pub(super) fn signals(&self, expr: &'a Expr) -> Signals {
        let mut met = Signals(Vec::new());
        self.walk(expr, Way { depth: 6, roots: false }, &mut met);
        met
    }

    /// What stands on the way of a call's receiver and arguments, at the roots.
    pub(super) fn signals_of_call(&self, call: &'a ExprCall) -> Signals {
        let mut met = Signals(Vec::new());
        let way = Way { depth: 4, roots: true };
        if let Expr::Attribute(attribute) = &*call.func {
            self.walk(&attribute.value, way, &mut met);
        }
        call.arguments.args.iter().for_each(|argument| self.walk(argument, way, &mut met));
        met
    }

    fn met(&self, signal: Signal, expr: &Expr, way: Way, met: &mut Signals) {
        let of_roots = matches!(signal, Signal::Caught | Signal::Logged | Signal::Recorded);
        if of_roots || !way.roots {
            met.0.push((signal, self.evidence(signal.property(), expr)));
        }
    }

    fn walk(&self, expr: &'a Expr, way: Way, met: &mut Signals) {
        if way.depth == 0 || !self.spend() {
            return;
        }
        match expr {
            Expr::Name(name) => self.walk_name(expr, name.id.as_str(), way, met),
            Expr::Attribute(attribute) => self.walk_attribute(expr, attribute, way, met),
            Expr::Call(call) => self.walk_call(expr, call, way, met),
            Expr::Subscript(subscript) => self.walk(&subscript.value, way, met),
            Expr::BinOp(both) => {
                self.walk(&both.left, way, met);
                self.walk(&both.right, way, met);
            }
            Expr::UnaryOp(one) => self.walk(&one.operand, way, met),
            Expr::Await(awaited) => self.walk(&awaited.value, way, met),
            Expr::Starred(starred) => self.walk(&starred.value, way, met),
            Expr::Named(named) => self.walk(&named.value, way, met),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|element| self.walk(element, way, met)),
            Expr::List(list) => list.elts.iter().for_each(|element| self.walk(element, way, met)),
            Expr::Generator(each) => self.walk(&each.elt, way, met),
            Expr::ListComp(each) => self.walk(&each.elt, way, met),
            Expr::SetComp(each) => self.walk(&each.elt, way, met),
            Expr::Compare(compare) => {
                self.walk(&compare.left, way.to_roots(), met);
                compare.comparators.iter().for_each(|one| self.walk(one, way.to_roots(), met));
            }
            _ => {}
        }
    }

    fn walk_name(&self, expr: &'a Expr, name: &str, way: Way, met: &mut Signals) {
        match name {
            "caplog" | "capsys" | "capfd" | "capsysbinary" => {
                return self.met(Signal::Logged, expr, way, met);
            }
            "excinfo" | "exc_info" | "recwarn" => return self.met(Signal::Caught, expr, way, met),
            _ if words::is_tolerance(name) => self.met(Signal::Tolerance, expr, way, met),
            _ => {}
        }
        let next = Way { depth: way.depth - 1, ..way };
        for origin in self.origins(name, expr) {
            match origin {
                Origin::Caught => self.met(Signal::Caught, expr, way, met),
                Origin::Logged => self.met(Signal::Logged, expr, way, met),
                // What a thing was made of says nothing of what it is; what it was read from does.
                Origin::Value(Expr::Call(call), _) => {
                    self.walk_made(call, next, met);
                }
                Origin::Value(value, None) => self.walk(value, next, met),
                Origin::Value(value, _) => self.walk(value, next.to_roots(), met),
                Origin::Added(value) => self.walk(value, next.to_roots(), met),
            }
        }
    }

    /// A name that holds what a call gave: readings are followed, what was computed is not.
    fn walk_made(&self, call: &'a ExprCall, way: Way, met: &mut Signals) {
        let Some(name) = last_name(&call.func) else { return };
        if let Expr::Attribute(attribute) = &*call.func
            && (words::is_accessor(name) || words::is_wrapper(name))
            && !self.is_module(&attribute.value)
        {
            return self.walk(&attribute.value, way, met);
        }
        if words::is_wrapper(name) {
            call.arguments.args.iter().take(1).for_each(|one| self.walk(one, way, met));
        }
        if words::is_tolerance(name) && !way.roots {
            met.0.push((Signal::Tolerance, self.evidence(Property::Value, call)));
        }
    }

    fn walk_attribute(&self, expr: &'a Expr, attribute: &'a ExprAttribute, way: Way, met: &mut Signals) {
        let name = attribute.attr.as_str();
        let base = &*attribute.value;
        let of_self = matches!(base, Expr::Name(of) if matches!(of.id.as_str(), "self" | "cls"));
        let below = match name {
            _ if words::RECORDS.contains(&name) => {
                self.met(Signal::Recorded, expr, way, met);
                way.to_roots()
            }
            _ if words::SHAPES.contains(&name) || is_dtype(base, name) => {
                self.met(Signal::Shape, expr, way, met);
                way.to_roots()
            }
            "environ" => {
                self.met(Signal::State, expr, way, met);
                way.to_roots()
            }
            _ if name.starts_with('_') && !name.starts_with("__") && !of_self => {
                self.met(Signal::State, expr, way, met);
                way
            }
            _ if words::is_state(name) && !self.is_module(base) && !of_self && !is_setting(base) => {
                self.met(Signal::State, expr, way, met);
                way
            }
            _ => way,
        };
        if words::is_tolerance(name) {
            self.met(Signal::Tolerance, expr, way, met);
        }
        // The attributes of a local thing are its own; what the thing was read from is another's.
        let below = if matches!(base, Expr::Name(_)) { below.to_roots() } else { below };
        self.walk(base, below, met);
    }

    fn walk_call(&self, expr: &'a Expr, call: &'a ExprCall, way: Way, met: &mut Signals) {
        let Some(name) = last_name(&call.func) else { return };
        let first = call.arguments.args.first();
        let receiver = call.func.as_attribute_expr().map(|attribute| &*attribute.value);
        if words::is_tolerance(name) {
            self.met(Signal::Tolerance, expr, way, met);
        }
        match name {
            "data_ptr" | "id" => self.met(Signal::Identity, expr, way, met),
            "getenv" => self.met(Signal::State, expr, way, met),
            "Size" => self.met(Signal::Shape, expr, way, met),
            "len" => {
                self.met(Signal::Length, expr, way, met);
                first.into_iter().for_each(|one| self.walk(one, way, met));
            }
            "getattr" => {
                self.met(Signal::State, expr, way, met);
                first.into_iter().for_each(|one| self.walk(one, way.to_roots(), met));
            }
            "vars" | "hasattr" => self.met(Signal::State, expr, way, met),
            "readouterr" => self.met(Signal::Logged, expr, way, met),
            _ if words::KINDS.contains(&name) => self.met(Signal::Shape, expr, way, met),
            _ if words::SHAPES.contains(&name) && !receiver.is_none_or(|of| self.is_group(of)) => {
                self.met(Signal::Shape, expr, way, met);
            }
            _ if receiver.is_some_and(|of| words::is_accessor(name) && !self.is_module(of)) => {
                receiver.into_iter().for_each(|of| self.walk(of, way, met));
            }
            _ if words::is_wrapper(name) => {
                call.arguments.args.iter().take(2).for_each(|one| self.walk(one, way, met));
            }
            _ => receiver.into_iter().for_each(|of| self.walk(of, way.to_roots(), met)),
        }
    }

    /// A group of ranks, whose size is none of a tensor.
    fn is_group(&self, expr: &Expr) -> bool {
        let words = words::words(self.text(expr));
        words.iter().any(|word| matches!(word.as_str(), "group" | "mesh" | "pg" | "grid"))
    }

    /// A mock that stands for a collective: by its own name, by the name that `patch` replaced.
    pub(super) fn is_collective(&self, expr: &'a Expr) -> bool {
        if last_name(expr).is_some_and(meters::is_collective) {
            return true;
        }
        let Expr::Name(name) = expr else { return false };
        let patched = |call: &ExprCall| {
            call.arguments
                .args
                .iter()
                .filter_map(Expr::as_string_literal_expr)
                .any(|text| text.value.to_str().rsplit('.').next().is_some_and(meters::is_collective))
        };
        let of_local = self
            .origins(name.id.as_str(), expr)
            .into_iter()
            .any(|origin| matches!(origin, Origin::Value(Expr::Call(call), _) if patched(call)));
        of_local || self.patched_for(name.id.as_str()).is_some_and(patched)
    }

    /// The `patch` whose mock a parameter is: the decorator nearest to the function gives the first.
    fn patched_for(&self, parameter: &str) -> Option<&'a ExprCall> {
        let node = self.functions.all[self.function?].node;
        let names = node.parameters.iter().map(|one| one.name().as_str());
        let at = names.filter(|name| !matches!(*name, "self" | "cls")).position(|name| name == parameter)?;
        let patches =
            node.decorator_list.iter().rev().filter(|decorator| decorator_name(decorator).contains(&"patch"));
        patches.filter_map(|decorator| decorator.expression.as_call_expr()).nth(at)
    }
}

/// A dtype, a layout, a memory format of a framework.
fn is_dtype(base: &Expr, name: &str) -> bool {
    matches!(dotted(base)[..], ["torch" | "np" | "numpy" | "jnp"])
        && (matches!(
            name,
            "half" | "long" | "double" | "bool" | "int" | "short" | "strided" | "channels_last"
        ) || ["float", "bfloat", "int", "uint", "complex"].iter().any(|stem| {
            name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        }))
}

/// Settings, whose fields are content.
fn is_setting(base: &Expr) -> bool {
    last_name(base).is_some_and(|name| {
        let words = words::words(name);
        words.iter().any(|word| {
            matches!(word.as_str(), "config" | "cfg" | "args" | "options" | "params" | "settings")
        })
    })
}
