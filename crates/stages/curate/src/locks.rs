//! Which files pinned resolved packages in the tree of each commit: followed along the history, so that no tree is listed.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use infradev_git::{ChangedFile, Entry, FileStatus};
use infradev_model::PackageLock;
use serde::{Deserialize, Serialize};

use crate::paths::is_lock;
use crate::record::Record;

/// What a commit did to one lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockChange {
    /// Its path.
    pub path: String,
    /// The id of its text after; nothing where it is gone.
    pub blob: Option<String>,
}

/// What a commit did to locks.
pub fn changes(entry: &Entry) -> Vec<LockChange> {
    let mut changes = Vec::new();
    let mut note = |path: &[u8], blob: Option<&String>| {
        if let Some(path) = std::str::from_utf8(path).ok().filter(|path| is_lock(path)) {
            changes.push(LockChange { path: path.to_owned(), blob: blob.cloned() });
        }
    };
    for ChangedFile { status, old_path, path, new_blob, .. } in &entry.files {
        if let Some(old) = old_path.as_ref().filter(|_| *status == FileStatus::Renamed) {
            note(old, None);
        }
        note(path, new_blob.as_ref());
    }
    changes
}

type Standing = Rc<BTreeMap<String, String>>;

/// The locks of each tree; the records of a line stand the oldest first, after those of the line that it leaves.
pub fn standing<'a>(records: impl Iterator<Item = &'a Record>) -> HashMap<&'a str, Standing> {
    let mut known: HashMap<&str, Standing> = HashMap::new();
    for record in records {
        let before = record.base.as_deref().and_then(|base| known.get(base)).cloned().unwrap_or_default();
        let after = if record.locks.is_empty() {
            before
        } else {
            let mut locks = BTreeMap::clone(&before);
            for LockChange { path, blob } in &record.locks {
                match blob {
                    Some(blob) => locks.insert(path.clone(), blob.clone()),
                    None => locks.remove(path),
                };
            }
            Rc::new(locks)
        };
        known.insert(&record.commit, after);
    }
    known
}

/// As facts name them.
pub fn named(locks: &BTreeMap<String, String>) -> Vec<PackageLock> {
    locks.iter().map(|(path, blob)| PackageLock { path: path.clone(), blob: blob.clone() }).collect()
}
