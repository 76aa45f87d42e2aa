//! Trees on disk, and the real git to compare with.
#![allow(dead_code)] // Each test binary uses its own part.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use infradev_supervise::{Invocation, Output};

/// Files of a tree: path to (mode, content or link target).
pub type Files = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

pub fn regular(content: impl AsRef<[u8]>) -> (u32, Vec<u8>) {
    (0o100644, content.as_ref().to_vec())
}

pub fn write_tree(root: &Path, files: &Files) {
    for (path, (mode, content)) in files {
        let place = root.join(std::ffi::OsStr::from_bytes(path));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        if *mode == 0o120000 {
            std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(content), place).unwrap();
        } else {
            fs::write(&place, content).unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(mode & 0o777)).unwrap();
        }
    }
}

pub fn read_tree(root: &Path) -> Files {
    let mut files = Files::new();
    read_folder(root, root, &mut files);
    files
}

fn read_folder(root: &Path, folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let place = entry.unwrap().path();
        let name = place.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
        let data = fs::symlink_metadata(&place).unwrap();
        if name == b".git" {
            continue;
        } else if data.is_dir() {
            read_folder(root, &place, files);
        } else if data.is_symlink() {
            files.insert(name, (0o120000, fs::read_link(&place).unwrap().as_os_str().as_bytes().to_vec()));
        } else {
            let mode = if data.permissions().mode() & 0o100 != 0 { 0o100755 } else { 0o100644 };
            files.insert(name, (mode, fs::read(&place).unwrap()));
        }
    }
}

/// A tree in a folder of its own.
pub fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = files.iter().map(|(path, text)| (path.as_bytes().to_vec(), regular(text))).collect();
    write_tree(folder.path(), &files);
    folder
}

pub fn git(folder: &Path, args: &[&str], stdin: &[u8]) -> Output {
    Invocation::new("git")
        .inherit_env("PATH")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .args(args.iter().copied())
        .cwd(folder)
        .stdin(stdin)
        .run()
        .unwrap()
}

/// What `git apply` makes of the tree; none where it refuses.
pub fn git_apply(root: &Path, patch: &[u8]) -> Option<Files> {
    let output = git(root, &["apply", "--whitespace=nowarn", "-"], patch);
    output.status.success().then(|| read_tree(root))
}
