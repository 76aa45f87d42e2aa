//! The native code of a patched tree, built once for what it is built from.
//!
//! A build sees the inputs that its task names and nothing else of the tree, so a file that is no input cannot decide what comes
//! out. It runs in a sandbox without network and GPUs, under a rank's uid. What it makes becomes a layer of the store, whole or
//! not at all, and is laid over each workspace whose inputs are the same.
//!
//! ccache, where it is installed, has its folder in the store. Golden's and base's builds fill it; a submission's may take from
//! it and puts nothing into it, since what it put there would be linked into others.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use infradev_model::{BuildSpec, Digest, DigestBuilder, FaultKind, Limits};
use infradev_patch::{ApplyError, Patch, apply};
use infradev_pyenv::{Environment, Layer, Layers, PyenvError};
use infradev_sandbox::Kind;
use infradev_store::{Tree, folder_digest};

use crate::compiling::Work;
use crate::toolchain::Toolchain;
use crate::trial::TrialSpec;
use crate::workspace::{PrepareError, at, files_below, path_of};

/// What is built of one patched tree.
#[derive(Debug, Clone)]
pub struct Building {
    /// Where layers are kept.
    pub layers: Layers,
    /// ccache's folder.
    pub cache: PathBuf,
    /// What compiles.
    pub toolchain: Toolchain,
    /// What it is built from; none where the tree has none of it.
    pub inputs: Option<Inputs>,
    /// Whether it is golden or base: others may then take from ccache what this build compiles.
    pub trusted: bool,
    /// What was built of base, for probes that compare with it.
    pub base: Option<Layer>,
    /// Builds of this process that failed: the same ones fail again.
    pub failures: Failures,
}

/// Failed builds by key.
#[derive(Debug, Clone, Default)]
pub struct Failures(Arc<Mutex<BTreeMap<Digest, Failure>>>);

/// A build that failed, whatever it is the fault of: its own code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One sentence.
    pub why: String,
    /// What it wrote, or the last of it.
    pub log: String,
}

/// Why there is no layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// The tree does not build.
    Failed(Failure),
    /// The machine.
    Fault(FaultKind, String),
}

impl BuildError {
    pub(crate) fn fault(error: impl ToString) -> BuildError {
        BuildError::Fault(FaultKind::Sandbox, error.to_string())
    }
}

impl From<PyenvError> for BuildError {
    fn from(error: PyenvError) -> BuildError {
        match error {
            PyenvError::DiskFull { .. } => BuildError::Fault(FaultKind::DiskFull, error.to_string()),
            error => BuildError::fault(error),
        }
    }
}

/// The inputs of a build, laid in a folder of their own that the build then works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    pub(crate) folder: PathBuf,
    /// The layer's key.
    pub key: Digest,
}

/// What beside its inputs decides what a build makes.
pub struct Circumstances<'a> {
    /// The task's `[build]`.
    pub build: &'a BuildSpec,
    /// The task's environment.
    pub environment: &'a Environment,
    /// What compiles.
    pub toolchain: &'a Toolchain,
    /// Where it runs.
    pub sandbox: Kind,
}

impl Inputs {
    /// Lays the inputs of a patched tree into `folder`, which is not there yet; `None` where there are none.
    ///
    /// # Errors
    /// The patch does not apply, or the disk.
    pub fn lay(
        circumstances: &Circumstances<'_>,
        tree: &Tree,
        patch: &[u8],
        folder: &Path,
    ) -> Result<Option<Inputs>, PrepareError> {
        let build = circumstances.build;
        let mut patch = Patch::parse(patch).map_err(|error| PrepareError::NotApplied(error.to_string()))?;
        patch.files.retain(|file| build.reads(&file.old_path) || build.reads(&file.new_path));
        fs::create_dir_all(folder).map_err(at(folder))?;
        for relative in files_below(&tree.path).map_err(at(&tree.path))? {
            let path = path_of(&relative);
            // What is renamed or copied into the inputs comes from outside of them.
            if build.reads(path) || patch.files.iter().any(|file| file.old_path == path) {
                copy(&tree.path.join(&relative), &folder.join(&relative))
                    .map_err(at(&folder.join(&relative)))?;
            }
        }
        apply(&patch, folder).map_err(|error| match error {
            ApplyError::Io { path, source, .. } => PrepareError::Io { path: folder.join(path), source },
            error => PrepareError::NotApplied(error.to_string()),
        })?;
        let mut any = false;
        for relative in files_below(folder).map_err(at(folder))? {
            match build.reads(path_of(&relative)) {
                true => any = true,
                false => fs::remove_file(folder.join(&relative)).map_err(at(&folder.join(&relative)))?,
            }
        }
        if !any {
            return Ok(None);
        }
        let mut key = DigestBuilder::new("infradev layer v1");
        key.part("inputs", folder_digest(folder)?.as_str().as_bytes());
        key.part("command", &serde_json::to_vec(&build.command).unwrap_or_default());
        key.part("outputs", &serde_json::to_vec(&build.outputs).unwrap_or_default());
        key.part("environment", circumstances.environment.key.as_str().as_bytes());
        key.part("python", circumstances.environment.python_version.as_bytes());
        key.part("compilers", &serde_json::to_vec(&circumstances.toolchain.compilers).unwrap_or_default());
        key.part("sandbox", format!("{:?}", circumstances.sandbox).as_bytes());
        Ok(Some(Inputs { folder: folder.to_path_buf(), key: key.finish() }))
    }
}

/// The layer of a trial's patched tree; `None` where its task builds nothing, or the tree has nothing to build.
pub(crate) async fn layer_of(spec: &TrialSpec) -> Result<Option<Layer>, BuildError> {
    let task = &spec.task.public.spec;
    let (Some(building), Some(build)) = (&spec.building, &task.build) else { return Ok(None) };
    let made = building.layer(build, &task.limits, &spec.environment, spec.sandbox).await;
    if let Err(BuildError::Failed(failure)) = &made {
        // The log is a help to people; the reason is in the result.
        let _ = fs::create_dir_all(&spec.logs)
            .and_then(|()| fs::write(spec.logs.join("build.log"), failure.log.as_bytes()));
    }
    made
}

impl Building {
    /// The layer: the store's, or one that is built now.
    ///
    /// # Errors
    /// [`BuildError`]: the tree's own failure, or the machine's.
    pub async fn layer(
        &self,
        build: &BuildSpec,
        limits: &Limits,
        environment: &Environment,
        sandbox: Kind,
    ) -> Result<Option<Layer>, BuildError> {
        let Some(inputs) = &self.inputs else { return Ok(None) };
        if let Some(layer) = self.layers.find(&inputs.key) {
            return Ok(Some(layer));
        }
        let turn = self.turn(&inputs.key).await?;
        // Whoever had the turn before may have built it, or failed.
        if let Some(layer) = self.layers.find(&inputs.key) {
            return Ok(Some(layer));
        }
        if let Some(failure) = self.failures.0.lock().unwrap_or_else(PoisonError::into_inner).get(&inputs.key)
        {
            return Err(BuildError::Failed(failure.clone()));
        }
        let work = Work { building: self, build, limits, environment, sandbox, inputs };
        let made = work.run(turn).await;
        if let Err(BuildError::Failed(failure)) = &made {
            let mut failures = self.failures.0.lock().unwrap_or_else(PoisonError::into_inner);
            failures.insert(inputs.key.clone(), failure.clone());
        }
        made.map(Some)
    }

    /// The right to build a layer. Another builder, of this process or of another, is waited for on a thread of its own.
    async fn turn(&self, key: &Digest) -> Result<File, BuildError> {
        if let Some(turn) = self.layers.try_turn(key)? {
            return Ok(turn);
        }
        let (say, hear) = tokio::sync::oneshot::channel();
        let (layers, key) = (self.layers.clone(), key.clone());
        std::thread::spawn(move || {
            // Nobody hears it after an interrupt: the turn is then over.
            let _ = say.send(layers.turn(&key));
        });
        Ok(hear.await.map_err(BuildError::fault)??)
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    match fs::read_link(from) {
        Ok(target) => symlink(target, to),
        Err(_) => fs::copy(from, to).map(drop),
    }
}
