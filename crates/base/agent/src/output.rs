//! What an agent says of its own end, in its own words.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use infradev_model::OutputFormat;
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

/// Reads the last word in a log of events, line by line. What is no JSON, half a line at the end say, is passed over.
pub(crate) fn own_word(format: OutputFormat, log: &Path) -> OwnWord {
    let mut word = OwnWord::Nothing;
    if format == OutputFormat::Text {
        return word;
    }
    let Ok(file) = File::open(log) else { return word };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return word,
            Ok(_) => {}
        }
        // Cheaper than reading each event: most are none of these.
        if !holds(&line, b"\"result\"") && !holds(&line, b"turn.") {
            continue;
        }
        let Ok(event) = serde_json::from_slice::<Value>(&line) else { continue };
        let said = match format {
            OutputFormat::ClaudeStreamJson => claude(&event),
            OutputFormat::CodexJsonl => codex(&event),
            OutputFormat::Text => None,
        };
        word = said.unwrap_or(word);
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
        own_word(format, file.path())
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
