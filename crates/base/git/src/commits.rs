//! What a commit says and holds.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::error::GitError;
use crate::repo::{CommitId, Repo, TreeId, object_id};

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its id.
    pub id: CommitId,
    /// Its parents; several for a merge, none for a first commit or where a shallow clone is cut off.
    pub parents: Vec<CommitId>,
    /// Its tree.
    pub tree: TreeId,
    /// Date of the author, ISO 8601 with its zone, such as `2026-03-01T12:00:00+01:00`.
    pub author_date: String,
    /// First paragraph of the message on one line.
    pub subject: String,
    /// The rest of the message.
    pub body: String,
}

/// A file of a commit's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// `0o100644`, `0o100755`, `0o120000` (link) or `0o160000` (submodule).
    pub mode: u32,
    /// Id of its blob.
    pub id: String,
    /// Path relative to the tree, as bytes.
    pub path: Vec<u8>,
}

impl Repo {
    /// What a commit says.
    ///
    /// # Errors
    /// [`GitError::Failed`] for an object that is no commit.
    pub fn info(&self, commit: &CommitId) -> Result<CommitInfo, GitError> {
        let answer = self
            .git()
            .args(["log", "-1", "--no-color", "--no-decorate", "--format=%H%x00%P%x00%T%x00%aI%x00%s%x00%b"])
            .arg(commit.as_str())
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let [id, parents, tree, author_date, subject, body] = text.split('\0').collect::<Vec<_>>()[..] else {
            let answer = text.chars().take(200).collect();
            return Err(GitError::Unreadable { command: "log", answer });
        };
        Ok(CommitInfo {
            id: CommitId(id.into()),
            parents: parents.split_whitespace().map(|parent| CommitId(parent.into())).collect(),
            tree: TreeId(tree.into()),
            author_date: author_date.into(),
            subject: subject.into(),
            body: body.trim_end().into(),
        })
    }

    /// The first parent: what the commit was merged into.
    ///
    /// # Errors
    /// [`GitError::NoParent`], which says whether a shallow clone is why.
    pub fn parent(&self, commit: &CommitId) -> Result<CommitId, GitError> {
        let first = self.info(commit)?.parents.into_iter().next();
        first.ok_or_else(|| GitError::NoParent { commit: commit.0.clone(), shallow: self.is_shallow() })
    }

    /// The id of a commit's tree.
    ///
    /// # Errors
    /// [`GitError::Failed`] for an object that is no commit.
    pub fn tree_id(&self, commit: &CommitId) -> Result<TreeId, GitError> {
        let answer = self.git().args(["rev-parse", "--verify"]).arg(format!("{commit}^{{tree}}")).run()?;
        object_id("rev-parse", &answer).map(TreeId)
    }

    /// Every file of a commit's tree, in git's order.
    ///
    /// # Errors
    /// [`GitError::Failed`] for an object that is no commit.
    pub fn ls_tree(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, GitError> {
        let answer = self.git().args(["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]).run()?;
        let records = answer.split(|&b| b == 0).filter(|record| !record.is_empty());
        records.map(|record| entry(record).ok_or_else(|| unreadable("ls-tree", record))).collect()
    }

    /// The content of a file of a commit (the target's text for a link).
    ///
    /// # Errors
    /// [`GitError::NoSuchFile`].
    pub fn show(&self, commit: &CommitId, path: &[u8]) -> Result<Vec<u8>, GitError> {
        let mut name = OsString::from(format!("{commit}:"));
        name.push(OsStr::from_bytes(path));
        let output = self.git().args(["cat-file", "blob"]).arg(name).output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(GitError::NoSuchFile { commit: commit.0.clone(), path: String::from_utf8_lossy(path).into() })
    }
}

/// Reads `mode SP type SP id TAB path`.
fn entry(record: &[u8]) -> Option<TreeEntry> {
    let tab = record.iter().position(|&b| b == b'\t')?;
    let head = std::str::from_utf8(&record[..tab]).ok()?;
    let [mode, _kind, id] = head.split(' ').collect::<Vec<_>>()[..] else { return None };
    let mode = u32::from_str_radix(mode, 8).ok()?;
    Some(TreeEntry { mode, id: id.into(), path: record[tab + 1..].to_vec() })
}

fn unreadable(command: &'static str, answer: &[u8]) -> GitError {
    GitError::Unreadable { command, answer: String::from_utf8_lossy(answer).chars().take(200).collect() }
}
