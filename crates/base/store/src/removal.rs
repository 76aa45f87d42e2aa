//! Removal of folders that others filled, of any depth.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Levels that are removed where they lie. What lies deeper is brought up first, so that no path grows longer than the system
/// takes (8 names of 255 bytes at most), and no more than one folder is open at once.
const LEVELS: usize = 8;

/// Removes a folder and all that is in it, however deep, and where its owner took the right to read or write from folders too. What
/// works in it must have ended. Links are removed, not followed. A folder that is not there is no error.
///
/// # Errors
/// The first thing that could not be removed; the rest is removed all the same.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(data) if !data.is_dir() => return fs::remove_file(folder),
        Ok(_) => open_up(folder),
    }
    // Kept: its own end would remove it by paths that may be too long.
    let raised = tempfile::Builder::new().prefix(".raised-").tempdir_in(folder)?.keep();
    let mut removal = Removal { raised, number: 0, waiting: Vec::new(), failed: None };
    let mut tops: Vec<OsString> = removal.names(folder);
    tops.retain(|name| removal.raised.file_name() != Some(name));
    for name in tops {
        removal.remove(&folder.join(name), 1);
    }
    while let Some(brought_up) = removal.waiting.pop() {
        removal.remove(&brought_up, 1);
    }
    let ended = fs::remove_dir(&removal.raised).and_then(|()| fs::remove_dir(folder));
    removal.failed.map_or(ended, Err)
}

struct Removal {
    /// Where deep folders are brought up to.
    raised: PathBuf,
    /// How many were.
    number: u64,
    /// Those that are still there.
    waiting: Vec<PathBuf>,
    failed: Option<io::Error>,
}

impl Removal {
    fn remove(&mut self, path: &Path, level: usize) {
        match fs::symlink_metadata(path) {
            Ok(data) if data.is_dir() => {
                open_up(path);
                if level >= LEVELS {
                    self.bring_up(path);
                    return;
                }
                for name in self.names(path) {
                    self.remove(&path.join(name), level + 1);
                }
                self.note(fs::remove_dir(path));
            }
            Ok(_) => self.note(fs::remove_file(path)),
            Err(error) => self.note(Err(error)),
        }
    }

    fn bring_up(&mut self, path: &Path) {
        let place = self.raised.join(self.number.to_string());
        self.number += 1;
        match fs::rename(path, &place) {
            Ok(()) => self.waiting.push(place),
            Err(error) => self.note(Err(error)),
        }
    }

    /// All names at once: the folder is closed before what is in it is opened.
    fn names(&mut self, folder: &Path) -> Vec<OsString> {
        let read = fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.file_name())).collect());
        read.unwrap_or_else(|error| {
            self.note(Err(error));
            Vec::new()
        })
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

/// Lets its owner list and change a folder; where that fails, what follows says so.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
}

#[cfg(test)]
mod tests {
    use super::*;

    use infradev_supervise::Invocation;

    #[test]
    fn folders_deeper_than_any_path_and_more_than_may_be_open_at_once_are_removed_and_links_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (top, beside) = (folder.path().join("top"), folder.path().join("beside"));
        fs::create_dir_all(top.join("locked/in")).unwrap();
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(&beside, top.join("link")).unwrap();
        let program = "
import os
for name, times in (('d' * 200, 60), ('e', 1200)):
    os.chdir('TOP')
    for _ in range(times):
        os.mkdir(name)
        os.chdir(name)
        open('file', 'w').close()
"
        .replace("TOP", top.to_str().unwrap());
        let made = Invocation::new("python3").args(["-c", &program]).run().unwrap();
        assert!(made.status.success());
        fs::set_permissions(top.join("locked"), Permissions::from_mode(0o000)).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && beside.join("kept").exists());
        remove_tree(&top).unwrap();
    }
}
