//! Captures what an agent made of a tree, as a patch.
//!
//! The work tree is walked by us, never by git: its own `.git` is not read, nested repositories don't turn into
//! gitlinks, ignore rules and attributes have no say.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use infradev_patch::{is_git_folder, refusal_of_link};

use crate::command::Git;
use crate::error::{GitError, io_error};
use crate::private::{Private, Renames, Submodules};
use crate::repo::{CommitId, Repo, TreeId, object_id};
use crate::shortened::shortened;

/// Largest file that a capture takes, in bytes; `infradev-patch` applies no larger ones.
const MAX_FILE: u64 = 64 << 20;

/// Bytes of new and changed files that a capture takes together: what is diffed is in memory as a whole.
const MAX_CHANGED: u64 = 128 << 20;

/// Longest patch that a capture gives, in bytes; one file of any content fits, though base85 and the signs of lines make it longer.
const MAX_PATCH: usize = 96 << 20;

/// Longest path that a capture takes, in bytes: a deeper one could not even be opened by its name.
const MAX_PATH: usize = 3000;

/// Longest path that the system takes, in bytes.
const MAX_SYSTEM_PATH: usize = 4095;

/// Longest path below a work tree that a capture takes, in bytes: 3000, as `infradev-patch` does, or what a long path of the tree
/// itself leaves.
pub fn longest_path(work: &Path) -> usize {
    let root = fs::canonicalize(work).unwrap_or_else(|_| work.to_owned());
    MAX_PATH.min(MAX_SYSTEM_PATH.saturating_sub(root.as_os_str().len() + 1))
}

/// What the work tree started from.
#[derive(Debug, Clone, Copy)]
pub enum Base<'a> {
    /// A commit of a repository that is ours.
    Commit(&'a Repo, &'a CommitId),
    /// A folder.
    Folder(&'a Path),
}

/// A captured patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// A git diff with binary data and full ids, without renames; empty where nothing changed.
    pub patch: Vec<u8>,
    /// What the work tree holds and the patch does not.
    pub skipped: Vec<Skipped>,
}

/// Something left out of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Path relative to the work tree, as bytes.
    pub path: Vec<u8>,
    /// Why.
    pub reason: SkipReason,
}

/// Why something is left out of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// `.git`, in any spelling that a file system takes for it, of a nested repository. (The one at the top is left out without a word.)
    GitFolder,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// A file of more than 64 MiB.
    TooLarge,
    /// One of the largest files, where new and changed ones are more than 128 MiB together, or their patch more than 96 MiB.
    TooMuch,
    /// A symbolic link for which `infradev-patch` would refuse the whole patch: to an absolute path, out of the tree, into `.git`.
    LinkOut,
    /// A folder in which paths are longer than [`longest_path`]: those are left out, whatever lies below them too.
    TooLong,
}

/// The patch from a base to a work tree, every file of it, ignored ones too. The work tree must be at rest.
///
/// # Errors
/// [`GitError::Io`] where a file can't be read, [`GitError::Failed`], [`GitError::Interrupted`].
pub fn capture(base: Base<'_>, work: &Path) -> Result<Captured, GitError> {
    captured(base, work, MAX_PATCH)
}

/// The same, with a patch of `longest` bytes at most where the base is a folder.
pub(crate) fn captured(base: Base<'_>, work: &Path, longest: usize) -> Result<Captured, GitError> {
    let (mut entries, mut skipped) = listed(work)?;
    let (private, old) = match base {
        Base::Commit(repo, commit) => {
            let mut out = leading_out(&entries);
            if !out.is_empty() {
                // A link of the base that is left out would look like the agent's deletion.
                for entry in repo.ls_tree(commit)? {
                    out.remove(&entry.path);
                }
            }
            entries.retain(|entry| !out.contains(&entry.path));
            skipped.extend(out.into_iter().map(|path| Skipped { path, reason: SkipReason::LinkOut }));
            (Private::borrowing(Some(repo))?, commit.0.clone())
        }
        Base::Folder(folder) => {
            let private = Private::borrowing(None)?;
            let much = too_much(folder, &entries, MAX_CHANGED).into_iter();
            skipped.extend(much.map(|path| Skipped { path, reason: SkipReason::TooMuch }));
            let for_size = [SkipReason::TooLarge, SkipReason::TooMuch];
            let left_out = skipped.iter().filter(|file| for_size.contains(&file.reason));
            let mut left_out: BTreeSet<Vec<u8>> = left_out.map(|file| file.path.clone()).collect();
            let out = leading_out(&entries);
            let new = entries.iter().filter(|entry| out.contains(&entry.path) && !entry.is_link_of(folder));
            let new = new.map(|entry| Skipped { path: entry.path.clone(), reason: SkipReason::LinkOut });
            skipped.extend(new);
            left_out.extend(out);
            entries.retain(|entry| !left_out.contains(&entry.path));
            // What is left out on one side only would look like the agent's deletion.
            let mut before = listed(folder)?.0;
            before.retain(|entry| !left_out.contains(&entry.path));
            let tree = snapshot(&private, folder, &before)?;
            (private, tree.0)
        }
    };
    let new = snapshot(&private, work, &entries)?;
    // A submodule of the base is an empty folder in a work tree: not the agent's deletion.
    let patch = private.diff(&old, new.as_str(), Renames::Off, Submodules::Ignore)?;
    let longest = if matches!(base, Base::Folder(_)) { longest } else { usize::MAX };
    let (patch, left_out) = shortened(patch, longest);
    skipped.extend(left_out.into_iter().map(|path| Skipped { path, reason: SkipReason::TooMuch }));
    Ok(Captured { patch, skipped })
}

impl Repo {
    /// The patch from a commit to a work tree of this repository: files that git tracks there and new ones that its
    /// `.gitignore` files do not name, as they are on disk. The work tree must be at rest.
    ///
    /// # Errors
    /// As [`capture`].
    pub fn diff_to_work_tree(
        &self,
        base: &CommitId,
        work: &Path,
        renames: Renames,
    ) -> Result<Vec<u8>, GitError> {
        let listed = Git::within(self.git_dir())
            .env("GIT_WORK_TREE", work)
            .cwd(work)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .run()?;
        let listed: BTreeSet<&[u8]> = listed.split(|byte| *byte == 0).collect();
        let private = Private::borrowing(Some(self))?;
        let (mut entries, _) = self::listed(work)?;
        entries.retain(|entry| listed.contains(entry.path.as_slice()));
        let new = snapshot(&private, work, &entries)?;
        private.diff(&base.0, new.as_str(), renames, Submodules::Ignore)
    }
}

/// A file found by the walk.
struct Entry {
    mode: u32,
    path: Vec<u8>,
    /// Bytes of a file's content; 0 of a link's.
    size: u64,
    /// A link's target.
    target: Option<Vec<u8>>,
}

impl Entry {
    /// Whether a folder has the same link at this path.
    fn is_link_of(&self, folder: &Path) -> bool {
        let there = fs::read_link(folder.join(OsStr::from_bytes(&self.path)));
        there.is_ok_and(|there| self.target.as_deref() == Some(there.as_os_str().as_bytes()))
    }
}

/// Links that no patch may make, and those that git takes into no index.
fn leading_out(entries: &[Entry]) -> BTreeSet<Vec<u8>> {
    let name = |path: &[u8]| path.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
    let refused = |entry: &&Entry| {
        let refusal = |target: &Vec<u8>| refusal_of_link(&entry.path, target).is_some();
        let modules = name(&entry.path).eq_ignore_ascii_case(b".gitmodules");
        entry.target.as_ref().is_some_and(|target| modules || refusal(target))
    };
    entries.iter().filter(refused).map(|entry| entry.path.clone()).collect()
}

/// What a folder holds.
fn listed(folder: &Path) -> Result<(Vec<Entry>, Vec<Skipped>), GitError> {
    let mut walk = Walk {
        root: folder,
        longest: longest_path(folder),
        folders: vec![Vec::new()],
        entries: Vec::new(),
        skipped: Vec::new(),
    };
    while let Some(next) = walk.folders.pop() {
        walk.folder(&next)?;
    }
    Ok((walk.entries, walk.skipped))
}

/// The largest of those files that are new, or of another size than in the base, as many as it takes for the rest of them to have
/// no more bytes than `room`.
fn too_much(base: &Path, entries: &[Entry], room: u64) -> BTreeSet<Vec<u8>> {
    let as_before = |entry: &Entry| {
        let before = fs::symlink_metadata(base.join(OsStr::from_bytes(&entry.path)));
        before.is_ok_and(|data| data.is_file() && data.len() == entry.size)
    };
    let mut total: u64 = entries.iter().map(|entry| entry.size).sum();
    if total <= room {
        return BTreeSet::new();
    }
    let mut changed: Vec<&Entry> = entries.iter().filter(|entry| !as_before(entry)).collect();
    changed.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
    total = changed.iter().map(|entry| entry.size).sum();
    let mut left_out = BTreeSet::new();
    for entry in changed {
        if total <= room {
            break;
        }
        total -= entry.size;
        left_out.insert(entry.path.clone());
    }
    left_out
}

/// Writes these files of a folder into the private directory; gives the id of their tree.
fn snapshot(private: &Private, folder: &Path, entries: &[Entry]) -> Result<TreeId, GitError> {
    let folder = fs::canonicalize(folder).map_err(io_error(folder))?;
    let links = tempfile::tempdir_in(private.path("scratch")).map_err(io_error(private.path("scratch")))?;
    let mut names = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        go_on()?;
        let place = match &entry.target {
            None => folder.join(OsStr::from_bytes(&entry.path)),
            Some(target) => {
                let place = links.path().join(number.to_string());
                fs::write(&place, target).map_err(io_error(&place))?;
                place
            }
        };
        names.extend(quote(place.as_os_str().as_bytes()));
        names.push(b'\n');
    }
    let ids =
        private.git().args(["hash-object", "-w", "--no-filters", "--stdin-paths"]).stdin(names).run()?;
    let ids: Vec<&[u8]> = ids.split(|&b| b == b'\n').filter(|id| !id.is_empty()).collect();
    if ids.len() != entries.len() {
        let answer = format!("{} ids for {} files", ids.len(), entries.len());
        return Err(GitError::Unreadable { command: "hash-object", answer });
    }
    let mut index = Vec::new();
    for (entry, id) in entries.iter().zip(ids) {
        index.extend(format!("{:06o} ", entry.mode).bytes());
        index.extend_from_slice(id);
        index.push(b'\t');
        index.extend_from_slice(&entry.path);
        index.push(0);
    }
    private.git().args(["read-tree", "--empty"]).run()?;
    private.git().args(["update-index", "-z", "--index-info"]).stdin(index).run()?;
    let tree = private.git().arg("write-tree").run()?;
    Ok(TreeId(object_id("write-tree", &tree)?))
}

/// A walk of a tree, a folder at a time: none stays open while those below it are read.
struct Walk<'a> {
    root: &'a Path,
    longest: usize,
    /// Folders still to be read.
    folders: Vec<Vec<u8>>,
    entries: Vec<Entry>,
    skipped: Vec<Skipped>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &[u8]) -> Result<(), GitError> {
        let place = self.root.join(OsStr::from_bytes(folder));
        let mut too_long = false;
        for found in fs::read_dir(&place).map_err(io_error(&place))? {
            go_on()?;
            let found = found.map_err(io_error(&place))?;
            let name = found.file_name();
            let path = if folder.is_empty() {
                name.as_bytes().to_vec()
            } else {
                [folder, b"/", name.as_bytes()].concat()
            };
            if path.len() > self.longest {
                too_long = true;
            } else {
                self.entry(&found, path)?;
            }
        }
        // Once, however much of it there is.
        if too_long {
            self.skipped.push(Skipped { path: folder.to_vec(), reason: SkipReason::TooLong });
        }
        Ok(())
    }

    fn entry(&mut self, found: &fs::DirEntry, path: Vec<u8>) -> Result<(), GitError> {
        if is_git_folder(found.file_name().as_bytes()) {
            if path != b".git" {
                self.skipped.push(Skipped { path, reason: SkipReason::GitFolder });
            }
            return Ok(());
        }
        // Of the entry itself: a link is not followed.
        let data = found.metadata().map_err(io_error(found.path()))?;
        let kind = data.file_type();
        let reason = if kind.is_dir() {
            self.folders.push(path);
            return Ok(());
        } else if kind.is_symlink() {
            let target = fs::read_link(found.path()).map_err(io_error(found.path()))?;
            let target = Some(target.as_os_str().as_bytes().to_vec());
            self.entries.push(Entry { mode: 0o120000, path, size: 0, target });
            return Ok(());
        } else if kind.is_fifo() {
            SkipReason::Fifo
        } else if kind.is_socket() {
            SkipReason::Socket
        } else if !kind.is_file() {
            SkipReason::Device
        } else if data.len() > MAX_FILE {
            SkipReason::TooLarge
        } else {
            let mode = if data.mode() & 0o100 != 0 { 0o100755 } else { 0o100644 };
            self.entries.push(Entry { mode, path, size: data.len(), target: None });
            return Ok(());
        };
        self.skipped.push(Skipped { path, reason });
        Ok(())
    }
}

/// Asked between files, of which there may be many: nothing else here would notice that the person wants an end.
fn go_on() -> Result<(), GitError> {
    if infradev_supervise::cancelled() { Err(GitError::Interrupted) } else { Ok(()) }
}

/// A path for `--stdin-paths`, which reads C quoting where a line starts with a quote.
fn quote(path: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0x20..0x7f => out.push(byte),
            _ => out.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_new_files_are_left_out_until_the_rest_has_room_and_what_the_base_has_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (base, work) = (folder.path().join("base"), folder.path().join("work"));
        for tree in [&base, &work] {
            fs::create_dir(tree).unwrap();
            fs::write(tree.join("as-before"), [1; 900]).unwrap();
            fs::write(tree.join("grown"), "small").unwrap();
        }
        fs::write(work.join("grown"), [1; 500]).unwrap();
        fs::write(work.join("middle"), [1; 300]).unwrap();
        fs::write(work.join("small"), [1; 10]).unwrap();
        let entries = listed(&work).unwrap().0;
        let left_out = |room: u64| {
            let paths = too_much(&base, &entries, room).into_iter();
            paths.map(|path| String::from_utf8(path).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(left_out(810), [""; 0]);
        assert_eq!(left_out(809), ["grown"]);
        assert_eq!(left_out(309), ["grown", "middle"]);
    }
}
