//! Gemini CLI's `stream-json`: pieces of messages, calls, what they gave, and one `result` with the sums.
//!
//! An answer of the model ends where its calls come back. What one answer used is not told, reasoning neither.

use infradev_model::Tokens;
use infradev_model::atif::{ObservationResult, StepSource};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::{Events, part, text, time};
use crate::meter::message;
use crate::output::OwnWord;

/// A reader of these events.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    /// The prompt was told of, which stands in the first step.
    prompted: bool,
}

impl Events for Gemini {
    fn event(&mut self, mut event: Value, book: &mut Book) {
        let at = time(&event["timestamp"]);
        match (event["type"].as_str(), event["role"].as_str()) {
            (Some("init"), _) => book.session_id = event["session_id"].as_str().map(str::to_owned),
            (Some("message"), Some("user")) => {
                if std::mem::replace(&mut self.prompted, true) {
                    book.root().aside(StepSource::User, text(part(&mut event, "content")), at);
                }
            }
            (Some("message"), _) => {
                let apart = event["delta"] != true;
                let said = text(part(&mut event, "content"));
                let open = answer(book);
                open.at(at);
                open.say(&said, apart);
            }
            (Some("tool_use"), _) => {
                let (id, name) = (text(part(&mut event, "tool_id")), text(part(&mut event, "tool_name")));
                let open = answer(book);
                open.at(at);
                open.call(id, name, part(&mut event, "parameters"));
            }
            (Some("tool_result"), _) => {
                let failed = event["status"] == "error";
                let said = text(part(&mut event, "output"));
                let content = match event["error"]["message"].as_str() {
                    Some(why) if said.is_empty() => why.to_owned(),
                    _ => said,
                };
                let extra = failed.then(|| Map::from_iter([("is_error".to_owned(), true.into())]));
                let result =
                    ObservationResult { content: Some(content), extra, ..ObservationResult::default() };
                book.result(None, &text(part(&mut event, "tool_id")), result);
            }
            (Some("error"), _) => book.root().aside(StepSource::System, message(&event), at),
            (Some("result"), _) => end(&event, book),
            (kind, _) => {
                let kind = kind.unwrap_or("an event without a type").to_owned();
                book.not_shown(&kind);
            }
        }
    }
}

/// The open answer; a new one where calls of it came back.
fn answer(book: &mut Book) -> &mut super::chain::Open {
    let chain = book.root();
    if chain.open().is_some_and(|open| open.has_results()) {
        chain.close();
    }
    chain.answer(None)
}

fn end(event: &Value, book: &mut Book) {
    let why = || message(&event["error"]);
    book.said.word = match (event["status"].as_str(), event["error"]["type"].as_str()) {
        (Some("success"), _) => OwnWord::Done,
        (_, Some("FatalTurnLimitedError")) => OwnWord::Limit(why()),
        (_, Some(_)) => OwnWord::Failed(why()),
        _ => OwnWord::Failed("it says that it failed".to_owned()),
    };
    if event["error"].is_object() {
        book.root().aside(StepSource::System, why(), None);
    }
    let stats = &event["stats"];
    if !stats.is_object() {
        return;
    }
    let count = |name: &str| stats[name].as_u64().unwrap_or(0);
    let (input, shown) = (count("input_tokens"), count("output_tokens"));
    // Of the total, what is neither prompt nor shown is reasoning.
    let output = count("total_tokens").saturating_sub(input).max(shown);
    let tokens = Tokens { input, cached: count("cached"), written: 0, output, reasoning: output - shown };
    book.said.tokens = Some(tokens);
    for name in ["duration_ms", "tool_calls"] {
        book.sums.insert(name.to_owned(), json!(count(name)));
    }
}
