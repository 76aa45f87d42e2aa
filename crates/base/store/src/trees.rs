//! Base trees, materialised once by content, and workspaces made from them.
//!
//! ```text
//! builds/trees/<digest>/           the tree: files 0644 or 0755, links as they are
//! builds/trees/<digest>.seen       sizes and times of its files when it was made
//! builds/trees/commits/<commit>    the digest of a commit's tree
//! builds/trees/derived/<digest>-…  what is made of a tree once, such as its bytecode
//! builds/trees/.making-…           one being made, or what a killed process left
//! ```
//!
//! A workspace shares its files with the tree where the file system has no reflinks: whoever changes one must write a new
//! file and rename it over, never open it for writing, nor change its owner or mode. Folders are the workspace's own. A
//! tree whose files were changed all the same is noticed by their times and made anew.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use infradev_model::{Digest, DigestBuilder};

use crate::disk::{self, Held};
use crate::error::StoreError;
use crate::walk::{Entry, Kind, walk};

const MAKING: &str = ".making-";

/// The folder of materialised trees.
#[derive(Debug, Clone)]
pub struct Trees {
    root: PathBuf,
}

/// A materialised tree; read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Digest of paths, modes and contents.
    pub digest: Digest,
    /// Its folder.
    pub path: PathBuf,
}

/// How a workspace may get its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Reflinks where the file system has them, else hard links, else copies.
    Links,
    /// Reflinks or copies: for a workspace whose files are opened for writing (an agent's, a sandbox of kind `none`).
    Private,
}

/// How a workspace's files were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    /// Shared blocks, a file of its own.
    pub reflinked: usize,
    /// The same file under another name.
    pub hard_linked: usize,
    /// Bytes copied.
    pub copied: usize,
}

impl Trees {
    /// The trees below a folder, usually `trees` in [`crate::Home::builds`].
    pub fn new(root: impl Into<PathBuf>) -> Trees {
        Trees { root: root.into() }
    }

    /// The tree of a bundled folder as it is now. Left out are what running code and tools leave behind: `.git`,
    /// `__pycache__`, `*.pyc`, `.pytest_cache`, `.ruff_cache`, `.mypy_cache`.
    pub fn of_folder(&self, folder: &Path) -> Result<Tree, StoreError> {
        let entries = walk(folder, &|name| !is_left_behind(name))?;
        let digest = digest_of(folder, &entries)?;
        if let Some(tree) = self.whole(&digest) {
            return Ok(tree);
        }
        let making = self.making()?;
        lay(folder, &entries, making.path(), Method::Copy)?;
        // The folder may have changed since it was digested: what counts is what was laid.
        self.adopt(making)
    }

    /// The tree of a commit. `commit` is its full id; `fill` writes the tree into an empty folder and is called only
    /// where the tree is not there yet.
    pub fn of_commit(
        &self,
        commit: &str,
        fill: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<Tree, StoreError> {
        let named = self.root.join("commits").join(commit);
        if let Some(bytes) = disk::read_if_there(&named)?
            && let Ok(digest) = serde_json::from_slice::<Digest>(&bytes)
            && let Some(tree) = self.whole(&digest)
        {
            return Ok(tree);
        }
        let making = self.making()?;
        fill(making.path())?;
        let tree = self.adopt(making)?;
        disk::create_folder(&self.root.join("commits"))?;
        disk::write_json(&named, &tree.digest)?;
        Ok(tree)
    }

    /// What is made of a tree once and kept under `name`. `make` writes it into an empty folder.
    pub fn derived(
        &self,
        tree: &Tree,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<PathBuf, StoreError> {
        let folder = self.root.join("derived");
        let path = folder.join(format!("{}-{name}", tree.digest));
        if path.is_dir() {
            return Ok(path);
        }
        let making = self.making()?;
        make(making.path())?;
        disk::create_folder(&folder)?;
        let _alone = Held::take(&self.root.join(".lock"), &|| ())?;
        if !path.is_dir() {
            fs::rename(making.path(), &path).map_err(|e| StoreError::io("create", &path, e))?;
        }
        Ok(path)
    }

    /// Makes a workspace of a tree in `into`, which must be empty or not there.
    pub fn workspace(&self, tree: &Tree, into: &Path, sharing: Sharing) -> Result<Made, StoreError> {
        let entries = walk(&tree.path, &|_| true)?;
        disk::create_folder(into)?;
        let method = if sharing == Sharing::Links { Method::Link } else { Method::Private };
        lay(&tree.path, &entries, into, method)
    }

    /// The tree under its final name, if it is there and as it was made.
    fn whole(&self, digest: &Digest) -> Option<Tree> {
        let path = self.root.join(digest.as_str());
        let seen = fs::read(self.seen_path(digest)).ok()?;
        let now = seen_of(&walk(&path, &|_| true).ok()?);
        (seen == now.as_str().as_bytes()).then(|| Tree { digest: digest.clone(), path })
    }

    fn seen_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("{digest}.seen"))
    }

    /// A fresh folder beside the trees. Folders that killed processes left are removed.
    fn making(&self) -> Result<Making, StoreError> {
        disk::create_folder(&self.root)?;
        let alone = Held::take(&self.root.join(".lock"), &|| ())?;
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let abandoned = name.to_string_lossy().starts_with(MAKING)
                && matches!(Held::try_take(&entry.path().join("lock")), Ok(Some(_)));
            if abandoned {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = tempfile::Builder::new()
            .prefix(MAKING)
            .permissions(PermissionsExt::from_mode(0o755))
            .tempdir_in(&self.root)
            .map_err(|e| StoreError::io("create a folder in", &self.root, e))?;
        let held = Held::take(&folder.path().join("lock"), &|| ())?;
        drop(alone);
        let tree = folder.path().join("tree");
        disk::create_folder(&tree)?;
        Ok(Making { tree, folder, _held: held })
    }

    /// Gives what was made its final name. Of two processes that make the same tree, one wins and both are right.
    fn adopt(&self, making: Making) -> Result<Tree, StoreError> {
        for entry in walk(making.path(), &|_| true)? {
            let wanted = match entry.kind {
                Kind::Folder => 0o755,
                Kind::File { executable } => mode_of(executable),
                Kind::Link { .. } => continue,
            };
            if entry.metadata.mode() & 0o7777 != wanted {
                set_mode(&making.path().join(&entry.path), wanted)?;
            }
        }
        let entries = walk(making.path(), &|_| true)?;
        let digest = digest_of(making.path(), &entries)?;
        let path = self.root.join(digest.as_str());
        let _alone = Held::take(&self.root.join(".lock"), &|| ())?;
        if let Some(tree) = self.whole(&digest) {
            return Ok(tree);
        }
        if path.exists() {
            // Made by a process that was killed before it noted the times, or changed since.
            let aside = making.folder.path().join("changed");
            fs::rename(&path, &aside).map_err(|e| StoreError::io("replace", &path, e))?;
        }
        fs::rename(making.path(), &path).map_err(|e| StoreError::io("create", &path, e))?;
        disk::write_whole(&self.seen_path(&digest), seen_of(&entries).as_str().as_bytes())?;
        Ok(Tree { digest, path })
    }
}

struct Making {
    tree: PathBuf,
    folder: tempfile::TempDir,
    _held: Held,
}

impl Making {
    fn path(&self) -> &Path {
        &self.tree
    }
}

fn is_left_behind(name: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b".git", b"__pycache__", b".pytest_cache", b".ruff_cache", b".mypy_cache"];
    names.contains(&name) || name.ends_with(b".pyc")
}

/// Digest of a folder's content as it is now, without what running code and tools leave behind.
pub fn folder_digest(folder: &Path) -> Result<Digest, StoreError> {
    digest_of(folder, &walk(folder, &|name| !is_left_behind(name))?)
}

/// Digest of paths, kinds and contents. Of the mode only the owner's execute bit counts, as in git; empty folders don't.
fn digest_of(root: &Path, entries: &[Entry]) -> Result<Digest, StoreError> {
    let mut digest = DigestBuilder::new("infradev tree v1");
    for entry in entries {
        let (kind, content): (&[u8], Vec<u8>) = match &entry.kind {
            Kind::Folder => continue,
            Kind::File { executable: false } => (b"file", disk::read(&root.join(&entry.path))?),
            Kind::File { executable: true } => (b"executable", disk::read(&root.join(&entry.path))?),
            Kind::Link { target } => {
                (b"link", std::os::unix::ffi::OsStrExt::as_bytes(target.as_os_str()).to_vec())
            }
        };
        let path = std::os::unix::ffi::OsStrExt::as_bytes(entry.path.as_os_str());
        digest.part("path", path).part("kind", kind).part("content", &content);
    }
    Ok(digest.finish())
}

/// Digest of what changes when a file is written in place: size, time of the last change of content, mode, owner.
fn seen_of(entries: &[Entry]) -> Digest {
    let mut digest = DigestBuilder::new("infradev tree seen v1");
    for entry in entries.iter().filter(|entry| entry.kind != Kind::Folder) {
        let m = &entry.metadata;
        let times = [m.size() as i64, m.mtime(), m.mtime_nsec(), i64::from(m.mode()), i64::from(m.uid())];
        let bytes: Vec<u8> = times.iter().flat_map(|number| number.to_le_bytes()).collect();
        digest
            .part("path", std::os::unix::ffi::OsStrExt::as_bytes(entry.path.as_os_str()))
            .part("stat", &bytes);
    }
    digest.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Copy,
    Private,
    Link,
}

/// Lays entries of `from` into `into`. What the file system cannot do is found out once and not tried again.
fn lay(from: &Path, entries: &[Entry], into: &Path, method: Method) -> Result<Made, StoreError> {
    let mut made = Made::default();
    let (mut reflinks, mut hard_links) = (method != Method::Copy, method == Method::Link);
    for entry in entries {
        let (source, target) = (from.join(&entry.path), into.join(&entry.path));
        let fail = |e: std::io::Error| StoreError::io("create", &target, e);
        match &entry.kind {
            Kind::Folder => fs::create_dir(&target).map_err(fail)?,
            Kind::Link { target: to } => symlink(to, &target).map_err(fail)?,
            Kind::File { executable } => {
                if reflinks {
                    match reflink_copy::reflink(&source, &target) {
                        Ok(()) => {
                            set_mode(&target, mode_of(*executable))?;
                            made.reflinked += 1;
                            continue;
                        }
                        Err(_) => reflinks = false,
                    }
                }
                if hard_links {
                    match fs::hard_link(&source, &target) {
                        Ok(()) => {
                            made.hard_linked += 1;
                            continue;
                        }
                        // Too many links to this one file: the next may still be linked.
                        Err(e) if e.kind() == std::io::ErrorKind::TooManyLinks => {}
                        Err(_) => hard_links = false,
                    }
                }
                fs::copy(&source, &target).map_err(fail)?;
                set_mode(&target, mode_of(*executable))?;
                made.copied += 1;
            }
        }
    }
    Ok(made)
}

fn mode_of(executable: bool) -> u32 {
    if executable { 0o755 } else { 0o644 }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), StoreError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|e| StoreError::io("write", path, e))
}
