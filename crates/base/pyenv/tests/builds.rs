//! Environments built by the real uv: once, whole or not at all.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use infradev_model::{Class, Classified};
use infradev_pyenv::{Definition, Event};
use infradev_supervise::{Exit, Invocation, find_program};
use support::{ROOT, TINY, child, ensure, left_in, lock_named, stdout, store, tiny};

const BUILDER: &str = "an_environment_holds_what_its_lock_names_with_bytecode";

fn run_python(python: &Path, code: &str) -> String {
    let output = Invocation::new(python).args(["-I", "-c", code]).run().unwrap();
    assert!(output.status.success(), "{}", output.stderr_text());
    stdout(&output).trim().to_owned()
}

/// Also what a child process runs, into the folder that it is given.
#[test]
fn an_environment_holds_what_its_lock_names_with_bytecode() {
    let own = tempfile::tempdir().unwrap();
    let root = std::env::var_os(ROOT).map_or_else(|| own.path().join("envs"), PathBuf::from);
    let (built, events) = ensure(&root, &tiny());
    let built = built.unwrap();
    // On stderr a child's lines would mix with the test runner's.
    let said: String = events.iter().map(|event| format!("event {event}\n")).collect();
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes()).unwrap();

    let packages: Vec<_> = built.packages.iter().map(|(n, v)| format!("{n} {v}")).collect();
    assert_eq!(packages, ["iniconfig 2.1.0", "six 1.17.0"]);
    assert!(built.python_version.starts_with("3.11."));
    assert_eq!(
        run_python(&built.python, "import six; print(six.__file__)"),
        built.site.join("six.py").to_string_lossy()
    );
    let bytecode = fs::read_dir(built.site.join("__pycache__")).unwrap().flatten();
    assert!(bytecode.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("six.")));
    let prefix = run_python(&built.python, "import sys; print(sys.base_prefix)");
    assert_eq!(Path::new(&prefix), built.base_prefix);
    for needed in [&built.site, &built.base_prefix, &built.python.canonicalize().unwrap()] {
        assert!(
            built.mounts.iter().any(|mount| needed.starts_with(mount)),
            "{needed:?} in {:?}",
            built.mounts
        );
    }
}

#[test]
fn a_lock_of_another_format_that_names_the_same_packages_is_the_same_environment() {
    let folder = tempfile::tempdir().unwrap();
    let known = ensure(folder.path(), &tiny()).0.unwrap();
    let pins: Vec<(&str, &str, Vec<&str>)> = TINY
        .split("\n")
        .filter_map(|line| line.strip_suffix(" \\"))
        .filter_map(|line| line.split_once("=="))
        .map(|(name, version)| {
            let own = TINY.split(&format!("{name}==")).nth(1).unwrap().split("# via").next().unwrap();
            let hashes =
                own.split("--hash=sha256:").skip(1).map(|hash| hash.split_whitespace().next().unwrap());
            (name, version, hashes.collect())
        })
        .collect();
    assert_eq!(pins.len(), 2, "{TINY}");
    let mut standard = "lock-version = \"1.0\"\ncreated-by = \"test\"\n".to_owned();
    let mut of_uv =
        "version = 1\n[[package]]\nname = \"own\"\nversion = \"0\"\nsource = { virtual = \".\" }\n"
            .to_owned();
    of_uv += "dependencies = [{ name = \"iniconfig\" }, { name = \"six\" }]\n";
    for (name, version, hashes) in pins {
        let files = |form: &dyn Fn(&str) -> String| {
            hashes.iter().map(|hash| form(hash)).collect::<Vec<_>>().join(", ")
        };
        let wheels =
            files(&|hash| format!("{{ url = \"https://e.org/x.whl\", hashes = {{ sha256 = \"{hash}\" }} }}"));
        standard +=
            &format!("[[packages]]\nname = \"{name}\"\nversion = \"{version}\"\nwheels = [{wheels}]\n");
        let wheels = files(&|hash| format!("{{ url = \"https://e.org/x.whl\", hash = \"sha256:{hash}\" }}"));
        let source = "source = { registry = \"https://pypi.org/simple\" }";
        of_uv += &format!(
            "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}\nwheels = [{wheels}]\n"
        );
    }
    for (name, text) in [("envs/pylock.toml", &standard), ("envs/uv.lock", &of_uv)] {
        let (found, events) = ensure(folder.path(), &lock_named(text, name, "3.11"));
        assert_eq!((found.unwrap().key, events), (known.key.clone(), Vec::new()), "{name}");
        // And alone.
        let other = tempfile::tempdir().unwrap();
        let (built, events) = ensure(other.path(), &lock_named(text, name, "3.11"));
        assert_eq!(events, ["building", "built"]);
        assert_eq!(run_python(&built.unwrap().python, "import six; print(six.__version__)"), "1.17.0");
    }
}

#[test]
fn an_interpreter_is_found_behind_a_shim_that_does_not_lead_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let known = ensure(&folder.path().join("known"), &tiny()).0.unwrap();
    let pyenv = folder.path().join("pyenv");
    let (shims, tools) = (pyenv.join("shims"), pyenv.join("tools"));
    let behind = pyenv.join("versions").join(&known.python_version).join("bin");
    for place in [&shims, &tools, &behind] {
        fs::create_dir_all(place).unwrap();
    }
    let shim = shims.join("python3.11");
    fs::write(&shim, "#!/bin/sh\necho 'pyenv: python3.11: command not found' >&2\nexit 127\n").unwrap();
    fs::set_permissions(&shim, PermissionsExt::from_mode(0o755)).unwrap();
    symlink(known.python.canonicalize().unwrap(), behind.join("python3.11")).unwrap();
    symlink(real_uv(), tools.join("uv")).unwrap();
    // No other interpreter may be in view, neither the system's nor one that uv manages.
    let path = std::env::join_paths([&shims, &tools]).unwrap();
    let child = child(BUILDER, &folder.path().join("envs")).env("PATH", path);
    let output = child.env("UV_PYTHON_INSTALL_DIR", pyenv.join("none")).run().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), output.stderr_text());
}

/// uv itself, where the one on the path is a shim.
fn real_uv() -> PathBuf {
    let found = find_program("uv").unwrap();
    let versions = found.parent().filter(|folder| folder.ends_with("shims"));
    let versions = versions.and_then(|folder| fs::read_dir(folder.with_file_name("versions")).ok());
    let behind = versions.into_iter().flatten().flatten().map(|version| version.path().join("bin/uv"));
    behind.into_iter().find(|uv| uv.is_file()).unwrap_or(found)
}

#[test]
fn a_second_request_finds_the_environment_and_runs_no_build() {
    let folder = tempfile::tempdir().unwrap();
    let (first, events) = ensure(folder.path(), &tiny());
    assert_eq!(events, ["building", "built"]);
    let (again, events) = ensure(folder.path(), &tiny());
    assert_eq!(first.unwrap(), again.unwrap());
    assert!(events.is_empty());
}

#[test]
fn files_are_hard_links_into_the_cache() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let built = ensure(folder.path(), &tiny()).0.unwrap();
    assert!(fs::metadata(built.site.join("six.py")).unwrap().nlink() > 1);
}

#[test]
fn order_comments_and_false_markers_leave_the_key_alone_and_a_hash_changes_it() {
    let folder = tempfile::tempdir().unwrap();
    let key = |text: &str| ensure(folder.path(), &lock_named(text, "a.lock", "3.11")).0.unwrap().key;
    let entries: Vec<&str> = TINY.split_inclusive("via -r tiny.in\n").collect();
    let swapped = format!(
        "--index-url https://example.org/simple\n{}{}colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:{}\n",
        entries[1].replace("six==", "SIX == "),
        entries[0],
        "0".repeat(64)
    );
    assert_eq!(key(TINY), key(&swapped));
    let fewer = TINY.replace(
        " \\\n    --hash=sha256:ff70335d468e7eb6ec65b95b99d3a2836546063f63acc5171de367e834932a81",
        "",
    );
    assert_ne!(key(TINY), key(&fewer));
}

#[test]
fn two_processes_at_once_build_once_and_get_the_same_environment() {
    let folder = tempfile::tempdir().unwrap();
    let outputs: Vec<String> = std::thread::scope(|scope| {
        let both = [0, 1].map(|_| {
            scope.spawn(|| {
                let output = child(BUILDER, folder.path()).run().unwrap();
                assert!(output.status.success(), "{}{}", stdout(&output), output.stderr_text());
                stdout(&output)
            })
        });
        both.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let builds: usize = outputs.iter().map(|out| out.matches("event building").count()).sum();
    assert_eq!(builds, 1, "{outputs:?}");
    assert_eq!(left_in(folder.path()).len(), 1);
}

#[test]
fn a_second_builder_says_that_it_waits_and_takes_what_the_first_has_built() {
    let folder = tempfile::tempdir().unwrap();
    let finished = ensure(folder.path(), &tiny()).0.unwrap();
    let home = folder.path().join(&finished.key.as_str()[..32]);
    let aside = folder.path().join("aside");
    fs::rename(&home, &aside).unwrap();
    let lock = File::open(folder.path().join(".locks").join(&finished.key.as_str()[..32])).unwrap();
    lock.lock().unwrap();

    let (say, hear) = mpsc::channel();
    let waited = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            store(folder.path()).ensure(&tiny(), &|event: Event<'_>| say.send(format!("{event:?}")).unwrap())
        });
        assert!(hear.recv().unwrap().starts_with("Waiting"));
        fs::rename(&aside, &home).unwrap();
        lock.unlock().unwrap();
        waiter.join().unwrap().unwrap()
    });
    assert_eq!(waited, finished);
    assert!(hear.try_recv().is_err(), "it built although the first had");
}

/// Also what a child runs: an interrupt ends a process's work for good.
#[test]
fn an_interrupt_ends_the_wait_for_another_builder() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else {
        let folder = tempfile::tempdir().unwrap();
        let output = child("an_interrupt_ends_the_wait_for_another_builder", folder.path()).run().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), output.stderr_text());
        return;
    };
    let finished = ensure(&root, &tiny()).0.unwrap();
    let name = &finished.key.as_str()[..32];
    fs::rename(root.join(name), root.join("aside")).unwrap();
    let lock = File::open(root.join(".locks").join(name)).unwrap();
    lock.lock().unwrap();
    let interrupt = |event: Event<'_>| {
        assert!(matches!(event, Event::Waiting { .. }));
        infradev_supervise::cancel();
    };
    let error = store(&root).ensure(&tiny(), &interrupt).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
}

#[test]
fn a_builder_killed_at_any_instant_leaves_nothing_under_the_final_name_and_the_next_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let mut killed_in_a_build = 0;
    // From the first steps of a build to its end, on a fast machine and on a slow one.
    for step in 0..30 {
        let instant = Duration::from_millis(80).mul_f64(1.2_f64.powi(step));
        let output = child(BUILDER, folder.path()).deadline(instant).run().unwrap();
        let left = left_in(folder.path());
        let whole = left.iter().filter(|name| !name.starts_with(".building-")).count();
        if output.status == Exit::Code(0) || whole > 0 {
            assert_eq!(whole, 1, "{left:?}");
            break;
        }
        assert_eq!(output.status, Exit::TimedOut, "{}{}", stdout(&output), output.stderr_text());
        killed_in_a_build += left.len();
    }
    assert!(killed_in_a_build > 0, "no kill hit a build");

    // One more kill's remains beside an environment that exists: swept by the next build of another key.
    let (_, events) = ensure(folder.path(), &tiny());
    assert!(events.is_empty());
    let fewer = TINY.split("six==").next().unwrap();
    let (other, _) = ensure(folder.path(), &lock_named(fewer, "b.lock", "3.11"));
    other.unwrap();
    let left = left_in(folder.path());
    assert!(left.iter().all(|name| !name.starts_with(".building-")), "{left:?}");
}

#[test]
fn a_folder_being_built_by_a_live_process_is_not_swept() {
    let folder = tempfile::tempdir().unwrap();
    let key = "0123456789abcdef0123456789abcdef";
    fs::create_dir_all(folder.path().join(".locks")).unwrap();
    let live = File::create(folder.path().join(".locks").join(key)).unwrap();
    live.lock().unwrap();
    let building = folder.path().join(format!(".building-{key}-x"));
    fs::create_dir(&building).unwrap();
    ensure(folder.path(), &tiny()).0.unwrap();
    assert!(building.is_dir());
    drop(live);
    let fewer = TINY.split("six==").next().unwrap();
    let (_, events) = ensure(folder.path(), &lock_named(fewer, "b.lock", "3.11"));
    assert_eq!(events, ["swept", "building", "built"]);
    assert!(!building.exists());
}

#[test]
fn an_environment_whose_interpreter_is_gone_is_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let built = ensure(folder.path(), &tiny()).0.unwrap();
    fs::remove_file(&built.python).unwrap();
    let (again, events) = ensure(folder.path(), &tiny());
    assert_eq!(events, ["building", "built"]);
    assert_eq!(again.unwrap(), built);
    assert_eq!(left_in(folder.path()).len(), 1);
}

#[test]
fn the_fingerprint_of_an_interpreter_follows_its_package_set() {
    let folder = tempfile::tempdir().unwrap();
    let built = ensure(folder.path(), &tiny()).0.unwrap();
    let definition = Definition::Interpreter { path: built.python.clone() };
    let as_it_is = ensure(folder.path(), &definition).0.unwrap();
    assert_eq!(as_it_is.packages, built.packages);
    assert_eq!(as_it_is.site, built.site);
    assert_eq!(as_it_is.fingerprint, ensure(folder.path(), &definition).0.unwrap().fingerprint);

    let added = built.site.join("Odd_Name-1.0.dist-info");
    fs::create_dir(&added).unwrap();
    fs::write(added.join("METADATA"), "Metadata-Version: 2.1\nName: Odd_Name\nVersion: 1.0\n").unwrap();
    let changed = ensure(folder.path(), &definition).0.unwrap();
    assert_eq!(changed.packages["odd-name"], "1.0");
    assert_ne!(changed.fingerprint, as_it_is.fingerprint);
}
