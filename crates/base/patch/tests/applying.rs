//! Applying: all or nothing, links and shared files safe, line ends kept.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use infradev_model::{Class, Classified};
use infradev_patch::{
    ApplyError, BinaryChunk, BinaryPatch, Change, Content, Ending, FilePatch, Index, Mending, Method, Patch,
    PatchError, apply, check_applies,
};
use support::{git_apply, read_tree, tree};

const EDIT: &str = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

fn parse(text: &str) -> Patch {
    Patch::parse(text.as_bytes()).unwrap()
}

#[test]
fn one_file_that_does_not_fit_leaves_all_files_as_they_were() {
    let folder = tree(&[("f", "one\ntwo\nthree\n"), ("g", "other\n")]);
    let before = read_tree(folder.path());
    let text = format!("{EDIT}{}", EDIT.replace("/f", "/g"));
    let error = apply(&parse(&text), folder.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 10 of the patch: hunk 1 of g (stated at line 1) does not match; first difference at line 1 of the \
         file: the patch has \"one\\n\", the file has \"other\\n\""
    );
    assert_eq!(error.class(), Class::BadInput);
    assert_eq!(read_tree(folder.path()), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_hard_linked_source_keeps_its_content_and_mode() {
    let source = tree(&[("f", "one\ntwo\nthree\n"), ("m", "x\n")]);
    let folder = tempfile::tempdir().unwrap();
    for name in ["f", "m"] {
        fs::hard_link(source.path().join(name), folder.path().join(name)).unwrap();
    }
    let before = read_tree(source.path());
    let text = format!("{EDIT}diff --git a/m b/m\nold mode 100644\nnew mode 100755\n");
    apply(&parse(&text), folder.path()).unwrap();
    assert_eq!(read_tree(source.path()), before);
    let after = read_tree(folder.path());
    assert_eq!((after[&b"f"[..]].1.as_slice(), after[&b"m"[..]].0), (&b"one\n2\nthree\n"[..], 0o100755));
}

#[test]
fn permissions_that_the_patch_does_not_change_stay() {
    let folder = tree(&[("f", "one\ntwo\nthree\n")]);
    fs::set_permissions(folder.path().join("f"), fs::Permissions::from_mode(0o640)).unwrap();
    apply(&parse(EDIT), folder.path()).unwrap();
    assert_eq!(fs::metadata(folder.path().join("f")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_file_keeps_its_line_ends_and_the_report_says_so() {
    let crlf_patch = EDIT
        .replace("one\n", "one\r\n")
        .replace("two\n", "two\r\n")
        .replace("2\n three\n", "2\r\n three\r\n");
    for (file, patch, ending, after) in [
        ("one\r\ntwo\r\nthree\r\n", EDIT, Some(Ending::Crlf), "one\r\n2\r\nthree\r\n"),
        ("one\ntwo\nthree\n", crlf_patch.as_str(), Some(Ending::Lf), "one\n2\nthree\n"),
        ("one\r\ntwo\r\nthree\r\n", crlf_patch.as_str(), None, "one\r\n2\r\nthree\r\n"),
        ("one\r\ntwo\nthree\r\nfour\r\n", EDIT, Some(Ending::Crlf), "one\r\n2\r\nthree\r\nfour\r\n"),
    ] {
        let folder = tree(&[("f", file)]);
        let applied = apply(&parse(patch), folder.path()).unwrap();
        let expected: Vec<_> =
            ending.map(|ending| Mending::LineEndings { path: b"f".to_vec(), ending }).into_iter().collect();
        assert_eq!(applied.mended, expected, "{file:?}");
        assert_eq!(String::from_utf8(fs::read(folder.path().join("f")).unwrap()).unwrap(), after);
    }
}

#[test]
fn a_patch_that_takes_the_final_newline_for_missing_is_applied_as_git_does_and_reported() {
    let text = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n\\ No newline at end of file\n";
    for (file, fits) in [("one\ntwo\n", true), ("one\ntwo!\n", false), ("one\ntwo\nthree\n", false)] {
        let [ours, gits] = [(); 2].map(|()| tree(&[("f", file)]));
        let applied = apply(&parse(text), ours.path());
        assert_eq!(applied.is_ok(), fits, "{file:?}");
        if fits {
            assert_eq!(applied.unwrap().mended, [Mending::FileNewline { path: b"f".to_vec() }]);
            assert_eq!(Some(read_tree(ours.path())), git_apply(gits.path(), text.as_bytes()));
        }
    }
}

#[test]
fn a_patch_about_line_ends_is_taken_at_its_word() {
    let text = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+two\r\n";
    let folder = tree(&[("f", "one\r\ntwo\r\n")]);
    assert!(matches!(apply(&parse(text), folder.path()), Err(ApplyError::NoMatch { .. })));
    let folder = tree(&[("f", "one\ntwo\n")]);
    apply(&parse(text), folder.path()).unwrap();
    assert_eq!(fs::read(folder.path().join("f")).unwrap(), b"one\ntwo\r\n");
}

#[test]
fn a_hunk_that_has_moved_is_found_and_reported() {
    let text = EDIT.replace("@@ -1,3 +1,3 @@", "@@ -2,3 +2,3 @@");
    let file = "x\n".repeat(9) + "one\ntwo\nthree\n";
    let folder = tree(&[("f", &file)]);
    let applied = apply(&parse(&text), folder.path()).unwrap();
    assert_eq!(applied.mended, [Mending::Moved { path: b"f".to_vec(), line: 3, stated: 2, found: 10 }]);
    assert!(applied.mended[0].to_string().contains("fits line 10, it states 2"));
}

#[test]
fn context_is_never_dropped_to_make_a_hunk_fit() {
    let folder = tree(&[("f", "ONE\ntwo\nthree\n")]);
    assert!(matches!(apply(&parse(EDIT), folder.path()), Err(ApplyError::NoMatch { .. })));
}

#[test]
fn files_that_are_missing_present_or_of_another_kind_are_named() {
    let folder = tree(&[("d/x", "x\n"), ("here", "x\n")]);
    let create = |path: &str| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
    let cases = [
        (EDIT.to_string(), "line 1 of the patch: f is not in the tree"),
        (create("here"), "line 1 of the patch: here is already in the tree"),
        (create("d"), "line 1 of the patch: d is a folder in the tree, the patch takes it for a file"),
        (
            create("here/x"),
            "line 1 of the patch: here is a file in the tree, the patch takes it for a folder",
        ),
        (create("n") + &create("n/x"), "line 5 of the patch: n is already in the tree"),
        (create("n") + &create("n"), "line 5 of the patch: n is changed twice"),
        (
            EDIT.replace("/f", "/d"),
            "line 1 of the patch: d is a folder in the tree, the patch takes it for a file",
        ),
        (
            "diff --git a/here b/here\ndeleted file mode 100644\nindex 1..0\n".into(),
            "line 1 of the patch: here: the patch deletes the file but not all of its content",
        ),
    ];
    let before = read_tree(folder.path());
    for (text, message) in cases {
        assert_eq!(apply(&parse(&text), folder.path()).unwrap_err().to_string(), message, "{text}");
        assert_eq!(read_tree(folder.path()), before);
    }
}

#[test]
fn a_folder_may_become_a_file_and_a_file_a_folder() {
    let folder = tree(&[("d/x", "x\n"), ("g", "g\n")]);
    fs::create_dir(folder.path().join("d/empty")).unwrap();
    let text = "--- a/d/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+file\n\
                --- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n--- /dev/null\n+++ b/g/y\n@@ -0,0 +1 @@\n+y\n";
    apply(&parse(text), folder.path()).unwrap();
    let after = read_tree(folder.path());
    assert_eq!(after.keys().map(Vec::as_slice).collect::<Vec<_>>(), [&b"d"[..], b"g/y"]);
}

#[test]
fn files_may_swap_their_names_and_a_file_may_become_a_link() {
    let folder = tree(&[("a", "1\n"), ("b", "2\n"), ("c", "3\n")]);
    let rename = |from, to| {
        format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
    };
    let link = "diff --git a/c b/c\ndeleted file mode 100644\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-3\n\
                diff --git a/c b/c\nnew file mode 120000\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n";
    let text = rename("b", "a") + &rename("a", "b") + link;
    apply(&parse(&text), folder.path()).unwrap();
    let after = read_tree(folder.path());
    assert_eq!((after[&b"a"[..]].1.as_slice(), after[&b"b"[..]].1.as_slice()), (&b"2\n"[..], &b"1\n"[..]));
    assert_eq!(after[&b"c"[..]], (0o120000, b"a".to_vec()));
    apply(&parse(&text).inverted().unwrap(), folder.path()).unwrap();
    assert_eq!(read_tree(folder.path())[&b"c"[..]], (0o100644, b"3\n".to_vec()));
}

#[test]
fn a_file_changed_by_two_headers_is_changed_by_both_as_git_does() {
    let text = format!("{EDIT}{}", EDIT.replace("-two\n+2\n", "-2\n+zwei\n"));
    let [ours, gits] = [(); 2].map(|()| tree(&[("f", "one\ntwo\nthree\n")]));
    apply(&parse(&text), ours.path()).unwrap();
    assert_eq!(Some(read_tree(ours.path())), git_apply(gits.path(), text.as_bytes()));
    let moved = format!("{EDIT}diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n");
    let fresh = tree(&[("f", "one\ntwo\nthree\n")]);
    let error = apply(&parse(&moved), fresh.path()).unwrap_err();
    assert!(matches!(error, ApplyError::Patch(PatchError::ChangedTwice { line: 8, .. })), "{error}");
}

#[test]
fn a_file_made_and_deleted_again_by_one_patch_was_never_there() {
    let text = "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    let folder = tree(&[("f", "one\ntwo\nthree\n")]);
    let applied = apply(&parse(&format!("{text}{EDIT}")), folder.path()).unwrap();
    assert_eq!(applied.files, [b"f"]);
    assert_eq!(read_tree(folder.path()).len(), 1);
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let folder = tree(&[("f", "one\ntwo\nthree\n")]);
    let before = read_tree(folder.path());
    let dry = check_applies(&parse(EDIT), folder.path()).unwrap();
    assert_eq!(read_tree(folder.path()), before);
    assert_eq!(apply(&parse(EDIT), folder.path()).unwrap(), dry);
    assert_eq!(dry.files, [b"f"]);
}

#[test]
fn a_binary_change_fits_its_own_content_only() {
    let text = "diff --git a/x b/x\nindex 0000000000000000000000000000000000000001..0000000000000000000000000000000000000002 100644\n\
                GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n";
    let folder = tree(&[("x", "x")]);
    let error = apply(&parse(text), folder.path()).unwrap_err();
    assert!(error.to_string().contains("made against other content"), "{error}");
    let short = text.replace("0000000000000000000000000000000000000001", "1234567");
    let error = apply(&parse(&short), folder.path()).unwrap_err();
    assert!(error.to_string().contains("--full-index"), "{error}");
}

#[test]
fn small_deltas_that_unpack_to_more_than_memory_are_refused() {
    let base = "x".repeat(1 << 16);
    let chunk =
        |deflated: &[u8], size| BinaryChunk { method: Method::Delta, size, deflated: deflated.to_vec() };
    // 64 KiB copied 1024 times: 64 MiB from a few bytes.
    let mut delta = vec![0x80, 0x80, 0x04, 0x80, 0x80, 0x80, 0x20];
    delta.extend([0x80; 1024]);
    let packed = BinaryChunk::literal(&delta);
    let zeros = "0".repeat(40);
    let folder = tempfile::tempdir().unwrap();
    let files = (0..5).map(|number| {
        let name = format!("f{number}").into_bytes();
        fs::write(folder.path().join(format!("f{number}")), &base).unwrap();
        FilePatch {
            line: number + 1,
            change: Change::Modify,
            old_path: name.clone(),
            new_path: name,
            old_mode: None,
            new_mode: None,
            index: Some(Index { old: zeros.clone(), new: zeros.clone() }),
            similarity: None,
            content: Content::Binary(BinaryPatch {
                forward: chunk(&packed.deflated, packed.size),
                reverse: None,
            }),
        }
    });
    let patch = Patch { files: files.collect(), mended: Vec::new() };
    let error = apply(&patch, folder.path()).unwrap_err();
    assert!(
        error.to_string().starts_with("line 5 of the patch: f4: with it the patch writes more"),
        "{error}"
    );
}
