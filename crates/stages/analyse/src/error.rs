//! Why runs cannot be analysed.

use infradev_model::{Class, Classified, FormatError};
use infradev_store::StoreError;

/// Why runs cannot be analysed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AnalyseError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("the run {run} is one of `{verb}`, which has no submissions")]
    Verb { run: String, verb: String },
    #[error("the run {run} is given twice")]
    Twice { run: String },
}

impl Classified for AnalyseError {
    fn class(&self) -> Class {
        match self {
            AnalyseError::Store(error) => error.class(),
            AnalyseError::Format(error) => error.class(),
            AnalyseError::Verb { .. } | AnalyseError::Twice { .. } => Class::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AnalyseError::Store(error) => error.hint(),
            AnalyseError::Format(error) => error.hint(),
            AnalyseError::Verb { .. } => Some("give runs of `grade`, `attempt` or `eval`".to_owned()),
            AnalyseError::Twice { .. } => None,
        }
    }
}
