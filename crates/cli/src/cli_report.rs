//! What may be typed of reports.

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
  infradev report last --labels labels.toml --sealed")]
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
    /// Print Markdown instead of tables
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}
