//! What may be typed to find changes and to make tasks of them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use infradev_model::Area;

/// Find the merged changes worth a task in a repository's history, and say why
///
/// Commits are read along first parents. What is known of a commit is kept in the store, so that a second run reads new commits
/// only. Nothing of the repository's code is kept. With a token in GITHUB_TOKEN, descriptions and labels of pull requests are asked
/// of GitHub, each once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev curate ../Megatron-LM --since 2026-01-01
  infradev curate ../Megatron-LM --want 36 --areas training,inference --multi-gpu 20 --jsonl chosen.jsonl
  infradev curate ../Megatron-LM --html candidates.html --github NVIDIA/Megatron-LM
  infradev curate ../verl --rev main --rev release/v0.7.0 --kinds fix --json > candidates.json")]
pub struct CurateArgs {
    /// Path or url of a git repository
    #[arg(value_name = "REPO")]
    pub repo: String,
    /// A revision whose history is read; may be given several times, the one whose commits count for a change first
    #[arg(long = "rev", value_name = "REV", default_value = "HEAD")]
    pub revs: Vec<String>,
    /// Only changes from this day on
    #[arg(long, value_name = "2026-03-01")]
    pub since: Option<String>,
    /// Only these areas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "AREAS")]
    pub areas: Vec<AreaWord>,
    /// Only these kinds
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    pub kinds: Vec<KindWord>,
    /// The smallest score
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub min_score: Option<i32>,
    /// Test functions that a change adds or changes at least
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub min_tests: u32,
    /// Source lines, added and deleted, at most
    #[arg(long, value_name = "N")]
    pub max_lines: Option<u32>,
    /// Source files at most
    #[arg(long, value_name = "N")]
    pub max_files: Option<u32>,
    /// Only changes whose tests need no CUDA
    #[arg(long)]
    pub cpu: bool,
    /// Only changes that touch no native code
    #[arg(long)]
    pub pure: bool,
    /// Choose so many, areas and kinds taking turns
    #[arg(long, value_name = "N")]
    pub want: Option<usize>,
    /// With --want: so many of them have tests that need two ranks or more
    #[arg(long, value_name = "N", requires = "want")]
    pub multi_gpu: Option<usize>,
    /// Rows of the table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub rows: usize,
    /// Write the candidates to a file, one JSON document a line
    #[arg(long, value_name = "FILE")]
    pub jsonl: Option<PathBuf>,
    /// Write a page to browse the candidates: one file, which fetches nothing
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The repository on GitHub whose pull requests are asked for, where GITHUB_TOKEN holds a token [default: where it was
    /// cloned from]
    #[arg(long, value_name = "OWNER/NAME")]
    pub github: Option<String>,
    /// Ask GitHub for nothing
    #[arg(long, conflicts_with = "github")]
    pub no_github: bool,
    /// GitHub's GraphQL API
    #[arg(
        long,
        value_name = "URL",
        env = "GITHUB_GRAPHQL_URL",
        default_value = "https://api.github.com/graphql"
    )]
    pub github_api: String,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AreaWord {
    Training,
    Inference,
    Rl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KindWord {
    Feature,
    Performance,
    Refactor,
    Fix,
}

impl From<AreaWord> for Area {
    fn from(word: AreaWord) -> Area {
        match word {
            AreaWord::Training => Area::Training,
            AreaWord::Inference => Area::Inference,
            AreaWord::Rl => Area::Rl,
        }
    }
}

impl From<KindWord> for infradev_model::Kind {
    fn from(word: KindWord) -> infradev_model::Kind {
        match word {
            KindWord::Feature => infradev_model::Kind::Feature,
            KindWord::Performance => infradev_model::Kind::Performance,
            KindWord::Refactor => infradev_model::Kind::Refactor,
            KindWord::Fix => infradev_model::Kind::Fix,
        }
    }
}

/// Make a task of a merged change
///
/// Base is the commit's first parent; golden and the official tests are split from the commit by path and derived from it each
/// time the task is read. A draft of spec.md is written from the commit's message.
///
/// With --candidate the change, its world sizes and GPUs, area, kind and description are those of a line that `infradev curate
/// --jsonl` wrote; a new pack then gets its environment proposed from the base's own files, where none is given.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["commit", "pr", "candidate"]))]
#[command(after_help = "\
Examples:
  infradev new --repo ../Megatron-LM --pr 4705 --pack upstream --interpreter /opt/py/bin/python
  infradev new --repo https://example.org/stack.git --commit 1a2b3c4 --pack mine \\
    --lock cpu.lock --python 3.12
  infradev new --repo ../Megatron-LM --candidate chosen.jsonl --pr 4705 --pack mine --calibrate")]
pub struct NewArgs {
    /// Path or url of a git repository
    #[arg(long, value_name = "REPO")]
    pub repo: String,
    /// A file of candidates, one a line; with --commit or --pr where it has several
    #[arg(long, value_name = "FILE")]
    pub candidate: Option<PathBuf>,
    /// The merged change
    #[arg(long, value_name = "SHA", conflicts_with = "pr")]
    pub commit: Option<String>,
    /// The merged pull request of this number
    #[arg(long, value_name = "N")]
    pub pr: Option<u64>,
    /// The pack's folder; made if it holds no pack.toml yet
    #[arg(long, value_name = "PACK")]
    pub pack: PathBuf,
    /// The task's id [default: from the commit's subject]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// The environment's name [default: the pack's only one, else `cpu`]
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
    /// World sizes [default: those of the candidate, else 1]
    #[arg(long, value_name = "1,2", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub worlds: Vec<u32>,
    /// For a new pack: an interpreter whose packages are taken as they are
    #[arg(long, value_name = "PATH", conflicts_with = "lock")]
    pub interpreter: Option<PathBuf>,
    /// For a new pack: a hashed requirements file
    #[arg(long, value_name = "FILE", requires = "python")]
    pub lock: Option<PathBuf>,
    /// The lock's Python version
    #[arg(long, value_name = "3.12", requires = "lock")]
    pub python: Option<String>,
    /// Replace a task of that id
    #[arg(long)]
    pub force: bool,
    /// Grade golden once the task stands: the first calibration
    #[arg(long)]
    pub calibrate: bool,
}
