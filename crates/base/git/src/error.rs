//! What can go wrong with a repository.

use std::io::ErrorKind;
use std::path::PathBuf;

use infradev_model::{Class, Classified};
use infradev_supervise::SuperviseError;

/// A repository, revision or git command that did not do.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git could not be run.
    #[error(transparent)]
    Run(#[from] SuperviseError),
    /// git ended badly where nothing we were given explains it.
    #[error("git {command}: {status}: {stderr}")]
    Failed {
        /// The git command and its first words.
        command: String,
        /// How it ended.
        status: String,
        /// What it said.
        stderr: String,
    },
    /// git said something that we can't read.
    #[error("git {command} answered in an unknown form: {answer}")]
    Unreadable {
        /// The git command.
        command: &'static str,
        /// Its answer, shortened.
        answer: String,
    },
    /// The answer is larger than we keep.
    #[error("git {command} answered with more than {limit} bytes")]
    TooLarge {
        /// The git command.
        command: String,
        /// The limit.
        limit: usize,
    },
    /// No repository there.
    #[error("{path} is not a git repository")]
    NotARepository {
        /// The path, as given.
        path: String,
    },
    /// A repository with another hash than SHA-1.
    #[error("{} uses {format} object ids; only sha1 is supported", path.display())]
    ObjectFormat {
        /// The repository.
        path: PathBuf,
        /// Its format.
        format: String,
    },
    /// A clone or fetch failed.
    #[error("can't fetch from {origin}: {stderr}")]
    Fetch {
        /// Url or path.
        origin: String,
        /// What git said.
        stderr: String,
    },
    /// A revision that names no commit.
    #[error("{} has no commit {revision}{}", repo.display(), if *.shallow { " (it is a shallow clone)" } else { "" })]
    NoSuchCommit {
        /// As asked for.
        revision: String,
        /// The repository.
        repo: PathBuf,
        /// Its history is cut off.
        shallow: bool,
    },
    /// A short id that several objects share.
    #[error("{revision} is ambiguous in {}", repo.display())]
    AmbiguousRevision {
        /// As asked for.
        revision: String,
        /// The repository.
        repo: PathBuf,
    },
    /// The first commit of a history, or of what a shallow clone has of it.
    #[error("commit {commit} has no parent{}", if *.shallow { " here: the clone is shallow" } else { "" })]
    NoParent {
        /// The commit.
        commit: String,
        /// The history is cut off there.
        shallow: bool,
    },
    /// A history that is cut off can't be read to its end.
    #[error("{} is a shallow clone: its history is cut off", repo.display())]
    ShallowHistory {
        /// The repository.
        repo: PathBuf,
    },
    /// A blob that the repository does not have.
    #[error("{} has no blob {id}", repo.display())]
    MissingObject {
        /// Its id.
        id: String,
        /// The repository.
        repo: PathBuf,
    },
    /// Two commits without a common ancestor.
    #[error("commits {one} and {other} have no common ancestor")]
    NoMergeBase {
        /// One.
        one: String,
        /// The other.
        other: String,
    },
    /// No commit carries the number.
    #[error("no commit on {branch} is pull request #{number}")]
    NoSuchPullRequest {
        /// The number.
        number: u64,
        /// The branch that was searched.
        branch: String,
    },
    /// Several commits off the main line carry the number.
    #[error("pull request #{number} could be any of {}", candidates.join(", "))]
    AmbiguousPullRequest {
        /// The number.
        number: u64,
        /// Commit ids.
        candidates: Vec<String>,
    },
    /// A commit without that file.
    #[error("commit {commit} has no file {path}")]
    NoSuchFile {
        /// The commit.
        commit: String,
        /// The path.
        path: String,
    },
    /// A folder to fill that is not empty.
    #[error("{} exists and is not an empty folder", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// A disk is full.
    #[error("no space left on the disk: {what}")]
    DiskFull {
        /// The file or folder, or git's own words.
        what: String,
    },
    /// The person asked for an end while files were read.
    #[error("the capture was interrupted")]
    Interrupted,
    /// The file system failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Classified for GitError {
    fn class(&self) -> Class {
        match self {
            GitError::Run(error) => error.class(),
            GitError::Interrupted => Class::Interrupted,
            GitError::Failed { .. }
            | GitError::Unreadable { .. }
            | GitError::Fetch { .. }
            | GitError::DiskFull { .. }
            | GitError::Io { .. } => Class::Fault,
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            GitError::Run(error) => return error.hint(),
            GitError::NoSuchCommit { shallow: true, .. }
            | GitError::NoParent { shallow: true, .. }
            | GitError::ShallowHistory { .. } => "fetch the whole history: git fetch --unshallow",
            GitError::MissingObject { .. } => "a partial clone (--filter) must be cloned whole",
            GitError::NoSuchCommit { .. } => "fetch the repository, or check the id",
            GitError::AmbiguousRevision { .. } => "give the full commit id",
            GitError::DiskFull { .. } => "free some space and run the same command again",
            GitError::TooLarge { .. } => "large files were added to the tree; remove them",
            GitError::NoSuchPullRequest { .. } | GitError::AmbiguousPullRequest { .. } => {
                "name the commit itself with --commit"
            }
            GitError::Failed { stderr, .. } if stderr.contains("unable to read") => {
                "objects are missing; a partial clone (--filter) must be cloned whole"
            }
            _ => return None,
        };
        Some(text.into())
    }
}

pub(crate) fn io_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> GitError {
    let path = path.into();
    move |source| match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            GitError::DiskFull { what: path.display().to_string() }
        }
        _ => GitError::Io { path, source },
    }
}
