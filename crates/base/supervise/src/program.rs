//! Where programs are.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The first executable file of that name on this process's PATH (or the standard folders where PATH is unset). A name
/// with a slash is taken as a path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let direct = Path::new(name);
    if name.contains('/') {
        return executable(direct).then(|| direct.to_owned());
    }
    let path =
        std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into());
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| executable(candidate))
}

fn executable(path: &Path) -> bool {
    path.is_file()
        && !path.as_os_str().as_bytes().contains(&0)
        && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}
