//! Tools that a model's own host would run for an agent: they reach what its sandbox does not.

use crate::object::{Json, Object};

/// Beginnings of types of tools that the model's own host would run: they reach what the sandbox does not.
const HOSTED: [&str; 6] =
    ["web_search", "web_fetch", "file_search", "code_interpreter", "code_execution", "mcp"];

/// Settings of a request that do the same (OpenAI's and others' chat completions, Anthropic's messages).
const HOSTED_SETTINGS: [&str; 4] = ["web_search_options", "search_parameters", "plugins", "mcp_servers"];

/// Tools of Gemini's that its host runs: keys of an entry, whichever way they are written.
const HOSTED_KEYS: [&str; 10] = [
    "googlesearch",
    "googlesearchretrieval",
    "enterprisewebsearch",
    "urlcontext",
    "codeexecution",
    "googlemaps",
    "filesearch",
    "retrieval",
    "mcpservers",
    "exaaisearch",
];

/// Takes tools and settings out of a request by which the model's own host would search or run something; gives their names.
pub(crate) fn take_hosted(asked: &mut Object) -> Vec<String> {
    let mut taken = Vec::new();
    asked.0.retain(|(key, _)| {
        let hosted = HOSTED_SETTINGS.contains(&key.as_str());
        if hosted {
            taken.push(key.clone());
        }
        !hosted
    });
    if let Some(Json::List(tools)) = asked.get_mut("tools") {
        tools.retain_mut(|tool| {
            let Json::Object(tool) = tool else { return true };
            let kind = tool.text("type").unwrap_or_default();
            let hosted = HOSTED.iter().any(|beginning| kind.starts_with(beginning));
            if hosted {
                taken.push(kind.to_owned());
            }
            !hosted && !take_keys(tool, &mut taken)
        });
    }
    taken
}

/// Takes Gemini's hosted tools out of an entry; whether nothing is left of it.
fn take_keys(tool: &mut Object, taken: &mut Vec<String>) -> bool {
    if tool.0.iter().any(|(key, _)| key == "type") {
        return false;
    }
    let before = taken.len();
    tool.0.retain(|(key, _)| {
        let hosted = HOSTED_KEYS.contains(&key.replace('_', "").to_lowercase().as_str());
        if hosted {
            taken.push(key.clone());
        }
        !hosted
    });
    taken.len() > before && tool.0.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// What is taken, and what is left.
    fn take(asked: &Value) -> (Vec<String>, Value) {
        let mut asked = Object::read(asked.to_string().as_bytes()).unwrap();
        let taken = take_hosted(&mut asked);
        (taken, asked.value())
    }

    #[test]
    fn whatever_would_search_on_the_models_host_is_taken_out_and_the_agents_own_tools_stay() {
        let asked = serde_json::json!({
            "model": "m",
            "web_search_options": {},
            "mcp_servers": [{"url": "https://a.example"}],
            "tools": [
                {"type": "web_search_20250305", "name": "web_search"},
                {"name": "Bash", "input_schema": {}},
                {"type": "function", "name": "web_search"},
                {"type": "code_interpreter"},
            ],
        });
        let (taken, left) = take(&asked);
        assert_eq!(taken, ["mcp_servers", "web_search_options", "web_search_20250305", "code_interpreter"]);
        let own = serde_json::json!([{"name": "Bash", "input_schema": {}}, {"type": "function", "name": "web_search"}]);
        assert_eq!(left, serde_json::json!({"model": "m", "tools": own}));
        assert!(take(&left).0.is_empty());
        let own = serde_json::json!({"functionDeclarations": [{"name": "google_web_search"}]});
        let mut both = own.clone();
        both["google_search"] = serde_json::json!({});
        let (taken, left) =
            take(&serde_json::json!({"tools": [{"googleSearch": {}}, both, {"urlContext": {}}]}));
        assert_eq!(taken, ["googleSearch", "google_search", "urlContext"]);
        assert_eq!(left, serde_json::json!({"tools": [own]}));
    }
}
