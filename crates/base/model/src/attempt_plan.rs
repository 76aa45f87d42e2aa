//! What a run of attempts would be, before anything is spent: `infradev attempt --plan`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::price::PricedBy;
use crate::prompt::Arm;

/// The schema version of what `infradev attempt --plan --json` prints.
pub const ATTEMPT_PLAN_SCHEMA: u32 = 1;

/// What attempts may use at most, and what they are likely to use. Each is left out where nothing is known of it; none is 0 for that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Foreseen {
    /// Hours of agents at work at most, by the time limit: with several at once, less by the clock.
    pub hours: f64,
    /// GPU-hours at most: each attempt's hours times its task's GPUs.
    pub gpu_hours: f64,
    /// Input and output tokens at most, by the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_most: Option<u64>,
    /// Input and output tokens that earlier attempts make likely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_likely: Option<u64>,
}

/// One arm on one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedAttempts {
    /// The task's id.
    pub task: String,
    /// The arm's name, which submissions bear.
    pub submission: String,
    /// The model, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What stands for the specification.
    pub arm: Arm,
    /// The skill's name, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Attempts in all.
    pub attempts: u32,
    /// Of them, those that the run which would be gone on with has on record.
    pub done: u32,
    /// Earlier attempts of this agent and model that the likely tokens come from: of this task, else of any. The median counts.
    pub earlier: u32,
    /// Why none of them is made: each ends as `refused`, and uses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The prices of its model, by which its cost will be reckoned; left out where none is known at this endpoint, or there is no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PricedBy>,
    /// Of the attempts that are left.
    #[serde(flatten)]
    pub foreseen: Foreseen,
}

/// What `infradev attempt --plan --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptPlanDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The unfinished run that the command would go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Arms and tasks.
    pub planned: Vec<PlannedAttempts>,
    /// Attempts that are left.
    pub attempts: u32,
    /// The sum of it. Tokens are left out where those of one row are.
    #[serde(flatten)]
    pub foreseen: Foreseen,
}
