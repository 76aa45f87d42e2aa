//! What the store holds: each environment, its size, what it shares, whether it is whole; and what is let go.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use infradev_model::Digest;

use crate::environments::{Environment, Environments, MARKER, Marker, as_it_is};
use crate::error::PyenvError;
use crate::lease;
use crate::under_way::BUILDING;

/// Bytes of a block as `stat` counts them, stat(2).
const BLOCK: u64 = 512;
/// What is being removed, out of everybody's sight.
const REMOVING: &str = ".removing-";

/// An environment of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its key.
    pub key: Digest,
    /// Where it lies.
    pub folder: PathBuf,
    /// For example `3.11.7`.
    pub python_version: String,
    /// Normalised name (PEP 503) to version.
    pub packages: BTreeMap<String, String>,
    /// When it was built.
    pub built: SystemTime,
    /// When it was last asked for.
    pub used: SystemTime,
    /// Whether a process uses it now.
    pub in_use: bool,
}

/// Bytes on the disk, in blocks that files have, a file of several names counted once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Of each environment by its key.
    pub environments: BTreeMap<Digest, Share>,
    /// As if each environment had its files for itself.
    pub apparent: u64,
    /// That they take together.
    pub unique: u64,
    /// Of uv's cache beside what environments have of it.
    pub cache: u64,
}

impl Usage {
    /// What sharing saves.
    pub fn saved(&self) -> u64 {
        self.apparent - self.unique
    }
}

/// What one environment takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes of all its files.
    pub apparent: u64,
    /// Bytes of files that no other environment has.
    pub own: u64,
}

impl Environments {
    /// Whole environments, the one last used first. A folder that is none of ours is passed over.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self) -> Result<Vec<Stored>, PyenvError> {
        let mut stored: Vec<Stored> =
            self.entries()?.into_iter().filter_map(|folder| self.stored(folder)).collect();
        stored.sort_by(|one, other| (other.used, &other.key).cmp(&(one.used, &one.key)));
        Ok(stored)
    }

    /// The one environment whose key begins so.
    ///
    /// # Errors
    /// None does, or several do.
    pub fn find(&self, beginning: &str) -> Result<Stored, PyenvError> {
        let all = self.list()?;
        let keys = || all.iter().map(|stored| stored.key.as_str()[..12].to_owned()).collect();
        let mut found = all.iter().filter(|stored| stored.key.as_str().starts_with(beginning));
        match (found.next(), found.next()) {
            (Some(stored), None) => Ok(stored.clone()),
            (None, _) => Err(PyenvError::Unknown { beginning: beginning.to_owned(), known: keys() }),
            (Some(_), Some(_)) => Err(PyenvError::Ambiguous { beginning: beginning.to_owned() }),
        }
    }

    /// A stored environment with all that a machine needs to run it.
    ///
    /// # Errors
    /// Its interpreter does not run.
    pub fn open(&self, stored: &Stored) -> Result<Environment, PyenvError> {
        let lease = lease::begin(self.root(), &stored.key);
        let mut opened = as_it_is(&stored.folder.join("bin/python"))?;
        (opened.key, opened.fingerprint) = (stored.key.clone(), stored.key.clone());
        opened.lease = lease;
        Ok(opened)
    }

    /// Counts bytes.
    ///
    /// # Errors
    /// The store cannot be read, or the person asked for an end.
    pub fn usage(&self) -> Result<Usage, PyenvError> {
        let mut files: HashMap<(u64, u64), File> = HashMap::new();
        let all = self.list()?;
        let mut environments = BTreeMap::new();
        for (number, stored) in all.iter().enumerate() {
            let mut apparent = HashMap::new();
            walk(&stored.folder, &mut |data| {
                let bytes = data.blocks() * BLOCK;
                apparent.insert((data.dev(), data.ino()), bytes);
                let file = files.entry((data.dev(), data.ino())).or_insert(File {
                    bytes,
                    of: number,
                    shared: false,
                });
                file.shared |= file.of != number;
            })?;
            environments.insert(stored.key.clone(), Share { apparent: apparent.values().sum(), own: 0 });
        }
        for file in files.values().filter(|file| !file.shared) {
            if let Some(share) = environments.get_mut(&all[file.of].key) {
                share.own += file.bytes;
            }
        }
        let mut cached = HashMap::new();
        if self.uv_cache().is_dir() {
            walk(self.uv_cache(), &mut |data| {
                if !files.contains_key(&(data.dev(), data.ino())) {
                    cached.insert((data.dev(), data.ino()), data.blocks() * BLOCK);
                }
            })?;
        }
        Ok(Usage {
            apparent: environments.values().map(|share| share.apparent).sum(),
            unique: files.values().map(|file| file.bytes).sum(),
            cache: cached.values().sum(),
            environments,
        })
    }

    /// Removes environments that were not asked for since so long, and what killed removals left. One that is in use stays,
    /// however old. Of each that goes, `let_go` is told; where it says no, it stays.
    ///
    /// # Errors
    /// A folder cannot be removed.
    pub fn collect(
        &self,
        unused_for: Duration,
        let_go: &mut dyn FnMut(&Stored) -> bool,
    ) -> Result<Vec<Stored>, PyenvError> {
        finish_removals(self.root())?;
        let now = SystemTime::now();
        let old = |stored: &Stored| now.duration_since(stored.used).unwrap_or_default() >= unused_for;
        let mut gone = Vec::new();
        for stored in self.list()?.into_iter().filter(old) {
            // Asked for meanwhile, or in use: it stays.
            let Some(_alone) = lease::alone(self.root(), &stored.key) else { continue };
            if !self.stored(stored.folder.clone()).is_some_and(|now| old(&now)) || !let_go(&stored) {
                continue;
            }
            set_aside(self.root(), &stored.folder)?;
            gone.push(stored);
        }
        finish_removals(self.root())?;
        Ok(gone)
    }

    /// Folders that are no whole environment, each with what it lacks. The next build of the same key replaces such a one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn damaged(&self) -> Result<Vec<(PathBuf, &'static str)>, PyenvError> {
        let lack = |folder: PathBuf| match self.stored(folder.clone()) {
            None => Some((folder, "no infradev-env.json that can be read")),
            Some(_) if !folder.join("bin/python").exists() => Some((folder, "its interpreter is gone")),
            Some(_) => None,
        };
        Ok(self.entries()?.into_iter().filter_map(lack).collect())
    }

    fn entries(&self) -> Result<Vec<PathBuf>, PyenvError> {
        let hidden =
            |folder: &PathBuf| folder.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        Ok(entries_of(self.root())?.into_iter().filter(|folder| !hidden(folder)).collect())
    }

    fn stored(&self, folder: PathBuf) -> Option<Stored> {
        let path = folder.join(MARKER);
        let marker: Marker = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        let built = fs::metadata(&path).ok()?.modified().ok()?;
        let used = fs::metadata(lease::place(self.root(), &marker.key)).and_then(|data| data.modified());
        let in_use = used.is_ok() && lease::alone(self.root(), &marker.key).is_none();
        let Marker { key, python_version, packages, .. } = marker;
        Some(Stored {
            key,
            folder,
            python_version,
            packages,
            built,
            used: used.map_or(built, |used| used.max(built)),
            in_use,
        })
    }
}

/// Takes what is to go out of everybody's sight, by one rename.
pub(crate) fn set_aside(root: &Path, folder: &Path) -> Result<(), PyenvError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let aside = root.join(format!("{REMOVING}{name}"));
    fs::rename(folder, &aside).map_err(|e| PyenvError::io("remove", folder, e))
}

/// Removes what was set aside, now or by those who were killed over it.
pub(crate) fn finish_removals(root: &Path) -> Result<(), PyenvError> {
    for folder in entries_of(root)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(REMOVING) {
            match fs::remove_dir_all(&folder) {
                // Another process removes the same.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.map_err(|e| PyenvError::io("remove", &folder, e))?,
            }
        }
    }
    Ok(())
}

/// Folders of builds and removals that were killed, or are under way.
///
/// # Errors
/// The store cannot be read.
pub fn left_over(root: &Path) -> Result<Vec<PathBuf>, PyenvError> {
    let half = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(REMOVING) || name.starts_with(BUILDING)
    };
    Ok(entries_of(root)?.into_iter().filter(half).collect())
}

fn entries_of(root: &Path) -> Result<Vec<PathBuf>, PyenvError> {
    let read = match fs::read_dir(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|e| PyenvError::io("read", root, e))?,
    };
    Ok(read.flatten().map(|entry| entry.path()).collect())
}

/// A file that environments have.
struct File {
    bytes: u64,
    /// The environment in which it was first seen.
    of: usize,
    /// Whether another has it too.
    shared: bool,
}

/// Every file and folder below one, links not followed.
fn walk(folder: &Path, seen: &mut dyn FnMut(&Metadata)) -> Result<(), PyenvError> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        infradev_supervise::cancelled().then_some(()).map_or(Ok(()), |()| Err(PyenvError::Interrupted))?;
        let entries = match fs::read_dir(&folder) {
            // Removed meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(|e| PyenvError::io("read", &folder, e))?,
        };
        for entry in entries.flatten() {
            let Ok(data) = entry.metadata() else { continue };
            seen(&data);
            if data.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}
