//! What can go wrong.

use std::path::PathBuf;

use infradev_git::GitError;
use infradev_model::{Class, Classified};

/// A history that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CurateError {
    /// The repository or a revision.
    #[error(transparent)]
    Git(#[from] GitError),
    /// What is kept of commits.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A date that is none.
    #[error("`{given}` is no date")]
    Date {
        /// As given.
        given: String,
    },
    /// The person asked for an end.
    #[error("interrupted")]
    Interrupted,
}

impl Classified for CurateError {
    fn class(&self) -> Class {
        match self {
            CurateError::Git(error) => error.class(),
            CurateError::Io { .. } => Class::Fault,
            CurateError::Date { .. } => Class::Usage,
            CurateError::Interrupted => Class::Interrupted,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CurateError::Git(error) => error.hint(),
            CurateError::Date { .. } => Some("write it as 2026-03-01".into()),
            _ => None,
        }
    }
}
