//! Parts of a patch: files and hunks taken back, source split from tests, the whole turned round.

use crate::diff::{Change, Content, FilePatch, Hunk, Index, Line, Patch, Tag};
use crate::error::PatchError;
use crate::paths::show_path;

/// A patch split in two; each part applies to the base alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    /// Changes of source files.
    pub source: Patch,
    /// Changes of test files.
    pub test: Patch,
}

impl Patch {
    /// The patch with the changes of these files left out, as if the files had been taken back to base. A rename is named
    /// by either of its paths.
    ///
    /// # Errors
    /// [`PatchError::NoSuchPart`] where the patch does not touch one of the files.
    pub fn without_files<P: AsRef<[u8]>>(&self, paths: &[P]) -> Result<Patch, PatchError> {
        let touches = |file: &FilePatch, path: &[u8]| file.old_path == path || file.new_path == path;
        for path in paths {
            if !self.files.iter().any(|file| touches(file, path.as_ref())) {
                return Err(PatchError::NoSuchPart(format!("change of {}", show_path(path.as_ref()))));
            }
        }
        let mut rest = self.clone();
        rest.files.retain(|file| !paths.iter().any(|path| touches(file, path.as_ref())));
        Ok(rest)
    }

    /// The patch with one hunk left out, the line numbers of later hunks put right; the rest applies to the same base. A
    /// new or deleted file goes with its hunk, as does a file that has no other change left.
    ///
    /// # Errors
    /// [`PatchError::NoSuchPart`] for an index out of range.
    pub fn without_hunk(&self, file: usize, hunk: usize) -> Result<Patch, PatchError> {
        let none = || PatchError::NoSuchPart(format!("hunk {hunk} in file {file} (both from 0)"));
        let mut rest = self.clone();
        let changed = rest.files.get_mut(file).ok_or_else(none)?;
        let Content::Text(hunks) = &mut changed.content else { return Err(none()) };
        if hunk >= hunks.len() {
            return Err(none());
        }
        let out = hunks.remove(hunk);
        for later in &mut hunks[hunk..] {
            later.new_start = (later.new_start + out.old_lines).saturating_sub(out.new_lines);
        }
        if !hunks.is_empty() {
            if let Some(Index { new, .. }) = &mut changed.index {
                *new = "0".repeat(new.len());
            }
            return Ok(rest);
        }
        changed.content = Content::Same;
        changed.index = None;
        changed.similarity = changed.similarity.map(|_| 100);
        let mode_stays = changed.old_mode == changed.new_mode;
        let nothing_left = match changed.change {
            Change::Create | Change::Delete => true,
            Change::Modify => mode_stays,
            Change::Rename | Change::Copy => false,
        };
        if nothing_left {
            rest.files.remove(file);
        } else if mode_stays {
            (changed.old_mode, changed.new_mode) = (None, None);
        }
        Ok(rest)
    }

    /// Splits the changes of test files from the others.
    ///
    /// # Errors
    /// [`PatchError::RenameAcrossSplit`] where a file moves from one part to the other.
    pub fn split(&self, is_test: impl Fn(&[u8]) -> bool) -> Result<Split, PatchError> {
        let mut split = Split::default();
        split.source.mended = self.mended.clone();
        for file in &self.files {
            let (old, new) = (is_test(&file.old_path), is_test(&file.new_path));
            if old != new {
                return Err(PatchError::RenameAcrossSplit {
                    line: file.line,
                    old: show_path(&file.old_path),
                    new: show_path(&file.new_path),
                });
            }
            if new { &mut split.test } else { &mut split.source }.files.push(file.clone());
        }
        Ok(split)
    }

    /// The patch that leads back.
    ///
    /// # Errors
    /// [`PatchError::NotInvertible`] for copies, and binary changes without their reverse data.
    pub fn inverted(&self) -> Result<Patch, PatchError> {
        let mut files = self.files.iter().map(invert_file).collect::<Result<Vec<_>, _>>()?;
        // Where a link takes a file's place, its deletion must come before the creation again.
        files.reverse();
        Ok(Patch { files, mended: Vec::new() })
    }
}

fn invert_file(file: &FilePatch) -> Result<FilePatch, PatchError> {
    let fail = |why| Err(PatchError::NotInvertible { line: file.line, path: show_path(&file.new_path), why });
    let change = match file.change {
        Change::Create => Change::Delete,
        Change::Delete => Change::Create,
        Change::Copy => return fail("a copy does not hold the content that its inverse deletes"),
        same => same,
    };
    let content = match &file.content {
        Content::Same => Content::Same,
        Content::Text(hunks) => Content::Text(hunks.iter().map(invert_hunk).collect()),
        Content::Binary(binary) => {
            let mut binary = binary.clone();
            let Some(reverse) = &mut binary.reverse else {
                return fail("the binary change lacks its reverse data");
            };
            std::mem::swap(reverse, &mut binary.forward);
            Content::Binary(binary)
        }
    };
    Ok(FilePatch {
        line: 0,
        change,
        old_path: file.new_path.clone(),
        new_path: file.old_path.clone(),
        old_mode: file.new_mode,
        new_mode: file.old_mode,
        index: file.index.clone().map(|index| Index { old: index.new, new: index.old }),
        similarity: file.similarity,
        content,
    })
}

fn invert_hunk(hunk: &Hunk) -> Hunk {
    let mut lines = Vec::with_capacity(hunk.lines.len());
    // Within a run of changes the removed lines come first.
    let mut added: Vec<Line> = Vec::new();
    for line in &hunk.lines {
        match line.tag {
            Tag::Context => {
                lines.append(&mut added);
                lines.push(line.clone());
            }
            Tag::Added => lines.push(Line { tag: Tag::Removed, body: line.body.clone() }),
            Tag::Removed => added.push(Line { tag: Tag::Added, body: line.body.clone() }),
        }
    }
    lines.append(&mut added);
    Hunk {
        line: 0,
        old_start: hunk.new_start,
        old_lines: hunk.new_lines,
        new_start: hunk.old_start,
        new_lines: hunk.old_lines,
        section: hunk.section.clone(),
        lines,
    }
}
