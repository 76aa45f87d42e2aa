//! What tasks build: golden's and base's layers made before anything is run, and a submission's inputs laid for its trial.

use std::path::Path;

use infradev_model::{BuildSpec, Digest, FaultKind, SealedTask};
use infradev_pyenv::{Environment, Layer};
use infradev_store::Tree;
use infradev_trial::{BuildError, Building, Circumstances, Inputs, PrepareError, Toolchain, TrialError};

use crate::executor::{Executor, ExecutorError};
use crate::foreseen::at_key;
use crate::looking::scratch;
use crate::progress::Happening;
use crate::ready::ReadyTask;

/// What is built of a task's own trees.
#[derive(Debug, Clone)]
pub struct Built {
    /// Of golden's tree; none where that has nothing to build.
    pub golden: Option<Layer>,
    /// Of the base tree.
    pub base: Option<Layer>,
    toolchain: Toolchain,
}

impl ReadyTask {
    /// The key of what is built of golden's tree.
    pub(crate) fn golden_layer(&self) -> Option<Digest> {
        self.built.as_ref().and_then(|built| built.golden.as_ref()).map(|layer| layer.key.clone())
    }
}

/// What of a task's builds is known while they are made.
struct Own<'a> {
    task: &'a SealedTask,
    build: &'a BuildSpec,
    tree: &'a Tree,
    environment: &'a Environment,
    toolchain: &'a Toolchain,
}

impl Executor {
    /// Builds golden and base, where the task builds anything.
    ///
    /// # Errors
    /// One of them does not build, or has nothing of what `[build]` names.
    pub(crate) async fn build(
        &self,
        task: &SealedTask,
        tree: &Tree,
        environment: &Environment,
    ) -> Result<Option<Built>, ExecutorError> {
        let Some(build) = &task.public.spec.build else { return Ok(None) };
        let toolchain = Toolchain::find();
        let own = Own { task, build, tree, environment, toolchain: &toolchain };
        let golden = self.build_own(&own, "golden", &task.golden).await?;
        let base = self.build_own(&own, "base", &[]).await?;
        if golden.is_none() && base.is_none() {
            let what = "the tree has nothing of it, neither base's nor golden's";
            return Err(at_key(&task.folder.join("task.toml"), "build.inputs", what).into());
        }
        Ok(Some(Built { golden, base, toolchain }))
    }

    async fn build_own(
        &self,
        own: &Own<'_>,
        what: &str,
        patch: &[u8],
    ) -> Result<Option<Layer>, ExecutorError> {
        let room = scratch()?;
        let Own { task, build, tree, environment, toolchain } = own;
        let circumstances = Circumstances { build, environment, toolchain, sandbox: self.sandbox };
        let inputs = Inputs::lay(&circumstances, tree, patch, &room.path().join("inputs"));
        let inputs = match inputs {
            Ok(inputs) => inputs,
            Err(PrepareError::NotApplied(why)) => {
                return Err(ExecutorError::GoldenNotApplied { path: task.folder.join("golden.patch"), why });
            }
            Err(error) => return Err(TrialError::Machine { what: error.to_string() }.into()),
        };
        let Some(key) = inputs.as_ref().map(|inputs| inputs.key.clone()) else { return Ok(None) };
        let there = self.layers.find(&key);
        if there.is_some() {
            return Ok(there);
        }
        let command = build.command.join(" ");
        self.tell(Happening::Environment(format!("{}: building {what} (`{command}`)", task.id())));
        let building = Building {
            layers: self.layers.clone(),
            cache: self.home.builds().join("ccache"),
            toolchain: (*toolchain).clone(),
            inputs,
            trusted: true,
            base: None,
            failures: self.failures.clone(),
        };
        let limits = &task.public.spec.limits;
        let layer = tokio::select! {
            biased;
            () = infradev_supervise::cancel_requested() => return Err(TrialError::Cancelled.into()),
            layer = building.layer(build, limits, environment, self.sandbox) => layer,
        };
        layer.map_err(|error| match error {
            BuildError::Failed(failure) => {
                let error = at_key(
                    &task.folder.join("task.toml"),
                    "build.command",
                    format!("{what} does not build: {}", failure.why),
                );
                let hint = match toolchain.compiles() {
                    true => {
                        "the build sees the paths of build.inputs and nothing else of the tree, and no network"
                    }
                    false => "this machine has no compiler: apt-get install g++",
                };
                error.advise(hint).into()
            }
            BuildError::Fault(FaultKind::DiskFull, what) => {
                let path = room.path().to_path_buf();
                let source = std::io::Error::new(std::io::ErrorKind::StorageFull, what);
                ExecutorError::Io { path, source }
            }
            BuildError::Fault(_, what) => TrialError::Machine { what }.into(),
        })
    }

    /// What a trial of this patch builds. Its inputs are laid in `room`, which lasts as long as the trial. A patch that does not
    /// apply builds nothing: the trial says what is wrong with it.
    pub(crate) fn building(
        &self,
        ready: &ReadyTask,
        patch: &[u8],
        room: &Path,
    ) -> Result<Option<Building>, ExecutorError> {
        let (Some(build), Some(built)) = (&ready.task.public.spec.build, &ready.built) else {
            return Ok(None);
        };
        let circumstances = Circumstances {
            build,
            environment: &ready.environment,
            toolchain: &built.toolchain,
            sandbox: self.sandbox,
        };
        let inputs = match Inputs::lay(&circumstances, &ready.tree, patch, &room.join("inputs")) {
            Ok(inputs) => inputs,
            Err(PrepareError::NotApplied(_)) => None,
            Err(error) => return Err(TrialError::Machine { what: error.to_string() }.into()),
        };
        Ok(Some(Building {
            layers: self.layers.clone(),
            cache: self.home.builds().join("ccache"),
            toolchain: built.toolchain.clone(),
            inputs,
            trusted: patch.is_empty() || patch == ready.task.golden,
            base: built.base.clone(),
            failures: self.failures.clone(),
        }))
    }
}
