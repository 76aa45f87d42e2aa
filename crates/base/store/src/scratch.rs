//! Room for what one process makes and needs no longer than it lives.
//!
//! ```text
//! scratch/.lock          held for moments, while a folder is made or swept
//! scratch/<pid>-…/lock   held (flock) by the process whose folder it is
//! ```
//!
//! A killed process leaves its folder; the next one that asks for room removes it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::disk::{self, Held};
use crate::error::StoreError;
use crate::home::Home;

/// A folder of this process's own, on the store's file system. Dropped, it is removed.
#[derive(Debug)]
pub struct Scratch {
    folder: tempfile::TempDir,
    _held: Held,
}

impl Scratch {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Home {
    /// Room for this process; what dead ones left is removed.
    ///
    /// # Errors
    /// The store cannot be written, or its disk is full.
    pub fn scratch(&self) -> Result<Scratch, StoreError> {
        let root = self.scratch_root();
        disk::create_folder(&root)?;
        let _alone = Held::take(&root.join(".lock"), &|| ())?;
        sweep(&root);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{}-", std::process::id()))
            .tempdir_in(&root)
            .map_err(|e| StoreError::io("create a folder in", &root, e))?;
        let held = Held::take(&folder.path().join("lock"), &|| ())?;
        Ok(Scratch { folder, _held: held })
    }

    fn scratch_root(&self) -> PathBuf {
        self.root().join("scratch")
    }
}

/// Removes folders whose process is dead. What cannot be removed now is tried again by the next process.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && matches!(Held::try_take(&path.join("lock")), Ok(Some(_))) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(home: &Home) -> usize {
        fs::read_dir(home.scratch_root()).unwrap().flatten().filter(|entry| entry.path().is_dir()).count()
    }

    #[test]
    fn room_lasts_as_long_as_it_is_held_and_what_a_dead_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        // As one that was killed leaves it: a lock that nobody holds, or none yet.
        let (killed, half) = (home.scratch_root().join("12-abc"), home.scratch_root().join("13-abc"));
        fs::create_dir_all(killed.join("deep")).unwrap();
        fs::write(killed.join("lock"), "").unwrap();
        fs::create_dir(&half).unwrap();
        let first = home.scratch().unwrap();
        assert!(!killed.exists() && !half.exists());
        let second = home.scratch().unwrap();
        assert_eq!(folders(&home), 2);
        assert!(first.path().is_dir() && second.path().is_dir());
        drop(first);
        assert_eq!(folders(&home), 1);
        drop(second);
        assert_eq!(folders(&home), 0);
    }
}
