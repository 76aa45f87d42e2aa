//! The pages of a site over HTTP, to browsers of this machine alone.
//!
//! A page of the web that a person has open can send requests to 127.0.0.1, under a name of its own that leads there (DNS
//! rebinding): what names another host is turned away.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use infradev_store::in_use;
use tokio::net::TcpListener;

use crate::site::{Site, policy};

/// Makes a site of what the runs hold now, or says why it cannot.
type Make = dyn Fn() -> Result<Site, String> + Send + Sync;

/// A site that is made anew where its runs have gone on.
pub struct Pages {
    folders: Vec<PathBuf>,
    make: Box<Make>,
    made: Mutex<Option<(Stamp, Arc<Site>)>>,
}

/// Length and time of a file; none where it is not there.
type Seen = Option<(u64, Option<SystemTime>)>;

/// Of each run whether a process works on it, and the files that its going on changes.
type Stamp = Vec<(bool, Vec<Seen>)>;

/// Files of a run that change as it goes on.
const WATCHED: [&str; 6] =
    ["journal.jsonl", "grades.jsonl", "grade.json", "attempt.json", "eval.json", "finished.json"];

impl Pages {
    /// Pages of the runs in these folders. `make` is called at the first request, and again once a run has gone on.
    pub fn new(
        folders: Vec<PathBuf>,
        make: impl Fn() -> Result<Site, String> + Send + Sync + 'static,
    ) -> Pages {
        Pages { folders, make: Box::new(make), made: Mutex::new(None) }
    }

    /// The same with a site that was made of the runs just before: it serves until they have gone on.
    #[must_use]
    pub fn holding(self, site: Site) -> Pages {
        let made = Mutex::new(Some((self.stamp(), Arc::new(site.live()))));
        Pages { made, ..self }
    }

    fn site(&self) -> Result<Arc<Site>, String> {
        let stamp = self.stamp();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, site)) = made.as_ref()
            && *of == stamp
        {
            return Ok(Arc::clone(site));
        }
        let site = Arc::new((self.make)()?.live());
        *made = Some((stamp, Arc::clone(&site)));
        Ok(site)
    }

    fn stamp(&self) -> Stamp {
        let seen =
            |file: PathBuf| std::fs::metadata(file).ok().map(|found| (found.len(), found.modified().ok()));
        let run =
            |folder: &PathBuf| (in_use(folder), WATCHED.iter().map(|name| seen(folder.join(name))).collect());
        self.folders.iter().map(run).collect()
    }
}

/// A port of 127.0.0.1; 0 takes a free one.
///
/// # Errors
/// Another program has it.
pub async fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Answers requests until `end` does. Connections that are open then are dropped.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    pages: Pages,
    end: impl Future<Output = ()> + Send,
) -> std::io::Result<()> {
    let local = listener.local_addr()?;
    let router = Router::new().fallback(answer).with_state(Arc::new((local, pages)));
    tokio::select! {
        served = axum::serve(listener, router).into_future() => served,
        () = end => Ok(()),
    }
}

async fn answer(State(state): State<Arc<(SocketAddr, Pages)>>, request: Request) -> Response {
    let (local, pages) = &*state;
    if !names_us(*local, request.headers(), request.uri()) {
        return said(StatusCode::MISDIRECTED_REQUEST, "This server answers to its own address alone.\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = said(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD alone are answered.\n");
        response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let path = request.uri().path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    let page = pages.site().and_then(|site| site.page(path).map_err(|error| error.to_string()));
    match page {
        Ok(Some(page)) => response(StatusCode::OK, "text/html; charset=utf-8", page),
        Ok(None) => said(StatusCode::NOT_FOUND, "There is no such page.\n"),
        Err(why) => said(StatusCode::INTERNAL_SERVER_ERROR, &format!("{}\n", crate::plain(&why))),
    }
}

/// Whether a request names this server: its one `Host` is 127.0.0.1 or localhost with the port, and a whole url says the same.
fn names_us(local: SocketAddr, headers: &HeaderMap, uri: &Uri) -> bool {
    let ours = [format!("127.0.0.1:{}", local.port()), format!("localhost:{}", local.port())];
    let is_ours = |host: &str| ours.iter().any(|our| our.eq_ignore_ascii_case(host));
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().is_ok_and(is_ours) && uri.authority().is_none_or(|authority| is_ours(authority.as_str()))
}

fn said(status: StatusCode, text: &str) -> Response {
    response(status, "text/plain; charset=utf-8", text.to_owned())
}

fn response(status: StatusCode, kind: &str, text: String) -> Response {
    let built = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer")
        .header(header::CONTENT_SECURITY_POLICY, format!("{}; frame-ancestors 'none'", policy()))
        .header("cross-origin-resource-policy", "same-origin")
        .body(Body::from(text));
    built.unwrap_or_default()
}
