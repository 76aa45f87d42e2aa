//! Patches that no honest change of a source tree is: refused with their line, and the tree untouched.

mod support;

use std::fs;

use infradev_model::{Class, Classified};
use infradev_patch::{ApplyError, Patch, PatchError, Refusal, apply};
use support::{read_tree, tree};

fn create(path: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    )
}

fn link(path: &str, target: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
    )
}

fn rename(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
}

#[test]
fn hostile_content_is_refused_with_its_line_before_anything_is_written() {
    let honest = create("honest");
    let mode = "diff --git a/dev b/dev\nnew file mode 020666\nindex 0000000..e69de29\n".to_string();
    let gitlink = "diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..1234567\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit 1234567\n";
    let nul = "diff --git \"a/x\\000y\" \"b/x\\000y\"\nnew file mode 100644\nindex 0000000..e69de29\n";
    let plain = "--- ../../etc/passwd\n+++ ../../etc/passwd\n@@ -1 +1 @@\n-root\n+toor\n";
    let absolute = "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-root\n+toor\n";
    let quoted =
        "diff --git \"a/\\056\\056/x\" \"b/\\056\\056/x\"\nnew file mode 100644\nindex 0000000..e69de29\n";
    for (name, text, refusal) in [
        ("dots", create("../x"), Refusal::ParentComponent),
        ("dots inside", create("a/../../x"), Refusal::ParentComponent),
        ("dots quoted", quoted.into(), Refusal::ParentComponent),
        ("dots in a plain diff", plain.into(), Refusal::ParentComponent),
        ("absolute", create("/etc/x"), Refusal::AbsolutePath),
        ("absolute in a plain diff", absolute.into(), Refusal::AbsolutePath),
        ("git folder", create(".git/hooks/post-checkout"), Refusal::GitFolder),
        ("git folder in capitals", create("sub/.GIT/config"), Refusal::GitFolder),
        ("git folder, short name", create("git~1/config"), Refusal::GitFolder),
        ("git folder as a file", create("sub/.git"), Refusal::GitFolder),
        ("a name longer than file systems take", create(&"n".repeat(256)), Refusal::TooLong),
        (
            "a path longer than file systems take",
            create(&format!("{}f", "n/".repeat(1600))),
            Refusal::TooLong,
        ),
        ("a link to a long name", link("l", &"n".repeat(256)), Refusal::TooLong),
        ("double slash", create("a//b"), Refusal::MalformedPath),
        ("dot component", create("a/./b"), Refusal::MalformedPath),
        ("rename out", rename("present", "../gone"), Refusal::ParentComponent),
        ("rename in", rename("../../etc/passwd", "here"), Refusal::ParentComponent),
        ("NUL", nul.into(), Refusal::NulByte),
        ("gitlink", gitlink.into(), Refusal::Gitlink),
        ("device", mode, Refusal::OddMode),
        ("absolute link", link("l", "/etc/passwd"), Refusal::AbsoluteLink),
        ("link out", link("a/l", "../../x"), Refusal::EscapingLink),
        ("link out by a second link", link("l", "a/../../x"), Refusal::EscapingLink),
        ("link into the git folder", link("l", ".git/config"), Refusal::GitFolder),
        ("file below a link made here", link("l", "present") + &create("l/x"), Refusal::ThroughLink),
        ("the same in the other order", create("l/x") + &link("l", "present"), Refusal::ThroughLink),
    ] {
        let folder = tree(&[("present", "x\n")]);
        let before = read_tree(folder.path());
        let patch =
            Patch::parse(format!("{honest}{text}").as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let error = patch.check().unwrap_err();
        let PatchError::Refused { line, refusal: found, .. } = error else { panic!("{name}: {error}") };
        assert_eq!(found, refusal, "{name}");
        assert!(line >= 7, "{name}: line {line}");
        assert_eq!(error.class(), Class::BadInput);
        assert!(matches!(apply(&patch, folder.path()), Err(ApplyError::Patch(_))), "{name}");
        assert_eq!(read_tree(folder.path()), before, "{name}");
    }
}

#[test]
fn nothing_is_read_or_written_through_a_link_that_the_tree_holds() {
    let outside = tree(&[("secret", "s\n")]);
    let folder = tree(&[("present", "x\n")]);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("leaf")).unwrap();
    let modify = |path: &str| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-s\n+t\n");
    for text in [
        create("out/new"),
        create("out/sub/new"),
        modify("out/secret"),
        modify("leaf"),
        rename("out/secret", "here"),
        rename("present", "out/there"),
        "diff --git a/out/secret b/out/secret\ndeleted file mode 100644\n--- a/out/secret\n+++ /dev/null\n@@ -1 +0,0 @@\n-s\n".into(),
    ] {
        let error = apply(&Patch::parse(text.as_bytes()).unwrap(), folder.path()).unwrap_err();
        let refused = matches!(
            error,
            ApplyError::Patch(PatchError::Refused { refusal: Refusal::ThroughLink, .. })
                | ApplyError::WrongKind { found: "a symbolic link", .. }
        );
        assert!(refused, "{error}\n{text}");
        assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"s\n");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_link_may_not_be_bent_or_moved_outwards() {
    let bend = "diff --git a/d/l b/d/l\nindex 1111111..2222222 120000\n--- a/d/l\n+++ b/d/l\n@@ -1 +1 @@\n-../present\n\\ No newline at end of file\n+../../present\n\\ No newline at end of file\n";
    for text in [bend.to_string(), rename("d/l", "l")] {
        let folder = tree(&[("present", "x\n"), ("d/x", "x\n")]);
        std::os::unix::fs::symlink("../present", folder.path().join("d/l")).unwrap();
        let error = apply(&Patch::parse(text.as_bytes()).unwrap(), folder.path()).unwrap_err();
        let refused =
            matches!(error, ApplyError::Patch(PatchError::Refused { refusal: Refusal::EscapingLink, .. }));
        assert!(refused, "{error}");
    }
}

#[test]
fn headers_that_name_two_files_are_refused() {
    for text in [
        "diff --git a/x b/x\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
    ] {
        assert!(matches!(Patch::parse(text.as_bytes()), Err(PatchError::Syntax { line: 1, .. })), "{text}");
    }
}
