//! Verdicts, and what `infradev grade --json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analysis::TaskFacts;
use crate::case::{CaseId, RankOutcome, Word};
use crate::trial::{Fault, Tampering};

/// The schema version of the grade document.
pub const GRADE_SCHEMA: u32 = 1;

/// What is said of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Passes every case that golden passes (the paper's §3.2).
    Resolved,
    /// Fails at least one.
    Unresolved,
    /// A missing or empty patch; score 0.
    Empty,
    /// The patch does not apply; score 0.
    NotApplied,
    /// Evidence of tampering; score 0.
    Tampered,
    /// A harness fault: unscored, and in no rate.
    Fault,
}

impl Verdict {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Resolved => "resolved",
            Verdict::Unresolved => "unresolved",
            Verdict::Empty => "empty",
            Verdict::NotApplied => "not_applied",
            Verdict::Tampered => "tampered",
            Verdict::Fault => "fault",
        }
    }
}

/// Cases passed out of those that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Golden-passing cases that the patch passes.
    pub passed: u32,
    /// Golden-passing cases.
    pub of: u32,
}

/// Scores by suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteScores {
    /// Official tests.
    pub official: Score,
    /// Probes.
    pub probe: Score,
}

/// A golden-passing case that the patch does not pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailingCase {
    /// Which case.
    #[serde(flatten)]
    pub case: CaseId,
    /// World size of the trial.
    pub world: u32,
    /// The merged word.
    pub word: Word,
    /// The patch's vector; empty where the case is missing.
    pub vector: Vec<RankOutcome>,
    /// Whether base fails it too.
    pub fail_to_pass: bool,
}

/// The grade of one submission on one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grade {
    /// The task's id.
    pub task: String,
    /// The submission's name: a file's stem, a model's name, or `golden`, `base`, `hollow`.
    pub submission: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Golden-passing cases passed.
    pub passed: u32,
    /// Golden-passing cases.
    pub of: u32,
    /// The same by suite.
    pub suites: SuiteScores,
    /// No probe counts here: the verdict rests on official tests alone, whose results a patch could forge.
    #[serde(default)]
    pub without_probes: bool,
    /// Fail-to-pass cases passed.
    pub fail_to_pass: Score,
    /// Pass-to-pass cases passed.
    pub pass_to_pass: Score,
    /// Wall time of its trials, seconds.
    pub wall_s: f64,
    /// The fault, where the verdict is `fault`.
    pub fault: Option<Fault>,
    /// One sentence each: what decided.
    pub reasons: Vec<String>,
    /// The cases that it does not pass.
    pub failing: Vec<FailingCase>,
    /// Evidence of tampering.
    pub tampering: Vec<Tampering>,
    /// `namespaces` or `none`; whether the code under test had uids of its own; how memory was limited.
    pub sandbox: crate::trial::SandboxReport,
    /// Keys of its trials, one a world size.
    pub trials: Vec<String>,
}

/// What `infradev grade --json` prints: one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradeDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// What a report groups rates by; left out by older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskFacts>,
    /// One entry a submission and task.
    pub submissions: Vec<Grade>,
}

/// A line of a run's `grades.jsonl`: a grade as soon as it is given, of a run whose document is not written yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradedSoFar {
    /// What a report groups by.
    pub facts: TaskFacts,
    /// The grade.
    pub grade: Grade,
}

impl GradeDocument {
    /// The document of what a run graded so far.
    pub fn so_far(run: &str, lines: impl IntoIterator<Item = GradedSoFar>) -> GradeDocument {
        let (schema, run) = (GRADE_SCHEMA, run.to_owned());
        let mut document = GradeDocument { schema, run, tasks: Vec::new(), submissions: Vec::new() };
        for GradedSoFar { facts, grade } in lines {
            if !document.tasks.contains(&facts) {
                document.tasks.push(facts);
            }
            document.submissions.push(grade);
        }
        document
    }
}
