//! `infradev attempt` with agents that are patches of the task's own.

mod ground;

use ground::Ground;
use serde_json::Value;

/// An attempt by a mutant, graded.
fn graded(ground: &Ground, agent: &str) -> Value {
    let document = ground.infradev(&["attempt", "pack", "--agent", agent, "--json"]).exits(0).json();
    assert_eq!(document["submissions"][0]["submission"], agent);
    let predictions = document["predictions"].as_str().unwrap();
    let predictions = predictions.replace("HERE", ground.path().to_str().unwrap());
    let graded = ground.infradev(&["grade", "pack", "--patches", &predictions, "--json"]).exits(0).json();
    graded["submissions"][0].clone()
}

#[test]
fn an_adversarial_patch_and_a_mutant_of_golden_attempt_by_their_names() {
    let ground = Ground::new();
    let adversarial = graded(&ground, "mutant:large-numbers");
    assert_eq!(adversarial["verdict"], "unresolved");
    assert_eq!(adversarial["suites"]["official"]["passed"], adversarial["suites"]["official"]["of"]);
    let mutant = graded(&ground, "mutant:swap-constant-model-6");
    assert_eq!(mutant["verdict"], "unresolved");
}

#[test]
fn a_mutant_that_is_not_there_or_is_several_is_refused_with_the_names_that_would_do() {
    let ground = Ground::new();
    let refused = |agent: &str, more: &[&str], code: i32| {
        let args = [&["attempt", "pack", "--agent", agent][..], more].concat();
        ground.infradev(&args).exits(code).err
    };
    let mut said = refused("mutant:large-numbrs", &[], 2)
        + &refused("mutant:nothing", &[], 2)
        + &refused("golden", &["--model", "m"], 2);
    ground.edit("pack/tasks/triple/golden.patch", "return 3 * x", "return 2 * x + 1 * x");
    said += &refused("mutant:swap-constant-model-6", &[], 4);
    insta::assert_snapshot!(said);
    assert!(!ground.path().join("home/runs").exists(), "no run was begun");
}
