//! Calls of observers under way, and what ranks answered: bounded so that all of a call's answers fit into one frame to the
//! judge.

use std::collections::BTreeMap;
use std::time::Duration;

use infradev_model::{Detail, Outcome, RankOutcome};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::messages::{MESSAGE, TRACE, within};

/// What the answers to one call may hold in all: what the judge can be sent in one frame, its own fields left room for.
const ANSWERED_TREES: u64 = 15 << 20;
/// The same of their arrays.
const ANSWERED_BYTES: u64 = 1 << 30;

/// One rank's answer to a call.
pub struct Answer {
    /// `returned`, `raised`, `crashed`, `timeout`, `peer_abort` or `gone`.
    pub status: &'static str,
    /// Value or error, as the judge gets it.
    pub fields: Value,
    /// Arrays of the value.
    pub payload: Vec<u8>,
    /// What `fields` take when written.
    tree_bytes: u64,
}

impl Answer {
    /// An answer without arrays.
    pub fn new(status: &'static str, fields: Value) -> Answer {
        Answer { status, fields, payload: Vec::new(), tree_bytes: 0 }
    }

    /// A value with its arrays.
    pub fn returned(value: Value, payload: Vec<u8>) -> Answer {
        Answer { payload, ..Answer::new("returned", json!({"value": value})) }
    }

    /// In place of one that no judge could be sent.
    fn too_much() -> Answer {
        let message = format!(
            "the ranks answered more than {ANSWERED_TREES} bytes of values or {ANSWERED_BYTES} bytes of arrays"
        );
        Answer::new(
            "raised",
            json!({"exception": "TooMuch", "mro": [], "message": message, "kind": "unencodable"}),
        )
    }
}

/// A call of an observer that some ranks have not answered.
pub struct Call {
    /// Its world.
    pub launch: u32,
    /// Who was asked.
    pub ranks: Vec<u32>,
    /// Who has answered.
    pub answers: BTreeMap<u32, Answer>,
    /// When those who have not are taken to hang.
    pub deadline: Instant,
    /// The judge's request that waits for it, where one does.
    pub waiter: Option<u32>,
    /// Whether some answer is no value.
    pub failed: bool,
}

impl Call {
    /// Whether all have answered.
    pub fn complete(&self) -> bool {
        self.answers.len() == self.ranks.len()
    }

    /// The answer, or the failure that stands in for one with which all answers together are more than a judge can be sent.
    pub fn bounded(&self, mut answer: Answer) -> Answer {
        answer.tree_bytes = written_bytes(&answer.fields);
        let given = self.answers.values();
        let (trees, arrays) = given.fold((0, 0), |(trees, arrays), given| {
            (trees + given.tree_bytes, arrays + given.payload.len() as u64)
        });
        let fits = trees + answer.tree_bytes <= ANSWERED_TREES
            && arrays + answer.payload.len() as u64 <= ANSWERED_BYTES;
        if fits { answer } else { Answer::too_much() }
    }
}

/// How many bytes a value takes when written.
fn written_bytes(value: &Value) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).map_or(u64::MAX, |()| count.0)
}

/// What went wrong on a rank, as a vector's entry.
pub fn wrong(answer: &Answer) -> RankOutcome {
    let text = |key: &str| answer.fields[key].as_str().unwrap_or_default().to_string();
    let outcome = match answer.status {
        "crashed" => Outcome::Crashed,
        "timeout" => Outcome::Timeout,
        "peer_abort" | "gone" => Outcome::PeerAbort,
        _ => Outcome::Error,
    };
    let mut message = within(text("message"), MESSAGE);
    for key in ["traceback", "stack"] {
        let more = within(text(key), TRACE);
        if !more.is_empty() {
            message = format!("{message}\n{more}");
        }
    }
    let line = answer.fields["line"].as_u64().map(|line| line as u32);
    let file = answer.fields["file"].as_str().map(str::to_string);
    let exception = within(text("exception"), MESSAGE);
    RankOutcome::with(
        outcome,
        Detail { exception, message, file: file.map(|file| within(file, MESSAGE)), line },
    )
}

/// A time that a judge asked for, within a day.
pub fn seconds_of(seconds: f64) -> Duration {
    Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, 86_400.0) } else { 86_400.0 })
}
