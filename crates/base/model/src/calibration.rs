//! Calibration: golden's vectors, with base's outcome beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{CaseId, Outcome, Suite};
use crate::digest::{Digest, DigestBuilder};

/// The schema version of a calibration.
pub const CALIBRATION_SCHEMA: u32 = 1;

/// What a calibration is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationKey {
    /// The task's id.
    pub task: String,
    /// `SealedTask::suites_digest`.
    pub suites: Digest,
    /// Digest of the base tree's content.
    pub tree: Digest,
    /// The environment's key.
    pub environment: Digest,
    /// The key of what was built of golden's tree, where the task builds something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<Digest>,
    /// Digest of the probe kit.
    pub kit: Digest,
    /// `cpu`, `2×NVIDIA H200`.
    pub device_class: String,
    /// Ranks.
    pub world: u32,
    /// `namespaces` or `none`.
    pub sandbox: String,
}

impl CalibrationKey {
    /// Digest that names the calibration's file.
    pub fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::new("infradev calibration v1");
        digest.part("key", &serde_json::to_vec(self).unwrap_or_default());
        digest.finish()
    }
}

/// A case that counts: golden passes it in every run, with the same vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedCase {
    /// Which case.
    #[serde(flatten)]
    pub case: CaseId,
    /// Golden's vector.
    pub vector: Vec<Outcome>,
    /// Base's vector under golden's test files; empty where base did not collect it.
    pub base: Vec<Outcome>,
    /// Whether base passes it with its own test files.
    pub base_own: bool,
    /// Golden's longest time, seconds.
    pub duration_s: f64,
}

impl CalibratedCase {
    /// Whether base fails it and golden passes it.
    pub fn fail_to_pass(&self) -> bool {
        self.base != self.vector && !self.base_own
    }
}

/// A case that does not count, by name, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quarantined {
    /// Which case.
    #[serde(flatten)]
    pub case: CaseId,
    /// `unstable`, `skipped on every rank`, `fails on golden`, …
    pub reason: String,
    /// Golden's vector in each run.
    pub vectors: Vec<Vec<Outcome>>,
}

/// A twin that fails on golden with the same vector in every run, so that one which passes shows tampering.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedTwin {
    /// Test file.
    pub file: String,
    /// Qualified name of the test function.
    pub function: String,
    /// Line of the perturbed assertion.
    pub line: u32,
}

/// Golden's vectors for one task on one class of device at one world size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Version of this file's format.
    pub schema: u32,
    /// What it is valid for.
    pub key: CalibrationKey,
    /// Golden runs that it was made from.
    pub golden_runs: u32,
    /// Cases that count.
    pub cases: Vec<CalibratedCase>,
    /// Cases that do not.
    pub quarantined: Vec<Quarantined>,
    /// Twins that fail on golden.
    pub twins: Vec<CalibratedTwin>,
    /// Golden's wall time, seconds, median.
    pub wall_s: f64,
}

impl Calibration {
    /// Cases of one suite.
    pub fn of(&self, suite: Suite) -> impl Iterator<Item = &CalibratedCase> {
        self.cases.iter().filter(move |case| case.case.suite == suite)
    }

    /// Why nothing can be graded with it, where nothing can.
    pub fn refusal(&self) -> Option<String> {
        if self.cases.is_empty() {
            let mut reasons: Vec<&str> = self.quarantined.iter().map(|case| case.reason.as_str()).collect();
            reasons.sort_unstable();
            reasons.dedup();
            let why =
                if reasons.is_empty() { "no case was collected".to_string() } else { reasons.join("; ") };
            return Some(format!("golden passes no case at world size {} ({why})", self.key.world));
        }
        let official = |case: &CaseId| case.suite == Suite::Official;
        let seen = self.cases.iter().any(|case| official(&case.case))
            || self.quarantined.iter().any(|case| official(&case.case));
        if !seen {
            // Probes alone would grade, and a patch that breaks every official test would be resolved.
            return Some(format!(
                "no official test was collected on golden at world size {}",
                self.key.world
            ));
        }
        None
    }
}
