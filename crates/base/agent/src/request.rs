//! What an agent asks of its model, read within bounds before it is sent on.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::Body;
use hyper::header::{self, HeaderMap};
use infradev_model::Wire;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::hosted::{plain, take_hosted};
use crate::models::{Models, another, named};
use crate::object::{Json, MOST_VALUES, Object, Unread, mended};
use crate::permitted::take_unlisted;
use crate::remote::{Read, read_for_it};
use crate::routes::Route;
use crate::tally::Tally;
use crate::usage::{Added, Taken, ask_for_usage};

/// Largest request that is passed on, bytes. Those of agents are a few MiB.
pub(crate) const LARGEST: usize = 32 << 20;
/// Bytes of requests that are held at once; further ones wait for room.
pub(crate) const HELD: usize = 4 * LARGEST;
/// How long a request that has begun may be without a byte.
pub(crate) const STALLED: Duration = Duration::from_secs(60);
/// In what the room is counted, bytes.
const UNIT: usize = 1 << 10;

/// Why a request is not passed on, as the agent and the record are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What stands for the method in the record; none for the request's own.
    pub method: Option<&'static str>,
    /// What the record names.
    pub target: String,
    /// The answer.
    pub status: StatusCode,
    /// Its words.
    pub what: String,
}

impl Refused {
    fn body(path: &str, status: StatusCode, what: String) -> Refused {
        Refused { method: None, target: format!("{path}: {what}"), status, what }
    }
}

/// A request's body as it is sent on.
pub(crate) struct Looked {
    pub body: Bytes,
    /// The model that it is for.
    pub model: Option<String>,
    /// How many choices, or candidates, it asks for.
    pub choices: usize,
    /// What we had it ask for besides.
    pub added: Option<Added>,
}

/// Room for the requests of one agent.
pub(crate) struct Bodies {
    room: Arc<Semaphore>,
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl Bodies {
    pub(crate) fn new() -> Bodies {
        Bodies { room: Arc::new(Semaphore::new(HELD / UNIT)) }
    }

    /// A request's bytes, once there is room for them. One that stalls gives its room back.
    pub(crate) async fn read<B>(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: B,
    ) -> Result<(Bytes, OwnedSemaphorePermit), Refused>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let refuse = |status, what: String| Err(Refused::body(path, status, what));
        if headers.contains_key(header::CONTENT_ENCODING) {
            return refuse(StatusCode::BAD_REQUEST, "requests are passed on uncompressed only".to_owned());
        }
        let too_large = || {
            refuse(StatusCode::PAYLOAD_TOO_LARGE, format!("the request is larger than {} MiB", LARGEST >> 20))
        };
        // One that does not tell its length may be as long as any.
        let length = body.size_hint().exact().unwrap_or(LARGEST as u64);
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= LARGEST) else {
            return too_large();
        };
        let room = Arc::clone(&self.room).acquire_many_owned(units(length)).await;
        let Ok(mut held) = room else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "the attempt is over".to_owned());
        };
        let mut body = Limited::new(body, LARGEST);
        let mut bytes = Vec::new();
        loop {
            match tokio::time::timeout(STALLED, body.frame()).await {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
                Ok(Some(Err(error))) if error.is::<LengthLimitError>() => return too_large(),
                Ok(Some(Err(error))) => {
                    let what = format!("the request could not be read: {error}");
                    return refuse(StatusCode::BAD_REQUEST, what);
                }
                Err(_) => {
                    let what = format!("nothing more of the request came for {} s", STALLED.as_secs());
                    return refuse(StatusCode::REQUEST_TIMEOUT, what);
                }
            }
        }
        let surplus = units(length).saturating_sub(units(bytes.len()));
        drop(held.split(surplus as usize));
        Ok((Bytes::from(bytes), held))
    }
}

/// A key of a request that a lenient reader takes for another one: which of the two counts would be its own choice.
fn mistaken<'a>(asked: &'a Object<'_>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    let mut keys = asked.0.iter().map(|(key, _)| key.as_ref());
    keys.find(|key| {
        let plain = plain(key);
        plain == "model" && *key != "model" || !seen.insert(plain)
    })
}

/// A request with what steers its answer alone, and tools that the agent itself runs; whatever else was asked of the model's host
/// is on record as a lookup. Besides the model that it is for, one of `models` where those are given. Only what was read is sent: a
/// JSON object, written anew. A chat's stream is asked for its usage, unless the endpoint is known not to take that.
pub(crate) fn looked_through(
    path: &str,
    route: Route,
    body: &[u8],
    models: Option<&Models>,
    taken: &Taken,
    tally: &Tally,
) -> Result<Looked, Refused> {
    let unread = |why: Unread| match why {
        Unread::Malformed(what) => Refused::body(path, StatusCode::BAD_REQUEST, what),
        Unread::TooMany => {
            let what = format!("the request holds more than {MOST_VALUES} values");
            Refused::body(path, StatusCode::PAYLOAD_TOO_LARGE, what)
        }
    };
    let text = mended(body).map_err(unread)?;
    let mut asked = Object::read(&text).map_err(unread)?;
    if let Some(key) = mistaken(&asked) {
        let what = format!("the key `{key}` differs in its spelling alone from one that is read here");
        return Err(Refused::body(path, StatusCode::BAD_REQUEST, what));
    }
    let model = named(path, &asked);
    if let Some(models) = models {
        models.permit(model)?;
    }
    if let Some(other) = another(model, &asked) {
        let shown: String = other.chars().take(200).collect();
        let what = format!("its path names another model than its body, `{shown}`");
        return Err(Refused::body(path, StatusCode::BAD_REQUEST, what));
    }
    let model = model.map(str::to_owned);
    if let Some(read) = read_for_it(&asked) {
        return Err(unread_for_it(read));
    }
    tally.asked(&asked);
    for name in route.asks().map(|wire| take_unlisted(wire, &mut asked)).unwrap_or_default() {
        tally.lookup("hosted setting", &name, 403);
    }
    for name in take_hosted(&mut asked) {
        tally.lookup("hosted tool", &name, 403);
    }
    let asks = route == Route::Answer(Wire::OpenaiChat) && taken.by(model.as_deref()) != Some(false);
    let added = if asks { ask_for_usage(&mut asked) } else { None };
    let choices = choices(&asked);
    Ok(Looked { body: Bytes::from(asked.written(body.len())), model, choices, added })
}

/// How many choices a request asks for: `n` of a chat, `candidateCount` of Gemini's configuration. What is no number is as many as any.
fn choices(asked: &Object<'_>) -> usize {
    asked.0.iter().fold(1, |most, (key, value)| match (plain(key).as_str(), value) {
        ("generationconfig", Json::Object(held)) => most.max(choices(held)),
        ("n" | "candidatecount", value) if !value.says_no() => match value {
            Json::Plain(raw) => most.max(raw.get().parse().unwrap_or(usize::MAX)),
            _ => usize::MAX,
        },
        _ => most,
    })
}

/// Refuses a request that would have the model's host read something.
fn unread_for_it(read: Read<'_>) -> Refused {
    let (Read::Address(name) | Read::Kept(name)) = read;
    let shown: String = name.chars().take(500).collect();
    let method = if matches!(read, Read::Address(_)) { "hosted url" } else { "hosted file" };
    let what = format!("{shown} is not read for this machine: a request holds its files and images itself");
    Refused { method: Some(method), target: shown, status: StatusCode::FORBIDDEN, what }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    /// A body of these bytes, each after so many seconds; of no known length.
    fn coming(bytes: &'static [u8], seconds: u64) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let pieces = stream::iter(bytes.chunks(1)).then(move |piece| {
            let frame = Ok(Frame::data(Bytes::from_static(piece)));
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                frame
            })
        });
        StreamBody::new(pieces)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_stalls_is_refused_and_gives_its_room_to_those_that_wait() {
        let (bodies, headers, begun) = (Bodies::new(), HeaderMap::new(), Instant::now());
        let read = |seconds| bodies.read("/v1/responses", &headers, coming(b"{}", seconds));
        let stalled = futures_util::future::join_all((0..HELD / LARGEST).map(|_| read(3600)));
        let (stalled, further) = tokio::join!(stalled, read(0));
        for refused in stalled {
            let refused = refused.unwrap_err();
            assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
            assert_eq!(refused.target, "/v1/responses: nothing more of the request came for 60 s");
        }
        assert_eq!(further.unwrap().0, "{}");
        assert_eq!(begun.elapsed().as_secs(), 60);
        assert_eq!(bodies.room.available_permits(), HELD / UNIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_comes_slowly_is_read_to_its_end() {
        let (bodies, headers) = (Bodies::new(), HeaderMap::new());
        let (bytes, held) = bodies.read("/", &headers, coming(b"{ }", 59)).await.unwrap();
        assert_eq!(bytes, "{ }");
        drop(held);
        assert_eq!(bodies.room.available_permits(), HELD / UNIT);
    }

    #[test]
    fn choices_are_counted_by_either_name_and_what_is_no_number_is_many() {
        for (text, asked) in [
            ("{}", 1),
            (r#"{"n":null}"#, 1),
            (r#"{"n":20}"#, 20),
            (r#"{"generationConfig":{"candidateCount":2}}"#, 2),
            (r#"{"n":"3"}"#, usize::MAX),
            (r#"{"n":2.0}"#, usize::MAX),
        ] {
            assert_eq!(choices(&Object::read(text).unwrap()), asked, "{text}");
        }
    }

    #[test]
    fn a_key_that_a_lenient_reader_takes_for_another_is_told() {
        for (text, told) in [
            (r#"{"model":"a","Model":"b"}"#, Some("Model")),
            (r#"{"MODEL":"b"}"#, Some("MODEL")),
            (r#"{"tools":[],"toolſ":[]}"#, Some("toolſ")),
            (r#"{"max_tokens":1,"maxTokens":2}"#, Some("maxTokens")),
            (r#"{"model":"a","messages":[{"Model":"b"}],"max_tokens":1}"#, None),
        ] {
            assert_eq!(mistaken(&Object::read(text).unwrap()), told, "{text}");
        }
    }
}
