//! What a process writes, kept within a bound: the beginning, the end, and a count of what lay between.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::readiness::watch_readable;
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How much of a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// Bytes kept from the beginning.
    pub head: usize,
    /// Bytes kept from the end.
    pub tail: usize,
}

impl Default for LogBounds {
    fn default() -> Self {
        LogBounds { head: 256 << 10, tail: 128 << 10 }
    }
}

/// A part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogSlice {
    /// The bytes that are still there, in order.
    pub bytes: Vec<u8>,
    /// How many bytes of the part asked for were dropped, between `bytes[..gap_at]` and `bytes[gap_at..]`.
    pub missing: u64,
    /// Where in `bytes` the dropped ones would stand.
    pub gap_at: usize,
}

impl LogSlice {
    /// As bytes to show or store, with a line in place of what was dropped.
    pub fn with_note(&self) -> Vec<u8> {
        if self.missing == 0 {
            return self.bytes.clone();
        }
        let (before, after) = self.bytes.split_at(self.gap_at);
        let note = format!("\n[... {} bytes dropped ...]\n", self.missing);
        [before, note.as_bytes(), after].concat()
    }
}

#[derive(Debug)]
struct Kept {
    source: Option<File>,
    bounds: LogBounds,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes taken out of the pipe since the start.
    taken: u64,
    void: Option<File>,
}

/// The reading end of a process's output. Costs `head + tail` bytes of memory at most, whatever is written, and little
/// CPU: in a flood all but each pipeful's last bytes are spliced away unread.
#[derive(Debug)]
pub struct LogSink {
    kept: Arc<Mutex<Kept>>,
    closed: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl LogSink {
    /// A sink and the descriptor to write to it (for [`crate::Sink::Fd`], or to hand on). Reading goes on as a task of
    /// the current tokio runtime until every copy of the write end is closed.
    ///
    /// # Errors
    /// The system has no pipe to give.
    pub fn open(bounds: LogBounds) -> io::Result<(LogSink, OwnedFd)> {
        let (read, write) = crate::invocation::pipe()?;
        fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // A bigger pipe means fewer wake-ups; the system may refuse, and 64 KiB do as well.
        let _ = fcntl(&read, FcntlArg::F_SETPIPE_SZ(1 << 20));
        let watched = watch_readable(read.try_clone()?)?;
        let kept = Arc::new(Mutex::new(Kept {
            source: Some(File::from(read)),
            bounds,
            head: Vec::new(),
            tail: VecDeque::new(),
            taken: 0,
            void: File::options().write(true).open("/dev/null").ok(),
        }));
        let (ended, closed) = watch::channel(false);
        let shared = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            while let Ok(mut ready) = watched.readable().await {
                let step = lock(&shared).take_once();
                match step {
                    Ok(Taken::Some) => tokio::task::yield_now().await,
                    Ok(Taken::NothingNow) => ready.clear_ready(),
                    Ok(Taken::End) | Err(_) => break,
                }
            }
            lock(&shared).source = None;
            let _ = ended.send(true);
        });
        Ok((LogSink { kept, closed, task }, write))
    }

    /// Bytes written so far, those still in the pipe included: the offset of what is written next. A caller that takes
    /// it before and after a case attributes output to that case.
    pub fn offset(&self) -> u64 {
        let kept = lock(&self.kept);
        kept.taken + kept.waiting() as u64
    }

    /// Bytes dropped so far.
    pub fn dropped(&self) -> u64 {
        let kept = lock(&self.kept);
        kept.taken - (kept.head.len() + kept.tail.len()) as u64
    }

    /// What is kept of the bytes `from..to`; call it after what was written by then has been read (after
    /// [`LogSink::closed`], or [`LogSink::catch_up`]).
    pub fn slice(&self, from: u64, to: u64) -> LogSlice {
        lock(&self.kept).slice(from, to)
    }

    /// Everything that is kept.
    pub fn contents(&self) -> LogSlice {
        self.slice(0, u64::MAX)
    }

    /// The last `count` bytes at most, as text; bytes that are not UTF-8 show as U+FFFD.
    pub fn last(&self, count: usize) -> String {
        let slice = self.slice(0, u64::MAX);
        let bytes = if slice.missing > 0 { &slice.bytes[slice.gap_at..] } else { &slice.bytes[..] };
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(count)..]).into_owned()
    }

    /// Takes what is in the pipe now, without waiting for the task.
    pub fn catch_up(&self) {
        let mut kept = lock(&self.kept);
        // A writer may keep up with us; a pipeful is all that was there when we were called.
        for _ in 0..20 {
            if !matches!(kept.take_once(), Ok(Taken::Some)) {
                break;
            }
        }
    }

    /// Waits until every copy of the write end is closed and all is read.
    pub async fn closed(&self) {
        let _ = self.closed.clone().wait_for(|ended| *ended).await;
    }
}

impl Drop for LogSink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Taken {
    Some,
    NothingNow,
    End,
}

impl Kept {
    fn waiting(&self) -> usize {
        let Some(source) = &self.source else { return 0 };
        let mut count: libc::c_int = 0;
        // SAFETY: FIONREAD writes one int at the address given.
        let answer = unsafe { libc::ioctl(source.as_raw_fd(), libc::FIONREAD, &mut count) };
        if answer == 0 { usize::try_from(count).unwrap_or(0) } else { 0 }
    }

    /// One splice or one read.
    fn take_once(&mut self) -> io::Result<Taken> {
        let waiting = self.waiting();
        let full = self.head.len() == self.bounds.head;
        let Some(source) = &mut self.source else { return Ok(Taken::End) };
        let surplus = waiting.saturating_sub(self.bounds.tail);
        if let (true, Some(void)) = (full && surplus > 0, &self.void) {
            // These bytes would be pushed out of the tail by those behind them in the same pipe.
            let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
            if let Ok(count) = splice(&*source, None, void, None, surplus, flags)
                && count > 0
            {
                self.taken += count as u64;
                // The tail is the end of the stream, so what it held is now too old.
                self.tail.clear();
                return Ok(Taken::Some);
            }
        }
        let mut buffer = [0u8; 32 << 10];
        match source.read(&mut buffer) {
            Ok(0) => {
                self.source = None;
                Ok(Taken::End)
            }
            Ok(count) => {
                self.taken += count as u64;
                self.keep(&buffer[..count]);
                Ok(Taken::Some)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Taken::NothingNow),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(Taken::Some),
            Err(e) => Err(e),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.bounds.head - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.bounds.tail)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.bounds.tail);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    fn slice(&self, from: u64, to: u64) -> LogSlice {
        let to = to.min(self.taken);
        let from = from.min(to);
        let head_end = self.head.len() as u64;
        let tail_start = self.taken - self.tail.len() as u64;
        let part = |low: u64, high: u64| {
            (from.clamp(low, high) - low) as usize..(to.clamp(low, high) - low) as usize
        };
        let mut bytes = self.head[part(0, head_end)].to_vec();
        let gap_at = bytes.len();
        bytes.extend(self.tail.range(part(tail_start, self.taken)));
        let missing = (to - from) - bytes.len() as u64;
        LogSlice { bytes, missing, gap_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(head: usize, tail: usize) -> Kept {
        let bounds = LogBounds { head, tail };
        Kept { source: None, bounds, head: Vec::new(), tail: VecDeque::new(), taken: 0, void: None }
    }

    #[test]
    fn the_beginning_and_the_end_stay_and_the_middle_is_counted() {
        let mut log = kept(4, 3);
        for part in [b"ab".as_slice(), b"cdef", b"ghij"] {
            log.taken += part.len() as u64;
            log.keep(part);
        }
        let all = log.slice(0, u64::MAX);
        assert_eq!((all.bytes.as_slice(), all.missing, all.gap_at), (b"abcdhij".as_slice(), 3, 4));
        assert_eq!(all.with_note(), b"abcd\n[... 3 bytes dropped ...]\nhij");
        let middle = log.slice(2, 8);
        assert_eq!((middle.bytes.as_slice(), middle.missing), (b"cdh".as_slice(), 3));
        assert_eq!(log.slice(8, 10).bytes, b"ij");
    }
}
