//! What an agent may ask of its model's host: a program of ours in the place of an agent, on a scripted model.

mod ground;
mod harm;
mod scripted;

use ground::Ground;
use scripted::{Model, attempt, ground};
use serde_json::{Value, json};

/// A program that sends what its command says: a path, and a body.
const AGENT: &str = r#"
schema = 1
name = "asker"
version = "1"
[install]
folder = "mine"
[model]
wire = "openai-chat"
base_url = "http://127.0.0.1:1"
[run]
command = ["python", "{agent}/ask.py", "{base_url}", "{command}"]
"#;

const PROGRAM: &str = "
import json, sys, urllib.error, urllib.request
for ask in json.loads(sys.argv[2]):
    headers = {'Content-Type': 'application/json', **ask.get('headers', {})}
    asked = urllib.request.Request(sys.argv[1] + ask['path'], json.dumps(ask['body']).encode(), headers)
    try:
        with urllib.request.urlopen(asked) as answer:
            print(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        print(error.code, error.read())
";

/// The record of an agent that asks so, one after another.
fn asks(ground: &Ground, model: &Model, asks: &Value, more: &[&str]) -> Value {
    ground.write("asker.toml", AGENT);
    ground.write("mine/ask.py", PROGRAM);
    let asks = asks.to_string();
    let args = ["--agent", "asker.toml", "--command", &asks, "--model", "m", "--base-url", model.url()];
    attempt(ground, &[&args[..], more].concat(), 0).0
}

fn told(record: &Value) -> Vec<String> {
    let lookups = record["lookups"].as_array().unwrap().iter();
    let word = |lookup: &Value, name: &str| lookup[name].as_str().unwrap().to_owned();
    lookups.map(|lookup| format!("{} {}", word(lookup, "method"), word(lookup, "target"))).collect()
}

#[test]
fn on_every_wire_what_would_do_more_than_answer_is_taken_out_and_on_record() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"done": "ok"}]));
    let own = json!([{"role": "user", "content": "hello"}]);
    let gemini = json!([{"role": "user", "parts": [{"text": "hello"}]}]);
    let record = asks(
        &ground,
        &model,
        &json!([
            {"path": "/v1/messages?beta=true", "headers": {"anthropic-beta": "mcp-client-2025-04-04"},
             "body": {"model": "m", "max_tokens": 9, "messages": own, "mcp_servers": [{"url": "https://a.example"}]}},
            {"path": "/v1/messages/count_tokens", "body": {"model": "m", "messages": own, "container": "c"}},
            {"path": "/v1/responses", "headers": {"openai-organization": "o"},
             "body": {"model": "m", "input": own, "previous_response_id": "r"}},
            {"path": "/v1/chat/completions?a=b", "body": {"model": "m", "messages": own, "of_tomorrow": true}},
            {"path": "/v1beta/models/m:generateContent?fields=candidates",
             "body": {"contents": gemini, "generationConfig": {"routingConfig": {}, "topK": 3}}},
        ]),
        &[],
    );
    assert_eq!(record["ending"], "finished", "{record:#}");
    let told = told(&record);
    for name in [
        "hosted setting mcp_servers",
        "header anthropic-beta: mcp-client-2025-04-04",
        "hosted setting container",
        "hosted setting previous_response_id",
        "header openai-organization",
        "hosted setting of_tomorrow",
        "query a",
        "hosted setting generationConfig.routingConfig",
        "query fields",
    ] {
        assert!(told.contains(&name.to_owned()), "{name}: {told:?}");
    }
    assert_eq!(told.len(), 9, "{told:?}");
    let asked = model.asked();
    let bodies: Vec<&Value> = asked.iter().map(|request| &request["body"]).collect();
    assert_eq!(
        bodies,
        [
            &json!({"model": "m", "max_tokens": 9, "messages": own}),
            &json!({"model": "m", "messages": own}),
            &json!({"model": "m", "input": own}),
            &json!({"model": "m", "messages": own}),
            &json!({"contents": gemini, "generationConfig": {"topK": 3}}),
        ]
    );
    let paths: Vec<&str> = asked.iter().map(|request| request["path"].as_str().unwrap()).collect();
    let last = ["/v1/chat/completions", "/v1beta/models/m:generateContent"];
    assert_eq!((paths[0], &paths[3..]), ("/v1/messages?beta=true", &last[..]));
    assert_eq!(record["metered"]["requests"], 4, "a count is no answer: {record:#}");
}

#[test]
fn a_stream_whose_usage_an_agent_does_not_ask_for_is_counted_all_the_same() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"done": "ok"}]));
    let body = json!({"model": "m", "messages": [], "stream": true});
    let record = asks(&ground, &model, &json!([{"path": "/v1/chat/completions", "body": body}]), &[]);
    assert_eq!(record["metered"]["unmetered"], 0, "{record:#}");
    assert_eq!(record["metered"]["tokens"]["input"], 100);
    assert_eq!(record["lookups"], json!([]));
}

#[test]
fn an_endpoint_that_tells_no_tokens_is_charged_by_bytes_and_the_budget_ends_the_attempt() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"done": "ok", "untold": true}]));
    let body =
        json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(4000)}], "stream": true});
    let ask = json!({"path": "/v1/chat/completions", "body": body});
    let record = asks(&ground, &model, &json!([ask, ask, ask, ask]), &["--token-budget", "2000"]);
    assert_eq!(record["ending"], "budget", "{record:#}");
    let metered = &record["metered"];
    assert_eq!((&metered["requests"], &metered["unmetered"]), (&json!(2), &json!(2)), "{record:#}");
    assert_eq!(metered["tokens"]["input"], 0, "what was told is not mixed with what was not");
    let estimated = metered["estimated"].as_u64().unwrap();
    assert!((2000..3000).contains(&estimated), "{estimated}");
    let detail =
        format!("{estimated} tokens of 2000, {estimated} of them estimated: not all answers told theirs");
    assert_eq!(record["detail"], detail);
    assert_eq!(model.asked().len(), 2);
}

#[test]
fn an_endpoint_that_does_not_take_the_question_for_usage_answers_all_the_same_and_is_charged_by_bytes() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"done": "ok", "untaken": "stream_options"}]));
    let body = json!({"model": "m", "messages": [], "stream": true});
    let ask = json!({"path": "/v1/chat/completions", "body": body});
    // One after the other: the second attempt asks an endpoint that is known by then.
    let record = asks(&ground, &model, &json!([ask, ask]), &["-k", "2", "--jobs", "1"]);
    assert_eq!(record["ending"], "finished", "{record:#}");
    let metered = &record["metered"];
    assert_eq!((&metered["requests"], &metered["failed"]), (&json!(2), &json!(0)), "{record:#}");
    assert_eq!(metered["unmetered"], 2, "{record:#}");
    assert!(metered["estimated"].as_u64().unwrap() > 0, "{record:#}");
    let asked: Vec<Value> = model.asked().into_iter().map(|request| request["body"].clone()).collect();
    let ours =
        json!({"model": "m", "messages": [], "stream": true, "stream_options": {"include_usage": true}});
    assert_eq!(asked, [ours, body.clone(), body.clone(), body.clone(), body]);
}
