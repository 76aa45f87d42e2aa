//! What is tried of a task: the mutants of its golden patch, and which of them it lists as equivalent. Read from base tree and
//! task; nothing is run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use infradev_executor::{ChangedFile, GoldenChange};
use infradev_model::{Digest, Mutant, PassedOver, SealedTask, ShownMutant};
use infradev_pycode::{MutationSource, mutants_unless};

use infradev_trial::TrialError;

use super::{FunnelError, shown};

/// The file of a task's folder that lists mutants as equivalent to golden.
const EQUIVALENT: &str = "equivalent.toml";

/// Mutants that a task lists as equivalent to golden, by their digests, each with its reason.
pub type Listed = BTreeMap<Digest, String>;

/// All mutants of a task's golden patch.
#[derive(Debug, Clone, Default)]
pub struct Mutations {
    /// The mutants.
    pub mutants: Vec<Mutant>,
    /// Files that none were made of.
    pub passed_over: Vec<PassedOver>,
    /// Those that the task lists as equivalent.
    pub listed: Listed,
}

impl Mutations {
    /// Makes the mutants, and finds each one that is listed.
    ///
    /// # Errors
    /// [`FunnelError::Listing`] where an entry names no mutant, or several; golden does not apply; an end was asked for.
    pub fn of(task: &SealedTask, tree: &Path) -> Result<Mutations, FunnelError> {
        let files = GoldenChange::on(task, tree)?.files();
        let (mutants, passed_over) = mutants_of(&files);
        if infradev_supervise::cancelled() {
            return Err(TrialError::Cancelled.into());
        }
        let listed = listed(task, &files, &mutants)?;
        Ok(Mutations { mutants, passed_over, listed })
    }

    /// The same, with submodules that the change touches, by path, among what is passed over.
    #[must_use]
    pub fn with_submodules(mut self, paths: &BTreeSet<String>) -> Mutations {
        let why = "a submodule: what it holds is another repository's";
        self.passed_over
            .extend(paths.iter().map(|path| PassedOver { file: path.clone(), why: why.to_string() }));
        self.passed_over.sort_by(|one, other| one.file.cmp(&other.file));
        self
    }
}

fn mutants_of(files: &[ChangedFile]) -> (Vec<Mutant>, Vec<PassedOver>) {
    let (mut found, mut passed_over) = (Vec::new(), Vec::new());
    // What Python leaves beside the code that it ran is nobody's change.
    for file in files.iter().filter(|file| !file.path.split('/').any(|part| part == "__pycache__")) {
        let pass_over = |why: &str| PassedOver { file: file.path.clone(), why: why.to_string() };
        if !file.path.ends_with(".py") {
            passed_over.push(pass_over("not Python"));
            continue;
        }
        if file.is_link {
            passed_over.push(pass_over("a link: what it leads to is looked at where it lies"));
            continue;
        }
        if file.is_removed {
            passed_over.push(pass_over("removed by the change: no line of it is left that could break"));
            continue;
        }
        if file.undecoded {
            passed_over.push(pass_over(
                "is no UTF-8: no mutants are made of it, and none of its lines is looked at",
            ));
            continue;
        }
        let source =
            MutationSource { path: &file.path, base: file.base.as_deref(), golden: file.golden.as_deref() };
        match mutants_unless(&source, &infradev_supervise::cancelled) {
            Ok(mutants) => found.extend(mutants),
            Err(error) => passed_over.push(pass_over(&error.to_string())),
        }
    }
    (found, passed_over)
}

fn listed(task: &SealedTask, files: &[ChangedFile], mutants: &[Mutant]) -> Result<Listed, FunnelError> {
    let mut listed = Listed::new();
    if task.equivalent.is_empty() {
        return Ok(listed);
    }
    let golden = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.and_then(|file| file.golden.as_deref()).unwrap_or_default()
    };
    let texts: Vec<(String, String)> =
        mutants.iter().map(|mutant| shown(mutant, golden(&mutant.file))).collect();
    let all: Vec<ShownMutant<'_>> = mutants
        .iter()
        .zip(&texts)
        .map(|(mutant, (was, becomes))| ShownMutant { mutant, was, becomes })
        .collect();
    let path = task.folder.join(EQUIVALENT).display().to_string();
    for (index, entry) in task.equivalent.iter().enumerate() {
        let mutant = entry.find(&path, index, &all)?;
        listed.insert(mutant.digest.clone(), entry.why.trim().to_string());
    }
    Ok(listed)
}
