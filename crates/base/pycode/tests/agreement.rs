//! What rules say of assertions beside what a reader said: `fixtures/assertions`.

#![allow(clippy::disallowed_macros, reason = "prints how far rules and reader agree, and where not")]

#[path = "assertions/agreement.rs"]
mod agreement;

use std::fs;
use std::path::{Path, PathBuf};

use agreement::{Agreement, Pair};
use infradev_model::Property;
use infradev_pycode::assertions::{assertions, property_at};
use infradev_supervise::{Exit, Invocation};
use serde::Deserialize;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/assertions")
}

/// The marks of a set's files: path, text, line, what the mark asks for.
fn marks(set: &str) -> Vec<(String, String, usize, String)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(fixtures().join(set)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut marks = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "py")) {
        let text = fs::read_to_string(file).unwrap();
        let name = format!("{set}/{}", file.file_name().unwrap().to_str().unwrap());
        for (at, line) in text.lines().enumerate() {
            if let Some((_, mark)) = line.split_once("  #").filter(|(_, mark)| mark.starts_with([':', '?'])) {
                marks.push((name.clone(), text.clone(), at + 1, mark.to_owned()));
            }
        }
    }
    marks
}

fn agreement(set: &str) -> Agreement {
    let mut pairs = Vec::new();
    for (name, text, line, mark) in marks(set) {
        let found = property_at(&name, &text, line).unwrap();
        let word = mark[1..].trim();
        if word == "absent" {
            assert_eq!(found, None, "{name}:{line} holds no assertion");
            continue;
        }
        let label = word.parse::<Property>().unwrap();
        if mark.starts_with(':') {
            let first = found.as_ref().map(|one| one.line);
            assert_eq!(first, Some(line), "{name}:{line}: an assertion begins there");
        }
        let evidence = found.as_ref().map(|one| one.evidence.clone()).unwrap_or_default();
        pairs.push(Pair {
            at: format!("{name}:{line} ({evidence})"),
            label,
            found: found.map(|one| one.property),
        });
    }
    Agreement(pairs)
}

#[test]
fn rules_agree_with_a_reader_on_snippets_that_they_were_and_were_not_made_with() {
    let (tuning, held_out) = (agreement("tuning"), agreement("held_out"));
    println!("{}{}{}", tuning.shown("tuning"), held_out.shown("held out"), held_out.by_label());
    assert!(tuning.0.len() >= 150 && held_out.0.len() >= 150);
    assert!(tuning.kappa() >= 0.8 && held_out.kappa() >= 0.8);
}

#[test]
fn every_assertion_of_the_snippets_is_marked_so_that_none_is_found_beside_them() {
    for set in ["tuning", "held_out"] {
        let marks = marks(set);
        for (name, text) in marks.iter().map(|(name, text, ..)| (name, text)) {
            for one in assertions(name, text).unwrap() {
                let marked = marks.iter().any(|(file, _, line, mark)| {
                    file == name && (one.line..=one.last_line).contains(line) && !mark.ends_with("absent")
                });
                assert!(marked, "{name}:{} `{}` has no mark", one.line, one.text);
            }
        }
    }
}

/// A fact of `upstream.jsonl`.
#[derive(Deserialize)]
struct Fact {
    repo: String,
    commit: String,
    path: String,
    line: usize,
    label: Property,
    set: String,
}

/// The clone of a repository, where a variable names it.
fn clone_of(repo: &str) -> Option<PathBuf> {
    let variable = match repo {
        "NVIDIA/Megatron-LM" => "INFRADEV_MEGATRON",
        "volcengine/verl" => "INFRADEV_VERL",
        "pytorch/torchtitan" => "INFRADEV_TORCHTITAN",
        _ => panic!("{repo} has no variable"),
    };
    std::env::var_os(variable).map(PathBuf::from)
}

fn git(clone: &Path, words: &[&str]) -> String {
    let output = Invocation::new("git").arg("-C").arg(clone).args(words).inherit_env("PATH").run().unwrap();
    assert_eq!(output.status, Exit::Code(0), "{}", output.stderr_text());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn rules_agree_with_a_reader_on_assertions_of_real_repositories_where_clones_are_at_hand() {
    let facts = fs::read_to_string(fixtures().join("upstream.jsonl")).unwrap();
    let facts: Vec<Fact> = facts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(facts.len() >= 150);
    let (mut tuning, mut held_out, mut second) =
        (Agreement::default(), Agreement::default(), Agreement::default());
    let mut missing = 0;
    for fact in facts {
        let Some(clone) = clone_of(&fact.repo) else {
            missing += 1;
            continue;
        };
        let text = git(&clone, &["show", &format!("{}:{}", fact.commit, fact.path)]);
        let found = property_at(&fact.path, &text, fact.line).unwrap();
        let evidence = found.as_ref().map(|one| one.evidence.clone()).unwrap_or_default();
        let pair = Pair {
            at: format!("{}:{} ({evidence})", fact.path, fact.line),
            label: fact.label,
            found: found.map(|one| one.property),
        };
        match fact.set.as_str() {
            "tuning" => tuning.0.push(pair),
            "held-out" => held_out.0.push(pair),
            "second" => second.0.push(pair),
            other => panic!("there is no set {other}"),
        }
    }
    if missing > 0 {
        println!(
            "upstream: {missing} labels not looked at; INFRADEV_MEGATRON, INFRADEV_VERL, INFRADEV_TORCHTITAN say where clones are"
        );
        return;
    }
    let sets = [
        ("upstream, tuning", &tuning),
        ("upstream, held out", &held_out),
        ("upstream, second draw", &second),
    ];
    for (name, set) in sets {
        println!("{}", set.shown(name));
        assert!(set.kappa() >= 0.8, "{name}");
    }
    let all = Agreement(held_out.0.into_iter().chain(second.0).collect());
    println!("{}{}", all.shown("upstream, both held out"), all.by_label());
}
