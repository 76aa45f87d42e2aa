//! A branch as a task without a folder: golden is what it changes against the commit that it started from, the official
//! tests are those that it touches and those that are named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use infradev_executor::ReadyTask;
use infradev_git::{CommitId, GitError, Renames, Repo};
use infradev_model::{
    AcceptanceSpec, Area, BaseSource, Class, Classified, Contract, Digest, EnvironmentSpec, Kind, Limits,
    PublicTask, SealedTask, TASK_SCHEMA, TaskSpec, Tests, Timeouts, is_tree_path,
};
use infradev_patch::{
    Change, FilePatch, Patch, PatchError, PathClass, TestPaths, is_collected, looks_like_test,
};

/// The id of a branch's task.
const ID: &str = "change";

/// The mode of a submodule.
const SUBMODULE: u32 = 0o160000;

/// Plugins of pytest that are not loaded although they are installed: they spread, order, repeat or measure tests, which is
/// done here already.
const NOT_LOADED: [&str; 16] = [
    "pytest-xdist",
    "pytest-cov",
    "pytest-benchmark",
    "pytest-forked",
    "pytest-randomly",
    "pytest-random-order",
    "pytest-rerunfailures",
    "pytest-repeat",
    "pytest-sugar",
    "pytest-html",
    "pytest-metadata",
    "pytest-testmon",
    "pytest-split",
    "pytest-shard",
    "pytest-instafail",
    "pytest-profiling",
];

/// Modules that cost seconds to import: imported once, before ranks are forked, where the tests' code names them.
const HEAVY: [&str; 1] = ["torch"];

/// Which change, and how its tests are run.
#[derive(Debug, Clone)]
pub struct ChangeAsk {
    /// The repository's top folder.
    pub repository: PathBuf,
    /// The branch that the change is for.
    pub base: String,
    /// A commit in place of the work tree.
    pub head: Option<String>,
    /// Tests beside those that the change touches: files, folders, or ids of cases, by paths in the tree.
    pub tests: Vec<String>,
    /// The interpreter that runs the tests.
    pub python: PathBuf,
    /// World sizes.
    pub worlds: Vec<u32>,
    /// Modules imported once, in place of those found.
    pub preload: Option<Vec<String>>,
    /// Plugins of pytest by name, in place of those found.
    pub plugins: Option<Vec<String>>,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Memory of each session, MiB.
    pub memory_mib: u64,
}

/// A change that can be tried.
#[derive(Debug, Clone)]
pub struct DraftedChange {
    /// The task.
    pub task: SealedTask,
    /// The commit that the change started from.
    pub base: String,
    /// The commit that holds it, or `work tree`.
    pub head: String,
    /// Ids of single cases that were asked for; all cases where none.
    pub only: BTreeSet<String>,
    /// Submodules that the change adds, removes or moves to another commit, by path: nothing of them is tried.
    pub submodules: BTreeSet<String>,
    preload: Option<Vec<String>>,
    plugins: Option<Vec<String>>,
}

/// Why there is nothing to try.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ChangeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the change against {base}: {why}")]
    Unreadable { base: String, why: String },
    #[error("the change against {base}: {why}")]
    AcrossSplit { base: String, why: PatchError },
    #[error("there is no change against {base}: {head} holds what it held where it left {base}")]
    NoChange { base: String, head: String },
    #[error("the change against {base} touches submodules only ({paths}): nothing of them is tried")]
    OnlySubmodules { base: String, paths: String },
    #[error("the change against {base} touches no test file")]
    NoTests { base: String },
    #[error("{given}: there is no such test file or folder in {repository}")]
    NoSuchTest { given: String, repository: PathBuf },
    #[error("{given}: only paths and ids of tests are understood here")]
    NotAPath { given: String },
}

impl Classified for ChangeError {
    fn class(&self) -> Class {
        match self {
            ChangeError::Git(error) => error.class(),
            ChangeError::NotAPath { .. } => Class::Usage,
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ChangeError::Git(error) => error.hint(),
            ChangeError::NoChange { .. } => Some(
                "--base names the branch that the change is for; new files count, but for those that git ignores"
                    .to_string(),
            ),
            ChangeError::NoTests { .. } => Some(
                "name the tests that should notice: infradev probe-gaps … -- tests/test_x.py".to_string(),
            ),
            ChangeError::NotAPath { .. } => {
                Some("options of pytest belong into its configuration file in the repository".to_string())
            }
            _ => None,
        }
    }
}

impl DraftedChange {
    /// Reads the change.
    pub fn draft(ask: &ChangeAsk) -> Result<DraftedChange, ChangeError> {
        let repo = Repo::open(&ask.repository)?;
        let head = repo.resolve(ask.head.as_deref().unwrap_or("HEAD"))?;
        let base = repo.merge_base(&repo.resolve(&ask.base)?, &head)?;
        match DraftedChange::read(ask, &repo, (&base, &head), Renames::Detect) {
            // A file that moves between tests and code is one that goes there and one that comes here.
            Err(ChangeError::AcrossSplit { .. }) => {
                DraftedChange::read(ask, &repo, (&base, &head), Renames::Off)
            }
            read => read,
        }
    }

    fn read(
        ask: &ChangeAsk,
        repo: &Repo,
        (base, head): (&CommitId, &CommitId),
        renames: Renames,
    ) -> Result<DraftedChange, ChangeError> {
        let diff = match &ask.head {
            Some(_) => repo.diff(base, head, renames)?,
            None => repo.diff_to_work_tree(base, &ask.repository, renames)?,
        };
        let unreadable = |why: String| ChangeError::Unreadable { base: ask.base.clone(), why };
        let mut patch = Patch::parse(&diff).map_err(|error| unreadable(error.to_string()))?;
        let submodules = match &ask.head {
            Some(_) => repo.changed_submodules(base, head)?,
            None => repo.changed_submodules_of_work_tree(base, &ask.repository)?,
        };
        patch.files.retain(|file| !is_submodule(file));
        let submodules: BTreeSet<String> =
            submodules.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        if patch.files.is_empty() && !submodules.is_empty() {
            let paths = submodules.into_iter().collect::<Vec<_>>().join(", ");
            return Err(ChangeError::OnlySubmodules { base: ask.base.clone(), paths });
        }
        if patch.files.is_empty() {
            let head = ask.head.clone().unwrap_or_else(|| "the work tree".to_string());
            return Err(ChangeError::NoChange { base: ask.base.clone(), head });
        }
        let there = tracked(repo, head, &patch)?;
        let (files, only) = tests(ask, &patch, &there)?;
        let roots = roots(&files);
        let paths = TestPaths::new(&roots);
        let removed: BTreeSet<&[u8]> = patch.files.iter().filter_map(removed_test).collect();
        let is_test = |path: &[u8]| {
            paths.classify(path) != PathClass::Source
                || removed.contains(path)
                || files.iter().any(|file| file.as_bytes() == path)
        };
        let split = patch.split(is_test).map_err(|error| match error {
            PatchError::RenameAcrossSplit { .. } => {
                ChangeError::AcrossSplit { base: ask.base.clone(), why: error }
            }
            error => unreadable(error.to_string()),
        })?;
        let spec = TaskSpec {
            schema: TASK_SCHEMA,
            id: ID.to_string(),
            title: format!("The change against {}", ask.base),
            area: Area::Training,
            kind: Kind::Feature,
            traits: Vec::new(),
            environment: "active".to_string(),
            worlds: ask.worlds.clone(),
            gpus: 0,
            source: None,
            tests: Tests {
                official: files.into_iter().collect(),
                roots,
                plugins: ask.plugins.clone().unwrap_or_default(),
                import_roots: import_roots(&there),
                env: Default::default(),
                files: Default::default(),
            },
            build: None,
            timeouts: ask.timeouts.clone(),
            limits: Limits { memory_mib: ask.memory_mib, ..Limits::default() },
            acceptance: AcceptanceSpec::default(),
        };
        let environment = EnvironmentSpec {
            python: None,
            lock: None,
            interpreter: Some(ask.python.to_string_lossy().into_owned()),
            framework: ask.preload.clone().unwrap_or_default(),
        };
        let source = BaseSource::Commit {
            repository: ask.repository.to_string_lossy().into_owned(),
            base: base.to_string(),
            head: Digest::of(&diff).to_string(),
        };
        let task = SealedTask {
            public: PublicTask {
                spec,
                description: String::new(),
                pull_request: None,
                contract: Contract::default(),
                environment,
                base: source,
            },
            pack: ID.to_string(),
            canary: None,
            folder: ask.repository.clone(),
            golden: if split.source.is_empty() { Vec::new() } else { split.source.to_bytes() },
            official: if split.test.is_empty() { Vec::new() } else { split.test.to_bytes() },
            probes: Default::default(),
            adversarial: Vec::new(),
            equivalent: Vec::new(),
            lock: None,
        };
        Ok(DraftedChange {
            task,
            base: base.to_string(),
            head: ask.head.as_ref().map_or_else(|| "work tree".to_string(), |_| head.to_string()),
            only,
            submodules,
            preload: ask.preload.clone(),
            plugins: ask.plugins.clone(),
        })
    }

    /// Takes plugins and preloaded modules from what the environment holds, where none were named.
    pub fn adapt(&self, ready: ReadyTask) -> ReadyTask {
        let mut task = (*ready.task).clone();
        let packages = &ready.environment.packages;
        if self.plugins.is_none() {
            let plugin = |name: &&String| name.starts_with("pytest-") && !NOT_LOADED.contains(&name.as_str());
            task.public.spec.tests.plugins = packages.keys().filter(plugin).cloned().collect();
        }
        if self.preload.is_none() {
            let named = |module: &&&str| {
                packages.contains_key(**module)
                    && (mentions(&task.golden, module) || tree_mentions(&ready, module))
            };
            task.public.environment.framework =
                HEAVY.iter().filter(named).map(|module| (*module).to_string()).collect();
        }
        let suites = task.suites_digest();
        ReadyTask { task: task.into(), suites, ..ready }
    }
}

/// Whether what a patch tells of is a commit of another repository.
fn is_submodule(file: &FilePatch) -> bool {
    [file.old_mode, file.new_mode].into_iter().flatten().any(|mode| mode == SUBMODULE)
}

/// Paths that the change's tree holds.
fn tracked(repo: &Repo, head: &CommitId, patch: &Patch) -> Result<BTreeSet<String>, GitError> {
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let mut there: BTreeSet<String> = repo.ls_tree(head)?.iter().map(|entry| text(&entry.path)).collect();
    for file in &patch.files {
        if matches!(file.change, Change::Delete | Change::Rename) {
            there.remove(&text(&file.old_path));
        }
        if file.change != Change::Delete {
            there.insert(text(&file.new_path));
        }
    }
    Ok(there)
}

/// The path of a test file that the change removes.
fn removed_test(file: &FilePatch) -> Option<&[u8]> {
    (file.change == Change::Delete && is_collected(&file.old_path)).then_some(file.old_path.as_slice())
}

/// The test files to run, and the single cases where some were named.
fn tests(
    ask: &ChangeAsk,
    patch: &Patch,
    there: &BTreeSet<String>,
) -> Result<(BTreeSet<String>, BTreeSet<String>), ChangeError> {
    let mut files: BTreeSet<String> = patch
        .files
        .iter()
        .filter(|file| file.change != Change::Delete)
        .filter(|file| is_collected(&file.new_path))
        .filter_map(|file| std::str::from_utf8(&file.new_path).ok())
        .map(str::to_string)
        .collect();
    let mut only = BTreeSet::new();
    for given in &ask.tests {
        if given.starts_with('-') {
            return Err(ChangeError::NotAPath { given: given.clone() });
        }
        let (path, case) = match given.split_once("::") {
            Some((path, _)) => (path, true),
            None => (given.as_str(), false),
        };
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let absolute = ask.repository.join(path);
        let path =
            absolute.strip_prefix(&ask.repository).map_or(path, |path| path.to_str().unwrap_or_default());
        let below = format!("{path}/");
        let found: Vec<String> = there
            .iter()
            .filter(|file| {
                *file == path || (path == "." || file.starts_with(&below)) && is_collected(file.as_bytes())
            })
            .cloned()
            .collect();
        if found.is_empty() || !is_tree_path(path) {
            let repository = ask.repository.clone();
            return Err(ChangeError::NoSuchTest { given: given.clone(), repository });
        }
        if case {
            only.insert(format!("{path}{}", &given[given.find("::").unwrap_or(given.len())..]));
        }
        files.extend(found);
    }
    if files.is_empty() {
        return Err(ChangeError::NoTests { base: ask.base.clone() });
    }
    Ok((files, only))
}

/// Test trees that hold these files: the outermost folder called `tests` or `test`.
fn roots(files: &BTreeSet<String>) -> Vec<String> {
    let mut roots: BTreeSet<String> = BTreeSet::new();
    for file in files.iter().filter(|file| looks_like_test(file.as_bytes())) {
        let parts: Vec<&str> = file.split('/').collect();
        let folders = &parts[..parts.len() - 1];
        if let Some(depth) = folders.iter().position(|part| *part == "tests" || *part == "test") {
            roots.insert(parts[..=depth].join("/"));
        }
    }
    roots.into_iter().collect()
}

/// `src` first where the tree keeps packages there.
fn import_roots(there: &BTreeSet<String>) -> Vec<String> {
    let in_src = |path: &String| {
        path.starts_with("src/") && path.ends_with("/__init__.py") && path.split('/').count() == 3
    };
    if there.iter().any(in_src) { vec!["src".into(), ".".into()] } else { vec![".".into()] }
}

fn mentions(text: &[u8], module: &str) -> bool {
    let text = String::from_utf8_lossy(text);
    text.contains(&format!("import {module}")) || text.contains(&format!("from {module}"))
}

/// Whether a Python file of the base tree imports a module.
fn tree_mentions(ready: &ReadyTask, module: &str) -> bool {
    let mut folders = vec![ready.tree.path.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type();
            if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) {
                folders.push(path);
            } else if kind.is_ok_and(|kind| kind.is_file())
                && is_python(&path)
                && std::fs::read(&path).is_ok_and(|bytes| mentions(&bytes, module))
            {
                return true;
            }
        }
    }
    false
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}
