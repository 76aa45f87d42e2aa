//! What of a sealed task a run keeps beside its grades, so that a report needs no pack: a pack changes, and a run's folder may lie
//! elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The schema version of a run's `sealed/<task>.json`.
pub const REFERENCE_SCHEMA: u32 = 1;

/// The texts of a task that submissions are held against: `sealed/<task>.json` of a run of `grade`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReference {
    /// Version of this file's format.
    pub schema: u32,
    /// The pack's canary: this file is as sealed as those that it is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<String>,
    /// The task's id.
    pub task: String,
    /// Test trees, by which a patch's tests are told from its source.
    pub roots: Vec<String>,
    /// Golden's patch; bytes that are no UTF-8 stand as U+FFFD.
    pub golden: String,
    /// Python files of the official tests as they are run, by path in the tree.
    pub official: BTreeMap<String, String>,
}
