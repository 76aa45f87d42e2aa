//! What a proxy saw: requests, tokens, lookups. Each request is a line of a log as soon as it is over.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use infradev_model::{Lookup, Metered, ModelMetered, Tokens, Wire};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Notify;

use crate::meter::{Found, Reader, message};
use crate::object::Object;
use crate::skill::Sign;

/// Different lookups that are kept; of more, only the first ones.
const LOOKUPS: usize = 1000;
/// Bytes of an error's body that are read.
const EXCERPT: usize = 4 << 10;

/// Failures on end after which an agent is not waited for any longer.
const IN_VAIN: u32 = 4;

/// How the last request for an answer went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Last {
    /// There was none.
    #[default]
    None,
    /// Well.
    Answered,
    /// The model would not go on.
    Refused,
    /// The endpoint answered with an error.
    Status(u16, String),
    /// The endpoint could not be reached, or broke off.
    Unreachable(String),
}

/// Counts over one attempt.
#[derive(Debug)]
pub(crate) struct Tally {
    start: Instant,
    budget: Option<u64>,
    /// By what a skill's text is known.
    sign: Option<Sign>,
    /// Told when the tokens are used up.
    pub spent: Notify,
    /// Told when the endpoint sends everything away.
    pub hopeless: Notify,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    metered: Metered,
    lookups: Vec<Lookup>,
    last: Last,
    /// How long the endpoint asked to be left alone, where its last answer was an error that says so.
    retry_after: Option<Duration>,
    /// When the skill's text first stood in a request.
    opened_s: Option<f64>,
    /// Failures on end that no waiting mends, with no answer before them.
    in_vain: u32,
    log: File,
}

#[derive(Serialize)]
struct Line<'a> {
    at_s: f64,
    took_s: f64,
    method: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl Tally {
    /// Counts from now on. `budget` bounds input and output tokens together.
    pub(crate) fn new(log: File, budget: Option<u64>, sign: Option<Sign>) -> Tally {
        let seen = Seen {
            metered: Metered::default(),
            lookups: Vec::new(),
            last: Last::None,
            retry_after: None,
            opened_s: None,
            in_vain: 0,
            log,
        };
        Tally {
            start: Instant::now(),
            budget,
            sign,
            spent: Notify::new(),
            hopeless: Notify::new(),
            seen: Mutex::new(seen),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Something was asked for that is not given; `status` is the answer.
    pub(crate) fn lookup(&self, method: &str, target: &str, status: u16) {
        let at = self.seconds();
        let target: String = target.chars().take(500).collect();
        let mut seen = self.seen();
        let room = seen.lookups.len() < LOOKUPS;
        let known = seen.lookups.iter_mut().find(|known| known.method == method && known.target == target);
        match known {
            Some(known) => known.times += 1,
            None if room => {
                seen.lookups.push(Lookup {
                    method: method.into(),
                    target: target.clone(),
                    times: 1,
                    first_s: at,
                });
            }
            None => {}
        }
        seen.write(&Line {
            at_s: at,
            took_s: 0.0,
            method,
            path: &target,
            model: None,
            status: Some(status),
            tokens: None,
            error: None,
        });
    }

    /// Looks at what the model is about to be asked.
    pub(crate) fn asked(&self, asked: &Object<'_>) {
        let Some(sign) = &self.sign else { return };
        if self.opened_s().is_none() && sign.stands_in(asked) {
            self.seen().opened_s = Some(self.seconds());
        }
    }

    /// When the skill's text was first shown to the model.
    pub(crate) fn opened_s(&self) -> Option<f64> {
        self.seen().opened_s
    }

    /// How long the endpoint asked to be left alone with its last answer.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.seen().retry_after
    }

    /// A request that is neither passed on nor a lookup.
    pub(crate) fn note(&self, method: &str, path: &str, status: u16) {
        let at_s = self.seconds();
        let (took_s, status) = (0.0, Some(status));
        let line = Line { at_s, took_s, method, path, model: None, status, tokens: None, error: None };
        self.seen().write(&line);
    }

    pub(crate) fn over_budget(&self) -> bool {
        let used = self.seen().metered.tokens.all();
        self.budget.is_some_and(|budget| used >= budget)
    }

    /// All of it so far.
    pub(crate) fn result(&self) -> (Metered, Vec<Lookup>, Last) {
        let seen = self.seen();
        (seen.metered.clone(), seen.lookups.clone(), seen.last.clone())
    }
}

/// Whether an error of this status stays, however often one asks: a key that is not taken, a model that is not known.
pub(crate) fn lasts(status: u16) -> bool {
    matches!(status, 401 | 403 | 404)
}

impl Seen {
    /// A key that is not taken or a model that is not known stays so; an agent would ask again until its time is over.
    fn count_in_vain(&mut self) {
        let answered = self.metered.requests > self.metered.failed;
        self.in_vain = match &self.last {
            Last::Status(status, _) if lasts(*status) && !answered => self.in_vain + 1,
            Last::Unreachable(_) if !answered => self.in_vain + 1,
            _ => 0,
        };
    }

    fn write(&mut self, line: &Line<'_>) {
        // A log that cannot be written takes nothing from what is counted.
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            let _ = self.log.write_all(&text);
        }
    }
}

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
    pub(crate) fn begin(
        tally: Arc<Tally>,
        method: &str,
        path: &str,
        wire: Option<Wire>,
        model: Option<String>,
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
        let lacks = self.lacks_tokens(&found);
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
