//! Against the real git: what it diffs we read, write again and apply, and the outcome is git's own.

mod support;

use infradev_git::{Base, Renames, Repo, capture, commit_folder};
use infradev_patch::{Mending, Patch, apply};
use proptest::prelude::*;
use support::{Files, git_apply, read_tree, write_tree};

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => "[a-e]{0,2}".prop_map(String::into_bytes),
        1 => Just(b"--- a/x".to_vec()),
        1 => Just(b"++ b".to_vec()),
        1 => Just(b"@@ -1,2 +1,2 @@".to_vec()),
        1 => Just(b"\\ No newline at end of file".to_vec()),
        1 => Just(b"\xff\xfe".to_vec()),
        1 => Just(b"tail \r".to_vec()),
    ]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    (proptest::collection::vec(line(), 0..30), any::<bool>(), any::<bool>()).prop_map(
        |(lines, last, crlf)| {
            let mut bytes: Vec<u8> = Vec::new();
            for line in lines {
                bytes.extend(line);
                bytes.extend(if crlf { &b"\r\n"[..] } else { b"\n" });
            }
            if last {
                bytes.pop();
            }
            bytes
        },
    )
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => text(), 1 => proptest::collection::vec(any::<u8>(), 0..200)]
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"a.py".to_vec()),
        Just(b"b c.txt".to_vec()),
        Just(b"pkg/a.py".to_vec()),
        Just(b"pkg/sub/q\"uote\t.py".to_vec()),
        Just("pkg/ü.py".as_bytes().to_vec()),
        Just(b"x b/x".to_vec()),
        Just(b"dir with space/new\nline".to_vec()),
    ]
}

fn files() -> impl Strategy<Value = Files> {
    let mode = prop_oneof![4 => Just(0o100644u32), 1 => Just(0o100755)];
    let file = (mode, content());
    let link = Just((0o120000u32, b"a.py".to_vec()));
    proptest::collection::btree_map(path(), prop_oneof![8 => file, 1 => link], 0..6)
}

/// A tree and what became of it: some files edited a little, some replaced, gone or new.
fn pair() -> impl Strategy<Value = (Files, Files)> {
    (files(), files(), any::<u64>()).prop_map(|(old, other, seed)| {
        let mut new = other;
        for (number, (path, (mode, content))) in old.iter().enumerate() {
            match (seed >> (number * 4)) & 7 {
                0 => {}
                1 => {
                    new.insert(format!("moved{number}").into_bytes(), (*mode, content.clone()));
                }
                2..=4 if *mode != 0o120000 => {
                    let mut lines: Vec<&[u8]> = content.split_inclusive(|&b| b == b'\n').collect();
                    let at = (seed >> 40) as usize % (lines.len() + 1);
                    if at < lines.len() && seed & 1 == 0 {
                        lines.remove(at);
                    } else {
                        lines.insert(at, b"edited\n");
                    }
                    new.insert(path.clone(), (*mode, lines.concat()));
                }
                _ => {
                    new.insert(path.clone(), (*mode, content.clone()));
                }
            }
        }
        (old, new)
    })
}

/// Line ends alike throughout, so that only git's own rules are at work.
fn without_cr(mut text: Vec<u8>) -> Vec<u8> {
    text.retain(|&b| b != b'\r');
    text
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_file_newline(mending: &Mending) -> bool {
    matches!(mending, Mending::FileNewline { .. })
}

#[test]
fn a_last_line_that_the_patch_takes_for_unended_is_changed_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let diff = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n";
    write_tree(folder.path(), &Files::from([(b"f".to_vec(), (0o100644, b"a\n".to_vec()))]));
    let applied = apply(&Patch::parse(diff).unwrap(), folder.path()).unwrap();
    assert!(matches!(applied.mended[..], [Mending::FileNewline { .. }]), "{:?}", applied.mended);
    assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"a\n");
}

fn without_lines(mut patch: Patch) -> Patch {
    patch.mended.clear();
    for file in &mut patch.files {
        file.line = 0;
        if let infradev_patch::Content::Text(hunks) = &mut file.content {
            hunks.iter_mut().for_each(|hunk| hunk.line = 0);
        }
    }
    patch
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_git_diffs_is_read_written_applied_and_turned_round((old, new) in pair()) {
        let [old_tree, new_tree, renamed_tree] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        write_tree(old_tree.path(), &old);
        write_tree(new_tree.path(), &new);
        write_tree(renamed_tree.path(), &old);
        let diff = capture(Base::Folder(old_tree.path()), new_tree.path()).unwrap().patch;
        let patch = Patch::parse(&diff).unwrap();
        prop_assert_eq!(shown(&patch.to_bytes()), shown(&diff));
        prop_assert_eq!(without_lines(Patch::parse(&patch.to_bytes()).unwrap()), without_lines(patch.clone()));
        let applied = apply(&patch, old_tree.path()).unwrap();
        prop_assert_eq!(applied.mended, vec![]);
        prop_assert_eq!(read_tree(old_tree.path()), new.clone());
        apply(&patch.inverted().unwrap(), old_tree.path()).unwrap();
        prop_assert_eq!(read_tree(old_tree.path()), old.clone());

        // The same with renames.
        let history = tempfile::tempdir().unwrap();
        write_tree(history.path(), &old);
        let base = commit_folder(history.path(), "old").unwrap();
        for path in old.keys() {
            std::fs::remove_file(history.path().join(std::ffi::OsStr::new(
                std::str::from_utf8(path).unwrap(),
            ))).unwrap();
        }
        write_tree(history.path(), &new);
        let head = commit_folder(history.path(), "new").unwrap();
        let diff = Repo::open(history.path()).unwrap().diff(&base, &head, Renames::Detect).unwrap();
        let patch = Patch::parse(&diff).unwrap();
        prop_assert_eq!(shown(&patch.to_bytes()), shown(&diff));
        apply(&patch, renamed_tree.path()).unwrap();
        prop_assert_eq!(read_tree(renamed_tree.path()), new);
        apply(&patch.inverted().unwrap(), renamed_tree.path()).unwrap();
        prop_assert_eq!(read_tree(renamed_tree.path()), old);
    }

    #[test]
    fn on_a_tree_that_has_moved_on_the_outcome_is_that_of_git_apply(
        old in text().prop_map(without_cr),
        new_lines in proptest::collection::vec((0usize..30, line().prop_map(without_cr)), 1..5),
        shift in proptest::collection::vec((0usize..30, line().prop_map(without_cr)), 0..4),
    ) {
        let insert = |text: &[u8], at: &[(usize, Vec<u8>)]| {
            let mut lines: Vec<Vec<u8>> = text.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            for (place, line) in at {
                let place = place % (lines.len() + 1);
                if line.len() % 2 == 1 && place < lines.len() {
                    lines.remove(place);
                } else {
                    lines.insert(place, [line.as_slice(), b"\n"].concat());
                }
            }
            lines.concat()
        };
        let file = |content: Vec<u8>| Files::from([(b"f".to_vec(), (0o100644, content))]);
        let [base, head, ours, gits] = [(); 4].map(|()| tempfile::tempdir().unwrap());
        write_tree(base.path(), &file(old.clone()));
        write_tree(head.path(), &file(insert(&old, &new_lines)));
        let diff = capture(Base::Folder(base.path()), head.path()).unwrap().patch;
        prop_assume!(!diff.is_empty() && !diff.windows(16).any(|w| w == b"GIT binary patch"));
        let moved = file(insert(&old, &shift));
        write_tree(ours.path(), &moved);
        write_tree(gits.path(), &moved);
        let expected = git_apply(gits.path(), &diff);
        let got = apply(&Patch::parse(&diff).unwrap(), ours.path());
        match expected {
            // git takes a line without newline for the start of another, in the middle of the file too.
            Some(_) if got.is_err() && shown(&diff).contains("\n\\ No newline") => {
                prop_assert_eq!(read_tree(ours.path()), moved);
            }
            Some(files) => {
                prop_assert!(got.is_ok(), "git applies it, we say {}\n{}", got.unwrap_err(), String::from_utf8_lossy(&diff));
                prop_assert_eq!(read_tree(ours.path()), files);
            }
            // Of a last line that the patch changes, git minds the newline that the file has; here it is mended, and said.
            None if got.as_ref().is_ok_and(|applied| applied.mended.iter().any(is_file_newline)) => {}
            None => {
                prop_assert!(got.is_err(), "git refuses it\n{}", String::from_utf8_lossy(&diff));
                prop_assert_eq!(read_tree(ours.path()), moved);
            }
        }
    }

    #[test]
    fn no_damage_to_a_patch_makes_the_reader_panic(
        (old, new) in pair(), damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let [old_tree, new_tree] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        write_tree(old_tree.path(), &old);
        write_tree(new_tree.path(), &new);
        let mut diff = capture(Base::Folder(old_tree.path()), new_tree.path()).unwrap().patch;
        prop_assume!(!diff.is_empty());
        for (at, byte) in damage {
            let at = at.index(diff.len());
            diff[at] = byte;
        }
        if let Ok(patch) = Patch::parse(&diff) {
            let before = read_tree(old_tree.path());
            if apply(&patch, old_tree.path()).is_err() {
                prop_assert_eq!(read_tree(old_tree.path()), before);
            }
        }
    }
}
