//! Warm sessions: golden's tree and the framework kept ready for many variants.

use std::path::Path;

use infradev_model::{Digest, DigestBuilder};
use infradev_trial::{Session, TrialError};

use crate::executor::{Executor, ExecutorError};
use crate::foreseen::refuse_framework;
use crate::ready::ReadyTask;
use crate::slot::Slot;

impl Executor {
    /// How many trials, or sessions, run at once.
    pub fn slot_count(&self) -> usize {
        self.slots_in_all
    }

    /// A warm session on a task's golden patch, in the next free slot. `scratch` is a folder of its own.
    pub async fn session(&self, ready: &ReadyTask, scratch: &Path) -> Result<(Session, Slot), ExecutorError> {
        let slot = self.slot(ready.task.public.spec.gpus).await?;
        let world = ready.task.public.spec.worlds.first().copied().unwrap_or(1);
        let mut spec = self.bare(ready, ready.task.golden.clone(), world, scratch)?;
        spec.gpus = slot.gpus();
        let session = Session::open(spec).await.map_err(|error| match error {
            TrialError::Framework { what } => refuse_framework(&ready.task, what).into(),
            error => ExecutorError::from(error),
        })?;
        Ok((session, slot))
    }

    /// Digest of all that decides what a session finds, the variants apart.
    pub fn session_key(&self, ready: &ReadyTask) -> Digest {
        let mut key = DigestBuilder::new("infradev session v1");
        key.part("tree", ready.tree.digest.as_str().as_bytes());
        key.part("suites", ready.suites.as_str().as_bytes());
        key.part("environment", ready.environment.key.as_str().as_bytes());
        if let Some(layer) = ready.golden_layer() {
            key.part("layer", layer.as_str().as_bytes());
        }
        key.part("kit", self.kit.digest.as_str().as_bytes());
        key.part("devices", ready.device_class.as_bytes());
        key.part("sandbox", self.sandbox_word().as_bytes());
        key.part("worlds", format!("{:?}", ready.task.public.spec.worlds).as_bytes());
        key.finish()
    }
}
