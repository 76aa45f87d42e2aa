//! A task made ready: its base tree on disk, its environment built, its devices named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use infradev_model::{BaseSource, CalibrationKey, Digest, PublicTask, SealedTask};
use infradev_pyenv::{Definition, Environment};
use infradev_sandbox::Kind;
use infradev_store::{Home, StoreError, Tree, Trees};

use crate::built::Built;
use crate::executor::{Executor, ExecutorError};
use crate::foreseen::{OwnPatches, at_key};
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
    /// What is built of golden and base, where the task builds anything.
    pub built: Option<Built>,
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
            layer: self.golden_layer(),
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
        self.tell_copying();
        let patches = OwnPatches::of(&task)?;
        let device_class = device_class(&task.folder.join("task.toml"), task.public.spec.gpus)?;
        let tree = base_tree(&self.home, &task.public.base, self.progress.as_ref())?;
        patches.check_official(&task, &tree.path)?;
        // packs/<pack>/tasks/<id>
        let pack = task.folder.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let environment = self.environment_of(&task.public, pack, task.lock.as_deref())?;
        patches.check_environment(&task, &tree.path, &environment)?;
        let bytecode = match self.sandbox {
            Kind::Namespaces => infradev_trial::bytecode(&self.trees, &tree, &environment)?,
            Kind::None => None,
        };
        patches.check_outputs(&task, &tree.path)?;
        let built = self.build(&task, &tree, &environment).await?;
        let suites = task.suites_digest();
        Ok(ReadyTask { task, tree, bytecode, environment, built, device_class, suites })
    }

    /// Makes base tree and environment of a task ready; no sealed part of it is needed. `pack` is its pack's folder, `lock` the
    /// bytes of its environment's lock.
    pub fn base(
        &self,
        task: &PublicTask,
        pack: &Path,
        lock: Option<&[u8]>,
    ) -> Result<ReadyBase, ExecutorError> {
        let task_toml = pack.join("tasks").join(&task.spec.id).join("task.toml");
        device_class(&task_toml, task.spec.gpus)?;
        let tree = base_tree(&self.home, &task.base, self.progress.as_ref())?;
        Ok(ReadyBase { tree, environment: self.environment_of(task, pack, lock)? })
    }

    fn environment_of(
        &self,
        task: &PublicTask,
        pack: &Path,
        lock: Option<&[u8]>,
    ) -> Result<Environment, ExecutorError> {
        let spec = &task.environment;
        let definition = match (&spec.interpreter, lock, &spec.lock, &spec.python) {
            (Some(path), ..) => Definition::Interpreter { path: PathBuf::from(path) },
            (None, Some(lock), Some(path), Some(python)) => {
                Definition::Lock { lock: lock.to_vec(), lock_path: pack.join(path), python: python.clone() }
            }
            _ => return Err(ExecutorError::NoEnvironment { task: task.spec.id.clone() }),
        };
        self.environment(&definition)
    }
}

/// `cpu`, or number and name of the machine's GPUs. `task_toml` is where they are asked for.
fn device_class(task_toml: &Path, gpus: u32) -> Result<String, ExecutorError> {
    if gpus == 0 {
        return Ok("cpu".to_string());
    }
    let found = infradev_sandbox::list_gpus()?;
    if (found.len() as u32) < gpus {
        let error = at_key(task_toml, "gpus", too_few(gpus, found.len()));
        return Err(error.advise("run it on a machine with more GPUs").into());
    }
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    for gpu in found.iter().take(gpus as usize) {
        *names.entry(gpu.name.as_str()).or_default() += 1;
    }
    Ok(names.iter().map(|(name, count)| format!("{count}×{name}")).collect::<Vec<_>>().join(" + "))
}

fn too_few(wanted: u32, found: usize) -> String {
    let wanted = if wanted == 1 { "1 GPU".to_string() } else { format!("{wanted} GPUs") };
    let has = if found == 0 { "none".to_string() } else { found.to_string() };
    format!("a trial takes {wanted} and this machine has {has}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_are_not_there_are_counted_in_words() {
        assert_eq!(too_few(1, 0), "a trial takes 1 GPU and this machine has none");
        assert_eq!(too_few(8, 2), "a trial takes 8 GPUs and this machine has 2");
    }
}
