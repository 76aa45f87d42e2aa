//! What of a request's query is passed on: how an answer comes, and which part of the list of models. Not the key, which goes into a
//! header, nor what would have the host leave the usage out of an answer (`fields`).

/// Parameters, and the values that they may have; any plain one where none is named.
const PERMITTED: [(&str, &[&str]); 9] = [
    ("alt", &["sse", "json"]),
    ("beta", &["true"]),
    ("api-version", &[]),
    ("client_version", &[]),
    ("after_id", &[]),
    ("before_id", &[]),
    ("limit", &[]),
    ("pageSize", &[]),
    ("pageToken", &[]),
];
/// Parameters that are left out without a word: the placeholder's.
const KEY: &str = "key";

/// What is passed on of a query, none where nothing is; names of what is not.
pub(crate) fn permitted(query: Option<&str>) -> (Option<String>, Vec<String>) {
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let known = PERMITTED.iter().find(|(known, _)| *known == name);
        if known.is_some_and(|(_, values)| is_plain(value) && (values.is_empty() || values.contains(&value)))
        {
            kept.push(part);
        } else if name != KEY {
            taken.push(name.to_owned());
        }
    }
    ((!kept.is_empty()).then(|| kept.join("&")), taken)
}

/// Whether every reader sees the same value: no escapes, no signs that end it.
fn is_plain(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_how_the_answer_comes_and_no_more() {
        for (query, kept, taken) in [
            (None, None, vec![]),
            (Some(""), None, vec![]),
            (Some("alt=sse"), Some("alt=sse"), vec![]),
            (Some("beta=true&key=sk-placeholder"), Some("beta=true"), vec![]),
            (
                Some("alt=sse&fields=candidates&prettyPrint=false"),
                Some("alt=sse"),
                vec!["fields", "prettyPrint"],
            ),
            (Some("$fields=a&%66ields=b&Alt=sse"), None, vec!["$fields", "%66ields", "Alt"]),
            (Some("alt=media"), None, vec!["alt"]),
            (Some("limit=2;fields=a"), None, vec!["limit"]),
            (Some("api-version=2024-10-21&limit=%26fields=a"), Some("api-version=2024-10-21"), vec!["limit"]),
            (Some("beta"), None, vec!["beta"]),
        ] {
            let (passed, told) = permitted(query);
            assert_eq!(
                (passed.as_deref(), told),
                (kept, taken.into_iter().map(str::to_owned).collect()),
                "{query:?}"
            );
        }
    }
}
