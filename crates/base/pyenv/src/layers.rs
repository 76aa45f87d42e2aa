//! Build layers: what is compiled of a tree, kept by what it is compiled from.
//!
//! ```text
//! <root>/<key>/                       a layer, complete from the moment that its name exists
//! <root>/<key>/infradev-layer.json    its files with their digests, what it was built with
//! <root>/<key>/files/                 its files, at their paths in the tree
//! <root>/.building-<key>-…/           one being built, or what a killed builder left; swept by the next build
//! <root>/.locks/, .uses/, .removing-  as in the store of environments
//! ```
//!
//! What a key is made of is the builder's affair; here equal keys are equal layers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use infradev_model::Digest;
use serde::{Deserialize, Serialize};

use crate::environments::{create_folder, name_of};
use crate::error::PyenvError;
use crate::inventory::{finish_removals, set_aside};
use crate::lease::{self, Lease};
use crate::under_way;

const MARKER: &str = "infradev-layer.json";
const MARKER_SCHEMA: u32 = 1;

/// A layer that is ready for use, read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it was built from, and with.
    pub key: Digest,
    /// The folder of its files.
    pub folder: PathBuf,
    /// Its files: path in the tree, with `/`.
    pub files: Vec<String>,
    /// Held so that nobody removes it meanwhile.
    pub lease: Lease,
}

/// One file of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerFile {
    /// Digest of its bytes.
    pub digest: Digest,
    /// How many those are.
    pub bytes: u64,
}

/// What a layer was built with; told to people, and no part of its key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltWith {
    /// The command.
    pub command: Vec<String>,
    /// Compilers that were there, each with its version.
    pub compilers: Vec<String>,
    /// Seconds.
    pub seconds: u64,
    /// Files that were compiled, where ccache counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled: Option<u32>,
    /// Files that came from ccache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Marker {
    schema: u32,
    key: Digest,
    with: BuiltWith,
    files: BTreeMap<String, LayerFile>,
}

/// A layer of the store, whether or not somebody uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLayer {
    /// Its key.
    pub key: Digest,
    /// Where it lies.
    pub folder: PathBuf,
    /// Its files.
    pub files: BTreeMap<String, LayerFile>,
    /// What it was built with.
    pub with: BuiltWith,
    /// When it was last asked for.
    pub used: SystemTime,
    /// Whether a process uses it now.
    pub in_use: bool,
}

impl StoredLayer {
    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }
}

/// The layers below one folder, usually `$INFRADEV_HOME/builds/layers`.
#[derive(Debug, Clone)]
pub struct Layers {
    root: PathBuf,
}

impl Layers {
    /// Opens the store at `root`; the folder is created with the first build.
    pub fn new(root: impl Into<PathBuf>) -> Layers {
        Layers { root: root.into() }
    }

    /// The folder of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The layer of this key, if it is there. From here on it is in use.
    pub fn find(&self, key: &Digest) -> Option<Layer> {
        let lease = lease::begin(&self.root, key);
        let folder = self.root.join(name_of(key));
        let marker = read(&folder).filter(|marker| marker.key == *key)?;
        let folder = folder.join("files");
        Some(Layer { key: key.clone(), folder, files: marker.files.into_keys().collect(), lease })
    }

    /// The sole right to build this layer, if nobody has it. It ends when the file is closed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn try_turn(&self, key: &Digest) -> Result<Option<File>, PyenvError> {
        under_way::try_hold(&self.root, key)
    }

    /// The same; waits for whoever builds it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn turn(&self, key: &Digest) -> Result<File, PyenvError> {
        let path = under_way::lock_path(&self.root, name_of(key));
        let file = under_way::open(&path)?;
        file.lock().map_err(|e| PyenvError::io("lock", &path, e))?;
        Ok(file)
    }

    /// A place to lay the files of a layer. `turn` is the right to build it; what killed builders left is removed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn make(&self, key: &Digest, turn: File) -> Result<Making, PyenvError> {
        create_folder(&self.root)?;
        under_way::sweep(&self.root, key);
        let building = under_way::folder(&self.root, key)?;
        create_folder(&building.path().join("layer/files"))?;
        let lease = lease::begin(&self.root, key);
        let (root, key) = (self.root.clone(), key.clone());
        Ok(Making { root, key, building, lease, files: BTreeMap::new(), _turn: turn })
    }

    /// Whole layers, the one last used first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self) -> Result<Vec<StoredLayer>, PyenvError> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|e| PyenvError::io("read", &self.root, e))?,
        };
        let mut all: Vec<StoredLayer> =
            entries.flatten().filter_map(|entry| self.stored(entry.path())).collect();
        all.sort_by(|one, other| (other.used, &other.key).cmp(&(one.used, &one.key)));
        Ok(all)
    }

    fn stored(&self, folder: PathBuf) -> Option<StoredLayer> {
        let hidden = folder.file_name()?.as_encoded_bytes().starts_with(b".");
        let Marker { key, with, files, .. } = if hidden { None } else { read(&folder) }?;
        let built = fs::metadata(folder.join(MARKER)).and_then(|data| data.modified()).ok()?;
        let used = fs::metadata(lease::place(&self.root, &key)).and_then(|data| data.modified());
        let in_use = used.is_ok() && lease::alone(&self.root, &key).is_none();
        Some(StoredLayer {
            key,
            folder,
            files,
            with,
            used: used.map_or(built, |used| used.max(built)),
            in_use,
        })
    }

    /// Folders that are no whole layer, each with what it lacks. Contents are not read: `verify` does that.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn damaged(&self) -> Result<Vec<(PathBuf, String)>, PyenvError> {
        let whole = self.list()?;
        let mut damaged = Vec::new();
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !hidden && whole.iter().all(|stored| stored.folder != entry.path()) {
                damaged.push((entry.path(), format!("no {MARKER} that can be read")));
            }
        }
        for stored in whole {
            let lacks = |(path, file): &(&String, &LayerFile)| {
                let about = fs::metadata(stored.folder.join("files").join(path));
                about.map_or(true, |about| about.len() != file.bytes)
            };
            if let Some((path, _)) = stored.files.iter().find(lacks) {
                damaged.push((stored.folder.clone(), format!("{path} is not as it was built")));
            }
        }
        Ok(damaged)
    }

    /// Removes layers that were not asked for since so long. One that is in use stays. Of each that goes, `let_go` is told;
    /// where it says no, it stays.
    ///
    /// # Errors
    /// A folder cannot be removed.
    pub fn collect(
        &self,
        unused_for: Duration,
        let_go: &mut dyn FnMut(&StoredLayer) -> bool,
    ) -> Result<Vec<StoredLayer>, PyenvError> {
        finish_removals(&self.root)?;
        let now = SystemTime::now();
        let old = |stored: &StoredLayer| now.duration_since(stored.used).unwrap_or_default() >= unused_for;
        let mut gone = Vec::new();
        for stored in self.list()?.into_iter().filter(old) {
            // Asked for meanwhile, or in use: it stays.
            let Some(_alone) = lease::alone(&self.root, &stored.key) else { continue };
            if !self.stored(stored.folder.clone()).is_some_and(|now| old(&now)) || !let_go(&stored) {
                continue;
            }
            set_aside(&self.root, &stored.folder)?;
            gone.push(stored);
        }
        finish_removals(&self.root)?;
        Ok(gone)
    }

    /// Files of a layer that are not what was built: each with what is wrong, in two or three words.
    ///
    /// # Errors
    /// The person asked for an end.
    pub fn verify(&self, stored: &StoredLayer) -> Result<Vec<(String, &'static str)>, PyenvError> {
        let mut wrong = Vec::new();
        for (path, file) in &stored.files {
            if infradev_supervise::cancelled() {
                return Err(PyenvError::Interrupted);
            }
            match fs::read(stored.folder.join("files").join(path)) {
                Ok(bytes) if Digest::of(&bytes) == file.digest => {}
                Ok(_) => wrong.push((path.clone(), "differs")),
                Err(_) => wrong.push((path.clone(), "missing")),
            }
        }
        Ok(wrong)
    }
}

/// A layer that is being made. Dropped before its end, it leaves nothing.
#[derive(Debug)]
pub struct Making {
    root: PathBuf,
    key: Digest,
    building: tempfile::TempDir,
    lease: Lease,
    files: BTreeMap<String, LayerFile>,
    _turn: File,
}

impl Making {
    /// Takes a copy of a file under its path in the tree, readable by all.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn add(&mut self, path: &str, from: &Path) -> Result<(), PyenvError> {
        use std::os::unix::fs::PermissionsExt;
        let to = self.building.path().join("layer/files").join(path);
        to.parent().map_or(Ok(()), create_folder)?;
        let bytes = fs::read(from).map_err(|e| PyenvError::io("read", from, e))?;
        let written = fs::write(&to, &bytes).and_then(|()| {
            let executable = fs::metadata(from)?.permissions().mode() & 0o100 != 0;
            fs::set_permissions(&to, fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
        });
        written.map_err(|e| PyenvError::io("write", &to, e))?;
        let file = LayerFile { digest: Digest::of(&bytes), bytes: bytes.len() as u64 };
        self.files.insert(path.to_owned(), file);
        Ok(())
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn finish(self, with: BuiltWith) -> Result<Layer, PyenvError> {
        let Making { root, key, building, lease, files, _turn } = self;
        let made = building.path().join("layer");
        let names = files.keys().cloned().collect();
        let marker = Marker { schema: MARKER_SCHEMA, key: key.clone(), with, files };
        let path = made.join(MARKER);
        let json = serde_json::to_vec_pretty(&marker).unwrap_or_default();
        fs::write(&path, json).map_err(|e| PyenvError::io("write", &path, e))?;
        let folder = root.join(name_of(&key));
        if folder.exists() {
            // Damaged: nobody took it for a layer.
            let aside = building.path().join("damaged");
            fs::rename(&folder, &aside).map_err(|e| PyenvError::io("move aside", &folder, e))?;
        }
        fs::rename(&made, &folder).map_err(|e| PyenvError::io("create", &folder, e))?;
        Ok(Layer { key, folder: folder.join("files"), files: names, lease })
    }
}

fn read(folder: &Path) -> Option<Marker> {
    let marker: Marker = serde_json::from_slice(&fs::read(folder.join(MARKER)).ok()?).ok()?;
    (marker.schema == MARKER_SCHEMA).then_some(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(layers: &Layers, key: &Digest, text: &str) -> Layer {
        let from = layers.root().with_file_name("made");
        fs::write(&from, text).unwrap();
        let turn = layers.try_turn(key).unwrap().unwrap();
        let mut making = layers.make(key, turn).unwrap();
        making.add("pkg/a.so", &from).unwrap();
        assert!(layers.find(key).is_none(), "it has its name before it is whole");
        making.finish(BuiltWith::default()).unwrap()
    }

    #[test]
    fn a_layer_appears_whole_and_what_is_dropped_half_way_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let layers = Layers::new(folder.path().join("layers"));
        let (key, other) = (Digest::of(b"one"), Digest::of(b"other"));
        let layer = made(&layers, &key, "built");
        assert_eq!(fs::read_to_string(layer.folder.join("pkg/a.so")).unwrap(), "built");
        assert_eq!(layers.find(&key).unwrap(), layer);
        drop(layers.make(&other, layers.try_turn(&other).unwrap().unwrap()).unwrap());
        assert!(layers.find(&other).is_none());
        let left = fs::read_dir(layers.root())
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(".building-"));
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn one_builds_at_a_time_and_what_a_killed_builder_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let layers = Layers::new(folder.path().join("layers"));
        let key = Digest::of(b"one");
        let turn = layers.try_turn(&key).unwrap().unwrap();
        assert!(layers.try_turn(&key).unwrap().is_none());
        let left = layers.root().join(format!(".building-{}-x", name_of(&Digest::of(b"killed"))));
        fs::create_dir_all(&left).unwrap();
        drop(layers.make(&key, turn).unwrap());
        assert!(!left.exists());
        assert!(layers.try_turn(&key).unwrap().is_some());
    }

    #[test]
    fn a_layer_in_use_is_not_removed_and_a_damaged_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let layers = Layers::new(folder.path().join("layers"));
        let layer = made(&layers, &Digest::of(b"one"), "built");
        assert!(layers.collect(Duration::ZERO, &mut |_| true).unwrap().is_empty());
        let stored = layers.list().unwrap().remove(0);
        assert!(stored.in_use && stored.bytes() == 5, "{stored:?}");
        assert!(layers.verify(&stored).unwrap().is_empty());
        fs::write(layer.folder.join("pkg/a.so"), "other").unwrap();
        assert_eq!(layers.verify(&stored).unwrap(), [("pkg/a.so".to_owned(), "differs")]);
        drop(layer);
        assert_eq!(layers.collect(Duration::ZERO, &mut |_| true).unwrap().len(), 1);
        assert!(layers.list().unwrap().is_empty() && layers.find(&stored.key).is_none());
    }
}
