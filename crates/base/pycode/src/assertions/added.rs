//! The assertions that a patch adds.

use std::collections::{BTreeMap, BTreeSet};

use infradev_patch::{Change, FilePatch, Patch, Tag, show_path};

use super::{Assertion, assertions};
use crate::module::ParseError;

/// The assertions that a patch adds to its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// The files with those of them that have any, by path.
    pub files: BTreeMap<String, Vec<Assertion>>,
    /// Files that were not read.
    pub unread: Vec<Unread>,
}

impl Added {
    /// All assertions, of all files.
    pub fn assertions(&self) -> impl Iterator<Item = &Assertion> {
        self.files.values().flatten()
    }
}

/// A test file of which no assertion was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Its path after the patch.
    pub path: String,
    /// Why.
    pub why: String,
}

/// Those of a file's assertions that overlap the added lines, which count from 1 in `text`, the file after the change. An
/// assertion in a helper counts where the helper is called only if such a call was added too.
///
/// # Errors
/// The text is not Python.
pub fn added_assertions(
    path: &str,
    text: &str,
    added: &BTreeSet<usize>,
) -> Result<Vec<Assertion>, ParseError> {
    let is_added = |one: &Assertion| added.range(one.line..=one.last_line).next().is_some();
    let mut found: Vec<Assertion> = assertions(path, text)?.into_iter().filter(is_added).collect();
    let called: BTreeSet<String> = found.iter().filter_map(|one| one.calls.clone()).collect();
    for one in &mut found {
        one.counted_at_calls &= called.contains(&one.within);
    }
    Ok(found)
}

/// The assertions that a patch adds to the Python files that `is_test` takes by path (`infradev_patch::looks_like_test` by
/// the usual names, `TestPaths` by a task's). A new file's text is the patch's own; of any other `text_after` is asked for the text
/// after the patch, which must agree with the patch's added lines.
pub fn assertions_of_patch(
    patch: &Patch,
    is_test: impl Fn(&[u8]) -> bool,
    mut text_after: impl FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Added {
    let mut all = Added::default();
    let wanted = |file: &&FilePatch| {
        file.change != Change::Delete && file.new_path.ends_with(b".py") && is_test(&file.new_path)
    };
    for file in patch.files.iter().filter(wanted) {
        let lines = added_lines(file);
        if lines.is_empty() {
            continue;
        }
        let path = show_path(&file.new_path);
        let found = match file.change {
            Change::Create => Ok(lines.values().copied().flatten().copied().collect()),
            _ => {
                text_after(&file.new_path).ok_or_else(|| "its text after the patch is not at hand".to_owned())
            }
        };
        match found.and_then(|bytes: Vec<u8>| of_file(&path, &bytes, &lines)) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => drop(all.files.insert(path, found)),
            Err(why) => all.unread.push(Unread { path, why }),
        }
    }
    all
}

fn of_file(path: &str, bytes: &[u8], lines: &BTreeMap<usize, &[u8]>) -> Result<Vec<Assertion>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8: {error}"))?;
    let theirs: Vec<&str> = text.split_inclusive('\n').collect();
    let bare = |line: &[u8]| line.trim_ascii_end().to_vec();
    let other = lines.iter().find(|(number, line)| {
        theirs.get(**number - 1).is_none_or(|their| bare(their.as_bytes()) != bare(line))
    });
    if let Some((number, _)) = other {
        return Err(format!(
            "line {number} of the text is not the one that the patch adds: give the text after the patch"
        ));
    }
    let numbers: BTreeSet<usize> = lines.keys().copied().collect();
    added_assertions(path, text, &numbers).map_err(|error| error.to_string())
}

/// The added lines by number in the file after the patch.
fn added_lines(file: &FilePatch) -> BTreeMap<usize, &[u8]> {
    let mut lines = BTreeMap::new();
    for hunk in file.hunks() {
        let new = hunk.lines.iter().filter(|line| line.is_new());
        for (number, line) in (hunk.new_start.max(1)..).zip(new) {
            if line.tag == Tag::Added {
                lines.insert(number, line.body.as_slice());
            }
        }
    }
    lines
}
