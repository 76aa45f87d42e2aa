//! Two commands at once on one store: both end right.

mod ground;
mod harm;

use std::fs;

use ground::Ground;
use harm::{Running, assert_nothing_left, no_process_of};

const ACCEPT: [&str; 5] = ["accept", "pack", "--runs", "1", "--json"];
const GRADE: [&str; 5] = ["grade", "pack", "--patches", "golden", "--json"];

fn runs(ground: &Ground) -> usize {
    let entries = fs::read_dir(ground.path().join("home/runs")).unwrap().flatten();
    entries.filter(|entry| entry.path().join("finished.json").is_file()).count()
}

#[tokio::test]
async fn two_acceptances_at_once_end_in_the_same_record() {
    let ground = Ground::new();
    let here = ground.path();
    let (one, other) = (Running::start(here, &ACCEPT, &[]), Running::start(here, &ACCEPT, &[]));
    let pids = [one.pid(), other.pid()];
    let (one, other) = tokio::join!(one.end(), other.end());
    let (one, other) = (one.exits(0).json(), other.exits(0).json());
    assert_eq!(one["tasks"], other["tasks"]);
    assert_ne!(one["run"], other["run"]);
    let record: serde_json::Value =
        serde_json::from_str(&ground.read("pack/tasks/triple/acceptance.json")).unwrap();
    assert_eq!(record, one["tasks"][0]);
    assert_eq!(runs(&ground), 2);
    no_process_of(here).await;
    assert_nothing_left(here, &pids);
}

#[tokio::test]
async fn an_acceptance_and_two_gradings_at_once_end_as_each_would_alone() {
    let ground = Ground::new();
    let here = ground.path();
    let started = [ACCEPT, GRADE, GRADE].map(|args| Running::start(here, &args, &[]));
    let pids = started.each_ref().map(Running::pid);
    let [accepting, grading, again] = started;
    let (accepted, graded, again) = tokio::join!(accepting.end(), grading.end(), again.end());
    assert_eq!(accepted.exits(0).json()["tasks"][0]["accepted"], true);
    for graded in [graded, again] {
        let document = graded.exits(0).json();
        assert_eq!(document["submissions"][0]["verdict"], "resolved", "{document:#}");
    }
    assert_eq!(runs(&ground), 3);
    no_process_of(here).await;
    assert_nothing_left(here, &pids);
}
