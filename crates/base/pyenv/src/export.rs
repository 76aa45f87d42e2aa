//! An environment as one file, for a machine without a network.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use infradev_supervise::Invocation;

use crate::environments::Environments;
use crate::error::PyenvError;
use crate::inventory::Stored;

impl Environments {
    /// Writes a tar of an environment and of the interpreter that it stands on, under their paths without the leading slash:
    /// `tar -xf FILE -C /` puts both where they are here. What lies in `/usr` is left out: the other machine has its own; so is
    /// what is installed for the interpreter itself, which no environment of ours sees. The file
    /// appears whole or not at all. Which folders it holds is returned.
    ///
    /// # Errors
    /// No `tar`, a full disk, an interpreter that does not run.
    pub fn export(&self, stored: &Stored, to: &Path) -> Result<Vec<PathBuf>, PyenvError> {
        let opened = self.open(stored)?;
        let folders: Vec<PathBuf> =
            opened.mounts.iter().filter(|mount| !mount.starts_with("/usr")).cloned().collect();
        let failed = |words: String| PyenvError::Export { path: to.to_owned(), words };
        let name = to.file_name().ok_or_else(|| failed("it has no name".to_owned()))?;
        let mut passing = OsString::from(".writing-");
        passing.push(name);
        let passing = to.with_file_name(passing);
        let within = |folder: &PathBuf| folder.strip_prefix("/").unwrap_or(folder).as_os_str().to_owned();
        let python: Vec<&str> = opened.python_version.split('.').take(2).collect();
        let others =
            opened.base_prefix.join("lib").join(format!("python{}", python.join("."))).join("site-packages");
        let mut exclude = OsString::from("--exclude=");
        exclude.push(within(&others));
        let made = Invocation::new("tar")
            .args(["--create", "--sort=name", "--numeric-owner", "--anchored", "--no-wildcards"])
            .arg(exclude)
            .args(["--directory=/", "--file"])
            .arg(&passing)
            .arg("--")
            .args(folders.iter().map(within))
            .inherit_env("PATH")
            .contained()
            .run();
        let written = match made {
            Ok(output) if output.status.success() => {
                std::fs::rename(&passing, to).map_err(|e| PyenvError::io("write", to, e))
            }
            Ok(output) => Err(failed(output.stderr_text())),
            Err(error) => Err(error.into()),
        };
        if written.is_err() {
            let _ = std::fs::remove_file(&passing);
        }
        written.map(|()| folders)
    }
}
