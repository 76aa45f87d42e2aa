//! What is counted of answers that break off, or tell too much.

use super::*;

/// `unmetered`, `failed` and input tokens after one request whose answer is read to its end.
fn counted(answer: &'static str) -> (u64, u64, u64) {
    let ground = Ground::answered(answer);
    ground.told("POST /v1/messages", "", b"{}");
    drop(ground.proxy);
    let metered = ground.tally.result().0;
    assert_eq!(metered.requests, 1);
    (metered.unmetered, metered.failed, metered.tokens.input)
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
    data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
    data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n";
const CUT: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\n\
    data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";

#[test]
fn an_answer_that_broke_off_lacks_tokens_and_one_that_was_none_does_not() {
    assert_eq!(counted(STREAM), (0, 0, 9));
    assert_eq!(counted(CUT), (1, 1, 9), "what came is counted, and known to be too little");
    assert_eq!(counted("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"), (0, 1, 0));
    assert_eq!(counted(""), (1, 1, 0), "it was taken, and nobody knows what became of it");
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("requests.jsonl")).unwrap();
    let tally = Arc::new(Tally::new(log, None, None));
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = Endpoint::new(&format!("http://{nowhere}"), None).unwrap();
    let proxy = Proxy::start(Some(endpoint), None, folder.path(), Arc::clone(&tally)).unwrap();
    let mut stream = UnixStream::connect(&proxy.socket).unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2";
    write!(stream, "{head}\r\n\r\n{{}}").unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    assert_eq!(tally.result().0.unmetered, 0, "nobody was reached");
}

#[test]
fn an_agent_that_goes_or_is_killed_before_its_answer_leaves_a_request_without_tokens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let recorder = Recorder { url, asked: Arc::default() };
    let Ground { proxy, tally, _folder, .. } = Ground::of(recorder, None, None);
    let mut stream = UnixStream::connect(&proxy.socket).unwrap();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    let (endpoint, _) = listener.accept().unwrap();
    request(&endpoint);
    drop((stream, proxy));
    let metered = tally.result().0;
    assert_eq!((metered.requests, metered.unmetered), (1, 1));
}

#[test]
fn sums_that_an_endpoint_makes_up_stay_at_the_largest_number() {
    let body = format!("{{\"usage\":{{\"input_tokens\":{0},\"output_tokens\":{0}}}}}", u64::MAX);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let ground = Ground::of(Recorder::saying(answer), None, Some(u64::MAX));
    let statuses = [0, 1].map(|_| ground.ask("POST /v1/responses", "", b"{}"));
    assert_eq!(statuses, [200, 403], "the budget is used up by the first");
    assert_eq!(ground.tally.result().0.tokens.input, u64::MAX);
}

#[test]
fn a_budget_binds_where_answers_tell_no_tokens_by_the_bytes_of_request_and_answer() {
    let body = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(400));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close";
    let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let ground = Ground::of(Recorder::saying(answer), None, Some(200));
    let asked = format!("{{\"messages\":\"{}\"}}", "y".repeat(200));
    let statuses = [0, 1, 2].map(|_| ground.ask("POST /v1/chat/completions", "", asked.as_bytes()));
    assert_eq!(statuses, [200, 200, 403], "the second answer passes the budget");
    let metered = ground.tally.result().0;
    let each = (asked.len() + body.len()) as u64 / 4;
    assert_eq!((metered.estimated, metered.charged()), (2 * each, 2 * each));
    assert_eq!((metered.requests, metered.unmetered, metered.tokens.all()), (2, 2, 0));
}

#[test]
fn an_answer_that_broke_off_is_charged_for_what_it_did_not_tell() {
    let ground = Ground::answered(CUT);
    let asked = format!("{{\"messages\":\"{}\"}}", "y".repeat(400));
    ground.told("POST /v1/messages", "", asked.as_bytes());
    drop(ground.proxy);
    let metered = ground.tally.result().0;
    let body = CUT.split_once("\r\n\r\n").unwrap().1;
    let all = (asked.len() + body.len()) as u64 / 4;
    assert_eq!((metered.tokens.all(), metered.charged()), (10, all), "told ones count among them");
    drop(ground.tally);
    let kept = std::fs::read_to_string(ground._folder.path().join("requests.jsonl")).unwrap();
    assert!(kept.contains(&format!("\"estimated\":{}", all - 10)), "{kept}");
}
