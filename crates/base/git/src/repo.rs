//! A repository: opened, cloned, its revisions resolved.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{Git, failed};
use crate::error::{GitError, io_error};

/// The full id of a commit: 40 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(crate) String);

/// The full id of a tree: 40 lower-case hex digits, the same for the same files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub(crate) String);

impl CommitId {
    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TreeId {
    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for CommitId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for TreeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A git repository on this machine, bare or with a work tree.
#[derive(Debug, Clone)]
pub struct Repo {
    git_dir: PathBuf,
    objects: PathBuf,
    shallow: bool,
}

/// How long a clone or fetch may take.
const FETCH_DEADLINE: Duration = Duration::from_secs(2 * 3600);

impl Repo {
    /// Opens the repository at exactly this path: a work tree's top folder, or a git directory. Folders above are not
    /// searched.
    ///
    /// # Errors
    /// [`GitError::NotARepository`], [`GitError::ObjectFormat`].
    pub fn open(path: &Path) -> Result<Repo, GitError> {
        let not_one = || GitError::NotARepository { path: path.display().to_string() };
        let place = fs::canonicalize(path).map_err(|_| not_one())?;
        if !place.is_dir() {
            return Err(not_one());
        }
        let asked = ["rev-parse", "--path-format=absolute", "--git-dir", "--git-path", "objects"];
        let output = Git::bare()
            .cwd(&place)
            .env("GIT_CEILING_DIRECTORIES", place.parent().unwrap_or(&place))
            .args(asked)
            .args(["--is-shallow-repository", "--show-object-format"])
            .output()?;
        if !output.status.success() {
            return Err(not_one());
        }
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let [git_dir, objects, shallow, format] = answer.lines().collect::<Vec<_>>()[..] else {
            return Err(GitError::Unreadable { command: "rev-parse", answer });
        };
        if format != "sha1" {
            return Err(GitError::ObjectFormat { path: place, format: format.into() });
        }
        Ok(Repo { git_dir: git_dir.into(), objects: objects.into(), shallow: shallow == "true" })
    }

    /// Clones every branch and tag of a url or path into a bare repository at `into`, or opens what is there already.
    /// A clone that is cut off leaves nothing at `into`; two at once do no harm.
    ///
    /// # Errors
    /// [`GitError::Fetch`] with what git said, [`GitError::NotARepository`] for a path that is none.
    pub fn clone_mirror(origin: &str, into: &Path) -> Result<Repo, GitError> {
        if into.exists() {
            return Repo::open(into);
        }
        let source: OsString = if is_url(origin) {
            origin.into()
        } else {
            let path = fs::canonicalize(origin);
            path.map_err(|_| GitError::NotARepository { path: origin.into() })?.into()
        };
        let parent = into.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(io_error(parent))?;
        let aside = aside(parent)?;
        let half = aside.path().join("repo");
        let output = remote(Git::bare(), aside.path())?
            .args(["clone", "--quiet", "--mirror", "--template=", "--"])
            .arg(source)
            .arg(&half)
            .output()?;
        if !output.status.success() {
            return Err(GitError::Fetch { origin: origin.into(), stderr: output.stderr_text() });
        }
        match fs::rename(&half, into) {
            Ok(()) => {}
            // Another process was first.
            Err(_) if into.join("HEAD").is_file() => {}
            Err(error) => return Err(io_error(into)(error)),
        }
        Repo::open(into)
    }

    /// Brings a mirror up to date with its origin.
    ///
    /// # Errors
    /// [`GitError::Fetch`].
    pub fn update(&self) -> Result<(), GitError> {
        let aside = tempfile::tempdir().map_err(io_error(tempfile::env::temp_dir()))?;
        let output = remote(self.git(), aside.path())?
            .args(["fetch", "--quiet", "--prune", "--no-auto-gc", "origin", "+refs/*:refs/*"])
            .output()?;
        if output.status.success() {
            Ok(())
        } else {
            Err(GitError::Fetch { origin: "origin".into(), stderr: output.stderr_text() })
        }
    }

    /// The git directory.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The url or path that it was cloned from, where its configuration says so.
    pub fn origin(&self) -> Option<String> {
        let output = self.git().args(["config", "--get", "remote.origin.url"]).output().ok()?;
        let url = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && !url.is_empty()).then_some(url)
    }

    /// Its history is cut off (`git clone --depth`).
    pub fn is_shallow(&self) -> bool {
        self.shallow
    }

    pub(crate) fn objects(&self) -> &Path {
        &self.objects
    }

    pub(crate) fn git(&self) -> Git {
        Git::within(&self.git_dir)
    }

    /// The commit that a revision names: a branch, a tag, a full or short id, `main~3`.
    ///
    /// # Errors
    /// [`GitError::NoSuchCommit`], [`GitError::AmbiguousRevision`].
    pub fn resolve(&self, revision: &str) -> Result<CommitId, GitError> {
        if revision.contains('\0') {
            let (revision, repo) = (revision.replace('\0', "\\0"), self.git_dir.clone());
            return Err(GitError::NoSuchCommit { revision, repo, shallow: self.shallow });
        }
        let output = self
            .git()
            .args(["rev-parse", "--verify", "--end-of-options"])
            .arg(format!("{revision}^{{commit}}"))
            .output()?;
        if output.status.success() {
            return commit_id("rev-parse", &output.stdout);
        }
        let repo = self.git_dir.clone();
        let revision = revision.to_string();
        Err(if output.stderr_text().contains("is ambiguous") {
            GitError::AmbiguousRevision { revision, repo }
        } else {
            GitError::NoSuchCommit { revision, repo, shallow: self.shallow }
        })
    }

    /// The best common ancestor of two commits.
    ///
    /// # Errors
    /// [`GitError::NoMergeBase`].
    pub fn merge_base(&self, one: &CommitId, other: &CommitId) -> Result<CommitId, GitError> {
        let output = self.git().args(["merge-base", one.as_str(), other.as_str()]).output()?;
        match output.status {
            infradev_supervise::Exit::Code(1) => {
                Err(GitError::NoMergeBase { one: one.0.clone(), other: other.0.clone() })
            }
            status if status.success() => commit_id("merge-base", &output.stdout),
            _ => Err(failed("merge-base", &output)),
        }
    }
}

/// A url, or the `host:path` form of ssh.
/// A folder to clone into, on the file system of `parent`: the process's own temporary folder where that is on it, since it is
/// swept after a kill.
fn aside(parent: &Path) -> Result<tempfile::TempDir, GitError> {
    let own = tempfile::env::temp_dir();
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let place = if device(&own) == device(parent) { own.as_path() } else { parent };
    tempfile::Builder::new().prefix(".clone-").tempdir_in(place).map_err(io_error(place))
}

fn is_url(origin: &str) -> bool {
    if origin.contains("://") {
        return true;
    }
    match (origin.find(':'), origin.find('/')) {
        (Some(colon), Some(slash)) => colon < slash,
        (Some(_), None) => !Path::new(origin).exists(),
        _ => false,
    }
}

/// A command that talks to another repository. The process that serves a local one reads no `-c` of ours, so it must find
/// `safe.directory` in a file.
fn remote(git: Git, aside: &Path) -> Result<Git, GitError> {
    let config = aside.join("gitconfig");
    fs::write(&config, "[safe]\n\tdirectory = *\n").map_err(io_error(&config))?;
    let passed = [
        "HOME",
        "SSH_AUTH_SOCK",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "GIT_SSL_CAINFO",
        "GIT_SSH_COMMAND",
    ];
    let git = passed.into_iter().fold(git, Git::inherit_env);
    let git = git.env("GIT_CONFIG_GLOBAL", config).env("GIT_ASKPASS", "/bin/false");
    Ok(git.deadline(FETCH_DEADLINE))
}

pub(crate) fn commit_id(command: &'static str, answer: &[u8]) -> Result<CommitId, GitError> {
    object_id(command, answer).map(CommitId)
}

/// The object id that an answer consists of.
pub(crate) fn object_id(command: &'static str, answer: &[u8]) -> Result<String, GitError> {
    let text = String::from_utf8_lossy(answer);
    let id = text.trim_end_matches('\n');
    if id.len() == 40 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(id.to_string());
    }
    Err(GitError::Unreadable { command, answer: text.chars().take(200).collect() })
}
