//! What of a request reaches the endpoint: what is listed, and nothing else.

use super::*;

/// What the endpoint was asked, its body as JSON, and what is on record of it.
fn sent(path: &str, headers: &str, body: &str) -> (serde_json::Value, String, Vec<String>) {
    let ground = Ground::new(None);
    assert_eq!(ground.ask(&format!("POST {path}"), headers, body.as_bytes()), 200);
    let [_, headers, body] = ground.recorder.asked().remove(0);
    (serde_json::from_str(&body).unwrap(), headers, ground.lookups())
}

#[test]
fn what_is_not_listed_reaches_no_endpoint_and_stands_on_record() {
    let asked = r#"{"model":"m","max_tokens":1,"messages":[],"mcp_servers":[{"url":"https://a.example"}],
        "container":"c","of_tomorrow":{},"fallbacks":null}"#;
    let betas = "Anthropic-Beta: mcp-client-2025-04-04,effort-2025-11-24\r\n";
    for path in ["/v1/messages?beta=true", "/v1/messages/count_tokens"] {
        let (body, headers, lookups) = sent(path, betas, asked);
        let left = serde_json::json!({"model": "m", "max_tokens": 1, "messages": [], "fallbacks": null});
        assert_eq!(body, left, "{path}");
        assert!(headers.contains("anthropic-beta: effort-2025-11-24\r\n"), "{headers}");
        let settings =
            ["mcp_servers", "container", "of_tomorrow"].map(|name| format!("hosted setting {name}"));
        assert_eq!(lookups[..3], settings);
        assert_eq!(lookups[3..], ["header anthropic-beta: mcp-client-2025-04-04"]);
    }
}

#[test]
fn what_another_wire_lists_is_no_setting_of_this_one() {
    let (body, _, lookups) = sent("/v1/responses", "", r#"{"input":[],"messages":[],"contents":[]}"#);
    assert_eq!(body, serde_json::json!({"input": []}));
    assert_eq!(lookups, ["hosted setting messages", "hosted setting contents"]);
}

#[test]
fn a_chats_stream_is_asked_for_its_usage_and_other_wires_are_not() {
    let asked = r#"{"model":"m","stream":true}"#;
    let body = sent("/v1/chat/completions", "", asked).0;
    assert_eq!(body["stream_options"], serde_json::json!({"include_usage": true}));
    for path in ["/v1/messages", "/v1/responses", "/v1/models/m:streamGenerateContent"] {
        assert!(sent(path, "", asked).0.get("stream_options").is_none(), "{path}");
    }
}

#[test]
fn the_key_in_a_query_is_left_out_without_a_word() {
    let ground = Ground::new(None);
    let first = "POST /v1/models/m:streamGenerateContent?alt=sse&key=sk-placeholder&fields=candidates";
    assert_eq!(ground.ask(first, "", b"{}"), 200);
    let [first, ..] = ground.recorder.asked().remove(0);
    assert_eq!(first, "POST /v1/models/m:streamGenerateContent?alt=sse HTTP/1.1");
    assert_eq!(ground.lookups(), ["query fields"]);
}
