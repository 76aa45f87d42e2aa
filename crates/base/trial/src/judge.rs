//! The judge's channel: a trusted process, in a namespace of its own, that collects probe cases and asks for worlds.

use std::time::Duration;

use serde::Serialize;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::frames::{Frame, FrameError, Sender, channel, hex};
use crate::launcher::fresh_key;
use crate::messages::{FromJudge, JudgeCase, ToJudge};

/// Why the judge could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// A probe file is wrong: its author mends it.
    #[error("{file}{}: {exception}: {message}", line.map(|line| format!(":{line}")).unwrap_or_default())]
    Author {
        /// Probe file.
        file: String,
        /// Line in it.
        line: Option<u32>,
        /// Type of the exception.
        exception: String,
        /// Its message.
        message: String,
    },
    /// The process ended, its channel failed, or it took too long.
    #[error("the judge {0}")]
    Gone(String),
}

impl From<FrameError> for JudgeError {
    fn from(error: FrameError) -> JudgeError {
        JudgeError::Gone(format!("could not be reached: {error}"))
    }
}

/// The judge, greeted.
pub struct Judge {
    sender: Sender,
    frames: mpsc::Receiver<Result<(FromJudge, Vec<u8>), String>>,
    reader: JoinHandle<()>,
    /// Cases for this world size.
    pub cases: Vec<JudgeCase>,
}

impl Judge {
    /// Greets the judge and waits until it has collected the probes.
    pub async fn greet(
        stream: UnixStream,
        probes: &str,
        world: u32,
        device: &str,
        deadline: Duration,
    ) -> Result<Judge, JudgeError> {
        let key = fresh_key();
        let (mut sender, mut receiver) = channel(stream, [0; 32]);
        sender.send(&ToJudge::Hello { schema: 1, key: hex(&key), probes, world, device }, &[]).await?;
        sender.rekey(key);
        receiver.rekey(key);
        let (events, frames) = mpsc::channel(8);
        let reader = tokio::spawn(async move {
            loop {
                let read = |frame: Frame| -> Result<(FromJudge, Vec<u8>), String> {
                    let message = frame.message::<FromJudge>().map_err(|error| error.to_string())?;
                    Ok((message, frame.payload))
                };
                let next = match receiver.next().await {
                    Ok(Some(frame)) => read(frame),
                    Ok(None) => Err("ended by itself".to_string()),
                    Err(error) => Err(format!("could not be understood: {error}")),
                };
                let last = next.is_err();
                if events.send(next).await.is_err() || last {
                    return;
                }
            }
        });
        let mut judge = Judge { sender, frames, reader, cases: Vec::new() };
        let collect = judge.collect();
        match tokio::time::timeout(deadline, collect).await {
            Ok(result) => result?,
            Err(_) => {
                return Err(JudgeError::Gone(format!("did not collect within {} s", deadline.as_secs())));
            }
        }
        Ok(judge)
    }

    async fn collect(&mut self) -> Result<(), JudgeError> {
        loop {
            match self.next().await? {
                (FromJudge::Ready {}, _) => {}
                (FromJudge::Collected { cases, more }, _) => {
                    self.cases.extend(cases);
                    if !more {
                        return Ok(());
                    }
                }
                (FromJudge::Uncollectable { file, exception, message, line }, _) => {
                    return Err(JudgeError::Author { file, line, exception, message });
                }
                (FromJudge::Fault { message }, _) => {
                    return Err(JudgeError::Gone(format!("said: {message}")));
                }
                (other, _) => return Err(JudgeError::Gone(format!("said {other:?} before its cases"))),
            }
        }
    }

    /// The next message; cancel-safe.
    pub async fn next(&mut self) -> Result<(FromJudge, Vec<u8>), JudgeError> {
        match self.frames.recv().await {
            Some(Ok(message)) => Ok(message),
            Some(Err(error)) => Err(JudgeError::Gone(error)),
            None => Err(JudgeError::Gone("ended by itself".into())),
        }
    }

    /// Sends a message whose payload is these parts, one after the other.
    pub async fn send<T: Serialize>(&mut self, message: &T, parts: &[&[u8]]) -> Result<(), JudgeError> {
        Ok(self.sender.send_parts(message, parts).await?)
    }

    /// Tells it to end.
    pub async fn finish(mut self) {
        let _ = self.sender.send(&ToJudge::Finish {}, &[]).await;
        self.reader.abort();
    }
}
