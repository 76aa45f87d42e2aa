//! What an attempt brings back, and how it went.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Wire;
use crate::digest::Digest;
use crate::price::Cost;
use crate::prompt::Arm;
use crate::skill::SkillUsed;
use crate::trial::SandboxReport;

/// The schema version of a submission's record and of what `infradev attempt --json` prints.
pub const SUBMISSION_SCHEMA: u32 = 1;

/// How an attempt ended. In each case what the agent had written by then was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The agent said that it is done.
    Finished,
    /// Its time was over.
    TimedOut,
    /// It ended with an error of its own, said `is_error`, or did not say that it is done, where its output would.
    AgentCrashed,
    /// Its model could not be reached, or sent it away. A fault: such an attempt is made again.
    EndpointUnreachable,
    /// Its tokens were used up.
    Budget,
    /// It put more on the disk than it may.
    DiskBudget,
    /// The model refused, or the agent could not be given its prompt.
    Refused,
}

impl Ending {
    /// As records have it.
    pub fn word(self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::TimedOut => "timed_out",
            Ending::AgentCrashed => "agent_crashed",
            Ending::EndpointUnreachable => "endpoint_unreachable",
            Ending::Budget => "budget",
            Ending::DiskBudget => "disk_budget",
            Ending::Refused => "refused",
        }
    }
}

/// Tokens as the endpoint counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Of prompts, cached ones included.
    pub input: u64,
    /// Of `input`, those read from a cache.
    pub cached: u64,
    /// Of `input`, those written into a cache, where the endpoint tells them.
    #[serde(default, skip_serializing_if = "none")]
    pub written: u64,
    /// Of answers, reasoning included.
    pub output: u64,
    /// Of `output`, those of reasoning, where the endpoint tells them.
    pub reasoning: u64,
}

/// Sums stay at the largest number: an endpoint may say anything.
impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, more: Tokens) {
        self.input = self.input.saturating_add(more.input);
        self.cached = self.cached.saturating_add(more.cached);
        self.written = self.written.saturating_add(more.written);
        self.output = self.output.saturating_add(more.output);
        self.reasoning = self.reasoning.saturating_add(more.reasoning);
    }
}

impl Tokens {
    /// Input and output together; as many as a count holds, where an endpoint tells more.
    pub fn all(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// By how much this count is off another; none where it is not.
    pub fn off(self, other: Tokens) -> Option<TokensOff> {
        let less = |one: u64, other: u64| {
            let difference = i128::from(one) - i128::from(other);
            i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
        };
        let off = TokensOff { input: less(self.input, other.input), output: less(self.output, other.output) };
        (off != TokensOff::default()).then_some(off)
    }
}

/// By how much an agent's own count of tokens is off the proxy's: its own less the proxy's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokensOff {
    /// Of prompts.
    pub input: i64,
    /// Of answers.
    pub output: i64,
}

/// What the proxy between an agent and its model counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metered {
    /// Requests for an answer of the model.
    pub requests: u64,
    /// Of them, those that the endpoint answered with an error or not at all.
    pub failed: u64,
    /// Of them, those that the endpoint began to answer and that told no tokens, or broke off before they had told all: `tokens` is
    /// then a lower bound.
    pub unmetered: u64,
    /// Tokens of all answers.
    pub tokens: Tokens,
    /// Tokens that the budget is charged beside them: an estimate of what `unmetered` requests did not tell, a token for four bytes
    /// of request and answer. In no sum of `tokens`, in no cost.
    #[serde(default, skip_serializing_if = "none")]
    pub estimated: u64,
    /// What was spoken.
    #[serde(default)]
    pub wires: Vec<Wire>,
    /// The same by the models that were asked, in the order of their first answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelMetered>,
}

/// Two counts as one, by the models that were asked too.
impl std::ops::AddAssign<&Metered> for Metered {
    fn add_assign(&mut self, more: &Metered) {
        self.requests = self.requests.saturating_add(more.requests);
        self.failed = self.failed.saturating_add(more.failed);
        self.unmetered = self.unmetered.saturating_add(more.unmetered);
        self.tokens += more.tokens;
        self.estimated = self.estimated.saturating_add(more.estimated);
        let spoken = more.wires.iter().filter(|wire| !self.wires.contains(wire));
        let spoken: Vec<Wire> = spoken.copied().collect();
        self.wires.extend(spoken);
        for asked in &more.models {
            match self.models.iter_mut().find(|known| known.model == asked.model) {
                Some(known) => {
                    known.requests = known.requests.saturating_add(asked.requests);
                    known.tokens += asked.tokens;
                }
                None => self.models.push(asked.clone()),
            }
        }
    }
}

impl Metered {
    /// What a budget is charged: input and output tokens that were told, and the estimate of those that were not.
    pub fn charged(&self) -> u64 {
        self.tokens.all().saturating_add(self.estimated)
    }
}

/// What was asked of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelMetered {
    /// Its name, as it was asked.
    pub model: String,
    /// Requests for its answers.
    pub requests: u64,
    /// Tokens of its answers.
    pub tokens: Tokens,
}

/// What all tries of an attempt used together: those whose model could not be reached too, and those that `--retry` made again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllTries {
    /// What the proxy counted over all of them.
    pub metered: Metered,
    /// What that cost, by the prices of the last one. Left out where no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Something that the agent asked for and did not get: an attempt to look things up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lookup {
    /// `CONNECT`, `GET`, …; `hosted tool`, `hosted setting`, `header`, `query` where something was taken out of a request to the
    /// model's own host, by which that might have searched or run something; `hosted url`, `hosted file` where the host was to read
    /// something, `model` where another model was asked.
    pub method: String,
    /// Host and port, a url, the tool's type, the setting's or the header's name, or the model's.
    pub target: String,
    /// How often.
    pub times: u64,
    /// Seconds from the agent's start to the first time.
    pub first_s: f64,
}

/// A file of the workspace that the patch does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedFile {
    /// Path in the workspace; bytes that are no UTF-8 stand as U+FFFD.
    pub path: String,
    /// `git_folder`, `fifo`, `socket`, `device`, `link_out`, `too_large`, `too_long`, `too_much`.
    pub reason: String,
}

/// What of an agent's log its `trajectory.json` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrajectoryReport {
    /// Steps, those of subagents included.
    pub steps: u64,
    /// Events that were read.
    pub events: u64,
    /// Lines, or other parts of the log, that are no events.
    #[serde(default, skip_serializing_if = "none")]
    pub malformed: u64,
    /// Events that were passed over for their length.
    #[serde(default, skip_serializing_if = "none")]
    pub too_long: u64,
    /// Whether the log ends in the middle of an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Events of other kinds, which no step shows, and how often they came.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_shown: BTreeMap<String, u64>,
    /// Why it was not written, or not to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The agent of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentUsed {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One submission: what an agent made of one task in one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionRecord {
    /// Version of this record's format.
    pub schema: u32,
    /// The task's id.
    pub task: String,
    /// The name under which its patch is graded.
    pub submission: String,
    /// Which of the attempts, from 1.
    pub attempt: u32,
    /// Who made it.
    pub agent: AgentUsed,
    /// The model, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The endpoint, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// What stood for the specification.
    #[serde(default)]
    pub arm: Arm,
    /// Digest of the prompt's text.
    pub prompt: Digest,
    /// The skill that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillUsed>,
    /// How often it was made, this time included: more than once where the model could not be reached, or where `--retry` asked for it.
    #[serde(default = "once")]
    pub tries: u32,
    /// How it ended.
    pub ending: Ending,
    /// What showed it, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Seconds from the agent's start to its end.
    pub agent_s: f64,
    /// Seconds of the whole attempt: workspace, agent, capture.
    pub wall_s: f64,
    /// What the proxy counted; of the last try alone.
    pub metered: Metered,
    /// Tokens by the agent's own count, where its output tells them. Where that differs from the proxy's, one of them misses something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_tokens: Option<Tokens>,
    /// By how much that is off the proxy's count, input and output; left out where it is not, or where the agent tells none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_tokens_off: Option<TokensOff>,
    /// What its `trajectory.json` shows; left out where its output is text alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<TrajectoryReport>,
    /// What `metered` cost. Left out where no price of the model at this endpoint is known; that is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What all tries used together; left out where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_tries: Option<AllTries>,
    /// What it asked for and did not get.
    pub lookups: Vec<Lookup>,
    /// Processes that the agent had left running; all were killed before the capture. Null where that is not known: the agent was
    /// killed itself, or what looks after it inside of the sandbox.
    #[serde(default)]
    pub left_running: Option<Vec<String>>,
    /// Digest of the patch.
    pub patch: Digest,
    /// Bytes of the patch; 0 where nothing was changed.
    pub patch_bytes: u64,
    /// Paths of the task's test folders that the patch changes: kept in it, and laid over when it is graded.
    pub test_edits: Vec<String>,
    /// Files that the patch does not hold.
    pub skipped: Vec<SkippedFile>,
    /// How the agent was held apart.
    pub sandbox: SandboxReport,
    /// Where patch, prompt, raw log, trajectory and requests lie, below the run's folder.
    pub folder: String,
}

impl SubmissionRecord {
    /// What all its tries used.
    pub fn used(&self) -> &Metered {
        self.all_tries.as_ref().map_or(&self.metered, |all| &all.metered)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks for it")]
fn none(count: &u64) -> bool {
    *count == 0
}

fn once() -> u32 {
    1
}

/// What `infradev attempt --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// A file of SWE-bench's fields that `infradev grade --patches` takes.
    pub predictions: String,
    /// All submissions, in the order of tasks and attempts.
    pub submissions: Vec<SubmissionRecord>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, output: u64) -> Tokens {
        Tokens { input, output, ..Tokens::default() }
    }

    #[test]
    fn a_count_that_is_off_tells_by_how_much_and_in_which_direction() {
        assert_eq!(tokens(3, 9).off(tokens(5, 2)), Some(TokensOff { input: -2, output: 7 }));
        assert_eq!(tokens(3, 9).off(Tokens { cached: 1, ..tokens(3, 9) }), None);
        assert_eq!(tokens(0, 0).off(tokens(u64::MAX, 0)), Some(TokensOff { input: i64::MIN, output: 0 }));
    }

    #[test]
    fn counts_that_are_too_large_stay_the_largest() {
        let mut sum = tokens(u64::MAX, 1);
        sum += tokens(7, 1);
        assert_eq!((sum.input, sum.output, sum.all()), (u64::MAX, 2, u64::MAX));
    }

    #[test]
    fn two_counts_are_one_by_the_models_that_were_asked_too() {
        let of = |model: &str, requests| ModelMetered {
            model: model.into(),
            requests,
            tokens: tokens(10 * requests, requests),
        };
        let mut sum = Metered {
            requests: 3,
            failed: 1,
            tokens: tokens(30, 3),
            wires: vec![Wire::OpenaiChat],
            models: vec![of("a", 2), of("b", 1)],
            ..Metered::default()
        };
        sum += &Metered {
            requests: 5,
            unmetered: 2,
            estimated: 7,
            tokens: tokens(50, 5),
            wires: vec![Wire::OpenaiResponses, Wire::OpenaiChat],
            models: vec![of("c", 1), of("b", 4)],
            ..Metered::default()
        };
        let counts = (sum.requests, sum.failed, sum.unmetered, sum.estimated, sum.tokens);
        assert_eq!(counts, (8, 1, 2, 7, tokens(80, 8)));
        assert_eq!(sum.wires, [Wire::OpenaiChat, Wire::OpenaiResponses]);
        assert_eq!(sum.models, [of("a", 2), of("b", 5), of("c", 1)]);
    }
}
