//! The only caller of git: the git CLI with its configuration pinned, `-z` and bytes everywhere.
//!
//! Diffs, checkouts and captures run in a private git directory of this crate's own making, which borrows the objects of
//! the repository: neither its configuration and attributes nor those of an agent's work tree can change the result.

mod capture;
mod command;
mod commits;
mod error;
mod history;
mod private;
mod pull_request;
mod repo;
mod shortened;
mod submodules;
mod workspace;

pub use capture::{Base, Captured, SkipReason, Skipped, capture, longest_path};
pub use commits::{CommitInfo, TreeEntry};
pub use error::GitError;
pub use history::{ChangedFile, Entry, FileStatus};
pub use private::Renames;
pub use repo::{CommitId, Repo, TreeId};
pub use workspace::commit_folder;
