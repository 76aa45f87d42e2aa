//! The texts of a task that a run keeps for its reports.

use std::path::Path;

use infradev_model::{REFERENCE_SCHEMA, SealedTask, TaskReference};

use crate::derived::{DeriveError, GoldenChange};

/// What submissions of a task are held against. `tree` is the folder of its base tree; of the official tests those that it has from
/// there are read there.
///
/// # Errors
/// Where golden or the official tests do not apply, or a file can't be read.
pub fn reference(task: &SealedTask, tree: &Path) -> Result<TaskReference, DeriveError> {
    let mut official: std::collections::BTreeMap<String, String> =
        GoldenChange::on(task, tree)?.official()?.into_iter().collect();
    let spec = &task.public.spec;
    for path in spec.tests.official.iter().filter(|path| path.ends_with(".py")) {
        if !official.contains_key(path)
            && let Ok(text) = std::fs::read_to_string(tree.join(path))
        {
            official.insert(path.clone(), text);
        }
    }
    Ok(TaskReference {
        schema: REFERENCE_SCHEMA,
        canary: task.canary.as_ref().map(|canary| canary.guid().to_owned()),
        task: task.id().to_owned(),
        roots: spec.tests.roots.clone(),
        golden: String::from_utf8_lossy(&task.golden).into_owned(),
        official,
    })
}
