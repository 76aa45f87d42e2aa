//! What a task asks for that cannot be had, told before anything is run: seen from its files, its base tree, its environment.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use infradev_model::{Adversarial, FormatError, SealedTask};
use infradev_patch::{Change, Patch, PatchError, PathClass, TestPaths};
use infradev_pyenv::Environment;

use crate::executor::ExecutorError;

/// An error at a key of a TOML file, with its line where the file can be read.
pub(crate) fn at_key(file: &Path, key: &str, what: impl Into<String>) -> FormatError {
    let error = FormatError::new(&file.display().to_string(), Some(key), what);
    match fs::read_to_string(file) {
        Ok(text) => error.locate(&text),
        Err(_) => error,
    }
}

/// The task's own patches, read.
pub(crate) struct OwnPatches {
    golden: Patch,
    official: Patch,
}

impl OwnPatches {
    /// Reads all patches of a task.
    ///
    /// # Errors
    /// One that is no patch, by its path.
    pub(crate) fn of(task: &SealedTask) -> Result<OwnPatches, ExecutorError> {
        let read = |name: &str, bytes: &[u8]| {
            Patch::parse(bytes).map_err(|source| no_patch(&task.folder.join(name), source))
        };
        for adversarial in &task.adversarial {
            if let (Some(bytes), Some(name)) = (&adversarial.patch, patch_name(adversarial)) {
                read(&name, bytes)?;
            }
        }
        Ok(OwnPatches {
            golden: read("golden.patch", &task.golden)?,
            official: read("official.patch", &task.official)?,
        })
    }

    /// Whether a file is there once the task's own tests are laid over a base tree.
    fn has(&self, tests: &TestPaths, tree: &Path, file: &str) -> bool {
        let plain: Vec<&str> = file.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let plain = plain.join("/");
        let path = plain.as_bytes();
        let official = self.official.files.iter();
        let golden = self.golden.files.iter();
        let laid = official.chain(golden.filter(|file| tests.classify(&file.new_path) != PathClass::Source));
        for change in laid {
            if change.new_path == path {
                return change.change != Change::Delete;
            }
            if change.old_path == path && change.change == Change::Rename {
                return false;
            }
        }
        tree.join(&plain).is_file()
    }

    /// Refuses official tests that are nowhere.
    pub(crate) fn check_official(&self, task: &SealedTask, tree: &Path) -> Result<(), ExecutorError> {
        let tests = &task.public.spec.tests;
        let classes = TestPaths::new(&tests.roots);
        for (index, file) in tests.official.iter().enumerate() {
            if self.has(&classes, tree, file) {
                continue;
            }
            let what = format!("there is no file `{file}` in the tree, nor once official.patch is in");
            let error = at_key(&task.folder.join("task.toml"), &format!("tests.official[{index}]"), what);
            let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
            let brought: Vec<String> = self
                .official
                .files
                .iter()
                .filter(|file| file.change != Change::Delete && file.new_path.ends_with(b".py"))
                .map(|file| text(&file.new_path))
                .take(5)
                .collect();
            return Err(match brought[..] {
                [] => error.advise("put the change's tests into official.patch, and name them here"),
                _ => error.advise(format!("official.patch has {}", brought.join(", "))),
            }
            .into());
        }
        Ok(())
    }

    /// Refuses a build whose outputs are files of the tree: a submission's own would be taken for what is built.
    pub(crate) fn check_outputs(&self, task: &SealedTask, tree: &Path) -> Result<(), ExecutorError> {
        let Some(build) = &task.public.spec.build else { return Ok(()) };
        let unreadable = |source| ExecutorError::Io { path: tree.to_path_buf(), source };
        let mut base = infradev_trial::files_of(tree).map_err(unreadable)?;
        base.sort();
        let brought = self.official.files.iter().chain(&self.golden.files);
        let brought = brought.filter(|file| file.change != Change::Delete).map(|file| &file.new_path);
        if let Some(path) = base.iter().chain(brought).find(|path| build.makes(path)) {
            let what =
                format!("`{}` is a file of the tree, and none that the build makes", path.escape_ascii());
            let error = at_key(&task.folder.join("task.toml"), "build.outputs", what);
            return Err(error.advise("name what the build makes alone, such as `pkg/_C*.so`").into());
        }
        Ok(())
    }

    /// The modules that a tree has at the top of an import root, once the task's patches are in.
    fn has_module(&self, tree: &Path, root: &str, name: &str) -> bool {
        let root = root.trim_start_matches("./").trim_matches('/');
        let below = if root.is_empty() || root == "." { name.to_owned() } else { format!("{root}/{name}") };
        let file = format!("{below}.py");
        let folder = format!("{below}/");
        let changed = self.official.files.iter().chain(&self.golden.files).map(|change| &change.new_path);
        let brought = |path: &Vec<u8>| path == file.as_bytes() || path.starts_with(folder.as_bytes());
        tree.join(&below).is_dir() || tree.join(&file).is_file() || changed.into_iter().any(brought)
    }

    /// Refuses plugins that neither the environment nor the tree has.
    fn check_plugins(
        &self,
        task: &SealedTask,
        tree: &Path,
        environment: &Environment,
    ) -> Result<(), ExecutorError> {
        let tests = &task.public.spec.tests;
        if tests.plugins.is_empty() {
            return Ok(());
        }
        let unknown: BTreeSet<String> = environment.unknown_plugins(&tests.plugins)?.into_iter().collect();
        for (index, name) in tests.plugins.iter().enumerate().filter(|(_, name)| unknown.contains(*name)) {
            let module = name.split('.').next().unwrap_or(name);
            if tests.import_roots.iter().any(|root| self.has_module(tree, root, module)) {
                continue;
            }
            if let Some(interpreter) = branch_interpreter(task) {
                let what = format!(
                    "{interpreter} has no pytest plugin `{name}`, and the tree no module of that name at the top of {}",
                    tests.import_roots.join(" or ")
                );
                let hint = "install its package for this interpreter, or leave the name out";
                return Err(FormatError::new("--plugin", None, what).advise(hint).into());
            }
            let what = format!(
                "there is no pytest plugin `{name}` in the environment `{}`, and no module of that name in the tree",
                task.public.spec.environment
            );
            let error = at_key(&task.folder.join("task.toml"), &format!("tests.plugins[{index}]"), what);
            let hint = format!("add its package to {}, or take the name out", packages_of(task));
            return Err(error.advise(hint).into());
        }
        Ok(())
    }

    /// Refuses an environment in which the official tests cannot be run as the task asks.
    pub(crate) fn check_environment(
        &self,
        task: &SealedTask,
        tree: &Path,
        environment: &Environment,
    ) -> Result<(), ExecutorError> {
        let spec = &task.public.spec;
        if !environment.packages.contains_key("pytest") {
            let part = if task.public.environment.lock.is_some() { "lock" } else { "interpreter" };
            let key = format!("environments.{}.{part}", spec.environment);
            let hint = if part == "lock" {
                "add pytest to the requirements and write the lock anew: `uv pip compile --generate-hashes requirements.in -o \
                 NAME.lock`"
            } else {
                "install pytest for this interpreter"
            };
            let what = format!("{} has no pytest, which runs the official tests", packages_of(task));
            let error = match branch_interpreter(task) {
                Some(interpreter) => {
                    FormatError::new(interpreter, None, "has no pytest, which runs the tests")
                }
                None => at_key(&task.pack_toml(), &key, what),
            };
            return Err(error.advise(hint).into());
        }
        let into = |path: &&String| environment.mounts.iter().any(|mount| Path::new(path).starts_with(mount));
        if let Some(path) = spec.tests.files.keys().find(into) {
            let what = "lies in the task's environment, which is read-only";
            let key = format!("tests.files.{path}");
            return Err(at_key(&task.folder.join("task.toml"), &key, what).into());
        }
        self.check_plugins(task, tree, environment)
    }
}

/// A module that should be imported before ranks are forked, and is not to be had. `evidence` is what the import said.
pub(crate) fn refuse_framework(task: &SealedTask, evidence: String) -> FormatError {
    if let Some(interpreter) = branch_interpreter(task) {
        let what = format!("{evidence}; it was looked for in the packages of {interpreter}");
        let hint = "name modules that this interpreter imports from any folder: they are imported before the tree is on the path";
        return FormatError::new("--preload", None, what).advise(hint);
    }
    let key = format!("environments.{}.framework", task.public.spec.environment);
    let error = at_key(&task.pack_toml(), &key, evidence);
    error.advise("name modules there that the environment's packages hold")
}

/// The interpreter of a branch that is tried as a task without a folder: whoever asks for it has written options, not a pack.
fn branch_interpreter(task: &SealedTask) -> Option<&str> {
    let interpreter = task.public.environment.interpreter.as_deref();
    interpreter.filter(|_| !task.pack_toml().is_file())
}

/// The file of an adversarial patch's diff, below the task's folder.
fn patch_name(adversarial: &Adversarial) -> Option<String> {
    adversarial.spec.patch.as_ref().map(|patch| format!("adversarial/{patch}"))
}

pub(crate) fn no_patch(path: &Path, source: PatchError) -> ExecutorError {
    ExecutorError::NoPatch { path: path.to_path_buf(), source }
}

/// What says which packages a task's environment has: its lock, or its interpreter.
fn packages_of(task: &SealedTask) -> String {
    let environment = &task.public.environment;
    match (&environment.lock, &environment.interpreter) {
        (Some(lock), _) => task.pack_toml().with_file_name(lock).display().to_string(),
        (None, Some(interpreter)) => interpreter.clone(),
        (None, None) => format!("the environment `{}`", task.public.spec.environment),
    }
}
