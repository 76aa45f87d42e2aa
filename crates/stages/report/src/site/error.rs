//! Why a site cannot be made.

use std::path::{Path, PathBuf};

use infradev_model::{Class, Classified, FormatError};
use infradev_store::StoreError;

/// Why a site cannot be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SiteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{} is no site of ours: it holds {found}", path.display())]
    Foreign { path: PathBuf, found: String },
    #[error("cannot draw a page: {0}")]
    Page(#[from] askama::Error),
}

impl SiteError {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> SiteError {
        SiteError::Io { action, path: path.to_owned(), source }
    }
}

impl Classified for SiteError {
    fn class(&self) -> Class {
        match self {
            SiteError::Store(error) => error.class(),
            SiteError::Format(error) => error.class(),
            SiteError::Io { .. } | SiteError::Page(_) => Class::Fault,
            SiteError::Foreign { .. } => Class::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            SiteError::Store(error) => error.hint(),
            SiteError::Format(error) => error.hint(),
            SiteError::Foreign { .. } => {
                Some("name a folder that is not there, is empty, or holds a site and nothing else".to_owned())
            }
            SiteError::Io { .. } | SiteError::Page(_) => None,
        }
    }
}
