//! Tools that a model's own host would run for an agent: they reach what its sandbox does not.

use serde_json::Value;

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
pub(crate) fn take_hosted(asked: &mut Value) -> Vec<String> {
    let mut taken = Vec::new();
    let Some(asked) = asked.as_object_mut() else { return taken };
    for name in HOSTED_SETTINGS {
        if asked.remove(name).is_some() {
            taken.push(name.to_owned());
        }
    }
    if let Some(tools) = asked.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain_mut(|tool| {
            let kind = tool["type"].as_str().unwrap_or_default();
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
fn take_keys(tool: &mut Value, taken: &mut Vec<String>) -> bool {
    let Some(tool) = tool.as_object_mut().filter(|tool| !tool.contains_key("type")) else { return false };
    let before = taken.len();
    tool.retain(|key, _| {
        let hosted = HOSTED_KEYS.contains(&key.replace('_', "").to_lowercase().as_str());
        if hosted {
            taken.push(key.clone());
        }
        !hosted
    });
    taken.len() > before && tool.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_would_search_on_the_models_host_is_taken_out_and_the_agents_own_tools_stay() {
        let mut asked = serde_json::json!({
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
        let taken = take_hosted(&mut asked);
        assert_eq!(taken, ["web_search_options", "mcp_servers", "web_search_20250305", "code_interpreter"]);
        let own = serde_json::json!([{"name": "Bash", "input_schema": {}}, {"type": "function", "name": "web_search"}]);
        assert_eq!(asked, serde_json::json!({"model": "m", "tools": own}));
        assert!(take_hosted(&mut asked).is_empty());
        let own = serde_json::json!({"functionDeclarations": [{"name": "google_web_search"}]});
        let mut both = own.clone();
        both["google_search"] = serde_json::json!({});
        let mut asked = serde_json::json!({"tools": [{"googleSearch": {}}, both, {"urlContext": {}}]});
        assert_eq!(take_hosted(&mut asked), ["googleSearch", "google_search", "urlContext"]);
        assert_eq!(asked, serde_json::json!({"tools": [own]}));
    }
}
