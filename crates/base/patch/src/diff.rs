//! The shape of a patch in memory.

use crate::binary::BinaryPatch;

/// A patch: the changes of some files, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    /// Changes of files.
    pub files: Vec<FilePatch>,
    /// What was mended while reading (a lost final newline, a transport's CRLF).
    pub mended: Vec<crate::Mending>,
}

/// What happens to a file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its content or mode changes.
    Modify,
    /// It is new.
    Create,
    /// It goes.
    Delete,
    /// It gets another name, and perhaps other content.
    Rename,
    /// A new file starts from the content of another, which stays.
    Copy,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// Line of the header in the patch, from 1; 0 where the patch was not read from bytes.
    pub line: usize,
    /// What happens to the file as a whole.
    pub change: Change,
    /// Path before, relative to the tree; the same as `new_path` except for renames and copies.
    pub old_path: Vec<u8>,
    /// Path after.
    pub new_path: Vec<u8>,
    /// Mode before (`0o100644`, `0o100755`, `0o120000`), where the patch states it.
    pub old_mode: Option<u32>,
    /// Mode after, where the patch states it.
    pub new_mode: Option<u32>,
    /// Blob ids of the `index` line.
    pub index: Option<Index>,
    /// `similarity index` in percent, of a rename or copy.
    pub similarity: Option<u8>,
    /// Change of the content.
    pub content: Content,
}

/// The blob ids of an `index` line, in hex, possibly abbreviated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Blob before; zeros where there is none.
    pub old: String,
    /// Blob after; zeros where there is none or it is not known.
    pub new: String,
}

/// The change of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// None: a change of mode or name alone, or an empty file.
    Same,
    /// Hunks of lines.
    Text(Vec<Hunk>),
    /// A `GIT binary patch`.
    Binary(BinaryPatch),
}

/// A run of lines that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Line of its header in the patch, from 1; 0 where the patch was not read from bytes.
    pub line: usize,
    /// First old line, from 1; the line before the hunk where it has no old lines.
    pub old_start: usize,
    /// Old lines: context and removed.
    pub old_lines: usize,
    /// First new line, from 1; the line before the hunk where it has no new lines.
    pub new_start: usize,
    /// New lines: context and added.
    pub new_lines: usize,
    /// Text after the second `@@`, with its leading space.
    pub section: Vec<u8>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// The side that a line of a hunk is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// On both.
    Context,
    /// On the old side alone.
    Removed,
    /// On the new side alone.
    Added,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its side.
    pub tag: Tag,
    /// Its bytes with the newline; without one where `\ No newline at end of file` follows.
    pub body: Vec<u8>,
}

/// How much a patch changes one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// Path after the change (before it, for a deletion).
    pub path: Vec<u8>,
    /// Lines added; 0 for binary files.
    pub added: usize,
    /// Lines removed; 0 for binary files.
    pub removed: usize,
    /// The change is binary.
    pub binary: bool,
}

impl Patch {
    /// No file changes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The change of each file in numbers.
    pub fn stats(&self) -> Vec<FileStat> {
        self.files.iter().map(FilePatch::stat).collect()
    }

    /// Every path that the patch reads or writes, without repeats, in order.
    pub fn paths(&self) -> Vec<&[u8]> {
        let mut paths: Vec<&[u8]> =
            self.files.iter().flat_map(|f| [f.old_path.as_slice(), f.new_path.as_slice()]).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

impl FilePatch {
    /// The hunks; none for binary changes and changes of mode or name alone.
    pub fn hunks(&self) -> &[Hunk] {
        match &self.content {
            Content::Text(hunks) => hunks,
            _ => &[],
        }
    }

    /// The change in numbers.
    pub fn stat(&self) -> FileStat {
        let count = |tag| self.hunks().iter().flat_map(|h| &h.lines).filter(|l| l.tag == tag).count();
        FileStat {
            path: self.new_path.clone(),
            added: count(Tag::Added),
            removed: count(Tag::Removed),
            binary: matches!(self.content, Content::Binary(_)),
        }
    }
}

impl Line {
    /// The line is part of the old side.
    pub fn is_old(&self) -> bool {
        self.tag != Tag::Added
    }

    /// The line is part of the new side.
    pub fn is_new(&self) -> bool {
        self.tag != Tag::Removed
    }
}
