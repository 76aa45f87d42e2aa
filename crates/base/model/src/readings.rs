//! What is read of a submission beside its verdict: how close it is to golden, what its own tests check, how far its agent tried it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::Proportion;
use crate::property::Property;

/// How close a patch's source part is to golden's. High where a model has the merged change by heart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Likeness {
    /// Lines that golden adds, each once, whitespace apart, without those that anyone writes (brackets, comments, a word or two).
    pub lines: u32,
    /// Of them, those that the patch adds too: Broder's containment, by lines.
    pub shared_lines: u32,
    /// Runs of 5 tokens of the added lines that both have, of those that either has, from 0 to 1: Broder's resemblance, by shingles.
    pub shingles: f64,
    /// Files that golden changes.
    pub files: u32,
    /// Of them, those that the patch changes too.
    pub shared_files: u32,
    /// Files that the patch changes; those of test trees count on neither side.
    pub own_files: u32,
}

/// What a submission's own tests check, in assertions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnTests {
    /// Those that its patch adds to test files, by what they check.
    pub added: BTreeMap<Property, u64>,
    /// Those that its agent wrote along its way, where a trajectory was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<BTreeMap<Property, u64>>,
    /// Test files and programs of which nothing was read: their text before the patch is not at hand, or is no Python.
    pub unread: u32,
}

impl OwnTests {
    /// The larger of both: what the patch adds was mostly written on the way too, and is counted once.
    pub fn counted(&self) -> &BTreeMap<Property, u64> {
        let total = |counts: &BTreeMap<Property, u64>| counts.values().sum::<u64>();
        match &self.written {
            Some(written) if total(written) >= total(&self.added) => written,
            _ => &self.added,
        }
    }

    /// Assertions, and those of them that check memory, time or traffic.
    pub fn resources(&self) -> (u64, u64) {
        let counts = self.counted();
        let resources = counts.iter().filter(|(property, _)| property.is_resource());
        (counts.values().sum(), resources.map(|(_, count)| count).sum())
    }
}

/// A gate of the prompt's execution rules, as an agent may try it on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    /// Something of the tree was imported.
    Imports,
    /// Tests were collected.
    Collects,
    /// Tests passed in one process.
    OneRank,
    /// Something passed under a launcher of two ranks or more.
    Ranks,
}

impl Tried {
    /// All, in the order of the prompt.
    pub const ALL: [Tried; 4] = [Tried::Imports, Tried::Collects, Tried::OneRank, Tried::Ranks];

    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            Tried::Imports => "imports",
            Tried::Collects => "collects",
            Tried::OneRank => "one rank",
            Tried::Ranks => "several ranks",
        }
    }
}

/// When an agent first passed a gate by its own trial, as its trajectory tells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// The gate.
    pub gate: Tried,
    /// The step, from 1.
    pub step: u64,
    /// Tokens up to it, by the agent's own count, prompts and answers; none where its steps tell none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Seconds from the first step; none where its steps have no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// How close the submissions of an arm are to golden.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LikenessCount {
    /// The arm.
    pub arm: String,
    /// Submissions whose patch was read beside golden's.
    pub submissions: u32,
    /// Median share of golden's lines that a patch has; none where golden adds no line that tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<f64>,
    /// The largest such share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_lines: Option<f64>,
    /// Median share of shingles.
    pub shingles: f64,
    /// Of the files that patches change, those that golden changes: the mean over submissions that change any.
    pub precision: f64,
    /// Of the files that golden changes, those that patches change: the mean.
    pub recall: f64,
}

/// What the own tests of an arm's submissions check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnTestCount {
    /// The arm; `all` for all of them.
    pub arm: String,
    /// Submissions that were read.
    pub submissions: u32,
    /// Of them, those with an assertion of their own.
    pub with_tests: u32,
    /// Assertions by what they check.
    pub counts: BTreeMap<Property, u64>,
    /// Of all assertions, those that check memory, time or traffic.
    pub resources: Proportion,
}

/// Scored submissions whose own tests were read, by whether a resource check of the task rejects them and whether they check a
/// resource themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceChecks {
    /// Of those that fail a resource check, those with a resource assertion of their own.
    pub failed: Proportion,
    /// Of those that fail none.
    pub others: Proportion,
}

/// How far agents of an arm tried their work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedCount {
    /// The arm.
    pub arm: String,
    /// The gate.
    pub gate: Tried,
    /// Of the traced submissions, those whose agent passed it.
    pub reached: Proportion,
    /// Median tokens to it, of those that tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<f64>,
    /// Median seconds to it, of those that tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_and_what_stays_in_the_patch_is_counted_once() {
        let counts = |pairs: &[(Property, u64)]| pairs.iter().copied().collect::<BTreeMap<_, _>>();
        let mut tests = OwnTests {
            added: counts(&[(Property::Value, 2), (Property::Memory, 1)]),
            written: Some(counts(&[(Property::Value, 2)])),
            unread: 0,
        };
        assert_eq!(tests.resources(), (3, 1));
        tests.written = Some(counts(&[(Property::Value, 5), (Property::Time, 2)]));
        assert_eq!(tests.resources(), (7, 2));
        tests.written = None;
        assert_eq!(tests.resources(), (3, 1));
    }
}
