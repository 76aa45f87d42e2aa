//! Waiting for a descriptor on the tokio runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor (pipe, pidfd, eventfd) with the current runtime, to wait until it is readable or its other
/// end is closed.
///
/// # Errors
/// The system refuses to watch it: a plain file, or too many watches.
pub fn watch_readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and stays the same descriptor until dropped, and none here is taken out or replaced.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

/// Watches any process by number: readable once it has ended.
///
/// # Errors
/// There is no such process (`ESRCH`), or the system refuses to watch it.
pub fn watch_process(pid: i32) -> io::Result<AsyncFd<OwnedFd>> {
    watch_readable(crate::pidfd::open(pid)?)
}
