//! Reads many commits at once: what each says, and what it changed against its first parent.

use std::collections::HashMap;

use crate::command::Git;
use crate::error::GitError;
use crate::private::Private;
use crate::repo::{CommitId, Repo, commit_id};

/// The most files between which renames are looked for by content; those with the same blob are always found.
const RENAME_LIMIT: &str = "-l1000";

/// Ends each commit's message, so that a message can't be taken for what follows.
const FORMAT: &str = "--format=%x00%x00%H%x00%P%x00%T%x00%aI%x00%s%x00%b%x00%x00";

/// One commit of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: CommitId,
    /// Its parents; several for a merge, none for a first commit.
    pub parents: Vec<CommitId>,
    /// Date of the author, ISO 8601 with its zone.
    pub author_date: String,
    /// First paragraph of the message on one line. It may hold control characters.
    pub subject: String,
    /// The rest of the message.
    pub body: String,
    /// What differs from the first parent, in git's order; from nothing for a first commit.
    pub files: Vec<ChangedFile>,
}

/// A file that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// What became of it.
    pub status: FileStatus,
    /// Mode before and after, `0` where it is absent: `0o100644`, `0o100755`, `0o120000` (link), `0o160000` (submodule).
    pub modes: (u32, u32),
    /// Its blob before, if it was there; a commit of another repository for a submodule.
    pub old_blob: Option<String>,
    /// Its blob after, if it is there.
    pub new_blob: Option<String>,
    /// Where it was, for one that was renamed or copied.
    pub old_path: Option<Vec<u8>>,
    /// Where it is, or was last.
    pub path: Vec<u8>,
    /// Lines added and deleted; `None` for a binary file.
    pub lines: Option<(u32, u32)>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    /// It is new.
    Added,
    /// Its content or mode differs.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another path, perhaps another content.
    Renamed,
    /// It is new, and another file's copy.
    Copied,
    /// A file became a link or a submodule, or the reverse.
    Retyped,
}

impl Repo {
    /// The commits on the way of first parents from a revision to the first one, newest first.
    ///
    /// # Errors
    /// [`GitError::NoSuchCommit`], [`GitError::AmbiguousRevision`], [`GitError::ShallowHistory`].
    pub fn main_line(&self, revision: &str) -> Result<Vec<CommitId>, GitError> {
        if self.is_shallow() {
            return Err(GitError::ShallowHistory { repo: self.git_dir().to_path_buf() });
        }
        let head = self.resolve(revision)?;
        let answer = self.git().args(["rev-list", "--first-parent", head.as_str(), "--"]).run()?;
        answer.split(|&b| b == b'\n').filter(|l| !l.is_empty()).map(|l| commit_id("rev-list", l)).collect()
    }

    /// What these commits say and changed, in the order given, by one git process.
    ///
    /// # Errors
    /// [`GitError::NoSuchCommit`] for one that is missing; [`GitError::Failed`] where objects of its trees are.
    pub fn entries(&self, commits: &[CommitId]) -> Result<Vec<Entry>, GitError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        // The repository's own configuration could hide commits, follow one file or order files anew.
        let private = Private::borrowing(Some(self))?;
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let output = private
            .git()
            .args(["log", "--no-walk=unsorted", "--stdin", "--diff-merges=first-parent", "--root"])
            .args(["--raw", "--numstat", "-z", "--no-abbrev", "-M", RENAME_LIMIT])
            .args(["--no-color", "--no-decorate", "--no-ext-diff", "--no-textconv", "--submodule=short"])
            .arg(FORMAT)
            .stdin(asked.into_bytes())
            .output()?;
        if !output.status.success() {
            let said = output.stderr_text();
            if let Some(missing) = commits.iter().find(|commit| said.contains(commit.as_str())) {
                let (revision, repo) = (missing.0.clone(), self.git_dir().to_path_buf());
                return Err(GitError::NoSuchCommit { revision, repo, shallow: self.is_shallow() });
            }
            return Err(crate::command::failed("log", &output));
        }
        let found = read(&output.stdout)?;
        if found.len() != commits.len() || found.iter().zip(commits).any(|(entry, asked)| entry.id != *asked)
        {
            let answer = format!("{} commits for {} that were asked for", found.len(), commits.len());
            return Err(GitError::Unreadable { command: "log", answer });
        }
        Ok(found)
    }

    /// The contents of blobs by id, in the order given, by one git process.
    ///
    /// # Errors
    /// [`GitError::MissingObject`].
    pub fn blobs(&self, ids: &[String]) -> Result<Vec<Vec<u8>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let git: Git = self.git().args(["cat-file", "--batch", "--buffer"]);
        let answer = git.stdin(asked.into_bytes()).run()?;
        let (mut rest, mut found) = (answer.as_slice(), Vec::with_capacity(ids.len()));
        for id in ids {
            let unreadable =
                || GitError::Unreadable { command: "cat-file", answer: format!("nothing of {id}") };
            let end = rest.iter().position(|&b| b == b'\n').ok_or_else(unreadable)?;
            let header = String::from_utf8_lossy(&rest[..end]).into_owned();
            let size = match header.split(' ').collect::<Vec<_>>()[..] {
                [_, "blob", size] => size.parse::<usize>().map_err(|_| unreadable())?,
                _ => {
                    return Err(GitError::MissingObject {
                        id: id.clone(),
                        repo: self.git_dir().to_path_buf(),
                    });
                }
            };
            let content = rest.get(end + 1..end + 1 + size).ok_or_else(unreadable)?;
            found.push(content.to_vec());
            rest = rest.get(end + size + 2..).ok_or_else(unreadable)?;
        }
        Ok(found)
    }
}

/// Reads the answer of `git log` in [`FORMAT`]: the parts of a commit, then `:modes blobs status`, path, …, then
/// `added TAB deleted TAB path`, all ended by NUL. A path is never empty, so an empty part comes between commits only.
fn read(answer: &[u8]) -> Result<Vec<Entry>, GitError> {
    let mut parts = Parts { rest: answer };
    let mut entries = Vec::new();
    while let Some(id) = parts.first_non_empty() {
        let mut word =
            || parts.next().map(|part| String::from_utf8_lossy(part).into_owned()).unwrap_or_default();
        let (parents, _tree) = (word(), word());
        let (author_date, subject, body) = (word(), word(), word());
        let parents = parents
            .split_whitespace()
            .map(|p| commit_id("log", p.as_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let files = files(&mut parts).ok_or_else(|| GitError::Unreadable {
            command: "log",
            answer: String::from_utf8_lossy(id).into_owned(),
        })?;
        let id = commit_id("log", id)?;
        let body = body.trim_end().to_owned();
        entries.push(Entry { id, parents, author_date, subject, body, files });
    }
    Ok(entries)
}

/// The files of one commit; the rest begins with the next commit then.
fn files(parts: &mut Parts<'_>) -> Option<Vec<ChangedFile>> {
    let mut found: Vec<ChangedFile> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    loop {
        parts.skip_empty();
        let Some(part) = parts.peek() else { return Some(found) };
        let part = part.strip_prefix(b"\n").unwrap_or(part);
        if let Some(raw) = part.strip_prefix(b":") {
            parts.next();
            let file = raw_file(std::str::from_utf8(raw).ok()?, parts)?;
            places.insert(file.path.clone(), found.len());
            found.push(file);
        } else if part.contains(&b'\t') {
            parts.next();
            let mut fields = part.splitn(3, |&b| b == b'\t');
            let mut count = || Some(std::str::from_utf8(fields.next()?).ok()?.parse::<u32>().ok());
            let (added, deleted) = (count()?, count()?);
            let mut path = fields.next()?;
            if path.is_empty() {
                parts.next()?;
                path = parts.next()?;
            }
            let file = found.get_mut(*places.get(path)?)?;
            file.lines = added.zip(deleted);
        } else {
            return Some(found);
        }
    }
}

fn raw_file(raw: &str, parts: &mut Parts<'_>) -> Option<ChangedFile> {
    let [old_mode, new_mode, old_blob, new_blob, status] = raw.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let mode = |text: &str| u32::from_str_radix(text, 8).ok();
    let blob = |text: &str| (!text.bytes().all(|b| b == b'0')).then(|| text.to_owned());
    let status = match status.as_bytes().first()? {
        b'A' => FileStatus::Added,
        b'M' => FileStatus::Modified,
        b'D' => FileStatus::Deleted,
        b'R' => FileStatus::Renamed,
        b'C' => FileStatus::Copied,
        b'T' => FileStatus::Retyped,
        _ => return None,
    };
    let first = parts.next()?.to_vec();
    let moved = matches!(status, FileStatus::Renamed | FileStatus::Copied);
    let (old_path, path) = if moved { (Some(first), parts.next()?.to_vec()) } else { (None, first) };
    Some(ChangedFile {
        status,
        modes: (mode(old_mode)?, mode(new_mode)?),
        old_blob: blob(old_blob),
        new_blob: blob(new_blob),
        old_path,
        path,
        lines: None,
    })
}

/// Parts that NULs end.
struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn peek(&self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.rest.split(|&b| b == 0).next()
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let part = self.peek()?;
        self.rest = self.rest.get(part.len() + 1..).unwrap_or_default();
        Some(part)
    }

    fn skip_empty(&mut self) {
        while self.rest.first() == Some(&0) {
            self.rest = &self.rest[1..];
        }
    }

    fn first_non_empty(&mut self) -> Option<&'a [u8]> {
        self.skip_empty();
        self.next()
    }
}
