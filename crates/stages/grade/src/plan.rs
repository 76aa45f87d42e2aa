//! What is to be graded: built-in submissions, a folder of patches, or predictions in SWE-bench's format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use infradev_model::{Class, Classified, FormatError, SealedTask, format};
use serde::Deserialize;

/// A patch to be graded on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The task's id.
    pub task: String,
    /// Who or what made it; a grade is shown under this name and knows nothing else of it.
    pub name: String,
    /// The patch.
    pub content: Content,
}

/// Where a submission's patch comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Golden.
    Golden,
    /// Base as it is: a control.
    Base,
    /// Golden's interfaces, every added function raises.
    Hollow,
    /// The adversarial patch of this name.
    Adversarial(String),
    /// These bytes.
    Patch(Vec<u8>),
    /// Nothing was submitted.
    Missing,
}

/// What `infradev grade` was asked for.
#[derive(Debug, Clone)]
pub struct GradePlan {
    /// Tasks.
    pub tasks: Vec<Arc<SealedTask>>,
    /// Submissions, each on one of these tasks.
    pub submissions: Vec<Submission>,
}

/// Why a set of submissions cannot be graded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SubmissionError {
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "{path}: neither `golden`, `base`, `hollow`, `adversarial`, nor a folder, a .jsonl or a .patch file that is there"
    )]
    Unknown { path: PathBuf },
    #[error("{path}:{line}: a second submission of {name} for {task}; the first is on line {first}")]
    Duplicate { path: PathBuf, line: usize, first: usize, name: String, task: String },
    #[error("{path}:{line}: key `model_name_or_path`: is empty or holds a control character")]
    Name { path: PathBuf, line: usize },
    #[error("{path}: a second submission of {name} for {task}; the first is {first}", first = .first.display())]
    SecondFile { path: PathBuf, first: PathBuf, name: String, task: String },
    #[error("{path}{}: there is no task {task} in the pack", line.map(|line| format!(":{line}")).unwrap_or_default())]
    NoTask { path: PathBuf, line: Option<usize>, task: String, known: Vec<String> },
    #[error("{path}: holds no patch: name them <task>.patch, or <name>/<task>.patch")]
    EmptyFolder { path: PathBuf },
}

impl Classified for SubmissionError {
    fn class(&self) -> Class {
        match self {
            SubmissionError::Unknown { .. } => Class::Usage,
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            SubmissionError::Format(error) => error.hint(),
            SubmissionError::NoTask { known, .. } => Some(format!("its tasks are {}", known.join(", "))),
            SubmissionError::Duplicate { .. } => {
                Some("keep one line for each pair of instance_id and model_name_or_path".to_string())
            }
            _ => None,
        }
    }
}

/// One line of a predictions file: SWE-bench's fields.
#[derive(Debug, Deserialize)]
struct Prediction {
    instance_id: String,
    model_name_or_path: String,
    model_patch: Option<String>,
}

/// Names of patches of the task's own, by which trials are shown too.
const BUILT_IN: [&str; 3] = ["golden", "base", "hollow"];

/// The name of what was submitted, told from a patch of the task's own.
fn submitted(name: String) -> String {
    if BUILT_IN.contains(&name.as_str()) { format!("{name} (submitted)") } else { name }
}

/// Reads what `--patches` names, for these tasks. Files may name further tasks of the pack, whose ids are `pack`: what they
/// hold for those is checked and left out.
pub fn submissions(
    patches: &str,
    tasks: &[Arc<SealedTask>],
    pack: &[String],
) -> Result<Vec<Submission>, SubmissionError> {
    let each = |name: &str, content: Content| {
        let all = tasks.iter().map(|task| Submission {
            task: task.id().to_string(),
            name: name.to_string(),
            content: content.clone(),
        });
        Ok(all.collect())
    };
    match patches {
        "golden" => return each("golden", Content::Golden),
        "base" => return each("base", Content::Base),
        "hollow" => return each("hollow", Content::Hollow),
        "adversarial" => return Ok(adversarial(tasks)),
        _ => {}
    }
    let path = Path::new(patches);
    if path.is_dir() {
        folder(path, pack).map(|found| asked(found, tasks))
    } else if path.is_file() && patches.ends_with(".jsonl") {
        predictions(path, tasks, pack)
    } else if path.is_file()
        && (patches.ends_with(".patch") || patches.ends_with(".diff"))
        && tasks.len() == 1
    {
        let content = Content::Patch(read(path)?);
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(vec![Submission { task: tasks[0].id().to_string(), name: submitted(name), content }])
    } else {
        Err(SubmissionError::Unknown { path: path.to_path_buf() })
    }
}

fn adversarial(tasks: &[Arc<SealedTask>]) -> Vec<Submission> {
    let of = |task: &Arc<SealedTask>| {
        let id = task.id().to_string();
        let named = move |name: &String| Submission {
            task: id.clone(),
            name: name.clone(),
            content: Content::Adversarial(name.clone()),
        };
        task.adversarial.iter().map(|adversarial| named(&adversarial.name)).collect::<Vec<_>>()
    };
    tasks.iter().flat_map(of).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, SubmissionError> {
    std::fs::read(path).map_err(|source| SubmissionError::Io { path: path.to_path_buf(), source })
}

/// Those on the tasks that are asked for.
fn asked(mut submissions: Vec<Submission>, tasks: &[Arc<SealedTask>]) -> Vec<Submission> {
    submissions.retain(|submission| tasks.iter().any(|task| task.id() == submission.task));
    submissions
}

fn known(path: &Path, line: Option<usize>, task: &str, pack: &[String]) -> Result<(), SubmissionError> {
    if pack.iter().any(|known| known == task) {
        return Ok(());
    }
    let known = pack.to_vec();
    Err(SubmissionError::NoTask { path: path.to_path_buf(), line, task: task.to_string(), known })
}

/// `<task>.patch`, submitted under the folder's name, and `<name>/<task>.patch`.
fn folder(path: &Path, pack: &[String]) -> Result<Vec<Submission>, SubmissionError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| SubmissionError::Io { path, source }
    };
    let list = |folder: &Path| -> Result<Vec<PathBuf>, SubmissionError> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(io(folder))? {
            found.push(entry.map_err(io(folder))?.path());
        }
        found.sort();
        Ok(found)
    };
    let mut submissions = Vec::new();
    let mut seen: BTreeMap<(String, String), PathBuf> = BTreeMap::new();
    let mut take = |file: &Path, name: String| -> Result<(), SubmissionError> {
        if file.extension().is_none_or(|extension| extension != "patch" && extension != "diff") {
            return Ok(());
        }
        let task = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        known(file, None, &task, pack)?;
        if let Some(first) = seen.insert((task.clone(), name.clone()), file.to_path_buf()) {
            return Err(SubmissionError::SecondFile { path: file.to_path_buf(), first, name, task });
        }
        let content = Content::Patch(read(file)?);
        submissions.push(Submission { task, name: submitted(name), content });
        Ok(())
    };
    let name_of =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let outer = name_of(&std::fs::canonicalize(path).map_err(io(path))?);
    for entry in list(path)? {
        if entry.is_dir() {
            for file in list(&entry)? {
                take(&file, name_of(&entry))?;
            }
        } else {
            take(&entry, outer.clone())?;
        }
    }
    if submissions.is_empty() {
        return Err(SubmissionError::EmptyFolder { path: path.to_path_buf() });
    }
    Ok(submissions)
}

fn predictions(
    path: &Path,
    tasks: &[Arc<SealedTask>],
    pack: &[String],
) -> Result<Vec<Submission>, SubmissionError> {
    let bytes = read(path)?;
    let file = path.display().to_string();
    let text = format::utf8(&file, &bytes)?;
    // Editors of some systems begin a file with a byte-order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut submissions = Vec::new();
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut named: BTreeSet<String> = BTreeSet::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        let here = |mut error: FormatError| {
            error.line = Some(number);
            error
        };
        // A list of the same three values would be taken for the object.
        if !line.trim_start().starts_with('{') {
            return Err(here(FormatError::new(&file, None, "a line is one JSON object")).into());
        }
        let prediction: Prediction = format::json(&file, line.as_bytes()).map_err(here)?;
        let Prediction { instance_id: task, model_name_or_path: name, model_patch } = prediction;
        known(path, Some(number), &task, pack)?;
        if name.trim().is_empty() || name.contains(char::is_control) {
            return Err(SubmissionError::Name { path: path.to_path_buf(), line: number });
        }
        let name = submitted(name);
        if let Some(first) = seen.insert((task.clone(), name.clone()), number) {
            return Err(SubmissionError::Duplicate {
                path: path.to_path_buf(),
                line: number,
                first,
                name,
                task,
            });
        }
        named.insert(name.clone());
        let content = match model_patch {
            Some(patch) => Content::Patch(patch.into_bytes()),
            None => Content::Missing,
        };
        submissions.push(Submission { task, name, content });
    }
    // A model that submitted nothing for a task is graded there all the same: a missing patch scores 0 (§3.2).
    for name in named {
        for task in tasks {
            if !seen.contains_key(&(task.id().to_string(), name.clone())) {
                submissions.push(Submission {
                    task: task.id().to_string(),
                    name: name.clone(),
                    content: Content::Missing,
                });
            }
        }
    }
    Ok(asked(submissions, tasks))
}
