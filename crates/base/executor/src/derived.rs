//! Patches derived from golden: hollow, adversarial ones, golden with one hunk taken back.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use infradev_git::{Base, GitError, capture};
use infradev_model::{Adversarial, Class, Classified, FormatError, HunkAt, PatchedOn, SealedTask};
use infradev_patch::{ApplyError, Patch, PatchError, apply};
use infradev_pycode::{HollowError, Variant, ast_equal, hollow};
use infradev_store::StoreError;

use crate::foreseen::at_key;
use crate::ready::ReadyTask;

/// Why a patch could not be derived.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum DeriveError {
    #[error("{path}: {why}")]
    Golden { path: PathBuf, why: String },
    #[error("{path}: {why}")]
    Adversarial { path: PathBuf, why: String },
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(transparent)]
    Hollow(#[from] HollowError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Classified for DeriveError {
    fn class(&self) -> Class {
        match self {
            DeriveError::Golden { .. } | DeriveError::Adversarial { .. } => Class::BadInput,
            DeriveError::Format(error) => error.class(),
            DeriveError::Hollow(error) => error.class(),
            DeriveError::Git(error) => error.class(),
            DeriveError::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            DeriveError::Format(error) => error.hint(),
            DeriveError::Hollow(error) => error.hint(),
            DeriveError::Git(error) => error.hint(),
            DeriveError::Store(error) => error.hint(),
            DeriveError::Golden { .. } | DeriveError::Adversarial { .. } => None,
        }
    }
}

pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> DeriveError {
    let path = path.to_path_buf();
    move |source| StoreError::io("read or write", &path, source).into()
}

/// Golden with one hunk taken back.
#[derive(Debug, Clone)]
pub struct TakenBack {
    /// Where the hunk stands in golden's tree.
    pub at: HunkAt,
    /// The submission.
    pub patch: Vec<u8>,
}

/// A file that golden changes, with its texts before and after; none where it is not there, or is no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Path in golden's tree, or in base's where golden removes it.
    pub path: String,
    /// Base's text.
    pub base: Option<String>,
    /// Golden's text.
    pub golden: Option<String>,
    /// Whether base or golden has it in bytes that are no UTF-8.
    pub undecoded: bool,
    /// Whether golden has a symbolic link there.
    pub is_link: bool,
    /// Whether golden has nothing there.
    pub is_removed: bool,
}

/// Golden's change on disk: the files that it touches, before and after.
pub struct GoldenChange<'a> {
    task: &'a SealedTask,
    tree: &'a Path,
    patch: Patch,
    folder: tempfile::TempDir,
}

impl<'a> GoldenChange<'a> {
    /// Lays out what golden touches.
    pub fn of(ready: &'a ReadyTask) -> Result<GoldenChange<'a>, DeriveError> {
        GoldenChange::on(&ready.task, &ready.tree.path)
    }

    /// The same for a task whose base tree lies in a folder; no environment is needed.
    pub fn on(task: &'a SealedTask, tree: &'a Path) -> Result<GoldenChange<'a>, DeriveError> {
        let wrong = |why: String| DeriveError::Golden { path: task.folder.join("golden.patch"), why };
        let patch = Patch::parse(&task.golden).map_err(|error| wrong(error.to_string()))?;
        let folder = tempfile::tempdir().map_err(at(&tempfile::env::temp_dir()))?;
        let change = GoldenChange { task, tree, patch, folder };
        change.lay(&change.base_files(), &change.patch)?;
        change.lay(&change.golden_files(), &change.patch)?;
        applied(&change.patch, &change.golden_files())?.map_err(|why| wrong(not_applied(&why)))?;
        Ok(change)
    }

    /// The Python files that golden touches as base has them: path and text, sorted.
    pub fn before(&self) -> Result<Vec<(String, String)>, DeriveError> {
        texts(&self.base_files())
    }

    /// The same as golden has them.
    pub fn after(&self) -> Result<Vec<(String, String)>, DeriveError> {
        texts(&self.golden_files())
    }

    /// The Python files that the test part of the change touches, as it has them.
    pub fn official(&self) -> Result<Vec<(String, String)>, DeriveError> {
        let wrong = |why: String| DeriveError::Golden { path: self.task.folder.join("official.patch"), why };
        let patch = Patch::parse(&self.task.official).map_err(|error| wrong(error.to_string()))?;
        let folder = tempfile::tempdir_in(self.folder.path()).map_err(at(self.folder.path()))?;
        self.lay(folder.path(), &patch)?;
        applied(&patch, folder.path())?.map_err(|why| wrong(not_applied(&why)))?;
        texts(folder.path())
    }

    fn base_files(&self) -> PathBuf {
        self.folder.path().join("old")
    }

    fn golden_files(&self) -> PathBuf {
        self.folder.path().join("new")
    }

    /// Copies base's versions of the files that a patch touches.
    fn lay(&self, into: &Path, patch: &Patch) -> Result<(), DeriveError> {
        fs::create_dir_all(into).map_err(at(into))?;
        for path in patch.files.iter().flat_map(|file| [&file.old_path, &file.new_path]) {
            let relative = Path::new(std::ffi::OsStr::from_bytes(path));
            let target = into.join(relative);
            copy(&self.tree.join(relative), &target).map_err(at(&target))?;
        }
        Ok(())
    }

    /// A fresh copy of base's files, to be changed.
    pub(crate) fn of_base(&self) -> Result<Derivation, DeriveError> {
        Derivation::of(self, &self.base_files())
    }

    /// The folder in which the task's own files are named.
    pub(crate) fn task_folder(&self) -> &Path {
        &self.task.folder
    }

    /// A fresh copy of golden's files, to be changed.
    pub(crate) fn fresh(&self) -> Result<Derivation, DeriveError> {
        Derivation::of(self, &self.golden_files())
    }

    /// The hollow submission; `None` where golden adds no function.
    pub fn hollow(&self, variant: Variant) -> Result<Option<Vec<u8>>, DeriveError> {
        let (base, golden) = (texts(&self.base_files())?, texts(&self.golden_files())?);
        let hollowed = hollow(&base, &golden, variant)?;
        if hollowed.hollowed.is_empty() {
            return Ok(None);
        }
        let work = self.fresh()?;
        for (path, text) in &hollowed.files {
            let target = work.work().join(path);
            fs::write(&target, text).map_err(at(&target))?;
        }
        Ok(Some(work.diff()?))
    }

    /// An adversarial patch as a submission.
    pub fn adversarial(&self, adversarial: &Adversarial) -> Result<Vec<u8>, DeriveError> {
        let folder = self.task.folder.join("adversarial");
        let path = folder.join(format!("{}.toml", adversarial.name));
        let wrong = |why: String| DeriveError::Adversarial { path: path.clone(), why };
        let spec = &adversarial.spec;
        if let Some(bytes) = &adversarial.patch {
            let path = spec.patch.as_ref().map_or_else(|| path.clone(), |patch| folder.join(patch));
            let wrong = |why: String| DeriveError::Adversarial { path: path.clone(), why };
            if spec.on == PatchedOn::Base {
                return Ok(bytes.clone());
            }
            let patch = Patch::parse(bytes).map_err(|error: PatchError| wrong(error.to_string()))?;
            let work = self.fresh()?;
            for path in patch.files.iter().flat_map(|file| [&file.old_path, &file.new_path]) {
                work.bring(Path::new(std::ffi::OsStr::from_bytes(path)))?;
            }
            applied(&patch, &work.work())?.map_err(wrong)?;
            return work.diff();
        }
        let untouched = spec.take_back.iter().position(|file| !self.touches(file.as_bytes()));
        if let Some(index) = untouched {
            let what = format!("golden does not change {}", spec.take_back[index]);
            return Err(at_key(&path, &format!("take_back[{index}]"), what).into());
        }
        let patch = match &spec.take_back[..] {
            [] => None,
            files => Some(self.patch.without_files(files).map_err(|error| wrong(error.to_string()))?),
        };
        let work = match &patch {
            None => self.fresh()?,
            Some(patch) => {
                let work = self.of_base()?;
                applied(patch, &work.work())?.map_err(wrong)?;
                work
            }
        };
        for (index, replacement) in spec.replace.iter().enumerate() {
            let file = &replacement.file;
            let refuse = |key: &str, what: String| at_key(&path, &format!("replace[{index}].{key}"), what);
            work.bring(Path::new(file))?;
            let target = work.work().join(file);
            if goes_through_a_link(&work.work(), Path::new(file)) {
                return Err(refuse("file", format!("`{file}` is a link, or lies below one")).into());
            }
            let text = fs::read_to_string(&target).map_err(|error| {
                let missing = error.kind() == std::io::ErrorKind::NotFound;
                let why = if missing { "golden's tree has no such file".into() } else { error.to_string() };
                refuse("file", format!("`{file}`: {why}"))
            })?;
            match text.matches(&replacement.find).count() {
                1 => {}
                0 => {
                    return Err(refuse("find", format!("this text does not stand in golden's {file}")).into());
                }
                found => {
                    let what = format!("this text stands {found} times in golden's {file}");
                    let hint = "make it longer, so that it stands there once";
                    return Err(refuse("find", what).advise(hint).into());
                }
            }
            fs::write(&target, text.replacen(&replacement.find, &replacement.with, 1))
                .map_err(at(&target))?;
        }
        work.diff()
    }

    /// The files that golden changes, renamed ones by their new paths, in order.
    pub fn files(&self) -> Vec<ChangedFile> {
        let place = |root: PathBuf, path: &[u8]| root.join(std::ffi::OsStr::from_bytes(path));
        let bytes = |root: PathBuf, path: &[u8]| fs::read(place(root, path)).ok();
        let mut files: Vec<ChangedFile> = self
            .patch
            .files
            .iter()
            .map(|change| {
                let kept = fs::symlink_metadata(place(self.golden_files(), &change.new_path)).ok();
                let golden = bytes(self.golden_files(), &change.new_path);
                let path = if kept.is_some() { &change.new_path } else { &change.old_path };
                let [base, golden] = [bytes(self.base_files(), &change.old_path), golden]
                    .map(|side| side.map(String::from_utf8));
                ChangedFile {
                    path: String::from_utf8_lossy(path).into_owned(),
                    undecoded: [&base, &golden].iter().any(|side| matches!(side, Some(Err(_)))),
                    base: base.and_then(Result::ok),
                    golden: golden.and_then(Result::ok),
                    is_link: kept.as_ref().is_some_and(|data| data.is_symlink()),
                    is_removed: kept.is_none(),
                }
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }

    fn touches(&self, path: &[u8]) -> bool {
        self.patch.files.iter().any(|file| file.new_path == path || file.old_path == path)
    }

    /// Golden with each hunk that changes the syntax tree taken back alone.
    pub fn hunks(&self) -> Result<Vec<TakenBack>, DeriveError> {
        let mut found = Vec::new();
        for (file, change) in self.patch.files.iter().enumerate() {
            let path = String::from_utf8_lossy(&change.new_path).into_owned();
            if is_prose(&path) {
                continue;
            }
            for (index, hunk) in change.hunks().iter().enumerate() {
                let Ok(patch) = self.patch.without_hunk(file, index) else { continue };
                let work = tempfile::tempdir_in(self.folder.path()).map_err(at(self.folder.path()))?;
                copy_all(&self.base_files(), work.path()).map_err(at(work.path()))?;
                if applied(&patch, work.path())?.is_err() || self.same(&path, work.path()) {
                    continue;
                }
                let at = HunkAt { file: path.clone(), line: hunk.new_start as u32 };
                found.push(TakenBack { at, patch: patch.to_bytes() });
            }
        }
        Ok(found)
    }

    /// Whether a file means the same as golden's.
    fn same(&self, path: &str, work: &Path) -> bool {
        let (ours, golden) = (fs::read(work.join(path)), fs::read(self.golden_files().join(path)));
        let (Ok(ours), Ok(golden)) = (ours, golden) else { return false };
        if ours == golden {
            return true;
        }
        match (path.ends_with(".py"), String::from_utf8(ours), String::from_utf8(golden)) {
            (true, Ok(ours), Ok(golden)) => ast_equal(&ours, &golden).unwrap_or(false),
            _ => false,
        }
    }
}

/// One submission being derived: base's files and those that will stand in their place.
pub(crate) struct Derivation {
    tree: PathBuf,
    folder: tempfile::TempDir,
}

impl Derivation {
    /// Starts from base's files that golden touches, and from `from` beside them.
    fn of(change: &GoldenChange<'_>, from: &Path) -> Result<Derivation, DeriveError> {
        let folder = tempfile::tempdir_in(change.folder.path()).map_err(at(change.folder.path()))?;
        let this = Derivation { tree: change.tree.to_path_buf(), folder };
        for (from, to) in [(change.base_files().as_path(), this.old()), (from, this.work())] {
            fs::create_dir_all(&to).and_then(|()| copy_all(from, &to)).map_err(at(&to))?;
        }
        Ok(this)
    }

    fn old(&self) -> PathBuf {
        self.folder.path().join("old")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Brings in a file of base that golden leaves alone.
    pub(crate) fn bring(&self, relative: &Path) -> Result<(), DeriveError> {
        let (old, work) = (self.old().join(relative), self.work().join(relative));
        if !old.exists() && !work.exists() {
            for target in [&old, &work] {
                copy(&self.tree.join(relative), target).map_err(at(target))?;
            }
        }
        Ok(())
    }

    /// The submission that makes base's files the changed ones.
    pub(crate) fn diff(&self) -> Result<Vec<u8>, DeriveError> {
        Ok(capture(Base::Folder(&self.old()), &self.work())?.patch)
    }
}

/// Whether a path below a folder is a link or leads through one: what is written there would land elsewhere.
fn goes_through_a_link(root: &Path, relative: &Path) -> bool {
    let parts = relative.ancestors().filter(|part| !part.as_os_str().is_empty());
    parts.into_iter().any(|part| root.join(part).is_symlink())
}

fn not_applied(why: &str) -> String {
    format!("does not apply to base: {why}")
}

/// Applies a patch; the inner error is the patch's own.
pub(crate) fn applied(patch: &Patch, into: &Path) -> Result<Result<(), String>, DeriveError> {
    match apply(patch, into) {
        Ok(_) => Ok(Ok(())),
        Err(ApplyError::Io { path, source, .. }) => Err(at(&into.join(path))(source)),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Whether a file has no say in what a program does.
fn is_prose(path: &str) -> bool {
    [".md", ".rst", ".txt"].iter().any(|ending| path.ends_with(ending))
}

/// Copies a file or link, if it is there.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let Ok(found) = fs::symlink_metadata(from) else { return Ok(()) };
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if found.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    fs::copy(from, to).map(|_| ())
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy_all(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// All Python files below a folder, with their texts.
fn texts(root: &Path) -> Result<Vec<(String, String)>, DeriveError> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let here = root.join(&folder);
        for entry in fs::read_dir(&here).map_err(at(&here))? {
            let entry = entry.map_err(at(&here))?;
            let relative = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(relative);
            } else if relative.extension().is_some_and(|extension| extension == "py")
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                found.push((relative.to_string_lossy().into_owned(), text));
            }
        }
    }
    found.sort();
    Ok(found)
}
