//! The entries of a folder, sorted, folders before what is in them.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// One entry below a folder.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Relative to the folder.
    pub path: PathBuf,
    pub kind: Kind,
    pub metadata: Metadata,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File { executable: bool },
    Link { target: PathBuf },
}

/// All entries whose names `keep` accepts. Links are not followed; sockets, pipes and devices are refused.
pub(crate) fn walk(root: &Path, keep: &dyn Fn(&[u8]) -> bool) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let full = root.join(&folder);
        let fail = |e| StoreError::io("list", &full, e);
        for found in fs::read_dir(&full).map_err(fail)? {
            let found = found.map_err(fail)?;
            if !keep(found.file_name().as_bytes()) {
                continue;
            }
            let path = folder.join(found.file_name());
            let metadata = found.metadata().map_err(fail)?;
            let kind = if metadata.is_dir() {
                open.push(path.clone());
                Kind::Folder
            } else if metadata.is_symlink() {
                let target =
                    fs::read_link(found.path()).map_err(|e| StoreError::io("read", &found.path(), e))?;
                Kind::Link { target }
            } else if metadata.is_file() {
                Kind::File { executable: metadata.permissions().mode() & 0o100 != 0 }
            } else {
                return Err(StoreError::pack(&found.path(), "is no file, folder or link"));
            };
            entries.push(Entry { path, kind, metadata });
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}
