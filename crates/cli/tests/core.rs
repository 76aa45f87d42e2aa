//! The core pack for real: torch, gloo, two and four ranks. Its environment is built once for this checkout.

use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_model::Acceptance;
use infradev_store::{NoHistory, Trees, last_acceptance, load_pack};
use infradev_supervise::{Exit, Invocation};
use infradev_synthesize::funnel::Mutations;
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs the program on the core pack; gives its document.
fn infradev(args: &[&str]) -> Value {
    let mut invocation = Invocation::new(env!("CARGO_BIN_EXE_infradev")).cwd(repository()).args(args);
    let ours = |name: &str| name.starts_with("INFRADEV") || name.starts_with("PYTHON");
    for (name, _) in std::env::vars().filter(|(name, _)| !ours(name)) {
        invocation = invocation.inherit_env(name);
    }
    let home = repository().join("target/core-home");
    let output = invocation.env("INFRADEV_HOME", home).deadline(Duration::from_secs(3000)).run().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status, Exit::Code(0 | 1)), "{:?}: {said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn weight_sync_is_accepted_at_two_ranks_and_every_wrong_patch_told_from_golden() {
    let document =
        infradev(&["accept", "packs/core/tasks/weight-sync", "--runs", "1", "--no-write", "--json"]);
    let record: Acceptance = serde_json::from_value(document["tasks"][0].clone()).unwrap();
    assert!(record.accepted, "{:?}", record.reasons);
    assert!(record.adversarial.len() >= 2);
    assert!(record.rejected.values().all(|rejected| *rejected == Some(true)), "{:?}", record.rejected);
    assert!(record.fools_official.values().all(|fools| *fools), "{:?}", record.fools_official);
    assert_eq!((record.sandbox.kind.as_str(), record.sandbox.uid_separation), ("namespaces", true));
}

#[test]
fn bytes_that_each_of_four_ranks_receives_tell_golden_from_padding() {
    let tried = |patch: &str| {
        let case = "a_rank_receives_only_its_own_tokens[world=4]";
        let task = "packs/core/tasks/expert-dispatch";
        infradev(&["probe", "try", task, case, "--patch", patch, "--world", "4", "--json"])
    };
    assert_eq!(tried("golden")["passed"], true);
    let padded = tried("pad-to-longest");
    let rejection = &padded["judgement"]["rejection"];
    assert_eq!((&padded["passed"], rejection), (&Value::from(false), &Value::from("substantive")));
}

#[test]
fn each_core_task_has_an_acceptance_record_that_fits_it() {
    let home = tempfile::tempdir().unwrap();
    let pack = load_pack(&repository().join("packs/core"), &NoHistory).unwrap();
    assert!(pack.tasks.len() >= 3);
    let tree =
        Trees::new(home.path().join("trees")).of_folder(&repository().join("packs/core/repo")).unwrap();
    for loaded in &pack.tasks {
        let id = loaded.task.id();
        let record =
            last_acceptance(&loaded.task).unwrap().unwrap_or_else(|| panic!("{id} has no acceptance.json"));
        assert!(record.accepted, "{id}: {:?}", record.reasons);
        assert_eq!(
            record.suites,
            loaded.task.suites_digest(),
            "{id}: `infradev accept packs/core/tasks/{id}` is due"
        );
        assert_eq!(record.tree, tree.digest, "{id}: `infradev accept packs/core/tasks/{id}` is due");
    }
}

#[test]
fn each_mutant_that_a_core_task_lists_as_equivalent_is_one_mutant_of_its_golden() {
    let home = tempfile::tempdir().unwrap();
    let pack = load_pack(&repository().join("packs/core"), &NoHistory).unwrap();
    let tree =
        Trees::new(home.path().join("trees")).of_folder(&repository().join("packs/core/repo")).unwrap();
    for loaded in &pack.tasks {
        let mutations = Mutations::of(&loaded.task, &tree.path).unwrap_or_else(|error| panic!("{error}"));
        assert!(mutations.mutants.len() > 90, "{}: {}", loaded.task.id(), mutations.mutants.len());
        assert_eq!(mutations.listed.len(), loaded.task.equivalent.len(), "{}", loaded.task.id());
    }
}
