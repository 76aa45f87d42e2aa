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
const NO_CONTENT: [&str; 10] = [
    "action",
    "annotations",
    "args",
    "arguments",
    "citations",
    "input",
    "metadata",
    "operation",
    "response",
    "tools",
];
/// Keys whose text is an address, whatever it looks like, where it is no `data:`.
const ADDRESSES: [&str; 10] = [
    "audiourl",
    "documenturl",
    "fileuri",
    "fileurl",
    "imageurl",
    "imageuri",
    "uri",
    "url",
    "videouri",
    "videourl",
];
/// Keys whose text or texts may be addresses, and content as well.
const MEDIA: [&str; 4] = ["audio", "image", "images", "video"];
/// Keys whose text is shown as it is. Under any other one a text that begins as an address does is one: hosts differ in where they
/// take addresses (`file_data`, `input_audio.data`).
const TEXTS: [&str; 17] = [
    "content",
    "context",
    "description",
    "error",
    "name",
    "output",
    "reasoning",
    "reasoningcontent",
    "refusal",
    "result",
    "source",
    "stderr",
    "stdout",
    "summary",
    "text",
    "thinking",
    "title",
];
/// What stands before the names of kept files in the text of a system message (DashScope's way).
const KEPT: &str = "fileid://";

/// The first thing in a request that the model's host would read elsewhere for the agent.
pub(crate) fn read_for_it<'a>(asked: &'a Object<'_>) -> Option<Read<'a>> {
    let mut shown = asked.0.iter().filter(|(key, _)| SHOWN.contains(&plain(key).as_str()));
    shown.find_map(|(_, value)| content("text", value))
}

/// What is read by reason of what a key, in plain spelling, holds.
fn content<'a>(key: &str, value: &'a Json<'_>) -> Option<Read<'a>> {
    match value {
        Json::Object(object) => part(object),
        Json::List(list) => list.iter().find_map(|value| content(key, value)),
        Json::Text(text) => named(key, text),
        Json::Plain(_) => None,
    }
}

/// What is read by reason of a message or a part of one.
fn part<'a>(object: &'a Object<'_>) -> Option<Read<'a>> {
    if let Some(name) = by_name_alone(object) {
        return Some(Read::Kept(name));
    }
    object.0.iter().find_map(|(key, value)| {
        let plain = plain(key);
        let shown = !NO_CONTENT.contains(&plain.as_str());
        shown.then(|| content(&plain, value)).flatten()
    })
}

/// The name of an earlier item, or of an answer's sound, in place of what it holds. A host may take one that does not say its type.
fn by_name_alone<'a>(object: &'a Object<'_>) -> Option<&'a str> {
    let name = object.text("id");
    if object.text("type") == Some("item_reference") {
        return Some(name.unwrap_or("item_reference"));
    }
    let holds_more = |(key, value): &(std::borrow::Cow<'_, str>, Json<'_>)| {
        !value.says_no() && !["id", "object", "status", "type"].contains(&key.as_ref())
    };
    name.filter(|_| !object.0.iter().any(holds_more))
}

/// What a text names that stands under a key.
fn named<'a>(key: &str, text: &'a str) -> Option<Read<'a>> {
    if ["fileid", "fileids"].contains(&key) {
        return Some(Read::Kept(text));
    }
    if TEXTS.contains(&key) {
        return text.trim_start().starts_with(KEPT).then_some(Read::Kept(text));
    }
    let is_one = ADDRESSES.contains(&key) || (MEDIA.contains(&key) && text.contains("://"));
    (is_one || begins_as_address(text)).then(|| remote(text)).flatten()
}

/// Whether a text begins with a scheme and two slashes, of either kind.
fn begins_as_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.trim_start().split_once(':') else { return false };
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    named && rest.chars().take(2).filter(|c| "/\\".contains(*c)).count() == 2
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
            // Where some hosts take addresses though their name is of content; in spellings that lenient ones may take.
            chat(&json!({"type": "file", "file": {"filename": "a.pdf", "file_data": URL}})),
            chat(&json!({"type": "input_audio", "input_audio": {"data": URL, "format": "wav"}})),
            item(&json!({"role": "user", "content": [{"type": "input_file", "file_data": URL}]})),
            chat(&json!({"type": "image_url", "image_url": {"URL": URL, "url": "data:,"}})),
            chat(&json!({"type": "image_url", "image_url": {"url": [URL]}})),
            chat(&json!({"type": "image_url", "image_url": [URL]})),
            chat(&json!({"type": "document", "source": {"type": "url", "URL": URL}})),
            chat(&json!({"type": "image", "url": URL})),
            chat(&json!({"type": "image", "uri": URL})),
            json!({"contents": [{"parts": [{"inlineData": {"data": URL, "mimeType": "x"}}]}]}),
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
            item(&json!({"id": "f"})),
            item(&json!({"type": null, "id": "f"})),
            item(&json!({"type": "image_generation_call", "id": "f"})),
            json!({"messages": [{"role": "assistant", "audio": {"id": "f"}}]}),
        ] {
            assert_eq!(found(&asked).as_deref(), Some("kept f"), "{asked}");
        }
    }

    #[test]
    fn a_file_that_a_system_message_names_is_kept_by_the_host() {
        let asked = json!({"messages": [{"role": "system", "content": "fileid://a,fileid://b"}]});
        assert_eq!(found(&asked).as_deref(), Some("kept fileid://a,fileid://b"));
    }

    #[test]
    fn slashes_of_either_kind_make_an_address_and_a_drive_or_a_word_does_not() {
        for (text, is) in [
            (URL, true),
            (" \nFTP://x", true),
            ("https:\\\\x", true),
            ("s3://bucket", true),
            ("data:image/png;base64,AA==", false),
            ("a: //", false),
            ("1a://x", false),
            ("note: see https://a.example", false),
            ("C:\\x", false),
        ] {
            assert_eq!(begins_as_address(text), is, "{text:?}");
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
            item(&json!({"type": "function_call_output", "call_id": "c", "output": URL})),
            item(&json!({"type": "shell_call_output", "output": [{"stdout": URL, "stderr": URL}]})),
            item(
                &json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": URL}]}),
            ),
            json!({"messages": [{"role": "assistant", "content": null, "reasoning_content": URL,
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": URL}}]}]}),
            chat(
                &json!({"type": "text", "text": "x", "citations": [{"url": URL}], "annotations": [{"url": URL}]}),
            ),
        ] {
            assert_eq!(found(&asked), None, "{asked}");
        }
    }
}
