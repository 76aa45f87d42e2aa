//! `infradev attempt`: real agents on a scripted model and programs of ours, and how their attempts end.

mod ground;
mod harm;
mod scripted;

use std::path::Path;

use ground::repository;
use harm::{Running, assert_nothing_left, no_process_of};
use infradev_model::atif::Trajectory;
use nix::sys::signal::Signal;
use scripted::{Model, RIGHT, attempt, attempt_by, ground, kept, verdict};
use serde_json::{Value, json};

#[test]
fn a_wrong_change_is_a_submission_like_any_other_and_is_not_resolved() {
    let ground = ground();
    let wrong =
        "printf '\\n\\ndef triple(x):\\n    return 4 * x\\n' >> toy/model.py; echo x > tests/test_own.py";
    let model = Model::playing(&ground, &json!([{"shell": wrong}, {"done": "Done."}]));
    let url = format!("{}/v1", model.url());
    let args = ["--agent", "codex", "--model", "scripted", "--base-url", &url];
    let (record, document) = attempt(&ground, &args, 0);
    assert_eq!(record["ending"], "finished");
    assert_eq!(record["test_edits"], json!(["tests/test_own.py"]));
    assert_eq!(verdict(&ground, &document), "unresolved");
}

#[test]
fn an_agent_whose_model_hangs_is_timed_out_and_what_it_had_written_is_captured() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"shell": "echo half > half.txt"}, {"hang": true}]));
    let args =
        ["--agent", "claude-code", "--model", "scripted", "--base-url", model.url(), "--timeout", "25"];
    let (record, document) = attempt(&ground, &args, 0);
    assert_eq!(record["ending"], "timed_out", "{record:#}");
    assert_eq!(record["left_running"], Value::Null, "not known, where it was killed itself");
    assert_eq!(record["metered"]["tokens"]["input"], 100, "what was answered by then is counted");
    assert!(kept(&ground, &document, "patch.diff").contains("+half"));
    let trajectory = kept(&ground, &document, "trajectory.json");
    let trajectory = Trajectory::parse("trajectory.json", trajectory.as_bytes()).unwrap();
    let called = trajectory.steps[1].tool_calls.as_ref().unwrap();
    assert_eq!(called[0].arguments["command"], "echo half > half.txt");
    drop(model);
    assert_nothing_left(ground.path(), &[]);
}

#[test]
fn a_model_that_is_overloaded_or_not_there_is_a_fault_and_the_same_command_tries_again() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"status": 401, "message": "invalid x-api-key"}]));
    let url = model.url().to_string();
    let args = ["--agent", "claude-code", "--model", "scripted", "--base-url", &url, "--timeout", "100"];
    let (record, document) = attempt(&ground, &args, 3);
    assert_eq!(record["ending"], "endpoint_unreachable", "{record:#}");
    assert!(record["detail"].as_str().unwrap().contains("401: invalid x-api-key"), "{record:#}");
    assert!(ground.read(document["predictions"].as_str().unwrap().trim_start_matches("HERE/")).is_empty());
    // The same command, and a model that answers.
    drop(model);
    ground.write("script.json", &json!([{"shell": RIGHT}, {"done": "Done."}]).to_string());
    let port = url.rsplit(':').next().unwrap().to_string();
    let server = repository().join("fixtures/model-server/model_server.py");
    let script = ground.path().join("script.json");
    let _again =
        harm::Served::start("python3", &[server.as_path(), &script, Path::new("--port"), Path::new(&port)]);
    let (record, again) = attempt(&ground, &args, 0);
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert_eq!(again["run"], document["run"], "the run is gone on with");
}

#[test]
fn a_program_of_ones_own_edits_the_folder_with_the_environment_first_on_its_path() {
    let ground = ground();
    let program = "
import os, subprocess, sys
assert 'Make this change in the source tree' in sys.stdin.read()
assert open(os.environ['INFRADEV_PROMPT']).read()
import numpy, toy.model
assert toy.model.__file__ == '/workspace/toy/model.py'
log = subprocess.run(['git', 'log', '--format=%s'], capture_output=True, text=True).stdout
assert log == 'Base\\n', log
assert subprocess.run(['git', 'status', '--short'], capture_output=True, text=True).stdout == ''
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return 3 * x\\n')
subprocess.run(['python', '-m', 'pytest', '-q'], check=True)
subprocess.run(['git', 'config', '--global', 'core.pager', 'cat'], check=True)
subprocess.run(['git', 'commit', '-qam', 'Add triple'], check=True)
print('uid', os.getuid())
";
    let record = attempt_by(&ground, program, &["-k", "2", "--jobs", "2"]);
    assert_eq!(
        (&record["ending"], &record["submission"]),
        (&json!("finished"), &json!("command#1")),
        "{record:#}"
    );
    let lines = ground.tool("sh", &["-c", "cat home/runs/attempt-*/predictions.jsonl"]).exits(0).out;
    let names: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["model_name_or_path"].clone())
        .collect();
    assert_eq!(names, ["command#1", "command#2"]);
    assert!(
        !lines.contains("pytest_cache") && !lines.contains("pyc"),
        "what tools leave behind is no change"
    );
    if record["sandbox"]["uid_separation"] == true {
        let log = ground.tool("sh", &["-c", "cat home/runs/attempt-*/trials/*/agent.log"]).exits(0).out;
        let uids: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("uid ")).collect();
        assert_eq!(uids.len(), 2);
        assert!(uids[0] != "0" && uids[0] != uids[1], "each at once has a host uid of its own: {uids:?}");
    }
}

#[test]
fn a_document_of_its_run_that_an_agent_did_not_finish_is_no_success() {
    let ground = ground();
    let agent = r#"
schema = 1
name = "writer"
version = "1"
[run]
command = ["sh", "-c", "{command}"]
output = "mini-trajectory"
"#;
    ground.write("writer.toml", agent);
    let exit = r#"{"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}}"#;
    for (written, ending) in [
        (format!(r#"{{"messages": [{exit}]}}"#), "finished"),
        (r#"{"messages": [{"role": "user", "content": "a"}, {"role": "exi"#.to_owned(), "agent_crashed"),
        (r#"{"messages": [{"role": "user", "content": "a"}]}"#.to_owned(), "agent_crashed"),
    ] {
        let command = format!("printf '%s' '{written}' > {{out}}/trajectory.json");
        let (record, _) = attempt(&ground, &["--agent", "writer.toml", "--command", &command], 0);
        assert_eq!(record["ending"], ending, "{written}: {record:#}");
    }
    let (record, _) = attempt(&ground, &["--agent", "writer.toml", "--command", "true"], 0);
    assert_eq!(record["ending"], "agent_crashed", "nothing is there: {record:#}");
    assert_eq!(record["detail"], "it ended without its last word");
}

#[test]
fn malformed_events_and_half_a_line_at_the_end_are_counted_and_cost_nothing_else() {
    let ground = ground();
    let agent = r#"
schema = 1
name = "teller"
version = "1"
[install]
folder = "mine"
[run]
command = ["python", "{agent}/tell.py"]
output = "codex-jsonl"
"#;
    let program = r#"
print('{"type": "turn.started"}\nno event\n{"type": "of tomorrow"}\n{"type": "item.completed", "item": {"id": "i", '
      '"type": "agent_message", "text": "I am done."}}\n[]\n{"type": "turn.completed"}\n{"type": "tur', end='')
"#;
    ground.write("teller.toml", agent);
    ground.write("mine/tell.py", program);
    let (record, document) = attempt(&ground, &["--agent", "teller.toml"], 0);
    assert_eq!(record["ending"], "finished", "{record:#}");
    let shown =
        json!({"steps": 2, "events": 4, "malformed": 2, "cut_off": true, "not_shown": {"of tomorrow": 1}});
    assert_eq!(record["trajectory"], shown);
    let text = kept(&ground, &document, "trajectory.json");
    let trajectory = Trajectory::parse("trajectory.json", text.as_bytes()).unwrap();
    assert_eq!(trajectory.steps[1].message, "I am done.");
    let notes = "2 lines of the log are no events; the log ends in the middle of an event; in no step: of tomorrow (1)";
    assert_eq!(trajectory.notes.as_deref(), Some(notes));
    let said = ground.infradev(&["run", "show", document["run"].as_str().unwrap()]).exits(0).out;
    assert!(said.contains("2 lines of its log are no events"), "{said}");
    // Half of a last word is none, whatever the exit code.
    ground.write(
        "mine/tell.py",
        &program.replace("turn.started", "thread.started").replace("turn.completed\"}\\n", ""),
    );
    let (record, document) = attempt(&ground, &["--agent", "teller.toml"], 0);
    assert_eq!(record["ending"], "agent_crashed", "{record:#}");
    assert_eq!(record["detail"], "it ended without its last word");
    let count = r#"{"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 4}}"#;
    ground.write("mine/tell.py", &format!("print('{count}')"));
    let counted = attempt(&ground, &["--agent", "teller.toml"], 0).0;
    assert_eq!(counted["own_tokens_off"], json!({"input": 9, "output": 4}), "more than the proxy knows of");
    assert_eq!(record.get("own_tokens_off"), None, "{document:#}");
}

#[test]
fn an_agent_that_fails_and_one_that_cannot_be_started_say_why() {
    let ground = ground();
    let record = attempt_by(&ground, "raise SystemExit(7)", &[]);
    assert_eq!(record["ending"], "agent_crashed");
    assert_eq!(record["detail"], "it ended with exit status 7");
    let agent = "schema = 1\nname = \"none\"\nversion = \"1\"\n[run]\ncommand = [\"no-such-program\"]\n";
    ground.write("none.toml", agent);
    let (record, _) = attempt(&ground, &["--agent", "none.toml"], 0);
    assert_eq!(record["ending"], "agent_crashed");
    assert!(record["detail"].as_str().unwrap().contains("no-such-program"), "{record:#}");
}

#[test]
fn the_tasks_own_patches_are_submissions_that_grade_as_they_must() {
    let ground = ground();
    for (agent, wanted) in [("golden", "resolved"), ("nop", "empty"), ("hollow", "unresolved")] {
        let (record, document) = attempt(&ground, &["--agent", agent], 0);
        assert_eq!(record["submission"], agent);
        assert_eq!(verdict(&ground, &document), wanted, "{agent}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn an_interrupted_attempt_leaves_nothing_and_the_same_command_makes_it_again() {
    let ground = ground();
    // A pipe with a name: opened at both ends once the agent is at work. It lies where it is no part of what the agent is.
    let program = "
import os, time
if os.path.exists('/opt/agent/.git/pipe'):
    with open('/opt/agent/.git/pipe', 'w') as pipe:
        pipe.write('at work')
    while True:
        time.sleep(600)
open('made', 'w').close()
";
    ground.write("mine/mine.py", program);
    ground.write("mine/.git/HEAD", "");
    ground.tool("mkfifo", &["-m", "666", "mine/.git/pipe"]).exits(0);
    let args = ["attempt", "pack", "--agent", "command", "--command", "python {agent}/mine.py"];
    let args = [&args[..], &["--folder", "mine", "--json"]].concat();
    let running = Running::start(ground.path(), &args, &[]);
    let pipe = ground.path().join("mine/.git/pipe");
    let said = tokio::task::spawn_blocking(move || std::fs::read_to_string(pipe)).await.unwrap().unwrap();
    assert_eq!(said, "at work");
    let pid = running.pid();
    running.signal(Signal::SIGINT);
    let ended = running.end().await.exits(130);
    assert!(ended.err.ends_with("run the same command again to resume"), "{}", ended.err);
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[pid]);
    std::fs::remove_file(ground.path().join("mine/.git/pipe")).unwrap();
    let again = ground.infradev(&args).exits(0);
    assert!(again.err.contains("resuming run"), "{}", again.err);
    assert!(again.json()["submissions"][0]["patch_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn an_agent_whose_tokens_are_used_up_is_ended() {
    let ground = ground();
    let model = Model::playing(
        &ground,
        &json!([{"shell": "echo 1 > one"}, {"shell": "echo 2 > two"}, {"hang": true}]),
    );
    let args = ["--agent", "claude-code", "--model", "scripted", "--base-url", model.url()];
    let (record, document) = attempt(&ground, &[&args[..], &["--token-budget", "200"]].concat(), 0);
    assert_eq!(record["ending"], "budget", "{record:#}");
    assert_eq!(record["detail"], "220 tokens of 200");
    assert!(kept(&ground, &document, "patch.diff").contains("b/one"));
}
