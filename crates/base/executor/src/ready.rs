//! A task made ready: its base tree on disk, its environment built, its devices named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use infradev_model::{BaseSource, CalibrationKey, Digest, PublicTask, SealedTask};
use infradev_pyenv::{Definition, Environment};
use infradev_sandbox::Kind;
use infradev_store::{Home, StoreError, Tree, Trees};

use crate::executor::{Executor, ExecutorError};
use crate::progress::{Happening, Progress};

/// A task made ready.
#[derive(Debug, Clone)]
pub struct ReadyTask {
    /// The task.
    pub task: Arc<SealedTask>,
    /// Its base tree.
    pub tree: Tree,
    /// Its base tree's bytecode, where ranks are in namespaces.
    pub bytecode: Option<PathBuf>,
    /// Its environment.
    pub environment: Environment,
    /// `cpu`, `2×NVIDIA H200`.
    pub device_class: String,
    /// Digest of its suites.
    pub suites: Digest,
}

impl ReadyTask {
    /// What a calibration of it is valid for.
    pub fn calibration_key(&self, executor: &Executor, world: u32) -> CalibrationKey {
        CalibrationKey {
            task: self.task.id().to_string(),
            suites: self.suites.clone(),
            tree: self.tree.digest.clone(),
            environment: self.environment.key.clone(),
            kit: executor.kit.digest.clone(),
            device_class: self.device_class.clone(),
            world,
            sandbox: executor.sandbox_word().to_string(),
        }
    }
}

/// The public part of a task made ready: what an attempt is made in.
#[derive(Debug, Clone)]
pub struct ReadyBase {
    /// Its base tree.
    pub tree: Tree,
    /// Its environment.
    pub environment: Environment,
}

/// A task's base tree, materialised in a store. Needs no environment.
pub fn base_tree(home: &Home, base: &BaseSource, progress: &dyn Progress) -> Result<Tree, ExecutorError> {
    let trees = Trees::new(home.builds().join("trees"));
    match base {
        BaseSource::Folder(path) => Ok(trees.of_folder(path)?),
        BaseSource::Commit { repository, base, .. } => {
            let (repo, commit) = crate::history::resolve(home, repository, base, progress)?;
            progress.emit(Happening::Tree(format!("{} at {}", repository, commit.as_str())));
            let fill = |into: &std::path::Path| {
                repo.materialise(&commit, into)
                    .map_err(|error| StoreError::source("materialise a commit", &error))
            };
            Ok(trees.of_commit(commit.as_str(), fill)?)
        }
    }
}

impl Executor {
    /// Makes a task ready: base tree, environment, devices.
    pub async fn ready(&self, task: Arc<SealedTask>) -> Result<ReadyTask, ExecutorError> {
        if self.sandbox == Kind::Namespaces {
            // Better told now than by each trial.
            infradev_sandbox::bubblewrap_version()?;
        }
        // packs/<pack>/tasks/<id>
        let pack = task.folder.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let ReadyBase { tree, environment } = self.base(&task.public, pack, task.lock.as_deref())?;
        let bytecode = match self.sandbox {
            Kind::Namespaces => infradev_trial::bytecode(&self.trees, &tree, &environment)?,
            Kind::None => None,
        };
        let device_class = self.device_class(task.public.spec.gpus)?;
        let suites = task.suites_digest();
        Ok(ReadyTask { task, tree, bytecode, environment, device_class, suites })
    }

    /// Makes base tree and environment of a task ready; no sealed part of it is needed. `pack` is its pack's folder, `lock` the
    /// bytes of its environment's lock.
    pub fn base(
        &self,
        task: &PublicTask,
        pack: &Path,
        lock: Option<&[u8]>,
    ) -> Result<ReadyBase, ExecutorError> {
        let tree = base_tree(&self.home, &task.base, self.progress.as_ref())?;
        let spec = &task.environment;
        let definition = match (&spec.interpreter, lock, &spec.lock, &spec.python) {
            (Some(path), ..) => Definition::Interpreter { path: PathBuf::from(path) },
            (None, Some(lock), Some(path), Some(python)) => {
                Definition::Lock { lock: lock.to_vec(), lock_path: pack.join(path), python: python.clone() }
            }
            _ => return Err(ExecutorError::NoEnvironment { task: task.spec.id.clone() }),
        };
        Ok(ReadyBase { tree, environment: self.environment(&definition)? })
    }

    /// `cpu`, or number and name of the machine's GPUs.
    fn device_class(&self, gpus: u32) -> Result<String, ExecutorError> {
        if gpus == 0 {
            return Ok("cpu".to_string());
        }
        let found = infradev_sandbox::list_gpus()?;
        if (found.len() as u32) < gpus {
            return Err(ExecutorError::TooFewGpus { wanted: gpus, found: found.len() as u32 });
        }
        let mut names: BTreeMap<&str, u32> = BTreeMap::new();
        for gpu in found.iter().take(gpus as usize) {
            *names.entry(gpu.name.as_str()).or_default() += 1;
        }
        Ok(names.iter().map(|(name, count)| format!("{count}×{name}")).collect::<Vec<_>>().join(" + "))
    }
}
