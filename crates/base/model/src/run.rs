//! `run.json`: what a run was asked to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The schema version of `run.json`.
pub const RUN_SCHEMA: u32 = 1;

/// A run: one verb over a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Version of this file's format.
    pub schema: u32,
    /// The run's id, which is its folder's name.
    pub id: String,
    /// `accept`, `grade` or `attempt`.
    pub verb: String,
    /// The pack's name.
    pub pack: String,
    /// The command as the person gave it.
    pub command: Vec<String>,
    /// Digest of what the command asks for: an unfinished run of the same digest is resumed.
    pub plan: Digest,
    /// Seconds since the epoch.
    pub started: u64,
}
