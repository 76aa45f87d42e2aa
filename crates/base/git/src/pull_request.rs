//! Finds the commit that a pull request became.

use crate::error::GitError;
use crate::repo::{CommitId, Repo};

impl Repo {
    /// The commit of a merged pull request on the default branch: a squashed commit whose subject ends in `(#N)`, or a
    /// merge commit `Merge pull request #N from …`. Where several carry the number, the newest on the branch's main line
    /// (first parents).
    ///
    /// # Errors
    /// [`GitError::NoSuchPullRequest`]; [`GitError::NoSuchCommit`] in a repository without commits;
    /// [`GitError::AmbiguousPullRequest`] where several carry the number and none is on
    /// the main line.
    pub fn find_pr(&self, number: u64) -> Result<CommitId, GitError> {
        let branch = self.default_branch()?;
        self.resolve(&branch)?;
        let main_line = self.carrying(number, &branch, true)?;
        if let Some(newest) = main_line.into_iter().next() {
            return Ok(newest);
        }
        let mut all = self.carrying(number, &branch, false)?;
        match all.len() {
            0 => Err(GitError::NoSuchPullRequest { number, branch }),
            1 => Ok(all.remove(0)),
            _ => {
                let candidates = all.into_iter().map(|commit| commit.0).collect();
                Err(GitError::AmbiguousPullRequest { number, candidates })
            }
        }
    }

    /// The branch that the origin calls its default, or this repository's own HEAD.
    fn default_branch(&self) -> Result<String, GitError> {
        let origin = "refs/remotes/origin/HEAD";
        let known = self.git().args(["rev-parse", "--verify", "--quiet", origin]).output()?;
        Ok(if known.status.success() { origin.into() } else { "HEAD".into() })
    }

    /// Commits that carry the number, newest first.
    fn carrying(&self, number: u64, branch: &str, main_line: bool) -> Result<Vec<CommitId>, GitError> {
        let mut git = self
            .git()
            .args(["log", "--no-color", "--no-decorate", "--format=%H %s", "--fixed-strings"])
            .arg(format!("--grep=#{number}"));
        if main_line {
            git = git.arg("--first-parent");
        }
        let answer = git.args([branch, "--"]).run()?;
        let text = String::from_utf8_lossy(&answer);
        let commits = text.lines().filter_map(|line| line.split_once(' '));
        let commits = commits.filter(|(_, subject)| pull_request_of(subject) == Some(number));
        Ok(commits.map(|(id, _)| CommitId(id.into())).collect())
    }
}

/// The pull request that a subject names. In `Revert "x (#5)" (#9)` it is the last.
fn pull_request_of(subject: &str) -> Option<u64> {
    if let Some(rest) = subject.strip_prefix("Merge pull request #") {
        return rest.split(' ').next()?.parse().ok();
    }
    let (_, number) = subject.trim_end().strip_suffix(')')?.rsplit_once("(#")?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::pull_request_of;

    #[test]
    fn the_last_number_at_the_end_of_a_subject_counts() {
        assert_eq!(pull_request_of("Fix loss scale (#12)"), Some(12));
        assert_eq!(pull_request_of("Revert \"Fix (#12)\" (#15)"), Some(15));
        assert_eq!(pull_request_of("Merge pull request #7 from a/b"), Some(7));
        assert_eq!(pull_request_of("Follow-up of (#12) in docs"), None);
        assert_eq!(pull_request_of("Close #12"), None);
    }
}
