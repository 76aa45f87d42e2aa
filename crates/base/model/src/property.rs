//! What an assertion of a test checks.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an assertion checks. The book's page on assertions says which gets which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// Bytes held, as measured.
    Memory,
    /// Seconds passed, as measured, or a rate of them.
    Time,
    /// Bytes sent between ranks or collectives called, as counted.
    Traffic,
    /// Content: numbers, tensors, text.
    Value,
    /// An exception or a warning, or what it says.
    Exception,
    /// What is left behind on something that outlives the call.
    State,
    /// What a thing is: shape, layout, number of elements, dtype, device, type.
    ShapeOrDtype,
    /// Which way was taken; a bound, an order.
    Condition,
    /// Nothing: it cannot fail.
    None,
}

impl Property {
    /// All, the resources first.
    pub const ALL: [Property; 9] = [
        Property::Memory,
        Property::Time,
        Property::Traffic,
        Property::Value,
        Property::Exception,
        Property::State,
        Property::ShapeOrDtype,
        Property::Condition,
        Property::None,
    ];

    /// Memory, time or traffic.
    pub fn is_resource(self) -> bool {
        matches!(self, Property::Memory | Property::Time | Property::Traffic)
    }

    /// The word that documents and labels use.
    pub fn word(self) -> &'static str {
        match self {
            Property::Memory => "memory",
            Property::Time => "time",
            Property::Traffic => "traffic",
            Property::Value => "value",
            Property::Exception => "exception",
            Property::State => "state",
            Property::ShapeOrDtype => "shape_or_dtype",
            Property::Condition => "condition",
            Property::None => "none",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no property of an assertion: write one of memory, time, traffic, value, exception, state, shape_or_dtype, condition, none"
)]
pub struct NoProperty(pub String);

impl FromStr for Property {
    type Err = NoProperty;

    fn from_str(word: &str) -> Result<Property, NoProperty> {
        Property::ALL.into_iter().find(|one| one.word() == word).ok_or_else(|| NoProperty(word.to_owned()))
    }
}
