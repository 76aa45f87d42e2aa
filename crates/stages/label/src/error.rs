//! Why cases could not be labelled.

use std::path::PathBuf;

use infradev_agent::AgentError;
use infradev_executor::ExecutorError;
use infradev_git::GitError;
use infradev_model::{Class, Classified};
use infradev_store::StoreError;

/// Why cases could not be labelled. What an agent answers is no error.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum LabelError {
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the cases of {submission} could not be labelled: {why}")]
    Unreachable { submission: String, why: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

impl LabelError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> LabelError {
        let path = path.into();
        move |source| LabelError::Io { path, source }
    }
}

impl Classified for LabelError {
    fn class(&self) -> Class {
        match self {
            LabelError::Executor(error) => error.class(),
            LabelError::Agent(error) => error.class(),
            LabelError::Store(error) => error.class(),
            LabelError::Git(error) => error.class(),
            LabelError::Unreachable { .. } | LabelError::Io { .. } => Class::Fault,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            LabelError::Executor(error) => error.hint(),
            LabelError::Agent(error) => error.hint(),
            LabelError::Store(error) => error.hint(),
            LabelError::Git(error) => error.hint(),
            LabelError::Unreachable { .. } => {
                Some("check --base-url and the key; the same command goes on with these cases".to_owned())
            }
            LabelError::Io { .. } => None,
        }
    }
}
