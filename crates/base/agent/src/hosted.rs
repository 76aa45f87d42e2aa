//! Tools that a model's own host would run for an agent: they reach what its sandbox does not.

use crate::object::{Json, Object};
use crate::permitted::is_dated;

/// Types of tools that an agent itself runs; a tool of any other type is its model's host's.
const OWN: [&str; 8] = [
    "function",
    "custom",
    "local_shell",
    "apply_patch",
    "namespace",
    "additional_tools",
    // What is clicked and typed, the agent does.
    "computer",
    "computer_use_preview",
];
/// The same with a date behind them (Anthropic's). `tool_search_tool_*` is none: its host searches.
const OWN_DATED: [&str; 4] = ["bash", "text_editor", "memory", "computer"];
/// Keys of a tool without a type, as Gemini has them, that hold the agent's own.
const DECLARED: [&str; 2] = ["functiondeclarations", "computeruse"];

/// Keys of a tool of the agent's own, which has a type or a name: what it is and how it is called, and no more.
const OWN_KEYS: [&str; 27] = [
    "allowedcallers",
    "annotations",
    "cachecontrol",
    "deferloading",
    "description",
    "displayheight",
    "displayheightpx",
    "displaynumber",
    "displaywidth",
    "displaywidthpx",
    "eagerinputstreaming",
    "enablezoom",
    "environment",
    "execution",
    "format",
    "function",
    "inputexamples",
    "inputschema",
    "maxcharacters",
    "name",
    "outputschema",
    "parameters",
    "promptcachebreakpoint",
    "strict",
    "title",
    "tools",
    "type",
];

/// A key as the lenient ones of its readers see it: without signs between words, in one case, whatever letter folds to it (`ſ`).
pub(crate) fn plain(key: &str) -> String {
    let letters = key.chars().filter(|c| !"_-".contains(*c));
    letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Keys of a tool by which it is told whose it is.
const TELLING: [&str; 3] = ["type", "environment", "execution"];

/// Takes tools out of a request that the model's own host would run; gives their names.
pub(crate) fn take_hosted(asked: &mut Object<'_>) -> Vec<String> {
    let mut taken = Vec::new();
    take_tools(asked, &mut taken);
    for (key, value) in &mut asked.0 {
        if let (Json::List(items), "input" | "messages" | "contents") = (value, plain(key).as_str()) {
            // Tools may be added, or found by a search of the agent's own, as the talk goes on.
            for item in items {
                if let Json::Object(item) = item {
                    take_tools(item, &mut taken);
                }
            }
        }
    }
    taken
}

/// Takes them out of what a request, a namespace or an item holds as its tools.
fn take_tools(holder: &mut Object<'_>, taken: &mut Vec<String>) {
    holder.0.retain_mut(|(key, value)| {
        if !["tools", "functions"].contains(&plain(key).as_str()) {
            return true;
        }
        match value {
            Json::List(tools) => {
                tools.retain_mut(|tool| keep(tool, taken));
                true
            }
            Json::Plain(_) if value.says_no() => true,
            tool => keep(tool, taken),
        }
    });
}

/// Takes what is hosted out of a tool; whether anything of it is left.
fn keep(tool: &mut Json<'_>, taken: &mut Vec<String>) -> bool {
    let Json::Object(tool) = tool else {
        taken.push(tool.as_text().unwrap_or("a tool that is no object").to_owned());
        return false;
    };
    let before = taken.len();
    // What another reader takes for the tool's type is no name of ours.
    let other = |key: &&str| TELLING.contains(&plain(key).as_str()) && !TELLING.contains(key);
    if let Some(key) = tool.0.iter().map(|(key, _)| key.as_ref()).find(other) {
        taken.push(key.to_owned());
        return false;
    }
    match tool.text("type") {
        Some(kind) if !is_own(kind, tool) => {
            taken.push(kind.to_owned());
            return false;
        }
        kind => {
            let typed = kind.is_some() || tool.text("name").is_some();
            take_keys(tool, typed, taken);
        }
    }
    take_tools(tool, taken);
    // Of a tool that is known by its keys, nothing may be left.
    taken.len() == before || tool.0.iter().any(|(key, _)| plain(key) != "type")
}

fn is_own(kind: &str, tool: &Object<'_>) -> bool {
    let of = |key: &str, word: &str| tool.text(key) == Some(word);
    match kind {
        // Where it runs is the tool's own setting.
        "shell" => match tool.get("environment") {
            None => true,
            Some(Json::Object(environment)) => environment.text("type") == Some("local"),
            Some(other) => other.says_no(),
        },
        "tool_search" => of("execution", "client"),
        _ => OWN.contains(&kind) || OWN_DATED.iter().any(|own| is_dated(kind, own)),
    }
}

/// Takes keys out of a tool: of one that has a type or a name all but what describes it, of another all but the agent's own.
fn take_keys(tool: &mut Object<'_>, typed: bool, taken: &mut Vec<String>) {
    tool.0.retain(|(key, _)| {
        let plain = plain(key);
        let own = match typed {
            true => OWN_KEYS.contains(&plain.as_str()),
            false => DECLARED.contains(&plain.as_str()) || plain == "type",
        };
        if !own {
            taken.push(key.to_string());
        }
        own
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What is taken, and what is left.
    fn take(asked: &Value) -> (Vec<String>, Value) {
        let text = asked.to_string();
        let mut asked = Object::read(&text).unwrap();
        let taken = take_hosted(&mut asked);
        (taken, serde_json::from_slice(&asked.written(0)).unwrap())
    }

    #[test]
    fn a_tool_is_not_told_by_a_key_that_only_another_reader_takes_for_its_type() {
        for tool in [
            json!({"type": "function", "Type": "web_search", "name": "f"}),
            json!({"Type": "web_search", "name": "f"}),
            json!({"type": "shell", "environment": {"type": "local"}, "Environment": {"type": "container_auto"}}),
        ] {
            let (taken, left) = take(&json!({"tools": [tool]}));
            assert_eq!((taken.len(), &left["tools"]), (1, &json!([])), "{taken:?}");
        }
        let (taken, _) = take(&json!({"tool\u{17f}": [{"type": "web_search"}]}));
        assert_eq!(taken, ["web_search"]);
        let (taken, _) = take(&json!({"messages": [{"role": "user", "tools": [{"type": "web_search"}]}]}));
        assert_eq!(taken, ["web_search"]);
    }

    #[test]
    fn whatever_would_search_on_the_models_host_is_taken_out_and_the_agents_own_tools_stay() {
        let asked = json!({
            "model": "m",
            "tools": [
                {"type": "web_search_20250305", "name": "web_search"},
                {"name": "Bash", "input_schema": {}},
                {"type": "function", "name": "web_search"},
                {"type": "code_interpreter"},
            ],
        });
        let (taken, left) = take(&asked);
        assert_eq!(taken, ["web_search_20250305", "code_interpreter"]);
        let own = json!([{"name": "Bash", "input_schema": {}}, {"type": "function", "name": "web_search"}]);
        assert_eq!(left, json!({"model": "m", "tools": own}));
        assert!(take(&left).0.is_empty());
        let own = json!({"functionDeclarations": [{"name": "google_web_search"}]});
        let mut both = own.clone();
        both["google_search"] = json!({});
        let (taken, left) = take(&json!({"tools": [{"googleSearch": {}}, both, {"urlContext": {}}]}));
        assert_eq!(taken, ["googleSearch", "google_search", "urlContext"]);
        assert_eq!(left, json!({"tools": [own]}));
    }

    #[test]
    fn a_tool_is_the_hosts_unless_its_type_is_known_as_the_agents() {
        for hosted in [
            json!({"type": "openrouter:web_search"}),
            json!({"type": "browser_search"}),
            json!({"type": "x_search"}),
            json!({"type": "bing_grounding"}),
            json!({"type": "builtin_function", "function": {"name": "$web_search"}}),
            json!({"type": "image_generation"}),
            json!({"type": "bash_code_execution_20250825"}),
            json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}),
            json!({"type": "mcp_toolset", "mcp_server_name": "m"}),
            json!({"type": "programmatic_tool_calling"}),
            json!({"type": "shell", "environment": {"type": "container_auto"}}),
            json!({"type": "tool_search"}),
            json!({"type": "Web_Search"}),
        ] {
            let (taken, left) = take(&json!({"tools": [hosted]}));
            assert_eq!(
                (taken, left),
                (vec![hosted["type"].as_str().unwrap().to_owned()], json!({"tools": []}))
            );
        }
        let own = json!({"tools": [
            {"type": "function", "function": {"name": "f"}},
            {"type": "custom", "name": "c", "format": {"type": "grammar"}},
            {"type": "local_shell"},
            {"type": "shell", "environment": {"type": "local"}},
            {"type": "tool_search", "execution": "client"},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            {"type": "computer_20251124", "name": "computer"},
            {"type": "computer_use_preview", "environment": "browser"},
            {"type": "memory_20250818", "name": "memory"},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]},
            {"function_declarations": []},
            {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
        ]});
        let (taken, left) = take(&own);
        assert_eq!((taken, left), (Vec::new(), own));
    }

    #[test]
    fn tools_are_found_wherever_and_however_they_are_written() {
        for (asked, name) in [
            (json!({"tools": {"googleSearch": {}}}), "googleSearch"),
            (json!({"Tools": [{"type": "web_search"}]}), "web_search"),
            (json!({"tools": [{"googleSearch": {}, "type": null}]}), "googleSearch"),
            (json!({"tools": [{"type": "function", "name": "f", "google_search": {}}]}), "google_search"),
            (json!({"tools": [{"newSearch": {}}]}), "newSearch"),
            (json!({"tools": [{"name": "f", "newSearch": {}}]}), "newSearch"),
            (json!({"tools": ["web_search"]}), "web_search"),
            (json!({"tools": [{"type": "namespace", "tools": [{"type": "web_search"}]}]}), "web_search"),
            (json!({"input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]}), "mcp"),
        ] {
            let (taken, left) = take(&asked);
            assert_eq!(taken, [name], "{asked}");
            assert!(!left.to_string().contains(name), "{left}");
        }
    }
}
