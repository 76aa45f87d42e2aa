//! Submodules that a change touches: a diff of files tells nothing of them.

use std::collections::BTreeSet;
use std::path::Path;

use crate::command::Git;
use crate::error::GitError;
use crate::repo::{CommitId, Repo};

/// The mode of a submodule, as git's raw diffs have it.
const SUBMODULE: &[u8] = b"160000";

impl Repo {
    /// The paths of the submodules that one commit has otherwise than another: added, removed, at another commit.
    ///
    /// # Errors
    /// [`GitError::Failed`].
    pub fn changed_submodules(
        &self,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let raw = ["diff-tree", "-r", "-z", "--raw", "--no-renames", base.as_str(), head.as_str(), "--"];
        Ok(touched(&Git::within(self.git_dir()).args(raw).run()?))
    }

    /// The same of a work tree of this repository: a submodule is at the commit that is checked out in it, or else at the one that is
    /// staged.
    ///
    /// # Errors
    /// [`GitError::Failed`].
    pub fn changed_submodules_of_work_tree(
        &self,
        base: &CommitId,
        work: &Path,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let answer = Git::within(self.git_dir())
            .env("GIT_WORK_TREE", work)
            .cwd(work)
            .args(["diff-index", "-z", "--raw", "--no-renames", "--ignore-submodules=dirty"])
            .args([base.as_str(), "--"])
            .run()?;
        Ok(touched(&answer))
    }
}

/// The paths of a raw diff, `:mode SP mode SP id SP id SP status NUL path NUL`, that are submodules on one side or on both.
fn touched(raw: &[u8]) -> BTreeSet<Vec<u8>> {
    let parts: Vec<&[u8]> = raw.split(|byte| *byte == 0).collect();
    let pairs = parts.chunks_exact(2);
    let is_one = |head: &[u8]| {
        let head = head.strip_prefix(b":").unwrap_or(head);
        head.split(|byte| *byte == b' ').take(2).any(|mode| mode == SUBMODULE)
    };
    pairs.filter(|pair| is_one(pair[0])).map(|pair| pair[1].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_are_told_by_their_mode_on_either_side() {
        let raw = b":000000 160000 00 11 A\0vendored\0:100644 100644 00 11 M\x00160000 x\0:160000 000000 11 00 D\0gone\0";
        assert_eq!(touched(raw), BTreeSet::from([b"gone".to_vec(), b"vendored".to_vec()]));
        assert!(touched(b"").is_empty());
    }
}
