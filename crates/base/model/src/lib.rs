//! Every noun and file format of InfraDev. Parses and serialises; does no other I/O.

mod acceptance;
mod agent;
mod allowance;
mod analysis;
pub mod atif;
mod attempt_plan;
mod build;
mod calibration;
mod canary;
mod case;
mod curation;
mod digest;
mod equivalent;
mod error;
mod eval;
mod figures;
pub mod format;
mod inside;
mod label;
mod labelling;
mod lint;
mod mutant;
mod pack;
mod place;
mod price;
mod prompt;
mod property;
mod readings;
mod reference;
mod rounds;
mod run;
mod schemas;
mod shards;
mod shown;
mod skill;
mod submission;
mod synthesis;
mod task;
mod trial;
mod verdict;

pub use acceptance::{
    ACCEPTANCE_SCHEMA, AcceptDocument, Acceptance, AdversarialFinding, HunkAt, OfficialCount, OverFitted,
    ProbeCase, RewriteCount, Role, flake_bound,
};
pub use agent::{
    AGENT_SCHEMA, AgentInstall, AgentModel, AgentRun, AgentSkills, AgentSpec, OutputFormat, PLACEHOLDERS,
    PromptBy, Wire,
};
pub use allowance::Allowance;
pub use analysis::{
    ANALYSIS_SCHEMA, AnalysedSubmission, Analysis, CaseError, ErrorGroup, Gates, RunRead, RunState, Standing,
    TaskFacts,
};
pub use attempt_plan::{ATTEMPT_PLAN_SCHEMA, AttemptPlanDocument, Foreseen, PlannedAttempts};
pub use build::BuildSpec;
pub use calibration::{
    CALIBRATION_SCHEMA, CalibratedCase, CalibratedTwin, Calibration, CalibrationKey, Quarantined,
};
pub use canary::Canary;
pub use case::{
    CaseId, CaseResult, Detail, Expectation, Judgement, Outcome, RankOutcome, Rejection, Suite, Word,
    countable, merge,
};
pub use curation::{
    AlsoAt, CURATION_SCHEMA, Candidate, Checks, CurationDocument, Definitions, Device, Evidence, Facts,
    Guess, Hollowable, LeftOut, LeftOutBecause, Lines, Needs, PackageLock, Pull, PullsRead, Repeats,
    ScorePart,
};
pub use digest::{Digest, DigestBuilder};
pub use equivalent::{EQUIVALENT_SCHEMA, EquivalentMutant, EquivalentSpec, ShownMutant};
pub use error::{Class, Classified};
pub use eval::{EVAL_SCHEMA, EvalArm, EvalDocument};
pub use figures::{
    Agreement, ClassCount, ErrorCount, Estimate, Figures, GateCount, Grouping, Paired, PassAtK, Proportion,
    Rate, TraitCount, TraitOf,
};
pub use format::FormatError;
pub use label::{ErrorClass, GivenLabel, LABELS_SCHEMA, Label, LabelFile, Labelled, LabelledBy};
pub use labelling::{Answered, LABELLING_SCHEMA, LabellingDocument};
pub use lint::{
    AllowedPassage, CONTRACT_SCHEMA, ContractDocument, ContractFinding, ContractRule, GoldenLine, TouchedName,
};
pub use mutant::{Mutant, Operator};
pub use pack::{EnvironmentSpec, PACK_SCHEMA, Pack, Source, is_name, is_python_version};
pub use price::{Cost, PRICES_SCHEMA, Price, PriceTable, PricedBy, SHIPPED_PRICES};
pub use prompt::{Arm, PROMPT_SCHEMA, PartKind, Prompt, PromptError, PromptPart, PromptSettings};
pub use property::{NoProperty, Property};
pub use readings::{
    Likeness, LikenessCount, OwnTestCount, OwnTests, Reached, ResourceChecks, Tried, TriedCount,
};
pub use reference::{REFERENCE_SCHEMA, TaskReference};
pub use rounds::{AgentRole, Ignored, ROUNDS_SCHEMA, Repeated, Round, RoundsDocument, Step};
pub use run::{RUN_SCHEMA, Run};
pub use schemas::schemas;
pub use shards::ShardError;
pub use shown::{ShownContract, ShownValue, shown_parts};
pub use skill::{SkillBy, SkillText, SkillUsed};
pub use submission::{
    AgentUsed, AllTries, AttemptDocument, Ending, Lookup, Metered, ModelMetered, SUBMISSION_SCHEMA,
    SkippedFile, SubmissionRecord, Tokens, TokensOff, TrajectoryReport,
};
pub use synthesis::{
    Fate, Gap, GapMutant, GapsDocument, GoldenControl, MutantRecord, PassedOver, RejectedBy, RewriteRecord,
    SYNTHESIS_SCHEMA, Share, Strength, Synthesis, SynthesisDocument,
};
pub use task::{
    AcceptanceSpec, Adversarial, AdversarialSpec, Area, BaseSource, Commits, Contract, ContractName, Kind,
    Limits, NameKind, PatchedOn, PublicTask, Replacement, SealedTask, TASK_SCHEMA, TaskSpec, Tests, Timeouts,
    is_tree_path,
};
pub use trial::{
    CanaryReport, Fault, FaultKind, Overlaid, OverlayAction, SandboxReport, Selection, TRIAL_SCHEMA,
    Tampering, TamperingKind, Timing, TrialInputs, TrialResult, TwinResult,
};
pub use verdict::{
    FailingCase, GRADE_SCHEMA, Grade, GradeDocument, GradedSoFar, Score, SuiteScores, Verdict,
};
