//! Tools that a model's own host would run for an agent, and addresses that it would read for one: they reach what its sandbox
//! does not.

use crate::object::{Json, Object};

/// Types of tools that an agent itself runs; a tool of any other type is its model's host's.
const OWN: [&str; 6] = ["function", "custom", "local_shell", "apply_patch", "namespace", "additional_tools"];
/// The same with a date behind them (Anthropic's).
const OWN_DATED: [&str; 3] = ["bash_", "text_editor_", "memory_"];
/// Keys of a tool without a type, as Gemini has them, that hold the agent's own.
const DECLARED: [&str; 1] = ["functiondeclarations"];

/// Keys of a request by which its model's host would search, run or remember something, take another model, or ask with what
/// stands elsewhere; keys are compared without `_`, `-` and case, since readers differ in that.
const HOSTED_SETTINGS: [&str; 43] = [
    "apibase",
    "background",
    "cachedcontent",
    "citationoptions",
    "compoundcustom",
    "connectors",
    "container",
    "conversation",
    "datasources",
    "enablecodeinterpreter",
    "enabledeepsearch",
    "enableenhancement",
    "enablesearch",
    "extrabody",
    "fallbacks",
    "features",
    "files",
    "forcedsearch",
    "lorapath",
    "mcpservers",
    "mockresponse",
    "models",
    "multiagent",
    "plugins",
    "preset",
    "previousinteractionid",
    "previousresponseid",
    "prompt",
    "promptid",
    "route",
    "searchdomainfilter",
    "searchmode",
    "searchoptions",
    "searchparameters",
    "searchsettings",
    "searchstrategy",
    "toolids",
    "toolresources",
    "userconfig",
    "vectorstoreids",
    "websearch",
    "websearchoptions",
    "websearchparameters",
];

/// Keys of a tool that its host runs, whatever else stands in it.
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

/// A key as the lenient ones of its readers see it: without signs between words, in one case, whatever letter folds to it (`ſ`).
pub(crate) fn plain(key: &str) -> String {
    let letters = key.chars().filter(|c| !"_-".contains(*c));
    letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Keys of a tool by which it is told whose it is.
const TELLING: [&str; 3] = ["type", "environment", "execution"];

/// Takes tools and settings out of a request by which the model's own host would search or run something; gives their names.
pub(crate) fn take_hosted(asked: &mut Object<'_>) -> Vec<String> {
    let mut taken = Vec::new();
    asked.0.retain(|(key, value)| {
        let hosted = HOSTED_SETTINGS.contains(&plain(key).as_str()) && !value.says_no();
        if hosted {
            taken.push(key.to_string());
        }
        !hosted
    });
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
        if plain(key) != "tools" {
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
        _ => OWN.contains(&kind) || OWN_DATED.iter().any(|beginning| kind.starts_with(beginning)),
    }
}

/// Takes keys out of a tool: of one that has a type or a name those that are known as hosted, of another all but the agent's own.
fn take_keys(tool: &mut Object<'_>, typed: bool, taken: &mut Vec<String>) {
    tool.0.retain(|(key, _)| {
        let plain = plain(key);
        let own = match typed {
            true => !HOSTED_KEYS.contains(&plain.as_str()),
            false => DECLARED.contains(&plain.as_str()) || plain == "type",
        };
        if !own {
            taken.push(key.to_string());
        }
        own
    });
}

/// The first address in a request that the model's host would read for the agent: of an image, a file, a document.
pub(crate) fn fetched<'a>(asked: &'a Object<'_>) -> Option<&'a str> {
    asked.0.iter().filter(|(key, _)| plain(key) != "tools").find_map(|(key, value)| address(key, value, true))
}

/// What a tool is called with, or gave, is text to the model, whatever it is like.
const ARGUMENTS: [&str; 4] = ["input", "args", "arguments", "response"];
/// Keys whose text, or `url` in what they hold, is an address.
const ADDRESSES: [&str; 9] = [
    "audiourl",
    "documenturl",
    "fileuri",
    "fileurl",
    "imageurl",
    "imageuri",
    "source",
    "videouri",
    "videourl",
];

fn address<'a>(key: &str, value: &'a Json<'_>, top: bool) -> Option<&'a str> {
    let plain = plain(key);
    if !top && ARGUMENTS.contains(&plain.as_str()) {
        return None;
    }
    let held = ADDRESSES.contains(&plain.as_str());
    match value {
        // A search's result of the agent's own names its source in a text.
        Json::Text(text) if held && plain != "source" => Some(text.as_ref()).filter(|text| is_remote(text)),
        Json::Object(object) if held => {
            let url = object.text("url").filter(|text| is_remote(text));
            url.or_else(|| within(object))
        }
        Json::Object(object) => within(object),
        Json::List(list) => list.iter().find_map(|item| match item {
            Json::Object(object) => within(object),
            Json::List(_) => address(key, item, top),
            _ => None,
        }),
        _ => None,
    }
}

fn within<'a>(object: &'a Object<'_>) -> Option<&'a str> {
    object.0.iter().find_map(|(key, value)| address(key, value, false))
}

/// Whether it names a place: what is no `data:` holds no content itself.
fn is_remote(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
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
        let (taken, _) =
            take(&json!({"tool\u{17f}": [{"type": "web_search"}], "enable_code_interpreter": true}));
        assert_eq!(taken, ["enable_code_interpreter", "web_search"]);
        let (taken, _) = take(&json!({"messages": [{"role": "user", "tools": [{"type": "web_search"}]}]}));
        assert_eq!(taken, ["web_search"]);
    }

    #[test]
    fn whatever_would_search_on_the_models_host_is_taken_out_and_the_agents_own_tools_stay() {
        let asked = json!({
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
            json!({"type": "computer_use_preview"}),
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
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]},
            {"function_declarations": []},
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
            (json!({"tools": ["web_search"]}), "web_search"),
            (json!({"tools": [{"type": "namespace", "tools": [{"type": "web_search"}]}]}), "web_search"),
            (json!({"input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]}), "mcp"),
        ] {
            let (taken, left) = take(&asked);
            assert_eq!(taken, [name], "{asked}");
            assert!(!left.to_string().contains(name), "{left}");
        }
    }

    #[test]
    fn settings_that_ask_elsewhere_are_taken_out_unless_they_say_no() {
        for setting in [
            json!({"enable_search": true}),
            json!({"search_options": {}}),
            json!({"extra_body": {"google": {"tools": [{"googleSearch": {}}]}}}),
            json!({"prompt": {"id": "p"}}),
            json!({"previous_response_id": "r"}),
            json!({"container": {"id": "c"}}),
            json!({"background": true}),
            json!({"models": ["other"]}),
            json!({"cachedContent": "cachedContents/c"}),
        ] {
            let (taken, left) = take(&setting);
            let names: Vec<&String> = setting.as_object().unwrap().keys().collect();
            assert_eq!((taken.iter().collect::<Vec<_>>(), left), (names, json!({})));
        }
        let no = json!({"background": false, "previous_response_id": null, "tools": null, "prompt_cache_key": "k"});
        assert_eq!(take(&no), (Vec::new(), no.clone()));
    }

    #[test]
    fn an_address_that_the_models_host_would_read_is_found_and_what_a_tool_is_called_with_is_not_one() {
        let url = "https://a.example/x";
        let found = |asked: &Value| {
            let text = asked.to_string();
            let asked = Object::read(&text).unwrap();
            fetched(&asked).map(str::to_owned)
        };
        let chat = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
        for asked in [
            json!({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": url}]}]}),
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]}),
            chat(json!({"type": "document", "source": {"type": "url", "url": url}})),
            chat(json!({"type": "image", "source": {"type": "url", "url": url}})),
            chat(json!({"type": "image_url", "image_url": {"url": url}})),
            chat(json!({"type": "tool_result", "content": [{"type": "image", "source": {"url": url}}]})),
            json!({"contents": [{"parts": [{"fileData": {"fileUri": url}}]}]}),
        ] {
            assert_eq!(found(&asked).as_deref(), Some(url), "{asked}");
        }
        for asked in [
            chat(json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}})),
            chat(json!({"type": "text", "text": url})),
            chat(json!({"type": "tool_use", "input": {"file_url": url, "source": {"url": url}}})),
            chat(json!({"type": "search_result", "source": url})),
            json!({"contents": [{"parts": [{"functionCall": {"args": {"image_url": url}}}]}]}),
            json!({"tools": [{"name": "f", "input_schema": {"default": {"image_url": url}}}]}),
        ] {
            assert_eq!(found(&asked), None, "{asked}");
        }
    }
}
