//! Acceptance: whether a task's probes accept golden and reject what they must (the paper's appendix A, in our reading).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Rejection, Word};
use crate::digest::Digest;
use crate::trial::SandboxReport;

/// The schema version of an acceptance record and of `infradev accept --json`.
pub const ACCEPTANCE_SCHEMA: u32 = 1;

/// What a probe case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Rejects base and hollow.
    Promise,
    /// Base passes it, and it rejects at least one adversarial patch.
    Guard,
    /// Neither: it tells no patch from another.
    Idle,
}

/// One probe case in an acceptance record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeCase {
    /// pytest's node id.
    pub id: String,
    /// World size of its trial.
    pub world: u32,
    /// Promise, guard or idle.
    pub role: Role,
    /// The kill matrix's row: what it made of each patch, by the patch's name.
    pub words: BTreeMap<String, Word>,
    /// How it rejected, by the patch's name.
    pub rejections: BTreeMap<String, Rejection>,
}

/// A hunk of golden.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct HunkAt {
    /// Path in golden's tree.
    pub file: String,
    /// First line in golden's tree.
    pub line: u32,
}

/// What was found of one adversarial patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdversarialFinding {
    /// The promise that it breaks.
    pub promise: String,
    /// Whether it scored no worse than golden on the official tests in each of three runs.
    pub fools_official: bool,
    /// Whether the same probe case rejected it in each of three runs.
    pub rejected: bool,
    /// That case's id.
    pub by: Option<String>,
}

/// A probe case that does not pass a behaviour-preserving rewrite of golden: it judges how golden is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverFitted {
    /// The case's id.
    pub case: String,
    /// World size.
    pub world: u32,
    /// The rewrite: `renamed-locals of ministack/moe.py::Layer.forward`.
    pub rewrite: String,
    /// What the case made of it, twice.
    pub word: Word,
    /// The exception and the first line of its message, where there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// How many behaviour-preserving rewrites of golden were tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RewriteCount {
    /// Tried.
    pub tried: u32,
    /// All that golden allows.
    pub of: u32,
}

/// The last acceptance of a task: `acceptance.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// Version of this file's format.
    pub schema: u32,
    /// The task's id.
    pub id: String,
    /// The pack's canary: the record tells what probes check, and is sealed like them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<String>,
    /// Whether every condition held.
    pub accepted: bool,
    /// N: golden runs, each of which passed every probe.
    pub golden_runs: u32,
    /// Highest flake rate that N clean runs leave possible at 95 %: 1 − 0.05^(1/N).
    pub flake_bound: f64,
    /// Whether order of cases was shuffled.
    pub shuffled: bool,
    /// By the name of the patch (`base`, `hollow`, each adversarial): whether the probes rejected it; `null` where not
    /// applicable.
    pub rejected: BTreeMap<String, Option<bool>>,
    /// By adversarial patch: whether it scored no worse than golden on the official tests, three times.
    pub fools_official: BTreeMap<String, bool>,
    /// Adversarial patches whose three runs differed.
    pub unstable: Vec<String>,
    /// Probe cases without a substantive rejection.
    pub existence_only: Vec<String>,
    /// Hunks of golden that, taken back alone, change the AST and that no test notices.
    pub unprobed_hunks: Vec<HunkAt>,
    /// Behaviour-preserving rewrites of golden; none where the record is older than they are.
    #[serde(default)]
    pub rewrites: RewriteCount,
    /// Probe cases that fail one of them, with each that they fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_fitted: Vec<OverFitted>,
    /// Why it was not accepted.
    pub reasons: Vec<String>,
    /// What a reader should know although it does not decide.
    pub remarks: Vec<String>,
    /// The kill matrix.
    pub cases: Vec<ProbeCase>,
    /// Adversarial patches by name.
    pub adversarial: BTreeMap<String, AdversarialFinding>,
    /// Official cases that golden passes, those of them that base fails, by world size.
    pub official: BTreeMap<String, OfficialCount>,
    /// What it is valid for.
    pub suites: Digest,
    /// Digest of the base tree.
    pub tree: Digest,
    /// The environment's key.
    pub environment: Digest,
    /// `cpu`, `2×NVIDIA H200`.
    pub device_class: String,
    /// How the sandbox was built.
    pub sandbox: SandboxReport,
}

/// Counts of official cases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfficialCount {
    /// Golden passes, base fails.
    pub fail_to_pass: u32,
    /// Both pass.
    pub pass_to_pass: u32,
    /// Quarantined.
    pub quarantined: u32,
}

/// What `infradev accept --json` prints: one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// One record a task.
    pub tasks: Vec<Acceptance>,
}

/// Highest flake rate that `n` clean runs leave possible at 95 % confidence (3 → 63 %, 29 → 10 %, 59 → 5 %).
pub fn flake_bound(n: u32) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / f64::from(n.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flake_bound_is_the_papers_table() {
        let percent = |n| (flake_bound(n) * 100.0).round();
        assert_eq!([percent(3), percent(29), percent(59)], [63.0, 10.0, 5.0]);
    }
}
