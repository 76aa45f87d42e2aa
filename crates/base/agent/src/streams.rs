//! The agent's standard streams: its prompt comes in, what it writes is kept up to a bound.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::JoinHandle;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::AgentError;

/// Bytes of each output stream that are kept from its beginning.
const HEAD: u64 = 512 << 20;
/// Bytes that are kept of its end, where it is longer: how an agent ended stands there.
const TAIL: usize = 1 << 20;

/// A file in memory to read from its beginning; it has no path on the host that the agent could see.
pub(crate) fn prompt(text: &str) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"prompt", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// A stream that is being kept. Joined, it gives the bytes that were left out.
pub(crate) type Kept = JoinHandle<u64>;

/// A file that takes what is written to the descriptor, up to a bound. The thread ends when every writer has ended.
pub(crate) fn keeper(path: &Path) -> Result<(Kept, OwnedFd), AgentError> {
    let failed = || AgentError::io(format!("write {}", path.display()));
    let file = File::create(path).map_err(failed())?;
    let (reader, writer) = io::pipe().map_err(failed())?;
    let thread = std::thread::Builder::new().name("agent-log".into());
    let thread = thread.spawn(move || keep(reader, file, HEAD, TAIL)).map_err(failed())?;
    Ok((thread, writer.into()))
}

/// Keeps `head` bytes of the beginning and `tail` of the end, and tells between them what is left out; gives how many bytes.
fn keep(mut reader: impl Read, mut file: impl Write, head: u64, tail: usize) -> u64 {
    let mut buffer = vec![0; 64 << 10];
    let (mut room, mut end, mut dropped) = (head, VecDeque::new(), 0);
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        let kept = room.min(count as u64) as usize;
        // A full disk costs the log, not the agent.
        if file.write_all(&buffer[..kept]).is_err() {
            room = 0;
        }
        room = room.saturating_sub(kept as u64);
        end.extend(&buffer[kept..count]);
        let over = end.len().saturating_sub(tail);
        end.drain(..over);
        dropped += over as u64;
    }
    if dropped > 0 {
        // From a line's beginning, where one begins there.
        let part = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        end.drain(..part);
        dropped += part as u64;
        let _ = file.write_all(format!("\n[infradev: {dropped} bytes are left out here]\n").as_bytes());
    }
    let _ = file.write_all(end.make_contiguous());
    dropped
}

/// What a record says of streams that were cut.
pub(crate) fn cut(dropped: [u64; 2]) -> Option<String> {
    let of = |name: &str, count: u64| format!("{name} is cut: {count} bytes before its end are left out");
    let parts = [("agent.log", dropped[0]), ("agent.err", dropped[1])].into_iter().filter(|part| part.1 > 0);
    let parts: Vec<String> = parts.map(|(name, count)| of(name, count)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str, head: u64, tail: usize) -> (String, u64) {
        let mut file = Vec::new();
        let dropped = keep(text.as_bytes(), &mut file, head, tail);
        (String::from_utf8(file).unwrap(), dropped)
    }

    #[test]
    fn a_stream_that_is_too_long_keeps_its_beginning_and_its_last_lines_and_tells_what_lay_between() {
        let text = "{1}\n{2}\n{3}\n{4}\n{5}\n";
        assert_eq!(kept(text, 20, 0), (text.to_owned(), 0));
        assert_eq!(kept(text, 8, 12), (text.to_owned(), 0), "beginning and end are all of it");
        let cut = "{1}\n{2}\n[infradev: 9 bytes are left out here]\n{5}\n";
        assert_eq!(kept(text, 7, 6), (cut.to_owned(), 9));
        let (all, dropped) = kept(&"x".repeat(300_000), 10, 5);
        assert_eq!(dropped, 299_985);
        assert_eq!(all, format!("{}\n[infradev: 299985 bytes are left out here]\nxxxxx", "x".repeat(10)));
    }

    #[test]
    fn what_was_cut_is_told_by_the_streams_file() {
        assert_eq!(cut([0, 0]), None);
        assert_eq!(cut([7, 0]).unwrap(), "agent.log is cut: 7 bytes before its end are left out");
        assert!(cut([7, 9]).unwrap().ends_with("; agent.err is cut: 9 bytes before its end are left out"));
    }

    #[test]
    fn a_prompt_is_read_from_its_beginning_and_has_no_path() {
        use std::os::fd::AsRawFd;
        let held = prompt("Do it.").unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd())).unwrap();
        assert!(link.starts_with("/memfd:prompt (deleted)"), "{}", link.display());
        assert_eq!(io::read_to_string(File::from(held)).unwrap(), "Do it.");
    }
}
