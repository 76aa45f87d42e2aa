use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use infradev_model::AgentSpec;

use super::*;
use crate::secret::GivenKey;
use crate::tally::Last;

mod bounded;
mod counting;
mod listed;
mod usage;

#[test]
fn other_hosts_are_known_whichever_way_they_are_asked_for() {
    let asked = |method: Method, uri: &str| elsewhere(&method, &uri.parse().unwrap());
    assert_eq!(asked(Method::CONNECT, "github.com:443").unwrap(), "github.com:443");
    assert_eq!(asked(Method::GET, "http://pypi.org/simple/").unwrap(), "http://pypi.org/simple/");
    assert_eq!(asked(Method::POST, "/v1/messages"), None);
    assert_eq!(asked(Method::POST, "http://127.0.0.1:8472/v1/messages"), None);
    assert_eq!(asked(Method::CONNECT, "127.0.0.1:8472"), None, "a tunnel to the proxy itself");
    assert!(asked(Method::CONNECT, "127.0.0.1:22").is_some());
}

#[test]
fn a_tunnel_to_the_proxy_itself_leads_to_the_proxy_and_one_elsewhere_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("requests.jsonl")).unwrap();
    let tally = Arc::new(Tally::new(log, None, None));
    let proxy = Proxy::start(None, None, folder.path(), Arc::clone(&tally)).unwrap();
    let asked = |target: &str| {
        let mut stream = UnixStream::connect(&proxy.socket).unwrap();
        write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
        let mut answer = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && answer.read_line(&mut head).unwrap() > 0 {}
        if head.starts_with("HTTP/1.1 200") {
            write!(stream, "GET /v1/files HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
            answer.read_to_string(&mut head).unwrap();
        }
        head
    };
    let through = asked("127.0.0.1:8472");
    assert!(through.starts_with("HTTP/1.1 200") && through.contains("404 Not Found"), "{through}");
    assert!(asked("github.com:443").starts_with("HTTP/1.1 403"));
    let targets: Vec<String> = tally.result().1.into_iter().map(|lookup| lookup.target).collect();
    assert_eq!(targets, ["github.com:443"]);
}

#[test]
fn how_long_an_endpoint_asks_to_be_left_alone_is_kept_as_long_as_it_is_its_last_word() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for head in ["429 Too Many Requests\r\nRetry-After: 7", "200 OK"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            let mut asked = BufReader::new(stream.try_clone().unwrap());
            while line != "\r\n" {
                line.clear();
                asked.read_line(&mut line).unwrap();
            }
            let rest = "Connection: close\r\nContent-Length: 2\r\n\r\n{}";
            write!(stream, "HTTP/1.1 {head}\r\n{rest}").unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("requests.jsonl")).unwrap();
    let tally = Arc::new(Tally::new(log, None, None));
    let endpoint = Endpoint::new(&url, None).unwrap();
    let proxy = Proxy::start(Some(endpoint), None, folder.path(), Arc::clone(&tally)).unwrap();
    let ask = || {
        let mut stream = UnixStream::connect(&proxy.socket).unwrap();
        let head = "POST /v1/messages HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
        write!(stream, "{head}Content-Length: 2\r\n\r\n{{}}").unwrap();
        stream.read_to_string(&mut String::new()).unwrap();
        tally.retry_after()
    };
    assert_eq!([ask(), ask()], [Some(Duration::from_secs(7)), None]);
    server.join().unwrap();
}

#[test]
fn an_endpoint_is_a_plain_url_and_its_path_is_the_agents_too() {
    let endpoint = |url: &str| Endpoint::new(url, Some(given("real")));
    assert_eq!(endpoint("https://a.example/v1/").unwrap().inside(), "http://127.0.0.1:8472/v1");
    assert!(!format!("{:?}", endpoint("https://a.example/v1")).contains("real"));
    for url in ["a.example", "ftp://a.example", "https://user:word@a.example", "https://a.example?x=1"] {
        assert!(matches!(endpoint(url), Err(AgentError::Endpoint { .. })), "{url}");
    }
}

const KEY: &str = "the-real-key";

fn given(key: &str) -> GivenKey {
    GivenKey { variable: "OPENAI_API_KEY".to_owned(), text: key.into() }
}

/// An endpoint that keeps what it was asked: the first line, the headers in lower case, the body.
struct Recorder {
    url: String,
    asked: Arc<std::sync::Mutex<Vec<[String; 3]>>>,
}

impl Recorder {
    /// Answers each request with 7 tokens of OpenAI's responses, as long as the test's process is there.
    fn start() -> Recorder {
        let body = r#"{"usage":{"input_tokens":5,"output_tokens":2}}"#;
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
        Recorder::saying(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// Answers each with these bytes, and closes.
    fn saying(answer: String) -> Recorder {
        Recorder::answering(move |_| answer.clone())
    }

    /// Answers each by its body, and closes.
    fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> Recorder {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let asked = request(&stream);
                let answer = answer(&asked[2]);
                kept.lock().unwrap().push(asked);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Recorder { url, asked }
    }

    fn asked(&self) -> Vec<[String; 3]> {
        self.asked.lock().unwrap().clone()
    }
}

fn request(stream: &std::net::TcpStream) -> [String; 3] {
    let mut reader = BufReader::new(stream);
    let (mut first, mut headers, mut line) = (String::new(), String::new(), String::new());
    reader.read_line(&mut first).unwrap();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        headers.push_str(&line.to_lowercase());
    }
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    [first.trim_end().to_owned(), headers, String::from_utf8(body).unwrap()]
}

/// A proxy to a recorder, and what is asked of it.
struct Ground {
    recorder: Recorder,
    proxy: Proxy,
    tally: Arc<Tally>,
    _folder: tempfile::TempDir,
}

impl Ground {
    fn new(budget: Option<u64>) -> Ground {
        Ground::of(Recorder::start(), None, budget)
    }

    /// One whose endpoint answers each request with these bytes.
    fn answered(answer: &'static str) -> Ground {
        Ground::of(Recorder::saying(answer.to_owned()), None, None)
    }

    fn of(recorder: Recorder, models: Option<Models>, budget: Option<u64>) -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(folder.path().join("requests.jsonl")).unwrap();
        let tally = Arc::new(Tally::new(log, budget, None));
        let endpoint = Endpoint::new(&recorder.url, Some(given(KEY))).unwrap();
        let proxy = Proxy::start(Some(endpoint), models, folder.path(), Arc::clone(&tally)).unwrap();
        Ground { recorder, proxy, tally, _folder: folder }
    }

    /// The status of the answer, which is read to its end.
    fn ask(&self, first: &str, headers: &str, body: &[u8]) -> u16 {
        self.told(first, headers, body)[9..12].parse().unwrap()
    }

    /// The answer, head and body.
    fn told(&self, first: &str, headers: &str, body: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.proxy.socket).unwrap();
        let fixed = "Host: a\r\nAuthorization: Bearer placeholder\r\nConnection: close";
        let length = body.len();
        let head = format!("{first} HTTP/1.1\r\n{fixed}\r\nContent-Length: {length}\r\n{headers}\r\n");
        // At once: what is refused by its head is answered, and closed, with its body unread.
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn lookups(&self) -> Vec<String> {
        let lookups = self.tally.result().1;
        lookups.into_iter().map(|lookup| format!("{} {}", lookup.method, lookup.target)).collect()
    }
}

const SEARCH: &str =
    r#"{"model":"m","tools":[{"type":"web_search"},{"type":"function","name":"shell"}],"input":[]}"#;

#[test]
fn no_way_of_writing_a_path_leads_elsewhere_on_the_endpoints_host() {
    let ground = Ground::new(None);
    for (first, status) in [
        ("GET /v1/models/..\\files", 400),
        ("POST /v1/models/..\\responses", 400),
        ("POST /v1/models/..\\..\\other\\place", 400),
        ("POST /v1/responses/", 400),
        ("POST /v1//responses", 400),
        ("GET /v1/models/..%2ffiles", 400),
        ("GET /v1/models/..%5Cfiles", 400),
        ("GET /v1/models/%2e%2e/files", 400),
        ("GET /v1/models/..", 400),
        ("GET /v1/models/../files", 400),
        ("DELETE /v1/models/m", 405),
        ("GET /v1/responses", 405),
        ("PUT /v1/responses", 405),
        ("GET /v1/files", 404),
        ("POST /responses", 404),
        ("POST /v1/threads/t/messages", 404),
    ] {
        assert_eq!(ground.ask(first, "", SEARCH.as_bytes()), status, "{first}");
        let recorded = ground.lookups().contains(&first.to_owned());
        assert_eq!(recorded, status != 404, "{first}: {:?}", ground.lookups());
    }
    assert!(ground.recorder.asked().is_empty(), "{:?}", ground.recorder.asked());
    assert_eq!(ground.tally.result().0.requests, 0);
}

#[test]
fn what_is_sent_on_is_what_was_read_and_no_more() {
    let ground = Ground::new(None);
    let utf16: Vec<u8> = SEARCH.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let twice = br#"{"tools":[],"tools":[{"type":"web_search"}]}"#;
    for (headers, body) in [
        ("Content-Type: application/json; charset=utf-16\r\n", &utf16[..]),
        ("", &twice[..]),
        ("", b"[]"),
        ("", b"model=m"),
        ("", b""),
        ("Content-Encoding: gzip\r\n", b"{}"),
        ("Content-Encoding: identity\r\n", b"{}"),
    ] {
        assert_eq!(ground.ask("POST /v1/responses", headers, body), 400);
    }
    assert!(ground.recorder.asked().is_empty());
    assert_eq!(ground.tally.result().0.requests, 0);
    assert!(ground.lookups().iter().all(|lookup| lookup.starts_with("POST /v1/responses: ")));
    let headers = "Content-Type: application/json; charset=utf-16\r\nX-HTTP-Method-Override: DELETE\r\n";
    assert_eq!(ground.ask("POST /v1/responses?a=%2f..&api-version=v1", headers, SEARCH.as_bytes()), 200);
    let [first, headers, body] = &ground.recorder.asked()[0];
    assert_eq!(first, "POST /v1/responses?api-version=v1 HTTP/1.1");
    assert_eq!(body, r#"{"model":"m","tools":[{"type":"function","name":"shell"}],"input":[]}"#);
    assert!(headers.contains("content-type: application/json\r\n"), "{headers}");
    assert!(headers.contains("authorization: bearer the-real-key\r\n"), "{headers}");
    assert!(!headers.contains("override") && !headers.contains("utf-16"), "{headers}");
    for told in ["hosted tool web_search", "header x-http-method-override", "query a"] {
        assert!(ground.lookups().contains(&told.to_owned()), "{:?}", ground.lookups());
    }
    assert_eq!(ground.ask("GET /v1/models?limit=2", "", b"{}"), 200);
    let [first, _, body] = &ground.recorder.asked()[1];
    assert_eq!((first.as_str(), body.as_str()), ("GET /v1/models?limit=2 HTTP/1.1", ""));
}

#[test]
fn every_answer_of_a_model_is_counted_and_none_is_given_beyond_the_budget() {
    let ground = Ground::new(Some(10));
    let mut statuses = Vec::new();
    for path in ["/v1/responses/", "/v1/models/..\\responses", "/v1/responses/compact", "/v1/responses"] {
        for _ in 0..3 {
            statuses.push(ground.ask(&format!("POST {path}"), "", b"{}"));
        }
    }
    assert_eq!(statuses, [400, 400, 400, 400, 400, 400, 200, 200, 403, 403, 403, 403]);
    let metered = ground.tally.result().0;
    assert_eq!((metered.requests, metered.tokens.input, metered.tokens.output), (2, 10, 4));
    assert_eq!(ground.recorder.asked().len(), 2);
}

fn agent(helpers: &str) -> AgentSpec {
    let model =
        format!("[model]\nwire = \"openai-responses\"\nbase_url = \"http://a\"\nhelpers = {helpers}\n");
    let text = format!("schema = 1\nname = \"mine\"\nversion = \"1\"\n{model}[run]\ncommand = [\"mine\"]\n");
    AgentSpec::parse("mine.toml", text.as_bytes()).unwrap()
}

#[test]
fn each_model_is_counted_by_its_name_and_one_that_is_not_the_attempts_is_refused() {
    let models = Models::of(&agent("[\"small\"]"), Some("ok"));
    let ground = Ground::of(Recorder::start(), models, None);
    let ask = |body: &str| ground.ask("POST /v1/responses", "", body.as_bytes());
    let asked =
        [r#"{"model":"ok"}"#, r#"{"model":"small"}"#, r#"{"model":"ok"}"#, r#"{"model":"gpt-5-pro"}"#, "{}"];
    assert_eq!(asked.map(ask), [200, 200, 200, 403, 403]);
    assert_eq!(ground.lookups(), ["model gpt-5-pro", "model none"]);
    let models = ground.tally.result().0.models;
    let shown = models.iter().map(|of| (of.model.as_str(), of.requests, of.tokens.input)).collect::<Vec<_>>();
    assert_eq!(shown, [("ok", 2, 10), ("small", 1, 5)]);
    assert_eq!(ground.recorder.asked().len(), 3);
}

#[test]
fn an_address_that_the_endpoint_would_read_is_not_passed_on() {
    let ground = Ground::new(None);
    let body =
        r#"{"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://a.example/x"}]}]}"#;
    assert_eq!(ground.ask("POST /v1/responses", "", body.as_bytes()), 403);
    assert_eq!(ground.lookups(), ["hosted url https://a.example/x"]);
    assert!(ground.recorder.asked().is_empty());
}

#[test]
fn a_key_that_the_endpoint_says_again_reaches_neither_the_agent_nor_the_record() {
    let ground = Ground::answered(
        "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nX-Asked-With: the-real-key\r\nContent-Length: 54\r\n\r\n\
        {\"error\":{\"message\":\"Incorrect key: the-real-key !!\"}}",
    );
    let told = ground.told("POST /v1/messages", "", b"{}");
    assert!(
        told.starts_with("HTTP/1.1 401") && told.ends_with("Incorrect key: ************ !!\"}}"),
        "{told}"
    );
    assert!(!told.contains(KEY), "{told}");
    drop(ground.proxy);
    let kept = std::fs::read_to_string(ground._folder.path().join("requests.jsonl")).unwrap();
    assert!(kept.contains("Incorrect key: ************") && !kept.contains(KEY), "{kept}");
}

#[test]
fn an_answer_that_is_compressed_unasked_is_not_passed_on_and_the_reason_is_kept() {
    let ground = Ground::answered(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz",
    );
    let told = ground.told("POST /v1/messages", "Accept-Encoding: gzip\r\n", b"{}");
    let why = "it answers in gzip, though it is asked for no encoding";
    assert!(told.starts_with("HTTP/1.1 502") && told.contains(why) && !told.contains("xyz"), "{told}");
    assert!(ground.recorder.asked()[0][1].contains("accept-encoding: identity\r\n"));
    let (metered, _, last) = ground.tally.result();
    assert_eq!((metered.failed, last), (1, Last::Unreachable(why.to_owned())));
}

#[test]
fn a_key_that_no_header_can_hold_is_refused() {
    let error = Endpoint::new("https://a.example", Some(given("abc\n"))).unwrap_err();
    let what = "OPENAI_API_KEY holds a key that no header can hold: character 4 of 4 is a line's end";
    assert_eq!(error.to_string(), what);
    assert_eq!(infradev_model::Classified::class(&error), infradev_model::Class::BadInput);
}
