//! Usage that an endpoint tells only where it is asked for it, and endpoints that do not take the question.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hyper::{StatusCode, header};
use reqwest::RequestBuilder;
use serde_json::value::RawValue;

use crate::hosted::plain;
use crate::object::{Json, Object};
use crate::pass::Reply;

/// What an OpenAI chat's options of a stream are called.
const OPTIONS: &str = "stream_options";
/// What of them has the last part of a stream tell its tokens.
const USAGE: &str = "include_usage";
/// Bytes of a refusal that are looked through for these words.
const LOOK: usize = 4 << 10;
/// Models of an endpoint of which it is remembered whether their streams take the question.
const MODELS: usize = 100;

/// What was added to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Added {
    /// The stream's options as the agent wrote them; none where it wrote none.
    instead: Option<Vec<u8>>,
}

/// Has a chat's stream tell its tokens, whatever the agent asked for; an answer in one piece does so by itself. Tells what that adds.
pub(crate) fn ask_for_usage(asked: &mut Object<'_>) -> Option<Added> {
    let streamed = asked.0.iter().any(|(key, value)| plain(key) == "stream" && !value.says_no());
    let yes = serde_json::from_str::<&'static RawValue>("true").ok().filter(|_| streamed)?;
    let at = asked.0.iter().position(|(key, _)| key == OPTIONS);
    let own = at.map(|at| &asked.0[at].1);
    if own.is_some_and(asks_already) {
        return None;
    }
    let added = Added { instead: own.map(|own| serde_json::to_vec(own).unwrap_or_default()) };
    let at = at.unwrap_or_else(|| {
        asked.0.push((Cow::Borrowed(OPTIONS), Json::List(Vec::new())));
        asked.0.len() - 1
    });
    let mut options = match &mut asked.0[at].1 {
        Json::Object(options) => std::mem::take(&mut options.0),
        _ => Vec::new(),
    };
    options.retain(|(key, _)| plain(key) != plain(USAGE));
    options.push((Cow::Borrowed(USAGE), Json::Plain(yes)));
    asked.0[at].1 = Json::Object(Object(options));
    Some(added)
}

/// Whether the agent's own options ask for it, in that one spelling.
fn asks_already(own: &Json<'_>) -> bool {
    let Json::Object(options) = own else { return false };
    let mut named = options.0.iter().filter(|(key, _)| plain(key) == plain(USAGE));
    let asks = |(key, value): &(Cow<'_, str>, Json<'_>)| {
        key == USAGE && matches!(value, Json::Plain(raw) if raw.get() == "true")
    };
    named.next().is_some_and(asks) && named.next().is_none()
}

impl Added {
    /// A body without it: as the agent wrote it. None where that cannot be read again.
    fn taken_out(&self, body: &[u8]) -> Option<Bytes> {
        let mut asked = Object::read(std::str::from_utf8(body).ok()?).ok()?;
        let at = asked.0.iter().position(|(key, _)| key == OPTIONS)?;
        match &self.instead {
            None => drop(asked.0.remove(at)),
            Some(own) => {
                let own: &RawValue = serde_json::from_slice(own).ok()?;
                asked.0[at].1 = Json::Plain(own);
            }
        }
        Some(Bytes::from(asked.written(body.len())))
    }
}

/// Whether an endpoint's streams take the question, by model: a gateway may have many hosts behind it. Shared by all attempts that ask
/// the endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken(Arc<Mutex<HashMap<Option<String>, bool>>>);

impl Taken {
    /// None where no stream was answered yet.
    pub(crate) fn by(&self, model: Option<&str>) -> Option<bool> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&model.map(str::to_owned)).copied()
    }

    fn learn(&self, model: Option<&str>, takes: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Names are the agent's choice.
        if known.len() < MODELS {
            known.entry(model.map(str::to_owned)).or_insert(takes);
        }
    }
}

/// A stream that is asked for its usage by us.
pub(crate) struct Asking<'a> {
    pub added: Added,
    /// The request's body, what was added in it.
    pub body: Bytes,
    pub model: Option<String>,
    pub taken: &'a Taken,
}

impl Asking<'_> {
    /// Asks, and asks once more as the agent wrote it where what was added is refused; `refused` is told the refusal's status then.
    pub(crate) async fn send(
        self,
        asked: RequestBuilder,
        refused: impl FnOnce(StatusCode),
    ) -> reqwest::Result<Reply> {
        let again = asked.try_clone();
        let mut reply = Reply::from(asked.send().await?);
        let model = self.model.as_deref();
        if reply.status.is_success() {
            self.taken.learn(model, true);
            return Ok(reply);
        }
        let by_status = [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY].contains(&reply.status);
        // Where it was taken before, another refusal has another reason, unless it says so.
        let likely = by_status && self.taken.by(model).is_none();
        if !likely && !reply.names(OPTIONS).await {
            return Ok(reply);
        }
        let body = self.added.taken_out(&self.body);
        let Some((again, body)) = again.zip(body) else { return Ok(reply) };
        refused(reply.status);
        drop(reply);
        let reply = Reply::from(again.body(body).send().await?);
        // Only a stream shows that it was that: an agent may ask for anything.
        if reply.status.is_success() && reply.streams() {
            self.taken.learn(model, false);
        }
        Ok(reply)
    }
}

impl Reply {
    fn streams(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }

    /// Whether the beginning of its body holds a word; it is passed on with the rest.
    async fn names(&mut self, word: &str) -> bool {
        let (mut held, mut text) = (Vec::new(), Vec::new());
        while text.len() < LOOK {
            let Some(part) = self.body.next().await else { break };
            text.extend_from_slice(part.as_ref().map_or(&[][..], Bytes::as_ref));
            let broken = part.is_err();
            held.push(part);
            if broken {
                break;
            }
        }
        let rest = std::mem::replace(&mut self.body, stream::empty().boxed());
        self.body = stream::iter(held).chain(rest).boxed();
        text.windows(word.len()).any(|part| part == word.as_bytes())
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_asked_for_its_usage_and_nothing_else_of_it_changes() {
        let usage = r#""stream_options":{"include_usage":true}"#;
        for (asked, sent) in [
            (
                r#"{"model":"m","stream":true}"#.to_owned(),
                format!(r#"{{"model":"m","stream":true,{usage}}}"#),
            ),
            (
                r#"{"stream_options":{"include_usage":false},"stream":true}"#.to_owned(),
                format!(r#"{{{usage},"stream":true}}"#),
            ),
            (
                r#"{"stream":1,"stream_options":{"include_obfuscation":false}}"#.to_owned(),
                r#"{"stream":1,"stream_options":{"include_obfuscation":false,"include_usage":true}}"#
                    .to_owned(),
            ),
            (r#"{"stream":true,"stream_options":null}"#.to_owned(), format!(r#"{{"stream":true,{usage}}}"#)),
            (r#"{"stream":false}"#.to_owned(), r#"{"stream":false}"#.to_owned()),
            (r#"{"model":"m"}"#.to_owned(), r#"{"model":"m"}"#.to_owned()),
        ] {
            let mut object = Object::read(&asked).unwrap();
            let added = ask_for_usage(&mut object);
            let written = object.written(0);
            assert_eq!(String::from_utf8(written.clone()).unwrap(), sent);
            assert_eq!(added.is_some(), asked != sent, "{asked}");
            if let Some(added) = added {
                assert_eq!(added.taken_out(&written).unwrap(), asked, "as the agent wrote it");
            }
        }
    }

    #[test]
    fn what_an_agent_asks_for_by_itself_is_not_ours_to_take_back() {
        for (options, ours) in [
            (r#"{"include_usage":true,"include_obfuscation":false}"#, false),
            (r#"{"include_usage":true,"includeUsage":false}"#, true),
            (r#"{"includeUsage":true}"#, true),
            (r#"{"include_usage":1}"#, true),
        ] {
            let asked = format!(r#"{{"stream":true,"stream_options":{options}}}"#);
            let mut object = Object::read(&asked).unwrap();
            assert_eq!(ask_for_usage(&mut object).is_some(), ours, "{options}");
            assert_eq!(String::from_utf8(object.written(0)).unwrap() == asked, !ours, "{options}");
        }
    }

    #[test]
    fn what_is_known_of_an_endpoint_is_known_by_model_and_for_all_attempts_and_stays() {
        let taken = Taken::default();
        let another = taken.clone();
        taken.learn(Some("old"), false);
        taken.learn(Some("new"), true);
        taken.learn(Some("new"), false);
        assert_eq!((another.by(Some("old")), another.by(Some("new"))), (Some(false), Some(true)));
        assert_eq!(another.by(None), None);
        (0..2 * MODELS).for_each(|number| taken.learn(Some(&number.to_string()), true));
        assert_eq!(taken.0.lock().unwrap().len(), MODELS);
    }
}
