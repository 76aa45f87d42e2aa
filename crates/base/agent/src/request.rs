//! What an agent asks of its model, read within bounds before it is sent on.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::hosted::{fetched, plain, take_hosted};
use crate::models::{Models, named};
use crate::object::{MOST_VALUES, Object, Unread, mended};
use crate::tally::Tally;

/// Largest request that is passed on, bytes. Those of agents are a few MiB.
pub(crate) const LARGEST: usize = 32 << 20;
/// Bytes of requests that are held at once; further ones wait for room.
pub(crate) const HELD: usize = 4 * LARGEST;
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
pub(crate) struct Asked {
    pub body: Bytes,
    /// The model that it is for.
    pub model: Option<String>,
    /// Its room, as long as it is held.
    pub held: OwnedSemaphorePermit,
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

    /// A request's bytes, once there is room for them.
    pub(crate) async fn read(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<(Bytes, OwnedSemaphorePermit), Refused> {
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
        let bytes = match Limited::new(body, LARGEST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return too_large(),
            Err(error) => {
                return refuse(StatusCode::BAD_REQUEST, format!("the request could not be read: {error}"));
            }
        };
        let surplus = units(length).saturating_sub(units(bytes.len()));
        drop(held.split(surplus as usize));
        Ok((bytes, held))
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

/// A request without what would have the model's own host search, each such thing on record as a lookup; and the model that it is
/// for, one of `models` where those are given. Only what was read is sent: a JSON object, written anew.
pub(crate) fn looked_through(
    path: &str,
    body: &[u8],
    models: Option<&Models>,
    tally: &Tally,
) -> Result<(Bytes, Option<String>), Refused> {
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
    let model = model.map(str::to_owned);
    if let Some(url) = fetched(&asked) {
        let shown: String = url.chars().take(500).collect();
        let what =
            format!("{shown} is not read for this machine: a request holds its files and images itself");
        let status = StatusCode::FORBIDDEN;
        return Err(Refused { method: Some("hosted url"), target: shown, status, what });
    }
    tally.asked(&asked);
    for name in take_hosted(&mut asked) {
        tally.lookup("hosted tool", &name, 403);
    }
    Ok((Bytes::from(asked.written(body.len())), model))
}

#[cfg(test)]
mod tests {
    use super::*;

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
