//! Usage that an endpoint tells only where it is asked for it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::hosted::plain;
use crate::object::{Json, Object};

/// What an OpenAI chat's options of a stream are called.
const OPTIONS: &str = "stream_options";
/// What of them has the last part of a stream tell its tokens.
const USAGE: &str = "include_usage";

/// Has a chat's stream tell its tokens, whatever the agent asked for; an answer in one piece does so by itself.
pub(crate) fn ask_for_usage(asked: &mut Object<'_>) {
    let streamed = asked.0.iter().any(|(key, value)| plain(key) == "stream" && !value.says_no());
    let Ok(yes) = serde_json::from_str::<&'static RawValue>("true") else { return };
    if !streamed {
        return;
    }
    let mut options = match asked.0.iter_mut().find(|(key, _)| key == OPTIONS) {
        Some((_, Json::Object(options))) => std::mem::take(&mut options.0),
        _ => Vec::new(),
    };
    options.retain(|(key, _)| plain(key) != plain(USAGE));
    options.push((Cow::Borrowed(USAGE), Json::Plain(yes)));
    let options = Json::Object(Object(options));
    match asked.0.iter_mut().find(|(key, _)| key == OPTIONS) {
        Some((_, value)) => *value = options,
        None => asked.0.push((Cow::Borrowed(OPTIONS), options)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_asked_for_its_usage_and_nothing_else_of_it_changes() {
        let usage = r#""stream_options":{"include_usage":true}"#;
        for (asked, sent) in [
            (
                r#"{"model":"m","stream":true}"#.to_owned(),
                format!(r#"{{"model":"m","stream":true,{usage}}}"#),
            ),
            (
                r#"{"stream_options":{"include_usage":false},"stream":true}"#.to_owned(),
                format!(r#"{{{usage},"stream":true}}"#),
            ),
            (
                r#"{"stream":1,"stream_options":{"include_obfuscation":false}}"#.to_owned(),
                r#"{"stream":1,"stream_options":{"include_obfuscation":false,"include_usage":true}}"#
                    .to_owned(),
            ),
            (r#"{"stream":true,"stream_options":null}"#.to_owned(), format!(r#"{{"stream":true,{usage}}}"#)),
            (r#"{"stream":false}"#.to_owned(), r#"{"stream":false}"#.to_owned()),
            (r#"{"model":"m"}"#.to_owned(), r#"{"model":"m"}"#.to_owned()),
        ] {
            let mut object = Object::read(&asked).unwrap();
            ask_for_usage(&mut object);
            assert_eq!(String::from_utf8(object.written(0)).unwrap(), sent);
        }
    }
}
