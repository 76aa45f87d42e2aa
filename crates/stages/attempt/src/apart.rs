//! What keeps one attempt's fault from ending the others.

use std::future::Future;

use futures_util::future::try_join_all;
use infradev_model::{Class, Classified, Digest};
use infradev_store::{RunEvent, RunFolder};

use crate::error::AttemptError;

/// All results, or the first error: at once, but for a capture that failed, which is told once the others are made.
pub(crate) async fn all<T>(
    attempts: impl IntoIterator<Item = impl Future<Output = Result<T, AttemptError>>>,
) -> Result<Vec<T>, AttemptError> {
    let apart = attempts.into_iter().map(|attempt| async {
        match attempt.await {
            Err(error @ AttemptError::Capture { .. }) => Ok(Err(error)),
            made => made.map(Ok),
        }
    });
    try_join_all(apart).await?.into_iter().collect()
}

/// Puts on record that an attempt could not be captured.
pub(crate) fn not_captured(run: &RunFolder, key: &Digest, label: &str, error: AttemptError) -> AttemptError {
    if error.class() == Class::Interrupted {
        return error;
    }
    // A journal that cannot be written is the next attempt's error: this one has its own.
    let _ = run.record(&RunEvent::TrialFault { trial: key.clone(), evidence: error.to_string() });
    AttemptError::Capture { label: label.to_owned(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::cell::Cell;

    /// Two attempts, of which the first fails and the second takes longer; whether the second was made, and what came of both.
    async fn beside(error: AttemptError) -> (bool, Result<Vec<()>, AttemptError>) {
        let (made, error) = (Cell::new(false), Cell::new(Some(error)));
        let (made, error) = (&made, &error);
        let attempts = (0..2).map(|number| async move {
            if number == 0 {
                return Err(error.take().unwrap());
            }
            tokio::task::yield_now().await;
            made.set(true);
            Ok(())
        });
        let ended = all(attempts).await;
        (made.get(), ended)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_capture_that_fails_ends_its_own_attempt_and_is_told_once_the_others_are_made() {
        let full = || AttemptError::io("a/file")(std::io::Error::from(std::io::ErrorKind::StorageFull));
        let capture = AttemptError::Capture { label: "task · command#1".into(), source: Box::new(full()) };
        let (made, ended) = beside(capture).await;
        assert!(made);
        let error = ended.unwrap_err();
        let said = "task · command#1: what the agent left could not be captured: a/file: no storage space";
        assert_eq!((error.to_string().as_str(), error.class()), (said, Class::Fault));
        let (made, ended) = beside(full()).await;
        assert!(!made && ended.is_err(), "what ails the machine stops all");
    }
}
