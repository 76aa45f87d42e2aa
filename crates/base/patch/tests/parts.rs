//! Parts of a patch apply to the same base as the whole.

mod support;

use infradev_git::{Base, capture};
use infradev_patch::{Patch, PatchError, apply, looks_like_test};
use proptest::prelude::*;
use support::{read_tree, tree};

#[test]
fn a_split_parts_source_from_tests_and_refuses_a_file_that_crosses() {
    let text = "--- a/pkg/m.py\n+++ b/pkg/m.py\n@@ -1 +1 @@\n-a\n+b\n--- a/tests/test_m.py\n+++ b/tests/test_m.py\n@@ -1 +1 @@\n-a\n+b\n";
    let split = Patch::parse(text.as_bytes()).unwrap().split(looks_like_test).unwrap();
    assert_eq!(split.source.paths(), [b"pkg/m.py"]);
    assert_eq!(split.test.paths(), [b"tests/test_m.py"]);
    let crossing = "diff --git a/tests/h.py b/pkg/h.py\nsimilarity index 100%\nrename from tests/h.py\nrename to pkg/h.py\n";
    let error = Patch::parse(crossing.as_bytes()).unwrap().split(looks_like_test).unwrap_err();
    assert!(matches!(error, PatchError::RenameAcrossSplit { line: 1, .. }));
}

#[test]
fn files_are_taken_back_by_either_name_and_unknown_ones_refused() {
    let text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n";
    let patch = Patch::parse(text.as_bytes()).unwrap();
    assert_eq!(patch.without_files(&["o"]).unwrap().paths(), [b"x"]);
    assert_eq!(patch.without_files(&["n", "x"]).unwrap().files, []);
    let error = patch.without_files(&["y"]).unwrap_err();
    assert_eq!(error.to_string(), "the patch has no change of y");
}

#[test]
fn the_last_hunk_takes_a_new_file_with_it_but_leaves_a_change_of_mode() {
    let text = "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\
                diff --git a/m b/m\nold mode 100644\nnew mode 100755\nindex 1111111..2222222\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n-a\n+b\n";
    let patch = Patch::parse(text.as_bytes()).unwrap();
    assert_eq!(patch.without_hunk(0, 0).unwrap().paths(), [b"m"]);
    let rest = patch.without_hunk(1, 0).unwrap();
    let shown = String::from_utf8(rest.to_bytes()).unwrap();
    assert!(shown.ends_with("diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"), "{shown}");
    assert!(patch.without_hunk(1, 1).is_err() && patch.without_hunk(2, 0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_hunk_taken_back_alone_leaves_the_others_at_their_lines(
        edits in proptest::collection::vec((0usize..120, 0usize..3), 1..8),
    ) {
        let old: Vec<String> = (0..120).map(|n| format!("line {n}\n")).collect();
        let mut new = old.clone();
        for (at, what) in &edits {
            match what {
                0 => new[*at].clear(),
                1 => new[*at] = format!("changed {at}\n"),
                _ => new[*at].push_str("added\nand more\n"),
            }
        }
        let [base, head] = [old.concat(), new.concat()].map(|text| tree(&[("f", &text)]));
        let patch = Patch::parse(&capture(Base::Folder(base.path()), head.path()).unwrap().patch).unwrap();
        let hunks = patch.files[0].hunks().len();
        for hunk in 0..hunks {
            let rest = patch.without_hunk(0, hunk).unwrap();
            let again = Patch::parse(&rest.to_bytes());
            let partly = tree(&[("f", &old.concat())]);
            let applied = apply(&again.unwrap(), partly.path()).unwrap();
            prop_assert_eq!(applied.mended, vec![]);
            // What is missing is the hunk itself.
            let missing = capture(Base::Folder(partly.path()), head.path()).unwrap().patch;
            let missing = Patch::parse(&missing).unwrap();
            prop_assert_eq!(missing.files[0].hunks().len(), 1);
            prop_assert_eq!(&missing.files[0].hunks()[0].lines, &patch.files[0].hunks()[hunk].lines);
            apply(&missing, partly.path()).unwrap();
            prop_assert_eq!(read_tree(partly.path()), read_tree(head.path()));
        }
    }
}
