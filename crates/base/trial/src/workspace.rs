//! The tree under test: base with the patch in it, the task's test trees laid over last, and the cases that must fail among
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use infradev_model::{BuildSpec, CalibratedTwin, Overlaid, OverlayAction, Tests};
use infradev_patch::{ApplyError, Patch, PathClass, TestPaths, apply};
use infradev_pycode::{TopLevelKind, canary, top_level_names, twins};
use infradev_pyenv::Layer;
use infradev_store::{Sharing, StoreError, Tree, Trees};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::layering;

/// Twins tried for each official file when golden is calibrated.
const CANDIDATES: usize = 3;

/// Why a tree could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The submission does not apply: its own fault.
    #[error("{0}")]
    NotApplied(String),
    /// The task's own patch does not apply to its base, or names files that are not there.
    #[error("{what}")]
    Task {
        /// What is wrong, naming the file.
        what: String,
    },
    /// The host's disk or a system call.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> PrepareError {
    let path = path.to_path_buf();
    move |source| PrepareError::Io { path, source }
}

/// Which twins are laid.
#[derive(Debug, Clone, Copy)]
pub enum TwinChoice<'a> {
    /// Candidates, to see which fail on golden.
    Candidates,
    /// Those that do.
    Calibrated(&'a [CalibratedTwin]),
    /// None, and no canaries either.
    Nothing,
}

/// What a tree is made from.
pub struct Ingredients<'a> {
    /// All base trees.
    pub trees: &'a Trees,
    /// This task's.
    pub tree: &'a Tree,
    /// Whether the workspace may share files with it.
    pub sharing: Sharing,
    /// The submission's bytes.
    pub patch: &'a [u8],
    /// The task's test part, or nothing to test with base's own tests.
    pub official: Option<&'a [u8]>,
    /// Golden, for what it changes in runner configuration.
    pub golden: &'a [u8],
    /// The official tests.
    pub tests: &'a Tests,
    /// What the task builds of a tree, and what was built of this one.
    pub build: Option<&'a BuildSpec>,
    /// As above; none where this tree has nothing to build.
    pub layer: Option<&'a Layer>,
    /// The folder to make it in.
    pub scratch: &'a Path,
    /// Twins.
    pub twins: TwinChoice<'a>,
    /// Seed of names and places.
    pub seed: u64,
}

/// A test file that must fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MustFail {
    /// A random one.
    Canary {
        /// The test's id.
        id: String,
    },
    /// A real one with a perturbed expectation.
    Twin {
        /// The test's id without parameters.
        id: String,
        /// What it is a twin of.
        of: CalibratedTwin,
    },
}

/// A tree that is ready.
#[derive(Debug)]
pub struct Workspace {
    /// Its folder.
    pub path: PathBuf,
    /// Mendings of the patch.
    pub mended: Vec<String>,
    /// What of the patch was laid over.
    pub overlaid: Vec<Overlaid>,
    /// Test files in the order of collection.
    pub files: Vec<String>,
    /// Which of them must fail.
    pub must_fail: BTreeMap<String, MustFail>,
    /// Names that must resolve inside the tree; whether base has them too.
    pub top_level: Vec<(String, bool)>,
    /// The tree with the patch's own conftest and runner configuration, where it brings some.
    pub suspect: Option<Suspect>,
}

/// The patched tree as it came, with nothing but cases that must fail: what the patch's own conftest and runner configuration
/// make of them is told apart from what an honest fixture does.
#[derive(Debug)]
pub struct Suspect {
    /// Its folder.
    pub path: PathBuf,
    /// Test files that must fail.
    pub files: Vec<String>,
    /// Conftest files and runner configuration that the patch brought.
    pub brought: Vec<String>,
}

impl Workspace {
    /// Makes a tree ready.
    pub fn prepare(parts: &Ingredients<'_>) -> Result<Workspace, PrepareError> {
        let path = parts.scratch.join("workspace");
        let reference = parts.scratch.join("reference");
        parts.trees.workspace(parts.tree, &path, parts.sharing)?;
        let task_paths = TaskPaths::new(parts)?;
        copy_held(&parts.tree.path, &reference, &task_paths).map_err(at(&reference))?;
        apply_task_part(&task_paths.laid, &reference)?;

        let patch = Patch::parse(parts.patch).map_err(|error| PrepareError::NotApplied(error.to_string()))?;
        let applied = apply(&patch, &path).map_err(|error| match error {
            ApplyError::Io { path: file, source, .. } => PrepareError::Io { path: path.join(file), source },
            error => PrepareError::NotApplied(error.to_string()),
        })?;
        let mended = applied.mended.iter().map(ToString::to_string).collect();
        let purged = layering::lay_built(&path, parts).map_err(at(&path))?;
        let mut differing = differences(&patch, &path, &reference, &task_paths);
        differing.extend(purged);
        let brought =
            differing.iter().filter(|laid| steers_the_runner(&laid.path) && path.join(&laid.path).exists());
        let brought: Vec<String> = brought.map(|laid| laid.path.clone()).collect();
        let suspect = match parts.twins {
            TwinChoice::Nothing => None,
            _ if brought.is_empty() => None,
            _ => Some(Suspect::lay(parts, &path, brought)?),
        };
        overlay(&path, &reference, &task_paths)?;
        let mut workspace = Workspace {
            path,
            mended,
            overlaid: differing,
            files: Vec::new(),
            must_fail: BTreeMap::new(),
            top_level: Vec::new(),
            suspect,
        };
        workspace.name_roots(parts)?;
        workspace.lay_must_fail(parts)?;
        fs::remove_dir_all(&reference).map_err(at(&reference))?;
        Ok(workspace)
    }

    fn name_roots(&mut self, parts: &Ingredients<'_>) -> Result<(), PrepareError> {
        let ours = listing(&self.path).map_err(at(&self.path))?;
        let base = listing(&parts.tree.path).map_err(at(&parts.tree.path))?;
        let mut names: BTreeMap<String, bool> = BTreeMap::new();
        for root in &parts.tests.import_roots {
            // A plain folder of base may share its name with an installed package: only a patch that makes a package of it
            // is then tested in the other's place, and that is no mistake of the task.
            let packages = top_level_names(&base, root).into_iter();
            let in_base: BTreeSet<String> =
                packages.filter(|name| name.kind != TopLevelKind::Namespace).map(|name| name.name).collect();
            for name in top_level_names(&ours, root) {
                let decides = name.kind != TopLevelKind::Namespace && in_base.contains(&name.name);
                *names.entry(name.name).or_default() |= decides;
            }
        }
        self.top_level = names.into_iter().collect();
        Ok(())
    }

    /// Lays canaries and twins among the official files, in random places under random names.
    fn lay_must_fail(&mut self, parts: &Ingredients<'_>) -> Result<(), PrepareError> {
        let mut rng = StdRng::seed_from_u64(parts.seed);
        let official: Vec<String> = match parts.official {
            Some(_) => parts.tests.official.clone(),
            None => {
                parts.tests.official.iter().filter(|file| self.path.join(file).exists()).cloned().collect()
            }
        };
        for file in &official {
            if !self.path.join(file).is_file() {
                let what = format!(
                    "tests.official names {file}, which is not in the tree once official.patch is in"
                );
                return Err(PrepareError::Task { what });
            }
        }
        self.files = official.clone();
        if matches!(parts.twins, TwinChoice::Nothing) {
            return Ok(());
        }
        let mut laid: Vec<(String, String, MustFail)> = Vec::new();
        let folders: BTreeSet<&str> = official.iter().map(|file| folder_of(file)).collect();
        for folder in folders {
            let (file, text, test) = self.fresh(folder, &mut rng);
            laid.push((file.clone(), text, MustFail::Canary { id: format!("{file}::{test}") }));
        }
        for file in &official {
            for (of, text) in self.twins_of(file, parts.twins, &mut rng)? {
                let (name, ..) = self.fresh(folder_of(file), &mut rng);
                let id = format!("{name}::{}", of.function);
                laid.push((name, text, MustFail::Twin { id, of }));
            }
        }
        for (file, text, must_fail) in laid {
            let path = self.path.join(&file);
            write_readable(&path, text.as_bytes()).map_err(at(&path))?;
            self.files.push(file.clone());
            self.must_fail.insert(file, must_fail);
        }
        self.files.shuffle(&mut rng);
        Ok(())
    }

    fn fresh(&self, folder: &str, rng: &mut StdRng) -> (String, String, String) {
        loop {
            let canary = canary(rng);
            let file =
                if folder.is_empty() { canary.file_name } else { format!("{folder}/{}", canary.file_name) };
            if !self.path.join(&file).exists() && !self.must_fail.contains_key(&file) {
                return (file, canary.text, canary.test_name);
            }
        }
    }

    fn twins_of(
        &self,
        file: &str,
        choice: TwinChoice<'_>,
        rng: &mut StdRng,
    ) -> Result<Vec<(CalibratedTwin, String)>, PrepareError> {
        let path = self.path.join(file);
        let bytes = fs::read(&path).map_err(at(&path))?;
        // A test file that is no valid Python has no twins; collecting it says what is wrong.
        let Ok(text) = String::from_utf8(bytes) else { return Ok(Vec::new()) };
        let Ok(all) = twins(file, &text, rng) else { return Ok(Vec::new()) };
        let named = all.into_iter().map(|twin| {
            let of = CalibratedTwin {
                file: file.to_string(),
                function: twin.test_function,
                line: twin.line as u32,
            };
            (of, twin.text)
        });
        let mut wanted: Vec<(CalibratedTwin, String)> = match choice {
            TwinChoice::Nothing => Vec::new(),
            TwinChoice::Candidates => named.collect(),
            TwinChoice::Calibrated(valid) => named.filter(|(of, _)| valid.contains(of)).collect(),
        };
        match choice {
            TwinChoice::Candidates => {
                // The same ones in every run of golden: spread evenly over the file.
                let step = wanted.len().div_ceil(CANDIDATES).max(1);
                Ok(wanted.into_iter().step_by(step).collect())
            }
            _ => {
                wanted.shuffle(rng);
                wanted.truncate(1);
                Ok(wanted)
            }
        }
    }
}

/// The paths that are the task's: test trees, runner configuration, and whatever official.patch touches.
struct TaskPaths {
    classes: TestPaths,
    touched: BTreeSet<Vec<u8>>,
    laid: Vec<(Patch, &'static str)>,
}

impl TaskPaths {
    fn new(parts: &Ingredients<'_>) -> Result<TaskPaths, PrepareError> {
        let classes = TestPaths::new(&parts.tests.roots);
        let mut touched = BTreeSet::new();
        let mut laid = Vec::new();
        if let Some(official) = parts.official {
            let broken = |error: infradev_patch::PatchError| PrepareError::Task {
                what: format!("official.patch: {error}"),
            };
            let patch = Patch::parse(official).map_err(broken)?;
            for file in &patch.files {
                touched.extend([file.old_path.clone(), file.new_path.clone()]);
            }
            laid.push((patch, "official.patch"));
            let broken = |error: infradev_patch::PatchError| PrepareError::Task {
                what: format!("golden.patch: {error}"),
            };
            let mut golden = Patch::parse(parts.golden).map_err(broken)?;
            golden.files.retain(|file| classes.classify(&file.new_path) != PathClass::Source);
            golden.files.retain(|file| !touched.contains(&file.new_path));
            laid.push((golden, "golden.patch"));
        }
        Ok(TaskPaths { classes, touched, laid })
    }

    fn holds(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.touched.contains(path) || self.classes.classify(path) != PathClass::Source
    }
}

/// Copies the task's paths of the base tree: links where the file system allows, since a patch never writes in place.
fn copy_held(tree: &Path, into: &Path, task_paths: &TaskPaths) -> io::Result<()> {
    fs::create_dir_all(into)?;
    for relative in files_below(tree)?.into_iter().filter(|relative| task_paths.holds(relative)) {
        link_or_copy(&tree.join(&relative), &into.join(&relative))?;
    }
    Ok(())
}

fn apply_task_part(laid: &[(Patch, &'static str)], reference: &Path) -> Result<(), PrepareError> {
    for (patch, name) in laid {
        apply(patch, reference).map_err(|error| match error {
            ApplyError::Io { path, source, .. } => PrepareError::Io { path: reference.join(path), source },
            error => PrepareError::Task { what: format!("{name}: {error}") },
        })?;
    }
    Ok(())
}

/// What of the patch an overlay undoes: paths of the task where patched tree and reference differ.
fn differences(patch: &Patch, workspace: &Path, reference: &Path, task_paths: &TaskPaths) -> Vec<Overlaid> {
    let mut differing = Vec::new();
    let changed: BTreeSet<&Vec<u8>> =
        patch.files.iter().flat_map(|file| [&file.old_path, &file.new_path]).collect();
    for path in changed {
        let relative = Path::new(std::ffi::OsStr::from_bytes(path));
        if !task_paths.holds(relative) {
            continue;
        }
        let (theirs, ours) = (content(&workspace.join(relative)), content(&reference.join(relative)));
        if theirs != ours {
            let action = if ours.is_some() { OverlayAction::Restored } else { OverlayAction::Purged };
            differing.push(Overlaid { path: relative.to_string_lossy().into_owned(), action });
        }
    }
    differing
}

/// Whether pytest takes hooks or options from a file of this name.
fn steers_the_runner(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "conftest.py" || TestPaths::default().classify(path.as_bytes()) == PathClass::RunnerConfig
}

impl Suspect {
    fn lay(parts: &Ingredients<'_>, patched: &Path, brought: Vec<String>) -> Result<Suspect, PrepareError> {
        let path = parts.scratch.join("suspect");
        copy_tree(patched, &path).map_err(at(&path))?;
        let mut rng = StdRng::seed_from_u64(parts.seed ^ 0x5eed);
        let mut folders: BTreeSet<String> =
            parts.tests.official.iter().map(|file| folder_of(file).to_string()).collect();
        // A conftest steers the folders below its own.
        folders.extend(
            brought.iter().filter(|file| file.ends_with(".py")).map(|file| folder_of(file).to_string()),
        );
        let mut files = Vec::new();
        for folder in folders {
            make_real_parents(&path, Path::new(&format!("{folder}/x"))).map_err(at(&path))?;
            let canary = canary(&mut rng);
            let file =
                if folder.is_empty() { canary.file_name } else { format!("{folder}/{}", canary.file_name) };
            let target = path.join(&file);
            if !target.exists() {
                write_readable(&target, canary.text.as_bytes()).map_err(at(&target))?;
                files.push(file);
            }
        }
        Ok(Suspect { path, files, brought })
    }
}

/// Copies a tree by links, or by content where the file system refuses.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for relative in files_below(from)? {
        link_or_copy(&from.join(&relative), &to.join(&relative))?;
    }
    Ok(())
}

pub(crate) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::read_link(from) {
        Ok(target) => std::os::unix::fs::symlink(target, to),
        Err(_) if fs::hard_link(from, to).is_ok() => Ok(()),
        Err(_) => fs::copy(from, to).map(|_| ()),
    }
}

/// Replaces the task's paths in the patched tree by the reference's.
fn overlay(workspace: &Path, reference: &Path, task_paths: &TaskPaths) -> Result<(), PrepareError> {
    for relative in files_below(workspace).map_err(at(workspace))? {
        let path = workspace.join(&relative);
        if task_paths.holds(&relative) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    for relative in files_below(reference).map_err(at(reference))? {
        let target = workspace.join(&relative);
        make_real_parents(workspace, &relative).map_err(at(&target))?;
        if fs::symlink_metadata(&target).is_ok_and(|found| found.is_dir()) {
            fs::remove_dir_all(&target).map_err(at(&target))?;
        }
        fs::rename(reference.join(&relative), &target).map_err(at(&target))?;
    }
    Ok(())
}

/// Makes every parent of `relative` a folder of the tree itself: a link or a file that a patch put there goes.
pub(crate) fn make_real_parents(root: &Path, relative: &Path) -> io::Result<()> {
    let mut path = root.to_path_buf();
    for part in relative.parent().into_iter().flat_map(Path::components) {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                fs::remove_file(&path)?;
                fs::create_dir(&path)?;
            }
            Err(_) => fs::create_dir(&path)?,
        }
    }
    Ok(())
}

/// What stands at a path: a file's bytes or a link's target.
fn content(path: &Path) -> Option<Vec<u8>> {
    match fs::read_link(path) {
        Ok(target) => Some([b"link to ".as_slice(), target.as_os_str().as_bytes()].concat()),
        Err(_) => fs::read(path).ok(),
    }
}

/// Files and links below a folder, relative to it; links are not followed.
pub(crate) fn files_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let relative = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() { folders.push(relative) } else { found.push(relative) }
        }
    }
    Ok(found)
}

/// Paths of the files and links below a folder, relative to it.
///
/// # Errors
/// A folder cannot be read.
pub fn files_of(root: &Path) -> io::Result<Vec<Vec<u8>>> {
    Ok(files_below(root)?.into_iter().map(|path| path.into_os_string().into_encoded_bytes()).collect())
}

fn listing(root: &Path) -> io::Result<Vec<String>> {
    Ok(files_below(root)?.into_iter().filter_map(|path| path.into_os_string().into_string().ok()).collect())
}

/// A path's bytes.
pub(crate) fn path_of(relative: &Path) -> &[u8] {
    relative.as_os_str().as_bytes()
}

fn folder_of(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn write_readable(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
