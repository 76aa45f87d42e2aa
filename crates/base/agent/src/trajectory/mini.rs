//! mini-swe-agent's own trajectory: one document, its messages read one at a time. Each answer holds the endpoint's whole response,
//! and in it the usage.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use infradev_model::Tokens;
use infradev_model::atif::{ObservationResult, StepSource};
use infradev_store::utc_time;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::{part, text, words};
use crate::log::LONGEST;
use crate::meter::{message, usage_of_chat};
use crate::output::OwnWord;

/// Reads a document to its end, or as far as it goes.
pub(crate) fn read(file: File, book: &mut Book) {
    let ration = Rc::new(Cell::new(LONGEST));
    let reader = BufReader::with_capacity(1 << 16, Rationed { file, ration: Rc::clone(&ration) });
    let mut document = serde_json::Deserializer::from_reader(reader);
    let ended = Document { book, ration: &ration }.deserialize(&mut document);
    if let Err(error) = ended {
        match error.classify() {
            serde_json::error::Category::Eof => book.report.cut_off = true,
            serde_json::error::Category::Io => book.report.too_long += 1,
            _ => book.report.malformed += 1,
        }
    }
}

/// A file of which no message may be longer than a ration.
struct Rationed {
    file: File,
    ration: Rc<Cell<usize>>,
}

impl Read for Rationed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.ration.get();
        if left == 0 {
            return Err(io::Error::other("a message is too long"));
        }
        let room = buffer.len().min(left);
        let count = self.file.read(&mut buffer[..room])?;
        self.ration.set(left - count);
        Ok(count)
    }
}

struct Document<'a> {
    book: &'a mut Book,
    ration: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trajectory of mini-swe-agent")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.ration.set(LONGEST);
            if key == "messages" {
                map.next_value_seed(Messages { book: &mut *self.book, ration: self.ration })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Messages<'a> {
    book: &'a mut Book,
    ration: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Messages<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Messages<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<(), A::Error> {
        while let Some(message) = messages.next_element::<Value>()? {
            self.ration.set(LONGEST);
            self.book.report.events += 1;
            take(message, self.book);
        }
        Ok(())
    }
}

fn take(mut message: Value, book: &mut Book) {
    let mut extra = part(&mut message, "extra");
    let at = extra["timestamp"].as_f64().filter(|at| (0.0..1e11).contains(at));
    let at = at.map(|seconds| utc_time((seconds * 1000.0) as u64));
    match message["role"].as_str() {
        Some("assistant") => answer(message, &extra["response"], at, book),
        Some("tool") => {
            let content = Some(words(part(&mut message, "content"), book));
            let told = ["returncode", "exception_info"].into_iter().filter_map(|name| {
                let value = extra.get(name).filter(|value| !value.is_null() && **value != "")?;
                Some((name.to_owned(), value.clone()))
            });
            let told: Map<String, Value> = told.collect();
            let extra = Some(told).filter(|told| !told.is_empty());
            let call = text(part(&mut message, "tool_call_id"));
            book.result(None, &call, ObservationResult { content, extra, ..ObservationResult::default() });
        }
        Some("exit") => ended(message, &extra, book),
        Some(role @ ("system" | "user")) => {
            let source = if role == "system" { StepSource::System } else { StepSource::User };
            let mut response = part(&mut extra, "response");
            if response.is_object() {
                // An answer that could not be acted on, and what it is told of that.
                let said = response.pointer_mut("/choices/0/message").map(Value::take).unwrap_or_default();
                answer(said, &response, at.clone(), book);
            }
            let said = words(part(&mut message, "content"), book);
            book.root().aside(source, said, at);
        }
        role => {
            let kind = format!("a message of the role {}", role.unwrap_or("none"));
            book.not_shown(&kind);
        }
    }
}

fn answer(mut message: Value, response: &Value, at: Option<String>, book: &mut Book) {
    let said = words(part(&mut message, "content"), book);
    let used = usage_of_chat(&response["usage"]);
    if let Some(tokens) = used {
        *book.said.tokens.get_or_insert(Tokens::default()) += tokens;
    }
    let chain = book.root();
    chain.close();
    let open = chain.answer(None);
    open.at(at);
    open.answers(1);
    open.say(&said, true);
    open.reason(&text(part(&mut message, "reasoning_content")));
    if let Some(tokens) = used {
        open.used(tokens);
    }
    let Value::Array(calls) = part(&mut message, "tool_calls") else { return };
    for mut call in calls {
        let id = text(part(&mut call, "id"));
        let mut function = part(&mut call, "function");
        let arguments = match part(&mut function, "arguments") {
            Value::String(given) => serde_json::from_str(&given).unwrap_or(Value::String(given)),
            other => other,
        };
        open.call(id, text(part(&mut function, "name")), arguments);
    }
}

fn ended(mut said: Value, extra: &Value, book: &mut Book) {
    let status = extra["exit_status"].as_str().unwrap_or_default();
    let content = words(part(&mut said, "content"), book);
    book.said.word = match status {
        "" => OwnWord::Nothing,
        "Submitted" => OwnWord::Done,
        "LimitsExceeded" | "TimeExceeded" => OwnWord::Limit(status.to_owned()),
        status => OwnWord::Failed(message(&json!({"message": format!("{status}: {content}")}))),
    };
    book.root().aside(StepSource::System, format!("{status}: {content}"), None);
}
