//! Builders of the tiny environment: in this process, or in a child that can be killed.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use infradev_pyenv::{Definition, Environment, Environments, Event, PASSED_TO_UV, PyenvError};
use infradev_supervise::{Invocation, Output};

/// Two small pure-Python packages.
pub const TINY: &str = include_str!("../tiny.lock");

/// Set for a child that builds into this folder.
pub const ROOT: &str = "INFRADEV_TEST_ENVIRONMENTS";

/// One cache for all tests, so that each wheel is downloaded once.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("uv-cache")
}

pub fn store(root: &Path) -> Environments {
    Environments::with_cache(root, Some(cache()))
}

pub fn lock_named(text: &str, path: &str, python: &str) -> Definition {
    Definition::Lock { lock: text.as_bytes().to_vec(), lock_path: path.into(), python: python.to_owned() }
}

pub fn tiny() -> Definition {
    lock_named(TINY, "envs/tiny.lock", "3.11")
}

/// Ensures in this process and returns the words of each event.
pub fn ensure(root: &Path, definition: &Definition) -> (Result<Environment, PyenvError>, Vec<&'static str>) {
    let events = Mutex::new(Vec::new());
    let result = store(root).ensure(definition, &|event: Event<'_>| {
        events.lock().unwrap().push(match event {
            Event::Waiting { .. } => "waiting",
            Event::Building { .. } => "building",
            Event::Copying { .. } => "copying",
            Event::Built { .. } => "built",
            Event::Swept { .. } => "swept",
        });
    });
    (result, events.into_inner().unwrap())
}

/// This test binary as a child that runs only the test `name`, with `root` to build into.
pub fn child(name: &str, root: &Path) -> Invocation {
    let mut child = Invocation::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .deadline(Duration::from_secs(60));
    for variable in PASSED_TO_UV {
        child = child.inherit_env(variable);
    }
    child.env(ROOT, root)
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Names below a folder, sorted, but for the lock files and the cache.
pub fn left_in(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != ".locks" && name != ".interpreters" && name != ".uses")
        .collect();
    names.sort();
    names
}
