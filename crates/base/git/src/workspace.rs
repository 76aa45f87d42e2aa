//! A fresh repository of one commit, for an agent's workspace: nothing of the fix can be reached from it.

use std::ffi::OsString;
use std::path::Path;

use crate::command::Git;
use crate::error::GitError;
use crate::repo::{CommitId, Repo};

/// Who makes our commits, and when: the same files give the same id.
const IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "InfraDev"),
    ("GIT_AUTHOR_EMAIL", "infradev@localhost"),
    ("GIT_AUTHOR_DATE", "2000-01-01T00:00:00+00:00"),
    ("GIT_COMMITTER_NAME", "InfraDev"),
    ("GIT_COMMITTER_EMAIL", "infradev@localhost"),
    ("GIT_COMMITTER_DATE", "2000-01-01T00:00:00+00:00"),
];

/// Makes the folder a repository on branch `main`, if it is none, and commits all its files, ignored ones too.
///
/// # Errors
/// [`GitError::Failed`] with what git said.
pub fn commit_folder(folder: &Path, message: &str) -> Result<CommitId, GitError> {
    if !folder.join(".git").exists() {
        Git::bare()
            .args(["init", "--quiet", "--template=", "--initial-branch=main", "--"])
            .arg(folder)
            .run()?;
    }
    let repo = Repo::open(folder)?;
    let git = || {
        let mut work_tree = OsString::from("--work-tree=");
        work_tree.push(folder);
        let git = repo.git().arg(work_tree);
        IDENTITY.into_iter().fold(git, |git, (name, value)| git.env(name, value))
    };
    git().args(["add", "--all", "--force", "--", ":/"]).run()?;
    git()
        .args(["commit", "--quiet", "--allow-empty", "--no-verify", "--no-gpg-sign", "-m", message])
        .run()?;
    repo.resolve("HEAD")
}
