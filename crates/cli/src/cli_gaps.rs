//! What may be typed for `probe-gaps`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::{SandboxWord, shard};

/// Seconds that all tests together may take.
pub const SUITE_SECONDS: f64 = 3600.0;

/// List the lines of your branch that no test notices
///
/// The lines that the branch adds are broken in small ways, and the tests that run them are run on each. Needs no task and
/// no pack, only the Python that already runs your tests. Tests are the files that the branch touches, and those named.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev probe-gaps
  infradev probe-gaps --base origin/main --sarif gaps.sarif --markdown comment.md
  infradev probe-gaps --python .venv/bin/python --world 2 -- tests/test_layers.py tests/unit")]
pub struct ProbeGapsArgs {
    /// The repository, or a folder in it: tests are named as they lie there
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// The branch that yours goes to: your change starts where the two part
    #[arg(long, value_name = "REV", default_value = "main", value_parser = NonEmptyStringValueParser::new())]
    pub base: String,
    /// A commit, in place of what lies in the work tree
    #[arg(long, value_name = "REV", value_parser = NonEmptyStringValueParser::new())]
    pub head: Option<String>,
    /// The interpreter that runs your tests [default: the active environment's]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Ranks that each test runs on; several sizes are tried in turn
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub world: Vec<u32>,
    /// A module imported once before all ranks [default: torch, where the code imports it]
    #[arg(long, value_name = "MODULE", value_parser = NonEmptyStringValueParser::new())]
    pub preload: Vec<String>,
    /// A plugin of pytest by name [default: those installed that do not spread, order or measure tests]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub plugin: Vec<String>,
    /// Seconds that a test may take at most; a mutant gets five times its test's own time, within this
    #[arg(long, value_name = "S", default_value = "60", value_parser = case_seconds)]
    pub timeout: f64,
    /// Memory of each session, MiB
    #[arg(long, value_name = "MIB", default_value_t = 8192, value_parser = clap::value_parser!(u64).range(64..))]
    pub memory: u64,
    /// Leave out tests that fail before any mutation, instead of stopping there
    #[arg(long)]
    pub skip_failing: bool,
    /// Exit 1 where a line is not noticed
    #[arg(long)]
    pub fail_on_gap: bool,
    /// Only the k-th of n parts of the mutants
    #[arg(long, value_name = "K/N", value_parser = shard)]
    pub shard: Option<(u32, u32)>,
    /// Mutants at once [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// How the code under test is held apart; `none` only for machines that grant no namespaces
    #[arg(long, value_enum, default_value_t = SandboxWord::Namespaces, value_name = "KIND")]
    pub sandbox: SandboxWord,
    /// Try these mutants in place of our own: a JSON list of file, start, end, replacement, operator
    #[arg(long, value_name = "FILE")]
    pub mutants: Option<PathBuf>,
    /// Write SARIF 2.1.0, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write Markdown, for a comment on the pull request
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Tests beside those that the branch touches: files, folders, ids
    #[arg(value_name = "TESTS", last = true)]
    pub tests: Vec<String>,
}

/// Seconds of one test: a deadline that a machine can keep, within that of all of them.
fn case_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=SUITE_SECONDS).contains(seconds));
    seconds.ok_or_else(|| format!("a number of seconds, 0.1 at least and {SUITE_SECONDS} at most"))
}
