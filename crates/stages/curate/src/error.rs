//! What can go wrong.

use std::path::PathBuf;

use infradev_git::GitError;
use infradev_model::{Class, Classified};

/// A history that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CurateError {
    /// The repository or a revision.
    #[error(transparent)]
    Git(#[from] GitError),
    /// What is kept of commits.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A date that is none.
    #[error("`{given}` is no date")]
    Date {
        /// As given.
        given: String,
    },
    /// An address that no token is sent to.
    #[error("`{given}` is no address of GitHub's API: {why}")]
    Endpoint {
        /// As given.
        given: String,
        /// Why.
        why: String,
    },
    /// A token with characters that no header can hold.
    #[error("the token in GITHUB_TOKEN has characters that no token has")]
    Token,
    /// A page that could not be written.
    #[error("cannot write the page of candidates: {0}")]
    Page(String),
    /// The person asked for an end.
    #[error("interrupted")]
    Interrupted,
}

impl Classified for CurateError {
    fn class(&self) -> Class {
        match self {
            CurateError::Git(error) => error.class(),
            CurateError::Io { .. } | CurateError::Page(_) => Class::Fault,
            CurateError::Date { .. } | CurateError::Endpoint { .. } | CurateError::Token => Class::Usage,
            CurateError::Interrupted => Class::Interrupted,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CurateError::Git(error) => error.hint(),
            CurateError::Date { .. } => Some("write it as 2026-03-01".into()),
            CurateError::Endpoint { .. } => {
                Some("give the GraphQL address, such as https://api.github.com/graphql".into())
            }
            CurateError::Token => Some("set it to the token alone, or unset it".into()),
            _ => None,
        }
    }
}
