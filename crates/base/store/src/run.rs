//! A run that this process works on, and its trials under way.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use infradev_model::{Digest, GradedSoFar, Run};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk::{self, Held};
use crate::error::StoreError;
use crate::journal::{Damage, Journal};
use crate::removal::remove_tree;
use crate::runs::{FINISHED, GRADES, RunEvent};

pub(crate) const RESULT: &str = "result.json";
/// Bytes of a small file.
const ROOM: usize = 256 << 10;

/// A run that this process works on. Its methods may be called from several threads.
#[derive(Debug)]
pub struct RunFolder {
    folder: PathBuf,
    run: Run,
    journal: Mutex<Journal<RunEvent>>,
    torn: Option<Damage>,
    staged: AtomicU64,
    _held: Held,
}

impl RunFolder {
    pub(crate) fn open(folder: PathBuf, run: Run, held: Held) -> Result<RunFolder, StoreError> {
        held.sign();
        // This process holds the lock, so whoever made these is dead.
        let scratch = folder.join("scratch");
        remove_tree(&scratch).map_err(|e| StoreError::io("sweep", &scratch, e))?;
        disk::create_folder(&folder.join("trials"))?;
        let (mut journal, contents) = Journal::open(&folder.join("journal.jsonl"))?;
        journal.append(&RunEvent::Opened { pid: std::process::id() })?;
        let journal = Mutex::new(journal);
        Ok(RunFolder { folder, run, journal, torn: contents.torn, staged: AtomicU64::new(0), _held: held })
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.run.id
    }

    /// `run.json`.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The part of a journal line that a kill or a full disk left, and that was cut off when the run was opened.
    pub fn torn(&self) -> Option<&Damage> {
        self.torn.as_ref()
    }

    /// Appends to the journal; once this returns, the line survives a kill of this process.
    pub fn record(&self, event: &RunEvent) -> Result<(), StoreError> {
        self.journal.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).append(event)
    }

    /// The record of a finished trial of this run; none where it is not finished, or its record cannot be read (it then
    /// runs again and its record is replaced).
    pub fn finished<R: DeserializeOwned>(&self, key: &Digest) -> Result<Option<R>, StoreError> {
        let bytes = disk::read_if_there(&self.trial_path(key).join(RESULT))?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Where a finished trial's record and logs are.
    pub fn trial_path(&self, key: &Digest) -> PathBuf {
        self.folder.join("trials").join(key.as_str())
    }

    /// Whether the store's disk has room for the next small file.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] where it has not.
    pub fn check_room(&self) -> Result<(), StoreError> {
        let scratch = self.folder.join("scratch");
        disk::create_folder(&scratch)?;
        let write = || tempfile::tempfile_in(&scratch).and_then(|mut file| file.write_all(&[1; ROOM]));
        write().map_err(|e| StoreError::io("write in", &scratch, e))
    }

    /// A fresh folder for a trial under way. Dropped without [`Staging::finish`], it is removed.
    pub fn stage(&self, key: &Digest) -> Result<Staging, StoreError> {
        let number = self.staged.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}-{}", std::process::id(), key.short());
        let path = self.folder.join("scratch").join(name);
        disk::create_folder(&path.join("trial"))?;
        Ok(Staging { path, target: self.trial_path(key) })
    }

    /// Writes a document of the run, such as `grade.json`; whole or not at all.
    pub fn write_document<T: Serialize>(&self, name: &str, document: &T) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(name);
        disk::create_folder(path.parent().unwrap_or(&self.folder))?;
        disk::write_json(&path, document)?;
        Ok(path)
    }

    /// Where grades are written as they are given, begun anew: what an earlier process graded is graded again, of its trials' records.
    pub fn grades(&self) -> Result<Journal<GradedSoFar>, StoreError> {
        let path = self.folder.join(GRADES);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io("remove", &path, e)),
            _ => Ok(Journal::open(&path)?.0),
        }
    }

    /// Writes a file of the run, below its folder; whole or not at all.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(name);
        disk::create_folder(path.parent().unwrap_or(&self.folder))?;
        disk::write_whole(&path, bytes)?;
        Ok(path)
    }

    /// Marks the run as done: it is not resumed any more. What it wrote is flushed to the disk.
    pub fn finish(self) -> Result<(), StoreError> {
        self.record(&RunEvent::Finished)?;
        self.journal.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).flush()?;
        let _ = remove_tree(&self.folder.join("scratch"));
        let finished = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        disk::write_json(&self.folder.join(FINISHED), &serde_json::json!({"schema": 1, "finished": finished}))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // Empty once no trial is under way; what is not is swept when the run is opened again.
        let _ = fs::remove_dir(self.folder.join("scratch"));
    }
}

/// A trial under way.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    target: PathBuf,
}

impl Staging {
    /// Kept with the trial: logs and what else belongs to its record.
    pub fn kept(&self) -> PathBuf {
        self.path.join("trial")
    }

    /// Removed at the end: workspace, sockets, temporary files.
    pub fn scratch(&self) -> &Path {
        &self.path
    }

    /// Writes the record beside what was kept, and gives the folder its final name in one step.
    pub fn finish<R: Serialize>(self, record: &R) -> Result<PathBuf, StoreError> {
        let kept = self.kept();
        disk::write_json(&kept.join(RESULT), record)?;
        if self.target.exists() {
            // An unreadable record, or a second one of the same inputs: the newer counts.
            let aside = self.path.join("replaced");
            fs::rename(&self.target, &aside).map_err(|e| StoreError::io("replace", &self.target, e))?;
        }
        fs::rename(&kept, &self.target).map_err(|e| StoreError::io("create", &self.target, e))?;
        Ok(self.target.clone())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is swept when the run is opened next.
        let _ = remove_tree(&self.path);
    }
}
