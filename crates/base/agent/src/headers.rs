//! Headers on their way through the proxy: the key comes in, what is a connection's own stays behind.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::secret::Secret;

/// A request's headers as they are sent on: the placeholder's place is the key's.
pub(crate) fn sent_on(asked: &HeaderMap, key: Option<&Secret>) -> HeaderMap {
    let mut sent = HeaderMap::new();
    let dropped = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::CONTENT_ENCODING,
        header::ACCEPT_ENCODING,
        header::EXPECT,
    ];
    for (name, value) in asked {
        if !hop_by_hop(name)
            && !dropped.contains(name)
            && *name != header::AUTHORIZATION
            && !KEY_HEADERS.contains(name)
            && !OVERRIDES.contains(&name.as_str())
        {
            sent.append(name.clone(), value.clone());
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
    sent
}

/// Where Anthropic's and Google's requests bear their key as it is.
const KEY_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("x-goog-api-key")];

/// Headers by which some hosts take another method or path than the request's own.
const OVERRIDES: [&str; 6] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "x-forwarded-prefix",
];

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

    #[test]
    fn the_key_takes_the_placeholders_place_and_no_other() {
        let mut asked = HeaderMap::new();
        asked.insert("x-api-key", HeaderValue::from_static(PLACEHOLDER_KEY));
        asked.insert("x-goog-api-key", HeaderValue::from_static(PLACEHOLDER_KEY));
        asked.insert(header::CONNECTION, HeaderValue::from_static("close"));
        let sent = sent_on(&asked, Secret::new("real".to_owned()).as_ref());
        assert!(sent["x-api-key"] == "real" && sent["x-goog-api-key"] == "real");
        assert!(!sent.contains_key(header::AUTHORIZATION) && !sent.contains_key(header::CONNECTION));
        assert!(!sent_on(&asked, None).contains_key("x-api-key"), "no key, no placeholder either");
    }
}
