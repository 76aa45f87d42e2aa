//! What may be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use infradev_model::Arm;
use infradev_sandbox::Kind;

pub use crate::cli_agents::{AgentArgs, ArmArgs, AttemptArgs, EvalArgs};
pub use crate::cli_curate::{CurateArgs, NewArgs};
pub use crate::cli_env::EnvCommand;
pub use crate::cli_gaps::ProbeGapsArgs;
pub use crate::cli_report::{LabelArgs, ReportArgs, ServeArgs};

/// Grades changes to AI infrastructure with evidence: official tests, and hidden probes observed inside and judged outside.
#[derive(Debug, Parser)]
#[command(name = "infradev", version, max_term_width = 100, propagate_version = false)]
#[command(after_help = "\
Exit codes:
  0 done     1 a check that was asked for failed      2 wrong usage
  3 a fault of harness or machine      4 bad input      130 interrupted: the same command resumes")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Where environments, base trees, calibrations and runs are kept [default: $INFRADEV_HOME, else the XDG data folder]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub home: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// An interpreter for the judge in place of its locked environment
    #[arg(long, global = true, value_name = "PATH", hide = true)]
    pub judge_python: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Accept(AcceptArgs),
    Grade(GradeArgs),
    Synthesize(SynthesizeArgs),
    ProbeGaps(ProbeGapsArgs),
    Attempt(AttemptArgs),
    Eval(EvalArgs),
    Report(ReportArgs),
    Serve(ServeArgs),
    Label(LabelArgs),
    /// Try one probe, or list a task's probes
    #[command(subcommand)]
    Probe(ProbeCommand),
    Curate(CurateArgs),
    New(NewArgs),
    /// Draft a task's contract, or see whether it states what tests touch and gives nothing away
    #[command(subcommand)]
    Contract(ContractCommand),
    Prompt(PromptArgs),
    Canary(CanaryArgs),
    /// Look at runs
    #[command(subcommand)]
    Run(RunCommand),
    /// Build, list, measure, verify, export and remove Python environments
    #[command(subcommand)]
    Env(EnvCommand),
    Doctor(DoctorArgs),
    Schema(SchemaArgs),
}

/// How trials are run.
#[derive(Debug, Clone, Args)]
pub struct Running {
    /// How the code under test is held apart; `none` only for machines that grant no namespaces
    #[arg(long, value_enum, default_value_t = SandboxWord::Namespaces, value_name = "KIND")]
    pub sandbox: SandboxWord,
    /// Trials at once
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxWord {
    /// Bubblewrap: PID, network, mount, IPC and UTS namespaces
    Namespaces,
    /// Nothing but a session of its own; every result says so
    None,
}

impl From<SandboxWord> for Kind {
    fn from(word: SandboxWord) -> Kind {
        match word {
            SandboxWord::Namespaces => Kind::Namespaces,
            SandboxWord::None => Kind::None,
        }
    }
}

/// Accept tasks: golden passes every probe N times; base, hollow and each adversarial patch are rejected
///
/// Exits 0 when every task is accepted, 1 when one is not. The record is written to each task's acceptance.json.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev accept packs/core
  infradev accept packs/core/tasks/expert-dispatch --runs 29 --shuffle")]
pub struct AcceptArgs {
    /// A pack's folder (with pack.toml), or the folder of a task in one
    #[arg(value_name = "PACK|TASK")]
    pub path: PathBuf,
    /// Consecutive golden runs, in place of the task's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Run cases in shuffled order
    #[arg(long)]
    pub shuffle: bool,
    /// Draw the inputs of probes, the forms of twins and the order of cases from this number: the same trials again
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Behaviour-preserving rewrites of golden that are tried at most, a task: all, a number, 0 for none
    #[arg(long, value_name = "all|N", default_value = "8", value_parser = rewrites)]
    pub rewrites: usize,
    /// Leave acceptance.json as it is
    #[arg(long)]
    pub no_write: bool,
    #[command(flatten)]
    pub running: Running,
}

/// Grade patches: official tests and probes, against golden's calibration
///
/// Exits 0 whenever it graded, whatever the verdicts are.
#[derive(Debug, Args)]
#[command(after_help = "\
PATCHES is one of
  golden | base | hollow | adversarial    patches of the task's own
  predictions.jsonl    lines of instance_id, model_name_or_path, model_patch, as for SWE-bench
  FOLDER               holds TASK.patch, or NAME/TASK.patch
  x.patch              one patch, for one task

Examples:
  infradev grade packs/core --patches golden
  infradev grade packs/core --task expert-dispatch --patches mine.patch --require resolved
  infradev grade packs/core --patches predictions.jsonl --json > grades.json")]
pub struct GradeArgs {
    /// A pack's folder (with pack.toml), or the folder of a task in one
    #[arg(value_name = "PACK|TASK")]
    pub path: PathBuf,
    /// What is graded
    #[arg(long, value_name = "PATCHES")]
    pub patches: String,
    /// Only this task; may be given several times
    #[arg(long = "task", value_name = "ID")]
    pub tasks: Vec<String>,
    /// Exit 1 unless every submission has this verdict
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub require: Option<Requirement>,
    #[command(flatten)]
    pub running: Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Requirement {
    /// Passes every case that golden passes
    Resolved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MutantRequirement {
    /// Rejected, or listed as equivalent to golden
    Rejected,
}

/// Bounds of the rounds.
#[derive(Debug, Args)]
pub struct RoundsLimits {
    /// With --agent: rounds at most
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// With --agent: seconds that one step may take
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..))]
    pub step_timeout: u64,
    /// With --agent: minutes that the agent may work in all
    #[arg(long, value_name = "N", default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub minutes: u64,
    /// With --agent: input and output tokens that it may use in all
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub token_budget: Option<u64>,
}

/// Find the mistakes in golden that official tests, or probes, do not notice
///
/// Each line that golden adds is broken in small ways (mutants); each mutant runs the official tests that reach it and, where
/// they pass, the probes. Killed, the same command goes on and repeats no finished mutant.
///
/// With --agent a coding agent writes adversarial patches, probes, spec and contract instead, in rounds that an acceptance ends; the
/// report on a round is what the next one begins with. Exits 1 where the last round is not accepted: the task stays as it was.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  infradev synthesize packs/core/tasks/prefix-cache
  infradev synthesize packs/core --shard 1/4 --json > shard-1.json
  infradev synthesize merge shard-1.json shard-2.json shard-3.json shard-4.json
  infradev synthesize packs/mine/tasks/offload --agent claude-code --model claude-sonnet-4-5 --rounds 4")]
pub struct SynthesizeArgs {
    #[command(subcommand)]
    pub command: Option<SynthesizeCommand>,
    /// A pack's folder (with pack.toml), or the folder of a task in one
    #[arg(value_name = "PACK|TASK", required = true)]
    pub path: Option<PathBuf>,
    /// Who writes what the task needs; see `infradev attempt --help` for agents
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["shard", "skip_failing", "require"])]
    pub agent: Option<String>,
    /// With --agent: the model, by the name that its endpoint knows
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    #[command(flatten)]
    pub asked: AgentArgs,
    #[command(flatten)]
    pub limits: RoundsLimits,
    /// Only the k-th of n parts of the mutants
    #[arg(long, value_name = "K/N", value_parser = shard)]
    pub shard: Option<(u32, u32)>,
    /// Leave out cases that golden itself fails, instead of stopping there
    #[arg(long)]
    pub skip_failing: bool,
    /// Behaviour-preserving rewrites of golden that are tried at most, a task: all, a number, 0 for none
    #[arg(long, value_name = "all|N", default_value = "8", value_parser = rewrites)]
    pub rewrites: usize,
    /// Write mutants that probes alone reject into each task's adversarial/, one a kind and function
    #[arg(long, conflicts_with = "shard")]
    pub write: bool,
    /// Exit 1 unless every mutant is rejected by a test or listed as equivalent in equivalent.toml, and every listing holds
    #[arg(long, value_enum, value_name = "WHAT")]
    pub require: Option<MutantRequirement>,
    /// How the code under test is held apart; `none` only for machines that grant no namespaces
    #[arg(long, value_enum, default_value_t = SandboxWord::Namespaces, value_name = "KIND")]
    pub sandbox: SandboxWord,
    /// Mutants at once [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum SynthesizeCommand {
    Merge(MergeArgs),
}

/// Put the documents of all shards of one synthesis together, and count its strength anew
///
/// Reads what `infradev synthesize --shard K/N --json` printed. Nothing is run. Exits 4 where shards overlap, one is missing, or
/// they are of different tasks, mutants or conditions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev synthesize merge shard-1.json shard-2.json
  infradev synthesize merge shard-*.json --json > synthesis.json")]
pub struct MergeArgs {
    /// The documents of all shards, in any order
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

fn rewrites(text: &str) -> Result<usize, String> {
    if text == "all" {
        return Ok(usize::MAX);
    }
    text.parse().map_err(|_| "a number of rewrites, or all".to_string())
}

pub(crate) fn shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((k, n)) if 1 <= k && k <= n => Ok((k, n)),
        _ => Err("a shard is K/N with K from 1 to N, such as 2/4".to_string()),
    }
}

#[derive(Debug, Subcommand)]
pub enum ProbeCommand {
    Try(TryArgs),
    List(ListProbesArgs),
}

/// Run one probe against one patch: expected beside got, rank by rank
///
/// Nothing is calibrated and nothing is kept: the loop in which a probe is written. Exits 0 when the probe passes, 1 when it
/// rejects the patch.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev probe try packs/core/tasks/expert-dispatch own_tokens --patch golden
  infradev probe try packs/core/tasks/expert-dispatch own_tokens --patch pad-to-longest --seed 7
  infradev probe try packs/core/tasks/expert-dispatch own_tokens --patch mine.patch --shell")]
pub struct TryArgs {
    /// The task's folder
    #[arg(value_name = "TASK")]
    pub task: PathBuf,
    /// A case's id, or a part of it that no other case has
    #[arg(value_name = "CASE")]
    pub case: String,
    /// golden, base, hollow, the name of an adversarial patch, or a file
    #[arg(long, value_name = "PATCH", default_value = "golden")]
    pub patch: String,
    /// Seed of the inputs, to replay a failure
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// World size [default: the first of the task's at which the case runs]
    #[arg(long, value_name = "W")]
    pub world: Option<u32>,
    /// Open a shell in the same sandbox instead, with the patched tree
    #[arg(long)]
    pub shell: bool,
    /// How the code under test is held apart
    #[arg(long, value_enum, default_value_t = SandboxWord::Namespaces, value_name = "KIND")]
    pub sandbox: SandboxWord,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// List a task's probe cases by world size
#[derive(Debug, Args)]
pub struct ListProbesArgs {
    /// The task's folder
    #[arg(value_name = "TASK")]
    pub task: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ContractCommand {
    Draft(DraftContractArgs),
    Lint(LintContractArgs),
}

/// Draft contract.toml from golden's signatures, for the names that official tests and observers touch
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev contract draft packs/core/tasks/expert-dispatch
  infradev contract draft mine/tasks/a-change --write")]
pub struct DraftContractArgs {
    /// The task's folder
    #[arg(value_name = "TASK")]
    pub task: PathBuf,
    /// Write the task's contract.toml instead of printing; one that lists names is left as it is
    #[arg(long)]
    pub write: bool,
}

/// See whether the contract states what tests touch, and whether it or spec.md gives golden away
///
/// Both trees, the official tests and the probes are read; nothing is run. Exits 1 where there is a finding.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev contract lint packs/core/tasks/expert-dispatch
  infradev contract lint packs/core/tasks/expert-dispatch --json")]
pub struct LintContractArgs {
    /// The task's folder
    #[arg(value_name = "TASK")]
    pub task: PathBuf,
    /// Print one JSON document, with all names that are touched
    #[arg(long)]
    pub json: bool,
}

/// Print the text that an agent is given for a task
///
/// Rendered from spec.md, contract.toml and task.toml; no sealed file is read for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev prompt packs/core/tasks/expert-dispatch
  infradev prompt packs/core/tasks/expert-dispatch --minutes 150 --json
  infradev prompt mine/tasks/a-change --arm pr-description")]
pub struct PromptArgs {
    /// The task's folder
    #[arg(value_name = "TASK")]
    pub task: PathBuf,
    /// What stands for the specification
    #[arg(long, value_enum, default_value_t = ArmWord::Synthesised, value_name = "ARM")]
    pub arm: ArmWord,
    /// Minutes that the agent has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: Option<u32>,
    /// Print one JSON document, with the parts apart
    #[arg(long)]
    pub json: bool,
}

/// See whether every sealed file of a pack has its contamination canary, and no public one
///
/// Exits 1 where a file lacks it or should not have it. What trials are keyed by knows nothing of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev canary packs/core
  infradev canary mine --write")]
pub struct CanaryArgs {
    /// A pack's folder (with pack.toml), or the folder of a task in one
    #[arg(value_name = "PACK|TASK")]
    pub path: PathBuf,
    /// Put it into the sealed files that lack it; a pack without one gets a new one
    #[arg(long)]
    pub write: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArmWord {
    /// spec.md and contract.toml
    Synthesised,
    /// The pull request's own description: description.md, or the commit's message
    PrDescription,
}

impl From<ArmWord> for Arm {
    fn from(word: ArmWord) -> Arm {
        match word {
            ArmWord::Synthesised => Arm::Synthesised,
            ArmWord::PrDescription => Arm::PrDescription,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// List runs, oldest first
    List(RunListArgs),
    Show(RunShowArgs),
}

#[derive(Debug, Args)]
pub struct RunListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Show what a run was asked, which trials are finished, and its verdicts
#[derive(Debug, Args)]
pub struct RunShowArgs {
    /// The run's id, or the beginning of it that no other run has
    #[arg(value_name = "ID")]
    pub id: String,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Look at what this machine grants, and say what to do about what is missing
///
/// Exits 0 when tasks can be run here, 3 when something needed is missing.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Print the JSON schema of a file or document; without a name, list them
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// pack, task, grade, …
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}
