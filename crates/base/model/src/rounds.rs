//! The agent way of synthesis: rounds in which an agent writes what a task needs, each ended by an acceptance.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::submission::{AgentUsed, Ending, Lookup, Metered};

/// The schema version of `rounds.json` and of `infradev synthesize --agent NAME --json`.
pub const ROUNDS_SCHEMA: u32 = 1;

/// What an agent is asked for in a step of a round (the paper, appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentRole {
    /// Writes patches that pass the official tests and break a promise.
    Adversary,
    /// Writes probes that reject them.
    Prober,
    /// States in spec and contract what the probes touch.
    Prompter,
}

impl AgentRole {
    /// All, in the order of a round.
    pub const ALL: [AgentRole; 3] = [AgentRole::Adversary, AgentRole::Prober, AgentRole::Prompter];

    /// The word in records and tables.
    pub fn word(self) -> &'static str {
        match self {
            AgentRole::Adversary => "adversary",
            AgentRole::Prober => "prober",
            AgentRole::Prompter => "prompter",
        }
    }

    /// Whether a file of the task's folder is this role's to write.
    pub fn may_write(self, path: &str) -> bool {
        let inside = |folder: &str| path.strip_prefix(folder).filter(|name| !name.contains('/'));
        match self {
            AgentRole::Adversary => {
                inside("adversarial/").is_some_and(|name| name.ends_with(".toml") || name.ends_with(".patch"))
            }
            AgentRole::Prober => inside("probes/").is_some_and(|name| {
                name.ends_with(".py") && (name.starts_with("judge_") || name.starts_with("observe_"))
            }),
            AgentRole::Prompter => path == "spec.md" || path == "contract.toml",
        }
    }
}

/// A file that an agent wrote and that does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ignored {
    /// Path in the agent's folder.
    pub path: String,
    /// Why.
    pub why: String,
}

/// What an agent did again and again: the same call of a tool, or the same few in turn, with nothing between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeated {
    /// The call: tool and arguments, shortened; of several, all in turn.
    pub call: String,
    /// How often it was made in a row.
    pub times: u32,
}

/// One step: an agent in one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The role.
    pub role: AgentRole,
    /// How the agent ended.
    pub ending: Ending,
    /// What showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it did five times or more in a row, where its log tells its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated>,
    /// Files of the task that it wrote, with their text; `null` where it removed one.
    pub written: BTreeMap<String, Option<String>>,
    /// What it wrote elsewhere.
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

/// One round: its steps, and what acceptance made of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Whether the task is accepted as it stands after them.
    pub accepted: bool,
    /// Why it is not: the input of the next round.
    pub report: String,
}

/// What `infradev synthesize --agent NAME --json` prints: one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundsDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// The task's id.
    pub task: String,
    /// Who wrote.
    pub agent: AgentUsed,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the last round's task is accepted. Otherwise the task's folder is as it was: it is left without what the agent
    /// wrote.
    pub accepted: bool,
    /// Why not.
    pub reasons: Vec<String>,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Input and output tokens of all steps.
    pub tokens: u64,
    /// Seconds that agents worked.
    pub agent_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_of_a_task_is_one_roles_to_write_or_nobodys() {
        let whose =
            |path: &str| AgentRole::ALL.into_iter().filter(|role| role.may_write(path)).collect::<Vec<_>>();
        for (path, role) in [
            ("adversarial/a.toml", AgentRole::Adversary),
            ("adversarial/a.patch", AgentRole::Adversary),
            ("probes/judge_a.py", AgentRole::Prober),
            ("probes/observe_a.py", AgentRole::Prober),
            ("spec.md", AgentRole::Prompter),
            ("contract.toml", AgentRole::Prompter),
        ] {
            assert_eq!(whose(path), [role], "{path}");
        }
        for path in [
            "golden.patch",
            "official.patch",
            "task.toml",
            "acceptance.json",
            "probes/help.py",
            "probes/x/judge_a.py",
            "adversarial/../golden.toml",
            "probes/judge_a.sh",
        ] {
            assert_eq!(whose(path), [], "{path}");
        }
    }
}
