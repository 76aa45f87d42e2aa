//! A git directory of our own making, which borrows a repository's objects and nothing else of it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::command::Git;
use crate::error::{GitError, io_error};
use crate::repo::{CommitId, Repo};

/// Outranks every `.gitattributes` of a tree: bytes go in and out as they are, and no driver touches a diff.
const ATTRIBUTES: &str = "* -text -ident -filter -working-tree-encoding !eol !diff !merge\n";

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tprotectNTFS = false\n";

/// Whether a diff tells of renames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renames {
    /// As `rename from`/`rename to` (`-M`).
    Detect,
    /// As a deletion and a creation, so that each file stands alone.
    Off,
}

/// The private directory; gone when dropped.
pub(crate) struct Private {
    folder: tempfile::TempDir,
}

impl Private {
    pub(crate) fn borrowing(repo: Option<&Repo>) -> Result<Private, GitError> {
        let folder = tempfile::Builder::new()
            .prefix("infradev-git-")
            .tempdir()
            .map_err(io_error(tempfile::env::temp_dir()))?;
        let private = Private { folder };
        for name in ["objects/info", "objects/pack", "refs/heads", "info", "scratch"] {
            let place = private.path(name);
            fs::create_dir_all(&place).map_err(io_error(&place))?;
        }
        let mut alternates = Vec::new();
        if let Some(repo) = repo {
            alternates.extend(repo.objects().as_os_str().as_bytes());
            alternates.push(b'\n');
        }
        let files: [(&str, &[u8]); 4] = [
            ("HEAD", b"ref: refs/heads/none\n"),
            ("config", CONFIG.as_bytes()),
            ("info/attributes", ATTRIBUTES.as_bytes()),
            ("objects/info/alternates", &alternates),
        ];
        for (name, content) in files {
            let place = private.path(name);
            fs::write(&place, content).map_err(io_error(&place))?;
        }
        Ok(private)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in the private directory, whose work tree is an empty folder unless another is given.
    pub(crate) fn git(&self) -> Git {
        let scratch = self.path("scratch");
        Git::within(self.folder.path()).env("GIT_WORK_TREE", &scratch).cwd(&scratch)
    }

    /// The diff of two trees or commits.
    pub(crate) fn diff(
        &self,
        old: &str,
        new: &str,
        renames: Renames,
        submodules: Submodules,
    ) -> Result<Vec<u8>, GitError> {
        let mut git = self
            .git()
            .args(["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-color", "--no-ext-diff"])
            .args([
                "--no-textconv",
                "--unified=3",
                "--src-prefix=a/",
                "--dst-prefix=b/",
                "--diff-algorithm=myers",
            ])
            .arg(if renames == Renames::Detect { "-M" } else { "--no-renames" });
        if submodules == Submodules::Ignore {
            git = git.arg("--ignore-submodules=all");
        }
        git.args([old, new, "--"]).run()
    }
}

/// Whether a diff tells of submodules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Submodules {
    Show,
    Ignore,
}

impl Repo {
    /// The diff from one commit to another: binary data, full ids, three lines of context, prefixes `a/` and `b/`.
    ///
    /// # Errors
    /// [`GitError::Failed`], for a partial clone that lacks the files with a hint.
    pub fn diff(&self, base: &CommitId, head: &CommitId, renames: Renames) -> Result<Vec<u8>, GitError> {
        Private::borrowing(Some(self))?.diff(base.as_str(), head.as_str(), renames, Submodules::Show)
    }

    /// Writes a commit's tree to a folder that is empty or not there yet: all files byte for byte as committed
    /// (whatever `.gitattributes` says), modes and links kept, submodules as empty folders, no `.git`. Everyone may read
    /// the files, whatever the umask: the code under test has another uid.
    ///
    /// # Errors
    /// [`GitError::Occupied`]; [`GitError::Failed`] or [`GitError::Io`], after which nothing is there.
    pub fn materialise(&self, commit: &CommitId, into: &Path) -> Result<(), GitError> {
        if into.exists() && !is_empty_folder(into) {
            return Err(GitError::Occupied { path: into.into() });
        }
        let parent = into.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(io_error(parent))?;
        let aside = tempfile::Builder::new().prefix(".tree-").tempdir_in(parent).map_err(io_error(parent))?;
        let tree = fs::canonicalize(aside.path()).map_err(io_error(aside.path()))?.join("tree");
        fs::create_dir(&tree).map_err(io_error(&tree))?;
        let private = Private::borrowing(Some(self))?;
        private.git().args(["read-tree", commit.as_str()]).run()?;
        let mut work_tree = OsString::from("--work-tree=");
        work_tree.push(&tree);
        Git::within(private.folder.path())
            .arg(work_tree)
            .cwd(&tree)
            .args(["checkout-index", "--all", "--quiet"])
            .run()?;
        open_to_all(&tree)?;
        fs::rename(&tree, into).map_err(io_error(into))
    }
}

fn is_empty_folder(place: &Path) -> bool {
    fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none())
}

/// Gives folders and programs mode 0755, other files 0644.
fn open_to_all(place: &Path) -> Result<(), GitError> {
    let data = fs::symlink_metadata(place).map_err(io_error(place))?;
    if data.is_symlink() {
        return Ok(());
    }
    let mode = if data.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 };
    if data.permissions().mode() & 0o777 != mode {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).map_err(io_error(place))?;
    }
    if data.is_dir() {
        for entry in fs::read_dir(place).map_err(io_error(place))? {
            open_to_all(&entry.map_err(io_error(place))?.path())?;
        }
    }
    Ok(())
}
