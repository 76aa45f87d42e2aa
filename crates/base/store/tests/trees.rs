//! Base trees and workspaces.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use infradev_store::{Made, Sharing, StoreError, Trees};

fn source(folder: &Path) {
    fs::create_dir_all(folder.join("stack/__pycache__")).unwrap();
    fs::write(folder.join("stack/moe.py"), "X = 1\n").unwrap();
    fs::write(folder.join("stack/__pycache__/moe.pyc"), "old").unwrap();
    fs::write(folder.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join("run.sh"), PermissionsExt::from_mode(0o700)).unwrap();
    symlink("stack/moe.py", folder.join("link.py")).unwrap();
}

#[test]
fn a_bundled_tree_is_laid_once_by_content_without_what_tools_leave_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (from, trees) = (folder.path().join("repo"), Trees::new(folder.path().join("trees")));
    source(&from);
    let tree = trees.of_folder(&from).unwrap();
    assert_eq!(fs::read_to_string(tree.path.join("stack/moe.py")).unwrap(), "X = 1\n");
    assert!(!tree.path.join("stack/__pycache__").exists());
    assert_eq!(fs::metadata(tree.path.join("run.sh")).unwrap().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(tree.path.join("link.py")).unwrap(), Path::new("stack/moe.py"));

    let inode = fs::metadata(tree.path.join("run.sh")).unwrap().ino();
    fs::write(from.join("stack/__pycache__/moe.pyc"), "new").unwrap();
    let again = trees.of_folder(&from).unwrap();
    assert_eq!(again, tree);
    assert_eq!(fs::metadata(again.path.join("run.sh")).unwrap().ino(), inode, "laid twice");

    fs::write(from.join("stack/moe.py"), "X = 2\n").unwrap();
    assert_ne!(trees.of_folder(&from).unwrap().digest, tree.digest);
}

#[test]
fn a_workspace_is_a_tree_of_its_own_and_private_files_are_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let (from, trees) = (folder.path().join("repo"), Trees::new(folder.path().join("trees")));
    source(&from);
    let tree = trees.of_folder(&from).unwrap();
    let (linked, private) = (folder.path().join("w/linked"), folder.path().join("w/private"));
    let made = trees.workspace(&tree, &linked, Sharing::Links).unwrap();
    assert_eq!(made.reflinked + made.hard_linked + made.copied, 2);
    let made = trees.workspace(&tree, &private, Sharing::Private).unwrap();
    assert_eq!(made.hard_linked, 0);

    // A patch writes anew and renames over; a private file may be written in place.
    fs::write(linked.join("new"), "Y").unwrap();
    fs::rename(linked.join("new"), linked.join("stack/moe.py")).unwrap();
    fs::write(private.join("stack/moe.py"), "Z").unwrap();
    fs::remove_file(linked.join("run.sh")).unwrap();
    assert_eq!(trees.of_folder(&from).unwrap(), tree);
    assert_eq!(fs::read_to_string(tree.path.join("stack/moe.py")).unwrap(), "X = 1\n");
    assert!(tree.path.join("run.sh").exists());
}

#[test]
fn a_tree_that_was_written_through_a_link_is_noticed_and_laid_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (from, trees) = (folder.path().join("repo"), Trees::new(folder.path().join("trees")));
    source(&from);
    let tree = trees.of_folder(&from).unwrap();
    fs::write(tree.path.join("stack/moe.py"), "X = 3\n").unwrap();
    let again = trees.of_folder(&from).unwrap();
    assert_eq!(again, tree);
    assert_eq!(fs::read_to_string(again.path.join("stack/moe.py")).unwrap(), "X = 1\n");
}

#[test]
fn the_tree_of_a_commit_is_filled_once_and_shared_with_a_folder_of_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let (from, trees) = (folder.path().join("repo"), Trees::new(folder.path().join("trees")));
    source(&from);
    let fill = |into: &Path| {
        source(into);
        fs::remove_dir_all(into.join("stack/__pycache__")).unwrap();
        Ok(())
    };
    let tree = trees.of_commit("aabb", fill).unwrap();
    assert_eq!(trees.of_folder(&from).unwrap(), tree);
    let unasked = |_: &Path| panic!("filled twice");
    assert_eq!(trees.of_commit("aabb", unasked).unwrap(), tree);
    assert_eq!(trees.of_commit("ccdd", fill).unwrap(), tree);
}

#[test]
fn a_fill_that_fails_leaves_no_tree_and_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let trees = Trees::new(folder.path());
    let failing = |into: &Path| {
        fs::write(into.join("half"), "").unwrap();
        Err(StoreError::NoHome)
    };
    trees.of_commit("aabb", failing).unwrap_err();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn what_a_killed_process_left_is_swept_and_what_a_live_one_makes_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (from, trees) = (folder.path().join("repo"), Trees::new(folder.path().join("trees")));
    source(&from);
    for name in [".making-dead", ".making-live"] {
        fs::create_dir_all(folder.path().join("trees").join(name).join("tree")).unwrap();
        fs::write(folder.path().join("trees").join(name).join("lock"), "").unwrap();
    }
    let live = fs::File::open(folder.path().join("trees/.making-live/lock")).unwrap();
    live.lock().unwrap();
    trees.of_folder(&from).unwrap();
    assert!(!folder.path().join("trees/.making-dead").exists());
    assert!(folder.path().join("trees/.making-live").exists());
}

#[test]
fn sockets_and_pipes_in_a_tree_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("repo");
    source(&from);
    let _listener = std::os::unix::net::UnixListener::bind(from.join("sock")).unwrap();
    let error = Trees::new(folder.path().join("trees")).of_folder(&from).unwrap_err();
    assert!(error.to_string().ends_with("repo/sock: is no file, folder or link"), "{error}");
}

#[test]
fn three_thousand_files_become_a_workspace_without_copying_a_byte() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (from, trees) = (folder.path().join("repo"), Trees::new(folder.path().join("trees")));
    for number in 0..3000 {
        let part = from.join(format!("part{}", number % 60));
        fs::create_dir_all(&part).unwrap();
        fs::write(part.join(format!("file{number}.py")), format!("X = {number}\n")).unwrap();
    }
    let tree = trees.of_folder(&from).unwrap();
    let made = trees.workspace(&tree, &folder.path().join("w"), Sharing::Links).unwrap();
    assert_eq!(Made { copied: 0, ..made }, made);
    assert_eq!(made.reflinked + made.hard_linked, 3000);
}
