//! OpenHands' `--headless --json`: its SDK's events, among lines of text that are none.
//!
//! An answer of the model is one or more events of one `llm_response_id`: a message, or actions. That it failed is an event, and no
//! exit code. What it used stands in the state that it keeps beside its events, `out/conversations/<id>/base_state.json`: in all,
//! and by `llm_response_id`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use infradev_model::Tokens;
use infradev_model::atif::{ObservationResult, StepSource};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::{Events, part, plain_file, text, time, words};
use crate::log::LONGEST;
use crate::meter::message;
use crate::output::OwnWord;

/// A reader of these events.
#[derive(Debug, Default)]
pub(crate) struct OpenHands {
    /// The prompt was told of, which stands in the first step.
    prompted: bool,
    /// By answer.
    used: BTreeMap<String, Tokens>,
    /// In all.
    sum: Option<Tokens>,
}

impl OpenHands {
    /// A reader that knows what was used, from what the agent put into `out`.
    pub(crate) fn of(out: &Path) -> OpenHands {
        let mut reader = OpenHands::default();
        let kept = std::fs::read_dir(out.join("conversations")).into_iter().flatten().flatten();
        // It holds one conversation a run.
        for conversation in kept.take(16) {
            let path = Path::new("conversations").join(conversation.file_name()).join("base_state.json");
            let Some(file) = plain_file(out, &path) else { continue };
            let mut text = Vec::new();
            let whole = file.take(LONGEST as u64).read_to_end(&mut text);
            if let (Ok(_), Ok(state)) = (whole, serde_json::from_slice::<Value>(&text)) {
                reader.count(&state["stats"]);
            }
        }
        reader
    }

    /// Counts what it used models for: its answers, condensing.
    fn count(&mut self, stats: &Value) {
        for metrics in stats["usage_to_metrics"].as_object().into_iter().flat_map(|uses| uses.values()) {
            if let Some(tokens) = tokens(&metrics["accumulated_token_usage"]) {
                *self.sum.get_or_insert_default() += tokens;
            }
            for usage in metrics["token_usages"].as_array().into_iter().flatten() {
                if let (Some(id), Some(tokens)) = (usage["response_id"].as_str(), tokens(usage)) {
                    self.used.insert(id.to_owned(), tokens);
                }
            }
        }
    }

    /// The open step of an event's answer.
    fn answer<'a>(&self, event: &Value, book: &'a mut Book) -> &'a mut super::chain::Open {
        let id = event["llm_response_id"].as_str();
        let open = book.root().answer(id);
        open.answers(1);
        if let Some(tokens) = id.and_then(|id| self.used.get(id)) {
            open.used(*tokens);
        }
        open
    }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    usage.is_object().then(|| Tokens {
        input: count("prompt_tokens"),
        cached: count("cache_read_tokens"),
        written: count("cache_write_tokens"),
        output: count("completion_tokens"),
        reasoning: count("reasoning_tokens"),
    })
}

impl Events for OpenHands {
    fn event(&mut self, mut event: Value, book: &mut Book) {
        let at = time(&event["timestamp"]);
        let kind = event["kind"].as_str().unwrap_or("an event without a kind").to_owned();
        match kind.as_str() {
            "MessageEvent" if event["source"] == "agent" => {
                let mut said = part(&mut event, "llm_message");
                let content = words(part(&mut said, "content"), book);
                let open = self.answer(&event, book);
                open.say(&content, true);
                open.reason(&text(part(&mut said, "reasoning_content")));
                book.said.word = OwnWord::Done;
            }
            "MessageEvent" => {
                let content = event.pointer_mut("/llm_message/content").map(Value::take).unwrap_or_default();
                let said = words(content, book);
                if std::mem::replace(&mut self.prompted, true) {
                    book.root().aside(StepSource::User, said, at);
                }
            }
            "ActionEvent" => {
                let thought = words(part(&mut event, "thought"), book);
                let mut call = part(&mut event, "tool_call");
                let arguments = match part(&mut call, "arguments") {
                    Value::String(given) => serde_json::from_str(&given).unwrap_or(Value::String(given)),
                    other => other,
                };
                let (id, name) =
                    (text(part(&mut event, "tool_call_id")), text(part(&mut event, "tool_name")));
                let reasoning = text(part(&mut event, "reasoning_content"));
                book.said.word = if name == "finish" { OwnWord::Done } else { OwnWord::Nothing };
                let open = self.answer(&event, book);
                open.at(at);
                open.say(&thought, true);
                open.reason(&reasoning);
                open.call(id, name, arguments);
            }
            "ObservationEvent" => {
                let mut gave = part(&mut event, "observation");
                let content = Some(words(part(&mut gave, "content"), book));
                let told = ["exit_code", "is_error"].into_iter().filter_map(|name| {
                    let value = gave.get(name).filter(|value| !value.is_null() && **value != false)?;
                    Some((name.to_owned(), value.clone()))
                });
                let told: Map<String, Value> = told.collect();
                let extra = Some(told).filter(|told| !told.is_empty());
                let result = ObservationResult { content, extra, ..ObservationResult::default() };
                book.result(None, &text(part(&mut event, "tool_call_id")), result);
            }
            "AgentErrorEvent" | "UserRejectObservation" => {
                let name = if kind == "AgentErrorEvent" { "error" } else { "rejection_reason" };
                let content = Some(text(part(&mut event, name)));
                let extra = Some(Map::from_iter([("is_error".to_owned(), true.into())]));
                let result = ObservationResult { content, extra, ..ObservationResult::default() };
                book.result(None, &text(part(&mut event, "tool_call_id")), result);
            }
            "ConversationErrorEvent" => {
                let why = format!("{}: {}", text(part(&mut event, "code")), text(part(&mut event, "detail")));
                let why = message(&json!({"message": why}));
                book.root().aside(StepSource::System, why.clone(), at);
                book.said.word = OwnWord::Failed(why);
            }
            "Condensation" => {
                let summary = text(part(&mut event, "summary"));
                let said = format!("The conversation was condensed. {summary}");
                book.root().aside(StepSource::System, said.trim_end().to_owned(), at);
            }
            other => book.not_shown(other),
        }
    }

    fn no_event(&mut self, line: &[u8], book: &mut Book) {
        if line.trim_ascii_start().first() == Some(&b'{') {
            book.report.malformed += 1;
        } else {
            book.not_shown("line of text");
        }
    }

    fn end(&mut self, book: &mut Book) {
        book.said.tokens = self.sum;
    }

    fn has_last_word(&self) -> bool {
        false
    }
}
