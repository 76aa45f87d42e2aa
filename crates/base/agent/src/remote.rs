//! What a model's host would read for an agent: a place elsewhere, or a file that the host keeps.

use crate::hosted::plain;
use crate::object::{Json, Object};

/// What a request has the model's host read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Read<'a> {
    /// An address of an image, a file, a document.
    Address(&'a str),
    /// What the host keeps under this name: a file, an earlier item of a conversation.
    Kept(&'a str),
}

/// Keys of a request whose content is shown to the model. Whatever else a request holds is read by nobody: settings, schemas,
/// what a tool's description gives as an example.
const SHOWN: [&str; 6] = ["messages", "system", "input", "instructions", "contents", "systeminstruction"];
/// What a tool is called with or gave, what it is, and what is told of a message are no content, whatever they are like.
const NO_CONTENT: [&str; 8] =
    ["action", "args", "arguments", "input", "metadata", "operation", "response", "tools"];
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
/// Keys whose text or texts may be addresses, and content as well.
const MEDIA: [&str; 4] = ["audio", "image", "images", "video"];

/// The first thing in a request that the model's host would read elsewhere for the agent.
pub(crate) fn read_for_it<'a>(asked: &'a Object<'_>) -> Option<Read<'a>> {
    let mut shown = asked.0.iter().filter(|(key, _)| SHOWN.contains(&plain(key).as_str()));
    shown.find_map(|(_, value)| content(value))
}

/// What is read by reason of a message, a part of one, or several of them.
fn content<'a>(value: &'a Json<'_>) -> Option<Read<'a>> {
    match value {
        Json::Object(object) => part(object),
        Json::List(list) => list.iter().find_map(content),
        Json::Plain(_) | Json::Text(_) => None,
    }
}

fn part<'a>(object: &'a Object<'_>) -> Option<Read<'a>> {
    // An earlier item, by its name alone.
    if object.text("type") == Some("item_reference") {
        return Some(Read::Kept(object.text("id").unwrap_or("item_reference")));
    }
    object.0.iter().find_map(|(key, value)| {
        let plain = plain(key);
        if NO_CONTENT.contains(&plain.as_str()) {
            return None;
        }
        match value {
            Json::Text(text) if plain == "fileid" => Some(Read::Kept(text)),
            // A search's result of the agent's own names its source in a text.
            Json::Text(text) if ADDRESSES.contains(&plain.as_str()) && plain != "source" => remote(text),
            Json::Object(held) if ADDRESSES.contains(&plain.as_str()) => {
                held.text("url").and_then(remote).or_else(|| part(held))
            }
            media if MEDIA.contains(&plain.as_str()) => named(media).or_else(|| content(media)),
            value => content(value),
        }
    })
}

/// An address among texts that may be content themselves.
fn named<'a>(value: &'a Json<'_>) -> Option<Read<'a>> {
    match value {
        Json::Text(text) => Some(text).filter(|text| text.contains("://")).and_then(|text| remote(text)),
        Json::List(list) => list.iter().find_map(named),
        Json::Plain(_) | Json::Object(_) => None,
    }
}

/// A text that names a place: what is no `data:` holds no content itself.
fn remote(text: &str) -> Option<Read<'_>> {
    let shown = text.trim_start();
    let held = shown.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    (!shown.is_empty() && !held).then_some(Read::Address(text))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const URL: &str = "https://a.example/x";

    /// What is read of a request: an address as it is, a name after `kept `.
    fn found(asked: &Value) -> Option<String> {
        let text = asked.to_string();
        let asked = Object::read(&text).unwrap();
        read_for_it(&asked).map(|read| match read {
            Read::Address(url) => url.to_owned(),
            Read::Kept(name) => format!("kept {name}"),
        })
    }

    fn chat(part: &Value) -> Value {
        json!({"messages": [{"role": "user", "content": [part]}]})
    }

    fn item(item: &Value) -> Value {
        json!({"input": [item]})
    }

    #[test]
    fn an_address_that_the_models_host_would_read_is_found_wherever_content_stands() {
        for asked in [
            item(&json!({"role": "user", "content": [{"type": "input_file", "file_url": URL}]})),
            item(&json!({"role": "user", "content": [{"type": "input_image", "image_url": URL}]})),
            item(
                &json!({"type": "function_call_output", "output": [{"type": "input_image", "image_url": URL}]}),
            ),
            item(
                &json!({"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": URL}}),
            ),
            chat(&json!({"type": "document", "source": {"type": "url", "url": URL}})),
            chat(&json!({"type": "image", "source": {"type": "url", "url": URL}})),
            chat(&json!({"type": "image_url", "image_url": {"url": URL}})),
            chat(&json!({"type": "video", "video": ["data:,", URL]})),
            chat(&json!({"type": "tool_result", "content": [{"type": "image", "source": {"url": URL}}]})),
            json!({"system": [{"type": "document", "source": {"type": "url", "url": URL}}], "messages": []}),
            json!({"contents": [{"parts": [{"fileData": {"fileUri": URL}}]}]}),
            json!({"contents": [{"parts": [{"functionResponse": {"response": {}, "parts": [{"fileData": {"fileUri": URL}}]}}]}]}),
            json!({"systemInstruction": {"parts": [{"file_data": {"file_uri": URL}}]}}),
        ] {
            assert_eq!(found(&asked).as_deref(), Some(URL), "{asked}");
        }
    }

    #[test]
    fn what_the_host_keeps_is_found_by_its_name() {
        for asked in [
            chat(&json!({"type": "document", "source": {"type": "file", "file_id": "f"}})),
            chat(&json!({"type": "container_upload", "file_id": "f"})),
            chat(&json!({"type": "file", "file": {"file_id": "f"}})),
            item(&json!({"role": "user", "content": [{"type": "input_file", "file_id": "f"}]})),
            item(&json!({"type": "item_reference", "id": "f"})),
        ] {
            assert_eq!(found(&asked).as_deref(), Some("kept f"), "{asked}");
        }
    }

    #[test]
    fn an_address_that_nobody_reads_is_none() {
        let schema = json!({"type": "object", "properties": {}, "examples": [{"image_url": URL}],
            "default": {"source": {"url": URL}}});
        let call = |action: &Value| json!({"type": "local_shell_call", "action": action});
        for asked in [
            chat(&json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}})),
            chat(&json!({"type": "image", "image": "iVBORw0KGgo="})),
            chat(&json!({"type": "text", "text": URL})),
            chat(&json!({"type": "tool_use", "input": {"file_url": URL, "source": {"url": URL}}})),
            chat(&json!({"type": "search_result", "source": URL})),
            json!({"contents": [{"parts": [{"functionCall": {"args": {"image_url": URL}}}]}]}),
            json!({"metadata": {"image_url": URL, "source": {"url": URL}}, "messages": [{"metadata": {"file_id": "f"}}]}),
            json!({"tools": [{"name": "f", "input_schema": schema}]}),
            json!({"functions": [{"name": "f", "parameters": schema}]}),
            json!({"response_format": {"json_schema": {"schema": schema}}}),
            json!({"text": {"format": {"schema": schema}}}),
            item(&json!({"type": "additional_tools", "tools": [{"type": "function", "parameters": schema}]})),
            item(&call(&json!({"type": "exec", "env": {"SOURCE": URL, "image_url": URL, "file_id": "f"}}))),
            item(&json!({"type": "apply_patch_call", "operation": {"path": "a", "image_url": URL}})),
            json!({"instructions": URL, "input": URL}),
        ] {
            assert_eq!(found(&asked), None, "{asked}");
        }
    }
}
