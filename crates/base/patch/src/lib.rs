//! Unified diffs as bytes: parse, check for hostile content, apply to a tree on disk, take parts back, split source
//! from tests. Knows nothing of Python beyond the names of test files.
//!
//! The format is git's (`git help diff-format`, "generating patch text with -p"), binary patches included, and the
//! plain `---`/`+++` form that people and agents write by hand.

mod apply;
mod binary;
mod check;
mod classify;
mod diff;
mod error;
mod hunks;
mod matching;
mod parse;
mod parts;
mod paths;
mod tree;
mod write;

pub use apply::{Applied, Ending, Mending, apply, check_applies};
pub use binary::{BinaryChunk, BinaryPatch, Method};
pub use check::{is_git_folder, refusal_of_link};
pub use classify::{PathClass, TestPaths, is_collected, is_test_path, looks_like_test};
pub use diff::{Change, Content, FilePatch, FileStat, Hunk, Index, Line, Patch, Tag};
pub use error::{ApplyError, PatchError, Refusal};
pub use parts::Split;
pub use paths::show_path;
