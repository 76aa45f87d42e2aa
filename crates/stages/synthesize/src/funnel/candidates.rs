//! Mutants that fool the official tests and that a probe rejects, written down as adversarial patches of the task.

use std::collections::BTreeSet;
use std::fs;

use infradev_executor::{ChangedFile, GoldenChange, ReadyTask};
use infradev_model::{
    Adversarial, AdversarialSpec, Fate, Mutant, Operator, PatchedOn, Replacement, Synthesis, TASK_SCHEMA,
};
use infradev_store::StoreError;

use super::{FunnelError, Mutations};

/// Writes candidates into the task's `adversarial/`, one for each kind of mistake in each function; gives the names of those
/// written. Files that are there are left as they are. Whether a candidate is stable is for acceptance to say.
pub fn write_candidates(ready: &ReadyTask, found: &Synthesis) -> Result<Vec<String>, FunnelError> {
    let files = GoldenChange::of(ready)?.files();
    let folder = ready.task.folder.join("adversarial");
    fs::create_dir_all(&folder).map_err(|error| StoreError::io("create", &folder, error))?;
    let mut kinds = BTreeSet::new();
    let mut written = Vec::new();
    for record in found.mutants.iter().filter(|record| record.fate == Fate::Probe) {
        let mutant = &record.mutant;
        let Some(spec) = specification(mutant, &record.promise, &files) else { continue };
        if !kinds.insert((mutant.file.clone(), mutant.function.clone(), mutant.operator)) {
            continue;
        }
        let name = name_of(mutant);
        let path = folder.join(format!("{name}.toml"));
        if path.exists() {
            continue;
        }
        let text = toml::to_string_pretty(&spec).map_err(|error| FunnelError::Given {
            path: path.display().to_string(),
            why: error.to_string(),
        })?;
        fs::write(&path, text).map_err(|error| StoreError::io("write", &path, error))?;
        written.push(name);
    }
    Ok(written)
}

/// A mutant of golden as a submission, found by the name that [`write_candidates`] would give it (`drop-guard-scheduler-86`) or by
/// the beginning, eight characters at least, of its digest. `None` where the task has none of that name.
///
/// # Errors
/// [`FunnelError::Given`] where the name is that of several; golden does not apply.
pub fn mutant_named(ready: &ReadyTask, name: &str) -> Result<Option<Vec<u8>>, FunnelError> {
    let task = &ready.task;
    let mutants = Mutations::of(task, &ready.tree.path)?.mutants;
    let by_digest = |mutant: &Mutant| name.len() >= 8 && mutant.digest.as_str().starts_with(name);
    let found: Vec<&Mutant> =
        mutants.iter().filter(|mutant| name_of(mutant) == name || by_digest(mutant)).collect();
    let mutant = match found[..] {
        [] => return Ok(None),
        [mutant] => mutant,
        _ => {
            let digests: Vec<&str> = found.iter().map(|mutant| mutant.digest.short()).collect();
            return Err(FunnelError::Given {
                path: task.folder.join("golden.patch").display().to_string(),
                why: format!(
                    "{} mutants are called {name}: say which by {}",
                    found.len(),
                    digests.join(", ")
                ),
            });
        }
    };
    let change = GoldenChange::of(ready)?;
    let Some(spec) = specification(mutant, mutant.promise(), &change.files()) else {
        return Ok(None);
    };
    Ok(Some(change.adversarial(&Adversarial { name: name.to_owned(), spec, patch: None })?))
}

/// `drop-guard-scheduler-86`.
fn name_of(mutant: &Mutant) -> String {
    let file = mutant.file.rsplit('/').next().unwrap_or_default().trim_end_matches(".py");
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let file: String = file.chars().map(word).collect();
    format!("{}-{}-{}", mutant.operator.name(), file.trim_matches('-'), mutant.line)
}

/// The mutation by name; none where no text stands in the file once only.
fn specification(mutant: &Mutant, promise: &str, files: &[ChangedFile]) -> Option<AdversarialSpec> {
    let place = mutant.function.as_ref().map_or(mutant.file.clone(), Clone::clone);
    let mut spec = AdversarialSpec {
        schema: TASK_SCHEMA,
        promise: format!("{place}: {promise}"),
        patch: None,
        on: PatchedOn::Golden,
        take_back: Vec::new(),
        replace: Vec::new(),
    };
    if mutant.operator == Operator::TakeBackFile {
        spec.take_back.push(mutant.file.clone());
        return Some(spec);
    }
    let golden = files.iter().find(|file| file.path == mutant.file)?.golden.as_deref()?;
    let replacement = mutant.replacement.as_deref()?;
    let (start, end) = unique(golden, mutant.start, mutant.end)?;
    spec.replace.push(Replacement {
        file: mutant.file.clone(),
        find: golden[start..end].to_string(),
        with: format!("{}{replacement}{}", &golden[start..mutant.start], &golden[mutant.end..end]),
    });
    Some(spec)
}

/// The smallest range of whole lines around a span whose text stands in the file once.
fn unique(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let before = |at: usize| text[..at].rfind('\n').map_or(0, |at| at + 1);
    let after = |at: usize| text[at..].find('\n').map_or(text.len(), |more| at + more + 1);
    let (mut from, mut to) =
        (before(start), if end > start && text[..end].ends_with('\n') { end } else { after(end) });
    loop {
        if from < to && text.matches(&text[from..to]).count() == 1 {
            return Some((from, to));
        }
        if from == 0 && to == text.len() {
            return None;
        }
        from = before(from.saturating_sub(1));
        to = after(to.min(text.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::unique;

    #[test]
    fn a_range_grows_until_its_text_stands_once() {
        let text = "a\nx = 1\nb\nc\nx = 1\nd\n";
        let at = text.rfind("x = 1").unwrap();
        let (from, to) = unique(text, at + 4, at + 5).unwrap();
        assert_eq!(&text[from..to], "c\nx = 1\nd\n");
        let (from, to) = unique(text, 0, 1).unwrap();
        assert_eq!(&text[from..to], "a\n");
        assert_eq!(unique("", 0, 0), None);
    }
}
