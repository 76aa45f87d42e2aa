//! `infradev attempt`: real agents on a scripted model, and programs that behave as agents should not.

mod ground;
mod harm;
mod scripted;

use std::path::Path;

use ground::{Ground, repository};
use harm::{Running, assert_nothing_left, no_process_of};
use infradev_model::atif::Trajectory;
use nix::sys::signal::Signal;
use scripted::{Model, RIGHT, attempt, ground, kept, verdict};
use serde_json::{Value, json};

/// The same for a program of ours.
fn attempt_by(ground: &Ground, program: &str, more: &[&str]) -> Value {
    ground.write("mine/mine.py", program);
    let args = ["--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine"];
    let (mut record, document) = attempt(ground, &[&args, more].concat(), 0);
    // Shown where an assertion on the record fails.
    record["its words"] = kept(ground, &document, "agent.err").into();
    record
}

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
fn nothing_is_left_to_a_later_attempt_in_the_kernels_keyrings_and_no_user_namespace_is_had() {
    let ground = ground();
    let program = "
import ctypes, errno, os, platform, subprocess
libc = ctypes.CDLL(None, use_errno=True)

def refused(call, *args):
    ctypes.set_errno(0)
    assert libc.syscall(call, *args) == -1, call
    return errno.errorcode[ctypes.get_errno()]

add_key, request_key, keyctl = {'x86_64': (248, 249, 250), 'aarch64': (217, 218, 219)}[platform.machine()]
assert refused(add_key, b'user', b'answer', b'42', 2, -4) == 'EPERM'
assert refused(request_key, b'user', b'answer', None, 0) == 'EPERM'
assert refused(keyctl, 0, -4, 0) == 'EPERM'
assert refused(435, None, 0) == 'ENOSYS', 'clone3, whose flags no filter reads'
assert [refused(call, 0, 0) for call in (425, 426, 427)] == ['ENOSYS'] * 3, 'io_uring'
ctypes.set_errno(0)
assert libc.unshare(0x10000000) == -1 and ctypes.get_errno() == errno.EPERM, 'a user namespace'
assert subprocess.run(['sh', '-c', 'exit 3']).returncode == 3, 'processes are started all the same'
";
    let record = attempt_by(&ground, program, &[]);
    assert_eq!(record["ending"], "finished", "{record:#}");
}

#[test]
fn a_prompt_that_no_program_can_be_started_with_is_refused_for_its_task_alone() {
    let ground = ground();
    for file in ["task.toml", "spec.md", "contract.toml", "golden.patch", "official.patch"] {
        ground.write(&format!("pack/tasks/long/{file}"), &ground.read(&format!("pack/tasks/triple/{file}")));
    }
    ground.edit("pack/tasks/long/task.toml", "id = \"triple\"", "id = \"long\"");
    let spec = ground.read("pack/tasks/long/spec.md");
    let long = format!("{spec}\n{}\n", "A line of the specification.\n".repeat(6000));
    ground.write("pack/tasks/long/spec.md", &long);
    ground.write("argument.toml", &AGENT_BY_ARGUMENT.replace("PROMPT", "argument"));
    let args = ["attempt", "pack", "--agent", "argument.toml", "--json"];
    let plan = ground.infradev(&[&args[..], &["--plan"]].concat()).exits(0).json();
    let refused = "agent argument is given its prompt as an argument, which has 131071 bytes at most";
    let rows = plan["planned"].as_array().unwrap();
    let row = |task: &str| rows.iter().find(|row| row["task"] == task).unwrap();
    assert!(row("long")["refused"].as_str().unwrap().starts_with(refused), "{plan:#}");
    assert_eq!((&row("long")["hours"], row("triple").get("refused")), (&json!(0.0), None), "{plan:#}");
    let document = ground.infradev(&args).exits(0).json();
    let records = document["submissions"].as_array().unwrap();
    let of = |task: &str| records.iter().find(|record| record["task"] == task).unwrap();
    assert_eq!(of("triple")["ending"], "finished", "{document:#}");
    let long = of("long");
    assert_eq!((&long["ending"], &long["patch_bytes"]), (&json!("refused"), &json!(0)), "{long:#}");
    let detail = long["detail"].as_str().unwrap();
    assert!(detail.starts_with(refused) && detail.contains("shorten spec.md"), "{detail}");
    let shown = ground.infradev(&args[..4]).exits(0);
    assert!(shown.out.contains("refused"), "{}", shown.out);
    ground.write("argument.toml", &AGENT_BY_ARGUMENT.replace("PROMPT", "stdin"));
    let document = ground.infradev(&args).exits(0).json();
    let endings = document["submissions"].as_array().unwrap().iter().map(|record| &record["ending"]);
    assert!(endings.into_iter().all(|ending| ending == "finished"), "{document:#}");
}

/// An agent that reads nothing.
const AGENT_BY_ARGUMENT: &str = "
schema = 1
name = \"argument\"
version = \"1\"
[run]
command = [\"true\"]
prompt = \"PROMPT\"
";

#[test]
fn what_an_agent_asks_of_other_hosts_is_refused_and_on_record() {
    let ground = ground();
    let program = "
import socket, subprocess, urllib.error, urllib.request
subprocess.run(['git', 'clone', 'https://github.com/a/b'])
try:
    urllib.request.urlopen('http://pypi.org/simple/toy/')
    raise SystemExit('found')
except urllib.error.HTTPError as error:
    assert error.code == 403, error
try:
    socket.create_connection(('8.8.8.8', 53), 3)
    raise SystemExit('the network is there')
except OSError:
    pass
try:
    urllib.request.urlopen('http://127.0.0.1:8472/v1/files')
    raise SystemExit('passed on')
except urllib.error.HTTPError as error:
    assert error.code == 404, error
";
    let record = attempt_by(&ground, program, &[]);
    assert_eq!(record["ending"], "finished", "{record:#}");
    let targets: Vec<&str> = record["lookups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lookup| lookup["target"].as_str().unwrap())
        .collect();
    assert_eq!(targets, ["github.com:443", "http://pypi.org/simple/toy/"]);
}

#[test]
fn a_search_on_the_models_own_host_is_taken_out_of_a_request_and_on_record() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"done": "ok"}]));
    let agent = r#"
schema = 1
name = "asker"
version = "1"
[install]
folder = "mine"
[model]
wire = "openai-responses"
base_url = "http://127.0.0.1:1/v1"
[run]
command = ["python", "{agent}/ask.py", "{base_url}", "{model}", "{key}"]
"#;
    let program = "
import json, sys, urllib.request
body = {'model': sys.argv[2], 'input': [], 'tools': [{'type': 'web_search'}, {'type': 'function', 'name': 'shell'}]}
headers = {'Authorization': 'Bearer ' + sys.argv[3], 'Content-Type': 'application/json'}
asked = urllib.request.Request(sys.argv[1] + '/responses', json.dumps(body).encode(), headers)
print(urllib.request.urlopen(asked).read())
";
    ground.write("asker.toml", agent);
    ground.write("mine/ask.py", program);
    let url = format!("{}/v1", model.url());
    let (record, _) =
        attempt(&ground, &["--agent", "asker.toml", "--model", "scripted", "--base-url", &url], 0);
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert_eq!(record["lookups"][0]["method"], "hosted tool");
    assert_eq!(record["lookups"][0]["target"], "web_search");
    let asked = model.asked();
    assert_eq!(asked[0]["body"]["tools"], json!([{"type": "function", "name": "shell"}]));
    assert_eq!(
        asked[0]["headers"].get("authorization"),
        None,
        "no key is set for it, and the placeholder stays here"
    );
    assert_eq!(record["metered"]["tokens"]["reasoning"], 3, "an answer in one piece is metered too");
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
fn neither_probes_nor_golden_nor_official_tests_nor_the_hosts_folders_are_in_view() {
    let ground = ground();
    let program = "
import os, sys
found = []
control = []
words = (b'any_number_is_tripled', b'triple_of', b'large-numbers', b'test_triple', b'return 3 * x')
for top in os.listdir('/'):
    if top in ('proc', 'sys', 'dev', 'usr', 'lib', 'lib64', 'bin', 'sbin'):
        continue
    for folder, _, names in os.walk('/' + top):
        if 'site-packages' in folder or folder.startswith(sys.base_prefix):
            continue
        for name in names:
            path = os.path.join(folder, name)
            if path == '/opt/agent/mine.py' or not os.path.isfile(path) or path == '/infradev/infradev':
                continue
            text = open(path, 'rb').read()
            found += [(path, word) for word in words if word in text]
            control += [path for word in (b'return 2 * x',) if word in text]
assert '/workspace/toy/model.py' in control, control
names = [name for name, value in os.environ.items() if 'the-real-key' in value or 'API_KEY' in name or 'TOKEN' in name]
assert not found and not names, (found, names)
for path in ('HERE/pack', 'HERE/home/runs', 'HERE/home/builds', '/etc/shadow'):
    assert not os.path.exists(path), path
"
    .replace("HERE", ground.path().canonicalize().unwrap().to_str().unwrap());
    let record = attempt_by(&ground, &program, &[]);
    assert_eq!(record["ending"], "finished", "{record:#}");
}

#[tokio::test(flavor = "current_thread")]
async fn what_an_agent_leaves_running_is_dead_before_the_capture_and_on_record() {
    let ground = ground();
    let program = "
import os, signal, time
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN)
        open('started', 'w').close()
        while True:
            open('written-later', 'a').write('x')
daemon()
while not os.path.exists('started'):
    time.sleep(0.01)
os.mkfifo('pipe')
os.remove('started')
os.symlink('/etc/passwd', 'link')
os.symlink('/workspace/toy/model.py', 'mylink')
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return 3 * x\\n')
os.system('rm -rf .git; mkdir -p deep/.git; echo x > deep/.git/config')
";
    ground.write("mine/mine.py", program);
    let args = ["--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine"];
    let (record, document) = attempt(&ground, &args, 0);
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert_eq!(record["left_running"].as_array().unwrap().len(), 1, "{record:#}");
    let skipped = record["skipped"].as_array().unwrap();
    let mut skipped: Vec<_> = skipped.iter().map(|file| (&file["path"], &file["reason"])).collect();
    skipped.sort_by_key(|(path, _)| path.as_str());
    let wanted =
        [("deep/.git", "git_folder"), ("link", "link_out"), ("mylink", "link_out"), ("pipe", "fifo")];
    assert_eq!(
        skipped,
        wanted
            .map(|(path, reason)| (json!(path), json!(reason)))
            .each_ref()
            .map(|(path, reason)| (path, reason))
    );
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
    assert_eq!(verdict(&ground, &document), "resolved", "no link spoils the change beside it");
}

#[tokio::test(flavor = "current_thread")]
async fn folders_deeper_than_any_path_are_left_out_reported_and_removed_and_the_attempt_stands() {
    let ground = ground();
    let program = "
import os
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return 3 * x\\n')
os.mkdir('a')
os.chdir('a')
for _ in range(30):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
os.mkdir('__pycache__')
";
    ground.write("mine/mine.py", program);
    let args = ["--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine", "-k", "2"];
    let (record, document) = attempt(&ground, &args, 0);
    assert_eq!(document["submissions"].as_array().unwrap().len(), 2);
    assert_eq!(record["ending"], "finished", "{record:#}");
    let skipped = record["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 1, "{record:#}");
    assert_eq!(skipped[0]["reason"], "too_long");
    assert!(kept(&ground, &document, "patch.diff").contains("+    return 3 * x"));
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
}

#[test]
fn an_agents_prompt_is_all_that_its_standard_input_tells() {
    let ground = ground();
    let program = "
import os, sys
assert os.readlink('/proc/self/fd/0') == '/memfd:prompt (deleted)', os.readlink('/proc/self/fd/0')
assert 'Make this change in the source tree' in open('/proc/self/fd/0').read()
assert 'Make this change in the source tree' in sys.stdin.read()
";
    let record = attempt_by(&ground, program, &[]);
    assert_eq!(record["ending"], "finished", "{record:#}");
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
fn an_agent_without_a_key_without_a_model_or_unknown_is_refused_with_what_to_do() {
    let ground = ground();
    let refused = |args: &[&str]| {
        let all: Vec<&str> = ["attempt", "pack"].iter().chain(args).copied().collect();
        ground
            .tool("env", &[&["-u", "ANTHROPIC_API_KEY", env!("CARGO_BIN_EXE_infradev")], &all[..]].concat())
            .err
    };
    ground.write("bad.toml", "schema = 1\nname = \"bad\"\nversion = \"1\"\n[run]\ncomand = [\"x\"]\n");
    insta::assert_snapshot!(
        [
            refused(&["--agent", "claude-kode"]),
            refused(&["--agent", "claude-code"]),
            refused(&["--agent", "claude-code", "--model", "m"]),
            refused(&["--agent", "claude-code", "--model", "m", "--base-url", "localhost"]),
            refused(&["--agent", "command"]),
            refused(&["--agent", "command", "--command", "x", "--folder", "nowhere"]),
            refused(&["--agent", "command", "--command", "x", "--model", "m"]),
            refused(&["--agent", "bad.toml"]),
        ]
        .concat()
    );
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

#[test]
fn an_agent_that_can_not_be_installed_is_a_fault_that_says_why_and_leaves_nothing_half_made() {
    // A store of its own, without the agents that are installed.
    let ground = Ground::new();
    let none = "http://127.0.0.1:1/";
    let variables = [("npm_config_registry", none), ("UV_DEFAULT_INDEX", none), ("UV_HTTP_RETRIES", "0")];
    let install = |agent: &str, variables: &[(&str, &str)]| {
        let args = ["attempt", "pack", "--agent", agent, "--model", "m", "--base-url", none];
        ground.tool_with(variables, env!("CARGO_BIN_EXE_infradev"), &args).exits(3).err
    };
    for (agent, hint) in
        [("codex", "see `npm config get registry`"), ("mini-swe-agent", "see UV_DEFAULT_INDEX")]
    {
        let said = install(agent, &variables);
        assert!(
            said.contains(&format!("agent {agent}")) && said.contains("could not be installed"),
            "{said}"
        );
        assert!(said.contains("not reachable") && said.contains(hint), "{said}");
    }
    let said = install("codex", &[("PATH", "/nonexistent")]);
    assert!(said.contains("needs `node`") && said.contains("apt-get install nodejs npm"), "{said}");
    let folder = ground.path().join("home/agents");
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".locks"]);
    assert!(!ground.path().join("home/runs").exists(), "no run was begun");
}
