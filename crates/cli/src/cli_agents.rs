//! What may be typed of agents and their attempts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use infradev_model::Ending;

use crate::cli::{ArmWord, Requirement};

/// Have a coding agent attempt tasks: a prompt and a clean workspace in, a patch out
///
/// The agent reaches its model's endpoint and nothing else. What it asked for besides, its tokens and how it ended are on record.
/// Exits 0 when every attempt was made, 3 when a model could not be reached: the same command makes those again.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
AGENT is one of
  claude-code | codex | mini-swe-agent | qwen-code | openhands | gemini-cli    installed once, at a pinned version
  command              what --command says: it reads the prompt on standard input and edits the folder that it runs in
  golden | nop | hollow | mutant:NAME    the task's own patches, for trying things out; no model
  mine.toml            an agent's file of your own

Examples:
  infradev attempt packs/core --agent claude-code --model claude-sonnet-4-5
  infradev attempt packs/core/tasks/expert-dispatch --agent codex --model qwen3 --base-url http://127.0.0.1:8000/v1
  infradev attempt packs/core --agent command --command 'python3 {agent}/mine.py' --folder mine -k 3
  infradev attempt packs/core --agent codex --model gpt-5 --model gpt-5-mini --skill none --skill skills/meters -k 3 --plan
  infradev grade packs/core --patches RUN/predictions.jsonl")]
pub struct AttemptArgs {
    /// A pack's folder (with pack.toml), or the folder of a task in one
    #[arg(value_name = "PACK|TASK")]
    pub path: PathBuf,
    /// Who attempts
    #[arg(long, value_name = "AGENT")]
    pub agent: String,
    #[command(flatten)]
    pub arms: ArmArgs,
    #[command(flatten)]
    pub asked: AgentArgs,
    /// Attempts a task and arm
    #[arg(long, short = 'k', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub attempts: u32,
    /// How often at most an attempt is made in this run whose model could not be reached; nothing else is made again
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub tries: u32,
    /// Seconds that each attempt may take, from the agent's start
    #[arg(long, value_name = "SECONDS", default_value_t = 9000, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Input and output tokens that each attempt may use
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub token_budget: Option<u64>,
    /// GiB that each attempt may put on the disk: in its workspace, in {out}, on its output streams
    #[arg(long, value_name = "GIB", default_value = "20", value_parser = gib)]
    pub disk: u64,
    /// Prices of models, read before those that are shipped
    #[arg(long, value_name = "FILE", env = "INFRADEV_PRICES")]
    pub prices: Option<PathBuf>,
    /// Only this task; may be given several times
    #[arg(long = "task", value_name = "ID")]
    pub tasks: Vec<String>,
    /// Say what would be run and what it may cost, and run nothing
    #[arg(long)]
    pub plan: bool,
    /// Go on with the newest run of this command, finished or not, and make attempts that ended so again; may be given several times
    #[arg(long, value_enum, value_name = "ENDING")]
    pub retry: Vec<RetryWord>,
    /// Attempts at once
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Have a coding agent attempt tasks, grade what comes of it, and say how often each arm resolved them
///
/// `infradev attempt` and then `infradev grade`, as one command that goes on where it was stopped. Exits 0 whatever the verdicts
/// are, 3 when a model could not be reached.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  infradev eval packs/core --agent claude-code --model claude-sonnet-4-5 -k 3
  infradev eval packs/core --agent codex --model gpt-5-codex --skill none --skill skills/meters --plan
  infradev eval packs/core --agent golden --require resolved")]
pub struct EvalArgs {
    #[command(flatten)]
    pub attempt: AttemptArgs,
    /// Exit 1 unless every submission has this verdict
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub require: Option<Requirement>,
}

/// Arms: each model with each prompt and each skill.
#[derive(Debug, Clone, Args)]
pub struct ArmArgs {
    /// The model, by the name that its endpoint knows; several are arms of one run
    #[arg(long = "model", value_name = "MODEL", value_parser = model)]
    pub models: Vec<String>,
    /// What stands for the specification; several are arms of one run [default: synthesised]
    #[arg(long = "prompt", value_enum, value_name = "ARM")]
    pub prompts: Vec<ArmWord>,
    /// A skill, which the agent is given: a folder with SKILL.md, or `none`; several are arms of one run
    #[arg(long = "skill", value_name = "FOLDER|none")]
    pub skills: Vec<PathBuf>,
}

/// Endings that are made again when it is asked for. That a patch was graded as unresolved is none: trying until it passes
/// would be another measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum RetryWord {
    /// The model could not be reached within --tries; such an attempt is made again by the same command without --retry too
    Fault,
    /// Its time was over
    TimedOut,
    /// It ended with an error of its own
    AgentCrashed,
    /// Its tokens were used up
    Budget,
    /// It put more on the disk than --disk allows
    DiskBudget,
    /// The model refused
    Refused,
}

impl From<RetryWord> for Ending {
    fn from(word: RetryWord) -> Ending {
        match word {
            RetryWord::Fault => Ending::EndpointUnreachable,
            RetryWord::TimedOut => Ending::TimedOut,
            RetryWord::AgentCrashed => Ending::AgentCrashed,
            RetryWord::Budget => Ending::Budget,
            RetryWord::DiskBudget => Ending::DiskBudget,
            RetryWord::Refused => Ending::Refused,
        }
    }
}

/// GiB as they are typed, in bytes: 1 MiB and more.
fn model(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("it is a name that the endpoint knows".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn gib(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<f64>().map_or(0.0, |gib| gib * f64::from(1 << 30));
    match bytes >= f64::from(1 << 20) && bytes < 2f64.powi(63) {
        true => Ok(bytes as u64),
        false => Err("it is a number of GiB, such as 20 or 0.5, and no less than 1 MiB (0.001)".to_owned()),
    }
}

/// What an agent is started with.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// The model's endpoint [default: the agent's own]
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// What the agent `command` runs
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// A folder that the agent sees as {agent}
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// A file of an agent, or a folder of them; they win over those that are shipped
    #[arg(long, value_name = "FILE|FOLDER", env = "INFRADEV_AGENTS")]
    pub agents: Option<PathBuf>,
}
