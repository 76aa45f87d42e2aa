//! Golden calibrations by key: `calibrations/<key>.json`, made once however many runs need one.

use std::path::PathBuf;

use infradev_model::{CALIBRATION_SCHEMA, Calibration, CalibrationKey, format};

use crate::disk::{self, Held};
use crate::error::StoreError;

/// The folder of all calibrations.
#[derive(Debug, Clone)]
pub struct Calibrations {
    root: PathBuf,
}

impl Calibrations {
    /// The calibrations below a folder, usually [`crate::Home::calibrations`].
    pub fn new(root: impl Into<PathBuf>) -> Calibrations {
        Calibrations { root: root.into() }
    }

    /// The calibration of this key, if there is one that this program reads.
    ///
    /// # Errors
    /// A file that is damaged, naming file, line and key. One of an older schema counts as absent.
    pub fn get(&self, key: &CalibrationKey) -> Result<Option<Calibration>, StoreError> {
        let path = self.path(key);
        let Some(bytes) = disk::read_if_there(&path)? else { return Ok(None) };
        let calibration: Calibration = format::json(&path.display().to_string(), &bytes)
            .map_err(|error| error.advise("remove the file: the task is then calibrated anew"))?;
        Ok(Some(calibration).filter(|found| found.schema == CALIBRATION_SCHEMA && found.key == *key))
    }

    /// Takes the lock of this key while a calibration is made, so that two runs make it once: take it, look with
    /// [`Calibrations::get`] again, make it, [`Calibrations::put`] it, drop the lock. `on_wait` is called once before a
    /// wait for another process.
    pub fn lock(&self, key: &CalibrationKey, on_wait: &dyn Fn()) -> Result<Held, StoreError> {
        let locks = self.root.join(".locks");
        disk::create_folder(&locks)?;
        Held::take(&locks.join(key.digest().as_str()), on_wait)
    }

    /// Stores a calibration under its own key, whole or not at all.
    pub fn put(&self, calibration: &Calibration) -> Result<PathBuf, StoreError> {
        disk::create_folder(&self.root)?;
        let path = self.path(&calibration.key);
        disk::write_json(&path, calibration)?;
        Ok(path)
    }

    fn path(&self, key: &CalibrationKey) -> PathBuf {
        self.root.join(format!("{}.json", key.digest()))
    }
}
