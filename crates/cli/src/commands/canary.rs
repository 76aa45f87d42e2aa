//! `infradev canary`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use infradev_model::{Canary, Pack};
use infradev_store::{PackFiles, put_canary};
use serde::Serialize;

use crate::cli::CanaryArgs;
use crate::files::write_whole;
use crate::progress::counted;
use crate::report::{self, Failure};

#[derive(Serialize)]
struct Document {
    schema: u32,
    pack: String,
    canary: String,
    /// Files into which it was put.
    put: Vec<String>,
    breaches: Vec<Breach>,
}

#[derive(Serialize)]
struct Breach {
    file: String,
    sealed: bool,
}

/// Looks for the canary, and puts it where it belongs.
pub fn run(args: CanaryArgs) -> Result<ExitCode, Failure> {
    let files = PackFiles::open(&args.path)?;
    let pack_toml = files.root.join("pack.toml");
    let canary = match (files.pack.canary(), args.write) {
        (Some(canary), _) => canary,
        (None, true) => {
            let canary = Canary::of_bits(rand::random());
            let bytes = fs::read(&pack_toml)
                .map_err(|error| Failure::fault(format!("{}: {error}", pack_toml.display())))?;
            let text = with_key(&String::from_utf8_lossy(&bytes), &canary);
            Pack::parse("pack.toml", text.as_bytes())?;
            write_whole(&pack_toml, text.as_bytes())?;
            canary
        }
        (None, false) => {
            let message = format!("{}: the pack has no canary", shown(&args.path));
            return Err(
                Failure::bad_input(message).hint("make one and put it into the sealed files with --write")
            );
        }
    };
    let mut put = Vec::new();
    if args.write {
        for folder in &files.tasks {
            put.extend(put_canary(&canary, folder)?);
        }
    }
    let breaches = files.canary_breaches(&canary)?;
    let code = if breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    let relative = |path: &Path| path.strip_prefix(&files.root).unwrap_or(path).display().to_string();
    if args.json {
        report::print_json(&Document {
            schema: 1,
            pack: files.pack.name.clone(),
            canary: canary.guid().to_owned(),
            put: put.iter().map(|path| relative(path)).collect(),
            breaches: breaches
                .iter()
                .map(|breach| Breach { file: breach.path.display().to_string(), sealed: breach.sealed })
                .collect(),
        })?;
        return Ok(code);
    }
    let mut text: String = put.iter().map(|path| format!("{}: put\n", relative(path))).collect();
    text.extend(breaches.iter().map(|breach| format!("{breach}\n")));
    let found = counted(breaches.len() as u32, "file");
    text += &format!("{}: canary {}, {found} out of order\n", files.pack.name, canary.guid());
    report::print(text)?;
    Ok(code)
}

fn shown(path: &Path) -> String {
    if path.join("pack.toml").is_file() {
        path.join("pack.toml").display().to_string()
    } else {
        path.display().to_string()
    }
}

/// `pack.toml` with the canary before its first table.
fn with_key(text: &str, canary: &Canary) -> String {
    let line = format!("canary = \"{}\"\n", canary.guid());
    let table = text.lines().position(|line| line.trim_start().starts_with('[')).unwrap_or(usize::MAX);
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut at = table.min(lines.len());
    // Comments and blank lines right above the table are the table's.
    while at > 0 && (lines[at - 1].trim().is_empty() || lines[at - 1].trim_start().starts_with('#')) {
        at -= 1;
    }
    lines.insert(at, &line);
    lines.concat()
}
