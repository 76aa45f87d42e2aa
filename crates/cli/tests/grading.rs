//! `infradev grade` on a small pack.

mod ground;

use ground::{GOLDEN, Ground};
use serde_json::{Value, json};

fn verdicts(document: &Value) -> Vec<(String, String, u64)> {
    let grades = document["submissions"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_string();
    grades.map(|g| (word(&g["submission"]), word(&g["verdict"]), g["passed"].as_u64().unwrap())).collect()
}

#[test]
fn golden_is_resolved_base_and_hollow_are_not_and_an_adversarial_patch_fails_the_probes_alone() {
    let ground = Ground::new();
    let grade =
        |patches: &str| ground.infradev(&["grade", "pack", "--patches", patches, "--json"]).exits(0).json();
    assert_eq!(verdicts(&grade("golden")), [("golden".into(), "resolved".into(), 4)]);
    assert_eq!(verdicts(&grade("base")), [("base".into(), "unresolved".into(), 1)]);
    assert_eq!(verdicts(&grade("hollow")), [("hollow".into(), "unresolved".into(), 1)]);
    let adversarial = grade("adversarial");
    let grade = &adversarial["submissions"][0];
    assert_eq!(grade["submission"], "large-numbers");
    assert_eq!(grade["verdict"], "unresolved");
    assert_eq!(grade["suites"], json!({"official": {"passed": 2, "of": 2}, "probe": {"passed": 1, "of": 2}}));
    assert_eq!(grade["failing"][0]["id"], "probes/judge_model.py::any_number_is_tripled[world=1]");
    assert_eq!(adversarial["schema"], 1);
}

#[test]
fn predictions_in_swe_bench_fields_each_get_their_verdict_and_a_table() {
    let ground = Ground::new();
    let line = |name: &str, patch: Value| {
        json!({"instance_id": "triple", "model_name_or_path": name, "model_patch": patch}).to_string() + "\n"
    };
    let lines = [
        line("right", GOLDEN.into()),
        line("wrong", GOLDEN.replace("3 * x", "5 * x").into()),
        line("elsewhere", GOLDEN.replace("toy/model.py", "toy/other.py").into()),
        line("blank", "\n".into()),
        line("none", Value::Null),
    ];
    ground.write("predictions.jsonl", &lines.concat());
    let said = ground.infradev(&["grade", "pack", "--patches", "predictions.jsonl"]).exits(0);
    let columns: Vec<Vec<&str>> = said
        .out
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().skip(1).take(5).collect())
        .collect();
    assert_eq!(
        columns,
        [
            ["right", "resolved", "4/4", "2/2", "2/2"],
            ["wrong", "unresolved", "2/4", "1/2", "1/2"],
            ["elsewhere", "not_applied", "0/4", "0/2", "0/2"],
            ["blank", "empty", "0/4", "0/2", "0/2"],
            ["none", "empty", "0/4", "0/2", "0/2"],
        ],
        "{}",
        said.out
    );
    assert!(said.out.contains("AssertionError: assert 10 == 6"), "{}", said.out);
    assert!(said.out.contains("resolved 1 of 5"), "{}", said.out);
}

#[test]
fn a_submission_named_like_a_patch_of_the_tasks_own_is_told_from_it_and_a_long_name_is_cut_in_its_middle() {
    let ground = Ground::new();
    let line = |name: &str| {
        json!({"instance_id": "triple", "model_name_or_path": name, "model_patch": ""}).to_string() + "\n"
    };
    let long = format!("{}{}", "a".repeat(200), "z".repeat(200));
    // A mark of byte order, as some editors put it, is no part of the first line.
    ground.write("p.jsonl", &format!("\u{feff}{}{}", line("golden"), line(&long)));
    let said = ground.infradev(&["grade", "pack", "--patches", "p.jsonl", "--quiet"]).exits(0);
    let table: Vec<&str> = said.out.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table[1].starts_with("triple  golden (submitted)  "), "{}", said.out);
    let cut = format!("triple  {}…{}  empty ", "a".repeat(24), "z".repeat(23));
    assert!(table[2].starts_with(&cut), "{}", said.out);
    let run = ground.infradev(&["run", "show", "last", "--json"]).exits(0).json();
    assert_eq!(run["grade"]["submissions"][1]["submission"], long.as_str());
    ground.write("golden.patch", GOLDEN);
    let said = ground.infradev(&["grade", "pack", "--patches", "golden.patch", "--json"]).exits(0);
    assert_eq!(verdicts(&said.json()), [("golden (submitted)".into(), "resolved".into(), 4)]);
}

#[test]
fn the_store_may_be_named_by_a_path_that_goes_up() {
    let ground = Ground::new();
    let grade =
        "cd pack && \"$0\" grade . --patches golden --require resolved --quiet --home ../home/../home";
    ground.tool("bash", &["-c", grade, env!("CARGO_BIN_EXE_infradev")]).exits(0);
    assert!(ground.path().join("home/runs").is_dir());
}

#[test]
fn a_requirement_that_is_not_met_makes_the_exit_code_1() {
    let ground = Ground::new();
    ground.write("right.patch", GOLDEN);
    ground.write("wrong.patch", &GOLDEN.replace("3 * x", "5 * x"));
    let grade =
        |file| ground.infradev(&["grade", "pack", "--patches", file, "--require", "resolved", "--quiet"]);
    let right = grade("right.patch").exits(0);
    assert_eq!(right.err, "", "quiet says nothing");
    assert!(right.out.contains("right "), "{}", right.out);
    grade("wrong.patch").exits(1);
}

#[test]
fn without_a_sandbox_the_result_says_so() {
    let ground = Ground::new();
    let said = ground.infradev(&["grade", "pack", "--patches", "golden", "--sandbox", "none"]).exits(0);
    assert!(said.out.contains("sandbox: none"), "{}", said.out);
}

#[test]
fn predictions_for_a_whole_pack_serve_for_one_task_of_it() {
    let ground = with_a_task_without_probes();
    let line = |task: &str| {
        json!({"instance_id": task, "model_name_or_path": "m", "model_patch": GOLDEN}).to_string() + "\n"
    };
    ground.write("p.jsonl", &(line("zweite") + &line("triple")));
    let grade = ["grade", "pack/tasks/triple", "--patches", "p.jsonl", "--json"];
    let document = ground.infradev(&grade).exits(0).json();
    assert_eq!(verdicts(&document), [("m".into(), "resolved".into(), 4)]);
    ground.write("p.jsonl", &(line("triple") + &line("drei")));
    let said = ground.infradev(&grade).exits(4);
    assert!(said.err.contains("p.jsonl:2: there is no task drei in the pack"), "{}", said.err);
}

/// A pack with a second task, `zweite`, which has no probes.
fn with_a_task_without_probes() -> Ground {
    let ground = Ground::new();
    for file in ["task.toml", "spec.md", "contract.toml", "golden.patch", "official.patch"] {
        let text = ground.read(&format!("pack/tasks/triple/{file}"));
        ground.write(&format!("pack/tasks/zweite/{file}"), &text);
    }
    ground.edit("pack/tasks/zweite/task.toml", "id = \"triple\"", "id = \"zweite\"");
    ground
}

#[test]
fn a_grade_that_no_probe_stands_behind_is_told_apart() {
    let ground = with_a_task_without_probes();
    let said = ground.infradev(&["grade", "pack", "--patches", "golden"]).exits(0);
    let probe: Vec<Option<&str>> =
        said.out.lines().skip(1).take(2).map(|line| line.split_whitespace().nth(5)).collect();
    assert_eq!(probe, [Some("2/2"), Some("none")], "{}", said.out);
    assert!(said.out.contains("no probes: verdicts on zweite rest on official tests alone"), "{}", said.out);
    let document = ground.infradev(&["grade", "pack", "--patches", "golden", "--json"]).exits(0).json();
    let marks: Vec<&Value> =
        document["submissions"].as_array().unwrap().iter().map(|grade| &grade["without_probes"]).collect();
    assert_eq!(marks, [&json!(false), &json!(true)]);
}
