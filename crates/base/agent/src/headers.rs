//! Headers on their way through the proxy: those that steer an answer alone pass, the key comes in, what is a connection's own stays
//! behind.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::betas::permitted_flags;
use crate::secret::Secret;

/// Headers of a request that are passed on: its form, its version, its program and its conversation by their names. Not among them
/// are those that choose an account, another method or path, another form of the answer than the meter reads.
const PERMITTED: [&str; 24] = [
    "accept",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "content-type",
    "conversation-id",
    "conversation_id",
    "http-referer",
    "openai-beta",
    "originator",
    "session-id",
    "session_id",
    "thread-id",
    "thread_id",
    "user-agent",
    "version",
    "x-app",
    "x-client-request-id",
    "x-dashscope-authtype",
    "x-dashscope-cachecontrol",
    "x-dashscope-useragent",
    "x-goog-api-client",
    "x-server-timeout",
    "x-title",
];
/// Beginnings of such headers: what a program tells of itself.
const PERMITTED_BEGINNINGS: [&str; 3] = ["x-claude-code-", "x-codex-", "x-stainless-"];
/// What an answer may be: the forms that the meter reads.
const ACCEPTED: [&str; 4] = ["application/json", "text/event-stream", "application/*", "*/*"];
/// What of OpenAI's own betas is passed on.
const OPENAI_BETAS: [&str; 1] = ["responses=experimental"];

/// Headers that are left out without a word: any client sets them by itself.
const LEFT_OUT: [&str; 17] = [
    "accept-encoding",
    "accept-language",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "pragma",
    "priority",
    "sec-fetch-mode",
    "traceparent",
    "tracestate",
    "x-api-key",
    "x-goog-api-key",
    "x-request-id",
];

/// Where Anthropic's and Google's requests bear their key as it is.
const KEY_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("x-goog-api-key")];

/// A request's headers as they are sent on, the key in the placeholder's place; besides, what was taken out of them.
pub(crate) fn sent_on(asked: &HeaderMap, key: Option<&Secret>) -> (HeaderMap, Vec<String>) {
    let (mut sent, mut taken) = (HeaderMap::new(), Vec::new());
    for (name, value) in asked {
        let known = name.as_str();
        if hop_by_hop(name) || LEFT_OUT.contains(&known) {
            continue;
        }
        match permitted(known, value, &mut taken) {
            Some(value) => {
                sent.append(name.clone(), value);
            }
            None if known == "anthropic-beta" => {}
            None => taken.push(known.to_owned()),
        }
    }
    // The meter reads the answer as it passes.
    sent.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let bears = KEY_HEADERS.map(|name| (name, "")).into_iter().chain([(header::AUTHORIZATION, "Bearer ")]);
    for (name, before) in bears.filter(|(name, _)| asked.contains_key(name)) {
        if let Some(value) = key.and_then(|key| key.header(before)) {
            sent.insert(name, value);
        }
    }
    (sent, taken)
}

/// What of a header is passed on; flags that are not are told.
fn permitted(name: &str, value: &HeaderValue, taken: &mut Vec<String>) -> Option<HeaderValue> {
    let text = value.to_str().ok();
    match name {
        "accept" => {
            let mut forms = text?.split(',').map(|form| form.split(';').next().unwrap_or_default().trim());
            forms.all(|form| ACCEPTED.contains(&form)).then(|| value.clone())
        }
        "anthropic-beta" => {
            let (kept, others) = permitted_flags(text?);
            taken.extend(others.iter().map(|flag| format!("{name}: {flag}")));
            let kept = kept.join(",");
            HeaderValue::from_str(&kept).ok().filter(|_| !kept.is_empty())
        }
        "openai-beta" => OPENAI_BETAS.contains(&text?).then(|| value.clone()),
        name => {
            let begins = |beginning: &&str| name.starts_with(beginning);
            (PERMITTED.contains(&name) || PERMITTED_BEGINNINGS.iter().any(begins)).then(|| value.clone())
        }
    }
}

fn hop_by_hop(name: &HeaderName) -> bool {
    let names =
        ["connection", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "upgrade"];
    *name == header::TRANSFER_ENCODING || names.contains(&name.as_str())
}

/// An answer's headers as the agent is given them, without the key.
pub(crate) fn passed_back(headers: &HeaderMap, key: Option<&Secret>) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| !hop_by_hop(name) && *name != header::SET_COOKIE);
    let struck = |value: &HeaderValue| {
        let struck = key.and_then(|key| key.struck(value.as_bytes()));
        struck.and_then(|value| HeaderValue::from_bytes(&value).ok()).unwrap_or_else(|| value.clone())
    };
    kept.map(|(name, value)| (name.clone(), struck(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::PLACEHOLDER_KEY;
    use crate::secret::GivenKey;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    /// What is sent on without a key, `accept-encoding` aside, and what is told.
    fn passed(pairs: &[(&'static str, &'static str)]) -> (Vec<String>, Vec<String>) {
        let (mut sent, taken) = sent_on(&headers(pairs), None);
        assert_eq!(sent.remove(header::ACCEPT_ENCODING).unwrap(), "identity");
        let shown =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        (sent.iter().map(shown).collect(), taken)
    }

    #[test]
    fn the_key_takes_the_placeholders_place_and_no_other() {
        let asked = headers(&[
            ("x-api-key", PLACEHOLDER_KEY),
            ("x-goog-api-key", PLACEHOLDER_KEY),
            ("connection", "close"),
        ]);
        let key = GivenKey { variable: "A_KEY".into(), text: "real".into() };
        let key = Secret::try_from(key).unwrap();
        let sent = sent_on(&asked, Some(&key)).0;
        assert!(sent["x-api-key"] == "real" && sent["x-goog-api-key"] == "real");
        assert!(!sent.contains_key(header::AUTHORIZATION) && !sent.contains_key(header::CONNECTION));
        assert!(!sent_on(&asked, None).0.contains_key("x-api-key"), "no key, no placeholder either");
    }

    #[test]
    fn what_tells_of_a_program_and_the_answers_form_passes_and_what_else_there_is_is_told() {
        let own = [
            ("accept", "application/json, text/event-stream"),
            ("user-agent", "a/1"),
            ("anthropic-version", "2023-06-01"),
            ("x-stainless-lang", "js"),
            ("session_id", "s"),
        ];
        let (sent, taken) = passed(&own);
        assert_eq!(sent.len(), own.len(), "{sent:?}");
        assert!(taken.is_empty(), "{taken:?}");
        let (sent, taken) = passed(&[
            ("x-http-method-override", "DELETE"),
            ("x-goog-fieldmask", "candidates"),
            ("openai-organization", "o"),
            ("x-goog-user-project", "p"),
            ("x-dashscope-ossresourceresolve", "enable"),
            ("openai-beta", "assistants=v2"),
            ("accept", "application/x-protobuf"),
            ("cookie", "a=b"),
            ("host", "a"),
            ("content-length", "2"),
        ]);
        assert!(sent.is_empty(), "{sent:?}");
        assert_eq!(taken.len(), 8, "{taken:?}");
    }

    #[test]
    fn of_anthropics_betas_those_that_open_something_of_the_hosts_are_taken_out_one_by_one() {
        let (sent, taken) = passed(&[
            ("anthropic-beta", "claude-code-20250219,mcp-client-2025-04-04,effort-2025-11-24"),
            ("anthropic-beta", "files-api-2025-04-14"),
        ]);
        assert_eq!(sent, ["anthropic-beta: claude-code-20250219,effort-2025-11-24"]);
        assert_eq!(taken, ["anthropic-beta: mcp-client-2025-04-04", "anthropic-beta: files-api-2025-04-14"]);
    }
}
