//! `infradev synthesize --agent` on a small pack: agents of ours in the real sandbox, acceptance as it is.

mod ground;
mod harm;
mod scripted;

use std::collections::BTreeMap;
use std::path::Path;

use ground::Ground;
use serde_json::{Value, json};

/// Writes what its role asks for. What it gets wrong at first it mends by the report on the round before.
const WRITES: &str = r#"
import os, pathlib, sys

role = sys.stdin.read().split()[1].rstrip(":")
report = pathlib.Path("REPORT.md").read_text()
task = pathlib.Path("task")
kept = pathlib.Path(os.path.dirname(__file__))
if role == "adversary":
    text = (kept / "large-numbers.toml").read_text()
    if "does not stand in golden's" not in report:
        text = text.replace("return 3 * x\"\nwith", "return 9 * x\"\nwith")
    (task / "adversarial").mkdir(exist_ok=True)
    (task / "adversarial" / "large-numbers.toml").write_text(text)
elif role == "prober" and not (task / "probes").exists():
    (task / "probes").mkdir()
    for name in ("judge_model.py", "observe_model.py"):
        (task / "probes" / name).write_text((kept / name).read_text())
"#;

/// Takes away what the pack's task has besides its patches, and keeps it where the agent finds it.
fn bare(ground: &Ground, agent: &str) {
    let task = "pack/tasks/triple";
    for (folder, name) in
        [("adversarial", "large-numbers.toml"), ("probes", "judge_model.py"), ("probes", "observe_model.py")]
    {
        ground.write(&format!("mine/{name}"), &ground.read(&format!("{task}/{folder}/{name}")));
    }
    for folder in ["adversarial", "probes"] {
        std::fs::remove_dir_all(ground.path().join(task).join(folder)).unwrap();
    }
    ground.write("mine/mine.py", agent);
}

const SYNTHESIZE: [&str; 10] = [
    "synthesize",
    "pack/tasks/triple",
    "--agent",
    "command",
    "--command",
    "python3 {agent}/mine.py",
    "--folder",
    "mine",
    "--quiet",
    "--json",
];

fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn a_second_round_mends_what_the_report_on_the_first_one_says_and_the_task_is_accepted() {
    let ground = Ground::new();
    let before = files_below(&ground.path().join("pack/tasks/triple"));
    bare(&ground, WRITES);
    let document = ground.infradev(&SYNTHESIZE).exits(0).json();
    assert_eq!(document["accepted"], true, "{document:#}");
    let rounds = document["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    let told = rounds[0]["report"].as_str().unwrap();
    let dropped = "- the adversary wrote task/adversarial/large-numbers.toml: is dropped, since it cannot be made: \
                   task/adversarial/large-numbers.toml:";
    assert!(told.contains(dropped) && told.contains("does not stand in golden's"), "{told}");
    let written = |round: usize, step: usize| {
        let written = rounds[round]["steps"][step]["written"].as_object().unwrap();
        written.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!((written(0, 0), written(1, 0)), (vec![], vec!["adversarial/large-numbers.toml".to_owned()]));
    assert_eq!(written(0, 1), ["probes/judge_model.py", "probes/observe_model.py"]);
    assert_eq!((written(0, 2), written(1, 1)), (vec![], vec![]));
    let mut after = files_below(&ground.path().join("pack/tasks/triple"));
    let record: Value = serde_json::from_slice(&after.remove("acceptance.json").unwrap()).unwrap();
    assert_eq!(record["accepted"], true);
    assert_eq!(after, before);
    let kept = ground.path().join("home/runs").join(document["run"].as_str().unwrap());
    let prompt = rounds[0]["steps"][0]["folder"].as_str().unwrap();
    let prompt = std::fs::read_to_string(kept.join(prompt).join("prompt.md")).unwrap();
    assert!(prompt.starts_with("# adversary: Add triple\n"), "{prompt}");
}

/// Writes all that is right at once, and beside it patches that cannot be made.
const BESIDES: &str = r#"
import os, pathlib, sys

role = sys.stdin.read().split()[1].rstrip(":")
task = pathlib.Path("task")
kept = pathlib.Path(os.path.dirname(__file__))
if role == "adversary":
    folder = task / "adversarial"
    folder.mkdir(exist_ok=True)
    (folder / "large-numbers.toml").write_text((kept / "large-numbers.toml").read_text())
    head = 'schema = 1\npromise = "p"\n'
    (folder / "untouched.toml").write_text(head + 'take_back = ["toy/__init__.py"]\n')
    (folder / "stale.toml").write_text(head + 'patch = "stale.patch"\non = "base"\n')
    (folder / "stale.patch").write_text(
        "--- a/toy/model.py\n+++ b/toy/model.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    return 7 * x\n+    return 8 * x\n"
    )
    (folder / "none.toml").write_text(head + 'patch = "none.patch"\non = "base"\n')
    (folder / "none.patch").write_text("no diff\n")
elif role == "prober":
    (task / "probes").mkdir()
    for name in ("judge_model.py", "observe_model.py"):
        (task / "probes" / name).write_text((kept / name).read_text())
"#;

#[test]
fn an_adversarial_patch_that_cannot_be_made_costs_itself_and_not_its_round() {
    let ground = Ground::new();
    bare(&ground, BESIDES);
    let document = ground.infradev(&[&SYNTHESIZE[..], &["--rounds", "1"]].concat()).exits(0).json();
    assert_eq!(document["accepted"], true, "{document:#}");
    let step = &document["rounds"][0]["steps"][0];
    let written: Vec<&String> = step["written"].as_object().unwrap().keys().collect();
    assert_eq!(written, ["adversarial/large-numbers.toml"]);
    let report = document["rounds"][0]["report"].as_str().unwrap();
    let lines: Vec<&str> = report.lines().filter(|line| line.contains("is dropped, since")).collect();
    insta::assert_snapshot!("dropped", lines.join("\n"));
}

/// Says in its log that it ran the same command six times, and writes nothing.
const CIRCLE: &str = r#"
schema = 1
name = "circle"
version = "1"

[run]
command = ["python3", "-c", '''
import json
said = [{"type": "turn.started"}]
for number in range(6):
    item = {"id": str(number), "type": "command_execution", "command": "ls", "exit_code": 0, "status": "completed"}
    said.append({"type": "item.completed", "item": item})
said.append({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}})
for event in said:
    print(json.dumps(event))
''']
prompt = "stdin"
output = "codex-jsonl"
"#;

#[test]
fn an_agent_that_goes_round_in_a_circle_is_told_so_with_what_it_did() {
    let ground = Ground::new();
    bare(&ground, "");
    ground.write("circle.toml", CIRCLE);
    let args =
        ["synthesize", "pack/tasks/triple", "--agent", "circle.toml", "--rounds", "1", "--quiet", "--json"];
    let document = ground.infradev(&args).exits(1).json();
    let step = &document["rounds"][0]["steps"][0];
    assert_eq!((&step["ending"], &step["repeated"]["times"]), (&json!("finished"), &json!(6)), "{step:#}");
    let report = document["rounds"][0]["report"].as_str().unwrap();
    let circle =
        "- the adversary went round in a circle: 6 times in a row command_execution {\"command\":\"ls\"";
    assert!(report.contains(circle), "{report}");
    assert!(report.contains("- the adversary changed none of its files"), "{report}");
}

#[test]
fn what_is_not_a_roles_to_write_is_dropped_and_told_and_the_task_stays_as_it_was() {
    let ground = Ground::new();
    bare(
        &ground,
        r#"
import os, pathlib
task = pathlib.Path("task")
(task / "golden.patch").write_text("")
(task / "task.toml").write_text("schema = 1\n")
(task / "spec.md").unlink()
(task / "adversarial").mkdir(exist_ok=True)
os.symlink("/etc/passwd", task / "adversarial" / "link.toml")
(task / "adversarial" / "large.toml").write_bytes(b"x" * (2 << 20))
(task / "adversarial" / "bytes.toml").write_bytes(b"\xff\xfe")
(task / "adversarial" / "new\nline.toml").write_text("schema = 1\n")
(task / "adversarial" / "outside.toml").write_text('schema = 1\npromise = "p"\ntake_back = ["../../../../etc/passwd"]\n')
(task / "adversarial" / "alone.patch").write_text("")
for place in ("/workspace/base/toy/model.py", "/workspace/golden/toy/model.py"):
    pathlib.Path(place).write_text("")
pathlib.Path("probes").mkdir()
for number in range(9):
    pathlib.Path(f"judge_{number}.py").write_text("")
"#,
    );
    let before = files_below(&ground.path().join("pack"));
    let said = ground.infradev(&[&SYNTHESIZE[..], &["--rounds", "1"]].concat()).exits(1);
    let document = said.json();
    assert_eq!(texts(&document["reasons"]), ["not accepted after 1 round"]);
    assert_eq!(files_below(&ground.path().join("pack")), before);
    let steps = document["rounds"][0]["steps"].as_array().unwrap();
    let ignored = |step: usize| -> BTreeMap<&str, &str> {
        let ignored = steps[step]["ignored"].as_array().unwrap().iter();
        ignored.map(|file| (file["path"].as_str().unwrap(), file["why"].as_str().unwrap())).collect()
    };
    let adversary = ignored(0);
    assert_eq!(adversary["task/task.toml"], "is not this role's to write");
    assert_eq!(adversary["task/spec.md"], "was removed, which is not this role's to do");
    assert_eq!(adversary["task/adversarial/link.toml"], "is no plain file");
    assert_eq!(adversary["task/adversarial/large.toml"], "is larger than 1 MiB");
    assert_eq!(adversary["task/adversarial/bytes.toml"], "is not UTF-8");
    let odd = "its name is not lower-case letters, digits, dashes and underscores";
    assert_eq!(adversary["task/adversarial/new\\nline.toml"], odd);
    let outside = adversary["task/adversarial/outside.toml"];
    assert!(outside.contains("`../../../../etc/passwd` is not a path inside the tree"), "{outside}");
    assert!(adversary["task/adversarial/alone.patch"].contains("names this file as its `patch`"));
    let beside = "lies beside `task/`: only what stands below that counts";
    assert_eq!(adversary["judge_0.py"], beside);
    assert_eq!(adversary["judge_7.py"], format!("{beside}; so do 2 others"));
    assert_eq!(ignored(1)["task/adversarial/large.toml"], "is not this role's to write");
    assert_eq!(ignored(2)["task/spec.md"], "was removed, and a task needs it: it stays as it was");
    let report = document["rounds"][0]["report"].as_str().unwrap();
    assert!(report.contains("the prober changed none of its files"), "{report}");
    assert!(report.contains("The task could not be tried:\n\n    the task has no probes yet"), "{report}");
}

#[test]
fn an_agent_that_never_ends_is_ended_and_the_time_of_all_steps_bounds_the_rounds() {
    let ground = Ground::new();
    bare(&ground, "while True:\n    pass\n");
    let limits = ["--step-timeout", "1", "--minutes", "0"];
    let said = ground.infradev(&[&SYNTHESIZE[..], &limits[..2]].concat());
    let document = said.exits(1).json();
    let endings: Vec<&str> = document["rounds"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|round| round["steps"].as_array().unwrap())
        .map(|step| step["ending"].as_str().unwrap())
        .collect();
    assert_eq!(endings, ["timed_out"; 9], "three rounds of three roles");
    let report = document["rounds"][0]["report"].as_str().unwrap();
    let over = "- the prober was ended, since its time was over (after 1 s); it changed none of its files\n";
    assert!(report.contains(over), "{report}");
    let refused = ground.infradev(&[&SYNTHESIZE[..], &limits[2..]].concat());
    assert_eq!(refused.code, 2, "no time at all is no plan: {}", refused.err);
}

#[test]
fn steps_that_are_done_are_not_made_again() {
    let ground = Ground::new();
    bare(&ground, WRITES);
    let first = ground.infradev(&[&SYNTHESIZE[..], &["--rounds", "1"]].concat()).exits(1).json();
    let run = ground.path().join("home/runs").join(first["run"].as_str().unwrap());
    // As a kill before its end leaves it.
    std::fs::remove_file(run.join("finished.json")).unwrap();
    std::fs::remove_file(run.join("rounds.json")).unwrap();
    let again = ground.infradev(&[&SYNTHESIZE[..], &["--rounds", "1"]].concat()).exits(1).json();
    assert_eq!(again["run"], first["run"]);
    // To the microsecond that each took.
    assert_eq!(again["rounds"][0]["steps"], first["rounds"][0]["steps"]);
    std::fs::remove_file(run.join("finished.json")).unwrap();
    ground.write("mine/mine.py", "raise SystemExit('another agent')\n");
    let other = ground.infradev(&[&SYNTHESIZE[..], &["--rounds", "1"]].concat()).exits(1).json();
    assert_ne!(other["run"], first["run"], "an agent that was changed is another one");
    assert_eq!(other["rounds"][0]["steps"][0]["ending"], "agent_crashed");
    let report = other["rounds"][0]["report"].as_str().unwrap();
    let crashed = "- the adversary crashed (it ended with exit status 1); it changed none of its files\n";
    assert!(report.contains(crashed), "{report}");
}

/// By role: the adversary leaves a link where its folder was, to what its sandbox does not show; the prober a file; the
/// prompter folders without end.
const SHAPES: &str = r#"
import os, shutil, sys
role = sys.stdin.read().split()[1].rstrip(":")
if role == "prompter":
    os.chdir("/workspace/task")
    for _ in range(2500):
        os.mkdir("dd")
        os.chdir("dd")
else:
    os.rename("/workspace/task", "/workspace/aside")
    if role == "adversary":
        os.symlink("SECRET", "/workspace/task")
    else:
        open("/workspace/task", "w").close()
"#;

#[test]
fn a_folder_of_another_shape_is_not_entered_and_the_rounds_go_on() {
    let ground = Ground::new();
    ground.write("secret/adversarial/host.toml", "taken from the host\n");
    let secret = ground.path().join("secret").to_str().unwrap().to_owned();
    bare(&ground, &SHAPES.replace("SECRET", &secret));
    let said = ground.infradev(&[&SYNTHESIZE[..], &["--rounds", "1"]].concat()).exits(1);
    assert!(!said.out.contains("host.toml"), "{}", said.out);
    let document = said.json();
    let steps = document["rounds"][0]["steps"].as_array().unwrap();
    let told: Vec<[&Value; 3]> =
        steps.iter().map(|step| [&step["ending"], &step["written"], &step["ignored"]]).collect();
    let gone = json!({"path": "task", "why": "is no folder any more: nothing of it is taken"});
    let aside = json!({"path": "aside", "why": "lies beside `task/`: only what stands below that counts"});
    let moved = json!([gone, aside]);
    let deep = format!("task{}", "/dd".repeat(9));
    let too_deep = json!([{"path": deep, "why": "is nested too deep"}]);
    for (found, ignored) in told.iter().zip([&moved, &moved, &too_deep]) {
        assert_eq!(*found, [&json!("finished"), &json!({}), ignored]);
    }
    assert_eq!(told.len(), 3);
}

#[test]
fn claude_code_on_a_scripted_model_writes_what_the_task_needs_and_it_is_accepted() {
    let ground = scripted::ground();
    bare(&ground, "");
    let files: Vec<Value> =
        ["adversarial/large-numbers.toml", "probes/judge_model.py", "probes/observe_model.py"]
            .iter()
            .map(|path| json!([path, ground.read(&format!("mine/{}", path.rsplit('/').next().unwrap()))]))
            .collect();
    // What the model has its agent run: the same for all roles, each of which writes its own files.
    let program = format!(
        "import json, os, pathlib\nrole = open(os.environ['INFRADEV_PROMPT']).read().split()[1].rstrip(':')\n\
         mine = {{'adversary': 'adversarial/', 'prober': 'probes/', 'prompter': 'none'}}[role]\n\
         for path, text in json.loads({:?}):\n    if path.startswith(mine):\n        \
         file = pathlib.Path('task', path)\n        file.parent.mkdir(exist_ok=True)\n        file.write_text(text)\n",
        serde_json::to_string(&files).unwrap()
    );
    let shell = format!("cat > /tmp/w.py <<'END'\n{program}END\npython3 /tmp/w.py");
    let model = scripted::Model::playing(&ground, &json!([{"shell": shell}, {"done": "Written."}]));
    let args = [
        "synthesize",
        "pack/tasks/triple",
        "--agent",
        "claude-code",
        "--model",
        "scripted",
        "--base-url",
        model.url(),
        "--step-timeout",
        "240",
        "--quiet",
        "--json",
    ];
    let keys = [("ANTHROPIC_API_KEY", "the-real-key")];
    let document = ground.tool_with(&keys, env!("CARGO_BIN_EXE_infradev"), &args).exits(0).json();
    assert_eq!(document["accepted"], true, "{document:#}");
    let steps = document["rounds"][0]["steps"].as_array().unwrap();
    let told: Vec<(&str, usize)> = steps
        .iter()
        .map(|step| (step["ending"].as_str().unwrap(), step["written"].as_object().unwrap().len()))
        .collect();
    assert_eq!(told, [("finished", 1), ("finished", 2), ("finished", 0)]);
    assert_eq!(document["tokens"], 3 * 2 * 110, "two requests a step, as the script prices them");
    let prompts: Vec<bool> = ["# adversary: ", "# prober: ", "# prompter: "]
        .iter()
        .map(|head| model.asked().iter().any(|request| request.to_string().contains(head)))
        .collect();
    assert_eq!(prompts, [true; 3]);
}
