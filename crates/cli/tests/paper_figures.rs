//! A made-up run with the paper's counts: each of its figures and tables is read off the report, by the real program.

mod ground;

use ground::Ground;
use serde_json::{Value, json};

const MODELS: u32 = 5;
const TASKS: u32 = 36;
/// Of Megatron-LM, of which the first five are about CUDA graphs; then verl, then vLLM.
const MEGATRON: u32 = 19;
const GRAPHS: u32 = 5;

/// One submission as it is to come out.
#[derive(Clone, Copy, PartialEq)]
struct Made {
    model: u32,
    task: u32,
}

fn all() -> Vec<Made> {
    (0..MODELS).flat_map(|model| (0..TASKS).map(move |task| Made { model, task })).collect()
}

/// 51 of 180: of the first model 8 of Megatron-LM's 19 tasks.
fn resolved(made: Made) -> bool {
    match made.model {
        0 => (11..MEGATRON).contains(&made.task) || (27..31).contains(&made.task),
        4 => (11..20).contains(&made.task),
        _ => (11..21).contains(&made.task),
    }
}

/// What each unresolved one fails, by its place among those that are not about CUDA graphs.
struct Fails {
    graphs: Vec<Made>,
    others: Vec<Made>,
}

impl Fails {
    fn of(all: &[Made]) -> Fails {
        let unresolved = all.iter().copied().filter(|made| !resolved(*made));
        let (graphs, others) = unresolved.partition(|made| made.task < GRAPHS);
        Fails { graphs, others }
    }

    fn is(&self, made: Made, places: std::ops::Range<usize>) -> bool {
        self.others[places].contains(&made)
    }

    fn resource(&self, made: Made) -> bool {
        self.is(made, 13..24)
    }

    /// Failing cases: suite, name, what was raised, or what the probe checks.
    fn cases(&self, made: Made) -> Vec<Value> {
        let official = |exception: &str, message: &str, file: &str| {
            let detail = json!({"exception": exception, "message": message, "file": file, "line": 3});
            failing("official", "tests/test_layer.py::test_layer", &detail)
        };
        let probe = |checks: &str| {
            let detail = json!({"exception": "infradev_probe.expect.ExpectationFailed", "message": "off", "file": "probes/judge_x.py", "line": 1});
            failing("probe", &format!("probes/judge_x.py::{checks}[world=2]"), &detail)
        };
        let mut cases = Vec::new();
        if self.is(made, 24..44) {
            cases.push(official(
                "RuntimeError",
                "Error(s) in loading state_dict: Missing key(s)",
                "stack/a.py",
            ));
        } else if self.is(made, 44..95) {
            cases.push(official("AttributeError", "no attribute 'x'", "stack/a.py"));
        } else if self.is(made, 95..104) || self.graphs.contains(&made) {
            cases.push(official("AssertionError", "assert 0.25 == 0.5", "tests/test_layer.py"));
        }
        if self.is(made, 0..15) {
            cases.push(probe("state"));
        }
        if self.is(made, 0..23) || self.graphs[..15].contains(&made) {
            cases.push(probe("condition"));
        }
        if self.resource(made) {
            cases.push(probe("memory"));
        }
        cases
    }
}

fn failing(suite: &str, id: &str, detail: &Value) -> Value {
    json!({"suite": suite, "id": id, "world": 2, "word": "failed", "fail_to_pass": true,
        "vector": [{"outcome": "failed", "detail": detail}]})
}

/// What the trial recorded of a failing probe.
fn judged(case: &Value) -> Value {
    let id = case["id"].as_str().unwrap();
    let checks = id.rsplit("::").next().unwrap().split('[').next().unwrap();
    let expectation = json!({"kind": "true", "ok": false, "expected": "true", "got": "false"});
    json!({"suite": "probe", "id": id, "vector": case["vector"], "duration_s": 0.1, "launch": 0,
        "judgement": {"seed": 1, "checks": checks, "rejection": "substantive", "expectations": [expectation]}})
}

/// A patch with so many assertions of its own, of which the last ones check memory.
fn patch(assertions: usize, of_memory: usize) -> String {
    let mut lines =
        vec!["import torch".to_owned(), String::new(), String::new(), "def test_own():".to_owned()];
    lines.extend((of_memory..assertions).map(|at| format!("    assert layer({at}) == {at}")));
    lines.push("    peak = torch.cuda.max_memory_allocated()".to_owned());
    lines.extend((0..of_memory).map(|at| format!("    assert peak < {at} + 1000")));
    let body: String = lines.iter().map(|line| format!("+{line}\n")).collect();
    format!("--- /dev/null\n+++ b/tests/test_own.py\n@@ -0,0 +1,{} @@\n{body}", lines.len())
}

fn key(made: Made) -> String {
    format!("{:064x}", 1 + made.model * 1000 + made.task)
}

fn grade(made: Made, name: &str, cases: &[Value]) -> Value {
    let score = |suite: &str| {
        let failed = cases.iter().filter(|case| case["suite"] == suite).count();
        json!({"passed": 10 - failed, "of": 10})
    };
    let sandbox = json!({"kind": "none", "uid_separation": false, "memory_limit": "", "network": ""});
    let none = json!({"passed": 0, "of": 0});
    json!({"task": format!("task-{}", made.task), "submission": name,
        "verdict": if cases.is_empty() { "resolved" } else { "unresolved" }, "passed": 20 - cases.len(), "of": 20,
        "suites": {"official": score("official"), "probe": score("probe")}, "fail_to_pass": none, "pass_to_pass": none,
        "wall_s": 1.0, "fault": null, "reasons": [], "failing": cases, "tampering": [], "sandbox": sandbox,
        "trials": [key(made)]})
}

fn facts() -> Vec<Value> {
    let one = |task: u32| {
        let repository = match task {
            0..MEGATRON => "NVIDIA/Megatron-LM",
            MEGATRON..27 => "volcengine/verl",
            _ => "vllm-project/vllm",
        };
        let traits: &[&str] = if task < GRAPHS { &["cuda-graph"] } else { &[] };
        json!({"task": format!("task-{task}"), "area": "training", "kind": "feature", "repository": repository, "traits": traits})
    };
    (0..TASKS).map(one).collect()
}

fn run(ground: &Ground, id: &str, grades: &[Value]) {
    let write = |name: &str, value: Value| ground.write(&format!("runs/{id}/{name}"), &value.to_string());
    write(
        "run.json",
        json!({"schema": 1, "id": id, "verb": "grade", "pack": "paper", "command": ["infradev", "grade", "--patches", "p"],
            "plan": "ab".repeat(32), "started": 1}),
    );
    write("grade.json", json!({"schema": 1, "run": id, "tasks": facts(), "submissions": grades}));
    write("finished.json", json!({}));
    ground.write(&format!("runs/{id}/journal.jsonl"), "");
}

const RUN: &str = "grade-20260101-000000-0000";
const SKILL: &str = "grade-20260102-000000-0000";

/// The run of 180 submissions, and one of the first model with a skill on Megatron-LM's tasks.
fn paper(ground: &Ground) {
    let all = all();
    let fails = Fails::of(&all);
    let mut grades = Vec::new();
    let mut right = 0;
    for (at, made) in all.iter().copied().enumerate() {
        let cases = fails.cases(made);
        let of_memory = match resolved(made) {
            true => {
                right += 1;
                if right <= 48 { 2 } else { 1 }
            }
            false => usize::from(fails.others[13] == made),
        };
        let judged: Vec<Value> = cases.iter().filter(|case| case["suite"] == "probe").map(judged).collect();
        let trial = format!("runs/{RUN}/trials/{}", key(made));
        let record = json!({"schema": 1, "inputs": {"world": 2}, "cases": judged});
        ground.write(&format!("{trial}/result.json"), &record.to_string());
        ground.write(&format!("{trial}/patch.diff"), &patch(if at < 132 { 31 } else { 30 }, of_memory));
        grades.push(grade(made, &format!("model-{}", made.model), &cases));
    }
    run(ground, RUN, &grades);
    let with_skill = (0..MEGATRON).map(|task| {
        let detail = json!({"exception": "AssertionError", "message": "assert 0.25 == 0.5", "file": "tests/test_layer.py", "line": 3});
        let fails = failing("official", "tests/test_layer.py::test_layer", &detail);
        let cases = if task < 9 { vec![fails] } else { Vec::new() };
        grade(Made { model: 0, task }, "model-0+skill=checks", &cases)
    });
    run(ground, SKILL, &with_skill.collect::<Vec<_>>());
}

fn rows<'a>(csv: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    csv.lines().skip(1).filter(move |line| line.starts_with(start))
}

#[test]
fn the_papers_figures_are_read_off_a_run_with_its_counts() {
    let ground = Ground::new();
    paper(&ground);
    let folder = format!("./runs/{RUN}");
    ground.infradev(&["report", &folder, "--sealed", "--csv", "one", "--site", "site"]).exits(0);
    let table = |name: &str| ground.read(&format!("one/{name}.csv"));
    let mut shown = String::new();
    let mut show = |what: &str, table: &str, start: &str| {
        shown.push_str(&format!("{what}\n  {}\n", table.lines().next().unwrap()));
        rows(table, start).for_each(|row| shown.push_str(&format!("  {row}\n")));
        shown.push('\n');
    };
    show("figure 2: resolved with and without probes, and the rejected share", &table("rates"), "all,");
    show("by arm", &table("rates"), "arm,");
    show("by repository", &table("rates"), "repository,");
    show("figure 3: arms on one repository", &table("rates"), "\"arm, repository\",\"model-0,");
    show("figure 4: error classes", &table("classes"), "");
    show("table 7: labels, and the suite that caught them", &table("errors"), "");
    show("figure 5: conditional errors on CUDA-graph tasks", &table("traits"), "task,");
    show("figure 6: what own tests check", &table("own-tests"), "all,");
    show("failed resource checks by own resource assertion", &table("resource-checks"), "");
    let both = format!("./runs/{SKILL}");
    ground.infradev(&["report", &folder, &both, "--csv", "two"]).exits(0);
    let table = |name: &str| ground.read(&format!("two/{name}.csv"));
    show("figure 7: a skill on Megatron-LM's tasks", &table("rates"), "\"arm, repository\",\"model-0+");
    show("the same in pairs", &table("paired"), "model-0,model-0+");
    insta::assert_snapshot!(shown);

    // Each has a drawing with a text alternative, and no share stands without its counts.
    let index = ground.read("site/index.html");
    for figure in [
        "resolved-by-arm",
        "resolved-by-repository",
        "resolved-by-arm-and-repository",
        "pass-at-k",
        "error-classes",
        "suites",
        "conditional-errors",
        "own-tests",
    ] {
        let (_, rest) = index.split_once(&format!("<figure id=\"{figure}\">")).expect(figure);
        let (drawn, _) = rest.split_once("</figure>").unwrap();
        assert!(drawn.contains("<desc id=") && drawn.contains("role=\"img\""), "{figure}");
        let values = drawn.split("<text class=\"value\"").skip(1).map(|text| text.split('<').next().unwrap());
        for value in values {
            assert!(!value.contains('%') || value.contains('/'), "{figure}: {value}");
        }
    }
}
