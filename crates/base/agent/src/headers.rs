//! Headers on their way through the proxy: the key comes in, what is a connection's own stays behind.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// A request's headers as they are sent on: the placeholder's place is the key's.
pub(crate) fn sent_on(asked: &HeaderMap, key: Option<&str>) -> HeaderMap {
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
    if let Some(key) = key {
        let secret = |text: String| {
            HeaderValue::from_str(&text).ok().map(|mut value| {
                value.set_sensitive(true);
                value
            })
        };
        for name in KEY_HEADERS {
            if let Some(value) = secret(key.to_owned()).filter(|_| asked.contains_key(&name)) {
                sent.insert(name, value);
            }
        }
        if let Some(value) =
            secret(format!("Bearer {key}")).filter(|_| asked.contains_key(header::AUTHORIZATION))
        {
            sent.insert(header::AUTHORIZATION, value);
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

/// An answer's headers as the agent is given them.
pub(crate) fn passed_back(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| !hop_by_hop(name) && *name != header::SET_COOKIE);
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
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
        let sent = sent_on(&asked, Some("real"));
        assert!(sent["x-api-key"] == "real" && sent["x-goog-api-key"] == "real");
        assert!(!sent.contains_key(header::AUTHORIZATION) && !sent.contains_key(header::CONNECTION));
        assert!(!sent_on(&asked, None).contains_key("x-api-key"), "no key, no placeholder either");
    }
}
