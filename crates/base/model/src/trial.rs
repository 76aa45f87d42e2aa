//! A trial: one patch, its suites, one verdictless result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{CaseResult, Outcome};
use crate::digest::{Digest, DigestBuilder};

/// The schema version of a trial's record.
pub const TRIAL_SCHEMA: u32 = 1;

/// What a trial's outcome depends on; its digest keys the record, so that a changed input is never served an old result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialInputs {
    /// Digest of the patch's bytes.
    pub patch: Digest,
    /// Digest of the base tree's content.
    pub tree: Digest,
    /// `SealedTask::suites_digest`, or the digest of base's own tests where those are run.
    pub suites: Digest,
    /// The environment's key.
    pub environment: Digest,
    /// The key of what was built of the patched tree, where the task builds something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<Digest>,
    /// Digest of the probe kit that ran inside.
    pub kit: Digest,
    /// `cpu`, `2×NVIDIA H200`.
    pub device_class: String,
    /// Ranks.
    pub world: u32,
    /// `namespaces` or `none`.
    pub sandbox: String,
    /// Which suites run.
    pub selection: Selection,
    /// The repetition: golden's k-th run.
    pub repeat: u32,
    /// Seed of order, canaries and probe inputs, where one is fixed.
    pub seed: Option<u64>,
    /// Whether cases ran in shuffled order.
    pub shuffled: bool,
    /// Whether it ended at the first case that rejected the patch.
    pub early_stop: bool,
    /// Whether all candidate twins were tried.
    pub candidates: bool,
}

impl TrialInputs {
    /// The trial's key.
    pub fn key(&self) -> Digest {
        let mut digest = DigestBuilder::new("infradev trial v1");
        digest.part("inputs", &serde_json::to_vec(self).unwrap_or_default());
        digest.finish()
    }

    /// A seed of this trial's own, drawn from one that many share.
    pub fn drawn(&self, seed: u64) -> u64 {
        let mut digest = DigestBuilder::new("infradev trial seed v1");
        digest.part("seed", &seed.to_le_bytes()).part("trial", self.key().as_str().as_bytes());
        u64::from_str_radix(&digest.finish().as_str()[..16], 16).unwrap_or(seed)
    }
}

/// Which tests a trial runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Official tests and probes.
    Both,
    /// Official tests alone.
    Official,
    /// Probes alone.
    Probes,
    /// Base's own versions of the official test files (pass-to-pass).
    BaseTests,
    /// One probe case.
    Case(String),
}

/// How the sandbox was built; every result says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxReport {
    /// `namespaces` or `none`.
    pub kind: String,
    /// Whether the code under test had host uids of its own.
    pub uid_separation: bool,
    /// `cgroup-v1`, `cgroup-v2` or `watched`.
    pub memory_limit: String,
    /// `isolated` or `host`.
    pub network: String,
    /// Version of the tool that built it.
    #[serde(default)]
    pub version: String,
}

/// What kind of thing shows tampering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TamperingKind {
    /// Bytes on a rank's channel that carry no valid seal.
    ForgedRecord,
    /// A case that must fail did not.
    CanaryPassed,
    /// A real case with a perturbed expectation did not fail.
    TwinPassed,
    /// A hook turned a failed call into a pass.
    RewrittenReport,
    /// The patch's own conftest or runner configuration, tried alone, lets a failing case pass.
    RunnerConfiguration,
}

/// One piece of evidence of tampering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tampering {
    /// Its kind.
    pub kind: TamperingKind,
    /// The rank, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// What was seen, in one sentence.
    pub evidence: String,
}

/// What went wrong outside the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The sandbox did not start.
    Sandbox,
    /// The host's disk is full.
    DiskFull,
    /// A port was taken before the code under test ran.
    PortTaken,
    /// The framework did not import in the trusted launcher.
    Framework,
    /// The launcher ended by itself.
    Launcher,
    /// The judge process ended by itself.
    Judge,
    /// Xid or ECC on the host's GPU.
    Gpu,
    /// Memory of others on the trial's GPU.
    ForeignGpuMemory,
    /// Golden, on the same node right after, failed the same way.
    ControlRun,
}

/// A harness fault, with evidence from outside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// What was seen.
    pub evidence: String,
}

/// A path of the test trees or runner configuration that the patch changed and that was laid over or purged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlaid {
    /// Path in the tree.
    pub path: String,
    /// `restored` (the task's own version was laid over the patch's) or `purged` (the patch had added it).
    pub action: OverlayAction,
}

/// What was done with a path that the patch changed in the test trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum OverlayAction {
    Restored,
    Purged,
}

/// Where a trial's wall time went, seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// From the start to the ready workspace.
    pub workspace_s: f64,
    /// From there to the launcher's start.
    pub sandbox_s: f64,
    /// The launcher's import of the framework.
    pub framework_s: f64,
    /// From the launcher's readiness to the first case's start.
    pub first_case_s: f64,
    /// The official suite.
    pub official_s: f64,
    /// The probes.
    pub probes_s: f64,
    /// Teardown.
    pub teardown_s: f64,
    /// All of it.
    pub wall_s: f64,
    /// CPU of the harness process itself over the trial.
    pub harness_cpu_s: f64,
}

/// What came of the cases that must fail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CanaryReport {
    /// Random cases laid.
    pub canaries: u32,
    /// Twins of real cases laid.
    pub twins: Vec<TwinResult>,
}

/// A twin and its outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TwinResult {
    /// The real test function's id, and the line of the perturbed assertion.
    pub of: String,
    /// Line of the perturbed assertion.
    pub line: u32,
    /// One entry a rank.
    pub outcomes: Vec<Outcome>,
}

/// A trial's record: what happened, without a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialResult {
    /// Version of this record's format.
    pub schema: u32,
    /// What it depends on.
    pub inputs: TrialInputs,
    /// How the sandbox was built.
    pub sandbox: SandboxReport,
    /// Why the patch could not be applied, where it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_applied: Option<String>,
    /// Mendings of the patch, such as a missing final newline.
    #[serde(default)]
    pub mended: Vec<String>,
    /// What the patch changed in test trees and runner configuration.
    #[serde(default)]
    pub overlaid: Vec<Overlaid>,
    /// All cases, official first, in collection order.
    pub cases: Vec<CaseResult>,
    /// What must fail.
    #[serde(default)]
    pub canaries: CanaryReport,
    /// Evidence of tampering.
    #[serde(default)]
    pub tampering: Vec<Tampering>,
    /// A fault of the harness or host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Why no test could run although nothing is the harness's fault (a name resolves outside the tree, the trial's time ran
    /// out, …): one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Launches of ranks.
    pub launches: u32,
    /// Where the time went.
    pub timing: Timing,
}
