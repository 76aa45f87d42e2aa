//! `infradev curate` with GitHub beside it: a server on this machine that gives recorded answers.

mod ground;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use ground::{Ground, Said};
use serde_json::{Value, json};

/// Answers requests one after another, each with the next of what was recorded, and keeps what was asked.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn answering(answers: Vec<(&'static str, Value)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/graphql", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for (head, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut headers, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    headers += &line;
                }
                let mut bytes = vec![0; length];
                reader.read_exact(&mut bytes).unwrap();
                kept.lock().unwrap().push((headers, serde_json::from_slice(&bytes).unwrap()));
                let body = body.to_string();
                let text = format!(
                    "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(text.as_bytes()).unwrap();
            }
        });
        Server { url, asked }
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

fn with_changes() -> Ground {
    let ground = Ground::new();
    ground.git(&["init", "-q", "-b", "main", "repo"]);
    ground.git(&["-C", "repo", "remote", "add", "origin", "https://github.com/ours/stack.git"]);
    ground.write("repo/pkg/a.py", "X = 1\n");
    let commit = |message: &str| {
        ground.git(&["-C", "repo", "add", "-A"]);
        ground.git(&["-C", "repo", "commit", "-q", "-m", message]);
    };
    commit("Begin");
    for (number, name) in [(1, "one"), (2, "two"), (3, "three")] {
        ground.write(&format!("repo/pkg/{name}.py"), &format!("def {name}(x):\n    return x * {number}\n"));
        let test =
            format!("from pkg.{name} import {name}\n\n\ndef test_{name}():\n    assert {name}(0) == 0\n");
        ground.write(&format!("repo/tests/test_{name}.py"), &test);
        commit(&format!("Multiplication by {name} (#{number})"));
    }
    ground
}

fn curate(ground: &Ground, variables: &[(&str, &str)], more: &[&str]) -> Said {
    let args = [&["curate", "repo", "--json"], more].concat();
    ground.tool_with(variables, env!("CARGO_BIN_EXE_infradev"), &args)
}

fn pull(number: u32, body: &str, labels: &[&str]) -> Value {
    let nodes: Vec<Value> = labels.iter().map(|name| json!({ "name": name })).collect();
    json!({
        "url": format!("https://github.com/ours/stack/pull/{number}"),
        "title": format!("Pull {number}"), "body": body, "labels": { "nodes": nodes }
    })
}

fn candidate(document: &Value, number: &str) -> Value {
    document["candidates"].as_array().unwrap().iter().find(|c| c["number"] == number).unwrap().clone()
}

const TOKEN: &str = "a-token-of-no-one";

#[test]
fn descriptions_and_labels_are_asked_for_once_and_speak_for_area_and_kind() {
    let ground = with_changes();
    let server = Server::answering(vec![(
        "200 OK",
        json!({ "data": { "repository": {
            "p1": pull(1, "Rounds the wrong way.", &["bug", "rl"]), "p2": pull(2, "", &[]), "p3": null } },
            "errors": [{ "type": "NOT_FOUND", "message": "no pull request 3" }] }),
    )]);
    let variables = [("GITHUB_TOKEN", TOKEN), ("GITHUB_GRAPHQL_URL", server.url.as_str())];
    let document = curate(&ground, &variables, &[]).exits(0).json();
    assert_eq!(
        document["pulls"],
        json!({ "repository": "ours/stack", "known": 2, "absent": 1, "stopped": null })
    );
    let one = candidate(&document, "#1");
    assert_eq!(one["pull"]["labels"], json!(["bug", "rl"]));
    assert_eq!((&one["facts"]["kind"]["is"], &one["facts"]["area"]["is"]), (&json!("fix"), &json!("rl")));
    assert_eq!(one["facts"]["kind"]["evidence"][0], json!({ "what": "bug", "place": "label" }));
    assert!(candidate(&document, "#3").get("pull").is_none());
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].0.contains(&format!("Bearer {TOKEN}")), "{}", asked[0].0);
    assert_eq!(asked[0].1["variables"], json!({ "owner": "ours", "name": "stack" }));
    // All is known now: nobody listens any more, and nobody is asked.
    let again = curate(&ground, &variables, &[]).exits(0);
    assert_eq!((again.json(), again.err.as_str()), (document, ""));
}

#[test]
fn what_github_refuses_is_said_and_messages_of_commits_stand_in() {
    let ground = with_changes();
    let mut told = String::new();
    for (head, body) in [
        ("401 Unauthorized", json!({ "message": "Bad credentials" })),
        (
            "200 OK",
            json!({ "data": { "repository": null }, "errors": [{ "type": "NOT_FOUND", "message": "x" }] }),
        ),
        ("200 OK", json!({ "data": null, "errors": [{ "type": "RATE_LIMITED", "message": "x" }] })),
        ("403 Forbidden\r\nretry-after: 120", json!({ "message": "secondary rate limit" })),
        ("403 Forbidden", json!({ "message": "no" })),
        ("502 Bad Gateway", json!({})),
        ("200 OK", json!("<html>")),
        ("200 OK", json!({ "data": null, "errors": [{ "message": "Something else" }] })),
    ] {
        let server = Server::answering(vec![(head, body.clone())]);
        let variables = [("GITHUB_TOKEN", TOKEN), ("GITHUB_GRAPHQL_URL", server.url.as_str())];
        let said = curate(&ground, &variables, &["--quiet"]).exits(0);
        assert_eq!(said.json()["candidates"].as_array().unwrap().len(), 3);
        assert!(!said.err.contains(TOKEN));
        told += &format!("{head} {body}\n  {}", said.err);
    }
    insta::assert_snapshot!(told);
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/graphql", listener.local_addr().unwrap())
    };
    let said = curate(&ground, &[("GITHUB_TOKEN", TOKEN), ("GITHUB_GRAPHQL_URL", &nobody)], &[]).exits(0);
    assert!(said.err.contains("GitHub could not be reached"), "{}", said.err);
}

#[test]
fn nothing_is_asked_without_a_token_or_where_it_is_left_out() {
    let ground = with_changes();
    let nowhere = "http://127.0.0.1:9/graphql";
    for (variables, more) in [
        (&[("GITHUB_GRAPHQL_URL", nowhere)][..], &[][..]),
        (&[("GITHUB_GRAPHQL_URL", nowhere), ("GITHUB_TOKEN", " ")][..], &[][..]),
        (&[("GITHUB_GRAPHQL_URL", nowhere), ("GITHUB_TOKEN", TOKEN)][..], &["--no-github"][..]),
    ] {
        let document = curate(&ground, variables, more).exits(0).json();
        assert!(document.get("pulls").is_none(), "{document:#}");
    }
    ground.git(&["-C", "repo", "remote", "remove", "origin"]);
    let said = curate(&ground, &[("GITHUB_GRAPHQL_URL", nowhere), ("GITHUB_TOKEN", TOKEN)], &[]).exits(0);
    assert!(said.json().get("pulls").is_none(), "it was cloned from nowhere on GitHub");
}

#[test]
fn a_token_is_sent_over_no_open_wire() {
    let ground = with_changes();
    let mut told = String::new();
    for (variables, more) in [
        (&[("GITHUB_TOKEN", TOKEN), ("GITHUB_GRAPHQL_URL", "http://example.org/graphql")][..], &[][..]),
        (&[("GITHUB_TOKEN", TOKEN), ("GITHUB_GRAPHQL_URL", "graphql")][..], &[][..]),
        (&[("GITHUB_TOKEN", "a\u{7}b")][..], &[][..]),
        (&[("GITHUB_TOKEN", TOKEN)][..], &["--github", "stack"][..]),
        (&[][..], &["--github", "ours/stack"][..]),
    ] {
        let said = curate(&ground, variables, more).exits(2);
        assert!(!said.err.contains(TOKEN));
        told += &format!("{variables:?} {more:?}\n{}\n", said.err);
    }
    insta::assert_snapshot!(told.replace(TOKEN, "TOKEN"));
}
