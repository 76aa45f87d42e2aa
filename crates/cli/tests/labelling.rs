//! `infradev label` with agents in the real sandbox: what rules left open, asked of an agent, kept in a file, taken by reports.

mod ground;
mod harm;
mod scripted;

use ground::Ground;
use serde_json::{Value, json};

const RIGHT: &str = "def triple(x):\n+    return 3 * x\n";

/// Of three attempts one skips its test and one is off by a fraction, which rules leave open; one is right.
fn graded(ground: &Ground) -> String {
    let bodies = [
        "def triple(x):\n+    import pytest\n+\n+    pytest.skip(\"not today\")\n",
        "def triple(x):\n+    return 3.25 * x\n",
        RIGHT,
    ];
    for (at, body) in bodies.iter().enumerate() {
        let path = format!("patches/codex#{}/triple.patch", at + 1);
        let lines = body.matches("\n+").count() + 5;
        let patch = ground::GOLDEN.replace(RIGHT, body).replace("+1,6 @@", &format!("+1,{lines} @@"));
        ground.write(&path, &patch);
    }
    let document = ground.infradev(&["grade", "pack", "--patches", "patches", "--json"]).exits(0).json();
    document["run"].as_str().unwrap().to_owned()
}

/// Answers as far as it can tell, and says on its standard output what it was shown.
const ANSWERS: &str = r#"
import pathlib, sys

print(sys.stdin.read())
for path in sorted(pathlib.Path(".").rglob("*")):
    if path.is_file() and ".git" not in path.parts:
        print("==", path, path.read_text(), sep="\n")
patch = pathlib.Path("patch.diff").read_text()
for case in sorted(pathlib.Path("cases").iterdir()):
    label = "behavioural/fallback" if "skip" in patch else "numerical/wrong_algorithm"
    pathlib.Path("answers", case.name).write_text(f"label = '{label}'\nwhy = 'the patch shows it'\n")
"#;

const LABEL: [&str; 10] = [
    "label",
    "last",
    "--labels",
    "labels.toml",
    "--agent",
    "command",
    "--command",
    "python3 {agent}/mine.py",
    "--folder",
    "mine",
];

/// Labels of a report's cases: case, label, by whom.
fn labels(document: &Value) -> Vec<(String, String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or("unlabelled").to_owned();
    let cases = document["cases"].as_array().unwrap().iter();
    let mut all: Vec<_> = cases
        .filter(|case| case["suite"] == "official")
        .map(|case| {
            let label = &case["label"];
            (word(&case["submission"]), word(&label["label"]), word(&label["by"]))
        })
        .collect();
    all.sort();
    all
}

fn told(labels: &[(String, String, String)]) -> Vec<[&str; 3]> {
    labels.iter().map(|(submission, label, by)| [submission.as_str(), label, by]).collect()
}

#[test]
fn an_agent_labels_what_rules_left_open_and_a_person_has_the_last_word() {
    let ground = Ground::new();
    let graded = graded(&ground);
    ground.write("mine/mine.py", ANSWERS);
    let before = ground.infradev(&["report", "last", "--json"]).exits(0).json();
    assert_eq!(
        told(&labels(&before)),
        [["codex#1", "unlabelled", "rule"], ["codex#2", "numerical/undetermined", "rule"]]
    );
    ground.write("labels.toml", "# Ada's\nschema = 1\n");
    let said = ground.infradev(&[&LABEL[..], &["--quiet"]].concat()).exits(0);
    let run = said.out.lines().find_map(|line| line.strip_prefix("run ")).unwrap();
    let run = run.split(' ').next().unwrap();
    let plain: String = said
        .out
        .replace(run, "RUN")
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        // Seconds differ.
        .map(|words| words.into_iter().filter(|word| word.parse::<f64>().is_err() || word.len() < 3))
        .map(|words| words.collect::<Vec<_>>().join(" ") + "\n")
        .collect();
    insta::assert_snapshot!("table", plain);
    insta::assert_snapshot!("labels", ground.read("labels.toml"));

    // What it was shown is what a public report shows, and not whose it is.
    let document: Value = serde_json::from_str(&ground.read(&format!("home/runs/{run}/label.json"))).unwrap();
    for answered in document["answered"].as_array().unwrap() {
        let log = ground.read(&format!("home/runs/{run}/{}/agent.log", answered["folder"].as_str().unwrap()));
        assert!(log.contains("tests/test_model.py::test_triple") && log.contains("+def triple(x):"), "{log}");
        for sealed in ["codex", "judge_model", "any_number", "probe", "assert triple(2)", "HERE"] {
            assert!(!ground.plain(log.as_bytes()).contains(sealed), "{sealed} in {log}");
        }
    }

    // `last` is the newest run that has submissions, which the run of `label` is not.
    let report = ["report", "last", "--labels", "labels.toml", "--json"];
    let after = ground.infradev(&report).exits(0).json();
    assert_eq!(after["runs"][0]["run"], graded.as_str());
    let by_agent =
        [["codex#1", "behavioural/fallback", "agent"], ["codex#2", "numerical/wrong_algorithm", "agent"]];
    assert_eq!(told(&labels(&after)), by_agent);
    assert_eq!(after["figures"]["agreement"], Value::Null, "rules are measured against people");

    let again = ground.infradev(&LABEL).exits(0);
    assert!(again.out.starts_with("rules left no case open that the agent may see"), "{}", again.out);
    let text = ground.read("labels.toml");
    let person = "\n[[label]]\ntask = \"triple\"\nsubmission = \"codex#1\"\ncase = \"tests/test_model.py::test_triple\"\n\
                  label = \"structural/execution\"\nwhy = \"it does not run\"\nby = \"ada\"\n";
    // Wherever it stands.
    ground
        .write("labels.toml", &format!("schema = 1\n{person}{}", text.split_once("schema = 1\n").unwrap().1));
    let overruled = ground.infradev(&report).exits(0).json();
    assert_eq!(told(&labels(&overruled))[0], ["codex#1", "structural/execution", "person"]);
}

#[test]
fn what_an_agent_may_not_say_is_told_and_stays_open() {
    let ground = Ground::new();
    graded(&ground);
    ground.write(
        "mine/mine.py",
        "import os, pathlib\nskips = 'skip' in pathlib.Path('patch.diff').read_text()\n\
         if skips:\n    os.rmdir('answers')\n    os.symlink('/etc', 'answers')\nelse:\n    \
         pathlib.Path('answers/001.toml').write_text(\"label = 'numerical/precision'\\nwhy = 'x'\\n\")\n",
    );
    let document = ground.infradev(&[&LABEL[..], &["--json"]].concat()).exits(0).json();
    let answered = document["answered"].as_array().unwrap();
    let ignored: Vec<&Value> = answered.iter().map(|one| &one["ignored"][0]["why"]).collect();
    assert_eq!(
        ignored,
        [
            "is no folder any more: nothing of it is taken",
            "numerical/precision is not taken: `numerical/precision` is given only where the case's exact inputs pass"
        ]
    );
    assert_eq!(ground.read("labels.toml"), "schema = 1\n");
}

#[test]
fn an_agent_that_never_ends_is_ended_and_probes_are_asked_of_with_sealed_alone() {
    let ground = Ground::new();
    // A comparison within a tolerance, without exact inputs: rules cannot tell what its failure means.
    ground.edit(
        "pack/tasks/triple/probes/judge_model.py",
        "expect.equal(w.observe(\"observe_model.triple_of\", x=x)[0][\"y\"], 3 * x)",
        "expect.close(float(w.observe(\"observe_model.triple_of\", x=x)[0][\"y\"]), 3.0 * x, rtol=1e-6)",
    );
    graded(&ground);
    ground.write("mine/mine.py", "while True:\n    pass\n");
    let hangs = ground.infradev(&[&LABEL[..], &["--step-timeout", "1", "--json"]].concat()).exits(0).json();
    let endings: Vec<&str> =
        hangs["answered"].as_array().unwrap().iter().map(|one| one["ending"].as_str().unwrap()).collect();
    assert_eq!(endings, ["timed_out"; 2]);
    assert_eq!(hangs["open"], 2);

    ground.write("mine/mine.py", ANSWERS);
    let sealed = ground.infradev(&[&LABEL[..], &["--sealed", "--json"]].concat()).exits(0).json();
    assert!(sealed["open"].as_u64().unwrap() > 2, "{sealed:#}");
    let file = ground.read("labels.toml");
    assert!(file.contains("case = \"probe-") && !file.contains("judge_model"), "{file}");
    // The public report takes what was said of probes, and not why.
    let public = ground.infradev(&["report", "last", "--labels", "labels.toml", "--json"]).exits(0).json();
    let probes: Vec<&Value> = public["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["suite"] == "probe" && case["label"]["by"] == "agent")
        .map(|case| &case["label"]["evidence"])
        .collect();
    assert!(!probes.is_empty() && probes.iter().all(|why| **why == "by an agent"), "{probes:?}");
}

#[test]
fn claude_code_on_a_scripted_model_labels_within_its_tokens() {
    let ground = scripted::ground();
    graded(&ground);
    let shell = "printf 'label = \"behavioural/fallback\"\\nwhy = \"it skips\"\\n' > answers/001.toml";
    let model = scripted::Model::playing(&ground, &json!([{"shell": shell}, {"done": "Written."}]));
    let args = [
        "label",
        "last",
        "--labels",
        "labels.toml",
        "--agent",
        "claude-code",
        "--model",
        "scripted",
        "--base-url",
        model.url(),
        "--token-budget",
        "200",
        "--json",
    ];
    let keys = [("ANTHROPIC_API_KEY", scripted::KEY)];
    let document = ground.tool_with(&keys, env!("CARGO_BIN_EXE_infradev"), &args).exits(0).json();
    let answered = document["answered"].as_array().unwrap();
    assert_eq!(
        answered.len(),
        1,
        "two requests of 110 tokens, and nothing is left for the second: {document:#}"
    );
    assert_eq!(document["left"], "the agent's tokens are used up: 1 of 2 submissions are left open");
    assert_eq!(answered[0]["labels"][0]["label"], "behavioural/fallback");
    let who = answered[0]["labels"][0]["by"].as_str().unwrap();
    assert!(who.starts_with("claude-code ") && who.ends_with(", scripted"), "{who}");
}
