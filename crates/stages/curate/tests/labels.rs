//! What is read of real histories, against labels that people gave: `fixtures/curation/labels.jsonl`. Runs for each repository
//! of which `INFRADEV_MEGATRON` or `INFRADEV_VERL` names a clone, and prints precision and recall.

#![allow(clippy::disallowed_macros, reason = "says what it counted")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use infradev_curate::{Filter, Request, curate};
use infradev_git::Repo;
use infradev_model::{Candidate, CurationDocument, LeftOutBecause};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    repo: String,
    commit: String,
    area: Option<String>,
    kind: Option<String>,
    /// The most ranks that a test of the change asks for by its own text; 1 where any number will do.
    world: Option<u32>,
    /// `standing`, `reverted` or `revert`.
    state: String,
}

/// Labels and answers of one question.
#[derive(Default)]
struct Asked {
    pairs: Vec<(String, String, String)>,
}

impl Asked {
    fn add(&mut self, label: &str, answer: &str, commit: &str) {
        self.pairs.push((label.to_owned(), answer.to_owned(), commit.to_owned()));
    }

    fn tell(&self, name: &str) {
        let right = self.pairs.iter().filter(|(label, answer, _)| label == answer).count();
        println!("{name}: {right} of {} right", self.pairs.len());
        let mut classes: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
        for (label, answer, _) in &self.pairs {
            let hit = usize::from(label == answer);
            classes.entry(label).or_default().0 += hit;
            classes.entry(label).or_default().1 += 1;
            classes.entry(answer).or_default().2 += 1;
        }
        for (class, (hits, labelled, answered)) in classes {
            let share =
                |of: usize| if of == 0 { "-".into() } else { format!("{:.2}", hits as f64 / of as f64) };
            println!(
                "  {class}: precision {} of {answered}, recall {} of {labelled}",
                share(answered),
                share(labelled)
            );
        }
        for (label, answer, commit) in self.pairs.iter().filter(|(label, answer, _)| label != answer) {
            println!("  {}: {answer}, labelled {label}", &commit[..12]);
        }
    }
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

fn read(clone: &Path, kept: &Path) -> CurationDocument {
    let repo = Repo::open(clone).unwrap();
    let request = Request { revisions: vec!["HEAD".into()], filter: Filter::default(), want: None };
    let run = || {
        let begun = Instant::now();
        let document = curate(&repo, kept, &request, &|_, _| ()).unwrap();
        (document, begun.elapsed().as_secs_f64())
    };
    let (document, first) = run();
    let (again, second) = run();
    assert_eq!(document, again);
    println!(
        "{}: {} commits, {} numbers, {} candidates; {first:.1} s, again {second:.2} s\n  left out {:?}",
        clone.display(),
        document.commits,
        document.numbers,
        document.candidates.len(),
        document.left_out
    );
    document
}

#[test]
fn real_histories_are_read_as_people_labelled_them() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/curation/labels.jsonl");
    let text = std::fs::read_to_string(place).unwrap();
    let labels: Vec<Label> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(labels.iter().filter(|label| label.kind.is_some()).count() >= 60);
    let (mut areas, mut kinds, mut worlds, mut states) =
        (Asked::default(), Asked::default(), Asked::default(), Asked::default());
    for (variable, name) in
        [("INFRADEV_MEGATRON", "NVIDIA/Megatron-LM"), ("INFRADEV_VERL", "volcengine/verl")]
    {
        let Some(clone) = std::env::var_os(variable).map(PathBuf::from) else { continue };
        let kept = std::env::temp_dir().join(format!("infradev-labels-{}", std::process::id()));
        let document = read(&clone, &kept);
        let _ = std::fs::remove_dir_all(&kept);
        let candidates: BTreeMap<&str, &Candidate> =
            document.candidates.iter().map(|candidate| (candidate.commit.as_str(), candidate)).collect();
        for label in labels.iter().filter(|label| label.repo == name) {
            let because = document.related.iter().find(|out| out.commit == label.commit);
            let state = match because.map(|out| out.because) {
                Some(LeftOutBecause::Reverted) => "reverted",
                Some(LeftOutBecause::Revert) => "revert",
                Some(_) => "duplicate",
                None => "standing",
            };
            states.add(&label.state, state, &label.commit);
            let Some(candidate) = candidates.get(label.commit.as_str()) else {
                if label.state == "standing" && label.kind.is_some() {
                    println!("  {} is no candidate", &label.commit[..12]);
                }
                continue;
            };
            let facts = &candidate.facts;
            if let Some(area) = &label.area {
                areas.add(area, &word(&facts.area.is), &label.commit);
            }
            if let Some(kind) = &label.kind {
                kinds.add(kind, &word(&facts.kind.is), &label.commit);
            }
            if let Some(world) = label.world {
                worlds.add(&world.to_string(), &facts.needs.world.to_string(), &label.commit);
            }
        }
    }
    for (name, asked) in
        [("area", areas), ("kind", kinds), ("ranks", worlds), ("reverts and repeats", states)]
    {
        if !asked.pairs.is_empty() {
            asked.tell(name);
        }
    }
}
