//! What can be wrong with a patch, each with the patch's own line.

use infradev_model::{Class, Classified};

/// Why a patch is refused before anything is written, whatever the tree holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A path with a `..` component.
    ParentComponent,
    /// A path that starts at the root of the file system.
    AbsolutePath,
    /// A path with a `.git` component, in any case or spelling that a file system may take for it.
    GitFolder,
    /// A path with a NUL byte.
    NulByte,
    /// An empty path, or one with an empty or `.` component.
    MalformedPath,
    /// A path or link target that file systems don't take: a component of more than 255 bytes, more than 3000 in all.
    TooLong,
    /// A symbolic link with an absolute target.
    AbsoluteLink,
    /// A symbolic link whose target leaves the tree, or could by way of another link.
    EscapingLink,
    /// A gitlink (mode 160000).
    Gitlink,
    /// A file mode that is neither a regular file nor a symbolic link.
    OddMode,
    /// A file below a symbolic link that the tree or the patch holds.
    ThroughLink,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::ParentComponent => "has a `..` component",
            Refusal::AbsolutePath => "is an absolute path",
            Refusal::GitFolder => "reaches into a .git folder",
            Refusal::NulByte => "holds a NUL byte",
            Refusal::MalformedPath => "is not a plain relative path",
            Refusal::TooLong => "has a longer name than file systems take",
            Refusal::AbsoluteLink => "is a symbolic link to an absolute path",
            Refusal::EscapingLink => "is a symbolic link that may leave the tree",
            Refusal::Gitlink => "is a gitlink (submodule, mode 160000)",
            Refusal::OddMode => "has a mode that is neither a regular file nor a symbolic link",
            Refusal::ThroughLink => "lies below a symbolic link",
        })
    }
}

/// A patch that can't be read, or is refused. Lines count from 1 in the patch as it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// Text, but no file header of a diff in it.
    #[error("no diff found: neither a `diff --git` line nor a `---`/`+++` pair with a hunk")]
    NotADiff,
    /// A line that does not fit the format.
    #[error("line {line} of the patch: {what}")]
    Syntax {
        /// Line of the patch.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A hunk whose body does not have the lines that its header states.
    #[error(
        "line {line} of the patch: the hunk header states {old_said} old and {new_said} new lines, its body has \
         {old_found} and {new_found}{}",
        if *.at_end { " where the patch ends" } else { "" }
    )]
    HunkCounts {
        /// Line of the hunk's header.
        line: usize,
        /// Old lines that the header states.
        old_said: usize,
        /// New lines that the header states.
        new_said: usize,
        /// Old lines found.
        old_found: usize,
        /// New lines found.
        new_found: usize,
        /// The body ran into the end of the patch.
        at_end: bool,
    },
    /// `Binary files … differ`: a diff made without `--binary`.
    #[error("line {line} of the patch: {path} is binary and the patch holds none of its data")]
    BinaryWithoutData {
        /// Line of the patch.
        line: usize,
        /// The file.
        path: String,
    },
    /// Content that no honest change of a source tree has.
    #[error("line {line} of the patch: {path} {refusal}")]
    Refused {
        /// Line of the file's header in the patch.
        line: usize,
        /// The file.
        path: String,
        /// Why.
        refusal: Refusal,
    },
    /// A file changed by two headers that can't be read one after the other.
    #[error("line {line} of the patch: {path} is changed twice")]
    ChangedTwice {
        /// Line of the second header.
        line: usize,
        /// The file.
        path: String,
    },
    /// A rename or copy with one name in each part of a split.
    #[error("line {line} of the patch: {old} becomes {new}, which belongs to the other part of the split")]
    RenameAcrossSplit {
        /// Line of the header.
        line: usize,
        /// Name before.
        old: String,
        /// Name after.
        new: String,
    },
    /// A change that holds too little to be turned round.
    #[error("line {line} of the patch: the change of {path} can't be inverted: {why}")]
    NotInvertible {
        /// Line of the header.
        line: usize,
        /// The file.
        path: String,
        /// What is missing.
        why: &'static str,
    },
    /// A file or hunk asked for that the patch does not have.
    #[error("the patch has no {0}")]
    NoSuchPart(String),
}

impl Classified for PatchError {
    fn class(&self) -> Class {
        match self {
            PatchError::NoSuchPart(_) => Class::Usage,
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            PatchError::NotADiff => Some("make the patch with `git diff --binary --full-index`".into()),
            PatchError::HunkCounts { at_end: true, .. } => Some(
                "the end of the patch is missing; blank context lines get lost when text is stripped".into(),
            ),
            PatchError::HunkCounts { .. } => {
                Some("make the patch with git instead of editing it by hand".into())
            }
            PatchError::BinaryWithoutData { .. } => Some("make the patch with `git diff --binary`".into()),
            PatchError::ChangedTwice { .. } => Some("squash the commits into one diff".into()),
            PatchError::RenameAcrossSplit { .. } => Some("make the diff with --no-renames".into()),
            _ => None,
        }
    }
}

/// A patch that does not go onto a tree. The tree is as it was, except after [`ApplyError::Io`] with `partial` set.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Refused whatever the tree holds, or for a link that the tree holds.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// The file to change is not in the tree.
    #[error("line {line} of the patch: {path} is not in the tree")]
    Missing {
        /// Line of the file's header in the patch.
        line: usize,
        /// The file.
        path: String,
    },
    /// The file to create is in the tree.
    #[error("line {line} of the patch: {path} is already in the tree")]
    Exists {
        /// Line of the file's header in the patch.
        line: usize,
        /// The file.
        path: String,
    },
    /// The tree holds a folder, a link or a special file where the patch expects something else.
    #[error("line {line} of the patch: {path} is {found} in the tree, the patch takes it for {expected}")]
    WrongKind {
        /// Line of the file's header in the patch.
        line: usize,
        /// The file.
        path: String,
        /// What the tree holds.
        found: &'static str,
        /// What the patch takes it for.
        expected: &'static str,
    },
    /// A hunk's old lines are nowhere in the file.
    #[error(
        "line {line} of the patch: hunk {hunk} of {path} (stated at line {stated}) does not match; first difference \
         at line {at} of the file: the patch has {expected}, the file has {found}"
    )]
    NoMatch {
        /// Line of the hunk's header in the patch.
        line: usize,
        /// The file.
        path: String,
        /// Number of the hunk in its file, from 1.
        hunk: usize,
        /// Line of the file at which the header states the hunk.
        stated: usize,
        /// First line of the file that differs at the stated place.
        at: usize,
        /// The patch's line, quoted.
        expected: String,
        /// The file's line, quoted, or `no such line`.
        found: String,
    },
    /// A binary change, deletion or delta made against other bytes.
    #[error("line {line} of the patch: {path}: {what}")]
    Preimage {
        /// Line of the file's header in the patch.
        line: usize,
        /// The file.
        path: String,
        /// What does not fit.
        what: String,
    },
    /// The search for the places of hunks was given up.
    #[error("line {line} of the patch: finding the hunks' places in {path} takes too long")]
    TooMuchWork {
        /// Line of the file's header in the patch.
        line: usize,
        /// The file.
        path: String,
    },
    /// The file system failed.
    #[error("{path}: {source}{}", if *.partial { " (the tree is left half-patched)" } else { "" })]
    Io {
        /// The file or folder.
        path: String,
        /// What the system said.
        source: std::io::Error,
        /// Some files had been replaced.
        partial: bool,
    },
}

impl Classified for ApplyError {
    fn class(&self) -> Class {
        match self {
            ApplyError::Patch(error) => error.class(),
            ApplyError::Io { .. } => Class::Fault,
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ApplyError::Patch(error) => error.hint(),
            ApplyError::Missing { .. } | ApplyError::Exists { .. } | ApplyError::NoMatch { .. } => {
                Some("the patch must be made against the task's base tree".into())
            }
            _ => None,
        }
    }
}
