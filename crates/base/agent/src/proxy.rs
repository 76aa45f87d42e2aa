//! The one way out of an agent's sandbox: a reverse proxy to its model's endpoint. It keeps the key, counts tokens, and writes
//! down what else was asked for.
//!
//! It listens on a unix socket that is mounted into the sandbox and works on a thread of its own, so that nothing else that this
//! process does delays an answer. The agent's requests keep their path; their host is the endpoint's, whatever they say.

use std::convert::Infallible;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::sync::Notify;

use crate::error::AgentError;
use crate::hosted::take_hosted;
use crate::meter::wire_of;
use crate::tally::{Answer, Tally};
use crate::waiting::asked_to_wait;

/// Where the agent finds the proxy in its sandbox.
pub const PORT: u16 = 8472;
/// What the agent is told in place of its key.
pub const PLACEHOLDER_KEY: &str = "sk-infradev-placeholder";
/// Largest request that is passed on.
const LARGEST: usize = 256 << 20;
const CONNECT: Duration = Duration::from_secs(30);
type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A model's endpoint.
#[derive(Clone)]
pub struct Endpoint {
    url: reqwest::Url,
    key: Option<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.shown()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint under a url such as `https://api.openai.com/v1`, with the key that opens it.
    ///
    /// # Errors
    /// It is no http or https url, or holds a query or a fragment.
    pub fn new(url: &str, key: Option<String>) -> Result<Endpoint, AgentError> {
        let wrong = |what: &str| AgentError::Endpoint { url: url.to_owned(), what: what.to_owned() };
        let parsed = reqwest::Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        if !["http", "https"].contains(&parsed.scheme()) || parsed.host_str().is_none() {
            return Err(wrong("it begins with http:// or https:// and a host"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(wrong("it ends with its path"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong("a key goes into a variable, not into the url"));
        }
        Ok(Endpoint { url: parsed, key })
    }

    /// As it may be shown.
    pub fn shown(&self) -> String {
        self.url.as_str().trim_end_matches('/').to_owned()
    }

    /// The name of its host.
    pub fn host(&self) -> Option<&str> {
        self.url.host_str()
    }

    /// As the agent sees it.
    pub(crate) fn inside(&self) -> String {
        format!("http://127.0.0.1:{PORT}{}", self.url.path().trim_end_matches('/'))
    }

    /// The url for a request's path and query.
    fn at(&self, uri: &Uri) -> reqwest::Url {
        let mut url = self.url.clone();
        url.set_path(uri.path());
        url.set_query(uri.query());
        url
    }

    fn is_local(&self) -> bool {
        matches!(self.url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
    }

    /// Whether anything at all is answered there. The key is not shown for it.
    pub(crate) async fn answers(&self, client: &reqwest::Client) -> bool {
        client.head(self.url.clone()).send().await.is_ok()
    }
}

/// A running proxy. Dropped, it ends, and with it every connection.
pub(crate) struct Proxy {
    /// What it counts.
    pub tally: Arc<Tally>,
    /// The socket, on the host.
    pub socket: PathBuf,
    stop: Arc<Notify>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Work {
    endpoint: Option<Endpoint>,
    client: reqwest::Client,
    tally: Arc<Tally>,
}

impl Proxy {
    /// Starts to listen on a socket in `folder`, which the agent cannot reach by itself. Without an endpoint all is refused.
    pub(crate) fn start(
        endpoint: Option<Endpoint>,
        folder: &Path,
        tally: Arc<Tally>,
    ) -> Result<Proxy, AgentError> {
        let failed = || AgentError::io("open the model's socket");
        let socket = folder.join("model.sock");
        let listener = listen(folder).map_err(failed())?;
        let client = client(endpoint.as_ref())?;
        let work = Arc::new(Work { endpoint, client, tally: Arc::clone(&tally) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed())?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = stopped.notified() => {}
                    () = serve(listener, work) => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("model-proxy".into()).spawn(serve).map_err(failed())?;
        Ok(Proxy { tally, socket, stop, thread: Some(thread) })
    }
}

/// What asks an endpoint: through this machine's own proxy, where it has one and the endpoint is elsewhere.
pub(crate) fn client(endpoint: Option<&Endpoint>) -> Result<reqwest::Client, AgentError> {
    let mut client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .pool_idle_timeout(Duration::from_secs(30));
    if endpoint.is_some_and(Endpoint::is_local) {
        client = client.no_proxy();
    }
    let failed = AgentError::io("make ready to ask the model's endpoint");
    client.build().map_err(|error| failed(std::io::Error::other(error)))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Listens by way of the folder's descriptor: a socket's path may have 107 bytes only.
fn listen(folder: &Path) -> std::io::Result<std::os::unix::net::UnixListener> {
    let held = std::fs::File::open(folder)?;
    let short = format!("/proc/self/fd/{}/model.sock", held.as_raw_fd());
    let listener = std::os::unix::net::UnixListener::bind(short)?;
    // The agent may have another uid than ours; who else could reach the folder is not asked for more.
    std::fs::set_permissions(folder.join("model.sock"), std::fs::Permissions::from_mode(0o666))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(listener: std::os::unix::net::UnixListener, work: Arc<Work>) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors are short for a moment.
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(connection(Arc::clone(&work), TokioIo::new(stream)));
    }
}

/// Answers what is asked on one connection. Boxed, since a connection may be asked to carry another one.
fn connection<I>(work: Arc<Work>, io: I) -> Pin<Box<dyn Future<Output = ()> + Send>>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    Box::pin(async move {
        let service = service_fn(move |request| {
            let work = Arc::clone(&work);
            async move { Ok::<_, Infallible>(answer(work, request).await) }
        });
        let served = hyper::server::conn::http1::Builder::new().serve_connection(io, service);
        // A connection that breaks off is the agent's affair.
        let _ = served.with_upgrades().await;
    })
}

async fn answer(work: Arc<Work>, request: Request<Incoming>) -> Response<Body> {
    // A program that knows no NO_PROXY asks the proxy for a tunnel to the proxy.
    if request.method() == Method::CONNECT && request.uri().authority().is_some_and(is_own) {
        tokio::spawn(async move {
            if let Ok(inner) = hyper::upgrade::on(request).await {
                connection(work, inner).await;
            }
        });
        let nothing = Full::new(Bytes::new()).map_err(|never: Infallible| match never {});
        return Response::new(nothing.boxed_unsync());
    }
    work.answer(request).await
}

/// Whether it is the proxy itself that is named.
fn is_own(authority: &Authority) -> bool {
    [format!("127.0.0.1:{PORT}"), format!("localhost:{PORT}")].iter().any(|own| authority.as_str() == own)
}

impl Work {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let method = request.method().clone();
        if let Some(target) = elsewhere(&method, request.uri()) {
            self.tally.lookup(method.as_str(), &target);
            let what = format!("{target} is not reachable: this machine reaches its model's endpoint only");
            return refusal(StatusCode::FORBIDDEN, &what);
        }
        let path = request.uri().path().to_owned();
        let Some(endpoint) = self.endpoint.as_ref().filter(|_| passes(&path)) else {
            self.tally.note(method.as_str(), &path, 404);
            return refusal(StatusCode::NOT_FOUND, &format!("{path} is not passed on"));
        };
        if self.tally.over_budget() {
            return refusal(StatusCode::FORBIDDEN, "the tokens of this attempt are used up");
        }
        self.forward(endpoint, request, &path).await
    }

    async fn forward(&self, endpoint: &Endpoint, request: Request<Incoming>, path: &str) -> Response<Body> {
        let wire = wire_of(path).filter(|_| request.method() == Method::POST);
        if wire.is_some() && request.headers().contains_key(header::CONTENT_ENCODING) {
            self.tally.note(request.method().as_str(), path, 415);
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "requests are passed on uncompressed only");
        }
        let mut answer = Answer::begin(Arc::clone(&self.tally), request.method().as_str(), path, wire);
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, LARGEST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                answer.failed(400, &format!("the request could not be read: {error}"));
                return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request could not be read");
            }
        };
        let body = if wire.is_some() { self.looked_through(body) } else { body };
        let sent = self
            .client
            .request(parts.method, endpoint.at(&parts.uri))
            .headers(headers(&parts.headers, endpoint.key.as_deref()))
            .body(body)
            .send()
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                let why = causes(&error);
                answer.unreachable(&why);
                return refusal(StatusCode::BAD_GATEWAY, &format!("the model's endpoint: {why}"));
            }
        };
        let status = response.status();
        let kept = passed_back(response.headers());
        let content_type = kept.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        answer.status(status.as_u16(), content_type.unwrap_or_default());
        answer.retry_after(asked_to_wait(response.headers()));
        let stream = response.bytes_stream().map_err(std::io::Error::other);
        // Told of what passes; when the body is dropped, early or late, the answer is over.
        let counted = stream.inspect(move |part| match part {
            Ok(bytes) => answer.feed(bytes),
            Err(error) => answer.unreachable(&format!("the answer broke off: {}", causes(error))),
        });
        let counted = counted.map_ok(Frame::data);
        let mut back = Response::new(StreamBody::new(counted).boxed_unsync());
        *back.status_mut() = status;
        *back.headers_mut() = kept;
        back
    }

    /// The request without what would have the model's own host search; each such thing is on record as a lookup.
    fn looked_through(&self, body: Bytes) -> Bytes {
        let Ok(mut asked) = serde_json::from_slice::<Value>(&body) else { return body };
        self.tally.asked(&asked);
        let taken = take_hosted(&mut asked);
        if taken.is_empty() {
            return body;
        }
        for name in taken {
            self.tally.lookup("hosted tool", &name);
        }
        serde_json::to_vec(&asked).map_or(body, Bytes::from)
    }
}

/// Where a request wants to go, if that is not the model.
fn elsewhere(method: &Method, uri: &Uri) -> Option<String> {
    let authority = uri.authority()?;
    if is_own(authority) {
        return None;
    }
    Some(if method == Method::CONNECT { authority.to_string() } else { uri.to_string() })
}

/// Paths that are passed on: answers of a model and what is needed around them. A model's host may offer more: files, searches,
/// logs.
fn passes(path: &str) -> bool {
    let below = path.trim_end_matches('/');
    wire_of(below).is_some()
        || ["/messages/count_tokens", "/responses/compact", "/responses/input_tokens", "/models"]
            .iter()
            .any(|end| below.ends_with(end))
        || below.rsplit_once('/').is_some_and(|(above, model)| {
            // Of what Gemini's models do, answers apart, only the count of tokens.
            above.ends_with("/models") && (!model.contains(':') || model.ends_with(":countTokens"))
        })
}

/// A request's headers as they are sent on: the placeholder's place is the key's.
fn headers(asked: &HeaderMap, key: Option<&str>) -> HeaderMap {
    let mut sent = HeaderMap::new();
    let dropped = [header::HOST, header::CONTENT_LENGTH, header::ACCEPT_ENCODING];
    for (name, value) in asked {
        if !hop_by_hop(name)
            && !dropped.contains(name)
            && *name != header::AUTHORIZATION
            && !KEY_HEADERS.contains(name)
        {
            sent.append(name.clone(), value.clone());
        }
    }
    // The meter reads the answer as it passes.
    sent.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(key) = key {
        let secret = |text: String| {
            HeaderValue::from_str(&text).ok().map(|mut value| {
                value.set_sensitive(true);
                value
            })
        };
        for name in KEY_HEADERS {
            if let Some(value) = secret(key.to_owned()).filter(|_| asked.contains_key(&name)) {
                sent.insert(name, value);
            }
        }
        if let Some(value) =
            secret(format!("Bearer {key}")).filter(|_| asked.contains_key(header::AUTHORIZATION))
        {
            sent.insert(header::AUTHORIZATION, value);
        }
    }
    sent
}

/// Where Anthropic's and Google's requests bear their key as it is.
const KEY_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("x-goog-api-key")];

fn hop_by_hop(name: &HeaderName) -> bool {
    let names =
        ["connection", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "upgrade"];
    *name == header::TRANSFER_ENCODING || names.contains(&name.as_str())
}

fn passed_back(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| !hop_by_hop(name) && *name != header::SET_COOKIE);
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn refusal(status: StatusCode, what: &str) -> Response<Body> {
    let text = serde_json::json!({"type": "error", "error": {"type": "infradev_proxy", "message": what}});
    let body = Full::new(Bytes::from(text.to_string())).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error with what caused it, without the url, which may be long.
fn causes(error: &dyn std::error::Error) -> String {
    let mut source = error.source();
    let mut last = error.to_string();
    while let Some(cause) = source {
        last = cause.to_string();
        source = cause.source();
    }
    last
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_what_a_model_answers_is_passed_on() {
        for path in [
            "/v1/messages",
            "/v1/messages/count_tokens",
            "/v1/responses",
            "/chat/completions",
            "/v1/models/m",
            "/v1beta/models/m:streamGenerateContent",
            "/v1beta/models/m:countTokens",
        ] {
            assert!(passes(path), "{path}");
        }
        for path in [
            "/",
            "/v1/files",
            "/api/event_logging/batch",
            "/v1/vector_stores/v/search",
            "/v1/modelsx",
            "/v1beta/models/m:batchGenerateContent",
        ] {
            assert!(!passes(path), "{path}");
        }
    }

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
        let proxy = Proxy::start(None, folder.path(), Arc::clone(&tally)).unwrap();
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
        let proxy = Proxy::start(Some(endpoint), folder.path(), Arc::clone(&tally)).unwrap();
        let ask = || {
            let mut stream = UnixStream::connect(&proxy.socket).unwrap();
            let head = "POST /v1/messages HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
            write!(stream, "{head}Content-Length: 0\r\n\r\n").unwrap();
            stream.read_to_string(&mut String::new()).unwrap();
            tally.retry_after()
        };
        assert_eq!([ask(), ask()], [Some(Duration::from_secs(7)), None]);
        server.join().unwrap();
    }

    #[test]
    fn the_key_takes_the_placeholders_place_and_no_other() {
        let mut asked = HeaderMap::new();
        asked.insert("x-api-key", HeaderValue::from_static(PLACEHOLDER_KEY));
        asked.insert("x-goog-api-key", HeaderValue::from_static(PLACEHOLDER_KEY));
        asked.insert(header::CONNECTION, HeaderValue::from_static("close"));
        let sent = headers(&asked, Some("real"));
        assert!(sent["x-api-key"] == "real" && sent["x-goog-api-key"] == "real");
        assert!(!sent.contains_key(header::AUTHORIZATION) && !sent.contains_key(header::CONNECTION));
        assert!(!headers(&asked, None).contains_key("x-api-key"), "no key, no placeholder either");
    }

    #[test]
    fn an_endpoint_is_a_plain_url_and_its_path_is_the_agents_too() {
        let endpoint = |url: &str| Endpoint::new(url, Some("real".into()));
        assert_eq!(endpoint("https://a.example/v1/").unwrap().inside(), "http://127.0.0.1:8472/v1");
        assert!(!format!("{:?}", endpoint("https://a.example/v1")).contains("real"));
        for url in ["a.example", "ftp://a.example", "https://user:word@a.example", "https://a.example?x=1"] {
            assert!(matches!(endpoint(url), Err(AgentError::Endpoint { .. })), "{url}");
        }
    }
}
