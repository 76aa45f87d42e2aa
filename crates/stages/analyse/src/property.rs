//! What an assertion checks. Probes declare it; of official tests it is read from the assertion's syntax tree.

use infradev_model::Label;

/// The property that an assertion checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Property {
    Value,
    Shape,
    Exception,
    State,
    Condition,
    Memory,
    Time,
    Traffic,
}

impl Property {
    /// The word as evidence has it.
    pub fn word(self) -> &'static str {
        match self {
            Property::Value => "values",
            Property::Shape => "shape or type",
            Property::Exception => "an exception",
            Property::State => "state",
            Property::Condition => "a condition",
            Property::Memory => "memory",
            Property::Time => "time",
            Property::Traffic => "traffic",
        }
    }

    /// The label of what fails it; none for values, where precision decides.
    pub fn label(self) -> Option<Label> {
        match self {
            Property::Value => None,
            Property::Shape => Some(Label::Shape),
            Property::Exception => Some(Label::ErrorPath),
            Property::State => Some(Label::State),
            Property::Condition => Some(Label::Condition),
            Property::Memory => Some(Label::Memory),
            Property::Time => Some(Label::Speed),
            Property::Traffic => Some(Label::Traffic),
        }
    }
}

/// Says what the failing assertion of an official test checks: by task, file in the tree, line. The rules go by the exception's
/// type and message where it says nothing.
pub type Asserted<'a> = &'a dyn Fn(&str, &str, u32) -> Option<Property>;
