//! `infradev attempt`: what an agent sees, what it reaches, and what of that is on record.

mod ground;
mod harm;
mod scripted;

use scripted::{Model, attempt, attempt_by, ground};
use serde_json::json;

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
