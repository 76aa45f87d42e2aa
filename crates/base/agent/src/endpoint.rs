//! A model's endpoint: its url, the key that opens it, what asks it.

use std::time::Duration;

use hyper::Method;

use crate::error::AgentError;
use crate::proxy::PORT;
use crate::routes::{Route, Unrouted, route};
use crate::secret::{GivenKey, Secret};
use crate::usage::Taken;

const CONNECT: Duration = Duration::from_secs(30);
/// Connections to it that are kept for what is asked next.
const IDLE: usize = 8;

/// A model's endpoint. Copies of it share what is learnt of it.
#[derive(Clone)]
pub struct Endpoint {
    url: reqwest::Url,
    key: Option<Secret>,
    taken: Taken,
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
    /// It is no http or https url, or holds a query or a fragment; or the key is none that a header can hold.
    pub fn new(url: &str, key: Option<GivenKey>) -> Result<Endpoint, AgentError> {
        let wrong = |what: &str| AgentError::Endpoint { url: url.to_owned(), what: what.to_owned() };
        let parsed = reqwest::Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        if !["http", "https"].contains(&parsed.scheme()) || parsed.host_str().is_none() {
            return Err(wrong("it begins with http:// or https:// and a host"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(wrong("it ends with its path"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let mut shown = parsed.clone();
            // Neither is shown: it may be a key.
            let _ = (shown.set_username("***"), shown.set_password(None));
            let what = "a key goes into a variable, not into the url".to_owned();
            return Err(AgentError::Endpoint { url: shown.to_string(), what });
        }
        Ok(Endpoint { url: parsed, key: key.map(Secret::try_from).transpose()?, taken: Taken::default() })
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

    /// The url for a request's path and what is permitted of its query, and what is asked of it; decided by the url that is asked in
    /// the end.
    pub(crate) fn at(
        &self,
        method: &Method,
        path: &str,
        query: Option<&str>,
    ) -> Result<(reqwest::Url, Route), Unrouted> {
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(query);
        let route = route(method, self.url.path(), path)?;
        if url.path() == path { Ok((url, route)) } else { Err(Unrouted::Malformed) }
    }

    /// What opens it.
    pub(crate) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// What is known of its streams.
    pub(crate) fn taken(&self) -> &Taken {
        &self.taken
    }

    fn is_local(&self) -> bool {
        matches!(self.url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
    }

    /// Whether anything at all is answered there. The key is not shown for it.
    pub(crate) async fn answers(&self, client: &reqwest::Client) -> bool {
        client.head(self.url.clone()).send().await.is_ok()
    }
}

/// What asks an endpoint: through this machine's own proxy, where it has one and the endpoint is elsewhere.
pub(crate) fn client(endpoint: Option<&Endpoint>) -> Result<reqwest::Client, AgentError> {
    let mut client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(IDLE);
    if endpoint.is_some_and(Endpoint::is_local) {
        client = client.no_proxy();
    }
    let failed = AgentError::io("make ready to ask the model's endpoint");
    client.build().map_err(|error| failed(std::io::Error::other(error)))
}
