//! An endpoint's answer on its way to the agent: counted, and without the key.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderMap};
use hyper::{Response, StatusCode};

use crate::headers::passed_back;
use crate::proxy::{Body, refusal};
use crate::secret::{Secret, Strike};
use crate::tally::Answer;
use crate::usage::Asking;
use crate::waiting::asked_to_wait;

/// An endpoint's answer, its head read.
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: stream::BoxStream<'static, reqwest::Result<Bytes>>,
}

impl From<reqwest::Response> for Reply {
    fn from(response: reqwest::Response) -> Reply {
        Reply {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes_stream().boxed(),
        }
    }
}

/// Asks the endpoint, and passes its answer back while that is counted. `usage` is what we added to the request.
pub(crate) async fn pass(
    asked: reqwest::RequestBuilder,
    usage: Option<Asking<'_>>,
    mut answer: Answer,
    key: Option<&Secret>,
) -> Response<Body> {
    let reply = match usage {
        Some(usage) => usage.send(asked, |status| answer.asked_again(status.as_u16())).await,
        None => asked.send().await.map(Reply::from),
    };
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            let why = causes(&error);
            answer.unreachable(&why, !error.is_connect());
            return refusal(StatusCode::BAD_GATEWAY, &format!("the model's endpoint: {why}"));
        }
    };
    if let Some(coding) = encoded(&reply.headers) {
        let why = format!("it answers in {coding}, though it is asked for no encoding");
        answer.unreachable(&why, true);
        return refusal(StatusCode::BAD_GATEWAY, &format!("the model's endpoint: {why}"));
    }
    let kept = passed_back(&reply.headers, key);
    let content_type = kept.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    answer.status(reply.status.as_u16(), content_type.unwrap_or_default());
    answer.retry_after(asked_to_wait(&reply.headers));
    let parts = Parts { of: reply.body, answer, strike: Strike::new(key), over: false };
    let mut back = Response::new(StreamBody::new(stream::unfold(parts, Parts::next)).boxed_unsync());
    *back.status_mut() = reply.status;
    *back.headers_mut() = kept;
    back
}

/// How a body is encoded. In one that is, neither tokens nor the key would be seen.
fn encoded(headers: &HeaderMap) -> Option<String> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let other = codings.find(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
    other.map(|coding| String::from_utf8_lossy(coding.as_bytes()).chars().take(40).collect())
}

/// An answer's parts. Dropped, early or late, the answer is over.
struct Parts {
    of: stream::BoxStream<'static, reqwest::Result<Bytes>>,
    answer: Answer,
    strike: Strike,
    over: bool,
}

impl Parts {
    async fn next(mut self) -> Option<(std::io::Result<Frame<Bytes>>, Parts)> {
        loop {
            if self.over {
                return None;
            }
            let bytes = match self.of.next().await {
                Some(Ok(bytes)) => self.strike.feed(bytes),
                Some(Err(error)) => {
                    self.answer.unreachable(&format!("the answer broke off: {}", causes(&error)), true);
                    self.over = true;
                    return Some((Err(std::io::Error::other(error)), self));
                }
                None => {
                    self.over = true;
                    self.strike.rest()
                }
            };
            self.answer.feed(&bytes);
            // Nothing is left of a part that is held back.
            if !bytes.is_empty() {
                return Some((Ok(Frame::data(bytes)), self));
            }
        }
    }
}

/// An error with what caused it, without the url, which may be long.
fn causes(error: &dyn std::error::Error) -> String {
    let mut source = error.source();
    let mut last = error.to_string();
    while let Some(cause) = source {
        last = cause.to_string();
        source = cause.source();
    }
    last
}
