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

use crate::command::Git;
use crate::error::{GitError, io_error};
use crate::private::{Private, Renames, Submodules};
use crate::repo::{CommitId, Repo, TreeId, object_id};

/// Largest file that a capture takes, in bytes; `infradev-patch` applies no larger ones.
const MAX_FILE: u64 = 64 << 20;

/// Longest path that a capture takes, in bytes: a deeper one could not even be opened by its name.
const MAX_PATH: usize = 3000;

/// What the work tree started from.
#[derive(Debug, Clone, Copy)]
pub enum Base<'a> {
    /// A commit of a repository that is ours.
    Commit(&'a Repo, &'a CommitId),
    /// A folder.
    Folder(&'a Path),
}

/// A captured patch.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// `.git` of a nested repository. (The one at the top is left out without a word.)
    GitFolder,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// A file of more than 64 MiB.
    TooLarge,
    /// A path of more than 3000 bytes, which `infradev-patch` would refuse.
    TooLong,
}

/// The patch from a base to a work tree, every file of it, ignored ones too. The work tree must be at rest.
///
/// # Errors
/// [`GitError::Io`] where a file can't be read, [`GitError::Failed`].
pub fn capture(base: Base<'_>, work: &Path) -> Result<Captured, GitError> {
    let (private, old) = match base {
        Base::Commit(repo, commit) => (Private::borrowing(Some(repo))?, commit.0.clone()),
        Base::Folder(folder) => {
            let private = Private::borrowing(None)?;
            let tree = snapshot(&private, folder, &|_| true)?.0;
            (private, tree.0)
        }
    };
    let (new, skipped) = snapshot(&private, work, &|_| true)?;
    // A submodule of the base is an empty folder in a work tree: not the agent's deletion.
    let patch = private.diff(&old, new.as_str(), Renames::Off, Submodules::Ignore)?;
    Ok(Captured { patch, skipped })
}

impl Repo {
    /// The patch from a commit to a work tree of this repository: files that git tracks there and new ones that its
    /// `.gitignore` files do not name, as they are on disk. The work tree must be at rest.
    ///
    /// # Errors
    /// As [`capture`].
    pub fn diff_to_work_tree(&self, base: &CommitId, work: &Path) -> Result<Vec<u8>, GitError> {
        let listed = Git::within(self.git_dir())
            .env("GIT_WORK_TREE", work)
            .cwd(work)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .run()?;
        let listed: BTreeSet<&[u8]> = listed.split(|byte| *byte == 0).collect();
        let private = Private::borrowing(Some(self))?;
        let (new, _) = snapshot(&private, work, &|path| listed.contains(path))?;
        private.diff(&base.0, new.as_str(), Renames::Off, Submodules::Ignore)
    }
}

/// A file found by the walk.
struct Entry {
    mode: u32,
    path: Vec<u8>,
    /// A link's target.
    target: Option<Vec<u8>>,
}

/// Writes a folder's files into the private directory, those that `keep` takes by path; gives the id of their tree.
fn snapshot(
    private: &Private,
    folder: &Path,
    keep: &dyn Fn(&[u8]) -> bool,
) -> Result<(TreeId, Vec<Skipped>), GitError> {
    let folder = fs::canonicalize(folder).map_err(io_error(folder))?;
    let mut entries = Vec::new();
    let mut skipped = Vec::new();
    walk(&folder, &[], &mut entries, &mut skipped)?;
    entries.retain(|entry| keep(&entry.path));
    let links = tempfile::tempdir_in(private.path("scratch")).map_err(io_error(private.path("scratch")))?;
    let mut names = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
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
    Ok((TreeId(object_id("write-tree", &tree)?), skipped))
}

fn walk(
    root: &Path,
    folder: &[u8],
    entries: &mut Vec<Entry>,
    skipped: &mut Vec<Skipped>,
) -> Result<(), GitError> {
    let place = root.join(OsStr::from_bytes(folder));
    for found in fs::read_dir(&place).map_err(io_error(&place))? {
        let found = found.map_err(io_error(&place))?;
        let name = found.file_name();
        let path = if folder.is_empty() {
            name.as_bytes().to_vec()
        } else {
            [folder, b"/", name.as_bytes()].concat()
        };
        let mut skip = |reason| skipped.push(Skipped { path: path.clone(), reason });
        if is_git_folder(name.as_bytes()) {
            if path != b".git" {
                skip(SkipReason::GitFolder);
            }
            continue;
        }
        if path.len() > MAX_PATH {
            skip(SkipReason::TooLong);
            continue;
        }
        // Of the entry itself: a link is not followed.
        let data = found.metadata().map_err(io_error(found.path()))?;
        let kind = data.file_type();
        if kind.is_dir() {
            walk(root, &path, entries, skipped)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(found.path()).map_err(io_error(found.path()))?;
            let target = Some(target.as_os_str().as_bytes().to_vec());
            entries.push(Entry { mode: 0o120000, path, target });
        } else if kind.is_fifo() {
            skip(SkipReason::Fifo);
        } else if kind.is_socket() {
            skip(SkipReason::Socket);
        } else if !kind.is_file() {
            skip(SkipReason::Device);
        } else if data.len() > MAX_FILE {
            skip(SkipReason::TooLarge);
        } else {
            let mode = if data.mode() & 0o100 != 0 { 0o100755 } else { 0o100644 };
            entries.push(Entry { mode, path, target: None });
        }
    }
    Ok(())
}

/// `.git` in any case, and NTFS's short name for it: git takes none of them into an index.
fn is_git_folder(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    lower == b".git" || lower == b"git~1"
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
