//! One request on its way, until its answer is over.

use std::sync::Arc;
use std::time::Duration;

use infradev_model::{Metered, ModelMetered, Tokens, Wire};
use serde_json::Value;

use super::{IN_VAIN, Last, Line, Tally};
use crate::meter::{Found, Reader, message};

/// Bytes of an error's body that are read.
const EXCERPT: usize = 4 << 10;
/// Bytes for which a token is charged where none are told. Text has about as many; what surrounds it in a stream has more, so that
/// the estimate is rather too high.
const BYTES_A_TOKEN: u64 = 4;

/// Counts a request for a model.
fn of_model(metered: &mut Metered, model: &str, tokens: Tokens) {
    let known = metered.models.iter().position(|known| known.model == model);
    let at = known.unwrap_or_else(|| {
        metered.models.push(ModelMetered { model: model.to_owned(), ..ModelMetered::default() });
        metered.models.len() - 1
    });
    metered.models[at].requests += 1;
    metered.models[at].tokens += tokens;
}

/// One request that is passed on. Dropped, it is over and counted.
#[derive(Debug)]
pub(crate) struct Answer {
    tally: Arc<Tally>,
    begun: f64,
    method: String,
    path: String,
    wire: Option<Wire>,
    model: Option<String>,
    /// Whether the endpoint may have begun to answer.
    begun_there: bool,
    /// Bytes of the request's body.
    asked: u64,
    /// Bytes of the answer's body: that came, and that are to come where the endpoint said so.
    bytes: (u64, Option<u64>),
    /// The body's end was seen.
    ended: bool,
    status: Option<u16>,
    reader: Option<Reader>,
    excerpt: Vec<u8>,
    failure: Option<Last>,
    retry_after: Option<Duration>,
}

impl Answer {
    /// Of a request of so many bytes.
    pub(crate) fn begin(
        tally: Arc<Tally>,
        method: &str,
        path: &str,
        wire: Option<Wire>,
        model: Option<String>,
        asked: u64,
    ) -> Answer {
        let begun = tally.seconds();
        Answer {
            tally,
            begun,
            method: method.to_owned(),
            path: path.to_owned(),
            wire,
            model,
            begun_there: true,
            asked,
            bytes: (0, None),
            ended: false,
            status: None,
            reader: None,
            excerpt: Vec::new(),
            failure: None,
            retry_after: None,
        }
    }

    /// The endpoint was not reached, or broke off after it had begun.
    pub(crate) fn unreachable(&mut self, why: &str, begun: bool) {
        self.begun_there = begun;
        self.failure = Some(Last::Unreachable(why.to_owned()));
    }

    /// The endpoint does not take what we had it ask for besides, and is asked once more without: one request of the agent's still.
    pub(crate) fn asked_again(&self, status: u16) {
        let now = self.tally.seconds();
        self.tally.seen().write(&Line {
            at_s: self.begun,
            took_s: now - self.begun,
            method: &self.method,
            path: &self.path,
            model: self.model.as_deref(),
            status: Some(status),
            tokens: None,
            estimated: None,
            error: Some("the question for the stream's usage is not taken: asked again without"),
        });
    }

    pub(crate) fn status(&mut self, status: u16, content_type: &str) {
        self.status = Some(status);
        if (200..300).contains(&status) {
            self.reader = self.wire.map(|wire| Reader::new(wire, content_type));
        }
    }

    /// The endpoint asks to be left alone for so long.
    pub(crate) fn retry_after(&mut self, wait: Option<Duration>) {
        self.retry_after = wait;
    }

    /// How long the answer's body is to be, where the endpoint says so.
    pub(crate) fn expected(&mut self, bytes: Option<u64>) {
        self.bytes.1 = bytes;
    }

    /// The answer's body came to its end.
    pub(crate) fn ended(&mut self) {
        self.ended = true;
    }

    /// Whether tokens are missing in what the answer said of them: it is none that the endpoint sent instead, and it said nothing,
    /// or was broken off before its last word.
    fn lacks_tokens(&self, found: &Found) -> bool {
        let sent_away = self.status.is_some_and(|status| !(200..300).contains(&status));
        let whole =
            found.done || (found.error.is_none() && (self.ended || Some(self.bytes.0) == self.bytes.1));
        self.begun_there && !sent_away && (found.tokens.is_none() || !whole)
    }

    /// Tokens of request and answer by their bytes, less those that were told.
    fn estimate(&self, told: Tokens) -> u64 {
        (self.asked.saturating_add(self.bytes.0) / BYTES_A_TOKEN).saturating_sub(told.all())
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.0 += bytes.len() as u64;
        match &mut self.reader {
            Some(reader) => reader.feed(bytes),
            None => {
                let room = EXCERPT.saturating_sub(self.excerpt.len()).min(bytes.len());
                self.excerpt.extend_from_slice(&bytes[..room]);
            }
        }
    }

    /// What an error's body says.
    fn said(&self) -> String {
        match serde_json::from_slice::<Value>(&self.excerpt) {
            Ok(body) if !body["error"].is_null() => message(&body["error"]),
            _ => message(&Value::String(String::from_utf8_lossy(&self.excerpt).into_owned())),
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let found = self.reader.as_mut().map(Reader::finish).unwrap_or_default();
        let lacks = self.wire.is_some() && self.lacks_tokens(&found);
        let estimated = lacks.then(|| self.estimate(found.tokens.unwrap_or_default()));
        let last = match (self.failure.take(), self.status) {
            (Some(failure), _) => failure,
            (None, Some(status)) if !(200..300).contains(&status) => Last::Status(status, self.said()),
            // The agent went away before the endpoint answered.
            (None, None) => Last::None,
            _ if found.refused => Last::Refused,
            _ => match &found.error {
                Some(error) => Last::Status(200, error.clone()),
                None => Last::Answered,
            },
        };
        let error = match &last {
            Last::Status(_, why) | Last::Unreachable(why) => Some(why.clone()),
            _ => None,
        };
        let now = self.tally.seconds();
        let mut seen = self.tally.seen();
        if let Some(wire) = self.wire {
            let metered = &mut seen.metered;
            metered.requests += 1;
            if !metered.wires.contains(&wire) {
                metered.wires.push(wire);
            }
            if matches!(last, Last::Status(..) | Last::Unreachable(_)) {
                metered.failed += 1;
            }
            metered.unmetered += u64::from(lacks);
            metered.estimated = metered.estimated.saturating_add(estimated.unwrap_or(0));
            metered.tokens += found.tokens.unwrap_or_default();
            if let Some(model) = &self.model {
                of_model(metered, model, found.tokens.unwrap_or_default());
            }
            if last != Last::None {
                seen.retry_after = self.retry_after.filter(|_| matches!(last, Last::Status(..)));
                seen.last = last;
            }
            seen.count_in_vain();
        }
        seen.write(&Line {
            at_s: self.begun,
            took_s: now - self.begun,
            method: &self.method,
            path: &self.path,
            model: self.model.as_deref(),
            status: self.status,
            tokens: found.tokens,
            estimated,
            error: error.as_deref(),
        });
        let in_vain = seen.in_vain >= IN_VAIN;
        drop(seen);
        if in_vain {
            self.tally.hopeless.notify_one();
        }
        if self.tally.over_budget() {
            self.tally.spent.notify_one();
        }
    }
}
