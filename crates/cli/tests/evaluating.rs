//! `infradev eval`: attempts and their grades as one command.

mod ground;

use ground::Ground;
use serde_json::json;

const PROGRAM: &str = "
import os, sys
skilled = 'Multiply the number by three.' in sys.stdin.read()
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return %s * x\\n' % (3 if skilled else 4))
";

const ARGS: [&str; 12] = [
    "eval",
    "pack",
    "--agent",
    "command",
    "--command",
    "python {agent}/mine.py",
    "--folder",
    "mine",
    "--skill",
    "none",
    "--skill",
    "triples",
];

fn prepared() -> Ground {
    let ground = Ground::new();
    ground.write("mine/mine.py", PROGRAM);
    ground.write(
        "triples/SKILL.md",
        "---\nname: triples\ndescription: How to triple.\n---\nMultiply the number by three.\n",
    );
    ground
}

#[test]
fn attempts_are_graded_and_each_arm_has_its_own_rate() {
    let ground = prepared();
    let document = ground.infradev(&[&ARGS[..], &["-k", "2", "--json"]].concat()).exits(0).json();
    let arms = document["arms"].as_array().unwrap();
    let of = |at: usize| {
        (arms[at]["arm"].as_str().unwrap(), arms[at]["resolved"].clone(), arms[at]["scored"].clone())
    };
    assert_eq!(of(0), ("command", json!(0), json!(2)));
    assert_eq!(of(1), ("command+skill=triples", json!(2), json!(2)));
    assert_eq!(arms[0]["usd"], 0.0, "no model, no cost");
    assert_eq!(document["grade"]["submissions"].as_array().unwrap().len(), 4);
    let run = document["attempt"]["run"].as_str().unwrap();
    assert!(ground.path().join(format!("home/runs/{run}/eval.json")).exists());
    let wanting = [&ARGS[..], &["--require", "resolved"]].concat();
    let told = ground.infradev(&wanting).exits(1).out;
    assert!(told.lines().any(|line| line.starts_with("command+skill=triples ")), "{told}");
}

#[test]
fn a_plan_of_an_evaluation_runs_nothing_and_golden_resolves() {
    let ground = prepared();
    let planned = ground.infradev(&[&ARGS[..], &["--plan", "--json"]].concat()).exits(0).json();
    assert_eq!(planned["attempts"], 2);
    assert!(!ground.path().join("home/runs").exists());
    ground.infradev(&["eval", "pack", "--agent", "golden", "--require", "resolved"]).exits(0);
}

#[test]
fn what_was_attempted_is_not_attempted_again_where_grading_stopped() {
    let ground = prepared();
    // Attempts know nothing of golden; one that passes nothing that base fails stops the grading.
    ground.edit("pack/tasks/triple/golden.patch", "def triple(x):", "def thrice(x):");
    let stopped = ground.infradev(&ARGS).exits(4);
    assert!(stopped.out.is_empty() && stopped.err.contains("error:"), "{}", stopped.err);
    let attempts = || {
        let listed =
            ground.tool("sh", &["-c", "ls -d --time-style=full-iso -l home/runs/attempt-*/trials/*"]);
        listed.exits(0).out
    };
    let before = attempts();
    ground.edit("pack/tasks/triple/golden.patch", "def thrice(x):", "def triple(x):");
    let again = ground.infradev(&[&ARGS[..], &["--json"]].concat()).exits(0);
    assert_eq!(again.json()["arms"][1]["resolved"], 1);
    assert!(again.err.contains("resuming run attempt-"), "{}", again.err);
    assert_eq!(attempts(), before, "two attempts, made once");
}
