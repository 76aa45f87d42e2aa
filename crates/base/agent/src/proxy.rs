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
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::UnixListener;
use tokio::sync::Notify;

use crate::error::AgentError;
use crate::headers::{passed_back, sent_on};
use crate::hosted::take_hosted;
use crate::object::Object;
use crate::routes::{Route, Unrouted, route};
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

    /// The url for a request's path and query, and what is asked of it; decided by the url that is asked in the end.
    fn at(&self, method: &Method, uri: &Uri) -> Result<(reqwest::Url, Route), Unrouted> {
        let mut url = self.url.clone();
        url.set_path(uri.path());
        url.set_query(uri.query());
        let route = route(method, self.url.path(), uri.path())?;
        if url.path() == uri.path() { Ok((url, route)) } else { Err(Unrouted::Malformed) }
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
            self.tally.lookup(method.as_str(), &target, 403);
            let what = format!("{target} is not reachable: this machine reaches its model's endpoint only");
            return refusal(StatusCode::FORBIDDEN, &what);
        }
        let path = request.uri().path().to_owned();
        let Some(endpoint) = &self.endpoint else {
            return self.unrouted(Unrouted::Unknown, method.as_str(), &path);
        };
        let (url, route) = match endpoint.at(&method, request.uri()) {
            Ok(found) => found,
            Err(why) => return self.unrouted(why, method.as_str(), &path),
        };
        if self.tally.over_budget() {
            return refusal(StatusCode::FORBIDDEN, "the tokens of this attempt are used up");
        }
        let (parts, body) = request.into_parts();
        let body = match self.readable(route, &parts.headers, body).await {
            Ok(body) => body,
            Err((status, what)) => {
                self.tally.lookup(method.as_str(), &format!("{path}: {what}"), status.as_u16());
                return refusal(status, &what);
            }
        };
        let answer = Answer::begin(Arc::clone(&self.tally), method.as_str(), &path, route.wire());
        let mut headers = sent_on(&parts.headers, endpoint.key.as_deref());
        if body.is_some() {
            // The value is ours by now, whatever the agent said of its own.
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let asked = self.client.request(parts.method, url).headers(headers);
        let asked = match body {
            Some(body) => asked.body(body),
            None => asked,
        };
        pass(asked, answer).await
    }

    /// Refuses a request by its method and path. What no program asks for by itself is on record as a lookup.
    fn unrouted(&self, why: Unrouted, method: &str, path: &str) -> Response<Body> {
        let (status, what) = match why {
            Unrouted::Unknown => (StatusCode::NOT_FOUND, format!("{path} is not passed on")),
            Unrouted::Method => (StatusCode::METHOD_NOT_ALLOWED, format!("{method} {path} is not passed on")),
            Unrouted::Malformed => (
                StatusCode::BAD_REQUEST,
                format!("{path} is not passed on: a path is plain segments, without escapes"),
            ),
        };
        match why {
            Unrouted::Unknown => self.tally.note(method, path, status.as_u16()),
            Unrouted::Method | Unrouted::Malformed => self.tally.lookup(method, path, status.as_u16()),
        }
        refusal(status, &what)
    }

    /// The body to be sent on; none for what has none. Only what was read is sent: a JSON object, written anew.
    async fn readable(
        &self,
        route: Route,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Option<Bytes>, (StatusCode, String)> {
        if route == Route::Models {
            return Ok(None);
        }
        let refuse = |what: &str| (StatusCode::BAD_REQUEST, what.to_owned());
        if headers.contains_key(header::CONTENT_ENCODING) {
            return Err(refuse("requests are passed on uncompressed only"));
        }
        let body = Limited::new(body, LARGEST).collect().await.map_err(|error| {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("the request could not be read: {error}"))
        })?;
        self.looked_through(&body.to_bytes()).map(Some).map_err(|what| refuse(&what))
    }

    /// The request without what would have the model's own host search; each such thing is on record as a lookup.
    fn looked_through(&self, body: &[u8]) -> Result<Bytes, String> {
        let mut asked = Object::read(body)?;
        self.tally.asked(&asked.value());
        for name in take_hosted(&mut asked) {
            self.tally.lookup("hosted tool", &name, 403);
        }
        Ok(Bytes::from(asked.written()))
    }
}

/// Asks the endpoint, and passes its answer back while that is counted.
async fn pass(asked: reqwest::RequestBuilder, mut answer: Answer) -> Response<Body> {
    let response = match asked.send().await {
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

/// Where a request wants to go, if that is not the model.
fn elsewhere(method: &Method, uri: &Uri) -> Option<String> {
    let authority = uri.authority()?;
    if is_own(authority) {
        return None;
    }
    Some(if method == Method::CONNECT { authority.to_string() } else { uri.to_string() })
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
mod tests;
