//! `infradev env`, on a store of its own: the one that other tests use stays as it is.

mod ground;
mod harm;

use std::fs;

use ground::{Ground, repository};
use harm::Running;

const LOCK: &str = "crates/base/pyenv/tests/tiny.lock";

/// A machine whose store is empty, with its lock beside it.
fn empty() -> Ground {
    let ground = Ground::new();
    fs::copy(repository().join(LOCK), ground.path().join("tiny.lock")).unwrap();
    ground
}

const STORE: [&str; 2] = ["--home", "own"];

fn env(ground: &Ground, args: &[&str], code: i32) -> ground::Said {
    ground.infradev(&[&STORE[..], &["env"], args].concat()).exits(code)
}

#[test]
fn an_environment_is_built_listed_shown_measured_verified_exported_and_removed() {
    let ground = empty();
    assert!(env(&ground, &["list"], 0).out.starts_with("no environment lies in "));
    let key = env(&ground, &["build", "tiny.lock", "--python", "3.11"], 0).out.trim().to_owned();
    let again = env(&ground, &["build", "tiny.lock", "--python", "3.11", "--json"], 0);
    assert_eq!(again.json()["environments"][0]["key"], key.as_str());
    assert!(!again.err.contains("building"), "{}", again.err);
    let short = &key[..12];
    let python = env(&ground, &["list", "--json"], 0).json()["environments"][0]["python"].clone();
    let python = python.as_str().unwrap();
    let plain = |said: ground::Said| {
        let said = said
            .out
            .replace(&key, "<key>")
            .replace(&key[..32], "<name>")
            .replace(short, "<short>")
            .replace(python, "<python>");
        let number =
            |word: &str| if word.parse::<f64>().is_ok() { "<n>".to_owned() } else { word.to_owned() };
        let shown = said.lines().map(|line| {
            match [" MiB", "<short> ", "key "].iter().any(|word| line.contains(word)) {
                true => line.split_whitespace().map(number).collect::<Vec<_>>().join(" "),
                false => line.to_owned(),
            }
        });
        shown.collect::<Vec<_>>().join("\n")
    };
    let told = [
        ("list", plain(env(&ground, &["list"], 0))),
        ("show", plain(env(&ground, &["show", short], 0))),
        ("du", plain(env(&ground, &["du"], 0))),
        ("verify", plain(env(&ground, &["verify"], 0)).replace(|c: char| c.is_ascii_digit(), "")),
        ("gc --dry-run", plain(env(&ground, &["gc", short, "--dry-run"], 0))),
    ];
    let told: Vec<String> =
        told.iter().map(|(what, said)| format!("$ infradev env {what}\n{said}\n")).collect();
    insta::assert_snapshot!(told.join("\n"));
    let exported = env(&ground, &["export", short, "--to", "tiny.tar", "--json"], 0).json();
    assert_eq!(exported["bytes"], fs::metadata(ground.path().join("tiny.tar")).unwrap().len());
    assert_eq!(env(&ground, &["gc", "--json"], 0).json()["removed"].as_array().unwrap().len(), 0);
    let removed = env(&ground, &["gc", short, "--json"], 0).json();
    assert_eq!((&removed["removed"][0]["key"], &removed["kept"]), (&key.into(), &0.into()));
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do_instead() {
    let ground = empty();
    for (args, code, what, hint) in [
        (&["build", "tiny.lock"][..], 2, "a lock alone does not say for which Python", "--python 3.12"),
        (&["build", "no/such/pack"], 4, "no/such/pack", ""),
        (&["build", "tiny.lock", "--python", "three"], 4, "`three` is no Python version", "\"3.11\""),
        (&["show", "3f2a"], 4, "no environment has a key that begins with `3f2a`; the store has none", ""),
        (&["gc", "--unused-for", "long"], 2, "such as 30d or 12h", ""),
    ] {
        let said = env(&ground, args, code);
        assert!(said.err.contains(what) && said.err.contains(hint), "{args:?}: {}", said.err);
    }
}

#[test]
fn a_damaged_environment_is_found_and_exits_one() {
    let ground = empty();
    env(&ground, &["build", "tiny.lock", "--python", "3.11"], 0);
    let listed = env(&ground, &["list", "--json"], 0).json();
    let key = listed["environments"][0]["key"].as_str().unwrap();
    let folder = ground.path().join("own/envs").join(&key[..32]);
    // The file is the cache's own and shared with others: this environment gets another under its name.
    let six = folder.join("lib/python3.11/site-packages/six.py");
    fs::remove_file(&six).unwrap();
    fs::write(&six, "x = 1\n").unwrap();
    let said = env(&ground, &["verify"], 1);
    assert!(said.out.contains("  differs lib/python3.11/site-packages/six.py\n"), "{}", said.out);
    assert!(said.out.contains("`infradev env gc KEY` removes one"), "{}", said.out);
}

#[tokio::test(flavor = "current_thread")]
async fn an_environment_that_a_grading_uses_is_not_removed_under_it() {
    let ground = Ground::new();
    let mut running = Running::start(ground.path(), &["grade", "pack", "--patches", "base"], &[]);
    assert!(running.says(|line| line.contains("cases passed (")).await);
    let listed = ground.infradev(&["env", "list", "--json"]).exits(0).json();
    let used: Vec<&serde_json::Value> =
        listed["environments"].as_array().unwrap().iter().filter(|stored| stored["in_use"] == true).collect();
    assert!(!used.is_empty(), "{listed:#}");
    running.end().await.exits(0);
}

#[test]
fn the_doctor_of_the_store_tells_what_is_whole_and_how_files_are_shared() {
    let ground = empty();
    let first = env(&ground, &["doctor"], 0).out;
    assert!(first.contains("0 environments whole") && first.contains("0 build layers whole"), "{first}");
    env(&ground, &["build", "tiny.lock", "--python", "3.11"], 0);
    let find = |document: &serde_json::Value, name: &str| {
        document["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap().clone()
    };
    let document = env(&ground, &["doctor", "--json"], 0).json();
    assert_eq!(document["whole"], true);
    assert_eq!(find(&document, "environments")["detail"], "1 environment whole");
    let key = env(&ground, &["list", "--json"], 0).json()["environments"][0]["key"].clone();
    let folder = ground.path().join("own/envs").join(&key.as_str().unwrap()[..32]);
    fs::remove_file(folder.join("bin/python")).unwrap();
    fs::create_dir_all(ground.path().join("own/builds/layers/0123456789abcdef")).unwrap();
    let said = env(&ground, &["doctor"], 1).out;
    for (name, what) in [
        ("environments", "0 environments whole; "),
        ("environments", ": its interpreter is gone"),
        ("build layers", "0 build layers whole; 0123456789ab: no infradev-layer.json that can be read"),
        ("half done", "nothing"),
        ("", "Something in the store is not as it should be."),
    ] {
        assert!(
            said.lines().any(|line| line.contains(name) && line.contains(what)),
            "{name}, {what}: {said}"
        );
    }
}

#[test]
fn where_files_cannot_be_linked_it_is_said_that_they_are_copied() {
    let ground = empty();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let cache = elsewhere.path().join("cache").display().to_string();
    let with_cache = |args: &[&str]| {
        let args = [&STORE[..], &["env"], args].concat();
        ground.tool_with(&[("UV_CACHE_DIR", &cache)], env!("CARGO_BIN_EXE_infradev"), &args).exits(0)
    };
    let said = with_cache(&["build", "tiny.lock", "--python", "3.11"]);
    let copied =
        format!("no hard links from {cache} into HERE/own/envs: environments get copies of their files");
    assert_eq!(said.err.matches(&copied).count(), 1, "{}", said.err);
    let said = with_cache(&["doctor"]);
    assert!(said.out.contains("limited  hard links"), "{}", said.out);

    let ground = Ground::new();
    std::os::unix::fs::symlink(elsewhere.path(), ground.path().join("home/runs")).unwrap();
    let said = ground.infradev(&["grade", "pack", "--patches", "golden"]).exits(0);
    let copied = "neither reflinks nor hard links from HERE/home/builds/trees into HERE/home/runs: each trial gets a copy of its tree";
    assert_eq!(said.err.matches(copied).count(), 1, "{}", said.err);
}
