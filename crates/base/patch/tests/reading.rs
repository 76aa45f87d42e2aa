//! Reading of patches as people, mailers and agents write them.

mod support;

use infradev_model::Classified;
use infradev_patch::{Change, Content, Mending, Patch, PatchError, apply};
use support::{git_apply, read_tree, tree};

const PLAIN: &str = "--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";

fn parse(text: &str) -> Result<Patch, PatchError> {
    Patch::parse(text.as_bytes())
}

#[test]
fn nothing_and_white_space_are_a_patch_without_files() {
    assert!(parse("").unwrap().is_empty());
    assert!(parse(" \n\n").unwrap().is_empty());
}

#[test]
fn text_without_a_diff_is_an_error_that_says_what_to_make() {
    let error = parse("I changed the loss scale.\n").unwrap_err();
    assert_eq!(error, PatchError::NotADiff);
    assert!(error.hint().unwrap().contains("git diff"));
}

#[test]
fn a_preamble_and_a_mails_signature_are_passed_over() {
    let mail = format!("From abc\nSubject: [PATCH] x\n\n---\n f.py | 2 +-\n\n{PLAIN}-- \n2.47.3\n\n");
    let patch = parse(&mail).unwrap();
    assert_eq!((patch.files.len(), patch.files[0].line, patch.files[0].hunks()[0].line), (1, 7, 9));
}

#[test]
fn a_plain_diff_needs_no_prefix_and_may_bear_time_stamps() {
    for (header, change) in [
        ("--- f.py\n+++ f.py", Change::Modify),
        ("--- a/f.py\t2026-01-01 10:00:00\n+++ b/f.py\t2026-01-01 10:00:01", Change::Modify),
        ("--- f.py.orig\n+++ f.py", Change::Modify),
        ("--- i/f.py\n+++ w/f.py", Change::Modify),
        ("--- /dev/null\n+++ b/f.py", Change::Create),
        ("--- f.py\t1970-01-01 00:00:00 +0000\n+++ f.py\t2026-01-01 10:00:01", Change::Create),
        ("--- a/f.py\n+++ /dev/null", Change::Delete),
    ] {
        let patch = parse(&format!("{header}\n@@ -1 +1 @@\n-a\n+b\n")).unwrap();
        assert_eq!(
            (patch.files[0].new_path.as_slice(), patch.files[0].change),
            (&b"f.py"[..], change),
            "{header}"
        );
    }
}

#[test]
fn a_folder_that_is_called_a_keeps_its_name_without_prefixes() {
    let patch = parse("diff --git a/f.py a/f.py\n--- a/f.py\n+++ a/f.py\n@@ -1 +1 @@\n-a\n+b\n").unwrap();
    assert_eq!(patch.files[0].new_path, b"a/f.py");
}

#[test]
fn a_lost_final_newline_is_mended_and_recorded() {
    let patch = parse(PLAIN.trim_end()).unwrap();
    assert_eq!(patch.mended, [Mending::FinalNewline { line: 6 }]);
    let folder = tree(&[("f.py", "one\ntwo\n")]);
    let applied = apply(&patch, folder.path()).unwrap();
    assert_eq!(applied.mended, patch.mended);
    assert_eq!(read_tree(folder.path())[&b"f.py"[..]].1, b"one\n2\n");
}

#[test]
fn a_missing_newline_of_the_file_itself_is_not_mended() {
    let text =
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file";
    let patch = parse(text).unwrap();
    let folder = tree(&[("f", "a")]);
    apply(&patch, folder.path()).unwrap();
    assert_eq!(read_tree(folder.path())[&b"f"[..]].1, b"b");
}

#[test]
fn a_patch_that_went_through_crlf_is_mended_as_a_whole() {
    let patch = parse(&PLAIN.replace('\n', "\r\n")).unwrap();
    assert_eq!(patch.mended, [Mending::TransportCrlf]);
    assert_eq!(patch.files, parse(PLAIN).unwrap().files);
    let half = PLAIN.replacen('\n', "\r\n", 2);
    assert!(matches!(parse(&half), Err(PatchError::Syntax { line: 3, .. })));
}

#[test]
fn wrong_counts_of_a_hunk_name_its_line_and_what_was_found() {
    for (header, found, at_end) in [
        ("@@ -1,3 +1,3 @@", (2, 2), true),
        ("@@ -1,2 +1,1 @@", (2, 2), false),
        ("@@ -1,1 +1,2 @@", (2, 1), false),
        ("@@ -1,2 +1,3 @@", (2, 2), true),
    ] {
        let error = parse(&PLAIN.replace("@@ -1,2 +1,2 @@", header)).unwrap_err();
        let PatchError::HunkCounts { line, old_found, new_found, at_end: end, .. } = error else {
            panic!("{header}: {error}")
        };
        assert_eq!((line, (old_found, new_found), end), (3, found, at_end), "{header}");
    }
    let more = format!("{PLAIN} three\n+four\n");
    let error = parse(&more).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3 of the patch: the hunk header states 2 old and 2 new lines, its body has 3 and 4"
    );
}

#[test]
fn damage_is_named_by_its_line() {
    let cases = [
        ("diff --git a/x b/x\n--- a/x\n@@ -1 +1 @@\n-a\n+b\n", 3),
        ("diff --git a/x b/x\nold mode what\n", 2),
        ("diff --git a/x b/x\nindex zzz\n", 2),
        ("--- a/x\n+++ b/x\n@@ -1 +x @@\n-a\n+b\n", 3),
        ("@@ -1 +1 @@\n-a\n+b\n", 1),
        ("diff --cc x\nindex 1,2..3\n", 1),
        ("diff --git a/x b/x\nGIT binary patch\nnonsense\n", 3),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 3\nKcmZ\n\n", 4),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 9\nIcmZPo000310RR91\n\n", 3),
        ("diff --git a/x b/y z\nold mode 100644\nnew mode 100755\n", 1),
    ];
    for (text, line) in cases {
        let error = parse(text).unwrap_err();
        assert!(error.to_string().starts_with(&format!("line {line} of the patch: ")), "{text}: {error}");
    }
}

#[test]
fn a_binary_change_without_data_names_the_option_that_was_missing() {
    let error =
        parse("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n").unwrap_err();
    assert!(matches!(error, PatchError::BinaryWithoutData { line: 3, .. }));
    assert!(error.hint().unwrap().contains("--binary"));
}

#[test]
fn an_empty_context_line_may_have_lost_its_space() {
    let text = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n\n-two\n+2\n";
    let folder = tree(&[("f", "one\n\ntwo\n")]);
    let gits = tree(&[("f", "one\n\ntwo\n")]);
    apply(&parse(text).unwrap(), folder.path()).unwrap();
    assert_eq!(Some(read_tree(folder.path())), git_apply(gits.path(), text.as_bytes()));
}

#[test]
fn changes_are_counted_by_file() {
    let patch =
        parse(&format!("{PLAIN}diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n")).unwrap();
    let stats = patch.stats();
    assert_eq!((stats[0].added, stats[0].removed, stats[0].binary), (1, 1, false));
    assert_eq!((stats[1].path.as_slice(), stats[1].added), (&b"e"[..], 0));
    assert_eq!(patch.files[1].content, Content::Same);
}
