//! Whether an expression is measured: memory, time, traffic.

use infradev_model::Property;
use ruff_python_ast::{Expr, ExprCall, Operator};
use ruff_text_size::Ranged;

use super::evidence::Evidence;
use super::locals::Origin;
use super::reading::{Reader, last_name};
use super::{meters, words};

/// How a meter is looked for.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// How many names and calls may still be followed.
    pub(super) depth: u32,
    /// Names count by their words.
    pub(super) words: bool,
    /// The text around tells of sending: bytes are traffic.
    pub(super) sending: bool,
}

impl Look {
    fn deeper(self) -> Look {
        Look { depth: self.depth.saturating_sub(1), ..self }
    }

    fn around(self, name: &str) -> Look {
        Look { sending: self.sending || meters::tells_of_sending(name), ..self }
    }
}

impl<'a> Reader<'a, '_> {
    /// The meter that an expression reads, names followed to their definitions.
    pub(super) fn measured(&self, expr: &'a Expr, look: Look) -> Option<Evidence> {
        if look.depth == 0 || !self.spend() {
            return None;
        }
        let next = look.deeper();
        match expr {
            Expr::Name(name) => self.measured_name(expr, name.id.as_str(), next),
            Expr::Attribute(attribute) => {
                self.measured_attribute(expr, &attribute.value, &attribute.attr, next)
            }
            Expr::Call(call) => self.measured_call(expr, call, next),
            Expr::Subscript(subscript) => self.measured(&subscript.value, next),
            Expr::BinOp(both) => {
                if both.op == Operator::Mult && self.multiplies_bytes(expr) {
                    return Some(self.bytes(expr, look));
                }
                self.measured(&both.left, next).or_else(|| self.measured(&both.right, next))
            }
            Expr::UnaryOp(one) => self.measured(&one.operand, next),
            Expr::Await(awaited) => self.measured(&awaited.value, next),
            Expr::Starred(starred) => self.measured(&starred.value, next),
            Expr::Named(named) => self.measured(&named.value, next),
            Expr::If(both) => self.measured(&both.body, next).or_else(|| self.measured(&both.orelse, next)),
            Expr::Compare(compare) => {
                let right = compare.comparators.iter();
                self.measured(&compare.left, next)
                    .or_else(|| right.into_iter().find_map(|e| self.measured(e, next)))
            }
            Expr::Tuple(tuple) => tuple.elts.iter().find_map(|element| self.measured(element, next)),
            Expr::List(list) => list.elts.iter().find_map(|element| self.measured(element, next)),
            Expr::Generator(each) => {
                let over: String = each.generators.iter().map(|one| self.text(&one.iter)).collect();
                self.measured(&each.elt, next.around(&over))
            }
            Expr::ListComp(each) => {
                let over: String = each.generators.iter().map(|one| self.text(&one.iter)).collect();
                self.measured(&each.elt, next.around(&over)).or_else(|| {
                    let named = words::words(&over).iter().any(|word| word == "collective");
                    named.then(|| self.evidence(Property::Traffic, expr))
                })
            }
            _ => None,
        }
    }

    fn measured_name(&self, expr: &'a Expr, name: &str, look: Look) -> Option<Evidence> {
        let inner = look.around(name);
        for origin in self.origins(name, expr) {
            let found = match origin {
                Origin::Value(value, element) => self.measured_element(value, element, inner),
                Origin::Added(value) => self.measured(value, inner),
                Origin::Caught | Origin::Logged => None,
            };
            if let Some(found) = found {
                return Some(through(found, name));
            }
        }
        by_words(self, expr, name, look)
    }

    /// One element of the tuple that a function of the file returns, else the whole.
    fn measured_element(&self, value: &'a Expr, element: Option<usize>, look: Look) -> Option<Evidence> {
        if let (Some(element), Expr::Call(call)) = (element, value)
            && let Some(called) = self.functions.called(call)
        {
            let reader = self.within(called);
            return reader.returned(called).into_iter().find_map(|returned| match returned {
                Expr::Tuple(tuple) => {
                    tuple.elts.get(element).and_then(|one| reader.measured(one, look.deeper()))
                }
                other => reader.measured(other, look.deeper()),
            });
        }
        // A loop over names of many things is none over what one of them is.
        self.measured(value, look)
    }

    fn measured_attribute(&self, expr: &'a Expr, base: &'a Expr, name: &str, look: Look) -> Option<Evidence> {
        if let Some(property) = meters::meter(name) {
            return Some(self.evidence(property, expr));
        }
        if meters::BYTES.contains(&name) {
            return Some(self.bytes(expr, look));
        }
        if words::RECORDS.contains(&name)
            && name != "call_args"
            && last_name(base).is_some_and(meters::is_collective)
        {
            return Some(self.evidence(Property::Traffic, expr));
        }
        by_words(self, expr, name, look).or_else(|| self.reading_of_a_meter(base))
    }

    /// An attribute of what a meter gave: `torch.cuda.memory_stats().peak`.
    fn reading_of_a_meter(&self, base: &'a Expr) -> Option<Evidence> {
        let direct = |expr: &'a Expr| match expr {
            Expr::Call(call) => last_name(&call.func).and_then(meters::meter).map(|p| self.evidence(p, expr)),
            _ => None,
        };
        match base {
            Expr::Name(name) => {
                self.origins(name.id.as_str(), base).into_iter().find_map(|origin| match origin {
                    Origin::Value(value, None) => direct(value).map(|found| through(found, name.id.as_str())),
                    _ => None,
                })
            }
            Expr::Attribute(inner) => self.reading_of_a_meter(&inner.value),
            other => direct(other),
        }
    }

    fn measured_call(&self, expr: &'a Expr, call: &'a ExprCall, look: Look) -> Option<Evidence> {
        let name = last_name(&call.func)?;
        if let Some(property) = meters::meter(name) {
            return Some(self.evidence(property, expr));
        }
        if name == "time" && self.text(&*call.func) == "time.time" {
            return Some(self.evidence(Property::Time, expr));
        }
        if meters::BYTES.contains(&name) {
            return Some(self.bytes(expr, look));
        }
        if let Some(called) = self.functions.called(call) {
            let reader = self.within(called);
            let given = reader.returned(called).into_iter().find_map(|one| reader.measured(one, look));
            return given.or_else(|| by_words(self, expr, name, look));
        }
        if name == "len" {
            let counted = call.arguments.args.first().and_then(last_name);
            if counted.is_some_and(meters::is_collective) {
                return Some(self.evidence(Property::Traffic, expr));
            }
            return None;
        }
        if words::is_wrapper(name)
            && !matches!(&*call.func, Expr::Attribute(a) if words::is_accessor(&a.attr) && !self.is_module(&a.value))
        {
            return call.arguments.args.iter().find_map(|argument| self.measured(argument, look));
        }
        if let Expr::Attribute(attribute) = &*call.func {
            if words::is_accessor(name) {
                return self.measured(&attribute.value, look);
            }
            if matches!(&*attribute.value, Expr::Attribute(_) | Expr::Call(_)) && name == "size" {
                return self.measured(&attribute.value, look);
            }
        }
        by_words(self, expr, name, look)
    }

    fn bytes(&self, expr: &Expr, look: Look) -> Evidence {
        let sending = look.sending || meters::tells_of_sending(self.text(expr));
        self.evidence(if sending { Property::Traffic } else { Property::Memory }, expr)
    }

    /// A product in which the size of an element is a factor.
    fn multiplies_bytes(&self, expr: &Expr) -> bool {
        self.text(expr).contains("element_size()") || self.text(expr).contains(".itemsize")
    }
}

fn by_words(reader: &Reader<'_, '_>, expr: &Expr, name: &str, look: Look) -> Option<Evidence> {
    let property = look.words.then(|| meters::by_words(name)).flatten()?;
    let property = match property {
        Property::Memory if look.sending && words::words(name).iter().any(|word| word == "bytes") => {
            Property::Traffic
        }
        other => other,
    };
    Some(reader.evidence(property, expr))
}

fn through(found: Evidence, name: &str) -> Evidence {
    let text = if found.text == name { found.text } else { format!("{}, by {name}", found.text) };
    Evidence { text, ..found }
}

/// Where an expression starts.
pub(super) fn offset(expr: &Expr) -> u32 {
    expr.start().to_u32()
}
