//! Trees of processes, read from /proc, and their end.

use std::collections::HashSet;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::readiness::watch_readable;
use nix::sys::signal::Signal;

use crate::pidfd;

/// A process as /proc shows it from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number on the host.
    pub pid: i32,
    /// Its parent's number on the host.
    pub parent: i32,
    /// Its session.
    pub session: i32,
    /// Its effective uid on the host.
    pub uid: u32,
    /// Its resident memory in bytes; shared pages count in each process.
    pub resident_bytes: u64,
    /// When it started, in clock ticks after boot: with `pid`, unique.
    pub started: u64,
}

impl Process {
    /// Sends SIGKILL, unless the number has passed to another process.
    pub fn kill(&self) {
        drop(self.signal(Signal::SIGKILL));
    }

    /// Sends a signal and returns the process's descriptor; `None` if it is gone.
    fn signal(&self, signal: Signal) -> Option<OwnedFd> {
        let fd = pidfd::open(self.pid).ok()?;
        // The descriptor holds the process; if that is still ours the number was not reused.
        if process(self.pid)?.started != self.started {
            return None;
        }
        pidfd::send(fd.as_raw_fd(), signal as i32);
        Some(fd)
    }
}

/// The process of that number; `None` if it is gone or a zombie.
pub fn process(pid: i32) -> Option<Process> {
    use std::os::unix::fs::MetadataExt;
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let uid = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    parse_stat(&stat, uid)
}

/// `pid (name) state ppid pgrp session …`, proc(5); the name may hold anything, parentheses and newlines included.
fn parse_stat(stat: &[u8], uid: u32) -> Option<Process> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(stat).ok().map_or_else(
        || String::from_utf8_lossy(stat).split(' ').next().map(str::to_owned),
        |text| text.split(' ').next().map(str::to_owned),
    )?;
    let rest = std::str::from_utf8(stat.get(close + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
    // One whose first thread has ended looks like a zombie, and its other threads live on.
    let threads = number(17)?;
    if matches!(*fields.first()?, "Z" | "X" | "x") && threads < 2 {
        return None;
    }
    Some(Process {
        pid: pid.parse().ok()?,
        parent: number(1)? as i32,
        session: number(3)? as i32,
        uid,
        started: number(19)? as u64,
        resident_bytes: number(21)?.max(0) as u64 * page_bytes(),
    })
}

fn page_bytes() -> u64 {
    // SAFETY: sysconf only reads.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The process and all its living descendants. Inside a PID namespace orphans fall to its init, so that from the init
/// this is complete.
pub fn descendants(root: i32) -> Vec<Process> {
    closure(&all(), |process| process.pid == root)
}

/// Descendants of `leader`, members of its session, whoever carries the mark in the environment, and `known` processes
/// that still live, with their descendants. `leader` must be a number that is still its own; `None` once it was reaped.
pub(crate) fn members(leader: Option<i32>, mark: Option<&str>, known: &[Process]) -> Vec<Process> {
    closure(&all(), |process| {
        leader.is_some_and(|leader| process.pid == leader || process.session == leader)
            || known.iter().any(|k| (k.pid, k.started) == (process.pid, process.started))
            || mark.is_some_and(|mark| carries(process, mark))
    })
}

fn carries(process: &Process, mark: &str) -> bool {
    std::fs::read(format!("/proc/{}/environ", process.pid))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
}

fn closure(processes: &[Process], seed: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut inside: HashSet<i32> = processes.iter().filter(|p| seed(p)).map(|p| p.pid).collect();
    loop {
        let before = inside.len();
        for process in processes {
            if inside.contains(&process.parent) {
                inside.insert(process.pid);
            }
        }
        if inside.len() == before {
            break;
        }
    }
    processes.iter().filter(|p| inside.contains(&p.pid)).cloned().collect()
}

/// Kills all processes that `find` names, again and again until it names none. They are stopped first, so that none
/// forks away from the reading of /proc.
pub async fn kill_processes(find: impl FnMut() -> Vec<Process>) {
    kill_all(find).await;
}

pub(crate) async fn kill_all(mut find: impl FnMut() -> Vec<Process>) {
    // A process in an uninterruptible wait dies late; the bound only guards against one that never does.
    for _ in 0..1000 {
        let mut stopped = HashSet::new();
        loop {
            let fresh: Vec<_> = find().into_iter().filter(|p| !stopped.contains(&p.pid)).collect();
            if fresh.is_empty() {
                break;
            }
            for process in fresh {
                drop(process.signal(Signal::SIGSTOP));
                stopped.insert(process.pid);
            }
        }
        let dying: Vec<OwnedFd> =
            find().iter().filter_map(|process| process.signal(Signal::SIGKILL)).collect();
        if dying.is_empty() && stopped.is_empty() {
            return;
        }
        for fd in dying {
            if let Ok(fd) = watch_readable(fd) {
                drop(fd.readable().await);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = b"12 (a) S 1 (x) R 7 8 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4242 0 3 0";
        let process = parse_stat(stat, 5).unwrap();
        assert_eq!((process.pid, process.parent, process.session, process.uid), (12, 7, 9, 5));
        assert_eq!(process.started, 4242);
        assert_eq!(process.resident_bytes, 3 * page_bytes());
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let led_by_the_dead = b"12 (a) Z 7 8 9 0 0 0 0 0 0 0 0 0 0 0 0 0 2 0 4242 0 3 0";
        assert_eq!(parse_stat(led_by_the_dead, 5).map(|process| process.pid), Some(12), "two threads");
        assert_eq!(parse_stat(b"12 (a) Z 7 8 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4242 0 3 0", 5), None);
    }

    #[test]
    fn grandchildren_belong_to_the_tree_in_any_order() {
        let p = |pid, parent| Process { pid, parent, session: 0, uid: 0, resident_bytes: 0, started: 0 };
        let found = closure(&[p(30, 20), p(20, 10), p(10, 1), p(11, 1)], |process| process.pid == 10);
        assert_eq!(found.iter().map(|p| p.pid).collect::<Vec<_>>(), [30, 20, 10]);
    }
}
