//! What a pack says of tasks: the public part, and with `sealed` the last acceptance and golden.

use std::path::Path;

use infradev_model::{ACCEPTANCE_SCHEMA, Acceptance, PublicTask, format};
use infradev_store::load_public_pack;

use super::SiteError;
use super::excerpt::bytes;

/// A task as its pack has it.
#[derive(Debug)]
pub struct TaskText {
    pub(crate) public: PublicTask,
    pub(crate) acceptance: Option<Acceptance>,
    pub(crate) golden: Option<Vec<u8>>,
}

/// Reads a pack's tasks. No sealed file is opened unless `sealed`.
///
/// # Errors
/// The first thing that is not as it should be, naming file, line and key.
pub fn read_pack(path: &Path, sealed: bool) -> Result<Vec<TaskText>, SiteError> {
    let pack = load_public_pack(path)?;
    let mut tasks = Vec::new();
    for public in pack.tasks {
        let folder = pack.root.join("tasks").join(&public.spec.id);
        let mut task = TaskText { public, acceptance: None, golden: None };
        if sealed {
            task.acceptance = acceptance(&folder)?;
            task.golden = bytes(&folder.join("golden.patch"));
        }
        tasks.push(task);
    }
    Ok(tasks)
}

fn acceptance(folder: &Path) -> Result<Option<Acceptance>, SiteError> {
    let path = folder.join("acceptance.json");
    let Some(bytes) = bytes(&path) else { return Ok(None) };
    let name = path.display().to_string();
    let record: Acceptance = format::json(&name, &bytes)?;
    format::schema(&name, record.schema, ACCEPTANCE_SCHEMA)?;
    Ok(Some(record))
}
