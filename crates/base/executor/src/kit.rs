//! The probe kit: Python that travels inside this program, so that one file is enough on a node.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use infradev_model::{Digest, DigestBuilder};

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
    /// Lays the kit out below `root`, once for each content.
    pub fn lay(root: &Path) -> std::io::Result<Kit> {
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
            let making = root.join(format!(".kit-{}-{}", digest.short(), std::process::id()));
            for (file, bytes) in &files {
                let target = making.join("infradev_probe").join(file);
                std::fs::create_dir_all(target.parent().unwrap_or(&making))?;
                std::fs::write(target, bytes)?;
            }
            // Another process may have been first; its content is the same.
            if std::fs::rename(&making, &path).is_err() {
                let _ = std::fs::remove_dir_all(&making);
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
