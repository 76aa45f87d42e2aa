//! Many commits read at once.

mod support;

use infradev_git::{Entry, FileStatus, GitError, Repo};
use infradev_model::Classified;
use support::{Scratch, git};

fn entries(repo: &Repo) -> Vec<Entry> {
    repo.entries(&repo.main_line("main").unwrap()).unwrap()
}

#[test]
fn renames_binaries_links_and_odd_names_are_told_apart() {
    let scratch = Scratch::new();
    let text: String = (0..40).map(|line| format!("line {line}\n")).collect();
    scratch.write("a\tb\n\"ü.py", &text);
    scratch.write("gone", "x\n");
    scratch.write("kind", "x\n");
    scratch.commit("First\n\nA body with\n:100644 100644 in it.\n");
    std::fs::rename(scratch.join("a\tb\n\"ü.py"), scratch.join("new.py")).unwrap();
    std::fs::write(scratch.join("new.py"), format!("{text}more\n")).unwrap();
    std::fs::remove_file(scratch.join("gone")).unwrap();
    std::fs::remove_file(scratch.join("kind")).unwrap();
    std::os::unix::fs::symlink("new.py", scratch.join("kind")).unwrap();
    scratch.write("data.bin", b"\0\x01\x02");
    scratch.commit("Second \u{1b}[2J\u{7}");
    scratch.commit("Nothing in it");
    let repo = Repo::open(scratch.path()).unwrap();
    let all = entries(&repo);
    assert_eq!(all.len(), 3);
    assert!(all[0].files.is_empty());
    assert_eq!(all[1].subject, "Second \u{1b}[2J\u{7}");
    let told: Vec<_> = all[1]
        .files
        .iter()
        .map(|file| (String::from_utf8_lossy(&file.path).into_owned(), file.status, file.modes, file.lines))
        .collect();
    assert_eq!(
        told,
        [
            ("data.bin".into(), FileStatus::Added, (0, 0o100644), None),
            ("gone".into(), FileStatus::Deleted, (0o100644, 0), Some((0, 1))),
            ("kind".into(), FileStatus::Retyped, (0o100644, 0o120000), Some((1, 1))),
            ("new.py".into(), FileStatus::Renamed, (0o100644, 0o100644), Some((1, 0))),
        ]
    );
    let renamed = &all[1].files[3];
    assert_eq!(renamed.old_path.as_deref(), Some("a\tb\n\"ü.py".as_bytes()));
    let blobs = [renamed.old_blob.clone().unwrap(), renamed.new_blob.clone().unwrap()];
    let contents = repo.blobs(&blobs).unwrap();
    assert_eq!((contents[0].as_slice(), contents[1].len()), (text.as_bytes(), text.len() + 5));
    assert_eq!(all[2].body, "A body with\n:100644 100644 in it.");
    assert!(all[2].parents.is_empty() && all[2].files.len() == 3);
}

#[test]
fn a_merge_is_told_against_what_it_was_merged_into() {
    let scratch = Scratch::new();
    scratch.write("a", "1\n");
    scratch.commit("base");
    scratch.git(&["checkout", "-q", "-b", "side"]);
    scratch.write("b", "1\n");
    scratch.commit("on the side");
    scratch.git(&["checkout", "-q", "main"]);
    scratch.write("c", "1\n");
    scratch.commit("meanwhile");
    scratch.git(&["merge", "-q", "--no-ff", "-m", "Merge pull request #7 from a/b\n\nTitle", "side"]);
    let all = entries(&Repo::open(scratch.path()).unwrap());
    let subjects: Vec<&str> = all.iter().map(|entry| entry.subject.as_str()).collect();
    assert_eq!(subjects, ["Merge pull request #7 from a/b", "meanwhile", "base"]);
    assert_eq!((all[0].parents.len(), all[0].body.as_str()), (2, "Title"));
    assert_eq!(all[0].files.iter().map(|file| file.path.as_slice()).collect::<Vec<_>>(), [b"b"]);
}

#[test]
fn shallow_clones_and_missing_objects_say_what_to_do() {
    let scratch = Scratch::new();
    scratch.write("a", "1\n");
    scratch.commit("first");
    scratch.commit("second");
    let clone = tempfile::tempdir().unwrap();
    let url = format!("file://{}", scratch.path().display());
    git(clone.path(), &["clone", "-q", "--depth", "1", &url, "c"]);
    let shallow = Repo::open(&clone.path().join("c")).unwrap();
    let error = shallow.main_line("HEAD").unwrap_err();
    assert!(
        matches!(error, GitError::ShallowHistory { .. }) && error.hint().unwrap().contains("--unshallow")
    );

    let other = Scratch::new();
    other.write("b", "only here\n");
    other.commit("elsewhere");
    let foreign = Repo::open(other.path()).unwrap();
    let repo = Repo::open(scratch.path()).unwrap();
    let missing = foreign.main_line("main").unwrap();
    let error = repo.entries(&missing).unwrap_err();
    assert!(matches!(error, GitError::NoSuchCommit { .. }), "{error}");
    let blob = foreign.entries(&missing).unwrap()[0].files[0].new_blob.clone().unwrap();
    assert!(matches!(repo.blobs(&[blob]), Err(GitError::MissingObject { .. })));
}
