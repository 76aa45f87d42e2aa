//! A site's folder: it appears whole, and replaces an older site in one step.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use super::{Site, SiteError};

/// What a site's folder holds, and nothing else.
const OURS: [&str; 5] = [MARK, "index.html", "compare.html", "tasks", "submissions"];
const MARK: &str = ".infradev-site";

/// Writes all pages into a folder that is not there, is empty, or holds an older site.
///
/// # Errors
/// A folder that holds anything else, which stays as it is; a page that cannot be drawn; a full disk.
pub fn write_site(site: &Site, folder: &Path) -> Result<(), SiteError> {
    let there = check(folder)?;
    let folder = match (there, folder.canonicalize()) {
        (true, Ok(whole)) => whole,
        _ => folder.to_owned(),
    };
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| SiteError::io("create", parent, error))?;
    let made = tempfile::Builder::new()
        .prefix(".infradev-site-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .map_err(|error| SiteError::io("create a folder in", parent, error))?;
    write(
        &made.path().join(MARK),
        b"Written by `infradev report --site`, which replaces this folder whole.\n",
    )?;
    for path in site.paths() {
        if let Some(page) = site.page(&path)? {
            write(&made.path().join(&path), page.as_bytes())?;
        }
    }
    if there {
        // The old site goes where the new one was made, and away with that folder.
        return renameat2(AT_FDCWD, made.path(), AT_FDCWD, &folder, RenameFlags::RENAME_EXCHANGE)
            .map_err(|error| SiteError::io("replace", &folder, error.into()));
    }
    let made = made.keep();
    fs::rename(&made, &folder).map_err(|error| {
        // Nothing half is left where the name was taken meanwhile.
        let _ = fs::remove_dir_all(&made);
        SiteError::io("create", &folder, error)
    })
}

/// Whether the folder is there, once it is known that nothing of anyone's is in it.
fn check(folder: &Path) -> Result<bool, SiteError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(SiteError::io("read", folder, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| SiteError::io("read", folder, error))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let marked = names.is_empty() || names.iter().any(|name| name == MARK);
    match names.into_iter().find(|name| !marked || !OURS.contains(&name.as_str())) {
        None => Ok(true),
        Some(found) => Err(SiteError::Foreign { path: folder.to_owned(), found }),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), SiteError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| SiteError::io("create", folder, error))?;
    }
    fs::write(path, bytes).map_err(|error| SiteError::io("write", path, error))
}
