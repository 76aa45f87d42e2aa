//! Endpoints that do not take what the proxy asks of a chat's stream.

use super::*;

const ASKED: &str = r#"{"model":"m","stream":true,"messages":[]}"#;
const OWN: &str = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;

fn answer(status: &str, kind: &str, body: &str) -> String {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close");
    format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A stream without a word on its tokens.
fn stream() -> String {
    let part = r#"data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}"#;
    answer("200 OK", "text/event-stream", &format!("{part}\n\ndata: [DONE]\n\n"))
}

/// The same with its tokens.
fn told() -> String {
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
    answer("200 OK", "text/event-stream", &format!("{usage}\n\ndata: [DONE]\n\n"))
}

fn error(status: &str, message: &str) -> String {
    answer(status, "application/json", &format!(r#"{{"error":{{"message":"{message}"}}}}"#))
}

fn ground(answer: impl Fn(&str) -> String + Send + 'static) -> Ground {
    Ground::of(Recorder::answering(answer), None, None)
}

impl Ground {
    fn chats(&self, body: &str) -> u16 {
        self.ask("POST /v1/chat/completions", "", body.as_bytes())
    }

    /// The bodies that the endpoint was asked with since so many requests.
    fn bodies(&self, since: usize) -> Vec<String> {
        self.recorder.asked().into_iter().skip(since).map(|[_, _, body]| body).collect()
    }
}

/// As the proxy writes it.
fn added() -> String {
    ASKED.replace("[]}", r#"[],"stream_options":{"include_usage":true}}"#)
}

#[test]
fn a_stream_whose_host_refuses_to_tell_usage_is_asked_for_once_more_as_the_agent_wrote_it_and_then_so_at_once()
 {
    for refusal in [
        error("400 Bad Request", "Unrecognized request argument"),
        error("422 Unprocessable Entity", "extra fields"),
        error("500 Internal Server Error", "create() got an unexpected keyword argument 'stream_options'"),
    ] {
        let ground = ground(move |body| match body.contains("stream_options") {
            true => refusal.clone(),
            false => stream(),
        });
        assert_eq!(ground.chats(ASKED), 200);
        assert_eq!(ground.bodies(0), [added(), ASKED.to_owned()]);
        assert_eq!(ground.chats(ASKED), 200);
        assert_eq!(ground.bodies(2), [ASKED], "the endpoint is known by now");
        let (metered, _, last) = ground.tally.result();
        assert_eq!((metered.requests, metered.failed, metered.unmetered), (2, 0, 2), "the agent's own alone");
        assert!(metered.estimated > 2 * ASKED.len() as u64 / 4, "charged by its bytes: {metered:?}");
        assert_eq!(last, Last::Answered);
        // Another model of the endpoint may be served by another host, and another attempt asks the same endpoint.
        ground.chats(&ASKED.replace("\"m\"", "\"n\""));
        assert!(ground.bodies(3)[0].contains("stream_options"));
        drop(ground.proxy);
        let log = std::fs::read_to_string(ground._folder.path().join("requests.jsonl")).unwrap();
        assert!(
            log.contains("the question for the stream's usage is not taken: asked again without"),
            "{log}"
        );
    }
}

#[test]
fn a_refusal_of_something_else_is_passed_on_and_costs_no_second_request_once_a_stream_told_its_usage() {
    let ground = ground(|body| match body.contains("too long") {
        true => error("400 Bad Request", "This model's maximum context length is 8"),
        false => told(),
    });
    let long = ASKED.replace("[]", r#"["too long"]"#);
    assert_eq!(ground.chats(&long), 400);
    assert_eq!(ground.bodies(0).len(), 2, "nothing was known of the endpoint");
    assert_eq!(ground.chats(ASKED), 200);
    assert_eq!(ground.chats(&long), 400);
    assert_eq!(ground.chats(ASKED), 200);
    let asked = ground.bodies(2);
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|body| body.contains("include_usage")), "it was not given up: {asked:?}");
    let (metered, _, _) = ground.tally.result();
    assert_eq!((metered.requests, metered.failed, metered.unmetered), (4, 2, 0));
    assert_eq!(metered.tokens.all(), 14);
}

#[test]
fn neither_an_agents_own_question_nor_another_kind_of_error_is_asked_again() {
    let own = ground(|_| error("400 Bad Request", "stream_options are not known"));
    assert_eq!(own.chats(OWN), 400);
    assert_eq!(own.bodies(0), [OWN]);
    let busy = ground(|_| error("503 Service Unavailable", "Overloaded"));
    let told = busy.told("POST /v1/chat/completions", "", ASKED.as_bytes());
    assert!(
        told.starts_with("HTTP/1.1 503") && told.ends_with(r#"{"error":{"message":"Overloaded"}}"#),
        "{told}"
    );
    assert_eq!(busy.bodies(0).len(), 1);
    assert_eq!(busy.tally.result().2, Last::Status(503, "Overloaded".into()));
}

#[test]
fn an_answer_in_one_piece_does_not_make_the_proxy_forget_to_ask_streams() {
    // A host that takes 0 for no, as the proxy does not.
    let ground = ground(|body| match body.contains("\"stream\":0") && body.contains("stream_options") {
        true => error("400 Bad Request", "stream_options without stream"),
        false if body.contains("\"stream\":0") => answer("200 OK", "application/json", "{}"),
        false => told(),
    });
    assert_eq!(ground.chats(&ASKED.replace("true", "0")), 200);
    assert_eq!(ground.chats(ASKED), 200);
    assert!(ground.bodies(2)[0].contains("include_usage"));
    assert_eq!(ground.tally.result().0.tokens.all(), 7);
}
