//! What a request may hold: by wire, the keys that steer the answer alone. A model's host may know others, of today or of tomorrow,
//! by which it would search, run, remember or fetch something, or answer by another model: what is not listed is taken out.

use infradev_model::Wire;

use crate::betas::take_flags;
use crate::hosted::plain;
use crate::object::{Json, Object};

/// What may stand under a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Anything.
    Any,
    /// One of these words.
    Words(&'static [&'static str]),
    /// An object of these keys.
    Keys(&'static [Key]),
    /// A list of objects whose `type` is one of these, with a date behind it.
    Kinds(&'static [&'static str]),
    /// A list of names of Anthropic's betas.
    Betas,
}

/// A key as its wire writes it, and what may stand under it. Keys are compared as [`plain`] has them.
pub(crate) type Key = (&'static str, Rule);

/// Keys that are permitted for one reason.
#[derive(Debug)]
pub(crate) struct Group {
    /// What they are for, as the book heads them.
    #[allow(dead_code, reason = "a test compares it with the book")]
    pub purpose: &'static str,
    /// Where they are.
    pub wires: &'static [Wire],
    /// The keys.
    pub keys: &'static [Key],
}

use Rule::{Any, Betas, Keys, Kinds, Words};
use Wire::{
    AnthropicMessages as Messages, GeminiGenerate as Gemini, OpenaiChat as Chat, OpenaiResponses as Responses,
};

/// All that is permitted. The book gives the reasons, group by group (`docs/src/formats/requests.md`).
pub(crate) static PERMITTED: &[Group] = &[
    Group { purpose: "What is asked", wires: &[Messages, Responses, Chat, Gemini], keys: &[("model", Any)] },
    Group { purpose: "What is asked", wires: &[Messages], keys: &[("messages", Any), ("system", Any)] },
    Group { purpose: "What is asked", wires: &[Responses], keys: &[("input", Any), ("instructions", Any)] },
    Group { purpose: "What is asked", wires: &[Chat], keys: &[("messages", Any)] },
    Group {
        purpose: "What is asked",
        wires: &[Gemini],
        keys: &[("contents", Any), ("systemInstruction", Any)],
    },
    // What each tool is, `hosted` looks at.
    Group {
        purpose: "The agent's own tools",
        wires: &[Messages, Responses, Chat],
        keys: &[("tools", Any), ("tool_choice", Any), ("parallel_tool_calls", Any), ("max_tool_calls", Any)],
    },
    Group {
        purpose: "The agent's own tools",
        wires: &[Chat],
        keys: &[("functions", Any), ("function_call", Any)],
    },
    Group {
        purpose: "The agent's own tools",
        wires: &[Gemini],
        keys: &[("tools", Any), ("toolConfig", Keys(&[("functionCallingConfig", Any)]))],
    },
    Group {
        purpose: "Length and sampling",
        wires: &[Messages],
        keys: &[
            ("max_tokens", Any),
            ("temperature", Any),
            ("top_p", Any),
            ("top_k", Any),
            ("stop_sequences", Any),
        ],
    },
    Group {
        purpose: "Length and sampling",
        wires: &[Responses, Chat],
        keys: &[
            ("max_output_tokens", Any),
            ("max_completion_tokens", Any),
            ("max_tokens", Any),
            ("min_tokens", Any),
            ("temperature", Any),
            ("top_p", Any),
            ("top_k", Any),
            ("min_p", Any),
            ("top_a", Any),
            ("typical_p", Any),
            ("repetition_penalty", Any),
            ("presence_penalty", Any),
            ("frequency_penalty", Any),
            ("length_penalty", Any),
            ("logit_bias", Any),
            ("bad_words", Any),
            ("logprobs", Any),
            ("top_logprobs", Any),
            ("seed", Any),
            ("random_seed", Any),
            ("do_sample", Any),
            ("n", Any),
            ("stop", Any),
            ("stop_token_ids", Any),
            ("include_stop_str_in_output", Any),
            ("skip_special_tokens", Any),
            ("spaces_between_special_tokens", Any),
            ("ignore_eos", Any),
            ("truncation", Any),
            ("truncate_prompt_tokens", Any),
        ],
    },
    Group {
        purpose: "Length and sampling",
        wires: &[Gemini],
        keys: &[("generationConfig", Keys(GENERATION)), ("safetySettings", Any)],
    },
    Group {
        purpose: "Thinking, and the answer's form",
        wires: &[Messages],
        keys: &[("thinking", Any), ("output_config", Any), ("output_format", Any)],
    },
    Group {
        purpose: "Thinking, and the answer's form",
        wires: &[Responses, Chat],
        keys: &[
            ("reasoning", Any),
            ("reasoning_effort", Any),
            ("reasoning_format", Any),
            ("include_reasoning", Any),
            ("separate_reasoning", Any),
            ("thinking", Any),
            ("thinking_budget", Any),
            ("enable_thinking", Any),
            ("preserve_thinking", Any),
            ("prompt_mode", Any),
            ("chat_template_kwargs", Any),
            ("add_generation_prompt", Any),
            ("continue_final_message", Any),
            ("text", Any),
            ("verbosity", Any),
            ("include", Any),
            ("response_format", Any),
            ("structured_outputs", Any),
            ("guided_json", Any),
            ("guided_regex", Any),
            ("guided_choice", Any),
            ("guided_grammar", Any),
            ("vl_high_resolution_images", Any),
        ],
    },
    Group {
        purpose: "How the answer comes",
        wires: &[Messages, Responses, Chat],
        keys: &[("stream", Any), ("stream_options", Any), ("tool_stream", Any), ("usage", Any)],
    },
    Group {
        purpose: "How the answer comes",
        wires: &[Messages],
        keys: &[("betas", Betas), ("anthropic_beta", Betas)],
    },
    Group {
        purpose: "The prompt's cache and length",
        wires: &[Messages],
        keys: &[
            ("cache_control", Any),
            ("context_management", Keys(&[("edits", Kinds(&EDITS))])),
            ("diagnostics", Any),
        ],
    },
    Group {
        purpose: "The prompt's cache and length",
        wires: &[Responses, Chat],
        keys: &[
            ("cache_control", Any),
            ("cache_salt", Any),
            ("prompt_cache_key", Any),
            ("prompt_cache_options", Any),
            ("prompt_cache_retention", Any),
        ],
    },
    Group {
        purpose: "Whose it is",
        wires: &[Messages, Responses, Chat],
        keys: &[
            ("metadata", Any),
            ("client_metadata", Any),
            ("user", Any),
            ("safety_identifier", Any),
            ("store", Any),
        ],
    },
    Group { purpose: "Whose it is", wires: &[Gemini], keys: &[("labels", Any)] },
    // Another tier has another price than the one on record.
    Group {
        purpose: "What it costs",
        wires: &[Messages, Responses, Chat, Gemini],
        keys: &[("service_tier", Words(&["auto", "default", "standard", "standard_only"]))],
    },
    Group { purpose: "What it costs", wires: &[Messages], keys: &[("speed", Words(&["standard"]))] },
];

/// Of Gemini's generation: without `routingConfig` and `modelSelectionConfig`, which take another model, and
/// `enableEnhancedCivicAnswers`, which asks elsewhere; nor with answers that are no text.
const GENERATION: &[Key] = &[
    ("candidateCount", Any),
    ("frequencyPenalty", Any),
    ("logprobs", Any),
    ("maxOutputTokens", Any),
    ("mediaResolution", Any),
    ("presencePenalty", Any),
    ("responseFormat", Any),
    ("responseJsonSchema", Any),
    ("responseLogprobs", Any),
    ("responseMimeType", Any),
    ("responseSchema", Any),
    ("seed", Any),
    ("stopSequences", Any),
    ("temperature", Any),
    ("thinkingConfig", Any),
    ("topK", Any),
    ("topP", Any),
];

/// What Anthropic's host may do to a prompt that grew long: drop old results and thoughts, or sum up, which is counted.
const EDITS: [&str; 3] = ["clear_tool_uses", "clear_thinking", "compact"];

/// Takes out of a request of a wire what is not permitted in it; gives the names, those of nested keys by their path. What says no
/// (null or false) stays: nothing is asked by it.
pub(crate) fn take_unlisted(wire: Wire, asked: &mut Object<'_>) -> Vec<String> {
    let groups = PERMITTED.iter().filter(|group| group.wires.contains(&wire));
    let keys: Vec<Key> = groups.flat_map(|group| group.keys).copied().collect();
    let mut taken = Vec::new();
    keep_listed(asked, &keys, "", &mut taken);
    taken
}

fn keep_listed(object: &mut Object<'_>, keys: &[Key], above: &str, taken: &mut Vec<String>) {
    object.0.retain_mut(|(key, value)| {
        if value.says_no() {
            return true;
        }
        let path = format!("{above}{key}");
        let rule = keys.iter().find(|(known, _)| plain(known) == plain(key)).map(|(_, rule)| *rule);
        let kept = rule.is_some_and(|rule| obeys(value, rule, &path, taken));
        if !kept {
            taken.push(path);
        }
        kept
    });
}

/// Makes a value obey a rule; whether it can.
fn obeys(value: &mut Json<'_>, rule: Rule, path: &str, taken: &mut Vec<String>) -> bool {
    match (rule, value) {
        (Any, _) => true,
        (Words(words), value) => value.as_text().is_some_and(|text| words.contains(&text)),
        (Keys(keys), Json::Object(object)) => {
            keep_listed(object, keys, &format!("{path}."), taken);
            true
        }
        (Kinds(kinds), Json::List(list)) => {
            list.retain(|item| {
                let kind = if let Json::Object(item) = item { item.text("type") } else { None };
                let known = kind.is_some_and(|kind| kinds.iter().any(|known| is_dated(kind, known)));
                if !known {
                    taken.push(format!("{path}.{}", kind.unwrap_or("?")));
                }
                known
            });
            true
        }
        (Betas, Json::List(list)) => {
            take_flags(list, path, taken);
            true
        }
        _ => false,
    }
}

/// Whether a name is a known one with a date behind it, as Anthropic's are: `bash_20250124`.
pub(crate) fn is_dated(name: &str, known: &str) -> bool {
    let date = name.strip_prefix(known).and_then(|rest| rest.strip_prefix('_'));
    date.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What is taken of a request, and what is left.
    fn take(wire: Wire, asked: &Value) -> (Vec<String>, Value) {
        let text = asked.to_string();
        let mut asked = Object::read(&text).unwrap();
        let taken = take_unlisted(wire, &mut asked);
        (taken, serde_json::from_slice(&asked.written(0)).unwrap())
    }

    const WIRES: [Wire; 4] = [Messages, Responses, Chat, Gemini];

    #[test]
    fn settings_that_are_not_listed_are_taken_out_unless_they_say_no() {
        for setting in [
            json!({"a_setting_of_tomorrow": {}}),
            json!({"mcp_servers": [{"url": "https://a.example"}]}),
            json!({"web_search_options": {}}),
            json!({"enable_search": true}),
            json!({"search_options": {}}),
            json!({"extra_body": {"google": {"tools": [{"googleSearch": {}}]}}}),
            json!({"prompt": {"id": "p"}}),
            json!({"previous_response_id": "r"}),
            json!({"conversation": "c"}),
            json!({"container": {"id": "c"}}),
            json!({"background": true}),
            json!({"models": ["other"]}),
            json!({"fallbacks": [{"model": "other"}]}),
            json!({"moderation": {"model": "other"}}),
            json!({"cachedContent": "cachedContents/c"}),
            json!({"generateContentRequest": {"tools": [{"googleSearch": {}}]}}),
            json!({"chat_template": "{{ x }}"}),
            json!({"custom_logit_processor": "code"}),
            json!({"kv_transfer_params": {"remote_host": "a.example"}}),
            json!({"service_tier": "priority"}),
            json!({"speed": "fast"}),
        ] {
            for wire in WIRES {
                let (taken, left) = take(wire, &setting);
                let names: Vec<&String> = setting.as_object().unwrap().keys().collect();
                assert_eq!((taken.iter().collect::<Vec<_>>(), left), (names, json!({})), "{wire:?}");
            }
        }
        let no = json!({"background": false, "previous_response_id": null, "service_tier": null});
        assert_eq!(take(Responses, &no), (Vec::new(), no.clone()));
    }

    #[test]
    fn what_steers_the_answer_alone_stays_as_it_is() {
        for (wire, asked) in [
            (
                Messages,
                json!({"model": "m", "max_tokens": 1, "messages": [], "system": [], "tools": [], "metadata": {"user_id": "u"},
                    "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}, "stream": true,
                    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}),
            ),
            (
                Responses,
                json!({"model": "m", "instructions": "i", "input": [], "tools": [], "tool_choice": "auto",
                    "parallel_tool_calls": true, "reasoning": {"effort": "high"}, "store": false, "stream": true,
                    "include": ["reasoning.encrypted_content"], "service_tier": "auto", "prompt_cache_key": "k",
                    "text": {"verbosity": "low"}, "client_metadata": {}}),
            ),
            (
                Chat,
                json!({"model": "m", "messages": [], "tools": [], "top_k": 20, "repetition_penalty": 1.05, "stream": true,
                    "stream_options": {"include_usage": true}, "chat_template_kwargs": {"enable_thinking": false}}),
            ),
            (
                Gemini,
                json!({"contents": [], "systemInstruction": {}, "tools": [], "safetySettings": [], "labels": {},
                    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
                    "generationConfig": {"temperature": 1, "thinkingConfig": {"includeThoughts": true}}}),
            ),
        ] {
            assert_eq!(take(wire, &asked), (Vec::new(), asked.clone()), "{wire:?}");
        }
    }

    #[test]
    fn nested_settings_that_would_take_another_model_or_place_are_taken_out_by_their_path() {
        let (taken, left) = take(
            Gemini,
            &json!({
                "generation_config": {"temperature": 1, "routing_config": {"manualMode": {"modelName": "other"}}},
                "toolConfig": {"retrievalConfig": {}, "functionCallingConfig": {}},
            }),
        );
        assert_eq!(taken, ["generation_config.routing_config", "toolConfig.retrievalConfig"]);
        assert_eq!(
            left,
            json!({"generation_config": {"temperature": 1}, "toolConfig": {"functionCallingConfig": {}}})
        );
        let edits = json!([{"type": "compact_20260112"}, {"type": "run_20270101"}, {"type": "compact"}, "x"]);
        let (taken, left) = take(Messages, &json!({"context_management": {"edits": edits, "other": 1}}));
        let path = "context_management";
        let names = ["edits.run_20270101", "edits.compact", "edits.?", "other"];
        assert_eq!(taken, names.map(|name| format!("{path}.{name}")));
        assert_eq!(left, json!({"context_management": {"edits": [{"type": "compact_20260112"}]}}));
        assert_eq!(take(Gemini, &json!({"generationConfig": [{}]})).0, ["generationConfig"]);
    }

    #[test]
    fn the_book_names_each_key_under_its_purpose() {
        let book = include_str!("../../../../docs/src/formats/requests.md");
        for group in PERMITTED {
            let (_, rest) = book.split_once(&format!("## {}\n", group.purpose)).expect(group.purpose);
            let section = rest.split("\n## ").next().unwrap();
            let nested = |rule: &Rule| if let Keys(keys) = rule { keys.to_vec() } else { Vec::new() };
            for (key, rule) in group.keys {
                for (name, _) in nested(rule).iter().chain([&(*key, Any)]) {
                    assert!(section.contains(&format!("`{name}`")), "{name} in `{}`", group.purpose);
                }
            }
        }
    }

    #[test]
    fn a_date_is_eight_digits() {
        for (name, is) in [
            ("bash_20250124", true),
            ("bash_code_execution_20250825", false),
            ("bash_", false),
            ("bash", false),
            ("bash_2025012", false),
        ] {
            assert_eq!(is_dated(name, "bash"), is, "{name}");
        }
    }
}
