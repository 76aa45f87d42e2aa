//! The process-wide wish to stop, set once by the cli on Ctrl-C.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

static CANCELLED: AtomicBool = AtomicBool::new(false);
static WAKE: OnceLock<Option<OwnedFd>> = OnceLock::new();

fn wake_fd() -> Option<&'static OwnedFd> {
    WAKE.get_or_init(|| {
        EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .ok()
            .map(OwnedFd::from)
    })
    .as_ref()
}

/// Asks everything under way to end: running invocations are killed and return [`crate::SuperviseError::Cancelled`],
/// new ones are refused. There is no way back within a process.
pub fn cancel() {
    CANCELLED.store(true, Ordering::SeqCst);
    if let Some(fd) = wake_fd() {
        // Never drained, so every waiter, now or later, finds it readable.
        let _ = nix::unistd::write(fd, &1u64.to_ne_bytes());
    }
}

/// Whether [`cancel`] was called.
pub fn cancelled() -> bool {
    CANCELLED.load(Ordering::SeqCst)
}

/// A descriptor that is readable from the moment [`cancel`] is called; `None` if the system gave none.
pub(crate) fn cancel_fd() -> Option<BorrowedFd<'static>> {
    wake_fd().map(AsFd::as_fd)
}

/// Ends when [`cancel`] is called, or at once if it was. For `select!` beside work that can be given up.
pub async fn cancel_requested() {
    if cancelled() {
        return;
    }
    let copy = wake_fd().and_then(|fd| fd.try_clone().ok());
    match copy.map(crate::readiness::watch_readable) {
        Some(Ok(fd)) => drop(fd.readable().await),
        // Without a descriptor to wait on nothing wakes us; the work beside this future goes on to its own end.
        _ => std::future::pending().await,
    }
}
