//! Cases and their outcome vectors: one entry a rank, merged by one rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The two suites (the paper's §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// The pull request's own tests, inside the process under test.
    Official,
    /// Hidden probes, observed inside and judged outside.
    Probe,
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Suite::Official => "official",
            Suite::Probe => "probe",
        })
    }
}

/// One test id as pytest collects it, verbatim, under one suite. The world size belongs to the trial.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CaseId {
    /// The suite.
    pub suite: Suite,
    /// pytest's node id.
    pub id: String,
}

impl std::fmt::Display for CaseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.id)
    }
}

/// What one rank made of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Outcome {
    Passed,
    Failed,
    Error,
    Skipped,
    Xfailed,
    Xpassed,
    Timeout,
    Crashed,
    /// Another rank failed first and this one could only hang.
    PeerAbort,
    NotCollected,
}

impl Outcome {
    /// Whether pytest's exit code would tell of it.
    pub fn fails(self) -> bool {
        !matches!(self, Outcome::Passed | Outcome::Skipped | Outcome::Xfailed | Outcome::Xpassed)
    }

    /// The word as it stands in files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Error => "error",
            Outcome::Skipped => "skipped",
            Outcome::Xfailed => "xfailed",
            Outcome::Xpassed => "xpassed",
            Outcome::Timeout => "timeout",
            Outcome::Crashed => "crashed",
            Outcome::PeerAbort => "peer_abort",
            Outcome::NotCollected => "not_collected",
        }
    }

    /// Parses pytest's and our own words.
    pub fn parse(word: &str) -> Option<Outcome> {
        use Outcome::*;
        [Passed, Failed, Error, Skipped, Xfailed, Xpassed, Timeout, Crashed, PeerAbort, NotCollected]
            .into_iter()
            .find(|outcome| outcome.word() == word)
    }
}

/// What is known of a rank's failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Detail {
    /// Qualified name of the exception's type, or of what ended the process (`SIGSEGV`, `exit 3`).
    pub exception: String,
    /// Its message, bounded.
    pub message: String,
    /// File of the deepest frame that belongs to tree or tests, relative to the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// One entry of a case's vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankOutcome {
    /// The outcome.
    pub outcome: Outcome,
    /// What is known of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<Detail>>,
}

impl RankOutcome {
    /// An outcome without more to say.
    pub fn plain(outcome: Outcome) -> RankOutcome {
        RankOutcome { outcome, detail: None }
    }

    /// An outcome with what is known of it.
    pub fn with(outcome: Outcome, detail: Detail) -> RankOutcome {
        RankOutcome { outcome, detail: Some(Box::new(detail)) }
    }
}

/// The merged word of a case that does not pass, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Word {
    Passed,
    Crashed,
    Timeout,
    Error,
    Failed,
    Missing,
    Skipped,
}

impl Word {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            Word::Passed => "passed",
            Word::Crashed => "crashed",
            Word::Timeout => "timeout",
            Word::Error => "error",
            Word::Failed => "failed",
            Word::Missing => "missing",
            Word::Skipped => "skipped",
        }
    }
}

/// Merges a vector against golden's calibrated one. It passes where both are equal; else the word is the first of crashed,
/// timeout, error, failed, missing, skipped. `peer_abort` never hides the culprit.
pub fn merge(vector: &[Outcome], calibrated: &[Outcome]) -> Word {
    if vector == calibrated {
        return Word::Passed;
    }
    let has = |outcomes: &[Outcome]| vector.iter().any(|outcome| outcomes.contains(outcome));
    if has(&[Outcome::Crashed]) {
        Word::Crashed
    } else if has(&[Outcome::Timeout]) {
        Word::Timeout
    } else if has(&[Outcome::Error]) {
        Word::Error
    } else if has(&[Outcome::Failed, Outcome::Xfailed, Outcome::Xpassed, Outcome::PeerAbort]) {
        Word::Failed
    } else if vector.len() != calibrated.len() || has(&[Outcome::NotCollected]) {
        Word::Missing
    } else {
        Word::Skipped
    }
}

/// Whether golden's vector can count: some rank passes, all others pass or skip.
pub fn countable(vector: &[Outcome]) -> bool {
    vector.contains(&Outcome::Passed)
        && vector.iter().all(|outcome| matches!(outcome, Outcome::Passed | Outcome::Skipped))
}

/// Why a probe rejected a patch (the design's acceptance rule).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// A missing module, name, attribute or argument, or hollow's own exception.
    Trivial,
    /// The patch answered on every rank and failed the judge's assertion.
    Substantive,
    /// Something else went wrong on a rank: an exception, a crash, a hang that the judge did not ask about.
    Broken,
}

/// One comparison of the judge: expected beside got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// `close`, `equal`, `between`, `true`, `raises`, `finishes`.
    pub kind: String,
    /// What the author called it, or the compared expression.
    #[serde(default)]
    pub what: String,
    /// Whether it held.
    pub ok: bool,
    /// Bounded text of what was expected.
    #[serde(default)]
    pub expected: String,
    /// Bounded text of what came back.
    #[serde(default)]
    pub got: String,
    /// Largest error, tolerance, index.
    #[serde(default)]
    pub detail: String,
    /// Line in the judge's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What is kept of a probe case beside its vector.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// Seed of the inputs: a failure can be replayed.
    pub seed: u64,
    /// The property that it checks (`numbers`, `traffic`, …).
    pub checks: String,
    /// Free words.
    #[serde(default)]
    pub traits: Vec<String>,
    /// The id of the case that asks the same on inputs on which the right algorithm is exact, where the probe names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Why it rejected, where it did: absent where the patch passed, and where the judge failed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
    /// Comparisons in order, bounded.
    #[serde(default)]
    pub expectations: Vec<Expectation>,
    /// What each rank of the failing world did.
    #[serde(default)]
    pub ranks: Vec<RankOutcome>,
    /// Judge's traceback, bounded.
    #[serde(default)]
    pub text: String,
}

/// One case of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Which case.
    #[serde(flatten)]
    pub case: CaseId,
    /// One entry a rank; length one for a probe.
    pub vector: Vec<RankOutcome>,
    /// Longest time that a rank took, seconds.
    pub duration_s: f64,
    /// Which launch of ranks ran it, counted from 0.
    pub launch: u32,
    /// For a probe, what the judge saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Box<Judgement>>,
}

impl CaseResult {
    /// What it said where it did not pass: the exception and the first line of its message, else the word.
    pub fn said(&self) -> String {
        let worst = self.vector.iter().find(|entry| entry.detail.is_some());
        let Some(RankOutcome { detail: Some(detail), outcome }) = worst else {
            return self.vector.first().map_or(String::new(), |entry| entry.outcome.word().to_string());
        };
        let line = detail.message.lines().next().unwrap_or_default();
        match (detail.exception.is_empty(), line.is_empty()) {
            (true, true) => outcome.word().to_string(),
            (true, false) => line.to_string(),
            (false, true) => detail.exception.clone(),
            (false, false) => format!("{}: {line}", detail.exception),
        }
    }

    /// The outcomes alone.
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.vector.iter().map(|entry| entry.outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome::*;
    use super::*;
    use proptest::prelude::*;

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop::sample::select(vec![
            Passed,
            Failed,
            Error,
            Skipped,
            Xfailed,
            Xpassed,
            Timeout,
            Crashed,
            PeerAbort,
            NotCollected,
        ])
    }

    proptest! {
        #[test]
        fn a_vector_passes_only_where_it_equals_goldens(
            vector in prop::collection::vec(outcome(), 1..5),
            golden in prop::collection::vec(outcome(), 1..5),
        ) {
            prop_assert_eq!(merge(&vector, &golden) == Word::Passed, vector == golden);
        }

        #[test]
        fn the_merged_word_does_not_depend_on_which_rank_did_what(
            mut vector in prop::collection::vec(outcome(), 4..=4), turn in 0usize..4,
        ) {
            let golden = vec![Passed; 4];
            let before = merge(&vector, &golden);
            vector.rotate_left(turn);
            prop_assert_eq!(before, merge(&vector, &golden));
        }
    }

    #[test]
    fn the_culprit_is_not_hidden_by_ranks_that_could_only_hang() {
        let golden = [Passed, Passed];
        assert_eq!(merge(&[Failed, PeerAbort], &golden), Word::Failed);
        assert_eq!(merge(&[PeerAbort, Crashed], &golden), Word::Crashed);
        assert_eq!(merge(&[Timeout, Failed], &golden), Word::Timeout);
    }

    #[test]
    fn a_skip_counts_only_where_golden_skips_on_the_same_rank() {
        assert_eq!(merge(&[Passed, Skipped], &[Passed, Skipped]), Word::Passed);
        assert_eq!(merge(&[Skipped, Passed], &[Passed, Skipped]), Word::Skipped);
        assert!(countable(&[Passed, Skipped]));
        assert!(!countable(&[Skipped, Skipped]));
        assert!(!countable(&[Passed, Xfailed]));
    }
}
