//! What an agent says of its own end, in its own words.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use infradev_model::{OutputFormat, Tokens};
use serde_json::Value;

use crate::meter::message;

/// Longest event that is read; a longer one is passed over.
const LONGEST: u64 = 64 << 20;

/// What an agent said of its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnWord {
    /// It says nothing of it.
    Nothing,
    /// That it is done.
    Done,
    /// That it failed.
    Failed(String),
    /// That a limit of its own ended it.
    Limit(String),
}

/// What an agent's log says in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// How it ended.
    pub word: OwnWord,
    /// What it used, by its own count.
    pub tokens: Option<Tokens>,
}

/// Reads the last word in a log of events, line by line. What is no JSON, half a line at the end say, is passed over.
pub(crate) fn said(format: OutputFormat, log: &Path) -> Said {
    let mut said = Said { word: OwnWord::Nothing, tokens: None };
    if format == OutputFormat::Text {
        return said;
    }
    let Ok(file) = File::open(log) else { return said };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return said,
            Ok(_) => {}
        }
        // Cheaper than reading each event: most are none of these.
        if !holds(&line, b"\"result\"") && !holds(&line, b"turn.") {
            continue;
        }
        let Ok(event) = serde_json::from_slice::<Value>(&line) else { continue };
        let (word, tokens) = match format {
            OutputFormat::ClaudeStreamJson => (claude(&event), claude_tokens(&event)),
            OutputFormat::CodexJsonl => (codex(&event), codex_tokens(&event)),
            OutputFormat::Text => (None, None),
        };
        said.word = word.unwrap_or(said.word);
        said.tokens = tokens.or(said.tokens);
    }
}

fn holds(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|window| window == word)
}

fn claude(event: &Value) -> Option<OwnWord> {
    if event["type"] != "result" {
        return None;
    }
    let subtype = event["subtype"].as_str().unwrap_or_default();
    let said = || {
        let text = event["result"].as_str().filter(|text| !text.is_empty()).unwrap_or(subtype);
        message(&serde_json::json!({"message": text}))
    };
    Some(match (subtype, event["is_error"].as_bool()) {
        // Success with `is_error` is none.
        ("success", Some(false)) => OwnWord::Done,
        ("error_max_turns" | "error_max_budget_usd", _) => OwnWord::Limit(said()),
        _ => OwnWord::Failed(said()),
    })
}

/// Its totals stand in `result`, by model.
fn claude_tokens(event: &Value) -> Option<Tokens> {
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

/// The last turn's usage is that of the whole thread.
fn codex_tokens(event: &Value) -> Option<Tokens> {
    let usage = event["usage"].as_object().filter(|_| event["type"] == "turn.completed")?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(Tokens {
        input: count("input_tokens"),
        cached: count("cached_input_tokens"),
        written: 0,
        output: count("output_tokens"),
        reasoning: count("reasoning_output_tokens"),
    })
}

fn codex(event: &Value) -> Option<OwnWord> {
    match event["type"].as_str()? {
        "turn.started" => Some(OwnWord::Failed("it ended in the middle of a turn".to_owned())),
        "turn.completed" => Some(OwnWord::Done),
        "turn.failed" => Some(OwnWord::Failed(message(&event["error"]))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(format: OutputFormat, text: &str) -> OwnWord {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        said(format, file.path()).word
    }

    #[test]
    fn each_agents_own_count_is_read_by_its_own_rules() {
        let tokens = |format: OutputFormat, text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            said(format, file.path()).tokens
        };
        let models = "{\"type\":\"result\",\"modelUsage\":{\"a\":{\"inputTokens\":5,\"outputTokens\":2,\"cacheReadInputTokens\":7,\
            \"cacheCreationInputTokens\":1},\"b\":{\"inputTokens\":1,\"outputTokens\":1}}}\n";
        let sum = Tokens { input: 14, cached: 7, written: 1, output: 3, reasoning: 0 };
        assert_eq!(tokens(OutputFormat::ClaudeStreamJson, models), Some(sum));
        let turn =
            |input: u64| format!("{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{input}}}}}\n");
        let both = turn(10) + &turn(30);
        assert_eq!(tokens(OutputFormat::CodexJsonl, &both).unwrap().input, 30, "cumulative over a thread");
    }

    #[test]
    fn claudes_success_counts_only_without_is_error() {
        let result = |rest: &str| {
            word(
                OutputFormat::ClaudeStreamJson,
                &format!("{{\"type\":\"assistant\"}}\n{{\"type\":\"result\",{rest}}}\n{{\"type\":\"res"),
            )
        };
        assert_eq!(result("\"subtype\":\"success\",\"is_error\":false"), OwnWord::Done);
        assert_eq!(
            result("\"subtype\":\"success\",\"is_error\":true,\"result\":\"API Error: 529\""),
            OwnWord::Failed("API Error: 529".into())
        );
        assert_eq!(
            result("\"subtype\":\"error_max_turns\",\"is_error\":true"),
            OwnWord::Limit("error_max_turns".into())
        );
        assert_eq!(word(OutputFormat::ClaudeStreamJson, "no json\n"), OwnWord::Nothing);
    }

    #[test]
    fn codex_is_done_when_its_last_turn_is() {
        let failed =
            "{\"type\":\"turn.started\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}\n";
        assert_eq!(word(OutputFormat::CodexJsonl, failed), OwnWord::Failed("no".into()));
        let done = "{\"type\":\"turn.started\"}\n{\"type\":\"turn.completed\",\"usage\":{}}\n";
        assert_eq!(word(OutputFormat::CodexJsonl, done), OwnWord::Done);
        let begun = "{\"type\":\"turn.started\"}\n";
        assert!(matches!(word(OutputFormat::CodexJsonl, begun), OwnWord::Failed(_)));
    }
}
