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
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::UnixListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

pub use crate::endpoint::Endpoint;
pub(crate) use crate::endpoint::client;
use crate::error::AgentError;
use crate::headers::sent_on;
use crate::models::Models;
use crate::pass::pass;
use crate::queries::permitted;
use crate::request::{Bodies, Looked, Refused, looked_through};
use crate::routes::{Route, Unrouted};
use crate::tally::{Answer, Asked, Tally};
use crate::usage::Asking;

/// Where the agent finds the proxy in its sandbox.
pub const PORT: u16 = 8472;
/// What the agent is told in place of its key.
pub const PLACEHOLDER_KEY: &str = "sk-infradev-placeholder";
/// Connections at once of an agent; each takes a descriptor of this process, and another one while the endpoint is asked.
pub(crate) const CONNECTIONS: usize = 64;
/// How long a connection may be kept without a request.
const UNUSED: Duration = Duration::from_secs(60);
pub(crate) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

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
    models: Option<Models>,
    bodies: Bodies,
    client: reqwest::Client,
    tally: Arc<Tally>,
}

impl Proxy {
    /// Starts to listen on a socket in `folder`, which the agent cannot reach by itself. Without an endpoint all is refused;
    /// without `models` any may be asked.
    pub(crate) fn start(
        endpoint: Option<Endpoint>,
        models: Option<Models>,
        folder: &Path,
        tally: Arc<Tally>,
    ) -> Result<Proxy, AgentError> {
        let failed = || AgentError::io("open the model's socket");
        let socket = folder.join("model.sock");
        let listener = listen(folder).map_err(failed())?;
        let client = client(endpoint.as_ref())?;
        let work =
            Arc::new(Work { endpoint, models, bodies: Bodies::new(), client, tally: Arc::clone(&tally) });
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
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    // One that finds no room waits in the socket's own queue, where it holds no descriptor of this process.
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(Arc::clone(&work), TokioIo::new(stream), Place::Outer(place)));
            }
            // Descriptors are short for a moment.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// The place that a connection takes.
enum Place {
    Outer(OwnedSemaphorePermit),
    /// Of the one that it came through, which is given up with it.
    Tunnel(#[allow(dead_code, reason = "held")] Arc<OwnedSemaphorePermit>),
}

/// Answers what is asked on one connection. Boxed, since a connection may be asked to carry another one.
fn connection<I>(work: Arc<Work>, io: I, place: Place) -> Pin<Box<dyn Future<Output = ()> + Send>>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    Box::pin(async move {
        // A tunnel within a tunnel is none that a program needs, and would have no end.
        let (inner, place) = match place {
            Place::Outer(place) => (Some(Arc::new(place)), None),
            Place::Tunnel(place) => (None, Some(place)),
        };
        let service = service_fn(move |request| {
            let (work, inner) = (Arc::clone(&work), inner.clone());
            async move { Ok::<_, Infallible>(answer(work, request, inner).await) }
        });
        let mut server = hyper::server::conn::http1::Builder::new();
        let served =
            server.timer(TokioTimer::new()).header_read_timeout(UNUSED).serve_connection(io, service);
        // A connection that breaks off is the agent's affair.
        let _ = served.with_upgrades().await;
        drop(place);
    })
}

/// `place` is that of the connection, which a tunnel through it goes on to hold; none where it is in a tunnel itself.
async fn answer(
    work: Arc<Work>,
    request: Request<Incoming>,
    place: Option<Arc<OwnedSemaphorePermit>>,
) -> Response<Body> {
    // A program that knows no NO_PROXY asks the proxy for a tunnel to the proxy.
    let own = request.method() == Method::CONNECT && request.uri().authority().is_some_and(is_own);
    if let (true, Some(place)) = (own, place) {
        tokio::spawn(async move {
            if let Ok(inner) = hyper::upgrade::on(request).await {
                connection(work, inner, Place::Tunnel(place)).await;
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
        let (query, others) = permitted(request.uri().query());
        let (url, route) = match endpoint.at(&method, &path, query.as_deref()) {
            Ok(found) => found,
            Err(why) => return self.unrouted(why, method.as_str(), &path),
        };
        if self.tally.over_budget() {
            return used_up();
        }
        let (parts, body) = request.into_parts();
        // What is held of it is given up when the endpoint has it: its answer has begun then.
        let asked = match self.asked(endpoint, route, &parts, body).await {
            Ok(asked) => asked,
            Err(Refused { method: kind, target, status, what }) => {
                self.tally.lookup(kind.unwrap_or(method.as_str()), &target, status.as_u16());
                return refusal(status, &what);
            }
        };
        let (looked, held) = asked.unzip();
        let asked = Asked {
            method: method.as_str().to_owned(),
            path,
            wire: route.wire(),
            model: looked.as_ref().and_then(|looked| looked.model.clone()),
            bytes: looked.as_ref().map_or(0, |looked| looked.body.len() as u64),
            choices: looked.as_ref().map_or(1, |looked| looked.choices),
        };
        let Some(answer) = Answer::begin(Arc::clone(&self.tally), asked).await else {
            return used_up();
        };
        let (mut headers, left_out) = sent_on(&parts.headers, endpoint.key());
        left_out.iter().for_each(|name| self.tally.lookup("header", name, 403));
        others.iter().for_each(|name| self.tally.lookup("query", name, 403));
        if looked.is_some() {
            // The value is ours by now, whatever the agent said of its own.
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let asked = self.client.request(parts.method, url).headers(headers);
        let (asked, usage) = match looked {
            None => (asked, None),
            Some(Looked { body, model, added, .. }) => {
                let taken = endpoint.taken();
                let usage = added.map(|added| Asking { added, body: body.clone(), model, taken });
                (asked.body(body), usage)
            }
        };
        let response = pass(asked, usage, answer, endpoint.key()).await;
        drop(held);
        response
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

    /// What is sent on of a request, and its room as long as that is held; none of one that has no body.
    async fn asked(
        &self,
        endpoint: &Endpoint,
        route: Route,
        parts: &Parts,
        body: Incoming,
    ) -> Result<Option<(Looked, OwnedSemaphorePermit)>, Refused> {
        if route == Route::Models {
            return Ok(None);
        }
        let path = parts.uri.path();
        let (body, held) = self.bodies.read(path, &parts.headers, body).await?;
        let models = route.wire().and(self.models.as_ref());
        let looked = looked_through(path, route, &body, models, endpoint.taken(), &self.tally)?;
        Ok(Some((looked, held)))
    }
}

fn used_up() -> Response<Body> {
    refusal(StatusCode::FORBIDDEN, "the tokens of this attempt are used up")
}

/// Where a request wants to go, if that is not the model.
fn elsewhere(method: &Method, uri: &Uri) -> Option<String> {
    let authority = uri.authority()?;
    if is_own(authority) {
        return None;
    }
    Some(if method == Method::CONNECT { authority.to_string() } else { uri.to_string() })
}

pub(crate) fn refusal(status: StatusCode, what: &str) -> Response<Body> {
    let text = serde_json::json!({"type": "error", "error": {"type": "infradev_proxy", "message": what}});
    let body = Full::new(Bytes::from(text.to_string())).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
