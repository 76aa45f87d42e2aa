//! What synthesis found of a task's tests: each mutant's fate, what the tests are worth, what nothing checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acceptance::HunkAt;
use crate::case::{Suite, Word};
use crate::digest::Digest;
use crate::mutant::Mutant;

/// The schema version of `infradev synthesize --json`.
pub const SYNTHESIS_SCHEMA: u32 = 1;

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// An official test rejects it.
    Official,
    /// No official test rejects it, a probe does: an adversarial patch.
    Probe,
    /// No test rejects it, though some reach its lines.
    Survived,
    /// No test reaches its lines.
    Unreached,
    /// No test rejects it, and the task lists it as equivalent to golden.
    Equivalent,
}

impl Fate {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            Fate::Official => "official",
            Fate::Probe => "probe",
            Fate::Survived => "survived",
            Fate::Unreached => "unreached",
            Fate::Equivalent => "equivalent",
        }
    }

    /// Whether no test notices it, though it is not listed as equivalent.
    pub fn survives(self) -> bool {
        matches!(self, Fate::Survived | Fate::Unreached)
    }
}

/// The case that rejected a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedBy {
    /// Its suite.
    pub suite: Suite,
    /// Its id.
    pub case: String,
    /// World size.
    pub world: u32,
    /// What it made of the mutant.
    pub word: Word,
    /// The exception and the first line of its message, where there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// One mutant and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MutantRecord {
    /// The mutant.
    pub mutant: Mutant,
    /// What became of it.
    pub fate: Fate,
    /// Golden's lines that it changes, from the first to the last of its span.
    pub was: String,
    /// What stands there in the mutant; empty where the lines, or the file, are gone.
    pub becomes: String,
    /// The promise that it breaks, as the end of a sentence.
    pub promise: String,
    /// Why it is equivalent to golden, where the task lists it; beside a case that rejected it the listing is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalent: Option<String>,
    /// The first case that rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<RejectedBy>,
    /// Official cases that reach its lines, over all world sizes.
    pub official_reach: u32,
    /// Probe cases that reach its lines, over all world sizes; counted where no official case rejects it.
    pub probe_reach: u32,
    /// What each probe case that reaches it made of it, by id: its column of the kill matrix. Filled where no official case
    /// rejects it; cases whose judge failed by itself are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, Word>,
    /// Seconds that trying it took.
    pub wall_s: f64,
}

impl MutantRecord {
    /// The record of a mutant that the task lists as equivalent to golden, for this reason.
    pub fn listed(mut self, why: &str) -> MutantRecord {
        self.equivalent = Some(why.to_string());
        if self.fate.survives() {
            self.fate = Fate::Equivalent;
        }
        self
    }
}

/// A behaviour-preserving rewrite of golden, and the tests that do not pass it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RewriteRecord {
    /// What it is called: `renamed-locals of ministack/moe.py::Layer.forward`.
    pub rewrite: String,
    /// Official cases that reach its lines, over all world sizes.
    pub official_reach: u32,
    /// Probe cases that reach its lines, over all world sizes.
    pub probe_reach: u32,
    /// Cases that fail it twice: they judge how golden is written, not what it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<RejectedBy>,
    /// Cases that fail it once and pass it once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// Seconds that trying it took.
    pub wall_s: f64,
}

/// How golden itself fared under a suite, at one world size: the unmutated control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoldenControl {
    /// World size.
    pub world: u32,
    /// The suite.
    pub suite: Suite,
    /// Cases that golden passes: the ones that decide.
    pub cases: u32,
    /// Cases that golden does not pass, left out by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Cases that answer differently from one run of golden to the next, left out by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// Seconds that one run of the suite took.
    pub wall_s: f64,
}

/// How many of a kind of change the tests reject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// All.
    pub of: u32,
    /// Rejected by official tests.
    pub official: u32,
    /// Rejected by probes alone: what they add.
    pub probes: u32,
    /// Rejected by none, and listed as equivalent to golden.
    #[serde(default)]
    pub equivalent: u32,
}

impl Share {
    /// Neither rejected by a test nor listed.
    pub fn left(&self) -> u32 {
        self.of - self.official - self.probes - self.equivalent
    }
}

/// What the tests are worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Strength {
    /// Hunks of golden that change the syntax tree, each taken back alone.
    pub hunks: Share,
    /// All mutants, hunks taken back among them.
    pub mutants: Share,
}

impl Strength {
    /// Counts.
    pub fn of(records: &[MutantRecord]) -> Strength {
        let mut strength = Strength::default();
        for record in records {
            let mut shares = vec![&mut strength.mutants];
            if record.mutant.operator == crate::Operator::TakeBackHunk {
                shares.push(&mut strength.hunks);
            }
            for share in shares {
                share.of += 1;
                share.official += u32::from(record.fate == Fate::Official);
                share.probes += u32::from(record.fate == Fate::Probe);
                share.equivalent += u32::from(record.fate == Fate::Equivalent);
            }
        }
        strength
    }
}

/// A changed file that no mutants were made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassedOver {
    /// Path in golden's tree.
    pub file: String,
    /// Why.
    pub why: String,
}

/// What was found of one task, or of one change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Synthesis {
    /// The task's id, or the change's name.
    pub id: String,
    /// `k/n` where this is one shard of the mutants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Digest of task, environment, devices and of all mutants and rewrites: the same for each shard of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Digest>,
    /// Golden first.
    pub golden: Vec<GoldenControl>,
    /// Each mutant, in the order of files and lines.
    pub mutants: Vec<MutantRecord>,
    /// What the tests are worth.
    pub strength: Strength,
    /// Hunks of golden that change the syntax tree and that, taken back alone, no test notices, but for those listed as
    /// equivalent.
    pub unprobed_hunks: Vec<HunkAt>,
    /// Behaviour-preserving rewrites of golden that were tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<RewriteRecord>,
    /// Files of the change that no mutants were made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
    /// What a reader should know although it decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Seconds of trying mutants, in all sessions together.
    pub trying_s: f64,
}

impl Synthesis {
    /// What stands in the order of files and lines, what it comes to, and the remarks that count it. `self` has its records;
    /// `others` are remarks of another kind.
    pub fn counted(mut self, others: Vec<String>) -> Synthesis {
        self.mutants.sort_by(|a, b| {
            let key =
                |r: &MutantRecord| (r.mutant.file.clone(), r.mutant.start, r.mutant.end, r.mutant.operator);
            key(a).cmp(&key(b))
        });
        self.rewrites.sort_by(|a, b| a.rewrite.cmp(&b.rewrite));
        let taken_back = |r: &&MutantRecord| r.mutant.operator == crate::Operator::TakeBackHunk;
        let unprobed = self.mutants.iter().filter(taken_back).filter(|record| record.fate.survives());
        self.unprobed_hunks =
            unprobed.map(|r| HunkAt { file: r.mutant.file.clone(), line: r.mutant.line }).collect();
        self.strength = Strength::of(&self.mutants);
        self.trying_s = self.mutants.iter().map(|record| record.wall_s).sum();
        self.remarks = others;
        self.remarks.extend(self.counts());
        self
    }

    /// Remarks that follow from the mutants alone.
    pub(crate) fn counts(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.mutants.is_empty() {
            remarks.push("no mutant can be made of this change".to_string());
        }
        let unreached = self.mutants.iter().filter(|record| record.fate == Fate::Unreached).count();
        if unreached > 0 {
            remarks.push(format!("{unreached} of the mutants stand in lines that no test runs"));
        }
        remarks
    }

    /// Mutants that pass the official tests, whether a probe rejects them or not, but for those that are listed as equivalent
    /// and that nothing rejects.
    pub fn survivors(&self) -> impl Iterator<Item = &MutantRecord> {
        self.mutants.iter().filter(|record| !matches!(record.fate, Fate::Official | Fate::Equivalent))
    }

    /// Mutants that no test notices and that are not listed as equivalent.
    pub fn gaps(&self) -> impl Iterator<Item = &MutantRecord> {
        self.mutants.iter().filter(|record| record.fate.survives())
    }

    /// Mutants that no test notices and that are listed as equivalent.
    pub fn equivalent(&self) -> impl Iterator<Item = &MutantRecord> {
        self.mutants.iter().filter(|record| record.fate == Fate::Equivalent)
    }

    /// Mutants that are listed as equivalent though a test rejects them.
    pub fn wrong_listings(&self) -> impl Iterator<Item = &MutantRecord> {
        self.mutants.iter().filter(|record| record.equivalent.is_some() && record.by.is_some())
    }
}

/// What `infradev synthesize --json` prints: one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SynthesisDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// One record a task.
    pub tasks: Vec<Synthesis>,
}

/// A line of a change that no test notices: mutants of it that survive, together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Path in the tree.
    pub file: String,
    /// First line, from 1; 0 of a file that the change leaves without any.
    pub line: u32,
    /// Last line; 0 where `line` is.
    pub end_line: u32,
    /// The first line's text.
    pub text: String,
    /// Whether no test runs it at all.
    pub unreached: bool,
    /// What could be done to it unnoticed.
    pub mutants: Vec<GapMutant>,
}

/// One mutant that no test notices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapMutant {
    /// The kind of mistake.
    pub operator: crate::Operator,
    /// What stands there instead, its lines cut to the changed ones.
    pub becomes: String,
    /// The promise that it breaks, as the end of a sentence.
    pub promise: String,
    /// Tests that run it.
    pub reach: u32,
}

/// What `infradev probe-gaps --json` prints: one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapsDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// The commit that the change started from.
    pub base: String,
    /// The commit that holds the change, or `work tree`.
    pub head: String,
    /// Lines that no test notices, in the order of files and lines.
    pub gaps: Vec<Gap>,
    /// All mutants and what became of them.
    pub change: Synthesis,
}

impl Synthesis {
    /// The mutants that no test notices, by line.
    pub fn gap_lines(&self) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        for record in self.gaps() {
            let mutant = &record.mutant;
            let end_line = mutant.line + record.was.trim_end().matches('\n').count() as u32;
            let first = record.was.lines().next().unwrap_or_default().trim();
            let entry = GapMutant {
                operator: mutant.operator,
                becomes: record.becomes.clone(),
                promise: record.promise.clone(),
                reach: record.official_reach + record.probe_reach,
            };
            match gaps.iter_mut().find(|gap| gap.file == mutant.file && gap.line == mutant.line) {
                Some(gap) => {
                    gap.end_line = gap.end_line.max(end_line);
                    gap.unreached &= record.fate == Fate::Unreached;
                    gap.mutants.push(entry);
                }
                None => gaps.push(Gap {
                    file: mutant.file.clone(),
                    line: mutant.line,
                    end_line,
                    text: first.to_string(),
                    unreached: record.fate == Fate::Unreached,
                    mutants: vec![entry],
                }),
            }
        }
        gaps.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        gaps
    }
}
