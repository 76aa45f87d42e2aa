//! An endpoint's answer on its way to the agent: counted, and without the key.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::{Response, StatusCode, header};

use crate::headers::passed_back;
use crate::proxy::{Body, refusal};
use crate::secret::{Secret, Strike};
use crate::tally::Answer;
use crate::waiting::asked_to_wait;

/// Asks the endpoint, and passes its answer back while that is counted.
pub(crate) async fn pass(
    asked: reqwest::RequestBuilder,
    mut answer: Answer,
    key: Option<&Secret>,
) -> Response<Body> {
    let response = match asked.send().await {
        Ok(response) => response,
        Err(error) => {
            let why = causes(&error);
            answer.unreachable(&why, !error.is_connect());
            return refusal(StatusCode::BAD_GATEWAY, &format!("the model's endpoint: {why}"));
        }
    };
    let status = response.status();
    let kept = passed_back(response.headers(), key);
    let content_type = kept.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    answer.status(status.as_u16(), content_type.unwrap_or_default());
    answer.retry_after(asked_to_wait(response.headers()));
    answer.expected(response.content_length());
    let parts = Parts { of: response.bytes_stream().boxed(), answer, strike: Strike::new(key), over: false };
    let mut back = Response::new(StreamBody::new(stream::unfold(parts, Parts::next)).boxed_unsync());
    *back.status_mut() = status;
    *back.headers_mut() = kept;
    back
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
            if self.over {
                self.answer.ended();
            }
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
