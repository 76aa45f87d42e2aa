//! Room for one piece of work that is no trial (an attempt, a warm session): a slot of the machine, and the GPUs that it needs.

use std::path::Path;

use infradev_sandbox::GpuLease;
use infradev_store::{Made, Sharing, Tree};
use infradev_trial::TrialError;
use tokio::sync::OwnedSemaphorePermit;

use crate::executor::{Executor, ExecutorError};
use crate::progress::Happening;

/// A slot, held until it is dropped.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
    gpus: Option<GpuLease>,
}

impl Slot {
    /// The GPUs that are its own.
    pub fn gpus(&self) -> Vec<u32> {
        self.gpus.as_ref().map(|lease| lease.indices.clone()).unwrap_or_default()
    }
}

impl Executor {
    /// Waits for a slot with this many GPUs.
    ///
    /// # Errors
    /// The person asked for an end, or the machine has fewer GPUs.
    pub async fn slot(&self, gpus: u32) -> Result<Slot, ExecutorError> {
        let Ok(permit) = std::sync::Arc::clone(&self.slots).acquire_owned().await else {
            return Err(TrialError::Cancelled.into());
        };
        if infradev_supervise::cancelled() {
            return Err(TrialError::Cancelled.into());
        }
        Ok(Slot { _permit: permit, gpus: self.gpus(gpus).await? })
    }

    /// A workspace of a base tree whose files may be written.
    ///
    /// # Errors
    /// The disk.
    pub fn workspace(&self, tree: &Tree, into: &Path) -> Result<Made, ExecutorError> {
        Ok(self.trees.workspace(tree, into, Sharing::Private)?)
    }

    /// Tells whoever follows this executor.
    pub fn tell(&self, happening: Happening) {
        self.progress.emit(happening);
    }
}
