//! Pack folders read into the model's types.

use std::fs;
use std::path::{Path, PathBuf};

use infradev_model::{
    BaseSource, Canary, Classified, Digest, FormatError, Pack, PublicTask, SealedTask, TaskSpec, format,
    is_tree_path,
};

use crate::canary::{self, CanaryBreach};
use crate::disk;
use crate::error::StoreError;
use crate::task;

/// A pack with its tasks, all read and checked.
#[derive(Debug)]
pub struct LoadedPack {
    /// `pack.toml`.
    pub pack: Pack,
    /// The pack's folder, absolute.
    pub root: PathBuf,
    /// The tasks that were asked for, by id.
    pub tasks: Vec<LoadedTask>,
    /// Ids of all tasks of the pack, those that were not asked for among them.
    pub ids: Vec<String>,
    /// Where the bundled base tree lies, absolute; none for a pack over a git repository.
    pub tree: Option<PathBuf>,
}

/// A task with the digest of its folder.
#[derive(Debug)]
pub struct LoadedTask {
    /// All of the task.
    pub task: SealedTask,
    /// Digest of every file of the folder but its acceptance record, with the environment's definition and lock.
    pub digest: Digest,
}

/// The two parts of a change, as diffs against its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Source part.
    pub golden: Vec<u8>,
    /// Test part.
    pub official: Vec<u8>,
}

/// Splits the change of a task that holds only commits. Asked where golden.patch and official.patch are not there.
pub trait History {
    /// `base` is a [`BaseSource::Commit`].
    fn split(&self, base: &BaseSource, spec: &TaskSpec) -> Result<Split, Box<dyn Classified>>;
}

/// For packs whose tasks bring their patches: any other is refused.
#[derive(Debug, Clone, Copy)]
pub struct NoHistory;

impl History for NoHistory {
    fn split(&self, _: &BaseSource, spec: &TaskSpec) -> Result<Split, Box<dyn Classified>> {
        let what = "has no golden.patch and its commits are not read here";
        Err(Box::new(FormatError::new(&format!("tasks/{}", spec.id), None, what)))
    }
}

/// Reads a pack, or one task of it where `path` is a task's folder.
///
/// # Errors
/// The first thing that is not as it should be, naming file, line and key.
pub fn load_pack(path: &Path, history: &dyn History) -> Result<LoadedPack, StoreError> {
    let opened = Opened::at(path)?;
    let tasks = opened.tasks(path, history, task::load)?;
    let ids = task_folders(&opened.folder)?;
    Ok(LoadedPack { tree: opened.tree(), pack: opened.pack, root: opened.root, tasks, ids })
}

/// Reads what attempts may see of a pack's tasks, or of one task where `path` is its folder. No sealed file is read.
///
/// # Errors
/// The first thing that is not as it should be, naming file, line and key.
pub fn load_public(path: &Path) -> Result<Vec<PublicTask>, StoreError> {
    Ok(load_public_pack(path)?.tasks)
}

/// What attempts may see of a pack.
#[derive(Debug, Clone)]
pub struct PublicPack {
    /// `pack.toml`.
    pub pack: Pack,
    /// The pack's folder, absolute.
    pub root: PathBuf,
    /// The tasks that were asked for, by id.
    pub tasks: Vec<PublicTask>,
}

impl PublicPack {
    /// The bytes of the lock of a task's environment, where it has one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn lock_of(&self, task: &PublicTask) -> Result<Option<Vec<u8>>, StoreError> {
        task.environment.lock.as_ref().map(|lock| disk::read(&self.root.join(lock))).transpose()
    }
}

/// As [`load_public`], with the pack itself.
///
/// # Errors
/// As [`load_public`].
pub fn load_public_pack(path: &Path) -> Result<PublicPack, StoreError> {
    let opened = Opened::at(path)?;
    let tasks = opened.tasks(path, &NoHistory, task::load_public)?;
    Ok(PublicPack { pack: opened.pack, root: opened.root, tasks })
}

/// The files of a pack, as they lie there; no task is read.
#[derive(Debug)]
pub struct PackFiles {
    /// `pack.toml`.
    pub pack: Pack,
    /// The pack's folder, absolute.
    pub root: PathBuf,
    /// The folders of its tasks, absolute.
    pub tasks: Vec<PathBuf>,
    /// Where the bundled base tree lies, absolute.
    pub tree: Option<PathBuf>,
}

impl PackFiles {
    /// Opens a pack, or one task of it where `path` is a task's folder.
    ///
    /// # Errors
    /// The first thing of `pack.toml` that is not as it should be.
    pub fn open(path: &Path) -> Result<PackFiles, StoreError> {
        let opened = Opened::at(path)?;
        let mut ids = task_folders(&opened.folder)?;
        ids.retain(|id| opened.only.as_ref().is_none_or(|only| only == id));
        let tasks = ids.iter().map(|id| opened.root.join("tasks").join(id)).collect();
        Ok(PackFiles { tree: opened.tree(), pack: opened.pack, root: opened.root, tasks })
    }

    /// The files that lack a canary and those that have it and should not, sorted.
    pub fn canary_breaches(&self, canary: &Canary) -> Result<Vec<CanaryBreach>, StoreError> {
        let mut found = Vec::new();
        for task in &self.tasks {
            found.extend(canary::of_folder(canary, &self.root, task)?);
        }
        if let Some(tree) = &self.tree {
            found.extend(canary::of_tree(canary, &self.root, tree)?);
        }
        Ok(found)
    }
}

/// A pack without its tasks.
struct Opened {
    pack: Pack,
    /// As the person named it.
    folder: PathBuf,
    root: PathBuf,
    /// The task that was asked for, where it is one.
    only: Option<String>,
}

/// Reads one task by its id.
type LoadTask<T> = fn(&task::Context<'_>, &str) -> Result<T, StoreError>;

impl Opened {
    fn tree(&self) -> Option<PathBuf> {
        self.pack.source.tree.as_ref().map(|tree| self.root.join(tree))
    }

    fn tasks<T>(&self, path: &Path, history: &dyn History, load: LoadTask<T>) -> Result<Vec<T>, StoreError> {
        let context = task::Context { pack: &self.pack, folder: &self.folder, root: &self.root, history };
        let mut tasks = Vec::new();
        for id in task_folders(&self.folder)? {
            if self.only.as_ref().is_none_or(|only| *only == id) {
                tasks.push(load(&context, &id)?);
            }
        }
        if tasks.is_empty() {
            return Err(match self.only {
                Some(_) => StoreError::pack(path, "a task's folder lies in the folder `tasks` of its pack"),
                None => StoreError::pack(&self.folder.join("tasks"), "the pack holds no task"),
            });
        }
        Ok(tasks)
    }

    fn at(path: &Path) -> Result<Opened, StoreError> {
        if !path.is_dir() {
            return Err(StoreError::pack(path, "there is no such folder"));
        }
        let (folder, only) = if path.join("pack.toml").is_file() {
            (path.to_owned(), None)
        } else if path.join("task.toml").is_file() {
            let absolute = path.canonicalize().map_err(|e| StoreError::io("resolve", path, e))?;
            let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (pack_above(path, &absolute)?, Some(name))
        } else {
            let hint = "give the folder of a pack (with pack.toml) or of a task (with task.toml)".to_owned();
            let what = "holds neither pack.toml nor task.toml".to_owned();
            return Err(StoreError::Pack { path: path.to_owned(), what, hint: Some(hint) });
        };
        let pack_toml = folder.join("pack.toml");
        let name = pack_toml.display().to_string();
        let text = disk::read(&pack_toml)?;
        let pack = Pack::parse(&name, &text)?;
        let root = folder.canonicalize().map_err(|e| StoreError::io("resolve", &folder, e))?;
        let wrong = |key: &str, what: String| {
            FormatError::new(&name, Some(key), what).locate(&String::from_utf8_lossy(&text))
        };
        let refuse = |key: &str, what: String| StoreError::from(wrong(key, what));
        match &pack.source.tree {
            Some(tree) if !is_tree_path(tree) => {
                return Err(refuse("source.tree", format!("`{tree}` is not a path inside the pack")));
            }
            Some(tree) if !root.join(tree).is_dir() => {
                return Err(refuse("source.tree", format!("there is no folder `{tree}` in the pack")));
            }
            Some(tree) => {
                // All of it would be copied, and shown to the code under test.
                let leads = root.join(tree);
                let leads = leads.canonicalize().map_err(|e| StoreError::io("resolve", &leads, e))?;
                if leads == root {
                    let what = format!("`{tree}` is the pack itself, with all that is sealed in it");
                    return Err(refuse("source.tree", what));
                }
                if !leads.starts_with(&root) {
                    let what = format!("`{tree}` leads out of the pack, to {}", leads.display());
                    let hint = "copy the tree into the pack, or name its repository by `source.git`";
                    return Err(wrong("source.tree", what).advise(hint).into());
                }
            }
            None => {}
        }
        for (environment, spec) in &pack.environments {
            let key = format!("environments.{environment}.lock");
            match &spec.lock {
                Some(lock) if !is_tree_path(lock) => {
                    return Err(refuse(&key, format!("`{lock}` is not a path inside the pack")));
                }
                Some(lock) if !root.join(lock).is_file() => {
                    return Err(refuse(&key, format!("there is no file `{lock}` in the pack")));
                }
                _ => {}
            }
        }
        Ok(Opened { pack, folder, root, only })
    }
}

/// The pack of a task's folder: two folders up. Named as the person named the task, where that has so many parts.
fn pack_above(given: &Path, absolute: &Path) -> Result<PathBuf, StoreError> {
    let up = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    let plain = given
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::RootDir));
    let named = up(given).filter(|_| plain && given.components().count() > 2);
    match named.or_else(|| up(absolute)).filter(|folder| folder.join("pack.toml").is_file()) {
        Some(folder) => Ok(folder),
        None => {
            let hint = Some("a task's folder is PACK/tasks/ID, with PACK/pack.toml".to_owned());
            let what = "the task belongs to no pack".to_owned();
            Err(StoreError::Pack { path: given.to_owned(), what, hint })
        }
    }
}

/// Names of the folders in `tasks`, sorted.
fn task_folders(pack: &Path) -> Result<Vec<String>, StoreError> {
    let tasks = pack.join("tasks");
    if !tasks.is_dir() {
        return Err(StoreError::pack(&tasks, "there is no such folder"));
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&tasks).map_err(|e| StoreError::io("list", &tasks, e))? {
        let entry = entry.map_err(|e| StoreError::io("list", &tasks, e))?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if hidden || !entry.path().is_dir() {
            continue;
        }
        let Ok(name) = entry.file_name().into_string() else {
            return Err(StoreError::pack(
                &entry.path(),
                "the name of a task's folder is lower-case letters, digits and dashes",
            ));
        };
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// A text file of ours, decoded.
pub(crate) fn text_file(path: &Path) -> Result<String, StoreError> {
    let bytes = disk::read(path)?;
    Ok(format::utf8(&path.display().to_string(), &bytes)?.to_owned())
}
