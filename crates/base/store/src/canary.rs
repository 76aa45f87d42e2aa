//! Which files of a pack have its canary, and which should.

use std::fmt;
use std::path::{Path, PathBuf};

use infradev_model::{Acceptance, BaseSource, Canary, SealedTask, format};

use crate::disk;
use crate::error::StoreError;
use crate::walk::{Kind, walk};

/// The record of an acceptance holds the canary under a key of its own.
const RECORD: &str = "acceptance.json";
/// Files of a task's folder that are sealed.
const SEALED_FILES: [&str; 4] = ["golden.patch", "official.patch", "equivalent.toml", RECORD];
/// Folders of it in which all is sealed.
const SEALED_FOLDERS: [&str; 2] = ["probes", "adversarial"];

/// What is said of a sealed file without the canary.
pub const LACKS_CANARY: &str = "is sealed and lacks the pack's canary";

/// A file that lacks the canary, or that has it and should not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CanaryBreach {
    /// Its path, from the pack's folder where it lies in it.
    pub path: PathBuf,
    /// Whether it is a sealed file, which lacks the canary; else a public one, which has it.
    pub sealed: bool,
}

impl fmt::Display for CanaryBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.sealed { LACKS_CANARY } else { "is public and has the pack's canary" };
        write!(f, "{}: {what}", self.path.display())
    }
}

/// The breaches of one task and of its base tree, sorted; none where the pack has no canary. The task's acceptance record is not
/// looked at: whoever asks is about to write it.
pub fn canary_breaches(task: &SealedTask) -> Result<Vec<CanaryBreach>, StoreError> {
    let Some(canary) = &task.canary else { return Ok(Vec::new()) };
    let root = task.folder.parent().and_then(Path::parent).unwrap_or(&task.folder);
    let mut found = of_folder(canary, root, &task.folder)?;
    found.retain(|breach| !breach.path.ends_with(RECORD));
    if let BaseSource::Folder(tree) = &task.public.base {
        found.extend(of_tree(canary, root, tree)?);
    }
    Ok(found)
}

/// The breaches of a task's folder, its acceptance record among them, sorted.
pub(crate) fn of_folder(
    canary: &Canary,
    root: &Path,
    folder: &Path,
) -> Result<Vec<CanaryBreach>, StoreError> {
    let mut found = Vec::new();
    for path in files(folder)? {
        let sealed = is_sealed(&path);
        let full = folder.join(&path);
        if canary.is_in(&disk::read(&full)?) != sealed {
            found.push(CanaryBreach { path: from(root, &full), sealed });
        }
    }
    found.sort();
    Ok(found)
}

/// The files of a public tree that have the canary, sorted.
pub(crate) fn of_tree(canary: &Canary, root: &Path, tree: &Path) -> Result<Vec<CanaryBreach>, StoreError> {
    let mut found = Vec::new();
    for path in files(tree)? {
        let full = tree.join(path);
        if canary.is_in(&disk::read(&full)?) {
            found.push(CanaryBreach { path: from(root, &full), sealed: false });
        }
    }
    found.sort();
    Ok(found)
}

/// Puts the canary into every sealed file of a task's folder that lacks it and can hold a comment; gives their paths. Files of
/// other kinds, of which a task has none, stay as they are.
pub fn put_canary(canary: &Canary, folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut changed = Vec::new();
    for path in files(folder)?.into_iter().filter(|path| is_sealed(path)) {
        let full = folder.join(&path);
        let bytes = disk::read(&full)?;
        if canary.is_in(&bytes) {
            continue;
        }
        if path == Path::new(RECORD) {
            let mut record: Acceptance = format::json(&full.display().to_string(), &bytes)?;
            record.canary = Some(canary.guid().to_owned());
            disk::write_json(&full, &record)?;
        } else if !takes_a_comment(&path) {
            continue;
        } else {
            disk::write_whole(&full, &canary.put(&path.to_string_lossy(), &bytes))?;
        }
        changed.push(full);
    }
    Ok(changed)
}

/// Plain files below a folder; hidden ones and caches are passed over.
fn files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let keep = |name: &[u8]| !name.starts_with(b".") && name != b"__pycache__";
    let entries = walk(folder, &keep)?;
    Ok(entries
        .into_iter()
        .filter(|entry| matches!(entry.kind, Kind::File { .. }))
        .map(|entry| entry.path)
        .collect())
}

fn is_sealed(path: &Path) -> bool {
    SEALED_FILES.iter().any(|file| path == Path::new(file))
        || SEALED_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn takes_a_comment(path: &Path) -> bool {
    path.extension().is_some_and(|kind| ["py", "toml", "patch", "diff"].iter().any(|known| kind == *known))
}

fn from(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_path_buf()
}
