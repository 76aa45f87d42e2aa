//! What an agent is asked of failing cases that rules left open, and what it answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::label::GivenLabel;
use crate::rounds::Ignored;
use crate::submission::{AgentUsed, Ending, Lookup, Metered};

/// The schema version of what `infradev label --json` prints.
pub const LABELLING_SCHEMA: u32 = 1;

/// What an agent answered of one submission's cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The task's id.
    pub task: String,
    /// The submission's name.
    pub submission: String,
    /// Cases that it was given.
    pub cases: u32,
    /// How the agent ended.
    pub ending: Ending,
    /// What showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Its labels.
    pub labels: Vec<GivenLabel>,
    /// Answers that do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<Ignored>,
    /// What the proxy counted.
    pub metered: Metered,
    /// What it asked for and did not get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lookups: Vec<Lookup>,
    /// Seconds from the agent's start to its end.
    pub agent_s: f64,
    /// Where prompt, raw log and requests lie, below the run's folder.
    pub folder: String,
}

/// What `infradev label --json` prints: one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabellingDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// Who labelled.
    pub agent: AgentUsed,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Cases that rules left open, of those that the agent may see.
    pub open: u32,
    /// What it answered, a submission each.
    pub answered: Vec<Answered>,
    /// Why submissions were left out: the budget was spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// Input and output tokens.
    pub tokens: u64,
    /// Seconds that the agent worked.
    pub agent_s: f64,
}

impl LabellingDocument {
    /// All labels that it gave.
    pub fn labels(&self) -> impl Iterator<Item = &GivenLabel> {
        self.answered.iter().flat_map(|answered| &answered.labels)
    }
}
