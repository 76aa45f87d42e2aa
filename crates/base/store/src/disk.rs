//! Writing so that a reader, after a kill at any instant or on a full disk, finds the old file or the new one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use infradev_supervise::cancelled;
use serde::Serialize;

use crate::error::StoreError;

/// How soon an interrupt is noticed while a lock is waited for.
const LOOK_FOR_INTERRUPT: Duration = Duration::from_millis(100);

/// Creates a folder and those above it.
pub(crate) fn create_folder(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(|e| StoreError::io("create", path, e))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|e| StoreError::io("read", path, e))
}

/// The bytes of a file, or none where there is no such file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StoreError::io("read", path, e)),
    }
}

/// Takes the advisory lock of a file in the store, waiting for whoever has it; `on_wait` is called once before a wait.
///
/// # Errors
/// The file cannot be opened, or the person asked for an end.
pub fn lock(path: &Path, on_wait: &dyn Fn()) -> Result<Held, StoreError> {
    Held::take(path, on_wait)
}

const WRITING: &str = ".writing-";

/// Writes a file under another name in the same folder, then renames it. On any failure nothing is left; what a killed writer
/// left in the folder is removed.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_through(path, |file| file.write_all(bytes))
}

fn write_through(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let fail = |e: std::io::Error| StoreError::io("write", path, e);
    sweep_writings(folder);
    let mut file = begin_writing(folder).map_err(fail)?;
    content(&mut file).map_err(fail)?;
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// A file that is locked while it is written, so that a sweep knows it from a dead writer's.
fn begin_writing(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    loop {
        let file = tempfile::Builder::new().prefix(WRITING).tempfile_in(folder)?;
        match file.as_file().try_lock() {
            // A sweep that came between creation and lock has taken it away.
            Ok(()) if file.as_file().metadata()?.nlink() == 0 => {}
            // One that holds it this moment is about to.
            Err(TryLockError::WouldBlock) => {}
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn sweep_writings(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let abandoned = entry.file_name().to_string_lossy().starts_with(WRITING)
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if abandoned {
            // Another sweep may have been first.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// As [`write_whole`], one JSON document that people can read. It is never in memory as a whole: a trial's may be 40 MB.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    write_through(path, |file| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut file, value)?;
        file.write_all(b"\n")?;
        file.flush()
    })
}

/// An advisory lock (flock) on a file. It ends with the process, however that ends; no child inherits it.
#[derive(Debug)]
pub struct Held {
    file: File,
}

impl Held {
    /// Takes the lock, or says that another process has it.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Held>, StoreError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Held { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(StoreError::io("lock", path, e)),
        }
    }

    /// Whether another process has the lock. Nothing is written, so that it can be asked of a store that is read-only.
    pub(crate) fn by_another(path: &Path) -> Result<bool, StoreError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(StoreError::io("open", path, e)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(StoreError::io("lock", path, e)),
        }
    }

    /// Takes the lock, waiting for whoever has it; `on_wait` is called once before a wait.
    pub(crate) fn take(path: &Path, on_wait: &dyn Fn()) -> Result<Held, StoreError> {
        if let Some(held) = Held::try_take(path)? {
            return Ok(held);
        }
        on_wait();
        let file = open(path)?;
        // On a thread of its own, since an interrupt does not end the system call.
        let (say, hear) = mpsc::channel();
        std::thread::spawn(move || {
            let locked = file.lock().map(|()| Held { file });
            // Nobody hears it after an interrupt: the lock is then dropped.
            let _ = say.send(locked);
        });
        loop {
            match hear.recv_timeout(LOOK_FOR_INTERRUPT) {
                Ok(locked) => return locked.map_err(|e| StoreError::io("wait for the lock", path, e)),
                Err(mpsc::RecvTimeoutError::Timeout) if !cancelled() => {}
                Err(_) => return Err(StoreError::Interrupted { path: path.to_owned() }),
            }
        }
    }

    /// Leaves a word in the file for those who find it locked.
    pub(crate) fn sign(&self) {
        // What it says serves a message only.
        let _ = self.file.set_len(0);
        let _ = (&self.file).write_all(std::process::id().to_string().as_bytes());
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    options.open(path).map_err(|e| StoreError::io("open", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_writer_left_goes_with_the_next_write_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        fs::write(folder.path().join(".writing-dead"), "half").unwrap();
        let under_way = begin_writing(folder.path()).unwrap();
        write_whole(&folder.path().join("a.json"), b"{}").unwrap();
        assert!(under_way.path().exists());
        assert_eq!(names().len(), 2, "{:?}", names());
        under_way.persist(folder.path().join("b.json")).unwrap();
        write_whole(&folder.path().join("a.json"), b"{}").unwrap();
        let mut left = names();
        left.sort();
        assert_eq!(left, ["a.json", "b.json"]);
    }
}
