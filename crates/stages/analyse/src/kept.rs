//! What run folders keep of a submission's making: its patch, what its agent did, the tree that it changes. Strangers wrote these
//! files: they are read bounded, and what cannot be read is as if it were not there.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use infradev_model::atif::Trajectory;
use infradev_model::{Digest, is_tree_path};
use infradev_patch::{Change, FilePatch, Patch};
use infradev_store::RunView;

use crate::reading::Entry;

/// Bytes of a patch or a trajectory that are read at most.
const MOST: u64 = 8 << 20;

fn bytes(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST).then_some(bytes)
}

/// A submission's patch: as it was written, else as it was graded.
pub(crate) fn patch(entry: &Entry, grader: Option<&RunView>) -> Option<Patch> {
    let written = entry.folder.iter().map(|folder| folder.join("patch.diff"));
    let keys = entry.grade.iter().flat_map(|grade| &grade.trials);
    let graded = keys
        .filter(|key| is_digest(key))
        .filter_map(|key| Some(grader?.folder.join("trials").join(key).join("patch.diff")));
    let bytes = written.chain(graded).find_map(|path| bytes(&path))?;
    Patch::parse(&bytes).ok()
}

/// What its agent did.
pub(crate) fn trajectory(entry: &Entry) -> Option<Trajectory> {
    Trajectory::parse("trajectory.json", &bytes(&entry.folder.as_ref()?.join("trajectory.json"))?).ok()
}

/// The base tree of this digest in the store that a run lies in.
pub(crate) fn base_tree(run: &RunView, digest: &Digest) -> Option<PathBuf> {
    let store = run.folder.parent()?.parent()?;
    let tree = store.join("builds").join("trees").join(digest.as_str());
    tree.is_dir().then_some(tree)
}

fn is_digest(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The text of a file after a patch, its hunks where they state; none where the base tree has not the file that they are of.
pub(crate) fn text_after(patch: &Patch, path: &[u8], base: &Path) -> Option<Vec<u8>> {
    let file = patch.files.iter().find(|file| file.new_path == path)?;
    let old = std::str::from_utf8(&file.old_path).ok().filter(|path| is_tree_path(path))?;
    let text = bytes(&base.join(old))?;
    patched(file, &text)
}

fn patched(file: &FilePatch, text: &[u8]) -> Option<Vec<u8>> {
    if file.change == Change::Delete {
        return None;
    }
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let mut made = Vec::with_capacity(text.len());
    let mut at = 0;
    for hunk in file.hunks() {
        // A hunk without old lines states the line before it.
        let start = if hunk.old_lines == 0 { hunk.old_start } else { hunk.old_start.checked_sub(1)? };
        lines.get(at..start)?.iter().for_each(|line| made.extend_from_slice(line));
        let new = hunk.lines.iter().filter(|line| line.is_new());
        new.for_each(|line| made.extend_from_slice(&line.body));
        at = start + hunk.old_lines;
    }
    lines.get(at..)?.iter().for_each(|line| made.extend_from_slice(line));
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str =
        "--- a/t.py\n+++ b/t.py\n@@ -2 +2,2 @@\n-two\n+zwei\n+two and a half\n@@ -4,0 +6 @@\n+five\n";

    #[test]
    fn the_text_after_a_patch_is_that_of_base_with_its_hunks() {
        let patch = Patch::parse(PATCH.as_bytes()).unwrap();
        let after = |text: &str| {
            patched(&patch.files[0], text.as_bytes()).map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(
            after("one\ntwo\nthree\nfour\n").unwrap(),
            "one\nzwei\ntwo and a half\nthree\nfour\nfive\n"
        );
        assert_eq!(after("one\n"), None);
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("t.py"), "1\n2\n3\n4\n").unwrap();
        assert!(text_after(&patch, b"t.py", tree.path()).is_some());
        assert_eq!(text_after(&patch, b"other.py", tree.path()), None);
    }
}
