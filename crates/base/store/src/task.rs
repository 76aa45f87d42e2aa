//! One task's folder read into a [`SealedTask`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use infradev_model::{
    ACCEPTANCE_SCHEMA, Acceptance, Adversarial, AdversarialSpec, BaseSource, Contract, Digest, DigestBuilder,
    EnvironmentSpec, EquivalentMutant, EquivalentSpec, FormatError, Pack, PublicTask, SealedTask, TaskSpec,
    format, is_name,
};

use crate::disk;
use crate::error::StoreError;
use crate::pack::{History, LoadedTask, Split, text_file};
use crate::walk::{Kind, walk};

/// Written by acceptance into the task's folder; no part of what is accepted.
const ACCEPTANCE: &str = "acceptance.json";

/// Mutants that are listed as equivalent to golden. What is said of a mutant changes no trial of it.
const EQUIVALENT: &str = "equivalent.toml";

pub(crate) struct Context<'a> {
    pub pack: &'a Pack,
    /// The pack's folder, as the person named it.
    pub folder: &'a Path,
    /// The same, absolute.
    pub root: &'a Path,
    pub history: &'a dyn History,
}

/// Written by `infradev new`: the pull request's own description.
const DESCRIPTION: &str = "description.md";

/// What an attempt may see of a task.
pub(crate) fn load_public(context: &Context<'_>, id: &str) -> Result<PublicTask, StoreError> {
    let folder = context.folder.join("tasks").join(id);
    let spec = load_spec(context, id, &folder)?;
    let environment = environment_of(context, &spec, &folder)?;
    let base = base_of(context, &spec, &folder)?;
    let (description, contract) = public_texts(&folder)?;
    let pull_request = if_there(folder.join(DESCRIPTION))?.map(|path| text_file(&path)).transpose()?;
    Ok(PublicTask { spec, description, contract, pull_request, environment, base })
}

/// All of a task.
pub(crate) fn load(context: &Context<'_>, id: &str) -> Result<LoadedTask, StoreError> {
    let folder = context.folder.join("tasks").join(id);
    let public = load_public(context, id)?;
    let Split { golden, official } = patches(context, &public.base, &public.spec, &folder)?;
    let lock = match &public.environment.lock {
        Some(lock) => Some(disk::read(&context.folder.join(lock))?),
        None => None,
    };
    let canary = context.pack.canary();
    let without = |name: &str, bytes: Vec<u8>| match &canary {
        Some(canary) => canary.without(name, &bytes),
        None => bytes,
    };
    let probes = load_probes(&folder.join("probes"))?;
    let probes = probes.into_iter().map(|(name, bytes)| (name.clone(), without(&name, bytes))).collect();
    let mut adversarial = load_adversarial(&folder.join("adversarial"))?;
    for derived in &mut adversarial {
        derived.patch = derived.patch.take().map(|bytes| without(".patch", bytes));
    }
    let task = SealedTask {
        public,
        pack: context.pack.name.clone(),
        folder: context.root.join("tasks").join(id),
        golden: without(".patch", golden),
        official: without(".patch", official),
        probes,
        adversarial,
        equivalent: load_equivalent(&folder.join(EQUIVALENT))?,
        lock,
        canary,
    };
    let digest = digest_of(&task, &folder)?;
    Ok(LoadedTask { task, digest })
}

fn load_spec(context: &Context<'_>, id: &str, folder: &Path) -> Result<TaskSpec, StoreError> {
    let path = must_exist(folder.join("task.toml"))?;
    let bytes = disk::read(&path)?;
    let spec = TaskSpec::parse(&path.display().to_string(), &bytes)?;
    if spec.id != id {
        let taken = context.folder.join("tasks").join(&spec.id).join("task.toml");
        let what = if taken.is_file() {
            format!("`{}` is also the id of {}", spec.id, taken.display())
        } else {
            format!("`{}` is not the name of the task's folder, `{id}`", spec.id)
        };
        return Err(refusal(&path, &bytes, "id", what, Some(id.to_owned())));
    }
    Ok(spec)
}

fn environment_of(
    context: &Context<'_>,
    spec: &TaskSpec,
    folder: &Path,
) -> Result<EnvironmentSpec, StoreError> {
    if let Some(environment) = context.pack.environments.get(&spec.environment) {
        return Ok(environment.clone());
    }
    let path = folder.join("task.toml");
    let known: Vec<&str> = context.pack.environments.keys().map(String::as_str).collect();
    let what = format!(
        "`{}` is no environment of {}; known are {}",
        spec.environment,
        context.folder.join("pack.toml").display(),
        known.join(", ")
    );
    let nearest = (known.len() == 1).then(|| known[0].to_owned());
    Err(refusal(&path, &disk::read(&path)?, "environment", what, nearest))
}

fn base_of(context: &Context<'_>, spec: &TaskSpec, folder: &Path) -> Result<BaseSource, StoreError> {
    let path = folder.join("task.toml");
    match (&context.pack.source.tree, &context.pack.source.git, &spec.source) {
        (Some(tree), _, None) => Ok(BaseSource::Folder(context.root.join(tree))),
        (_, Some(git), Some(commits)) => {
            let (base, head) = (commits.base.clone(), commits.head.clone());
            Ok(BaseSource::Commit { repository: repository(context.root, git), base, head })
        }
        (_, _, Some(_)) => {
            let what = "names commits, but the pack bundles its base tree".to_owned();
            Err(refusal(&path, &disk::read(&path)?, "source", what, None))
        }
        (_, _, None) => {
            let what = "the pack is over a git repository: the task names `base` and `head`".to_owned();
            Err(refusal(&path, &disk::read(&path)?, "source", what, None))
        }
    }
}

/// A url as it is (`https://…`, `host:path`), a path made absolute from the pack's folder.
fn repository(root: &Path, git: &str) -> String {
    let before_slash = git.split('/').next().unwrap_or(git);
    if before_slash.contains(':') { git.to_owned() } else { root.join(git).to_string_lossy().into_owned() }
}

fn patches(
    context: &Context<'_>,
    base: &BaseSource,
    spec: &TaskSpec,
    folder: &Path,
) -> Result<Split, StoreError> {
    let (golden, official) = (folder.join("golden.patch"), folder.join("official.patch"));
    let from_commits = matches!(base, BaseSource::Commit { .. }) && !golden.exists() && !official.exists();
    if from_commits {
        let what = format!("{}: splitting its commits", folder.display());
        return context.history.split(base, spec).map_err(|error| StoreError::source(what, error.as_ref()));
    }
    let read = |path: PathBuf| -> Result<Vec<u8>, StoreError> {
        let path = must_exist(path)?;
        let bytes = disk::read(&path)?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(StoreError::pack(&path, "is empty"));
        }
        Ok(bytes)
    };
    Ok(Split { golden: read(golden)?, official: read(official)? })
}

fn load_probes(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
    let mut probes = BTreeMap::new();
    for (name, path) in files_in(folder)? {
        let known = name.ends_with(".py") && (name.starts_with("judge_") || name.starts_with("observe_"));
        if !known {
            return Err(StoreError::pack(&path, "a probe's file is judge_NAME.py or observe_NAME.py"));
        }
        text_file(&path)?;
        probes.insert(name, disk::read(&path)?);
    }
    if !probes.is_empty() && !probes.keys().any(|name| name.starts_with("judge_")) {
        return Err(StoreError::pack(folder, "there are observers and no judge_NAME.py"));
    }
    Ok(probes)
}

/// The adversarial patches of a task's folder `adversarial`; none where there is no such folder.
///
/// # Errors
/// A file that is not as it should be, or belongs to none.
pub fn load_adversarial(folder: &Path) -> Result<Vec<Adversarial>, StoreError> {
    let files = files_in(folder)?;
    let mut adversarial = Vec::new();
    let mut used = Vec::new();
    for (file, path) in &files {
        let Some(name) = file.strip_suffix(".toml") else { continue };
        if !is_name(name) {
            return Err(StoreError::pack(path, "its name is not lower-case letters, digits and dashes"));
        }
        let bytes = disk::read(path)?;
        let spec = AdversarialSpec::parse(&path.display().to_string(), &bytes)?;
        let patch = match &spec.patch {
            None => None,
            Some(patch) => {
                let Some(patch_path) = files.get(patch) else {
                    let what = format!("there is no file `{patch}` beside it");
                    return Err(refusal(path, &bytes, "patch", what, None));
                };
                used.push(patch.clone());
                Some(disk::read(patch_path)?)
            }
        };
        adversarial.push(Adversarial { name: name.to_owned(), spec, patch });
    }
    match files.iter().find(|(file, _)| !file.ends_with(".toml") && !used.contains(file)) {
        Some((_, path)) => {
            Err(StoreError::pack(path, "no NAME.toml beside it names this file as its `patch`"))
        }
        None => Ok(adversarial),
    }
}

fn load_equivalent(path: &Path) -> Result<Vec<EquivalentMutant>, StoreError> {
    match if_there(path.to_owned())? {
        Some(path) => Ok(EquivalentSpec::parse(&path.display().to_string(), &disk::read(&path)?)?.mutants),
        None => Ok(Vec::new()),
    }
}

/// Plain files of a folder by name, sorted; none where there is no such folder. Hidden ones and caches are passed over.
fn files_in(folder: &Path) -> Result<BTreeMap<String, PathBuf>, StoreError> {
    let mut files = BTreeMap::new();
    if !folder.exists() {
        return Ok(files);
    }
    if !folder.is_dir() {
        return Err(StoreError::pack(folder, "is a file; a folder is expected here"));
    }
    for entry in fs::read_dir(folder).map_err(|e| StoreError::io("list", folder, e))? {
        let entry = entry.map_err(|e| StoreError::io("list", folder, e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "__pycache__" {
            continue;
        }
        if !entry.path().is_file() {
            return Err(StoreError::pack(&entry.path(), "is no file"));
        }
        files.insert(name, entry.path());
    }
    Ok(files)
}

/// Digest of the folder's files, whatever they are, and of what the pack adds to the task; not of what decides nothing that is run.
fn digest_of(task: &SealedTask, folder: &Path) -> Result<Digest, StoreError> {
    let mut digest = DigestBuilder::new("infradev task v1");
    let keep =
        |name: &[u8]| !name.starts_with(b".") && name != b"__pycache__" && name != ACCEPTANCE.as_bytes();
    for entry in walk(folder, &keep)? {
        if entry.kind != Kind::Folder && entry.path != Path::new(EQUIVALENT) {
            digest.part(&entry.path.to_string_lossy(), &disk::read(&folder.join(&entry.path))?);
        }
    }
    digest.part("golden", &task.golden).part("official", &task.official);
    digest.part("environment", &serde_json::to_vec(&task.public.environment).unwrap_or_default());
    digest.part("lock", task.lock.as_deref().unwrap_or_default());
    Ok(digest.finish())
}

/// The task with spec, contract, probes and adversarial patches as another folder has them, which is its folder from then on.
///
/// # Errors
/// The first thing of that folder that is not as it should be, naming file, line and key.
pub fn with_parts(task: &SealedTask, folder: &Path) -> Result<SealedTask, StoreError> {
    let mut task = task.clone();
    (task.public.description, task.public.contract) = public_texts(folder)?;
    task.probes = load_probes(&folder.join("probes"))?;
    task.adversarial = load_adversarial(&folder.join("adversarial"))?;
    task.folder = folder.to_owned();
    Ok(task)
}

fn public_texts(folder: &Path) -> Result<(String, Contract), StoreError> {
    let description = text_file(&must_exist(folder.join("spec.md"))?)?;
    if description.trim().is_empty() {
        return Err(StoreError::pack(&folder.join("spec.md"), "is empty"));
    }
    let path = must_exist(folder.join("contract.toml"))?;
    Ok((description, Contract::parse(&path.display().to_string(), &disk::read(&path)?)?))
}

/// Writes the record of an acceptance into the task's folder, whole or not at all.
pub fn save_acceptance(task: &SealedTask, record: &Acceptance) -> Result<PathBuf, StoreError> {
    let path = task.folder.join(ACCEPTANCE);
    disk::write_json(&path, record)?;
    Ok(path)
}

/// The last acceptance record of a task, if there is one.
pub fn last_acceptance(task: &SealedTask) -> Result<Option<Acceptance>, StoreError> {
    let path = task.folder.join(ACCEPTANCE);
    let Some(bytes) = disk::read_if_there(&path)? else { return Ok(None) };
    let name = path.display().to_string();
    let record: Acceptance = format::json(&name, &bytes)?;
    format::schema(&name, record.schema, ACCEPTANCE_SCHEMA)?;
    Ok(Some(record))
}

fn must_exist(path: PathBuf) -> Result<PathBuf, StoreError> {
    let named = path.clone();
    if_there(path)?.ok_or_else(|| StoreError::pack(&named, "there is no such file"))
}

/// The path of a file that may be there; anything else under its name is refused.
fn if_there(path: PathBuf) -> Result<Option<PathBuf>, StoreError> {
    match fs::metadata(&path) {
        Ok(found) if found.is_file() => Ok(Some(path)),
        Ok(found) if found.is_dir() => Err(StoreError::pack(&path, "is a folder; a file is expected here")),
        Ok(_) => Err(StoreError::pack(&path, "is no plain file")),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io("read", &path, error))
        }
        Err(_) if path.is_symlink() => Err(StoreError::pack(&path, "is a link that leads nowhere")),
        Err(_) => Ok(None),
    }
}

fn refusal(path: &Path, bytes: &[u8], key: &str, what: String, nearest: Option<String>) -> StoreError {
    let error = FormatError::new(&path.display().to_string(), Some(key), what).meant(nearest);
    error.locate(&String::from_utf8_lossy(bytes)).into()
}
