//! The probe kit: Python that travels inside this program, so that one file is enough on a node.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use infradev_model::{Digest, DigestBuilder};
use infradev_store::{Home, StoreError};

static KIT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../../python/infradev_probe");
/// Hashed lock of the judge's environment.
pub static JUDGE_LOCK: &[u8] = include_bytes!("../../../../python/judge.lock");

/// The kit on disk.
#[derive(Debug, Clone)]
pub struct Kit {
    /// The folder that holds `infradev_probe`; goes on `sys.path`.
    pub path: PathBuf,
    /// Digest of all its files.
    pub digest: Digest,
}

impl Kit {
    /// Lays the kit out among the store's builds, once for each content; it appears under its name whole.
    ///
    /// # Errors
    /// The store cannot be written, or its disk is full.
    pub fn lay(home: &Home) -> Result<Kit, StoreError> {
        let root = home.builds();
        let mut files: Vec<(&Path, &[u8])> = Vec::new();
        collect(&KIT, &mut files);
        files.sort();
        let mut digest = DigestBuilder::new("infradev kit v1");
        for (path, bytes) in &files {
            digest.part(&path.to_string_lossy(), bytes);
        }
        let digest = digest.finish();
        let path = root.join(format!("kit-{}", digest.short()));
        if !path.join("infradev_probe").is_dir() {
            let room = home.scratch()?;
            let making = room.path().join("kit");
            for (file, bytes) in &files {
                let target = making.join("infradev_probe").join(file);
                let folder = target.parent().unwrap_or(&making);
                std::fs::create_dir_all(folder)
                    .and_then(|()| std::fs::write(&target, bytes))
                    .map_err(|error| StoreError::io("write", &target, error))?;
            }
            std::fs::create_dir_all(&root).map_err(|error| StoreError::io("create", &root, error))?;
            if let Err(error) = std::fs::rename(&making, &path) {
                // Another process may have been first; its content is the same.
                if !path.join("infradev_probe").is_dir() {
                    return Err(StoreError::io("create", &path, error));
                }
            }
        }
        Ok(Kit { path, digest })
    }
}

fn collect(dir: &'static Dir<'static>, into: &mut Vec<(&'static Path, &'static [u8])>) {
    for file in dir.files() {
        if file.path().extension().is_some_and(|ext| ext == "py" || ext == "typed") {
            into.push((file.path(), file.contents()));
        }
    }
    dir.dirs().for_each(|dir| collect(dir, into));
}
