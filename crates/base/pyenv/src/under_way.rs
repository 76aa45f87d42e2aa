//! What is being built: the lock of its key, the folder that it is built in, and what killed builders left of both.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use infradev_model::Digest;

use crate::environments::{NAME_DIGITS, create_folder, name_of};
use crate::error::PyenvError;

pub(crate) const BUILDING: &str = ".building-";

/// The file that is locked while what has this name is built.
pub(crate) fn lock_path(root: &Path, name: &str) -> PathBuf {
    root.join(".locks").join(name)
}

/// That file, opened.
pub(crate) fn open(path: &Path) -> Result<File, PyenvError> {
    path.parent().map_or(Ok(()), create_folder)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).open(path).map_err(|e| PyenvError::io("open", path, e))
}

/// Takes the lock of a key, if nobody has it. It ends when the file is closed, so a killed holder holds it no longer.
pub(crate) fn try_hold(root: &Path, key: &Digest) -> Result<Option<File>, PyenvError> {
    let path = lock_path(root, name_of(key));
    let file = open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(PyenvError::io("lock", &path, e)),
    }
}

/// A folder to build in, under a name that nobody takes for a finished one.
pub(crate) fn folder(root: &Path, key: &Digest) -> Result<tempfile::TempDir, PyenvError> {
    let prefix = format!("{BUILDING}{}-", name_of(key));
    let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(root);
    made.map_err(|e| PyenvError::io("create a folder in", root, e))
}

/// Removes folders of this key (its lock is held here), and of every key whose lock is free. Returns those removed.
pub(crate) fn sweep(root: &Path, held: &Digest) -> Vec<PathBuf> {
    let mut swept = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(key) = name.strip_prefix(BUILDING).and_then(|rest| rest.get(..NAME_DIGITS)) else {
            continue;
        };
        let probed = (key != name_of(held)).then(|| open(&lock_path(root, key)));
        let dead = match &probed {
            None => true,
            Some(Ok(lock)) => lock.try_lock().is_ok(),
            Some(Err(_)) => false,
        };
        if dead && fs::remove_dir_all(entry.path()).is_ok() {
            swept.push(entry.path());
        }
    }
    swept
}
