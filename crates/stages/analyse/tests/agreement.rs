//! What rules say of failing cases beside what a reader said: `fixtures/labels`. Whole runs are made of its facts and analysed, so that
//! what is held against the reader is what a report says.

#![allow(clippy::disallowed_macros, reason = "prints how far rules and reader agree, and where not")]

mod ground;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ground::Store;
use infradev_analyse::{Settings, statistics::kappa};
use infradev_model::{Analysis, Digest, Label};
use infradev_patch::{Change, Patch};
use serde::Deserialize;
use serde_json::{Value, json};

/// A failing case as a trial recorded it, with what a reader said.
#[derive(Deserialize)]
struct Fact {
    task: String,
    submission: String,
    suite: String,
    case: String,
    world: u32,
    word: String,
    fail_to_pass: bool,
    vector: Value,
    #[serde(default)]
    judgement: Option<Value>,
    /// The line of the official test where it stopped.
    #[serde(default)]
    line: Option<String>,
    label: Option<Label>,
    why: String,
    /// `second` of those that were labelled and held against the rules after the last change of a rule.
    #[serde(default)]
    set: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn facts() -> Vec<Fact> {
    let text = std::fs::read_to_string(root().join("fixtures/labels/cases.jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("{\"canary\""));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The official tests of a task of core, by path.
fn official(task: &str) -> BTreeMap<String, String> {
    let core = root().join("packs/core");
    let patch = std::fs::read(core.join("tasks").join(task).join("official.patch")).unwrap();
    let patch = Patch::parse(&patch).unwrap();
    let mut texts = BTreeMap::new();
    for file in patch.files.iter().filter(|file| file.change == Change::Create) {
        let lines = file.hunks().iter().flat_map(|hunk| &hunk.lines);
        let text: Vec<u8> = lines.flat_map(|line| line.body.clone()).collect();
        texts.insert(String::from_utf8(file.new_path.clone()).unwrap(), String::from_utf8(text).unwrap());
    }
    for entry in std::fs::read_dir(core.join("repo/tests")).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("tests/{}", path.file_name().unwrap().to_str().unwrap());
        if name.ends_with(".py") {
            texts.entry(name).or_insert_with(|| std::fs::read_to_string(&path).unwrap());
        }
    }
    texts
}

/// A run in which these cases failed.
fn analysed(facts: &[Fact]) -> Analysis {
    let store = Store::new();
    let run = store.begin("grade");
    let mut grades: BTreeMap<(&str, &str), Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        grades.entry((&fact.task, &fact.submission)).or_default().push(fact);
    }
    let mut shown = Vec::new();
    for ((task, submission), mine) in grades {
        let worlds: BTreeSet<u32> = mine.iter().map(|fact| fact.world).collect();
        let key = |world: u32| Digest::of(format!("{task} {submission} {world}").as_bytes());
        for world in &worlds {
            let of = mine.iter().filter(|fact| fact.world == *world);
            let cases: Vec<Value> = of
                .map(|fact| {
                    json!({"suite": fact.suite, "id": fact.case, "vector": fact.vector, "duration_s": 0.1, "launch": 0,
                        "judgement": fact.judgement})
                })
                .collect();
            let record = json!({"schema": 1, "inputs": {"world": world}, "cases": cases});
            run.stage(&key(*world)).unwrap().finish(&record).unwrap();
        }
        let failing: Vec<Value> = mine
            .iter()
            .map(|fact| {
                json!({"suite": fact.suite, "id": fact.case, "world": fact.world, "word": fact.word, "vector": fact.vector,
                    "fail_to_pass": fact.fail_to_pass})
            })
            .collect();
        let none = json!({"passed": 0, "of": 0});
        shown.push(json!({
            "task": task, "submission": submission, "verdict": "unresolved", "passed": 0, "of": 100,
            "suites": {"official": {"passed": 0, "of": 50}, "probe": {"passed": 0, "of": 50}},
            "fail_to_pass": none, "pass_to_pass": none, "wall_s": 1.0, "fault": null, "reasons": [], "failing": failing,
            "tampering": [], "trials": worlds.iter().map(|world| key(*world)).collect::<Vec<_>>(),
            "sandbox": {"kind": "namespaces", "uid_separation": true, "memory_limit": "", "network": "isolated"},
        }));
    }
    let tasks: BTreeSet<&str> = facts.iter().map(|fact| fact.task.as_str()).collect();
    for task in tasks {
        let texts =
            json!({"schema": 1, "task": task, "roots": ["tests"], "golden": "", "official": official(task)});
        run.write_document(&format!("sealed/{task}.json"), &texts).unwrap();
    }
    run.write_document("grade.json", &json!({"schema": 1, "run": run.id(), "submissions": shown})).unwrap();
    let id = run.id().to_owned();
    run.finish().unwrap();
    store.analysis(&[&id], Settings { sealed: true, ..Settings::default() }).unwrap()
}

#[test]
fn the_lines_of_official_tests_are_those_that_a_reader_saw() {
    let mut texts: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for fact in facts() {
        let Some(seen) = &fact.line else { continue };
        let text = texts.entry(fact.task.clone()).or_insert_with(|| official(&fact.task));
        let entries = fact.vector.as_array().unwrap().iter().map(|entry| &entry["detail"]);
        let lines: Vec<&str> = entries
            .filter_map(|detail| {
                let line = usize::try_from(detail["line"].as_u64()?).ok()?;
                text.get(detail["file"].as_str()?)?.lines().nth(line - 1)
            })
            .map(str::trim)
            .collect();
        assert!(
            lines.contains(&seen.as_str()),
            "core's tests are others than those that were read; label fixtures/labels anew: {} {} {lines:?}",
            fact.task,
            fact.case
        );
    }
}

fn same(pairs: &[(Option<Label>, Option<Label>)]) -> usize {
    pairs.iter().filter(|(rule, reader)| rule == reader).count()
}

#[test]
fn rules_agree_with_a_reader_beyond_chance_by_four_fifths() {
    let facts = facts();
    assert!(facts.iter().all(|fact| !fact.why.is_empty()));
    let analysis = analysed(&facts);
    let mut pairs: Vec<(Option<Label>, Option<Label>)> = Vec::new();
    let mut second: Vec<(Option<Label>, Option<Label>)> = Vec::new();
    for fact in &facts {
        let case = analysis.cases.iter().find(|case| {
            (&case.task, &case.submission, &case.case, case.world)
                == (&fact.task, &fact.submission, &fact.case, fact.world)
        });
        let ruled = &case.unwrap().label;
        pairs.push((ruled.label, fact.label));
        if fact.set == "second" {
            second.push((ruled.label, fact.label));
        }
        if ruled.label != fact.label {
            let word = |label: Option<Label>| label.map_or("none", Label::word);
            println!(
                "read as {}, ruled {} by {} ({}): {} {} {}",
                word(fact.label),
                word(ruled.label),
                ruled.rule,
                ruled.evidence,
                fact.task,
                fact.submission,
                fact.case
            );
        }
    }
    let class = |label: &Option<Label>| label.map(|label| label.class().word());
    let classes: Vec<_> = pairs.iter().map(|(rule, reader)| (class(rule), class(reader))).collect();
    let found = kappa(&pairs).unwrap();
    println!("labels: kappa {found:.3}, {} of {} the same", same(&pairs), pairs.len());
    println!("classes alone: kappa {:.3}", kappa(&classes).unwrap());
    let of_second = kappa(&second).unwrap();
    println!(
        "labelled after the last rule: kappa {of_second:.3}, {} of {} the same",
        same(&second),
        second.len()
    );
    assert!(pairs.len() >= 150, "{} cases", pairs.len());
    assert!(found >= 0.8, "kappa {found:.3}");
}
