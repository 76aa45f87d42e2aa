//! `infradev attempt` as a matrix: arms by tasks by attempts, planned, made, resumed, made again.

mod ground;

use ground::Ground;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: triples\ndescription: How to triple.\n---\nMultiply the number by three.\n";

/// What an agent of ours does: it keeps its prompt, and changes the tree.
const PROGRAM: &str = "
import sys
prompt = sys.stdin.read()
open('/out/prompt', 'w').write(prompt)
skilled = 'Multiply the number by three.' in prompt
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return %s * x\\n' % (3 if skilled else 4))
";

const MATRIX: [&str; 14] = [
    "attempt",
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
    "--prompt",
    "synthesised",
];

fn prepared() -> Ground {
    let ground = Ground::new();
    ground.write("mine/mine.py", PROGRAM);
    ground.write("triples/SKILL.md", SKILL);
    ground.write("pack/tasks/triple/description.md", "Adds triple, as it was asked for on the list.\n");
    ground
}

fn said(ground: &Ground, more: &[&str], code: i32) -> Value {
    ground.infradev(&[&MATRIX[..], &["--json"], more].concat()).exits(code).json()
}

fn column<'a>(document: &'a Value, name: &str) -> Vec<&'a Value> {
    document["submissions"].as_array().unwrap().iter().map(|record| &record[name]).collect()
}

#[test]
fn each_arm_attempts_each_task_and_grading_tells_them_apart() {
    let ground = prepared();
    let more = ["--prompt", "pr-description", "-k", "2", "--jobs", "2"];
    let document = said(&ground, &more, 0);
    let names: Vec<&str> =
        column(&document, "submission").iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "command#1",
            "command#2",
            "command+skill=triples#1",
            "command+skill=triples#2",
            "command+prompt=pr-description#1",
            "command+prompt=pr-description#2",
            "command+prompt=pr-description+skill=triples#1",
            "command+prompt=pr-description+skill=triples#2",
        ]
    );
    let arms = column(&document, "arm");
    assert_eq!(arms[..4], [&json!("synthesised"); 4]);
    assert_eq!(arms[4..], [&json!("pr-description"); 4]);
    let run = document["run"].as_str().unwrap();
    for record in document["submissions"].as_array().unwrap() {
        let folder = record["folder"].as_str().unwrap();
        let prompt = ground.read(&format!("home/runs/{run}/{folder}/out/prompt"));
        let described = prompt.contains("as it was asked for on the list");
        assert_eq!(described, record["arm"] == "pr-description", "{prompt}");
    }
    let predictions = document["predictions"].as_str().unwrap();
    let predictions = predictions.replace("HERE", ground.path().to_str().unwrap());
    let graded = ground.infradev(&["grade", "pack", "--patches", &predictions, "--json"]).exits(0).json();
    for grade in graded["submissions"].as_array().unwrap() {
        let skilled = grade["submission"].as_str().unwrap().contains("skill=triples");
        assert_eq!(grade["verdict"], if skilled { "resolved" } else { "unresolved" }, "{grade:#}");
    }
    assert_eq!(graded["submissions"].as_array().unwrap().len(), 8);
}

#[test]
fn a_plan_says_what_is_left_and_what_it_may_cost_and_runs_nothing() {
    let ground = prepared();
    ground.edit("pack/tasks/triple/task.toml", "worlds = [1]", "worlds = [1]\ngpus = 2");
    let more = ["--plan", "-k", "3", "--timeout", "1800", "--token-budget", "1000"];
    let told = ground.infradev(&[&MATRIX[..], &more].concat()).exits(0);
    insta::assert_snapshot!(told.out);
    let document = said(&ground, &more, 0);
    assert_eq!((&document["attempts"], &document["hours"]), (&json!(6), &json!(3.0)));
    assert_eq!(document["gpu_hours"], 6.0);
    assert!(!ground.path().join("home/runs").exists(), "no run was begun");
    // One that needs a model asks for no key, installs nothing, and knows nothing of its tokens but the budget.
    let codex = ["attempt", "pack", "--agent", "codex", "--model", "a", "--model", "b", "--plan"];
    let unknown = ground.infradev(&codex).exits(0).out;
    insta::assert_snapshot!(unknown);
    let bounded = [&codex[..], &["--token-budget", "5000", "--json"]].concat();
    let bounded = ground.infradev(&bounded).exits(0).json();
    assert_eq!(bounded["tokens_at_most"], 10_000);
    assert_eq!(bounded.get("tokens_likely"), None, "unknown, not 0");
    let most = u64::MAX.to_string();
    let boundless = [&codex[..], &["-k", "3", "--token-budget", &most, "--json"]].concat();
    assert_eq!(ground.infradev(&boundless).exits(0).json()["tokens_at_most"], u64::MAX);
    assert!(!ground.path().join("home/agents").exists(), "nothing was installed");
    let huge = ["--token-budget", "18446744073709551615", "-k", "3", "--json"];
    let huge = ground.infradev(&[&codex[..], &huge].concat()).exits(0).json();
    assert_eq!(huge["tokens_at_most"], u64::MAX, "as many as a count holds");
}

#[test]
fn what_ended_so_is_made_again_by_retry_and_all_else_stays() {
    let ground = prepared();
    // Without a skill it fails until a file is there that is no part of what the agent is.
    let program = PROGRAM.to_owned()
        + "import os\nready = os.path.exists(os.path.dirname(__file__) + '/.git/ready')\n"
        + "raise SystemExit(0 if skilled or ready else 7)\n";
    ground.write("mine/mine.py", &program);
    let first = said(&ground, &[], 0);
    assert_eq!(column(&first, "ending"), ["agent_crashed", "finished"]);
    ground.write("mine/.git/ready", "");
    let planned = said(&ground, &["--retry", "agent_crashed", "--plan"], 0);
    assert_eq!(
        (&planned["run"], &planned["attempts"]),
        (&first["run"], &json!(1)),
        "what a retry would make"
    );
    let done: Vec<&Value> = planned["planned"].as_array().unwrap().iter().map(|row| &row["done"]).collect();
    assert_eq!(done, [0, 1]);
    assert_eq!(said(&ground, &["--retry", "timed_out", "--plan"], 0)["attempts"], 0);
    let again = said(&ground, &["--retry", "agent_crashed", "--retry", "fault"], 0);
    assert_eq!(again["run"], first["run"], "the same run, though it was finished");
    assert_eq!(column(&again, "ending"), ["finished", "finished"]);
    assert_eq!(column(&again, "tries"), [2, 1]);
    assert_eq!(again["submissions"][1], first["submissions"][1], "what ended well is not made again");
    let shown = ground.infradev(&["run", "show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["state"], "finished");
}

#[test]
fn arms_that_are_not_apart_and_a_retry_of_nothing_are_refused() {
    let ground = prepared();
    ground.write("other/SKILL.md", &SKILL.replace("three", "four"));
    let refused = |more: &[&str]| ground.infradev(&[&MATRIX[..], more].concat()).exits(2).err;
    insta::assert_snapshot!(
        refused(&["--skill", "other"])
            + &refused(&["--skill", "none"])
            + &refused(&["--retry", "timed_out"])
            + &refused(&["--retry", "timed_out", "--plan"])
            + &ground.infradev(&["attempt", "pack", "--agent", "nop", "--plan"]).exits(2).err
    );
}
