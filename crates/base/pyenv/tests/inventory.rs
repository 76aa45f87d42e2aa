//! What the store holds: counted, verified, exported, let go; never what is in use.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use infradev_pyenv::{Definition, Environments, Stored};
use infradev_supervise::Invocation;
use support::{TINY, ensure, left_in, lock_named, store, tiny};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The same packages but one: another environment, which shares files.
fn smaller() -> Definition {
    let (first, rest) = TINY.split_at(TINY.find("six==").unwrap());
    assert!(first.contains("iniconfig=="));
    lock_named(rest, "envs/smaller.lock", "3.11")
}

fn keys(all: &[Stored]) -> Vec<&str> {
    all.iter().map(|stored| stored.key.as_str()).collect()
}

/// Makes an environment look as if it was last used and built so long ago.
fn age(root: &Path, stored: &Stored, by: Duration) {
    let then = SystemTime::now() - by;
    let name = stored.folder.file_name().unwrap();
    for path in [root.join(".uses").join(name), stored.folder.join("infradev-env.json")] {
        fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }
}

#[test]
fn environments_are_listed_by_their_last_use_and_found_by_the_beginning_of_a_key() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(store(root.path()).list().unwrap(), []);
    let one = ensure(root.path(), &tiny()).0.unwrap();
    let other = ensure(root.path(), &smaller()).0.unwrap();
    fs::create_dir(root.path().join("somebody-elses")).unwrap();
    let listed = store(root.path()).list().unwrap();
    assert_eq!(keys(&listed), [other.key.as_str(), one.key.as_str()]);
    assert!(listed.iter().all(|stored| stored.in_use), "both are held by this process");
    drop(other);
    let listed = store(root.path()).list().unwrap();
    assert_eq!(listed.iter().map(|stored| stored.in_use).collect::<Vec<_>>(), [false, true]);
    assert_eq!(listed[0].packages.keys().collect::<Vec<_>>(), ["six"]);
    let store = store(root.path());
    assert_eq!(store.find(&one.key.as_str()[..8]).unwrap().key, one.key);
    let unknown = store.find("nothing").unwrap_err().to_string();
    assert!(
        unknown.starts_with("no environment has a key that begins with `nothing`; there are "),
        "{unknown}"
    );
    assert_eq!(
        store.find("").unwrap_err().to_string(),
        "several environments have a key that begins with ``"
    );
}

#[test]
fn files_that_two_environments_have_are_counted_once_in_what_they_take_together() {
    let root = tempfile::tempdir().unwrap();
    ensure(root.path(), &tiny()).0.unwrap();
    ensure(root.path(), &smaller()).0.unwrap();
    let usage = store(root.path()).usage().unwrap();
    let shares: Vec<_> = usage.environments.values().collect();
    assert_eq!(usage.apparent, shares.iter().map(|share| share.apparent).sum::<u64>());
    let own: u64 = shares.iter().map(|share| share.own).sum();
    // What both have is counted in neither's own, once in what they take, twice in what they would.
    assert_eq!(usage.unique - own, usage.saved());
    let six = fs::metadata(
        store(root.path()).list().unwrap()[0].folder.join("lib/python3.11/site-packages/six.py"),
    );
    assert!(usage.saved() >= six.unwrap().len(), "six is one file of two names: {usage:?}");
}

#[test]
fn what_nobody_used_for_long_goes_and_what_is_in_use_stays() {
    let root = tempfile::tempdir().unwrap();
    let held = ensure(root.path(), &tiny()).0.unwrap();
    drop(ensure(root.path(), &smaller()).0.unwrap());
    let store = store(root.path());
    let all = store.list().unwrap();
    assert_eq!(store.collect(DAY, &mut |_| true).unwrap(), [], "both were just built");
    for stored in &all {
        age(root.path(), stored, 2 * DAY);
    }
    let mut asked = Vec::new();
    let kept = store.collect(DAY, &mut |stored| {
        asked.push(stored.key.clone());
        false
    });
    assert_eq!(kept.unwrap(), []);
    assert_eq!(asked.len(), 1, "one in use is not asked about");
    let gone = store.collect(DAY, &mut |_| true).unwrap();
    assert_eq!(keys(&gone), [all[0].key.as_str()]);
    assert_eq!(keys(&store.list().unwrap()), [held.key.as_str()]);
    assert!(held.python.exists());
    // It is built again when it is asked for.
    let (again, events) = ensure(root.path(), &smaller());
    assert_eq!((again.unwrap().key, events), (all[0].key.clone(), vec!["building", "built"]));
}

#[test]
fn a_use_ends_with_its_process_and_a_removal_that_was_killed_is_ended_by_the_next() {
    let root = tempfile::tempdir().unwrap();
    drop(ensure(root.path(), &tiny()).0.unwrap());
    let store = store(root.path());
    let stored = store.list().unwrap().remove(0);
    assert!(!stored.in_use);
    let name = stored.folder.file_name().unwrap().to_string_lossy();
    fs::rename(&stored.folder, root.path().join(format!(".removing-{name}"))).unwrap();
    assert_eq!(store.collect(DAY, &mut |_| true).unwrap(), []);
    assert_eq!(left_in(root.path()), Vec::<String>::new());
}

#[test]
fn a_file_that_was_changed_or_removed_is_found_by_the_digest_that_its_wheel_states() {
    let root = tempfile::tempdir().unwrap();
    // Files of the cache are shared with other tests: these are of one's own.
    let store = Environments::with_cache(root.path().join("envs"), Some(root.path().join("cache")));
    drop(store.ensure(&tiny(), &infradev_pyenv::Quiet).unwrap());
    let stored = store.list().unwrap().remove(0);
    let found = store.verify(&stored).unwrap();
    assert!(found.is_whole(), "{found:?}");
    assert!(found.intact > 5, "{found:?}");
    let site = stored.folder.join("lib/python3.11/site-packages");
    fs::write(site.join("six.py"), "x = 1\n").unwrap();
    fs::remove_file(site.join("iniconfig/py.typed")).unwrap();
    let found = store.verify(&stored).unwrap();
    let below = |name: &str| vec![Path::new("lib/python3.11/site-packages").join(name)];
    assert_eq!(
        (found.differing.clone(), found.missing.clone()),
        (below("six.py"), below("iniconfig/py.typed"))
    );
    fs::remove_file(site.join("six-1.17.0.dist-info/RECORD")).unwrap();
    assert_eq!(store.verify(&stored).unwrap().unrecorded, ["six"]);
}

#[test]
fn an_environment_is_one_file_that_brings_its_interpreter_along() {
    let root = tempfile::tempdir().unwrap();
    let built = ensure(&root.path().join("envs"), &tiny()).0.unwrap();
    let store = store(&root.path().join("envs"));
    let stored = store.list().unwrap().remove(0);
    let file = root.path().join("tiny.tar");
    let folders = store.export(&stored, &file).unwrap();
    assert!(folders.iter().any(|folder| built.site.starts_with(folder)), "{folders:?}");
    let node = root.path().join("node");
    fs::create_dir(&node).unwrap();
    let untar =
        Invocation::new("tar").args(["-xf".as_ref(), file.as_os_str(), "-C".as_ref(), node.as_os_str()]);
    assert!(untar.inherit_env("PATH").run().unwrap().status.success());
    let there = |path: &Path| node.join(path.strip_prefix("/").unwrap());
    assert_eq!(
        fs::read(there(&built.site.join("six.py"))).unwrap(),
        fs::read(built.site.join("six.py")).unwrap()
    );
    if !built.base_prefix.starts_with("/usr") {
        assert!(there(&built.python.canonicalize().unwrap()).is_file());
    }
    let refused =
        store.export(&stored, &root.path().join("no/such/folder/tiny.tar")).unwrap_err().to_string();
    assert!(refused.contains("no/such/folder/tiny.tar: ") && refused.contains("No such file"), "{refused}");
}
