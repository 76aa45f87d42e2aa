//! What `infradev env` says of build layers.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use infradev_pyenv::{Layers, PyenvError, StoredLayer};
use serde::Serialize;

use crate::commands::env::{ago, mib, seconds};
use crate::progress::counted;
use crate::report;
use crate::tables::{Cell, Table};

/// One layer, as all documents have it. Times are seconds since 1970.
#[derive(Serialize)]
pub struct LayerEntry {
    key: String,
    folder: PathBuf,
    command: Vec<String>,
    files: usize,
    bytes: u64,
    used: u64,
    in_use: bool,
}

impl LayerEntry {
    /// Of a layer.
    pub fn of(stored: &StoredLayer) -> LayerEntry {
        LayerEntry {
            key: stored.key.to_string(),
            folder: stored.folder.clone(),
            command: stored.with.command.clone(),
            files: stored.files.len(),
            bytes: stored.bytes(),
            used: seconds(stored.used),
            in_use: stored.in_use,
        }
    }
}

fn short(stored: &StoredLayer) -> &str {
    &stored.key.as_str()[..12]
}

/// All of them as a table; nothing where there are none.
pub fn listed(all: &[StoredLayer]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["build layer", "by", "size", "last used", ""], &[2]);
    for stored in all {
        table.row(vec![
            short(stored).into(),
            stored.with.command.join(" ").into(),
            mib(stored.bytes()).into(),
            ago(stored.used).into(),
            if stored.in_use { Cell::good("in use") } else { Cell::default() },
        ]);
    }
    format!("\n{}", table.text())
}

/// What a removal of layers came to.
#[derive(Default)]
pub struct Removed {
    pub layers: Vec<StoredLayer>,
    pub in_use: Vec<StoredLayer>,
    pub kept: usize,
}

/// Removes layers unused for so long, or those asked for alone.
pub fn collect(
    layers: &Layers,
    asked: Option<Vec<StoredLayer>>,
    unused_for: Duration,
    dry_run: bool,
) -> Result<Removed, PyenvError> {
    let mut would = Vec::new();
    let gone = layers.collect(unused_for, &mut |stored| {
        if asked.as_ref().is_some_and(|asked| asked.iter().all(|asked| asked.key != stored.key)) {
            return false;
        }
        would.push(stored.clone());
        !dry_run
    })?;
    let stays = |asked: &StoredLayer| would.iter().all(|would| would.key != asked.key);
    let in_use: Vec<StoredLayer> = asked.into_iter().flatten().filter(stays).collect();
    for stored in &in_use {
        report::warn(format!("{} is in use and stays", short(stored)));
    }
    let left = layers.list()?.len();
    let (removed, kept) = if dry_run { (would.clone(), left - would.len()) } else { (gone, left) };
    Ok(Removed { layers: removed, in_use, kept })
}

impl Removed {
    /// In words; none where there is no layer.
    pub fn text(&self, verb: &str) -> String {
        let mut text = String::new();
        for stored in &self.layers {
            let _ = writeln!(text, "{verb} layer {} (last used {})", short(stored), ago(stored.used));
        }
        if !self.layers.is_empty() || self.kept > 0 {
            let _ = writeln!(
                text,
                "{verb} {}, {} kept",
                counted(self.layers.len() as u32, "build layer"),
                self.kept
            );
        }
        text
    }
}

/// What a look at the files of one layer found.
#[derive(Serialize)]
pub struct VerifiedLayer {
    key: String,
    pub whole: bool,
    wrong: Vec<(String, &'static str)>,
}

/// Reads every file of layers.
pub fn verified(layers: &Layers, of: &[StoredLayer]) -> Result<Vec<VerifiedLayer>, PyenvError> {
    let one = |stored: &StoredLayer| {
        let wrong = layers.verify(stored)?;
        Ok(VerifiedLayer { key: stored.key.to_string(), whole: wrong.is_empty(), wrong })
    };
    of.iter().map(one).collect()
}

impl VerifiedLayer {
    /// In words.
    pub fn text(&self) -> String {
        let state = if self.whole { "whole" } else { "damaged" };
        let mut text = format!("layer {}: {state}\n", &self.key[..12]);
        for (path, what) in &self.wrong {
            let _ = writeln!(text, "  {what} {path}");
        }
        text
    }
}
