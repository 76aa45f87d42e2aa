//! Whether an adversarial patch can be tried at all, seen from its files and both trees.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use infradev_model::{Adversarial, PatchedOn};
use infradev_patch::Patch;

use crate::derived::{DeriveError, GoldenChange, applied};

impl GoldenChange<'_> {
    /// Refuses an adversarial patch that cannot be made of golden, or that base does not take.
    ///
    /// # Errors
    /// What is wrong with it, by file and key; the disk.
    pub fn check_adversarial(&self, adversarial: &Adversarial) -> Result<(), DeriveError> {
        let submission = self.adversarial(adversarial)?;
        let (PatchedOn::Base, Some(name)) = (adversarial.spec.on, &adversarial.spec.patch) else {
            return Ok(());
        };
        let path = self.task_folder().join("adversarial").join(name);
        let wrong = |why: String| DeriveError::Adversarial { path: path.clone(), why };
        let patch = Patch::parse(&submission).map_err(|error| wrong(error.to_string()))?;
        let work = self.of_base()?;
        for path in patch.files.iter().flat_map(|file| [&file.old_path, &file.new_path]) {
            work.bring(Path::new(OsStr::from_bytes(path)))?;
        }
        applied(&patch, &work.work())?.map_err(|why| wrong(format!("does not apply to base: {why}")))
    }
}
