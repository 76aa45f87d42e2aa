//! Looking at a task without a trial: its probe cases, its patches by name, a shell where its code runs.

use std::path::Path;
use std::sync::Arc;

use infradev_model::{Selection, TrialInputs};
use infradev_pycode::Variant;
use infradev_sandbox::SandboxEnd;
use infradev_trial::{FoundCase, Streams, TrialSpec, Twins};

use crate::derived::{DeriveError, GoldenChange};
use crate::executor::{Executor, ExecutorError};
use crate::ready::ReadyTask;

impl ReadyTask {
    /// A patch of the task's own: `golden`, `base`, `hollow` or an adversarial one. `None` where it has none of that name
    /// (no hollow where golden adds no function).
    pub fn patch_named(&self, name: &str) -> Result<Option<Vec<u8>>, DeriveError> {
        match name {
            "golden" => Ok(Some(self.task.golden.clone())),
            "base" => Ok(Some(Vec::new())),
            "hollow" => GoldenChange::of(self)?.hollow(Variant::Full),
            _ => match self.task.adversarial.iter().find(|found| found.name == name) {
                Some(found) => Ok(Some(GoldenChange::of(self)?.adversarial(found)?)),
                None => Ok(None),
            },
        }
    }
}

impl Executor {
    /// The probe cases of a task at a world size.
    pub async fn probe_cases(&self, ready: &ReadyTask, world: u32) -> Result<Vec<FoundCase>, ExecutorError> {
        let scratch = scratch()?;
        let spec = self.bare(ready, Vec::new(), world, scratch.path())?;
        Ok(infradev_trial::probe_cases(&spec).await?)
    }

    /// A shell in the sandbox of a trial of this patch; returns when it ends.
    pub async fn shell(
        &self,
        ready: &ReadyTask,
        patch: Vec<u8>,
        world: u32,
        streams: Streams,
    ) -> Result<SandboxEnd, ExecutorError> {
        let scratch = scratch()?;
        let gpus = self.gpus(ready.task.public.spec.gpus).await?;
        let mut spec = self.bare(ready, patch, world, scratch.path())?;
        spec.gpus = gpus.as_ref().map(|lease| lease.indices.clone()).unwrap_or_default();
        Ok(infradev_trial::shell(&spec, streams).await?)
    }

    /// The specification of a trial that leaves no record.
    ///
    /// # Errors
    /// What the patch builds could not be laid.
    pub(crate) fn bare(
        &self,
        ready: &ReadyTask,
        patch: Vec<u8>,
        world: u32,
        scratch: &Path,
    ) -> Result<TrialSpec, ExecutorError> {
        let building = self.building(ready, &patch, scratch)?;
        let inputs = TrialInputs {
            layer: building
                .as_ref()
                .and_then(|building| building.inputs.as_ref())
                .map(|inputs| inputs.key.clone()),
            patch: infradev_model::Digest::of(&patch),
            tree: ready.tree.digest.clone(),
            suites: ready.suites.clone(),
            environment: ready.environment.key.clone(),
            kit: self.kit.digest.clone(),
            device_class: ready.device_class.clone(),
            world,
            sandbox: self.sandbox_word().to_string(),
            selection: Selection::Probes,
            repeat: 0,
            seed: None,
            shuffled: false,
            early_stop: false,
            candidates: false,
        };
        Ok(TrialSpec {
            building,
            task: Arc::clone(&ready.task),
            patch: Arc::new(patch),
            trees: self.trees.clone(),
            tree: ready.tree.clone(),
            bytecode: ready.bytecode.clone(),
            environment: ready.environment.clone(),
            judge: self.judge.clone(),
            kit: self.kit.path.clone(),
            sandbox: self.sandbox,
            framework: ready.task.public.environment.framework.clone(),
            gpus: Vec::new(),
            scratch: scratch.join("work"),
            logs: scratch.join("logs"),
            inputs,
            seed: rand::random(),
            shuffled: false,
            twins: Twins::Nothing,
            stop: None,
            case_seed: None,
        })
    }
}

pub(crate) fn scratch() -> Result<tempfile::TempDir, ExecutorError> {
    tempfile::tempdir().map_err(|source| ExecutorError::Io { path: tempfile::env::temp_dir(), source })
}
