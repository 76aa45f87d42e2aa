//! What can go wrong between a definition and a usable environment.

use std::path::{Path, PathBuf};

use infradev_model::{Class, Classified};
use infradev_supervise::SuperviseError;

/// An environment could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PyenvError {
    /// A line of the lock is not something that fixes content.
    #[error("{}:{line}: {reason}", path.display())]
    Lock {
        /// The lock, as the caller named it.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
    /// uv is not installed.
    #[error("uv was not found on PATH")]
    NoUv,
    /// No interpreter of the version that the definition names.
    #[error("no Python {wanted} interpreter was found{}", list_found(found))]
    NoInterpreter {
        /// For example `3.11`.
        wanted: String,
        /// Each interpreter that was found: version and path.
        found: Vec<String>,
    },
    /// The definition's `python` is no version.
    #[error("`{given}` is no Python version")]
    NoVersion {
        /// As given.
        given: String,
    },
    /// An interpreter that does not run or does not answer.
    #[error("{} does not work as a Python interpreter: {reason}", path.display())]
    BadInterpreter {
        /// The executable.
        path: PathBuf,
        /// Its own words, or why it could not be started.
        reason: String,
    },
    /// uv could not install the lock: it does not resolve, a hash differs, a package is missing.
    #[error("{}: uv cannot install this lock:\n{words}", path.display())]
    Install {
        /// The lock, as the caller named it.
        path: PathBuf,
        /// uv's own words, trimmed.
        words: String,
    },
    /// uv failed at something else than the lock's content.
    #[error("uv {verb} failed: {words}")]
    Uv {
        /// The subcommand.
        verb: &'static str,
        /// uv's own words, trimmed.
        words: String,
    },
    /// The file system of the environment store is full.
    #[error("no space left on the disk that holds {}", path.display())]
    DiskFull {
        /// The file or folder being written.
        path: PathBuf,
    },
    /// Any other failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// A verb phrase: `write`, `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// No environment of the store has such a key.
    #[error("no environment has a key that begins with `{beginning}`{}", list_known(known))]
    Unknown {
        /// As given.
        beginning: String,
        /// Beginnings of the keys that are there.
        known: Vec<String>,
    },
    /// Several have.
    #[error("several environments have a key that begins with `{beginning}`")]
    Ambiguous {
        /// As given.
        beginning: String,
    },
    /// An environment could not be written into one file.
    #[error("cannot write {}: {words}", path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// What tar says.
        words: String,
    },
    /// The person asked for an end.
    #[error("interrupted")]
    Interrupted,
    /// A process could not be started or watched.
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
}

fn list_found(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!("; found: {}", found.join(", ")) }
}

fn list_known(known: &[String]) -> String {
    if known.is_empty() {
        "; the store has none".to_owned()
    } else {
        format!("; there are {}", known.join(", "))
    }
}

impl PyenvError {
    /// Wraps a failure of the file system, telling a full disk from the rest.
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> PyenvError {
        let full =
            matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        if full {
            PyenvError::DiskFull { path: path.to_owned() }
        } else {
            PyenvError::Io { action, path: path.to_owned(), source }
        }
    }
}

impl Classified for PyenvError {
    fn class(&self) -> Class {
        match self {
            PyenvError::Lock { .. }
            | PyenvError::Install { .. }
            | PyenvError::NoVersion { .. }
            | PyenvError::Unknown { .. }
            | PyenvError::Ambiguous { .. }
            | PyenvError::BadInterpreter { .. } => Class::BadInput,
            PyenvError::Interrupted => Class::Interrupted,
            PyenvError::Supervise(inner) => inner.class(),
            _ => Class::Fault,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            PyenvError::Lock { .. } => Some(
                "write the lock with `uv pip compile --generate-hashes requirements.in -o NAME.lock`"
                    .to_owned(),
            ),
            PyenvError::NoVersion { .. } => Some("write it as \"3.11\" or \"3.11.7\"".to_owned()),
            PyenvError::Ambiguous { .. } => {
                Some("give more of it; `infradev env list` shows them".to_owned())
            }
            PyenvError::Supervise(inner) => inner.hint(),
            PyenvError::Uv { verb: "pip sync", .. } => Some(
                "see that the package index can be reached; what was downloaded so far is kept".to_owned(),
            ),
            PyenvError::NoUv => Some("pip install uv".to_owned()),
            PyenvError::NoInterpreter { wanted, .. } => {
                Some(format!("`uv python install {wanted}`, or name another version in pack.toml"))
            }
            PyenvError::DiskFull { .. } => Some(
                "free some space, or move the store with INFRADEV_HOME; what was built so far is kept"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
