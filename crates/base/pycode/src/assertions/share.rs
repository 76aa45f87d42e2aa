//! How many assertions check what.

use std::collections::BTreeMap;
use std::fmt;

use infradev_model::Property;
use serde::Serialize;

use super::Assertion;

/// Counts of assertions by what they check. Of a helper that the file calls, the calls count and its body does not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// How many check each property; those that none checks are left out.
    pub counts: BTreeMap<Property, u64>,
}

impl Share {
    /// Counts assertions.
    pub fn of<'a>(assertions: impl IntoIterator<Item = &'a Assertion>) -> Share {
        let mut share = Share::default();
        for assertion in assertions.into_iter().filter(|one| !one.counted_at_calls) {
            *share.counts.entry(assertion.property).or_default() += 1;
        }
        share
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Share) {
        for (property, count) in &other.counts {
            *self.counts.entry(*property).or_default() += count;
        }
    }

    /// All assertions.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Those that check memory, time or traffic.
    pub fn resources(&self) -> u64 {
        self.counts.iter().filter(|(property, _)| property.is_resource()).map(|(_, count)| count).sum()
    }

    /// The share of those that check a resource; none where there are no assertions.
    pub fn of_resources(&self) -> Option<f64> {
        let total = self.total();
        #[expect(clippy::cast_precision_loss, reason = "counts of assertions stay far below 2^52")]
        (total > 0).then(|| self.resources() as f64 / total as f64)
    }
}

/// `2 of 41 check a resource (memory 1, time 1; value 30, state 9)`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} check a resource", self.resources(), self.total())?;
        let list = |resource: bool| {
            let some = self.counts.iter().filter(|(property, _)| property.is_resource() == resource);
            some.map(|(property, count)| format!("{property} {count}")).collect::<Vec<_>>().join(", ")
        };
        let parts: Vec<String> =
            [list(true), list(false)].into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { Ok(()) } else { write!(f, " ({})", parts.join("; ")) }
    }
}
