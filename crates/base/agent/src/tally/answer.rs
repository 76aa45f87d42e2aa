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

/// Tokens that are kept of a budget for an answer on its way. Most are shorter.
const AN_ANSWER: u64 = 8192;

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

/// A request that is to be passed on.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub method: String,
    pub path: String,
    /// Of a request for an answer, how it is written.
    pub wire: Option<Wire>,
    pub model: Option<String>,
    /// Bytes of its body.
    pub bytes: u64,
    /// How many choices, or candidates, it asks for.
    pub choices: usize,
}

impl Asked {
    /// Tokens that are kept for it while it is under way.
    fn reserved(&self) -> u64 {
        if self.wire.is_some() { (self.bytes / BYTES_A_TOKEN).saturating_add(AN_ANSWER) } else { 0 }
    }
}

/// One request that is passed on. Dropped, it is over and counted.
#[derive(Debug)]
pub(crate) struct Answer {
    tally: Arc<Tally>,
    begun: f64,
    asked: Asked,
    /// Whether the endpoint may have begun to answer.
    begun_there: bool,
    /// Bytes of the answer's body that came.
    bytes: u64,
    status: Option<u16>,
    reader: Option<Reader>,
    excerpt: Vec<u8>,
    failure: Option<Last>,
    retry_after: Option<Duration>,
}

impl Answer {
    /// Begins once the budget has room for it beside those that are under way; none where the tokens are used up.
    pub(crate) async fn begin(tally: Arc<Tally>, asked: Asked) -> Option<Answer> {
        if !tally.make_room(asked.reserved()).await {
            return None;
        }
        let begun = tally.seconds();
        Some(Answer {
            tally,
            begun,
            asked,
            begun_there: true,
            bytes: 0,
            status: None,
            reader: None,
            excerpt: Vec::new(),
            failure: None,
            retry_after: None,
        })
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
            method: &self.asked.method,
            path: &self.asked.path,
            model: self.asked.model.as_deref(),
            status: Some(status),
            tokens: None,
            estimated: None,
            error: Some("the question for the stream's usage is not taken: asked again without"),
        });
    }

    pub(crate) fn status(&mut self, status: u16, content_type: &str) {
        self.status = Some(status);
        if (200..300).contains(&status) {
            self.reader = self.asked.wire.map(|wire| Reader::new(wire, content_type, self.asked.choices));
        }
    }

    /// The endpoint asks to be left alone for so long.
    pub(crate) fn retry_after(&mut self, wait: Option<Duration>) {
        self.retry_after = wait;
    }

    /// Whether tokens are missing in what the answer said of them: it is none that the endpoint sent instead, and it said nothing, or
    /// came to its end, of itself or broken off, before its last word.
    fn lacks_tokens(&self, found: &Found) -> bool {
        let sent_away = self.status.is_some_and(|status| !(200..300).contains(&status));
        self.begun_there && !sent_away && (found.tokens.is_none() || !found.done)
    }

    /// Tokens of request and answer by their bytes, less those that were told.
    fn estimate(&self, told: Tokens) -> u64 {
        (self.asked.bytes.saturating_add(self.bytes) / BYTES_A_TOKEN).saturating_sub(told.all())
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
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
        let lacks = self.asked.wire.is_some() && self.lacks_tokens(&found);
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
        if let Some(wire) = self.asked.wire {
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
            if let Some(model) = &self.asked.model {
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
            method: &self.asked.method,
            path: &self.asked.path,
            model: self.asked.model.as_deref(),
            status: self.status,
            tokens: found.tokens,
            estimated,
            error: error.as_deref(),
        });
        seen.under_way = seen.under_way.saturating_sub(self.asked.reserved());
        let in_vain = seen.in_vain >= IN_VAIN;
        drop(seen);
        self.tally.over.notify_waiters();
        if in_vain {
            self.tally.hopeless.notify_one();
        }
        if self.tally.over_budget() {
            self.tally.spent.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn asked(bytes: u64) -> Asked {
        Asked {
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            wire: Some(Wire::AnthropicMessages),
            model: None,
            bytes,
            choices: 1,
        }
    }

    /// A stream's end, with so many tokens.
    fn tell(answer: &mut Answer, output: u64) {
        answer.status(200, "application/json");
        answer.feed(format!("{{\"usage\":{{\"output_tokens\":{output}}}}}").as_bytes());
    }

    fn tally(budget: Option<u64>) -> Arc<Tally> {
        Arc::new(Tally::new(tempfile::tempfile().unwrap(), budget, None))
    }

    #[tokio::test]
    async fn an_answer_waits_for_those_under_way_where_they_may_use_the_budget_up() {
        let tally = tally(Some(2 * AN_ANSWER));
        let begin = |bytes| Answer::begin(Arc::clone(&tally), asked(bytes));
        let mut first = begin(4 * AN_ANSWER).await.unwrap();
        let mut second = Box::pin(begin(4));
        assert!(second.as_mut().now_or_never().is_none());
        tell(&mut first, 10);
        drop(first);
        let mut second = second.await.unwrap();
        let mut third = Box::pin(begin(4));
        assert!(third.as_mut().now_or_never().is_none(), "ten tokens are gone");
        tell(&mut second, 2 * AN_ANSWER);
        drop(second);
        assert!(third.await.is_none(), "the tokens are used up");
    }

    #[tokio::test]
    async fn answers_wait_for_none_where_the_budget_has_room_or_there_is_none() {
        for budget in [None, Some(100 * AN_ANSWER)] {
            let tally = tally(budget);
            let answers = (0..20).map(|_| Answer::begin(Arc::clone(&tally), asked(4)));
            let mut waiting = Box::pin(futures_util::future::join_all(answers));
            assert!(waiting.as_mut().now_or_never().is_some(), "{budget:?}");
        }
    }
}
