//! What may be typed of reports and of serving them.

use std::path::PathBuf;

use clap::Args;

use crate::cli_agents::AgentArgs;

/// Say what runs show: rates with their intervals, failing cases by signature and label
///
/// Several runs are analysed together: attempts find their grades by task and name. Nothing is run. Names and messages of
/// probes are left out unless --sealed is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev report last
  infradev report eval-20261129-234852-fb26 --markdown > report.md
  infradev report attempt-20261129 grade-20261130 --csv tables --json > report.json
  infradev report last --labels labels.toml --sealed
  infradev report last --site report --pack packs/core")]
pub struct ReportArgs {
    /// A run of grade, attempt or eval: its id, the beginning of it that no other run has, `last`, or its folder
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Labels: people's, which win over rules, and agents' (`infradev label`), where rules left a case open
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Show names, messages and traits of probes: for those who may see them
    #[arg(long)]
    pub sealed: bool,
    /// Write each table as CSV into this folder
    #[arg(long, value_name = "FOLDER")]
    pub csv: Option<PathBuf>,
    /// Write a static site into this folder, which is not there, is empty, or holds an older site
    #[arg(long, value_name = "FOLDER")]
    pub site: Option<PathBuf>,
    /// The pack of these tasks: a site then has their specification and contract, with --sealed also the last acceptance and golden. Of
    /// runs that keep no official tests and no golden, being of an older infradev, those of the pack are read
    #[arg(long, value_name = "PACK")]
    pub pack: Option<PathBuf>,
    /// Print Markdown instead of tables
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Show the pages of a report in a browser on this machine, a running run's progress among them
///
/// Binds to 127.0.0.1 alone. Pages are drawn anew where a run has gone on. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev serve last
  infradev serve grade-20261129 --pack packs/core --port 8080")]
pub struct ServeArgs {
    /// A run of grade, attempt or eval: its id, the beginning of it that no other run has, `last`, or its folder
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// The port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Labels: people's, which win over rules, and agents' (`infradev label`), where rules left a case open
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// The pack of these tasks, for their specification and contract; with --sealed also the last acceptance and golden
    #[arg(long, value_name = "PACK")]
    pub pack: Option<PathBuf>,
    /// Show probes and golden: for those who may see them
    #[arg(long)]
    pub sealed: bool,
}

/// Have an agent label the failing cases that rules left open, and keep its answers in a file of labels
///
/// Each submission's cases go to the agent in a folder of their own, one file a case, with the submission's patch. What it answers is
/// appended to FILE as said by it: below each person's label and each rule that is sure. Reports take the file with --labels. Exits 0
/// whatever it answered, 3 when its model could not be reached: the same command goes on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev label last --labels labels.toml --agent claude-code --model claude-sonnet-4-5 --token-budget 500000
  infradev label grade-20261129 --labels labels.toml --agent command --command 'python3 {agent}/mine.py' --folder mine
  infradev report last --labels labels.toml")]
pub struct LabelArgs {
    /// A run of grade, attempt or eval: its id, the beginning of it that no other run has, `last`, or its folder
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// The file of labels: what stands in it stays, answers are appended; it is made where it is not there
    #[arg(long, value_name = "FILE")]
    pub labels: PathBuf,
    /// Who labels; see `infradev attempt --help` for agents
    #[arg(long, value_name = "AGENT")]
    pub agent: String,
    /// Its model, by the name that its endpoint knows
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    #[command(flatten)]
    pub asked: AgentArgs,
    /// Seconds that the cases of one submission may take
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    pub step_timeout: u64,
    /// Minutes that the agent may work in all
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub minutes: u64,
    /// Input and output tokens that it may use in all
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub token_budget: Option<u64>,
    /// Ask of probes too: their names and messages, and patches of the pack's own, then go to the agent's model
    #[arg(long)]
    pub sealed: bool,
    /// The pack of these tasks, for runs of an older infradev that keep no official tests
    #[arg(long, value_name = "PACK")]
    pub pack: Option<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}
