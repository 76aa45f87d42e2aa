//! Process descriptors: a child's exit as something to poll, and its reaping.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::exit::Exit;

/// A descriptor that becomes readable when the process `pid`, a child of ours not yet reaped, has ended.
pub(crate) fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and returns a new descriptor (close-on-exec by definition) or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Waits for the child and frees its number. Blocks unless the child has ended.
pub(crate) fn reap(pid: i32) -> io::Result<Exit> {
    let mut status = 0;
    loop {
        // SAFETY: waitpid writes one int at the address given.
        let got = unsafe { libc::waitpid(pid, &mut status, 0) };
        if got == pid {
            return Ok(Exit::from_wait_status(status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Kills the process group led by `pid`. Call only while `pid` is not reaped, so that its number is still its own.
pub(crate) fn kill_group(pid: i32) {
    // SAFETY: kill takes two integers. Pids are above 1, so this never means "every process".
    unsafe {
        if pid > 1 {
            libc::kill(-pid, libc::SIGKILL);
            libc::kill(pid, libc::SIGKILL);
        }
    }
}

/// Sends a signal to the process that the descriptor stands for; nothing happens if it is gone.
pub(crate) fn send(fd: RawFd, signal: i32) {
    // SAFETY: pidfd_send_signal takes integers and an optional pointer, null here.
    unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, std::ptr::null::<libc::siginfo_t>(), 0);
    }
}
