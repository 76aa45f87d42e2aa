//! What a person reads when an environment cannot be had.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use infradev_model::{Class, Classified};
use infradev_pyenv::{Definition, Lock, PyenvError};
use support::{ROOT, TINY, child, ensure, left_in, lock_named, stdout, tiny};

const HASH: &str = "--hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274";

/// What a person sees of an error, with the machine's own paths taken out.
fn shown(error: &PyenvError, root: &Path) -> String {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    format!("{error}{hint}").replace(&*root.to_string_lossy(), "[root]")
}

#[test]
fn each_line_that_fixes_no_content_is_refused_by_file_and_line() {
    let broken = [
        "six==1.17.0".to_owned(),
        format!("# two\n\nsix>=1.17.0 {HASH}"),
        format!("six {HASH}"),
        format!("six==1.* {HASH}"),
        format!("six==1.17.0,!=2 {HASH}"),
        format!("six @ https://example.org/six.whl {HASH}"),
        format!("https://example.org/six.whl {HASH}"),
        format!("./six.whl {HASH}"),
        "-e .".to_owned(),
        "-r other.txt".to_owned(),
        "--no-binary :all:".to_owned(),
        "six==1.17.0 --hash=md5:00".to_owned(),
        "six==1.17.0 --hash=sha256:12".to_owned(),
        format!("six==1.17.0 {HASH} --config-settings=a=b"),
        format!("six==banana {HASH}"),
        format!("six==1.17.0 ; python_version > {HASH}"),
        "# nothing here\n".to_owned(),
    ];
    let mut table = String::new();
    for text in &broken {
        let error = Lock::parse(text.as_bytes(), Path::new("envs/cpu.lock")).unwrap_err();
        assert_eq!(error.class(), Class::BadInput);
        table.push_str(&format!("{}\n    {error}\n", text.replace(HASH, "--hash=…").replace('\n', "⏎")));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_lock_that_is_not_utf8_names_the_line() {
    let error = Lock::parse(b"# a\n# b\nsix\xff==1\n", Path::new("envs/cpu.lock")).unwrap_err();
    assert_eq!(error.to_string(), "envs/cpu.lock:3: the file is not UTF-8");
}

#[test]
fn one_package_at_two_versions_is_refused_unless_markers_tell_them_apart() {
    let folder = tempfile::tempdir().unwrap();
    let both = format!("six==1.17.0 {HASH}\nSix==1.16.0 {HASH}\n");
    let error = ensure(folder.path(), &lock_named(&both, "a.lock", "3.11")).0.unwrap_err();
    assert_eq!(error.to_string(), "a.lock:2: `six` is pinned to 1.16.0 here and to 1.17.0 on line 1");
    let apart = both.replace("Six==1.16.0", "six==1.16.0 ; python_version < '3.9'");
    let built = ensure(folder.path(), &lock_named(&apart, "a.lock", "3.11")).0.unwrap();
    assert_eq!(built.packages["six"], "1.17.0");
}

#[test]
fn a_hash_that_differs_is_told_in_the_words_of_uv_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let text = TINY.replace("4721f391", "00000000").replace("ff70335d", "00000000");
    let error = ensure(folder.path(), &lock_named(&text, "envs/cpu.lock", "3.11")).0.unwrap_err();
    assert_eq!(error.class(), Class::BadInput);
    let said = shown(&error, folder.path());
    assert!(said.starts_with("envs/cpu.lock: uv cannot install this lock:\n"), "{said}");
    assert!(said.contains("Hash mismatch for `six==1.17.0`"), "{said}");
    assert!(!said.contains("[root]"), "{said}");
    assert!(left_in(folder.path()).is_empty());
}

#[test]
fn a_version_that_does_not_exist_is_told_in_the_words_of_uv() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("six==99.0 {HASH}\n");
    let error = ensure(folder.path(), &lock_named(&text, "envs/cpu.lock", "3.11")).0.unwrap_err();
    assert_eq!(error.class(), Class::BadInput);
    let said = shown(&error, folder.path());
    assert!(said.starts_with("envs/cpu.lock: uv cannot install this lock:\n"), "{said}");
    assert!(said.contains("no version of six==99.0"), "{said}");
    assert!(!said.contains("[root]"), "{said}");
    assert!(left_in(folder.path()).is_empty());
}

#[test]
fn a_missing_interpreter_version_names_those_that_were_found() {
    let folder = tempfile::tempdir().unwrap();
    let error = ensure(folder.path(), &lock_named(TINY, "envs/cpu.lock", "3.99")).0.unwrap_err();
    let PyenvError::NoInterpreter { wanted, found } = &error else { panic!("{error}") };
    assert_eq!(wanted, "3.99");
    assert!(found.iter().any(|python| python.starts_with("3.11.")), "{found:?}");
    assert!(error.to_string().starts_with("no Python 3.99 interpreter was found; found: "), "{error}");
}

#[test]
fn words_in_place_of_a_version_or_interpreter_are_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    for python in ["pypy", "3", "/usr/bin/python3", "3.x", ""] {
        let error = ensure(folder.path(), &lock_named(TINY, "envs/cpu.lock", python)).0.unwrap_err();
        assert!(matches!(error, PyenvError::NoVersion { .. }), "{error}");
    }
    let script = folder.path().join("python");
    fs::write(&script, "#!/bin/sh\necho no such luck >&2\nexit 3\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut said = String::new();
    for path in [folder.path().join("nowhere"), script] {
        let error = ensure(folder.path(), &Definition::Interpreter { path }).0.unwrap_err();
        assert_eq!(error.class(), Class::BadInput);
        said.push_str(&shown(&error, folder.path()));
        said.push('\n');
    }
    insta::assert_snapshot!(said);
}

/// Also what a child runs that finds no uv.
#[test]
fn without_uv_the_error_says_how_to_get_it() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else {
        let folder = tempfile::tempdir().unwrap();
        let name = "without_uv_the_error_says_how_to_get_it";
        let output = child(name, folder.path()).env("PATH", "/nonexistent").run().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), output.stderr_text());
        return;
    };
    let error = ensure(&root, &tiny()).0.unwrap_err();
    assert_eq!(shown(&error, &root), "uv was not found on PATH\nhint: pip install uv");
}

/// Also what a child runs whose index nobody serves.
#[test]
fn an_index_out_of_reach_is_a_fault_and_not_the_locks() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else {
        let folder = tempfile::tempdir().unwrap();
        let name = "an_index_out_of_reach_is_a_fault_and_not_the_locks";
        let output = child(name, folder.path())
            .env("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
            .env("UV_HTTP_RETRIES", "0")
            .run()
            .unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), output.stderr_text());
        return;
    };
    // A cache of its own: what is cached needs no index.
    let store = infradev_pyenv::Environments::with_cache(root.join("envs"), Some(root.join("cache")));
    let error = store.ensure(&tiny(), &infradev_pyenv::Quiet).unwrap_err();
    assert_eq!(error.class(), Class::Fault, "{error}");
    assert!(error.hint().unwrap().contains("index"), "{error}");
}

#[test]
fn a_full_disk_is_typed_and_leaves_no_half_environment() {
    struct Tmpfs(tempfile::TempDir);
    impl Drop for Tmpfs {
        fn drop(&mut self) {
            let _ = nix::mount::umount2(self.0.path(), nix::mount::MntFlags::MNT_DETACH);
        }
    }
    let disk = Tmpfs(tempfile::tempdir().unwrap());
    let options = Some("size=64k");
    nix::mount::mount(Some("tmpfs"), disk.0.path(), Some("tmpfs"), nix::mount::MsFlags::empty(), options)
        .expect("mounting a tmpfs needs root");
    let error = ensure(disk.0.path(), &tiny()).0.unwrap_err();
    assert!(matches!(error, PyenvError::DiskFull { .. }), "{error}");
    assert_eq!(error.class(), Class::Fault);
    assert!(left_in(disk.0.path()).is_empty());
}
