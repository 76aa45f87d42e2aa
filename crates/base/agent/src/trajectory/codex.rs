//! Codex's `exec --json`: items of a thread, in turns.
//!
//! Which items are of one answer of the model is not told: a step is a call with what was said and thought before it. Usage is told
//! at the end of a turn, for the whole thread so far; the turn's last step bears what the turn added.

use std::collections::BTreeMap;

use infradev_model::Tokens;
use infradev_model::atif::{ObservationResult, StepSource};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::chain::Open;
use super::{Events, part, text};
use crate::meter::message;
use crate::output::OwnWord;

/// Items that are at work at once; of more, only the end is seen.
const AT_WORK: usize = 1000;

/// A reader of these events.
#[derive(Debug, Default)]
pub(crate) struct Codex {
    at_work: BTreeMap<String, Value>,
    /// What earlier turns used.
    before: Tokens,
}

impl Codex {
    fn done(&mut self, mut item: Value, book: &mut Book) {
        let id = text(part(&mut item, "id"));
        self.at_work.remove(&id);
        let kind = item["type"].as_str().unwrap_or("none").to_owned();
        match kind.as_str() {
            "agent_message" => {
                let said = text(part(&mut item, "text"));
                fresh(book, Open::has_message).say(&said, true);
            }
            "reasoning" => {
                let thought = text(part(&mut item, "text"));
                fresh(book, Open::has_message).reason(&thought);
            }
            "error" => book.root().aside(StepSource::System, message(&item), None),
            "command_execution" | "file_change" | "mcp_tool_call" | "web_search" | "todo_list" => {
                call(id, &kind, item, true, book);
            }
            // A tool that is newer than this reader.
            _ => {
                book.not_shown(&format!("item {kind}, of which no more is known"));
                call(id, &kind, item, true, book);
            }
        }
    }

    fn turn_ended(&mut self, event: &Value, book: &mut Book) {
        let Some(usage) = event["usage"].as_object() else { return };
        let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
        let all = Tokens {
            input: count("input_tokens"),
            cached: count("cached_input_tokens"),
            written: 0,
            output: count("output_tokens"),
            reasoning: count("reasoning_output_tokens"),
        };
        let turn = Tokens {
            input: all.input.saturating_sub(self.before.input),
            cached: all.cached.saturating_sub(self.before.cached),
            written: 0,
            output: all.output.saturating_sub(self.before.output),
            reasoning: all.reasoning.saturating_sub(self.before.reasoning),
        };
        if let Some(open) = book.root().open() {
            open.used(turn);
            open.extra("metrics_of", "the turn".into());
        }
        book.root().close();
        self.before = all;
        book.said.tokens = Some(all);
    }
}

impl Events for Codex {
    fn event(&mut self, mut event: Value, book: &mut Book) {
        let kind = event["type"].as_str().unwrap_or("an event without a type").to_owned();
        match kind.as_str() {
            "thread.started" => book.session_id = event["thread_id"].as_str().map(str::to_owned),
            "turn.started" => {
                book.said.word = OwnWord::Failed("it ended in the middle of a turn".to_owned());
            }
            "turn.completed" => {
                book.said.word = OwnWord::Done;
                self.turn_ended(&event, book);
            }
            "turn.failed" => {
                let why = message(&event["error"]);
                book.root().aside(StepSource::System, why.clone(), None);
                book.said.word = OwnWord::Failed(why);
            }
            "error" => book.root().aside(StepSource::System, message(&event), None),
            "item.started" | "item.updated" => {
                let item = part(&mut event, "item");
                if let Some(id) = item["id"].as_str().filter(|_| self.at_work.len() < AT_WORK) {
                    self.at_work.insert(id.to_owned(), item);
                }
            }
            "item.completed" => self.done(part(&mut event, "item"), book),
            other => book.not_shown(other),
        }
    }

    fn end(&mut self, book: &mut Book) {
        // What was at work when it was killed.
        for (id, item) in std::mem::take(&mut self.at_work) {
            let kind = item["type"].as_str().unwrap_or("none").to_owned();
            if !["agent_message", "reasoning"].contains(&kind.as_str()) {
                call(id, &kind, item, false, book);
            }
        }
    }
}

/// The open step; a new one where that has calls, or what else closes it.
fn fresh(book: &mut Book, closes: fn(&Open) -> bool) -> &mut Open {
    let chain = book.root();
    if chain.open().is_some_and(|open| open.has_calls() || closes(open)) {
        chain.close();
    }
    chain.answer(None)
}

/// A step's call, and what it gave.
fn call(id: String, kind: &str, mut item: Value, came_back: bool, book: &mut Book) {
    let mut name = kind.to_owned();
    let arguments = match kind {
        "command_execution" => json!({"command": part(&mut item, "command")}),
        "file_change" => json!({"changes": part(&mut item, "changes")}),
        "web_search" => json!({"query": part(&mut item, "query")}),
        "todo_list" => json!({"items": part(&mut item, "items")}),
        "mcp_tool_call" => {
            name = format!("{}.{}", text(part(&mut item, "server")), text(part(&mut item, "tool")));
            part(&mut item, "arguments")
        }
        _ => item.clone(),
    };
    let content = match kind {
        "mcp_tool_call" if item["error"].is_object() => message(&item["error"]),
        "mcp_tool_call" => text(part(&mut item, "result")),
        _ => text(part(&mut item, "aggregated_output")),
    };
    let told = ["exit_code", "status"].into_iter().filter_map(|name| {
        let value = item.get(name).filter(|value| !value.is_null())?;
        Some((name.to_owned(), value.clone()))
    });
    let extra: Map<String, Value> = told.collect();
    fresh(book, |_| false).call(id.clone(), name, arguments);
    if came_back {
        let extra = Some(extra).filter(|extra| !extra.is_empty());
        let result = ObservationResult { content: Some(content), extra, ..ObservationResult::default() };
        book.result(None, &id, result);
    }
}
