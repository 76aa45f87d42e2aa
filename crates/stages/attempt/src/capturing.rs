//! From an agent's work tree, at rest, to a patch.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use infradev_git::{Base, Captured, SkipReason, capture, longest_path};
use infradev_model::{SkippedFile, TaskSpec};
use infradev_patch::Patch;
use infradev_store::remove_tree;

use crate::error::AttemptError;

/// Folders that running code and tools leave behind; a base tree of a folder is taken without them too.
const LEFT_BEHIND: [&str; 4] = ["__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache"];

/// The difference from the base tree to the work tree, in which no process is alive.
pub(crate) fn taken(base: &Path, work: &Path) -> Result<Captured, AttemptError> {
    tidy(base, work)?;
    Ok(capture(Base::Folder(base), work)?)
}

/// Makes everything readable, and removes caches that the base tree has not. What lies deeper than a capture goes is left as it is.
fn tidy(base: &Path, work: &Path) -> Result<(), AttemptError> {
    let longest = longest_path(work);
    let mut folders = vec![PathBuf::new()];
    readable(work, 0o700)?;
    while let Some(folder) = folders.pop() {
        let place = work.join(&folder);
        for entry in fs::read_dir(&place).map_err(AttemptError::io(&place))? {
            if infradev_supervise::cancelled() {
                return Err(AttemptError::Cancelled);
            }
            let entry = entry.map_err(AttemptError::io(&place))?;
            let below = folder.join(entry.file_name());
            if below.as_os_str().len() > longest {
                continue;
            }
            let path = entry.path();
            let kind = entry.file_type().map_err(AttemptError::io(&path))?;
            let left_behind = LEFT_BEHIND.iter().any(|left| entry.file_name() == *left);
            if kind.is_dir() && left_behind && !base.join(&below).exists() {
                remove_tree(&path).map_err(AttemptError::io(&path))?;
            } else if kind.is_dir() {
                readable(&path, 0o700)?;
                folders.push(below);
            } else if kind.is_file() {
                readable(&path, 0o400)?;
            }
        }
    }
    Ok(())
}

fn readable(path: &Path, wanted: u32) -> Result<(), AttemptError> {
    let mode = fs::symlink_metadata(path).map_err(AttemptError::io(path))?.permissions().mode();
    if mode & wanted != wanted {
        let opened = fs::Permissions::from_mode(mode | wanted);
        fs::set_permissions(path, opened).map_err(AttemptError::io(path))?;
    }
    Ok(())
}

/// What the patch does not hold, as records have it.
pub(crate) fn skipped(captured: &Captured) -> Vec<SkippedFile> {
    let word = |reason: SkipReason| match reason {
        SkipReason::GitFolder => "git_folder",
        SkipReason::Fifo => "fifo",
        SkipReason::Socket => "socket",
        SkipReason::Device => "device",
        SkipReason::LinkOut => "link_out",
        SkipReason::TooLarge => "too_large",
        SkipReason::TooLong => "too_long",
        SkipReason::TooMuch => "too_much",
    };
    let skipped = captured.skipped.iter();
    let files = skipped.map(|file| SkippedFile {
        path: String::from_utf8_lossy(&file.path).into_owned(),
        reason: word(file.reason).to_owned(),
    });
    files.collect()
}

/// Paths of the task's test folders that a patch changes.
pub(crate) fn test_edits(patch: &[u8], spec: &TaskSpec) -> Vec<String> {
    let Ok(patch) = Patch::parse(patch) else { return Vec::new() };
    let paths = patch.paths().into_iter().map(|path| String::from_utf8_lossy(path).into_owned());
    let of_tests = |path: &String| {
        let below = |root: &String| Path::new(path).starts_with(root);
        spec.tests.roots.iter().any(below) || spec.tests.official.contains(path)
    };
    paths.filter(of_tests).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_go_what_is_locked_is_opened_and_what_the_base_has_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (base, work) = (folder.path().join("base"), folder.path().join("work"));
        for tree in [&base, &work] {
            fs::create_dir_all(tree.join("a/__pycache__")).unwrap();
            fs::write(tree.join("a/__pycache__/kept.txt"), "kept").unwrap();
        }
        fs::create_dir_all(work.join("b/__pycache__/deep")).unwrap();
        fs::write(work.join("b/new.py"), "x = 1\n").unwrap();
        fs::set_permissions(work.join("b/new.py"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(work.join("b"), fs::Permissions::from_mode(0o000)).unwrap();
        let captured = taken(&base, &work).unwrap();
        let paths = Patch::parse(&captured.patch).unwrap();
        assert_eq!(paths.paths(), [b"b/new.py"]);
        assert!(work.join("a/__pycache__/kept.txt").exists());
    }
}
