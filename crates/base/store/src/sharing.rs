//! How files get from one folder into another without being copied, found out by trying.

use std::fs;
use std::path::Path;

use crate::error::StoreError;

const TRIED: &str = ".sharing-";

/// What a file system, or a pair of them, can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shares {
    /// Files of their own that share blocks.
    Reflinks,
    /// The same file under another name.
    HardLinks,
    /// Neither: every byte is copied.
    Copies,
}

/// Tries with one small file. A folder that is missing is not made for it: it will lie where the nearest one above it does.
///
/// # Errors
/// One of them cannot be written.
pub fn shares(from: &Path, into: &Path) -> Result<Shares, StoreError> {
    let (from, into) = (nearest(from), nearest(into));
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error| StoreError::io("write", &path, error)
    };
    let source = tempfile::Builder::new().prefix(TRIED).tempfile_in(from).map_err(fail(from))?;
    fs::write(source.path(), b"tried").map_err(fail(from))?;
    let folder = tempfile::Builder::new().prefix(TRIED).tempdir_in(into).map_err(fail(into))?;
    let (reflink, link) = (folder.path().join("reflink"), folder.path().join("link"));
    if reflink_copy::reflink(source.path(), &reflink).is_ok() {
        return Ok(Shares::Reflinks);
    }
    let linked = fs::hard_link(source.path(), &link).is_ok();
    Ok(if linked { Shares::HardLinks } else { Shares::Copies })
}

/// The folder itself, or the nearest above it that is there.
fn nearest(folder: &Path) -> &Path {
    folder.ancestors().find(|above| above.is_dir()).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_two_file_systems_is_copied_and_the_trial_leaves_nothing() {
        let (here, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let (near, absent) = (here.path().join("near"), here.path().join("absent/far"));
        fs::create_dir(&near).unwrap();
        assert_ne!(shares(here.path(), &near).unwrap(), Shares::Copies);
        assert_ne!(shares(here.path(), &absent).unwrap(), Shares::Copies);
        assert_eq!(shares(here.path(), other.path()).unwrap(), Shares::Copies);
        let left = |folder: &Path| fs::read_dir(folder).unwrap().count();
        assert_eq!((left(here.path()), left(&near), left(other.path())), (1, 0, 0));
    }
}
