//! Which environments are in use: a shared lock a user, so that what is removed is nobody's.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use infradev_model::Digest;

use crate::environments::name_of;

/// Held as long as an environment is used. It ends with its process, however that ends. In a store that cannot be written there
/// is none: nobody can remove anything there either.
#[derive(Debug, Clone, Default)]
pub struct Lease(Option<Arc<File>>);

impl Lease {
    /// Whether it keeps anybody from removing the environment.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

/// One use of an environment is like another.
impl PartialEq for Lease {
    fn eq(&self, _: &Lease) -> bool {
        true
    }
}

impl Eq for Lease {}

/// The file whose lock users share, and whose time is that of the last use.
pub(crate) fn place(root: &Path, key: &Digest) -> PathBuf {
    root.join(".uses").join(name_of(key))
}

/// Begins a use, and notes when. Waits while the environment is being removed, which takes one rename.
pub(crate) fn begin(root: &Path, key: &Digest) -> Lease {
    let path = place(root, key);
    let opened = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| open(&path));
    let held = opened.and_then(|file| {
        file.lock_shared()?;
        // Where the time cannot be set, the environment merely looks older.
        let _ = file.set_modified(SystemTime::now());
        Ok(file)
    });
    Lease(held.ok().map(Arc::new))
}

/// The sole use of an environment, for its removal; none while somebody uses it.
pub(crate) fn alone(root: &Path, key: &Digest) -> Option<Lease> {
    let path = place(root, key);
    fs::create_dir_all(path.parent()?).ok()?;
    let file = open(&path).ok()?;
    file.try_lock().ok().map(|()| Lease(Some(Arc::new(file))))
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}
