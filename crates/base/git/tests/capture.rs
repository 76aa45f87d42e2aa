//! Captures of work trees that nobody vouches for.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use infradev_git::{Base, CommitId, Repo, SkipReason, capture};
use infradev_supervise::Invocation;
use support::{Scratch, git};

/// A repository of a few files and its checkout in another folder.
fn start() -> (Scratch, Repo, CommitId, tempfile::TempDir) {
    let scratch = Scratch::new();
    scratch.write("a.py", "x = 1\n");
    scratch.write("crlf.txt", "one\r\ntwo\r\n");
    scratch.write("pkg/b.py", "y = 1\n");
    let id = scratch.commit("base");
    let repo = Repo::open(scratch.path()).unwrap();
    let commit = repo.resolve(&id).unwrap();
    let work = tempfile::tempdir().unwrap();
    repo.materialise(&commit, &work.path().join("w")).unwrap();
    (scratch, repo, commit, work)
}

/// The patch applied by git to a fresh checkout gives the same files as the work tree has.
fn assert_reproduces(repo: &Repo, commit: &CommitId, patch: &[u8], files: &[(&str, Option<&[u8]>)]) {
    let again = tempfile::tempdir().unwrap();
    let tree = again.path().join("w");
    repo.materialise(commit, &tree).unwrap();
    let parsed = infradev_patch::Patch::parse(patch).unwrap();
    infradev_patch::apply(&parsed, &tree).unwrap();
    for (name, content) in files {
        assert_eq!(fs::read(tree.join(name)).ok().as_deref(), *content, "{name}");
    }
}

#[test]
fn an_untouched_work_tree_gives_an_empty_patch() {
    let (_scratch, repo, commit, work) = start();
    let captured = capture(Base::Commit(&repo, &commit), &work.path().join("w")).unwrap();
    assert_eq!((captured.patch.as_slice(), captured.skipped.len()), (&b""[..], 0));
}

#[test]
fn every_kind_of_change_is_captured_ignored_files_too() {
    let (_scratch, repo, commit, work) = start();
    let tree = work.path().join("w");
    fs::write(tree.join(".gitignore"), "*.so\n.gitignore\n").unwrap();
    fs::write(tree.join("ext.so"), b"\x7fELF\0\0").unwrap();
    fs::write(tree.join("a.py"), "x = 2").unwrap();
    fs::write(tree.join("odd\nname \"q\".txt"), "odd\n").unwrap();
    fs::remove_file(tree.join("pkg/b.py")).unwrap();
    std::os::unix::fs::symlink("a.py", tree.join("link")).unwrap();
    fs::set_permissions(tree.join("crlf.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    let captured = capture(Base::Commit(&repo, &commit), &tree).unwrap();
    assert_eq!(captured.skipped, []);
    let files: [(&str, Option<&[u8]>); 6] = [
        ("ext.so", Some(b"\x7fELF\0\0")),
        ("a.py", Some(b"x = 2")),
        ("odd\nname \"q\".txt", Some(b"odd\n")),
        ("pkg/b.py", None),
        ("link", Some(b"x = 2")),
        (".gitignore", Some(b"*.so\n.gitignore\n")),
    ];
    assert_reproduces(&repo, &commit, &captured.patch, &files);
}

#[test]
fn the_work_trees_own_repository_is_never_read() {
    let (_scratch, repo, commit, work) = start();
    let tree = work.path().join("w");
    git(&tree, &["init", "-q"]);
    let flag = work.path().join("ran");
    let trap = format!("touch {}", flag.display());
    for (key, value) in [
        ("core.fsmonitor", trap.as_str()),
        ("filter.x.clean", trap.as_str()),
        ("diff.external", trap.as_str()),
        ("core.worktree", "/"),
        ("core.excludesFile", "/dev/null"),
    ] {
        git(Path::new("/"), &["config", "-f", tree.join(".git/config").to_str().unwrap(), key, value]);
    }
    fs::write(tree.join(".gitattributes"), "* filter=x text eol=crlf working-tree-encoding=UTF-16\n")
        .unwrap();
    fs::write(tree.join("a.py"), "x = 3\n").unwrap();
    let captured = capture(Base::Commit(&repo, &commit), &tree).unwrap();
    assert!(!flag.exists());
    let files: [(&str, Option<&[u8]>); 2] =
        [("a.py", Some(b"x = 3\n")), ("crlf.txt", Some(b"one\r\ntwo\r\n"))];
    assert_reproduces(&repo, &commit, &captured.patch, &files);
    let text = String::from_utf8_lossy(&captured.patch).into_owned();
    assert!(!text.contains("crlf.txt"), "{text}");
}

#[test]
fn a_nested_repository_is_captured_as_plain_files() {
    let (_scratch, repo, commit, work) = start();
    let tree = work.path().join("w");
    let nested = tree.join("vendor/lib");
    fs::create_dir_all(&nested).unwrap();
    fs::write(nested.join("c.py"), "z = 1\n").unwrap();
    git(&nested, &["init", "-q"]);
    git(&nested, &["add", "-A"]);
    git(&nested, &["commit", "-q", "-m", "nested"]);
    fs::create_dir(tree.join("empty_nested")).unwrap();
    git(&tree.join("empty_nested"), &["init", "-q"]);
    fs::create_dir(tree.join("by_file")).unwrap();
    fs::write(tree.join("by_file/.git"), "gitdir: /etc\n").unwrap();
    fs::write(tree.join("by_file/d.py"), "w = 1\n").unwrap();
    let captured = capture(Base::Commit(&repo, &commit), &tree).unwrap();
    let text = String::from_utf8_lossy(&captured.patch).into_owned();
    assert!(!text.contains("160000") && !text.contains(".git/"), "{text}");
    let mut skipped: Vec<_> = captured.skipped.iter().map(|s| (s.path.as_slice(), s.reason)).collect();
    skipped.sort();
    let git_folder = SkipReason::GitFolder;
    assert_eq!(
        skipped,
        [
            (&b"by_file/.git"[..], git_folder),
            (b"empty_nested/.git", git_folder),
            (b"vendor/lib/.git", git_folder)
        ]
    );
    let files: [(&str, Option<&[u8]>); 2] =
        [("vendor/lib/c.py", Some(b"z = 1\n")), ("by_file/d.py", Some(b"w = 1\n"))];
    assert_reproduces(&repo, &commit, &captured.patch, &files);
}

#[test]
fn fifos_sockets_and_links_to_folders_do_not_lead_the_walk_astray_and_the_patch_is_one_that_applies() {
    let (_scratch, repo, commit, work) = start();
    let tree = work.path().join("w");
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("s")).unwrap();
    let made = Invocation::new("mkfifo").arg(tree.join("f")).run().unwrap();
    assert!(made.status.success());
    std::os::unix::fs::symlink("/etc", tree.join("etc")).unwrap();
    std::os::unix::fs::symlink("..", tree.join("pkg/up")).unwrap();
    let captured = capture(Base::Commit(&repo, &commit), &tree).unwrap();
    let mut reasons: Vec<_> = captured.skipped.iter().map(|s| s.reason).collect();
    reasons.sort();
    assert_eq!(reasons, [SkipReason::Fifo, SkipReason::Socket, SkipReason::LinkOut]);
    let patch = infradev_patch::Patch::parse(&captured.patch).unwrap();
    assert_eq!(patch.paths(), [&b"pkg/up"[..]]);
    patch.check().unwrap();
}

#[test]
fn links_that_no_patch_may_make_are_left_out_and_reported_and_those_of_the_base_stay() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let (base, work) = (folder.path().join("base"), folder.path().join("work"));
    for tree in [&base, &work] {
        fs::create_dir_all(tree.join("pkg")).unwrap();
        fs::write(tree.join("README.md"), "read\n").unwrap();
        fs::write(tree.join("replaced"), "a file\n").unwrap();
        symlink("/data", tree.join("as-before")).unwrap();
        symlink("pkg", tree.join("turned")).unwrap();
    }
    symlink("/workspace/README.md", work.join("mylink")).unwrap();
    symlink("../../etc/shadow", work.join("pkg/up")).unwrap();
    symlink(".git/config", work.join("settings")).unwrap();
    symlink("pkg", work.join(".gitmodules")).unwrap();
    symlink("../README.md", work.join("pkg/inside")).unwrap();
    for (name, target) in [("replaced", "/etc/passwd"), ("turned", "/etc")] {
        fs::remove_file(work.join(name)).unwrap();
        symlink(target, work.join(name)).unwrap();
    }
    // A folder that some file system takes for `.git`.
    fs::create_dir(work.join("pkg/.git ")).unwrap();
    fs::write(work.join("pkg/.git /config"), "").unwrap();
    let captured = capture(Base::Folder(&base), &work).unwrap();
    let mut skipped: Vec<_> =
        captured.skipped.iter().map(|s| (str::from_utf8(&s.path).unwrap(), s.reason)).collect();
    skipped.sort();
    let mut wanted: Vec<_> = [".gitmodules", "mylink", "pkg/up", "replaced", "settings", "turned"]
        .map(|path| (path, SkipReason::LinkOut))
        .to_vec();
    wanted.insert(2, ("pkg/.git ", SkipReason::GitFolder));
    assert_eq!(skipped, wanted);
    let patch = infradev_patch::Patch::parse(&captured.patch).unwrap();
    assert_eq!(patch.paths(), [&b"pkg/inside"[..]]);
    infradev_patch::apply(&patch, &base).unwrap();
}

#[test]
fn folders_deeper_than_any_path_are_left_out_and_reported() {
    let (_scratch, repo, commit, work) = start();
    let tree = work.path().join("w");
    let deep = tree.join(format!("{}/", "d".repeat(200)).repeat(16));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("f"), "x\n").unwrap();
    let captured = capture(Base::Commit(&repo, &commit), &tree).unwrap();
    assert_eq!(captured.patch, b"");
    assert_eq!(captured.skipped.iter().map(|s| s.reason).collect::<Vec<_>>(), [SkipReason::TooLong]);
}

#[test]
fn a_folder_deeper_than_any_path_is_reported_once_and_what_lies_beside_it_is_captured() {
    let (_scratch, repo, commit, work) = start();
    let tree = work.path().join("w");
    fs::write(tree.join("a.py"), "x = 2\n").unwrap();
    // Longer than the system takes, by names that are long and by names that are many.
    let program = "
import os
for name, times in (('d' * 200, 30), ('e', 3000)):
    os.chdir('TREE')
    for _ in range(times):
        os.mkdir(name)
        os.chdir(name)
    for number in range(10):
        open(str(number), 'w').close()
"
    .replace("TREE", tree.to_str().unwrap());
    let made = Invocation::new("python3").args(["-c", &program]).run().unwrap();
    assert!(made.status.success());
    let captured = capture(Base::Commit(&repo, &commit), &tree).unwrap();
    let mut skipped: Vec<_> = captured.skipped.iter().map(|s| (s.path.clone(), s.reason)).collect();
    skipped.sort();
    let deepest = |name: &str, times: usize| vec![name; times].join("/").into_bytes();
    let too_long = SkipReason::TooLong;
    assert_eq!(skipped, [(deepest(&"d".repeat(200), 14), too_long), (deepest("e", 1500), too_long)]);
    assert_reproduces(&repo, &commit, &captured.patch, &[("a.py", Some(b"x = 2\n"))]);
}

#[test]
fn a_base_without_a_repository_is_a_folder() {
    let (_scratch, _repo, _commit, work) = start();
    let base = tempfile::tempdir().unwrap();
    fs::write(base.path().join("a.py"), "x = 1\n").unwrap();
    let captured = capture(Base::Folder(base.path()), &work.path().join("w")).unwrap();
    let patch = infradev_patch::Patch::parse(&captured.patch).unwrap();
    assert_eq!(patch.paths(), [&b"crlf.txt"[..], b"pkg/b.py"]);
    infradev_patch::apply(&patch, base.path()).unwrap();
    let after = capture(Base::Folder(base.path()), &work.path().join("w")).unwrap();
    assert_eq!(after.patch, b"");
}

#[test]
fn a_submodule_of_the_base_is_not_captured_as_deleted() {
    let (scratch, repo, _commit, work) = start();
    let head = scratch.git(&["rev-parse", "HEAD"]);
    scratch.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},third_party")]);
    scratch.git(&["commit", "-q", "-m", "submodule"]);
    let commit = repo.resolve("HEAD").unwrap();
    let tree = work.path().join("with");
    repo.materialise(&commit, &tree).unwrap();
    assert!(tree.join("third_party").is_dir());
    assert_eq!(capture(Base::Commit(&repo, &commit), &tree).unwrap().patch, b"");
}

#[test]
fn a_file_of_the_base_that_grew_too_large_is_reported_and_not_captured_as_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (base, work) = (folder.path().join("base"), folder.path().join("work"));
    for tree in [&base, &work] {
        fs::create_dir(tree).unwrap();
        fs::write(tree.join("a.py"), "x = 1\n").unwrap();
    }
    fs::File::create(work.join("a.py")).unwrap().set_len(1 << 40).unwrap();
    let captured = capture(Base::Folder(&base), &work).unwrap();
    assert_eq!(captured.patch, b"");
    assert_eq!(captured.skipped.iter().map(|s| s.reason).collect::<Vec<_>>(), [SkipReason::TooLarge]);
}
