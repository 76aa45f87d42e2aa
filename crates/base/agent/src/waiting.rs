//! Between two tries of a run whose endpoint could not be reached.

use std::time::{Duration, SystemTime};

use hyper::header::{self, HeaderMap};

use crate::error::AgentError;
use crate::proxy::{Endpoint, client};
use crate::tally::{Last, lasts};

/// How long an endpoint is waited for at most, whatever it asks for.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at an endpoint: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Whether a run that had no answer of its model may have one a little later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Waiting mends nothing: the key is not taken, the model is not known, the path is none.
    InVain,
    /// It may, once the endpoint takes requests again and so long has passed, which is the endpoint's own word.
    After(Duration),
}

impl Again {
    pub(crate) fn after(last: &Last, retry_after: Option<Duration>) -> Again {
        match last {
            Last::Status(status, _) if lasts(*status) => Again::InVain,
            _ => Again::After(retry_after.unwrap_or_default()),
        }
    }

    /// How long the endpoint is to be left alone before another try; none where another is in vain.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Again::InVain => None,
            Again::After(wait) => Some(wait),
        }
    }
}

/// Waits until the endpoint takes requests again, or [`PATIENCE`] is over. `wait` is how long it asked to be left alone, and
/// within that it is not asked.
///
/// # Errors
/// The person asked for an end.
pub async fn until_reachable(endpoint: &Endpoint, wait: Duration) -> Result<(), AgentError> {
    let client = client(Some(endpoint))?;
    let there = async {
        tokio::time::sleep(wait).await;
        let (mut pause, most) = PAUSES;
        while !endpoint.answers(&client).await {
            tokio::time::sleep(pause).await;
            pause = most.min(pause * 2);
        }
    };
    tokio::select! {
        () = infradev_supervise::cancel_requested() => Err(AgentError::Cancelled),
        // One that is not there by then is asked all the same: the next try says what is wrong with it.
        _ = tokio::time::timeout(PATIENCE, there) => Ok(()),
    }
}

/// `Retry-After` in either of its forms: seconds, or a date.
pub(crate) fn asked_to_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let until = httpdate::parse_http_date(text).ok()?;
            Some(until.duration_since(SystemTime::now()).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<Duration> {
        asked_to_wait(&HeaderMap::from_iter([(header::RETRY_AFTER, text.parse().unwrap())]))
    }

    #[test]
    fn an_endpoint_says_how_long_to_wait_in_seconds_or_by_a_date() {
        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO), "a date that is over");
        assert!(asked("Fri, 01 Jan 2100 00:00:00 GMT").unwrap() > PATIENCE);
        assert_eq!(asked("soon"), None);
        assert_eq!(asked_to_wait(&HeaderMap::new()), None);
    }
}
