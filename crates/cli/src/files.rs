//! Files that a command writes for people: whole or not at all.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::report::Failure;

/// An error of writing a file.
pub fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::fault(format!("cannot write {path}: {error}"))
}

fn open_to_all(path: &Path, mode: u32) -> Result<(), Failure> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed(path))
}

/// Writes a file whole or not at all, readable to all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed(folder))?;
    file.write_all(bytes).map_err(failed(path))?;
    open_to_all(file.path(), 0o644)?;
    file.persist(path).map_err(|error| failed(path)(error.error))?;
    Ok(())
}
