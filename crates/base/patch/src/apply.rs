//! Applies a patch to a tree on disk: all of it or nothing.
//!
//! Every file is checked, and every new file written aside, before the first one of the tree is replaced. Files are
//! replaced by renaming, never written in place: a hard-linked workspace never changes its source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use sha1::{Digest, Sha1};

use crate::binary::{BinaryPatch, MAX_TOTAL};
use crate::check::{is_link, refusal_of_link, refused};
use crate::diff::{Change, Content, FilePatch, Patch};
use crate::error::{ApplyError, PatchError, Refusal};
use crate::matching::{Misfit, place};
use crate::paths::show_path;
use crate::tree::{self, Entry, Found};

/// A convention of line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `\n`
    Lf,
    /// `\r\n`
    Crlf,
}

/// Something that was put right on the way, to be reported with the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mending {
    /// The patch's last line had lost its newline.
    FinalNewline {
        /// That line.
        line: usize,
    },
    /// Every line of the patch, headers included, ended in CRLF.
    TransportCrlf,
    /// A patch of one convention met a file of the other; the file's was kept.
    LineEndings {
        /// The file.
        path: Vec<u8>,
        /// Its convention.
        ending: Ending,
    },
    /// The patch states that a file lacks its final newline; it had it, and the patch's word was taken, as git
    /// does for a line of context.
    FileNewline {
        /// The file.
        path: Vec<u8>,
    },
    /// A hunk was found at another line than its header states.
    Moved {
        /// The file.
        path: Vec<u8>,
        /// Line of the hunk's header in the patch.
        line: usize,
        /// Line of the file that the header states.
        stated: usize,
        /// Line of the file where it was found.
        found: usize,
    },
}

impl std::fmt::Display for Mending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mending::FinalNewline { line } => write!(f, "line {line} of the patch had lost its newline"),
            Mending::TransportCrlf => write!(f, "the whole patch had been converted to CRLF"),
            Mending::LineEndings { path, ending: Ending::Crlf } => {
                write!(f, "{}: lines of the patch end in LF, the file keeps its CRLF", show_path(path))
            }
            Mending::LineEndings { path, ending: Ending::Lf } => {
                write!(f, "{}: lines of the patch end in CRLF, the file keeps its LF", show_path(path))
            }
            Mending::FileNewline { path } => {
                write!(
                    f,
                    "{}: the patch takes the final newline for missing, the file had it",
                    show_path(path)
                )
            }
            Mending::Moved { path, line, stated, found } => {
                let path = show_path(path);
                write!(
                    f,
                    "{path}: the hunk at line {line} of the patch fits line {found}, it states {stated}"
                )
            }
        }
    }
}

/// What applying a patch did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Paths written or removed, in order.
    pub files: Vec<Vec<u8>>,
    /// What was mended, those of [`Patch::parse`] first.
    pub mended: Vec<Mending>,
}

/// Applies a patch to the tree at `root`.
///
/// # Errors
/// [`ApplyError`]; the tree is untouched unless it is an `Io` with `partial` set.
pub fn apply(patch: &Patch, root: &Path) -> Result<Applied, ApplyError> {
    let plan = Plan::of(patch, root)?;
    plan.carry_out(root)?;
    Ok(plan.done)
}

/// What [`apply`] would do or say; writes nothing.
///
/// # Errors
/// As [`apply`].
pub fn check_applies(patch: &Patch, root: &Path) -> Result<Applied, ApplyError> {
    Ok(Plan::of(patch, root)?.done)
}

#[derive(Default)]
struct Plan {
    outputs: BTreeMap<Vec<u8>, Output>,
    removed: BTreeSet<Vec<u8>>,
    /// Bytes of all outputs.
    written: usize,
    done: Applied,
}

struct Output {
    entry: Entry,
    change: Change,
    line: usize,
}

fn io_error(path: &[u8], partial: bool) -> impl FnOnce(io::Error) -> ApplyError {
    let path = show_path(path);
    move |source| ApplyError::Io { path, source, partial }
}

impl Plan {
    fn of(patch: &Patch, root: &Path) -> Result<Plan, ApplyError> {
        patch.check()?;
        let mut plan = Plan::default();
        plan.done.mended = patch.mended.clone();
        // Names that this patch frees, wherever in it that stands.
        let gone: BTreeSet<&[u8]> = patch
            .files
            .iter()
            .filter(|file| matches!(file.change, Change::Delete | Change::Rename))
            .map(|file| file.old_path.as_slice())
            .collect();
        for file in &patch.files {
            plan.add(file, root, &gone)?;
        }
        let Plan { outputs, removed, done, .. } = &mut plan;
        let mut kept = BTreeSet::new();
        for path in std::mem::take(removed) {
            // A file that the patch itself made and deleted again was never in the tree.
            let there = tree::kind(root, &path).map_err(io_error(&path, false))?;
            if !outputs.contains_key(&path) && there.is_some_and(|kind| !kind.is_dir()) {
                kept.insert(path);
            }
        }
        *removed = kept;
        done.files = outputs.keys().chain(removed.iter()).cloned().collect();
        done.files.sort_unstable();
        for (path, output) in &plan.outputs {
            plan.check_room(path, output.line, root)?;
        }
        Ok(plan)
    }

    fn add(&mut self, file: &FilePatch, root: &Path, gone: &BTreeSet<&[u8]>) -> Result<(), ApplyError> {
        let (line, path) = (file.line, show_path(&file.new_path));
        let old = match file.change {
            Change::Create => None,
            _ => Some(self.source(file, root)?),
        };
        if file.change != Change::Delete
            && let Some(link) =
                tree::link_above(root, &file.new_path).map_err(io_error(&file.new_path, false))?
            && !gone.contains(link)
        {
            return Err(refused(file, &file.new_path, Refusal::ThroughLink).into());
        }
        if matches!(file.change, Change::Create | Change::Rename | Change::Copy) {
            if self.outputs.contains_key(&file.new_path) {
                return Err(PatchError::ChangedTwice { line, path }.into());
            }
            let there = tree::kind(root, &file.new_path).map_err(io_error(&file.new_path, false))?;
            if there.is_some_and(|kind| !kind.is_dir()) && !gone.contains(file.new_path.as_slice()) {
                return Err(ApplyError::Exists { line, path });
            }
        }
        let entry = self.result(file, old)?;
        if matches!(file.change, Change::Delete | Change::Rename) {
            if file.change == Change::Delete {
                self.outputs.remove(&file.old_path);
            }
            self.removed.insert(file.old_path.clone());
        }
        if file.change == Change::Delete {
            if !entry.bytes.is_empty() {
                let what = "the patch deletes the file but not all of its content".into();
                return Err(ApplyError::Preimage { line, path, what });
            }
            return Ok(());
        }
        if is_link(entry.mode)
            && let Some(refusal) = refusal_of_link(&file.new_path, &entry.bytes)
        {
            return Err(refused(file, &file.new_path, refusal).into());
        }
        self.written = self.written.saturating_add(entry.bytes.len());
        if self.written > MAX_TOTAL {
            let what = format!("with it the patch writes more than {MAX_TOTAL} bytes");
            return Err(ApplyError::Preimage { line, path, what });
        }
        self.outputs.insert(file.new_path.clone(), Output { entry, change: file.change, line });
        Ok(())
    }

    /// The entry that a change starts from: renames and copies from the tree as it was, others from what earlier
    /// changes of this patch made of it.
    fn source(&self, file: &FilePatch, root: &Path) -> Result<Entry, ApplyError> {
        let (line, path) = (file.line, show_path(&file.old_path));
        let earlier = self.outputs.get(&file.old_path);
        let renamed_away = self.removed.contains(&file.old_path);
        match (file.change, earlier) {
            (Change::Modify | Change::Delete, Some(output)) => return Ok(output.entry.clone()),
            (Change::Modify | Change::Delete, None) if renamed_away => {
                return Err(ApplyError::Missing { line, path });
            }
            (Change::Rename, _) if renamed_away => return Err(PatchError::ChangedTwice { line, path }.into()),
            (Change::Rename, Some(output)) if output.change == Change::Modify => {
                return Err(PatchError::ChangedTwice { line, path }.into());
            }
            _ => {}
        }
        if tree::link_above(root, &file.old_path).map_err(io_error(&file.old_path, false))?.is_some() {
            return Err(refused(file, &file.old_path, Refusal::ThroughLink).into());
        }
        let entry = match tree::read(root, &file.old_path).map_err(io_error(&file.old_path, false))? {
            Found::Nothing => return Err(ApplyError::Missing { line, path }),
            Found::Other(found) => {
                return Err(ApplyError::WrongKind { line, path, found, expected: "a file" });
            }
            Found::Entry(entry) => entry,
        };
        let takes_for_link = match (file.old_mode, &file.content) {
            (Some(mode), _) => is_link(mode),
            // A rename alone states no mode.
            (None, Content::Same) => is_link(entry.mode),
            (None, _) => false,
        };
        if takes_for_link != is_link(entry.mode) {
            let words = ["a file", "a symbolic link"];
            let found = words[usize::from(is_link(entry.mode))];
            let expected = words[usize::from(takes_for_link)];
            return Err(ApplyError::WrongKind { line, path, found, expected });
        }
        Ok(entry)
    }

    /// The entry after the change.
    fn result(&mut self, file: &FilePatch, old: Option<Entry>) -> Result<Entry, ApplyError> {
        let old = old.unwrap_or(Entry { mode: 0, permissions: 0, bytes: Vec::new() });
        let bytes =
            match &file.content {
                Content::Same => old.bytes,
                Content::Binary(binary) => unpack(file, binary, &old.bytes)?,
                Content::Text(hunks) => {
                    let placed = place(&old.bytes, hunks).map_err(|misfit| misfit_error(file, misfit))?;
                    let path = &file.new_path;
                    self.done.mended.extend(placed.moved.iter().map(|&(hunk, stated, found)| {
                        Mending::Moved { path: path.clone(), line: hunks[hunk].line, stated, found }
                    }));
                    if let Some(ending) = placed.ending {
                        self.done.mended.push(Mending::LineEndings { path: path.clone(), ending });
                    }
                    if placed.final_newline {
                        self.done.mended.push(Mending::FileNewline { path: path.clone() });
                    }
                    placed.bytes
                }
            };
        let mode = match file.new_mode {
            Some(mode) if is_link(mode) => mode,
            Some(mode) if mode & 0o100 != 0 => 0o100755,
            Some(_) => 0o100644,
            None if old.mode == 0 => 0o100644,
            None => old.mode,
        };
        let permissions = if mode == old.mode { old.permissions } else { mode & 0o777 };
        Ok(Entry { mode, permissions, bytes })
    }

    /// Nothing else stands where an output goes: no file above it, no folder in its place that keeps files.
    fn check_room(&self, path: &[u8], line: usize, root: &Path) -> Result<(), ApplyError> {
        for parent in tree::parents(path) {
            if self.outputs.contains_key(parent) {
                return Err(ApplyError::Exists { line, path: show_path(parent) });
            }
            let there = tree::kind(root, parent).map_err(io_error(parent, false))?;
            if there.is_some_and(|kind| !kind.is_dir()) && !self.removed.contains(parent) {
                let path = show_path(parent);
                return Err(ApplyError::WrongKind { line, path, found: "a file", expected: "a folder" });
            }
        }
        if tree::kind(root, path).map_err(io_error(path, false))?.is_some_and(|kind| kind.is_dir()) {
            let mut files = Vec::new();
            tree::files_below(root, path, &mut files).map_err(io_error(path, false))?;
            if files.iter().any(|file| !self.removed.contains(file)) {
                let path = show_path(path);
                return Err(ApplyError::WrongKind { line, path, found: "a folder", expected: "a file" });
            }
        }
        Ok(())
    }

    fn carry_out(&self, root: &Path) -> Result<(), ApplyError> {
        let aside = tempfile::Builder::new()
            .prefix(".infradev-apply-")
            .tempdir_in(root)
            .map_err(io_error(root.as_os_str().as_encoded_bytes(), false))?;
        for (number, (path, output)) in self.outputs.iter().enumerate() {
            tree::write_new(&aside.path().join(number.to_string()), &output.entry)
                .map_err(io_error(path, false))?;
        }
        for path in &self.removed {
            fs::remove_file(tree::join(root, path)).map_err(io_error(path, true))?;
            tree::prune_above(root, path);
        }
        for (number, path) in self.outputs.keys().enumerate() {
            let place = tree::join(root, path);
            let replace = || {
                tree::make_parents(root, path)?;
                if tree::kind(root, path)?.is_some_and(|kind| kind.is_dir()) {
                    tree::remove_empty_folders(&place)?;
                }
                fs::rename(aside.path().join(number.to_string()), &place)
            };
            replace().map_err(io_error(path, true))?;
        }
        Ok(())
    }
}

fn misfit_error(file: &FilePatch, misfit: Misfit) -> ApplyError {
    let path = show_path(&file.new_path);
    match misfit {
        Misfit::TooMuchWork => ApplyError::TooMuchWork { line: file.line, path },
        Misfit::NoMatch { hunk, stated, at, expected, found } => {
            let line = file.hunks().get(hunk).map_or(file.line, |hunk| hunk.line);
            ApplyError::NoMatch { line, path, hunk: hunk + 1, stated, at, expected, found }
        }
    }
}

/// Unpacks a binary change; as in git, both blobs must be the ones of the full `index` line.
fn unpack(file: &FilePatch, binary: &BinaryPatch, old: &[u8]) -> Result<Vec<u8>, ApplyError> {
    let fail = |what: &str| {
        let path = show_path(&file.new_path);
        Err(ApplyError::Preimage { line: file.line, path, what: what.into() })
    };
    let Some(index) = file.index.as_ref().filter(|index| index.old.len() == 40 && index.new.len() == 40)
    else {
        return fail("a binary change needs an index line with full blob ids (`git diff --full-index`)");
    };
    let absent = |id: &str| id.bytes().all(|b| b == b'0');
    if !absent(&index.old) && blob_id(old) != index.old {
        return fail("the binary change was made against other content");
    }
    match binary.forward.unpack(old) {
        Err(what) => fail(&what),
        Ok(new) if !absent(&index.new) && blob_id(&new) != index.new => {
            fail("the binary data do not give the blob of the index line")
        }
        Ok(new) => Ok(new),
    }
}

/// git's id of a blob with this content.
fn blob_id(content: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
