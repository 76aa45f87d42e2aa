//! A task's draft: the files of its folder that agents write.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use infradev_model::{AgentRole, SealedTask, Step};
use infradev_store::with_parts;

use super::RoundsError;

/// The files of a task that some role writes, by path in the task's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    files: BTreeMap<String, String>,
}

impl Draft {
    /// As the task's folder has them now.
    pub fn of(task: &SealedTask) -> Result<Draft, RoundsError> {
        let mut files = BTreeMap::new();
        for folder in ["", "adversarial", "probes"] {
            let place = task.folder.join(folder);
            let entries = match fs::read_dir(&place) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(RoundsError::io(place)(error)),
            };
            for entry in entries {
                let path = entry.map_err(RoundsError::io(&place))?.path();
                let name = path.strip_prefix(&task.folder).unwrap_or(&path).to_string_lossy().into_owned();
                if AgentRole::ALL.iter().any(|role| role.may_write(&name)) && path.is_file() {
                    let text = fs::read_to_string(&path).map_err(RoundsError::io(&path))?;
                    files.insert(name, text);
                }
            }
        }
        Ok(Draft { files })
    }

    /// With these files.
    #[cfg(test)]
    pub(super) fn from(files: BTreeMap<String, String>) -> Draft {
        Draft { files }
    }

    /// Paths and texts, sorted.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Takes over what a step wrote.
    pub fn take(&mut self, step: &Step) {
        self.take_files(&step.written);
    }

    /// Takes over files: their texts, or none of one that is removed.
    pub(super) fn take_files(&mut self, written: &BTreeMap<String, Option<String>>) {
        for (path, text) in written {
            match text {
                Some(text) => self.files.insert(path.clone(), text.clone()),
                None => self.files.remove(path),
            };
        }
    }

    /// Writes its files below a folder, and removes those that it has no more.
    pub fn write_into(&self, folder: &Path) -> Result<(), RoundsError> {
        for (path, text) in &self.files {
            let target = folder.join(path);
            let parent = target.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(RoundsError::io(parent))?;
            // Whole or not at all: a reader finds the old file or the new one.
            let mut fresh = tempfile::NamedTempFile::new_in(parent).map_err(RoundsError::io(parent))?;
            std::io::Write::write_all(&mut fresh, text.as_bytes()).map_err(RoundsError::io(&target))?;
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            fs::set_permissions(fresh.path(), open).map_err(RoundsError::io(&target))?;
            fresh.persist(&target).map_err(|error| RoundsError::io(&target)(error.error))?;
        }
        for role_folder in ["adversarial", "probes"] {
            let Ok(entries) = fs::read_dir(folder.join(role_folder)) else { continue };
            for path in entries.flatten().map(|entry| entry.path()) {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                let ours = AgentRole::ALL.iter().any(|role| role.may_write(&name));
                if ours && !self.files.contains_key(&name) {
                    fs::remove_file(&path).map_err(RoundsError::io(&path))?;
                }
            }
        }
        Ok(())
    }

    /// The task with these files, laid at a place of its own and read as any task is.
    pub fn task(&self, task: &SealedTask, place: &Path) -> Result<SealedTask, RoundsError> {
        if place.exists() {
            fs::remove_dir_all(place).map_err(RoundsError::io(place))?;
        }
        fs::create_dir_all(place).map_err(RoundsError::io(place))?;
        self.write_into(place)?;
        Ok(with_parts(task, place)?)
    }
}
