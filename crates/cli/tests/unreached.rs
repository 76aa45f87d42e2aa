//! `infradev attempt` where the model's endpoint is not there: what is made again, how often, and what is not.

mod ground;
mod harm;
mod scripted;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use ground::{Ground, repository};
use harm::{Running, Served, assert_nothing_left, no_process_of};
use nix::sys::signal::Signal;
use scripted::attempt;
use serde_json::{Value, json};

/// An agent of ours that asks its model one question, and changes the tree once that is answered.
const AGENT: &str = r#"
schema = 1
name = "asker"
version = "1"
[install]
folder = "mine"
[model]
wire = "openai-responses"
base_url = "http://127.0.0.1:1/v1"
[run]
command = ["python", "{agent}/ask.py", "{base_url}", "{model}"]
"#;

const PROGRAM: &str = "
import json, os, sys, urllib.request
assert not os.path.exists('begun'), 'the workspace of an earlier try'
open('begun', 'w').close()
body = json.dumps({'model': sys.argv[2], 'input': []}).encode()
asked = urllib.request.Request(sys.argv[1] + '/responses', body, {'Content-Type': 'application/json'})
urllib.request.urlopen(asked).read()
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return 3 * x\\n')
";

fn prepared() -> Ground {
    let ground = Ground::new();
    ground.write("asker.toml", AGENT);
    ground.write("mine/ask.py", PROGRAM);
    ground.write("script.json", &json!([{"done": "ok"}]).to_string());
    ground
}

/// A port at which nobody listens.
fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

fn args(url: &str) -> Vec<&str> {
    vec!["attempt", "pack", "--json", "--agent", "asker.toml", "--model", "scripted", "--base-url", url]
}

/// Lines of a run's journal that tell a fault.
fn faults(ground: &Ground, run: &Value) -> usize {
    let journal = ground.read(&format!("home/runs/{}/journal.jsonl", run.as_str().unwrap()));
    journal.lines().filter(|line| line.contains("\"trial_fault\"")).count()
}

#[test]
fn an_endpoint_that_comes_up_between_two_tries_is_reached_by_the_second_and_the_slot_is_free_meanwhile() {
    let ground = prepared();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // One slot for two attempts: the second begins while the first waits.
    let mut running = {
        let _inside = runtime.enter();
        Running::start(ground.path(), &[&args(&url)[..], &["-k", "2", "--jobs", "1"]].concat(), &[])
    };
    let told = RefCell::new(BTreeSet::new());
    let both = runtime.block_on(running.says(|line| {
        if line.contains("trying again: the endpoint could not be reached") {
            let label = line.split(": ").next().unwrap().to_owned();
            told.borrow_mut().insert(label);
        }
        told.borrow().len() == 2
    }));
    assert!(both, "{told:?}");
    let server = repository().join("fixtures/model-server/model_server.py");
    let script = ground.path().join("script.json");
    let model = Served::start("python3", &[server.as_path(), &script, Path::new("--port"), Path::new(&port)]);
    let document = runtime.block_on(running.end()).exits(0).json();
    for record in document["submissions"].as_array().unwrap() {
        assert_eq!(record["ending"], "finished", "{record:#}");
        assert_eq!(record["tries"], 2, "{record:#}");
        assert!(record["patch_bytes"].as_u64().unwrap() > 0);
    }
    assert_eq!(faults(&ground, &document["run"]), 2);
    drop(model);
    assert_nothing_left(ground.path(), &[]);
}

#[test]
fn an_endpoint_that_stays_down_is_a_fault_and_one_try_is_no_other() {
    let ground = prepared();
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    let said = ground.infradev(&[&args(&url)[..], &["--tries", "1"]].concat()).exits(3);
    let document = said.json();
    let record = &document["submissions"][0];
    assert_eq!((&record["ending"], &record["tries"]), (&json!("endpoint_unreachable"), &json!(1)));
    assert!(!said.err.contains("trying again"), "{}", said.err);
    assert!(said.err.contains("the same command makes them again"), "{}", said.err);
    assert_eq!(faults(&ground, &document["run"]), 1);
    // All tries of all commands are counted.
    let again = ground.infradev(&[&args(&url)[..], &["--tries", "1"]].concat()).exits(3).json();
    assert_eq!((&again["run"], &again["submissions"][0]["tries"]), (&document["run"], &json!(2)));
}

#[test]
fn an_endpoint_that_answers_with_errors_is_tried_as_often_as_asked_and_no_more() {
    let ground = prepared();
    let script = json!([{"status": 529, "message": "Overloaded"}]);
    let model = scripted::Model::playing(&ground, &script);
    let url = format!("{}/v1", model.url());
    let args = ["--agent", "asker.toml", "--model", "scripted", "--base-url", &url, "--tries", "2"];
    let (record, document) = attempt(&ground, &args, 3);
    assert_eq!((&record["ending"], &record["tries"]), (&json!("endpoint_unreachable"), &json!(2)));
    assert!(record["detail"].as_str().unwrap().contains("529: Overloaded"), "{record:#}");
    assert_eq!(faults(&ground, &document["run"]), 2);
}

#[test]
fn a_key_that_is_not_taken_is_asked_with_once_since_no_waiting_mends_it() {
    for status in [401, 403, 404] {
        let ground = prepared();
        let model = scripted::Model::playing(&ground, &json!([{"status": status, "message": "no"}]));
        let url = format!("{}/v1", model.url());
        let args = ["--agent", "asker.toml", "--model", "scripted", "--base-url", &url, "--tries", "5"];
        let (record, document) = attempt(&ground, &args, 3);
        assert_eq!((&record["ending"], &record["tries"]), (&json!("endpoint_unreachable"), &json!(1)));
        assert!(record["detail"].as_str().unwrap().contains(&format!("{status}: no")), "{record:#}");
        assert_eq!(faults(&ground, &document["run"]), 1);
    }
}

/// The first line of a request, which is read to its end.
fn read_request(reader: &mut impl BufRead) -> String {
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    first
}

fn answer(status: &str, body: &str) -> String {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close");
    format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

const SAID: &str = r#"{"id":"r","object":"response","status":"completed","output":[],"usage":{"input_tokens":5,"output_tokens":2}}"#;

/// An endpoint that answers the first request, and closes the connection of each further one; `stays`: whether it listens on.
fn closing(stays: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut answered = false;
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let first = read_request(&mut reader);
            if first.starts_with("HEAD") || !answered {
                answered |= !first.starts_with("HEAD");
                let said = if first.starts_with("HEAD") { "" } else { SAID };
                reader.get_mut().write_all(answer("200 OK", said).as_bytes()).unwrap();
                if !stays {
                    return;
                }
            }
        }
    });
    format!("http://127.0.0.1:{port}/v1")
}

/// An endpoint that is overloaded at its second request, and at no other.
fn overloaded_once() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut asked = 0;
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let said = match read_request(&mut reader).starts_with("HEAD") {
                true => answer("200 OK", ""),
                false => {
                    asked += 1;
                    let error = answer("529 Overloaded", r#"{"error":{"message":"Overloaded"}}"#);
                    if asked == 2 { error } else { answer("200 OK", SAID) }
                }
            };
            let _ = reader.get_mut().write_all(said.as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}/v1")
}

/// The same agent, asking twice.
fn asking_twice() -> String {
    PROGRAM.replace(
        "urllib.request.urlopen(asked).read()",
        "for _ in range(2):\n    urllib.request.urlopen(asked).read()",
    )
}

#[test]
fn what_all_tries_used_together_is_told_beside_what_the_last_one_did() {
    let ground = prepared();
    ground.write("mine/ask.py", &asking_twice());
    ground.write(
        "prices.toml",
        "schema = 1\n[[price]]\nmodels = [\"scripted\"]\ndate = \"2026-11-30\"\nsource = \"the test\"\ninput = 2.0\noutput = 10.0\n",
    );
    let url = overloaded_once();
    let args = [&args(&url)[..], &["--prices", "prices.toml"]].concat();
    let document = ground.infradev(&args).exits(0).json();
    let record = &document["submissions"][0];
    assert_eq!((&record["ending"], &record["tries"]), (&json!("finished"), &json!(2)), "{record:#}");
    let counts = |of: &Value| {
        let metered = &of["metered"];
        let usd = of["cost"]["usd"].as_f64().unwrap() * 1e6;
        let counts = ["requests", "failed"].map(|name| metered[name].as_u64().unwrap());
        let tokens = ["input", "output"].map(|name| metered["tokens"][name].as_u64().unwrap());
        (counts, tokens, usd.round())
    };
    assert_eq!(counts(record), ([2, 0], [10, 4], 60.0), "the last one alone: {record:#}");
    assert_eq!(counts(&record["all_tries"]), ([4, 1], [15, 6], 90.0), "{record:#}");
    assert_eq!(record["all_tries"]["metered"]["models"][0]["requests"], 4);
    let shown = ground.infradev(&["run", "show", "last"]).exits(0).out;
    assert!(shown.contains("all 2 tries together: 4 requests, 15+6 tokens, cost $0.00"), "{shown}");
    // One try is all there is.
    let once = ground.infradev(&args).exits(0).json();
    assert_eq!(once["submissions"][0].get("all_tries"), None, "{once:#}");
}

#[test]
fn a_connection_that_closes_after_an_answer_is_the_endpoints_fault_only_where_that_is_away() {
    let ground = prepared();
    ground.write("mine/ask.py", &asking_twice());
    let ending = |url: &str, code: i32| {
        let said = ground.infradev(&[&args(url)[..], &["--tries", "1"]].concat()).exits(code);
        said.json()["submissions"][0]["ending"].clone()
    };
    assert_eq!(ending(&closing(true), 0), "agent_crashed");
    assert_eq!(ending(&closing(false), 3), "endpoint_unreachable");
}

#[test]
fn an_agent_that_fails_by_itself_is_not_tried_again() {
    let ground = prepared();
    ground.write("mine/mine.py", "raise SystemExit(7)");
    let args =
        ["attempt", "pack", "--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine"];
    let said = ground.infradev(&[&args[..], &["--tries", "5", "--json"]].concat()).exits(0);
    let record = &said.json()["submissions"][0];
    assert_eq!((&record["ending"], &record["tries"]), (&json!("agent_crashed"), &json!(1)));
    assert!(!said.err.contains("trying again"), "{}", said.err);
}

#[tokio::test(flavor = "current_thread")]
async fn an_interrupt_ends_the_wait_for_an_endpoint_and_leaves_nothing() {
    let ground = prepared();
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    let mut running = Running::start(ground.path(), &args(&url), &[]);
    let pid = running.pid();
    assert!(running.says(|line| line.contains("waiting for the endpoint, 60 s at most")).await);
    running.signal(Signal::SIGINT);
    let ended = running.end().await.exits(130);
    assert!(ended.err.ends_with("run the same command again to resume"), "{}", ended.err);
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[pid]);
}
