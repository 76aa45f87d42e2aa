//! Repositories by path or url, and golden split from their commits where a task holds no patches of its own.

use std::path::Path;

use infradev_git::{CommitId, GitError, Renames, Repo};
use infradev_model::{BaseSource, Class, Classified, Digest, TaskSpec};
use infradev_patch::{Patch, PathClass, TestPaths};
use infradev_store::{History, Home, Split};

use crate::progress::{Happening, Progress};

/// Why a change could not be split into golden and official tests.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SplitError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the change from {base} to {head}: {why}")]
    Change { base: String, head: String, why: String },
    #[error("the change from {base} to {head} holds no {what}")]
    Nothing { base: String, head: String, what: &'static str },
    #[error("the task names no commits")]
    NoCommits,
}

impl Classified for SplitError {
    fn class(&self) -> Class {
        match self {
            SplitError::Git(error) => error.class(),
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            SplitError::Git(error) => error.hint(),
            SplitError::Nothing { .. } => {
                Some("golden is what lies outside `tests.roots`, the official tests what lies in them".into())
            }
            _ => None,
        }
    }
}

/// A repository at a path, or the store's own mirror of a url, cloned where it is not there yet.
pub fn repository(home: &Home, source: &str, progress: &dyn Progress) -> Result<Repo, GitError> {
    let path = Path::new(source);
    // A url, or the `host:path` form of ssh, has a colon before its first slash.
    let is_url = source.split('/').next().is_some_and(|first| first.contains(':'));
    if path.exists() || !is_url {
        return Repo::open(path);
    }
    let mirror = home.repos().join(format!("{}.git", Digest::of(source.as_bytes()).short()));
    if mirror.exists() {
        return Repo::open(&mirror);
    }
    progress.emit(Happening::Tree(format!("cloning {source}")));
    Repo::clone_mirror(source, &mirror)
}

/// Resolves a revision; a mirror that lacks it is brought up to date first.
pub fn resolve(
    home: &Home,
    source: &str,
    revision: &str,
    progress: &dyn Progress,
) -> Result<(Repo, CommitId), GitError> {
    let repo = repository(home, source, progress)?;
    match repo.resolve(revision) {
        Err(GitError::NoSuchCommit { .. }) if !Path::new(source).exists() => {
            progress.emit(Happening::Tree(format!("fetching {source}")));
            repo.update()?;
        }
        result => return result.map(|commit| (repo, commit)),
    }
    let commit = repo.resolve(revision)?;
    Ok((repo, commit))
}

/// Splits the change between two commits: test trees, `conftest.py`, runner configuration and the named test files are the
/// official part, all else is golden.
pub fn split(
    repo: &Repo,
    base: &CommitId,
    head: &CommitId,
    roots: &[String],
    official: &[String],
) -> Result<Split, SplitError> {
    let wrong = |why: String| SplitError::Change { base: base.to_string(), head: head.to_string(), why };
    let nothing = |what| SplitError::Nothing { base: base.to_string(), head: head.to_string(), what };
    let diff = repo.diff(base, head, Renames::Off)?;
    let patch = Patch::parse(&diff).map_err(|error| wrong(error.to_string()))?;
    let paths = TestPaths::new(roots);
    let is_test = |path: &[u8]| {
        paths.classify(path) != PathClass::Source || official.iter().any(|file| file.as_bytes() == path)
    };
    let split = patch.split(is_test).map_err(|error| wrong(error.to_string()))?;
    if split.source.is_empty() {
        return Err(nothing("change of source files"));
    }
    if split.test.is_empty() {
        return Err(nothing("change of test files"));
    }
    Ok(Split { golden: split.source.to_bytes(), official: split.test.to_bytes() })
}

/// Reads golden from a task's commits.
pub struct Commits<'a> {
    /// The store, for mirrors of urls.
    pub home: &'a Home,
    /// Who is told of clones and fetches.
    pub progress: &'a dyn Progress,
}

impl Commits<'_> {
    fn of(&self, source: &BaseSource, spec: &TaskSpec) -> Result<Split, SplitError> {
        let BaseSource::Commit { repository, base, head } = source else { return Err(SplitError::NoCommits) };
        let (_, base) = resolve(self.home, repository, base, self.progress)?;
        let (repo, head) = resolve(self.home, repository, head, self.progress)?;
        split(&repo, &base, &head, &spec.tests.roots, &spec.tests.official)
    }
}

impl History for Commits<'_> {
    fn split(&self, source: &BaseSource, spec: &TaskSpec) -> Result<Split, Box<dyn Classified>> {
        self.of(source, spec).map_err(|error| Box::new(error) as Box<dyn Classified>)
    }
}
