//! A tree on disk, read and replaced without ever following a link.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::check::LINK;

/// A file or link of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// `0o100644`, `0o100755` or `0o120000`.
    pub(crate) mode: u32,
    /// Permission bits to give the file.
    pub(crate) permissions: u32,
    /// Content, or the link's target.
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    Entry(Entry),
    /// A folder or a special file, in words.
    Other(&'static str),
}

pub(crate) fn join(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(path))
}

/// `a`, `a/b`, … of `a/b/c`.
pub(crate) fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..path.len()).filter(|&at| path[at] == b'/').map(|at| &path[..at])
}

/// What the tree holds at this place, without following a link there.
pub(crate) fn kind(root: &Path, path: &[u8]) -> io::Result<Option<fs::FileType>> {
    match fs::symlink_metadata(join(root, path)) {
        Ok(found) => Ok(Some(found.file_type())),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn read(root: &Path, path: &[u8]) -> io::Result<Found> {
    let place = join(root, path);
    let Some(kind) = kind(root, path)? else { return Ok(Found::Nothing) };
    if kind.is_symlink() {
        let bytes = fs::read_link(&place)?.as_os_str().as_bytes().to_vec();
        return Ok(Found::Entry(Entry { mode: LINK, permissions: 0o777, bytes }));
    }
    if !kind.is_file() {
        return Ok(Found::Other(if kind.is_dir() { "a folder" } else { "a special file" }));
    }
    let permissions = fs::symlink_metadata(&place)?.permissions().mode() & 0o777;
    let mode = if permissions & 0o100 != 0 { 0o100755 } else { 0o100644 };
    Ok(Found::Entry(Entry { mode, permissions, bytes: fs::read(&place)? }))
}

/// The first part of the way to `path` that is a link in the tree.
pub(crate) fn link_above<'a>(root: &Path, path: &'a [u8]) -> io::Result<Option<&'a [u8]>> {
    for parent in parents(path) {
        match kind(root, parent)? {
            Some(kind) if kind.is_symlink() => return Ok(Some(parent)),
            Some(kind) if kind.is_dir() => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Writes an entry to a place where nothing is.
pub(crate) fn write_new(place: &Path, entry: &Entry) -> io::Result<()> {
    if entry.mode == LINK {
        return std::os::unix::fs::symlink(OsStr::from_bytes(&entry.bytes), place);
    }
    fs::write(place, &entry.bytes)?;
    fs::set_permissions(place, fs::Permissions::from_mode(entry.permissions))
}

/// Makes the folders above `path` that are missing, open to every user whatever the umask: the code under test has
/// another uid.
pub(crate) fn make_parents(root: &Path, path: &[u8]) -> io::Result<()> {
    for parent in parents(path) {
        let place = join(root, parent);
        match fs::create_dir(&place) {
            Ok(()) => fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes the folders above `path` that hold nothing more, up to the root.
pub(crate) fn prune_above(root: &Path, path: &[u8]) {
    let above: Vec<&[u8]> = parents(path).collect();
    for parent in above.into_iter().rev() {
        // Fails where the folder still holds something, which ends the way up.
        if fs::remove_dir(join(root, parent)).is_err() {
            return;
        }
    }
}

/// Files below a folder, as paths relative to the tree.
pub(crate) fn files_below(root: &Path, folder: &[u8], out: &mut Vec<Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(join(root, folder))? {
        let entry = entry?;
        let path = [folder, b"/", entry.file_name().as_bytes()].concat();
        if entry.file_type()?.is_dir() {
            files_below(root, &path, out)?;
        } else {
            out.push(path);
        }
    }
    Ok(())
}

/// Removes a folder that holds only folders.
pub(crate) fn remove_empty_folders(place: &Path) -> io::Result<()> {
    for entry in fs::read_dir(place)? {
        remove_empty_folders(&entry?.path())?;
    }
    fs::remove_dir(place)
}
