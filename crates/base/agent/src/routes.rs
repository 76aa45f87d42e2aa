//! What of a model's endpoint is passed on: answers of a model and what is needed around them. A model's host may offer more:
//! files, searches, logs.

use hyper::Method;
use infradev_model::Wire;

/// What a request asks of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// An answer of the model, which is counted.
    Answer(Wire),
    /// The count of a request's tokens.
    Count(Wire),
    /// The list of models, or one of them.
    Models,
}

impl Route {
    /// What the answer speaks, where a model gives one.
    pub(crate) fn wire(self) -> Option<Wire> {
        match self {
            Route::Answer(wire) => Some(wire),
            Route::Count(_) | Route::Models => None,
        }
    }

    /// What the request speaks, where it has a body.
    pub(crate) fn asks(self) -> Option<Wire> {
        match self {
            Route::Answer(wire) | Route::Count(wire) => Some(wire),
            Route::Models => None,
        }
    }

    fn method(self) -> Method {
        match self {
            Route::Answer(_) | Route::Count(_) => Method::POST,
            Route::Models => Method::GET,
        }
    }
}

/// Why a request is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unrouted {
    /// Another path of the endpoint, or one above it.
    Unknown,
    /// A known path by a method that it does not have.
    Method,
    /// A path that another reader might read as another one.
    Malformed,
}

/// Decides on a request's path, whole; `base` is the endpoint's own, below which it lies.
pub(crate) fn route(method: &Method, base: &str, path: &str) -> Result<Route, Unrouted> {
    let base = base.trim_end_matches('/');
    let below = path.strip_prefix(base).unwrap_or(path);
    if !is_plain(below) {
        return Err(Unrouted::Malformed);
    }
    if !path.starts_with(base) {
        return Err(Unrouted::Unknown);
    }
    // The first is empty: the path below begins with a slash, or it is none below.
    let mut segments = below.split('/');
    if segments.next() != Some("") {
        return Err(Unrouted::Unknown);
    }
    let segments: Vec<&str> = segments.collect();
    let route = known(&segments).ok_or(Unrouted::Unknown)?;
    if *method == route.method() { Ok(route) } else { Err(Unrouted::Method) }
}

/// Whether every reader sees the same segments: no escapes, backslashes, dot segments or empty ones.
fn is_plain(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:@+".contains(c);
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
    path == "/"
        || path.is_empty()
        || segments.all(|segment| !["", ".", ".."].contains(&segment) && segment.chars().all(plain))
}

/// Versions that stand in paths of the wires; the endpoint's own path may hold one already.
const VERSIONS: [&str; 3] = ["v1", "v1alpha", "v1beta"];

fn known(segments: &[&str]) -> Option<Route> {
    let rest = match segments {
        [version, rest @ ..] if VERSIONS.contains(version) => rest,
        all => all,
    };
    match rest {
        ["messages"] => Some(Route::Answer(Wire::AnthropicMessages)),
        // A summary of what was said so far costs tokens as any answer does.
        ["responses"] | ["responses", "compact"] => Some(Route::Answer(Wire::OpenaiResponses)),
        ["chat", "completions"] => Some(Route::Answer(Wire::OpenaiChat)),
        ["messages", "count_tokens"] => Some(Route::Count(Wire::AnthropicMessages)),
        ["responses", "input_tokens"] => Some(Route::Count(Wire::OpenaiResponses)),
        ["models"] => Some(Route::Models),
        ["models", model] => of_a_model(model),
        _ => None,
    }
}

/// One model, or what is asked of one of Gemini's.
fn of_a_model(segment: &str) -> Option<Route> {
    match segment.split_once(':') {
        None => Some(Route::Models),
        Some(("", _)) => None,
        Some((_, "generateContent" | "streamGenerateContent")) => Some(Route::Answer(Wire::GeminiGenerate)),
        Some((_, "countTokens")) => Some(Route::Count(Wire::GeminiGenerate)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_answers_is_passed_on_below_the_endpoints_own_path() {
        let messages = Route::Answer(Wire::AnthropicMessages);
        for (base, path, route_of) in [
            ("/", "/v1/messages", messages),
            ("/anthropic/", "/anthropic/v1/messages", messages),
            ("/", "/v1/messages/count_tokens", Route::Count(Wire::AnthropicMessages)),
            ("/v1", "/v1/responses", Route::Answer(Wire::OpenaiResponses)),
            ("/v1", "/v1/responses/compact", Route::Answer(Wire::OpenaiResponses)),
            ("/v1", "/v1/responses/input_tokens", Route::Count(Wire::OpenaiResponses)),
            ("/", "/chat/completions", Route::Answer(Wire::OpenaiChat)),
            ("/a/v1", "/a/v1/chat/completions", Route::Answer(Wire::OpenaiChat)),
            ("/", "/v1beta/models/m-1.5:generateContent", Route::Answer(Wire::GeminiGenerate)),
            ("/", "/v1beta/models/m:streamGenerateContent", Route::Answer(Wire::GeminiGenerate)),
            ("/", "/v1beta/models/m:countTokens", Route::Count(Wire::GeminiGenerate)),
        ] {
            assert_eq!(route(&Method::POST, base, path), Ok(route_of), "{path}");
            for method in [Method::GET, Method::DELETE, Method::PUT] {
                assert_eq!(route(&method, base, path), Err(Unrouted::Method), "{method} {path}");
            }
        }
        for path in ["/v1/models", "/v1/models/m"] {
            assert_eq!(route(&Method::GET, "/v1", path), Ok(Route::Models));
            for method in [Method::POST, Method::DELETE, Method::HEAD] {
                assert_eq!(route(&method, "/v1", path), Err(Unrouted::Method), "{method} {path}");
            }
        }
    }

    #[test]
    fn other_paths_of_the_endpoints_host_are_not() {
        for (base, path) in [
            ("/", "/"),
            ("/v1", "/v1"),
            ("/v1", "/v1/files"),
            ("/v1", "/v1/threads/t/messages"),
            ("/", "/api/event_logging/batch"),
            ("/v1", "/v1/vector_stores/v/search"),
            ("/v1", "/v1/modelsx"),
            ("/v1", "/v1/models/m/versions"),
            ("/", "/v1beta/models/m:batchGenerateContent"),
            ("/", "/v1beta/models/m:batchGenerateContent:generateContent"),
            ("/", "/v1beta/models/:generateContent"),
            ("/a/v1", "/v1/responses"),
            ("/a", "/ab/responses"),
            ("/a", "/aresponses"),
        ] {
            assert_eq!(route(&Method::POST, base, path), Err(Unrouted::Unknown), "{path}");
        }
    }

    #[test]
    fn a_path_that_another_reader_may_read_as_another_one_is_malformed() {
        for path in [
            "/v1/models/..\\files",
            "/v1/models/../files",
            "/v1/models/..",
            "/v1/./responses",
            "/v1/models/..%2ffiles",
            "/v1/models/..%5Cfiles",
            "/v1/models/%2e%2E/files",
            "/v1/models/%252e%252e/files",
            "/v1/responses/",
            "/v1//responses",
            "//v1/responses",
            "/v1/responses;a",
            "/other\\..\\v1/responses",
        ] {
            for method in [Method::GET, Method::POST] {
                assert_eq!(route(&method, "/v1", path), Err(Unrouted::Malformed), "{path}");
            }
        }
    }
}
