//! What a proxy saw: requests, tokens, lookups. Each request is a line of a log as soon as it is over.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use infradev_model::{Lookup, Metered, Tokens};
use serde::Serialize;
use tokio::sync::Notify;

use crate::object::Object;
use crate::skill::Sign;

mod answer;

pub(crate) use answer::{Answer, Asked};

/// Different lookups that are kept; of more, only the first ones.
const LOOKUPS: usize = 1000;
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
    /// Told when an answer is over.
    over: Notify,
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
    /// Tokens that are kept for answers on their way.
    under_way: u64,
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
    /// Tokens that are charged in place of those that the answer did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated: Option<u64>,
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
            under_way: 0,
            log,
        };
        Tally {
            start: Instant::now(),
            budget,
            sign,
            spent: Notify::new(),
            hopeless: Notify::new(),
            over: Notify::new(),
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
            estimated: None,
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
        self.seen().write(&Line {
            at_s,
            took_s: 0.0,
            method,
            path,
            model: None,
            status: Some(status),
            tokens: None,
            estimated: None,
            error: None,
        });
    }

    pub(crate) fn over_budget(&self) -> bool {
        let used = self.seen().metered.charged();
        self.budget.is_some_and(|budget| used >= budget)
    }

    /// Keeps tokens for an answer, once those on their way leave room for it in the budget; one alone always has room. Whether any of
    /// the budget is left.
    async fn make_room(&self, reserved: u64) -> bool {
        loop {
            let over = self.over.notified();
            tokio::pin!(over);
            // From here on an answer's end is heard.
            over.as_mut().enable();
            {
                let mut seen = self.seen();
                let used = seen.metered.charged();
                let budget = self.budget.unwrap_or(u64::MAX);
                if used >= budget {
                    return false;
                }
                let taken = used.saturating_add(seen.under_way).saturating_add(reserved);
                if seen.under_way == 0 || taken <= budget {
                    seen.under_way = seen.under_way.saturating_add(reserved);
                    return true;
                }
            }
            over.await;
        }
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
