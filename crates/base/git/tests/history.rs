//! Opening, resolving, reading of history.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use infradev_git::{GitError, Renames, Repo, commit_folder};
use infradev_model::{Class, Classified};
use support::{Scratch, git};

#[test]
fn a_folder_inside_a_repository_is_not_taken_for_one() {
    let scratch = Scratch::new();
    scratch.write("sub/x", "x");
    assert!(matches!(Repo::open(&scratch.join("sub")), Err(GitError::NotARepository { .. })));
    assert!(matches!(Repo::open(&scratch.join("absent")), Err(GitError::NotARepository { .. })));
    assert!(Repo::open(scratch.path()).is_ok());
    assert!(Repo::open(&scratch.join(".git")).is_ok());
}

#[test]
fn revisions_resolve_to_commits_and_missing_ones_say_so() {
    let scratch = Scratch::new();
    let first = scratch.commit("first");
    let second = scratch.commit("second");
    scratch.git(&["tag", "-m", "t", "v1"]);
    let repo = Repo::open(scratch.path()).unwrap();
    for name in ["main", "v1", &second, &second[..10]] {
        assert_eq!(repo.resolve(name).unwrap().as_str(), second, "{name}");
    }
    let head = repo.resolve("HEAD").unwrap();
    assert_eq!(repo.parent(&head).unwrap().as_str(), first);
    for name in ["nothing", "ma\0in", "0123456789012345678901234567890123456789", "--all", ""] {
        let error = repo.resolve(name).unwrap_err();
        assert!(matches!(error, GitError::NoSuchCommit { shallow: false, .. }), "{name}: {error}");
        assert_eq!(error.class(), Class::BadInput);
    }
    let root = repo.resolve(&first).unwrap();
    assert!(matches!(repo.parent(&root), Err(GitError::NoParent { shallow: false, .. })));
}

#[test]
fn a_shallow_clone_names_itself_as_the_reason() {
    let scratch = Scratch::new();
    let first = scratch.commit("first");
    scratch.commit("second");
    let clone = tempfile::tempdir().unwrap();
    let url = format!("file://{}", scratch.path().display());
    git(clone.path(), &["clone", "-q", "--depth", "1", &url, "c"]);
    let repo = Repo::open(&clone.path().join("c")).unwrap();
    let head = repo.resolve("HEAD").unwrap();
    let error = repo.parent(&head).unwrap_err();
    assert!(error.to_string().contains("shallow") && error.hint().unwrap().contains("--unshallow"));
    assert!(repo.resolve(&first).unwrap_err().to_string().contains("shallow"));
}

#[test]
fn a_commit_tells_its_message_tree_and_files() {
    let scratch = Scratch::new();
    scratch.write("a b/ü.txt", b"x\r\n\xff");
    let id = scratch.commit("Subject line\n\nBody one.\n\nBody two.");
    let repo = Repo::open(scratch.path()).unwrap();
    let commit = repo.resolve(&id).unwrap();
    let info = repo.info(&commit).unwrap();
    assert_eq!((info.subject.as_str(), info.body.as_str()), ("Subject line", "Body one.\n\nBody two."));
    assert_eq!(info.author_date, "2026-03-01T12:00:00+01:00");
    assert_eq!(info.tree, repo.tree_id(&commit).unwrap());
    let files = repo.ls_tree(&commit).unwrap();
    assert_eq!((files.len(), files[0].mode, files[0].path.as_slice()), (1, 0o100644, "a b/ü.txt".as_bytes()));
    assert_eq!(repo.show(&commit, "a b/ü.txt".as_bytes()).unwrap(), b"x\r\n\xff");
    assert!(matches!(repo.show(&commit, b"absent"), Err(GitError::NoSuchFile { .. })));
}

#[test]
fn merge_bases_are_found_and_unrelated_histories_refused() {
    let scratch = Scratch::new();
    let base = scratch.commit("base");
    scratch.git(&["checkout", "-q", "-b", "side"]);
    scratch.commit("side");
    scratch.git(&["checkout", "-q", "main"]);
    scratch.commit("main");
    scratch.git(&["checkout", "-q", "--orphan", "other"]);
    scratch.commit("other");
    let repo = Repo::open(scratch.path()).unwrap();
    let [main, side, other] = ["main", "side", "other"].map(|name| repo.resolve(name).unwrap());
    assert_eq!(repo.merge_base(&main, &side).unwrap().as_str(), base);
    assert!(matches!(repo.merge_base(&main, &other), Err(GitError::NoMergeBase { .. })));
}

#[test]
fn pull_requests_are_found_squashed_merged_and_by_their_last_number() {
    let scratch = Scratch::new();
    scratch.commit("start");
    let squashed = scratch.commit("Add gather (#12)");
    let revert = scratch.commit("Revert \"Add gather (#12)\" (#15)");
    scratch.commit("Mention #13 and (#13) in passing");
    scratch.git(&["checkout", "-q", "-b", "topic"]);
    scratch.commit("work");
    scratch.git(&["checkout", "-q", "main"]);
    scratch.git(&["merge", "-q", "--no-ff", "-m", "Merge pull request #20 from a/topic", "topic"]);
    let merge = scratch.git(&["rev-parse", "HEAD"]);
    scratch.commit("Add gather again (#21)");
    let again = scratch.commit("Add gather again, for good (#21)");
    let repo = Repo::open(scratch.path()).unwrap();
    for (number, id) in [(12, &squashed), (15, &revert), (20, &merge), (21, &again)] {
        assert_eq!(repo.find_pr(number).unwrap().as_str(), id, "{number}");
    }
    for number in [13, 2, 1] {
        assert!(matches!(repo.find_pr(number), Err(GitError::NoSuchPullRequest { .. })), "{number}");
    }
}

#[test]
fn a_repository_without_commits_has_no_pull_request_to_find() {
    let scratch = Scratch::new();
    let error = Repo::open(scratch.path()).unwrap().find_pr(1).unwrap_err();
    assert_eq!((error.class(), matches!(error, GitError::NoSuchCommit { .. })), (Class::BadInput, true));
}

#[test]
fn a_number_off_the_main_line_alone_is_found_once_and_ambiguous_twice() {
    let scratch = Scratch::new();
    scratch.commit("start");
    scratch.git(&["checkout", "-q", "-b", "topic"]);
    let one = scratch.commit("One (#30)");
    scratch.commit("Two (#31)");
    scratch.commit("Two again (#31)");
    scratch.git(&["checkout", "-q", "main"]);
    scratch.git(&["merge", "-q", "--no-ff", "-m", "Sync", "topic"]);
    let repo = Repo::open(scratch.path()).unwrap();
    assert_eq!(repo.find_pr(30).unwrap().as_str(), one);
    assert!(
        matches!(repo.find_pr(31), Err(GitError::AmbiguousPullRequest { candidates, .. }) if candidates.len() == 2)
    );
}

#[test]
fn a_mirror_has_every_branch_and_a_second_call_opens_it() {
    let scratch = Scratch::new();
    scratch.commit("start");
    scratch.git(&["branch", "side"]);
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("repos/x.git");
    let origin = scratch.path().to_str().unwrap();
    let repo = Repo::clone_mirror(origin, &into).unwrap();
    assert!(repo.resolve("side").is_ok());
    let later = scratch.commit("later");
    let again = Repo::clone_mirror(origin, &into).unwrap();
    assert!(again.resolve(&later).is_err());
    again.update().unwrap();
    assert!(again.resolve(&later).is_ok());
    assert_eq!(fs::read_dir(home.path().join("repos")).unwrap().count(), 1);
}

#[test]
fn a_clone_that_fails_leaves_nothing_and_says_why() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("x.git");
    fs::create_dir(home.path().join("empty")).unwrap();
    let origin = format!("file://{}", home.path().join("empty").display());
    let error = Repo::clone_mirror(&origin, &into).unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
    let error = Repo::clone_mirror("ext::sh -c id% a/b", &into).unwrap_err();
    assert!(matches!(error, GitError::Fetch { .. } | GitError::NotARepository { .. }), "{error}");
    assert!(!into.exists());
}

#[test]
fn a_tree_is_materialised_byte_for_byte_whatever_its_attributes_say() {
    let scratch = Scratch::new();
    scratch.write(".gitattributes", "docs export-ignore\n*.txt text eol=crlf\n*.py ident\n");
    scratch.write("docs/kept.md", "kept\n");
    scratch.write("a.txt", "one\ntwo\n");
    scratch.write("b.py", "# $Id$\n");
    scratch.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(scratch.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("docs", scratch.join("link")).unwrap();
    let id = scratch.commit("all");
    let repo = Repo::open(scratch.path()).unwrap();
    let out = tempfile::tempdir().unwrap();
    let into = out.path().join("tree");
    repo.materialise(&repo.resolve(&id).unwrap(), &into).unwrap();
    assert_eq!(fs::read(into.join("docs/kept.md")).unwrap(), b"kept\n");
    assert_eq!(fs::read(into.join("a.txt")).unwrap(), b"one\ntwo\n");
    assert_eq!(fs::read(into.join("b.py")).unwrap(), b"# $Id$\n");
    assert_eq!(fs::metadata(into.join("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read_link(into.join("link")).unwrap().to_str(), Some("docs"));
    assert!(!into.join(".git").exists());
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    let error = repo.materialise(&repo.resolve(&id).unwrap(), &into).unwrap_err();
    assert!(matches!(error, GitError::Occupied { .. }));
}

#[test]
fn settings_of_the_repository_do_not_change_a_diff() {
    let scratch = Scratch::new();
    scratch.write("a.py", "x = 1\ny = 2\n");
    let base = scratch.commit("base");
    fs::rename(scratch.join("a.py"), scratch.join("b.py")).unwrap();
    scratch.write("c.bin", b"\0\x01");
    let head = scratch.commit("head");
    let repo = Repo::open(scratch.path()).unwrap();
    let [base, head] = [base, head].map(|id| repo.resolve(&id).unwrap());
    let plain = repo.diff(&base, &head, Renames::Detect).unwrap();
    for setting in ["diff.noprefix=true", "diff.external=false", "color.ui=always", "diff.context=0"] {
        let (key, value) = setting.split_once('=').unwrap();
        scratch.git(&["config", key, value]);
    }
    scratch.write(".gitattributes", "*.py binary\n");
    assert_eq!(repo.diff(&base, &head, Renames::Detect).unwrap(), plain);
    let text = String::from_utf8(plain).unwrap();
    assert!(text.contains("rename from a.py") && text.contains("GIT binary patch"), "{text}");
    let without = String::from_utf8(repo.diff(&base, &head, Renames::Off).unwrap()).unwrap();
    assert!(without.contains("deleted file mode") && !without.contains("rename"), "{without}");
}

#[test]
fn a_workspace_commit_holds_ignored_files_and_has_one_id_for_the_same_files() {
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".gitignore"), "*.log\n").unwrap();
        fs::write(folder.path().join("a.log"), "kept\n").unwrap();
        let id = commit_folder(folder.path(), "Base").unwrap();
        (folder, id)
    };
    let ((one, id), (_two, same)) = (make(), make());
    assert_eq!(id, same);
    let files = Repo::open(one.path()).unwrap().ls_tree(&id).unwrap();
    assert_eq!(
        files.iter().map(|file| file.path.as_slice()).collect::<Vec<_>>(),
        [&b".gitignore"[..], b"a.log"]
    );
}
