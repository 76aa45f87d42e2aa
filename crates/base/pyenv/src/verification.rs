//! Whether an environment still is what was installed: every file by the digest that its wheel's `RECORD` states.
//!
//! Source: *Recording installed projects*, Python Packaging User Guide (`RECORD`: path, `sha256=` and base64 without padding, size).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::environments::Environments;
use crate::error::PyenvError;
use crate::inventory::Stored;

/// What a look at every file of an environment found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Files whose content is what their wheel's record states.
    pub intact: usize,
    /// Files of a record that states no digest of them, bytecode for the most part.
    pub unstated: usize,
    /// Files that are not as stated.
    pub differing: Vec<PathBuf>,
    /// Files that are not there.
    pub missing: Vec<PathBuf>,
    /// Packages of the lock of which no record is there.
    pub unrecorded: Vec<String>,
}

impl Verification {
    /// Whether all is as it was installed.
    pub fn is_whole(&self) -> bool {
        self.differing.is_empty() && self.missing.is_empty() && self.unrecorded.is_empty()
    }
}

impl Environments {
    /// Reads every file of an environment. Paths are relative to its folder.
    ///
    /// # Errors
    /// The folder cannot be read, or the person asked for an end.
    pub fn verify(&self, stored: &Stored) -> Result<Verification, PyenvError> {
        let mut found = Verification::default();
        let mut recorded = BTreeSet::new();
        for site in sites(&stored.folder)? {
            let entries = fs::read_dir(&site).map_err(|e| PyenvError::io("read", &site, e))?;
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let Some(installed) = name.strip_suffix(".dist-info") else { continue };
                let record = entry.path().join("RECORD");
                let Ok(lines) =
                    csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(&record)
                else {
                    continue;
                };
                let package = installed.rsplit_once('-').map_or(installed, |(package, _)| package);
                recorded.insert(crate::interpreter::normalised(package));
                found.take(lines, &stored.folder, &site)?;
            }
        }
        found.unrecorded = stored.packages.keys().filter(|name| !recorded.contains(*name)).cloned().collect();
        Ok(found)
    }
}

impl Verification {
    fn take(&mut self, lines: csv::Reader<fs::File>, folder: &Path, site: &Path) -> Result<(), PyenvError> {
        for line in lines.into_records().flatten() {
            if infradev_supervise::cancelled() {
                return Err(PyenvError::Interrupted);
            }
            let Some(path) = line.get(0).map(|path| site.join(path)) else { continue };
            let shown = || path.strip_prefix(folder).unwrap_or(&path).to_owned();
            let stated = line.get(1).and_then(|stated| stated.strip_prefix("sha256="));
            match (stated, fs::read(&path)) {
                (Some(stated), Ok(bytes)) if URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes)) == stated => {
                    self.intact += 1;
                }
                (Some(_), Ok(_)) => self.differing.push(shown()),
                (Some(_), Err(_)) => self.missing.push(shown()),
                (None, _) => self.unstated += 1,
            }
        }
        Ok(())
    }
}

fn sites(folder: &Path) -> Result<Vec<PathBuf>, PyenvError> {
    let lib = folder.join("lib");
    let entries = fs::read_dir(&lib).map_err(|e| PyenvError::io("read", &lib, e))?;
    Ok(entries
        .flatten()
        .map(|entry| entry.path().join("site-packages"))
        .filter(|site| site.is_dir())
        .collect())
}
