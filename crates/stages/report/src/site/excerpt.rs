//! Excerpts of files that strangers wrote: bounded, read as text whatever they are.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of a log that a page shows: its end, where errors stand.
const LOG: u64 = 32 << 10;
/// Bytes of a patch or a trajectory that are read at most.
const WHOLE: u64 = 8 << 20;

/// The end of a log, and how many bytes before it are left out; none where it cannot be read.
pub(crate) fn log_end(path: &Path) -> Option<(String, u64)> {
    let mut file = File::open(path).ok().filter(is_file)?;
    let left = file.metadata().ok()?.len().saturating_sub(LOG);
    file.seek(SeekFrom::Start(left)).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG).read_to_end(&mut bytes).ok()?;
    Some((String::from_utf8_lossy(&bytes).into_owned(), left))
}

/// A file's bytes; none where it is not there, is no plain file or is larger than a page may be.
pub(crate) fn bytes(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok().filter(is_file)?;
    let mut bytes = Vec::new();
    file.take(WHOLE + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= WHOLE).then_some(bytes)
}

fn is_file(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// The first characters of a text, and how many more there are.
pub(crate) fn start(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
        None => (text, 0),
    }
}
