//! GitHub's GraphQL API: many pull requests in one request.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use infradev_model::Pull;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use serde::Deserialize;
use serde_json::Value;

use super::Forge;
use crate::error::CurateError;

/// Pull requests of one request.
const AT_ONCE: usize = 50;

/// Most bytes of an answer that are read.
const MOST: usize = 32 << 20;

/// Most characters of a description that are kept.
const BODY: usize = 20_000;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where to ask, with the token to ask with.
#[derive(Clone)]
pub struct Endpoint {
    url: reqwest::Url,
    token: HeaderValue,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is nobody's business.
        f.debug_struct("Endpoint").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint of GitHub's GraphQL API.
    ///
    /// # Errors
    /// An address that is none, or over which a token would travel in the clear; a token that no header can hold.
    pub fn new(url: &str, token: &str) -> Result<Endpoint, CurateError> {
        let refused = |why: &str| CurateError::Endpoint { given: url.to_owned(), why: why.to_owned() };
        let parsed = reqwest::Url::parse(url).map_err(|error| refused(&error.to_string()))?;
        let local = is_local(&parsed);
        match parsed.scheme() {
            "https" => {}
            "http" if local => {}
            _ => return Err(refused("a token is sent over https, or to this machine itself")),
        }
        let mut token =
            HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| CurateError::Token)?;
        token.set_sensitive(true);
        Ok(Endpoint { url: parsed, token })
    }
}

fn is_local(url: &reqwest::Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Why no more could be had.
#[derive(Debug, thiserror::Error)]
pub enum Told {
    #[error("GitHub refused the token in GITHUB_TOKEN: give one that is valid, or unset it")]
    Token,
    #[error(
        "GitHub has no repository {0} that this token may read: name another with --github, or leave it out with --no-github"
    )]
    Repository(String),
    #[error("GitHub takes no more requests with this token {0}: run it again then, what was read is kept")]
    Limit(String),
    #[error("GitHub could not be reached ({0}): run it again, what was read is kept")]
    Unreachable(String),
    #[error("GitHub answered {0}: run it again, what was read is kept")]
    Answer(String),
}

/// An end before all were read.
pub enum Failed {
    /// It is said; what is known counts.
    Told(Told),
    /// What was read could not be kept.
    Kept(CurateError),
}

type Found = BTreeMap<u64, Option<Pull>>;

/// Asks for pull requests; `keep` is called with each part of the answer.
///
/// On a thread of its own, since the caller's may be inside of a runtime.
pub fn ask(
    forge: &Forge,
    numbers: &[u64],
    keep: &mut (dyn FnMut(Found) -> Result<(), CurateError> + Send),
) -> Result<(), Failed> {
    let work = || -> Result<(), Failed> {
        let unreachable = |error: &dyn std::fmt::Display| Failed::Told(Told::Unreachable(error.to_string()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unreachable(&error))?;
        let client = client(forge).map_err(|error| unreachable(&error))?;
        for some in numbers.chunks(AT_ONCE) {
            if infradev_supervise::cancelled() {
                return Err(Failed::Kept(CurateError::Interrupted));
            }
            let found = runtime.block_on(part(&client, forge, some)).map_err(Failed::Told)?;
            keep(found).map_err(Failed::Kept)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let gone = || Failed::Told(Told::Answer("in a way that was not foreseen".into()));
        scope.spawn(work).join().unwrap_or_else(|_| Err(gone()))
    })
}

fn client(forge: &Forge) -> Result<reqwest::Client, reqwest::Error> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, forge.endpoint.token.clone());
    headers.insert(USER_AGENT, HeaderValue::from_static("infradev"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut client = reqwest::Client::builder()
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE);
    if is_local(&forge.endpoint.url) {
        client = client.no_proxy();
    }
    client.build()
}

fn query(numbers: &[u64]) -> String {
    let mut query =
        String::from("query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) {");
    for number in numbers {
        let _ = write!(
            query,
            " p{number}: pullRequest(number: {number}) {{ url title body labels(first: 20) {{ nodes {{ name }} }} }}"
        );
    }
    query + " } }"
}

async fn part(client: &reqwest::Client, forge: &Forge, numbers: &[u64]) -> Result<Found, Told> {
    let (owner, name) = forge.repository.split_once('/').unwrap_or((&forge.repository, ""));
    let asked = serde_json::json!({ "query": query(numbers), "variables": { "owner": owner, "name": name } });
    // Without the url that reqwest would add: it says nothing that the person did not give.
    let unreachable = |error: reqwest::Error| Told::Unreachable(with_causes(&error.without_url()));
    let mut response =
        client.post(forge.endpoint.url.clone()).body(asked.to_string()).send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let spent = response.headers().get("x-ratelimit-remaining").is_some_and(|left| left == "0");
    match status {
        200 => {}
        401 => return Err(Told::Token),
        403 if spent || response.headers().contains_key("retry-after") => {
            return Err(Told::Limit(until(response.headers())));
        }
        429 => return Err(Told::Limit(until(response.headers()))),
        _ => return Err(Told::Answer(format!("with status {status}"))),
    }
    let until = until(response.headers());
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST {
            return Err(Told::Answer(format!("with more than {MOST} bytes")));
        }
    }
    let answer: Answer = serde_json::from_slice(&bytes)
        .map_err(|error| Told::Answer(format!("with what is not its API's ({error})")))?;
    if answer.errors.iter().any(|error| error.kind == "RATE_LIMITED") || spent && answer.data.is_none() {
        return Err(Told::Limit(until));
    }
    let Some(repository) = answer.data.map(|data| data.repository) else {
        let said = answer.errors.first().map(|error| format!("“{}”", cut(&error.message, 200)));
        return Err(Told::Answer(said.unwrap_or_else(|| "with nothing".into())));
    };
    let Some(repository) = repository else { return Err(Told::Repository(forge.repository.clone())) };
    let mut found = Found::new();
    for number in numbers {
        let known = repository.get(&format!("p{number}")).cloned();
        // Left out of the answer is unlike null: it may be had another time.
        let Some(value) = known else { continue };
        let raw: Option<Raw> = serde_json::from_value(value)
            .map_err(|error| Told::Answer(format!("with what is not its API's ({error})")))?;
        found.insert(*number, raw.map(Raw::pull));
    }
    Ok(found)
}

fn with_causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let _ = write!(text, ": {inner}");
        cause = inner.source();
    }
    text
}

/// When it takes requests again.
fn until(headers: &HeaderMap) -> String {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let wait = number("retry-after").or_else(|| Some(number("x-ratelimit-reset")?.saturating_sub(now)));
    match wait {
        Some(seconds) => format!("for {} minutes", seconds.div_ceil(60).max(1)),
        None => "for now".to_owned(),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Option<Data>,
    #[serde(default)]
    errors: Vec<Error>,
}

#[derive(Deserialize)]
struct Data {
    repository: Option<serde_json::Map<String, Value>>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Raw {
    url: String,
    title: String,
    body: String,
    labels: Option<Labels>,
}

#[derive(Deserialize)]
struct Labels {
    nodes: Vec<Label>,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

impl Raw {
    fn pull(self) -> Pull {
        let labels = self.labels.map(|labels| labels.nodes.into_iter().map(|label| label.name).collect());
        Pull {
            url: self.url,
            title: self.title,
            body: cut(&self.body, BODY),
            labels: labels.unwrap_or_default(),
        }
    }
}
