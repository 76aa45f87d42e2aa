//! Trajectories of agents in Harbor's Agent Trajectory Interchange Format (ATIF), version 1.8, as far as we write it.
//!
//! The format's source is Harbor's RFC 0001; its models are the package `harbor` of PyPI, against which what we write is tested.
//! Tokens are counts, costs US dollars, timestamps ISO 8601 in UTC.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format::{self, FormatError};

/// The version that we write.
pub const ATIF_VERSION: &str = "ATIF-v1.8";

/// What an agent did, step by step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    /// `ATIF-v1.8`.
    pub schema_version: String,
    /// What the agent calls its run; shared by subagents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The trajectory's own name; of a subagent's, the id of the call that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trajectory_id: Option<String>,
    /// Who.
    pub agent: TrajectoryAgent,
    /// What it did: at least one step, numbered from 1.
    pub steps: Vec<Step>,
    /// What a reader should know: what of the log stands in no step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_metrics: Option<FinalMetrics>,
    /// What else the agent told of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
    /// Those of its subagents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_trajectories: Option<Vec<Trajectory>>,
}

/// The agent of a trajectory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryAgent {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The model of all steps that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
}

/// Whose step it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepSource {
    /// The program around the model.
    System,
    /// Whoever gave the prompt.
    User,
    /// The model.
    #[default]
    Agent,
}

/// One step: a message, or an answer of the model with the calls that it makes and what came of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// From 1, without gaps.
    pub step_id: u64,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Whose.
    pub source: StepSource,
    /// The model, where it is not the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// What was said.
    pub message: String,
    /// The model's reasoning, as far as it was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// What the model called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// What came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// How many answers of a model the step is; left out where the agent does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_call_count: Option<u64>,
    /// What else was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Its name in the step.
    pub tool_call_id: String,
    /// The tool.
    pub function_name: String,
    /// What it was given. What is no object stands under `input`.
    pub arguments: Map<String, Value>,
    /// What else was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
}

/// What came back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// One entry a call that came back.
    pub results: Vec<ObservationResult>,
}

/// What one call gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationResult {
    /// The call of the same step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_call_id: Option<String>,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Trajectories of subagents that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_trajectory_ref: Option<Vec<SubagentRef>>,
    /// What else was told: `is_error`, `exit_code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
}

/// Names a subagent's trajectory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubagentRef {
    /// Its `trajectory_id`.
    pub trajectory_id: String,
}

/// What a step used, by the agent's own count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Tokens of the prompt, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Of the prompt's, those read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// What else was told: `reasoning_tokens`, `cache_write_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
}

/// Sums over a trajectory, by the agent's own count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FinalMetrics {
    /// Tokens of prompts, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_prompt_tokens: Option<u64>,
    /// Tokens of answers, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_completion_tokens: Option<u64>,
    /// Of the prompts', those read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cached_tokens: Option<u64>,
    /// How many steps there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// What else was told: `reasoning_tokens`, `cache_write_tokens`, `proxy` (what the proxy counted), `agent_cost_usd` (the
    /// agent's own estimate, by prices of its own).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
}

impl Trajectory {
    /// Parses and checks a trajectory: what ATIF asks for beyond the shape.
    ///
    /// # Errors
    /// The first place that is not as the format wants it.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Trajectory, FormatError> {
        let text = format::utf8(file, bytes)?;
        let trajectory: Trajectory = serde_json::from_str(text).map_err(|error| FormatError {
            line: Some(error.line()),
            ..FormatError::new(file, None, error.to_string())
        })?;
        trajectory.check(file)?;
        Ok(trajectory)
    }

    fn check(&self, file: &str) -> Result<(), FormatError> {
        let refuse = |key: &str, what: String| Err(FormatError::new(file, Some(key), what));
        if self.schema_version != ATIF_VERSION {
            return refuse("schema_version", format!("`{}` is not {ATIF_VERSION}", self.schema_version));
        }
        if self.steps.is_empty() {
            return refuse("steps", "holds at least one step".into());
        }
        for (index, step) in self.steps.iter().enumerate() {
            if step.step_id != index as u64 + 1 {
                return refuse(&format!("steps[{index}].step_id"), format!("is {}", index + 1));
            }
            if let Err(what) = step.check() {
                return refuse(&format!("steps[{index}]"), what);
            }
        }
        let mut names = BTreeSet::new();
        for (index, part) in self.subagent_trajectories.iter().flatten().enumerate() {
            let key = format!("subagent_trajectories[{index}].trajectory_id");
            match &part.trajectory_id {
                Some(name) if names.insert(name) => {}
                Some(name) => return refuse(&key, format!("`{name}` stands twice")),
                None => return refuse(&key, "is missing".into()),
            }
            part.check(file)?;
        }
        Ok(())
    }
}

impl Step {
    /// What ATIF asks of one step.
    fn check(&self) -> Result<(), String> {
        let of_agents = [
            ("model_name", self.model_name.is_some()),
            ("reasoning_content", self.reasoning_content.is_some()),
            ("tool_calls", self.tool_calls.is_some()),
            ("metrics", self.metrics.is_some()),
        ];
        if let Some((name, _)) =
            of_agents.iter().find(|(_, there)| *there && self.source != StepSource::Agent)
        {
            return Err(format!("`{name}` stands in steps of the agent only"));
        }
        if self.llm_call_count == Some(0) && (self.metrics.is_some() || self.reasoning_content.is_some()) {
            return Err("no model was called, and it has `metrics` or `reasoning_content`".into());
        }
        let calls = self.tool_calls.iter().flatten();
        let known: BTreeSet<&str> = calls.map(|call| call.tool_call_id.as_str()).collect();
        for result in self.observation.iter().flat_map(|observation| &observation.results) {
            if let Some(of) = result.source_call_id.as_deref().filter(|of| !known.contains(of)) {
                return Err(format!("a result is of the call `{of}`, which the step does not make"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Trajectory;

    const GOOD: &str = r#"{"schema_version": "ATIF-v1.8", "agent": {"name": "mine", "version": "1"}, "steps": [
        {"step_id": 1, "source": "user", "message": "Do it."},
        {"step_id": 2, "source": "agent", "message": "", "llm_call_count": 1, "metrics": {"prompt_tokens": 3},
         "tool_calls": [{"tool_call_id": "a", "function_name": "shell", "arguments": {}}],
         "observation": {"results": [{"source_call_id": "a", "content": "done"}]}}]}"#;

    #[test]
    fn a_trajectory_that_is_not_as_atif_wants_it_is_refused_with_its_place() {
        Trajectory::parse("t.json", GOOD.as_bytes()).unwrap();
        let refused = |from: &str, to: &str| {
            assert!(GOOD.contains(from), "{from}");
            Trajectory::parse("t.json", GOOD.replace(from, to).as_bytes()).unwrap_err().to_string()
        };
        let all = [
            refused("ATIF-v1.8", "ATIF-v9"),
            refused("\"step_id\": 2", "\"step_id\": 3"),
            refused("\"source_call_id\": \"a\"", "\"source_call_id\": \"b\""),
            refused("\"source\": \"agent\"", "\"source\": \"system\""),
            refused("\"llm_call_count\": 1", "\"llm_call_count\": 0"),
            refused("\"message\": \"Do it.\"", "\"text\": \"Do it.\""),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }
}
