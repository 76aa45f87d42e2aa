//! Why attempts could not be made.

use std::path::PathBuf;

use infradev_agent::AgentError;
use infradev_executor::ExecutorError;
use infradev_git::GitError;
use infradev_model::{Class, Classified, PromptError};
use infradev_store::StoreError;

/// Why attempts could not be made. How an agent ends is no error.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AttemptError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{label}: what the agent left could not be captured: {source}")]
    Capture { label: String, source: Box<AttemptError> },
    #[error("the attempt was interrupted")]
    Cancelled,
}

impl AttemptError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> AttemptError {
        let path = path.into();
        move |source| AttemptError::Io { path, source }
    }
}

impl Classified for AttemptError {
    fn class(&self) -> Class {
        match self {
            AttemptError::Agent(error) => error.class(),
            AttemptError::Executor(error) => error.class(),
            AttemptError::Git(error) => error.class(),
            AttemptError::Prompt(error) => error.class(),
            AttemptError::Store(error) => error.class(),
            AttemptError::Capture { source, .. } => source.class(),
            AttemptError::Io { .. } => Class::Fault,
            AttemptError::Cancelled => Class::Interrupted,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AttemptError::Agent(error) => error.hint(),
            AttemptError::Executor(error) => error.hint(),
            AttemptError::Git(error) => error.hint(),
            AttemptError::Prompt(error) => error.hint(),
            AttemptError::Store(error) => error.hint(),
            AttemptError::Capture { .. } => {
                Some("the others are on record; the same command makes this one again".to_owned())
            }
            AttemptError::Io { .. } | AttemptError::Cancelled => None,
        }
    }
}
