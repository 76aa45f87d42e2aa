//! Counts and rates of an analysis. No rate stands without its counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::label::Label;
use crate::readings::{LikenessCount, OwnTestCount, ResourceChecks, TriedCount};

/// A share with Wilson's interval at 95 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proportion {
    /// How many.
    pub count: u32,
    /// Of how many.
    pub of: u32,
    /// Lower end of the interval, from 0 to 1.
    pub low: f64,
    /// Upper end of the interval; 1 where there is nothing to count.
    pub high: f64,
}

/// An estimate with an interval of 95 % by a bootstrap over tasks; of one task both ends are the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Tasks that it rests on.
    pub tasks: u32,
}

/// By what submissions are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Grouping {
    All,
    Arm,
    Area,
    Kind,
    Repository,
    ArmRepository,
    Task,
}

impl Grouping {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            Grouping::All => "all",
            Grouping::Arm => "arm",
            Grouping::Area => "area",
            Grouping::Kind => "kind",
            Grouping::Repository => "repository",
            Grouping::ArmRepository => "arm, repository",
            Grouping::Task => "task",
        }
    }
}

/// How often a group of submissions resolves its tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// By what it is grouped.
    pub by: Grouping,
    /// The group; `unknown` where no record says it.
    pub group: String,
    /// Its tasks.
    pub tasks: u32,
    /// Resolved ones of those scored.
    pub resolved: Proportion,
    /// Those of the scored that pass every official case: what would be resolved without probes.
    pub official: Proportion,
    /// Of those that pass every official case of a task with probes, those that probes reject.
    pub rejected: Proportion,
    /// Harness faults, in no rate.
    pub faults: u32,
    /// Attempts whose model was not reached, in no rate.
    pub unreached: u32,
    /// Attempts without a grade, in no rate.
    pub ungraded: u32,
}

/// The chance that one of k attempts resolves a task, averaged over tasks (Chen et al. 2021).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassAtK {
    /// The arm.
    pub arm: String,
    /// Attempts.
    pub k: u32,
    /// Over the tasks that have at least k scored attempts.
    pub estimate: Estimate,
}

/// How many scored submissions of an arm pass each gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateCount {
    /// The arm.
    pub arm: String,
    /// Scored submissions.
    pub scored: u32,
    /// Those that apply.
    pub applies: u32,
    /// Those of which some official case is collected.
    pub imports: u32,
    /// Those of which each is.
    pub collects: u32,
    /// Those that pass each at the smallest world size.
    pub smallest_world: u32,
    /// Those of which that is known.
    pub smallest_world_of: u32,
    /// Those that pass each at each size.
    pub official: u32,
    /// Resolved ones.
    pub resolved: u32,
}

/// Two arms on the same tasks and attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Paired {
    /// One arm.
    pub one: String,
    /// The other.
    pub other: String,
    /// Pairs: both scored on the same task in the attempt of the same number.
    pub pairs: u32,
    /// Pairs that both resolve.
    pub both: u32,
    /// Pairs that only `one` resolves.
    pub one_only: u32,
    /// Pairs that only `other` resolves.
    pub other_only: u32,
    /// McNemar's exact test, two-sided.
    pub p: f64,
    /// Rate of `other` less rate of `one` over the pairs, averaged over tasks.
    pub difference: Estimate,
}

/// Submissions with an error of one label, by the suite that caught it. A submission has as many labels as its failing cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// The label; none for failing cases that no rule fits.
    pub label: Option<Label>,
    /// Of the scored submissions, those with such an error.
    pub submissions: Proportion,
    /// Of them, those where official tests alone show it.
    pub official_only: u32,
    /// Those where probes alone show it.
    pub probe_only: u32,
    /// Those where both do.
    pub both: u32,
    /// Failing cases.
    pub cases: u32,
}

/// Whose trait it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraitOf {
    /// Of `task.toml`.
    Task,
    /// Of a probe of the task; left out of public reports.
    Probe,
}

impl TraitOf {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            TraitOf::Task => "task",
            TraitOf::Probe => "probe",
        }
    }
}

/// Errors under a condition, by a trait of the task or of its probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitCount {
    /// Whose it is.
    pub of: TraitOf,
    /// The trait.
    #[serde(rename = "trait")]
    pub name: String,
    /// Of the scored submissions of tasks with the trait, those with a conditional error.
    pub with: Proportion,
    /// The same of the other tasks.
    pub without: Proportion,
}

/// How far rules and people agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Failing cases that a person labelled and a rule did too.
    pub cases: u32,
    /// Those with the same label.
    pub same: u32,
    /// Cohen's kappa; none where it is not defined.
    pub kappa: Option<f64>,
}

/// All counts and rates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Resolved rates by group.
    pub rates: Vec<Rate>,
    /// Gates passed by arm.
    pub gates: Vec<GateCount>,
    /// pass@k by arm.
    pub pass_at_k: Vec<PassAtK>,
    /// Each two arms that share tasks.
    pub paired: Vec<Paired>,
    /// Errors by class: the three, each submission once.
    pub classes: Vec<ClassCount>,
    /// Errors by label.
    pub errors: Vec<ErrorCount>,
    /// How close submissions are to golden, by arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub likeness: Vec<LikenessCount>,
    /// What submissions' own tests check: all of them, then by arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_tests: Vec<OwnTestCount>,
    /// Failed resource checks by whether a resource was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_checks: Option<ResourceChecks>,
    /// How far agents tried their work, by arm and gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedCount>,
    /// Conditional errors by trait, those of tasks first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<TraitCount>,
    /// Rules against people, where people gave labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// Submissions with an error of one class, by the suite that caught it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassCount {
    /// The class.
    pub class: crate::label::ErrorClass,
    /// Of the scored submissions, those with such an error.
    pub submissions: Proportion,
    /// Of them, those where official tests alone show it.
    pub official_only: u32,
    /// Those where probes alone show it.
    pub probe_only: u32,
    /// Those where both do.
    pub both: u32,
    /// Failing cases.
    pub cases: u32,
}
