//! What may be typed of reports and of serving them.

use std::path::PathBuf;

use clap::Args;

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
    /// People's labels, which win over rules
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
    /// People's labels, which win over rules
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// The pack of these tasks, for their specification and contract; with --sealed also the last acceptance and golden
    #[arg(long, value_name = "PACK")]
    pub pack: Option<PathBuf>,
    /// Show probes and golden: for those who may see them
    #[arg(long)]
    pub sealed: bool,
}
