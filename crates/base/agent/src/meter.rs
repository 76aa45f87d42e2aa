//! Tokens of a model's answer, read from the bytes on their way to the agent.

use std::collections::BTreeSet;

use infradev_model::{Tokens, Wire};
use serde_json::Value;

/// The content type of a stream.
const EVENTS: &str = "text/event-stream";

/// Longest answer, or line of a stream, that is looked into; a longer one passes by unread.
const LONGEST: usize = 32 << 20;

/// What an answer said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Tokens; none where it said nothing of them.
    pub tokens: Option<Tokens>,
    /// Its last word of them was read: of a stream the part that tells the sum, of any other answer the whole.
    pub done: bool,
    /// The model would not go on.
    pub refused: bool,
    /// An error that came in a stream that had begun well.
    pub error: Option<String>,
}

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    wire: Wire,
    stream: bool,
    held: Vec<u8>,
    /// What is held is longer than is looked into.
    too_long: bool,
    /// How many choices, or candidates, were asked for.
    choices: usize,
    /// Those of them that came to their end.
    finished: BTreeSet<u64>,
    /// What summing the prompt up took, of which the sum of the answer itself says nothing (Anthropic's).
    summed_up: Tokens,
    found: Found,
}

impl Reader {
    /// Of an answer to a request for so many choices.
    pub(crate) fn new(wire: Wire, content_type: &str, choices: usize) -> Reader {
        let stream = content_type.get(..EVENTS.len()).is_some_and(|own| own.eq_ignore_ascii_case(EVENTS));
        Reader {
            wire,
            stream,
            held: Vec::new(),
            too_long: false,
            choices,
            finished: BTreeSet::new(),
            summed_up: Tokens::default(),
            found: Found::default(),
        }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        if self.stream {
            while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
                self.hold(&bytes[..at]);
                self.line();
                bytes = &bytes[at + 1..];
            }
        }
        self.hold(bytes);
    }

    /// What was found by now; the answer may have been broken off.
    pub(crate) fn finish(&mut self) -> Found {
        if self.stream {
            self.line();
        } else if let (false, Ok(answer)) = (self.too_long, serde_json::from_slice::<Value>(&self.held)) {
            self.found.done = true;
            self.whole(&answer);
        }
        if let Some(tokens) = &mut self.found.tokens {
            *tokens += std::mem::take(&mut self.summed_up);
        }
        std::mem::take(&mut self.found)
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.held.len() + bytes.len() > LONGEST {
            self.too_long = true;
            self.held.clear();
        } else if !self.too_long {
            self.held.extend_from_slice(bytes);
        }
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.too_long) {
            return;
        }
        let Some(data) = line.strip_prefix(b"data:") else { return };
        // `[DONE]`, and whatever is no JSON, says nothing of tokens.
        self.found.done |= data.trim_ascii() == b"[DONE]";
        if let Ok(event) = serde_json::from_slice::<Value>(data.trim_ascii()) {
            self.event(&event);
        }
    }

    fn event(&mut self, event: &Value) {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            self.found.error = Some(message(error));
        }
        match self.wire {
            Wire::AnthropicMessages => {
                self.anthropic(&event["message"]);
                self.anthropic(event);
                self.found.refused |= event["delta"]["stop_reason"] == "refusal";
                let told = number(&event["usage"]["output_tokens"]).is_some();
                self.found.done |= told && event["type"] == "message_delta";
            }
            // `response.completed`, `.incomplete` and `.failed` hold the whole answer.
            Wire::OpenaiResponses => {
                self.responses(&event["response"]);
                self.found.done |= self.found.tokens.is_some();
            }
            // Some servers tell the sum so far with each part; the last ones have no choices, or come after the choice's end. Of
            // several choices each has a sum of its own there, and the part without choices tells that of all.
            Wire::OpenaiChat => {
                self.chat(event);
                self.ends(&event["choices"], "finish_reason");
                let all = event["choices"].as_array().is_some_and(Vec::is_empty);
                let last = all || (self.choices == 1 && !self.finished.is_empty());
                self.found.done |= last && usage_of_chat(&event["usage"]).is_some();
            }
            Wire::GeminiGenerate => {
                self.gemini(event);
                self.ends(&event["candidates"], "finishReason");
                self.found.done |= self.finished.len() >= self.choices;
            }
        }
    }

    /// Notes the choices that end in a part.
    fn ends(&mut self, choices: &Value, reason: &str) {
        let ended = choices.as_array().into_iter().flatten().filter(|choice| choice[reason].is_string());
        self.finished.extend(ended.map(|choice| count(&choice["index"])));
    }

    fn whole(&mut self, answer: &Value) {
        match self.wire {
            Wire::AnthropicMessages => self.anthropic(answer),
            Wire::OpenaiResponses => self.responses(answer),
            Wire::OpenaiChat => self.chat(answer),
            // A stream that was not asked for as events is a list of its parts.
            Wire::GeminiGenerate => match answer.as_array() {
                Some(parts) => parts.iter().for_each(|part| self.gemini(part)),
                None => self.gemini(answer),
            },
        }
    }

    /// Usage as `messages` tells it: prompts without cached tokens, and in a stream each event the sum so far.
    fn anthropic(&mut self, part: &Value) {
        self.found.refused |= part["stop_reason"] == "refusal";
        let usage = &part["usage"];
        if !tells(usage, &["input_tokens", "output_tokens"]) {
            return;
        }
        if let Some(rounds) = usage["iterations"].as_array() {
            self.summed_up = Tokens::default();
            for round in rounds.iter().filter(|round| round["type"] == "compaction") {
                let [input, written, cached] = INPUTS.map(|name| count(&round[name]));
                let input = input.saturating_add(written).saturating_add(cached);
                let output = count(&round["output_tokens"]);
                self.summed_up += Tokens { input, cached, written, output, reasoning: 0 };
            }
        }
        let tokens = self.found.tokens.get_or_insert_default();
        let told = |name: &str| number(&usage[name]);
        let parts = INPUTS.map(told);
        // The last event of a stream may tell of the answer alone.
        if parts[0].is_some_and(|count| count > 0) || tokens.input == 0 {
            tokens.input = parts.iter().flatten().fold(0, |sum, part| sum.saturating_add(*part));
            tokens.cached = parts[2].unwrap_or(0);
            tokens.written = parts[1].unwrap_or(0);
        }
        tokens.output = told("output_tokens").unwrap_or(tokens.output);
        let reasoning = number(&usage["output_tokens_details"]["thinking_tokens"]);
        tokens.reasoning = reasoning.unwrap_or(tokens.reasoning);
    }

    fn responses(&mut self, response: &Value) {
        self.found.refused |= response["incomplete_details"]["reason"] == "content_filter";
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            self.found.error = Some(message(error));
        }
        let usage = &response["usage"];
        if tells(usage, &["input_tokens", "output_tokens"]) {
            self.found.tokens = Some(Tokens {
                input: count(&usage["input_tokens"]),
                cached: count(&usage["input_tokens_details"]["cached_tokens"]),
                written: 0,
                output: count(&usage["output_tokens"]),
                reasoning: count(&usage["output_tokens_details"]["reasoning_tokens"]),
            });
        }
    }

    fn chat(&mut self, part: &Value) {
        self.found.refused |= part["choices"][0]["finish_reason"] == "content_filter";
        self.found.tokens = usage_of_chat(&part["usage"]).or(self.found.tokens);
    }

    /// Usage as `generateContent` tells it: prompts with cached tokens, thoughts beside the answer, in a stream the sum so far.
    fn gemini(&mut self, part: &Value) {
        let finish = part["candidates"][0]["finishReason"].as_str().unwrap_or_default();
        self.found.refused |= BLOCKED.contains(&finish) || part["promptFeedback"]["blockReason"].is_string();
        let usage = &part["usageMetadata"];
        if tells(usage, &["promptTokenCount", "candidatesTokenCount"]) {
            let reasoning = count(&usage["thoughtsTokenCount"]);
            self.found.tokens = Some(Tokens {
                input: count(&usage["promptTokenCount"])
                    .saturating_add(count(&usage["toolUsePromptTokenCount"])),
                cached: count(&usage["cachedContentTokenCount"]),
                written: 0,
                output: count(&usage["candidatesTokenCount"]).saturating_add(reasoning),
                reasoning,
            });
        }
    }
}

/// Parts of a prompt as Anthropic counts them: those that no cache is about, those written into one, those read from it.
const INPUTS: [&str; 3] = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// Ends of an answer of Gemini's that the model's host cut off for what it says.
const BLOCKED: [&str; 4] = ["SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"];

/// Usage as chat completions tell it; none where they do not.
pub(crate) fn usage_of_chat(usage: &Value) -> Option<Tokens> {
    tells(usage, &["prompt_tokens", "completion_tokens"]).then(|| Tokens {
        input: count(&usage["prompt_tokens"]),
        cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        written: 0,
        output: count(&usage["completion_tokens"]),
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
    })
}

/// Whether a usage holds any of these counts.
fn tells(usage: &Value, counts: &[&str]) -> bool {
    counts.iter().any(|name| number(&usage[*name]).is_some())
}

/// A count; some servers write `100.0`.
fn number(value: &Value) -> Option<u64> {
    let whole = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and in range")]
    value.as_u64().or_else(|| whole.map(|number| number as u64))
}

fn count(value: &Value) -> u64 {
    number(value).unwrap_or(0)
}

/// What an error says, in one line.
pub(crate) fn message(error: &Value) -> String {
    let text = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(wire: Wire, content_type: &str, text: &str, step: usize) -> Found {
        let mut reader = Reader::new(wire, content_type, 1);
        for part in text.as_bytes().chunks(step) {
            reader.feed(part);
        }
        reader.finish()
    }

    /// In one piece and byte by byte.
    fn stream(wire: Wire, text: &str) -> Found {
        let [whole, bytes] =
            [text.len(), 1].map(|step| read(wire, "Text/Event-Stream; charset=utf-8", text, step));
        assert_eq!(whole, bytes);
        whole
    }

    fn tokens(input: u64, cached: u64, output: u64, reasoning: u64) -> Option<Tokens> {
        Some(Tokens { input, cached, written: 0, output, reasoning })
    }

    #[test]
    fn messages_count_cached_tokens_apart_and_their_last_event_holds() {
        let text = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\
            \"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\r\n\n\
            data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n";
        let written = |mut found: Option<Tokens>| {
            found.iter_mut().for_each(|tokens| tokens.written = 5);
            found
        };
        assert_eq!(stream(Wire::AnthropicMessages, text).tokens, written(tokens(115, 100, 7, 0)));
        let broken_off = text.split_once("\n\ndata: {\"type\":\"message_delta").unwrap().0;
        assert_eq!(stream(Wire::AnthropicMessages, broken_off).tokens, written(tokens(115, 100, 1, 0)));
        let refused = text.replace("end_turn", "refusal");
        assert!(stream(Wire::AnthropicMessages, &refused).refused);
    }

    #[test]
    fn what_summing_a_prompt_up_took_counts_beside_the_answer() {
        let usage = r#"{"input_tokens":23,"output_tokens":7,"iterations":[{"type":"compaction","input_tokens":180,
            "cache_read_input_tokens":10,"output_tokens":35},{"type":"message","input_tokens":23,"output_tokens":7}]}"#;
        let usage = usage.replace('\n', "");
        let text = format!("{{\"usage\":{usage}}}");
        assert_eq!(
            read(Wire::AnthropicMessages, "application/json", &text, 9).tokens,
            tokens(213, 10, 42, 0)
        );
        let start =
            r#"data: {"type":"message_start","message":{"usage":{"input_tokens":23,"output_tokens":1}}}"#;
        let text = format!("{start}\n\ndata: {{\"type\":\"message_delta\",\"usage\":{usage}}}\n\n");
        assert_eq!(stream(Wire::AnthropicMessages, &text).tokens, tokens(213, 10, 42, 0));
    }

    #[test]
    fn responses_and_completions_tell_their_tokens_at_the_end() {
        let text = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n\
            data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\"input_tokens_details\":\
            {\"cached_tokens\":4},\"output_tokens\":3,\"output_tokens_details\":{\"reasoning_tokens\":2}}}}\n\n";
        assert_eq!(stream(Wire::OpenaiResponses, text).tokens, tokens(9, 4, 3, 2));
        let text = "data: {\"choices\":[{\"delta\":{}}],\"usage\":null}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
        assert_eq!(stream(Wire::OpenaiChat, text).tokens, tokens(8, 0, 2, 0));
    }

    #[test]
    fn geminis_thoughts_count_as_part_of_the_answer_in_a_stream_a_list_and_one_piece() {
        let part = "{\"candidates\":[{}],\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":4,\
            \"candidatesTokenCount\":2,\"thoughtsTokenCount\":3}}";
        let first = "{\"candidates\":[{}],\"usageMetadata\":{\"promptTokenCount\":9}}";
        let text = format!("data: {first}\r\n\r\ndata: {part}\r\n\r\n");
        assert_eq!(stream(Wire::GeminiGenerate, &text).tokens, tokens(9, 4, 5, 3));
        for text in [part.to_owned(), format!("[{first},\n{part}]")] {
            assert_eq!(read(Wire::GeminiGenerate, "application/json", &text, 5).tokens, tokens(9, 4, 5, 3));
        }
        let blocked = "data: {\"candidates\":[{\"finishReason\":\"SAFETY\"}]}\n\n";
        assert!(stream(Wire::GeminiGenerate, blocked).refused);
    }

    #[test]
    fn an_answer_in_one_piece_is_read_too_and_one_that_tells_nothing_is_known_as_such() {
        let text = "{\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}";
        assert_eq!(read(Wire::AnthropicMessages, "application/json", text, 5).tokens, tokens(3, 0, 4, 0));
        assert_eq!(read(Wire::OpenaiChat, "application/json", "{\"choices\":[]}", 5).tokens, None);
        assert_eq!(read(Wire::OpenaiChat, "application/json", "{\"choi", 5), Found::default());
    }

    #[test]
    fn a_usage_without_a_count_tells_nothing_and_a_count_may_have_a_point() {
        for (usage, told) in [
            ("{}", None),
            (r#"{"prompt_tokens":null,"total_tokens":2000}"#, None),
            (r#"{"prompt_tokens":-1,"completion_tokens":0.5}"#, None),
            (r#"{"prompt_tokens":100.0,"completion_tokens":10.0}"#, tokens(100, 0, 10, 0)),
            (r#"{"completion_tokens":3}"#, tokens(0, 0, 3, 0)),
        ] {
            let text = format!(r#"{{"usage":{usage}}}"#);
            assert_eq!(read(Wire::OpenaiChat, "application/json", &text, 5).tokens, told, "{usage}");
        }
        for (wire, text) in [
            (Wire::AnthropicMessages, r#"{"usage":{}}"#),
            (Wire::OpenaiResponses, r#"{"usage":{"total_tokens":4}}"#),
            (Wire::GeminiGenerate, r#"{"usageMetadata":{"totalTokenCount":4}}"#),
        ] {
            assert_eq!(read(wire, "application/json", text, 5).tokens, None, "{text}");
        }
    }

    #[test]
    fn a_streams_last_word_is_the_sum_of_all_choices_and_no_part_before_it() {
        let part = |index: u64, end: &str, sum: u64| {
            format!(
                "data: {{\"choices\":[{{\"index\":{index},\"finish_reason\":{end}}}],\"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":{sum}}}}}\n\n"
            )
        };
        let all = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":8}}\n\n";
        let done = |choices, text: &str| {
            let mut reader = Reader::new(Wire::OpenaiChat, EVENTS, choices);
            reader.feed(text.as_bytes());
            let found = reader.finish();
            (found.done, found.tokens.map_or(0, |tokens| tokens.output))
        };
        let first = part(0, "null", 3) + &part(0, "\"stop\"", 4);
        assert_eq!(done(1, &part(0, "null", 3)), (false, 3));
        assert_eq!(done(1, &first), (true, 4));
        assert_eq!(done(2, &first), (false, 4));
        let both = first + &part(1, "\"stop\"", 4);
        assert_eq!(done(2, &both), (false, 4));
        assert_eq!(done(2, &(both + all)), (true, 8));
    }

    #[test]
    fn a_stream_that_ends_without_its_last_word_is_not_done() {
        let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
        let delta = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n";
        let stop = "data: {\"type\":\"message_stop\"}\n\n";
        for (text, done) in [
            (format!("{start}{stop}"), false),
            (format!("{start}{delta}"), true),
            (format!("{start}{delta}{stop}"), true),
        ] {
            assert_eq!(stream(Wire::AnthropicMessages, &text).done, done, "{text}");
        }
        let part = |end: &str| {
            format!("data: {{\"candidates\":[{{{end}}}],\"usageMetadata\":{{\"promptTokenCount\":9}}}}\n\n")
        };
        assert!(!stream(Wire::GeminiGenerate, &part("")).done);
        assert!(stream(Wire::GeminiGenerate, &(part("") + &part("\"finishReason\":\"STOP\""))).done);
    }

    #[test]
    fn an_error_within_a_stream_is_told() {
        let text = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        assert_eq!(stream(Wire::AnthropicMessages, text).error.unwrap(), "Overloaded");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_in_any_pieces_are_read_alike(
            lines in proptest::collection::vec("(data: ?)?(\\{\"usage\":\\{\"(in|out)put_tokens\":[0-9]{1,3}\\}\\}|.{0,20})", 0..8),
            step in 1usize..40,
            wire in proptest::sample::select(vec![Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat, Wire::GeminiGenerate]),
            content_type in proptest::sample::select(vec!["text/event-stream", "application/json"]),
        ) {
            let text = lines.join("\n");
            proptest::prop_assert_eq!(
                read(wire, content_type, &text, step),
                read(wire, content_type, &text, text.len().max(1))
            );
        }
    }
}
