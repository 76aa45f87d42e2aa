//! What can go wrong between the disk and the model's types.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use infradev_model::{Class, Classified, FormatError};

/// Why something could not be read from, or kept in, the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file of a pack or of the store that is not as it should be: names file, line and key.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A folder or file that a pack must have is not there, or is of the wrong kind.
    #[error("{}: {what}", path.display())]
    Pack {
        /// The file or folder, as the person named it.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Neither $INFRADEV_HOME, $XDG_DATA_HOME nor $HOME says where the store is.
    #[error("no folder for the store: INFRADEV_HOME, XDG_DATA_HOME and HOME are unset")]
    NoHome,
    /// The disk of the store is full. What was being written is gone; what was there before is whole.
    #[error("no space left on the disk that holds {}", path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The person asked for an end while another process's lock was waited for.
    #[error("interrupted while waiting for {}", path.display())]
    Interrupted {
        /// The lock.
        path: PathBuf,
    },
    /// Any other failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// A verb phrase: `write`, `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// No run of that id.
    #[error("there is no run `{id}` in {}", runs.display())]
    NoRun {
        /// As given.
        id: String,
        /// The folder that was searched.
        runs: PathBuf,
    },
    /// A live process works on the run.
    #[error("the run {} is in use by another process{}", run.display(), holder.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    RunInUse {
        /// The run's folder.
        run: PathBuf,
        /// The process, where it is known.
        holder: Option<u32>,
    },
    /// A line of a journal, other than the last, is damaged.
    #[error("{}:{line}: this line of the journal is damaged: {what}", path.display())]
    CorruptJournal {
        /// The journal.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
        /// Whole lines beside it.
        readable: usize,
    },
    /// What fills a base tree or splits a change failed, in its own words.
    #[error("{what}: {reason}")]
    Source {
        /// What was being made.
        what: String,
        /// The source's words.
        reason: String,
        /// The source's class.
        class: Class,
        /// The source's hint.
        hint: Option<String>,
    },
}

impl StoreError {
    /// Wraps a failure of the file system, telling a full disk from the rest.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> StoreError {
        if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            return StoreError::DiskFull { path: path.to_owned() };
        }
        StoreError::Io { action, path: path.to_owned(), source }
    }

    /// Whether the store cannot be written by this process at all.
    pub fn is_read_only(&self) -> bool {
        let refused = [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied];
        matches!(self, StoreError::Io { source, .. } if refused.contains(&source.kind()))
    }

    /// Wraps the error of a hook.
    pub fn source(what: impl Into<String>, error: &dyn Classified) -> StoreError {
        let (what, reason) = (what.into(), error.to_string());
        StoreError::Source { what, reason, class: error.class(), hint: error.hint() }
    }

    pub(crate) fn pack(path: &Path, what: impl Into<String>) -> StoreError {
        StoreError::Pack { path: path.to_owned(), what: what.into(), hint: None }
    }
}

impl Classified for StoreError {
    fn class(&self) -> Class {
        match self {
            StoreError::Format(inner) => inner.class(),
            StoreError::Pack { .. } => Class::BadInput,
            StoreError::NoRun { .. } | StoreError::RunInUse { .. } => Class::Usage,
            StoreError::Source { class, .. } => *class,
            StoreError::Interrupted { .. } => Class::Interrupted,
            _ => Class::Fault,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            StoreError::Format(inner) => inner.hint(),
            StoreError::Pack { hint, .. } | StoreError::Source { hint, .. } => hint.clone(),
            StoreError::NoHome => Some("set INFRADEV_HOME to a folder with room for environments".to_owned()),
            StoreError::DiskFull { .. } => Some(
                "free some space, or move the store with INFRADEV_HOME; then run the same command again"
                    .to_owned(),
            ),
            StoreError::RunInUse { .. } => {
                Some("wait for it, or stop it: the run resumes with the same command".to_owned())
            }
            StoreError::CorruptJournal { path, readable, .. } => {
                let run = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
                Some(format!(
                    "`infradev run show {run}` reads the {readable} lines that are whole; move the run's folder aside to \
                     start afresh"
                ))
            }
            StoreError::NoRun { .. } | StoreError::Interrupted { .. } | StoreError::Io { .. } => None,
        }
    }
}
