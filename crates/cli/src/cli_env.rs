//! The command line of `infradev env`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum EnvCommand {
    Build(EnvBuildArgs),
    List(EnvListArgs),
    Show(EnvShowArgs),
    Du(EnvDuArgs),
    Gc(EnvGcArgs),
    Verify(EnvVerifyArgs),
    Export(EnvExportArgs),
    Doctor(EnvDoctorArgs),
}

/// Look at the store: is it whole, does its file system share files, what compiles here
///
/// Reads no file of an environment; `verify` does. Exits 0 where all is whole, 1 where something is damaged.
#[derive(Debug, Args)]
pub struct EnvDoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Build the environments of packs ahead of their first use
///
/// What is there is not built again. Prints one key a line, in the order given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev env build packs/core
  infradev env build requirements.lock --python 3.12")]
pub struct EnvBuildArgs {
    /// Packs, or locks (requirements with hashes)
    #[arg(value_name = "PACK|LOCK", required = true)]
    pub of: Vec<PathBuf>,
    /// The interpreter's version, for locks: 3.12 or 3.12.1
    #[arg(long, value_name = "VERSION")]
    pub python: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// List environments and build layers, the one last used first
#[derive(Debug, Args)]
pub struct EnvListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Show an environment: where it lies, its interpreter, its packages
#[derive(Debug, Args)]
pub struct EnvShowArgs {
    /// Its key, or the beginning of it that no other has
    #[arg(value_name = "KEY")]
    pub key: String,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Count the bytes of environments, each and all together, and of build layers
#[derive(Debug, Args)]
pub struct EnvDuArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Remove environments and build layers that were not used for some time; never one in use
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  infradev env gc --unused-for 30d --dry-run
  infradev env gc --unused-for 12h
  infradev env gc 3f2a")]
pub struct EnvGcArgs {
    /// These alone, whenever they were last used: keys, or their beginnings
    #[arg(value_name = "KEY", conflicts_with = "unused_for")]
    pub keys: Vec<String>,
    /// How long nobody asked for one that goes: 30d, 12h, 0d
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = time)]
    pub unused_for: Duration,
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Read every file of environments and build layers, and compare it with its digest
///
/// Exits 0 where all is as it was installed, 1 where something is not.
#[derive(Debug, Args)]
pub struct EnvVerifyArgs {
    /// Keys, or their beginnings; without one, all
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Write an environment and its interpreter as one tar, for a machine without a network
///
/// `tar -xf FILE -C /` on that machine puts both where they are here.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  infradev env export 3f2a --to core.tar")]
pub struct EnvExportArgs {
    /// Its key, or the beginning of it that no other has
    #[arg(value_name = "KEY")]
    pub key: String,
    /// The file
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `30d` or `12h`.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "it is a number of days or hours, such as 30d or 12h".to_owned();
    let hours = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => days.parse::<u32>().ok().and_then(|days| days.checked_mul(24)),
        (_, Some(hours)) => hours.parse().ok(),
        _ => None,
    };
    hours.map(|hours| Duration::from_secs(u64::from(hours) * 3600)).ok_or_else(wrong)
}
