//! What runs show of submissions: verdicts, failing cases with signature and label, figures. `infradev report --json` prints it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Suite, Word};
use crate::figures::Figures;
use crate::label::Labelled;
use crate::readings::{Likeness, OwnTests, Reached};
use crate::submission::{AgentUsed, Ending, Tokens};
use crate::task::{Area, BaseSource, Kind, PublicTask};
use crate::verdict::{SuiteScores, Verdict};

/// The schema version of what `infradev report --json` prints.
pub const ANALYSIS_SCHEMA: u32 = 1;

/// What is known of a task without its pack: a grade document keeps it, so that a run's folder says it alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskFacts {
    /// The task's id.
    pub task: String,
    /// Training, inference or reinforcement learning.
    pub area: Area,
    /// Feature, performance, refactor or fix.
    pub kind: Kind,
    /// The repository that it is of: the last two parts of a url, the name of a folder.
    pub repository: String,
    /// Free words of `task.toml`; left out by older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<String>,
}

impl PublicTask {
    /// What a report groups rates by.
    pub fn facts(&self) -> TaskFacts {
        let repository = match &self.base {
            BaseSource::Folder(folder) => {
                folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            BaseSource::Commit { repository, .. } => repository_name(repository),
        };
        TaskFacts {
            task: self.spec.id.clone(),
            area: self.spec.area,
            kind: self.spec.kind,
            repository,
            traits: self.spec.traits.clone(),
        }
    }
}

/// `NVIDIA/Megatron-LM` of a url, `mirror` of a path such as `/srv/mirror.git`.
fn repository_name(source: &str) -> String {
    let plain = source.trim_end_matches('/').trim_end_matches(".git");
    let parts: Vec<&str> = plain.split(['/', ':']).filter(|part| !part.is_empty()).collect();
    let kept = if source.contains("://") || source.contains('@') { 2 } else { 1 };
    parts[parts.len().saturating_sub(kept)..].join("/")
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Done.
    Finished,
    /// A process works on it.
    Running,
    /// It was stopped: the same command goes on with it.
    Unfinished,
}

impl RunState {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            RunState::Finished => "finished",
            RunState::Running => "running",
            RunState::Unfinished => "unfinished",
        }
    }
}

/// A run that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRead {
    /// The run's id.
    pub run: String,
    /// `grade` or `attempt`.
    pub verb: String,
    /// The pack's name.
    pub pack: String,
    /// Seconds since the epoch.
    pub started: u64,
    /// How far it is.
    pub state: RunState,
    /// Trials or attempts that were begun.
    pub begun: u32,
    /// Of them, those that left a record.
    pub finished: u32,
    /// Submissions that were read from it.
    pub submissions: u32,
}

/// Whether a submission is in a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It has a verdict that counts.
    Scored,
    /// Its grading ended in a harness fault.
    Fault,
    /// Its model was not reached.
    Unreached,
    /// It was attempted and is not graded in these runs.
    Ungraded,
}

/// How far a submission comes. A gate that it passes says nothing of those after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gates {
    /// It is a patch that applies.
    pub applies: bool,
    /// Some official case of golden's is collected.
    pub imports: bool,
    /// Each is.
    pub collects: bool,
    /// Each official case passes at the task's smallest world size; none where no record says the sizes.
    pub smallest_world: Option<bool>,
    /// Each does at each size.
    pub official: bool,
    /// Each case of both suites does.
    pub resolved: bool,
}

/// A submission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnalysedSubmission {
    /// The task's id.
    pub task: String,
    /// The submission's name.
    pub submission: String,
    /// The arm: the name without the number of the attempt.
    pub arm: String,
    /// Which of the attempts, from 1.
    pub attempt: u32,
    /// Whether it counts.
    pub standing: Standing,
    /// The verdict, once it is graded.
    pub verdict: Option<Verdict>,
    /// Scores by suite.
    pub suites: SuiteScores,
    /// Whether it passes every official case, as the paper counts "without probes".
    pub official: bool,
    /// How far it comes, once it is graded and scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Gates>,
    /// Failing cases in [`Analysis::cases`].
    pub failing: u32,
    /// Seconds of its trials.
    pub graded_s: f64,
    /// Who made it, where it was attempted in these runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentUsed>,
    /// The model, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Requests for an answer of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// How its attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Tokens of its attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Seconds that its agent worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_s: Option<f64>,
    /// US dollars, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Look-ups that were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookups: Option<u64>,
    /// Whether the skill that it was given came before its model, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_opened: Option<bool>,
    /// How close its patch is to golden, where both were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<Likeness>,
    /// What its own tests check, where its patch or its trajectory was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_tests: Option<OwnTests>,
    /// How far its agent tried it, where a trajectory was read: gates that it passed, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Vec<Reached>>,
    /// Where patch, record and trajectory of its attempt lie, below the folder of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// The run that graded it, else the one that attempted it.
    pub run: String,
}

/// A case that golden passes and a submission does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseError {
    /// The run that the submission is shown under.
    pub run: String,
    /// The task's id.
    pub task: String,
    /// The submission's name.
    pub submission: String,
    /// The suite.
    pub suite: Suite,
    /// The case: its id; in a public report a probe's digest.
    pub case: String,
    /// World size.
    pub world: u32,
    /// The merged word.
    pub word: Word,
    /// Whether base fails it too.
    pub fail_to_pass: bool,
    /// The property that a probe declares; of an official case the one that its failing assertion checks, where its text was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<String>,
    /// The failing assertion of an official case, on one line and cut; left out of public reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertion: Option<String>,
    /// A probe's free words; empty in a public report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<String>,
    /// The exception, or what ended the process; empty in a public report on a probe.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exception: String,
    /// Its message's first line; empty in a public report on a probe.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Deepest frame in the repository or its tests, `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What stays the same where the same goes wrong again; in a public report on a probe its digest.
    pub signature: String,
    /// The label.
    pub label: Labelled,
}

/// Failing cases of one task with one signature and one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorGroup {
    /// The task's id.
    pub task: String,
    /// The suite.
    pub suite: Suite,
    /// File of the deepest frame, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The signature.
    pub signature: String,
    /// The label's word; none where no rule fits.
    pub label: Option<crate::label::Label>,
    /// Submissions.
    pub submissions: u32,
    /// Cases, each counted once a submission and world size.
    pub cases: u32,
}

/// What runs show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// Version of this document's format.
    pub schema: u32,
    /// Whether names, messages and traits of probes stand in it.
    pub sealed: bool,
    /// The runs.
    pub runs: Vec<RunRead>,
    /// What is known of the tasks.
    pub tasks: Vec<TaskFacts>,
    /// All submissions, in the order of runs.
    pub submissions: Vec<AnalysedSubmission>,
    /// Failing cases of unresolved submissions.
    pub cases: Vec<CaseError>,
    /// The same in groups, largest first.
    pub groups: Vec<ErrorGroup>,
    /// Counts and rates.
    pub figures: Figures,
    /// What a reader should know: records that are missing, submissions that were graded twice.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::repository_name;

    #[test]
    fn a_repository_is_named_by_the_end_of_its_url_or_path() {
        assert_eq!(repository_name("https://github.com/NVIDIA/Megatron-LM.git"), "NVIDIA/Megatron-LM");
        assert_eq!(repository_name("git@github.com:vllm-project/vllm"), "vllm-project/vllm");
        assert_eq!(repository_name("/srv/mirrors/verl.git/"), "verl");
    }
}
