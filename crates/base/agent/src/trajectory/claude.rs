//! Claude Code's `stream-json`, and Qwen Code's, which is like it.
//!
//! An answer of the model is one or more `assistant` events, each with a part of its content: Claude Code's bear the same message
//! id and the same usage; Qwen Code's have ids of their own, and the last tells the usage. What calls gave comes in `user` events.
//! Events of a subagent name the call that started it. `result` is the end; its totals are those of all models.

use infradev_model::Tokens;
use infradev_model::atif::{ObservationResult, StepSource};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::{Events, part, text, time, words};
use crate::meter::message;
use crate::output::OwnWord;

/// A reader of these events.
#[derive(Debug, Default)]
pub(crate) struct Claude {
    qwen: bool,
}

impl Claude {
    pub(crate) fn of_qwen() -> Claude {
        Claude { qwen: true }
    }

    fn answer(&self, mut event: Value, book: &mut Book) {
        let parent = event["parent_tool_use_id"].as_str().map(str::to_owned);
        let at = time(&event["timestamp"]);
        let mut message = part(&mut event, "message");
        let content = part(&mut message, "content");
        let model = message["model"].as_str().filter(|model| Some(*model) != book.model()).map(str::to_owned);
        let chain = book.chain(parent.as_deref());
        let id = message["id"].as_str();
        if self.qwen && chain.open().is_some_and(|open| open.has_results() || open.has_tokens()) {
            chain.close();
        }
        let open = chain.answer(if self.qwen { None } else { id });
        open.at(at);
        match &model {
            // What it says itself, of an error say.
            Some(model) if model == "<synthetic>" => open.answers(0),
            Some(model) => open.by(model),
            None => {}
        }
        if model.as_deref() != Some("<synthetic>") {
            open.answers(1);
            if let Some(tokens) = self.usage(&message["usage"]) {
                open.used(tokens);
            }
        }
        let mut others = Vec::new();
        match content {
            Value::Array(parts) => {
                for mut block in parts {
                    match block["type"].as_str() {
                        Some("text") => open.say(&text(part(&mut block, "text")), true),
                        Some("thinking") => open.reason(&text(part(&mut block, "thinking"))),
                        Some("tool_use" | "server_tool_use") => {
                            let id = text(part(&mut block, "id"));
                            open.call(id, text(part(&mut block, "name")), part(&mut block, "input"));
                        }
                        kind => others.push(format!("content of the kind {}", kind.unwrap_or("none"))),
                    }
                }
            }
            other => open.say(&text(other), true),
        }
        for kind in others {
            book.not_shown(&kind);
        }
    }

    /// Usage of one answer. Claude Code counts cached tokens apart, Qwen Code among those of the prompt.
    fn usage(&self, usage: &Value) -> Option<Tokens> {
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let (cached, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
        let apart = if self.qwen { 0 } else { cached.saturating_add(written) };
        let input = count("input_tokens").saturating_add(apart);
        let output = count("output_tokens");
        // Qwen Code's parts of an answer but the last say 0.
        let told = usage.is_object() && (input > 0 || output > 0);
        told.then_some(Tokens { input, cached, written, output, reasoning: 0 })
    }

    fn came_back(&self, mut event: Value, book: &mut Book) {
        let parent = event["parent_tool_use_id"].as_str().map(str::to_owned);
        let at = time(&event["timestamp"]);
        let content = event.pointer_mut("/message/content").map(Value::take).unwrap_or_default();
        let parts = match content {
            Value::Array(parts) => parts,
            other => vec![json!({"type": "text", "text": text(other)})],
        };
        for mut block in parts {
            if block["type"] != "tool_result" {
                let said = words(Value::Array(vec![block]), book);
                book.chain(parent.as_deref()).aside(StepSource::User, said, at.clone());
                continue;
            }
            let call = text(part(&mut block, "tool_use_id"));
            let content = Some(words(part(&mut block, "content"), book));
            let failed = block["is_error"] == true;
            let extra = failed.then(|| Map::from_iter([("is_error".to_owned(), true.into())]));
            let result = ObservationResult { content, extra, ..ObservationResult::default() };
            book.result(parent.as_deref(), &call, result);
        }
    }

    fn result(&self, event: &Value, book: &mut Book) {
        let word = word(event);
        if let OwnWord::Failed(why) | OwnWord::Limit(why) = &word {
            book.root().aside(StepSource::System, why.clone(), None);
        }
        book.said.word = word;
        let tokens = if self.qwen { qwen_totals(event) } else { totals(event) };
        book.said.tokens = tokens.or(book.said.tokens);
        if let Some(cost) = event["total_cost_usd"].as_f64() {
            book.sums.insert("agent_cost_usd".into(), json!(cost));
        }
        for name in ["num_turns", "duration_ms", "duration_api_ms"] {
            if let Some(value) = event.get(name).filter(|value| value.is_number()) {
                book.sums.insert(name.into(), value.clone());
            }
        }
    }
}

impl Events for Claude {
    fn event(&mut self, mut event: Value, book: &mut Book) {
        match (event["type"].as_str(), event["subtype"].as_str()) {
            (Some("assistant"), _) => self.answer(event, book),
            (Some("user"), _) => self.came_back(event, book),
            (Some("result"), _) => self.result(&event, book),
            (Some("system"), Some("init")) => {
                book.session_id = event["session_id"].as_str().map(str::to_owned);
                let tools = part(&mut event, "tools");
                if tools.is_array() {
                    book.extra.insert("tools".into(), tools);
                }
            }
            (Some("system"), Some("compact_boundary")) => {
                let at = time(&event["timestamp"]);
                book.root().aside(StepSource::System, "The conversation was compacted.".to_owned(), at);
            }
            (Some("system"), Some(subtype)) => {
                let kind = format!("system {subtype}");
                book.not_shown(&kind);
            }
            (kind, _) => {
                let kind = kind.unwrap_or("an event without a type").to_owned();
                book.not_shown(&kind);
            }
        }
    }
}

/// How it ended. Success with `is_error` is none.
fn word(event: &Value) -> OwnWord {
    let subtype = event["subtype"].as_str().unwrap_or_default();
    let said = || {
        let told = event["result"].as_str().or_else(|| event["error"]["message"].as_str());
        let told = told.filter(|text| !text.is_empty()).unwrap_or(subtype);
        let nothing = "its last word does not say how it ended";
        message(&json!({"message": if told.is_empty() { nothing } else { told }}))
    };
    match (subtype, event["is_error"].as_bool()) {
        ("success", Some(false)) => OwnWord::Done,
        ("error_max_turns" | "error_max_budget_usd", _) => OwnWord::Limit(said()),
        _ => OwnWord::Failed(said()),
    }
}

/// Claude Code's totals stand in `result`, by model.
fn totals(event: &Value) -> Option<Tokens> {
    let models = event["modelUsage"].as_object().filter(|models| !models.is_empty())?;
    let mut sum = Tokens::default();
    for usage in models.values() {
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let cached = count("cacheReadInputTokens");
        sum += Tokens {
            input: count("inputTokens") + count("cacheCreationInputTokens") + cached,
            cached,
            written: count("cacheCreationInputTokens"),
            output: count("outputTokens"),
            reasoning: count("thinkingTokens"),
        };
    }
    Some(sum)
}

/// Qwen Code's are one sum, the cached ones among those of prompts.
fn qwen_totals(event: &Value) -> Option<Tokens> {
    let usage = event["usage"].as_object()?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let models = event["stats"]["models"].as_object();
    let reasoning =
        models.into_iter().flatten().filter_map(|(_, model)| model["tokens"]["thoughts"].as_u64());
    Some(Tokens {
        input: count("input_tokens"),
        cached: count("cache_read_input_tokens"),
        written: 0,
        output: count("output_tokens"),
        reasoning: reasoning.sum(),
    })
}
