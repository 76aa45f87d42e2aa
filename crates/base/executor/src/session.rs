//! Warm sessions: golden's tree and the framework kept ready for many variants.

use std::path::Path;
use std::sync::Arc;

use infradev_model::{Digest, DigestBuilder};
use infradev_sandbox::GpuLease;
use infradev_trial::{Session, TrialError};
use tokio::sync::OwnedSemaphorePermit;

use crate::executor::{Executor, ExecutorError};
use crate::ready::ReadyTask;

/// One of the executor's slots with its GPUs, held for a session until it is dropped.
pub struct HeldSlot {
    _slot: OwnedSemaphorePermit,
    _gpus: Option<GpuLease>,
}

impl Executor {
    /// How many trials, or sessions, run at once.
    pub fn slot_count(&self) -> usize {
        self.slots_in_all
    }

    /// A warm session on a task's golden patch, in the next free slot. `scratch` is a folder of its own.
    pub async fn session(
        &self,
        ready: &ReadyTask,
        scratch: &Path,
    ) -> Result<(Session, HeldSlot), ExecutorError> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| TrialError::Cancelled)?;
        let gpus = self.gpus(ready.task.public.spec.gpus).await?;
        let world = ready.task.public.spec.worlds.first().copied().unwrap_or(1);
        let mut spec = self.bare(ready, ready.task.golden.clone(), world, scratch);
        spec.gpus = gpus.as_ref().map(|lease| lease.indices.clone()).unwrap_or_default();
        let session = Session::open(spec).await?;
        Ok((session, HeldSlot { _slot: slot, _gpus: gpus }))
    }

    /// Digest of all that decides what a session finds, the variants apart.
    pub fn session_key(&self, ready: &ReadyTask) -> Digest {
        let mut key = DigestBuilder::new("infradev session v1");
        key.part("tree", ready.tree.digest.as_str().as_bytes());
        key.part("suites", ready.suites.as_str().as_bytes());
        key.part("environment", ready.environment.key.as_str().as_bytes());
        key.part("kit", self.kit.digest.as_str().as_bytes());
        key.part("devices", ready.device_class.as_bytes());
        key.part("sandbox", self.sandbox_word().as_bytes());
        key.part("worlds", format!("{:?}", ready.task.public.spec.worlds).as_bytes());
        key.finish()
    }
}
