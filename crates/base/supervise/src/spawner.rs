//! Fork and exec, on one thread that lives as long as the process.
//!
//! The steps between fork and exec are our own rather than `std::process`'s: descriptors are handed over at fixed
//! numbers, which would overwrite the pipe that `std` reports a failed exec on.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock};

use crate::pidfd;

/// Everything that a child needs, ready before the fork: after it nothing may allocate.
pub(crate) struct Prepared {
    pub program: CString,
    pub argv: Vec<CString>,
    pub envp: Vec<CString>,
    pub cwd: Option<CString>,
    /// Descriptors and their numbers in the child; 0, 1 and 2 among them.
    pub fds: Vec<(OwnedFd, RawFd)>,
    /// A network namespace to enter.
    pub netns: Option<OwnedFd>,
    /// Open `cgroup.procs` files of the groups to join.
    pub cgroups: Vec<OwnedFd>,
}

/// A child just started: its number and its process descriptor.
pub(crate) struct Started {
    pub pid: i32,
    pub pidfd: OwnedFd,
}

/// A step refused between fork and exec.
pub(crate) struct StartFailure {
    pub step: Step,
    pub source: io::Error,
}

/// The steps between fork and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Fork,
    Session,
    Cgroup,
    Netns,
    Cwd,
    Descriptors,
    Exec,
}

impl Step {
    const ALL: [Step; 7] =
        [Step::Fork, Step::Session, Step::Cgroup, Step::Netns, Step::Cwd, Step::Descriptors, Step::Exec];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Step::Fork => "creating a process",
            Step::Session => "opening a session",
            Step::Cgroup => "joining its control group",
            Step::Netns => "entering its network namespace",
            Step::Cwd => "entering its working directory",
            Step::Descriptors => "handing over descriptors",
            Step::Exec => "executing the program",
        }
    }
}

type Job = (Prepared, Box<dyn FnOnce(Result<Started, StartFailure>) + Send>);

/// Starts a child from the spawner thread and waits until its exec succeeded or failed.
pub(crate) fn start(prepared: Prepared) -> Result<Started, StartFailure> {
    static QUEUE: OnceLock<Mutex<mpsc::Sender<Job>>> = OnceLock::new();
    let gone = |what: &str| StartFailure { step: Step::Fork, source: io::Error::other(what.to_owned()) };
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Job>();
        // A failure to start the thread drops the receiver; the send below then reports it.
        let _ = std::thread::Builder::new().name("spawner".into()).spawn(move || {
            for (prepared, answer) in receiver {
                answer(fork_and_exec(prepared));
            }
        });
        Mutex::new(sender)
    });
    let (answer, answered) = mpsc::sync_channel(1);
    let sender = queue.lock().map_err(|_| gone("the spawner thread's queue is poisoned"))?.clone();
    sender
        .send((prepared, Box::new(move |result| drop(answer.send(result)))))
        .map_err(|_| gone("the spawner thread could not be started"))?;
    answered.recv().map_err(|_| gone("the spawner thread is gone"))?
}

/// Text for exec; `None` if it holds a NUL byte.
pub(crate) fn c_string(text: &OsStr) -> Option<CString> {
    CString::new(text.as_bytes()).ok()
}

fn fork_and_exec(prepared: Prepared) -> Result<Started, StartFailure> {
    let fail = |source| StartFailure { step: Step::Fork, source };
    let floor = prepared.fds.iter().map(|(_, target)| *target).max().unwrap_or(2).max(2) + 1;
    let (report_read, report_write) =
        nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|e| fail(e.into()))?;
    // Above every number that the child will use, so that handing over descriptors can't overwrite it.
    let report = dup_above(report_write.as_raw_fd(), floor).map_err(fail)?;
    drop(report_write);
    let pointers = |texts: &[CString]| {
        texts.iter().map(|t| t.as_ptr()).chain([std::ptr::null()]).collect::<Vec<*const libc::c_char>>()
    };
    let (argv, envp) = (pointers(&prepared.argv), pointers(&prepared.envp));
    let mut moved = vec![-1; prepared.fds.len()];
    let parent = std::process::id() as libc::pid_t;
    // SAFETY: between fork and exec the child calls only async-signal-safe functions and allocates nothing.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(fail(io::Error::last_os_error()));
    }
    if pid == 0 {
        // SAFETY: we are the single-threaded child; every pointer was made before the fork.
        unsafe {
            let step = child_steps(&prepared, parent, floor, &mut moved, &argv, &envp);
            let word = [step as i32, io::Error::last_os_error().raw_os_error().unwrap_or(0)];
            libc::write(report.as_raw_fd(), word.as_ptr().cast(), 8);
            libc::_exit(127);
        }
    }
    drop(report);
    drop(prepared);
    let pidfd = pidfd::open(pid).map_err(|source| {
        pidfd::kill_group(pid);
        let _ = pidfd::reap(pid);
        fail(source)
    })?;
    let mut word = [0u8; 8];
    let mut report_read = std::fs::File::from(report_read);
    match io::Read::read_exact(&mut report_read, &mut word) {
        // End of file: exec closed the pipe.
        Err(_) => Ok(Started { pid, pidfd }),
        Ok(()) => {
            let _ = pidfd::reap(pid);
            let number = |at: usize| i32::from_ne_bytes([word[at], word[at + 1], word[at + 2], word[at + 3]]);
            let step = Step::ALL.get(number(0) as usize).copied().unwrap_or(Step::Fork);
            Err(StartFailure { step, source: io::Error::from_raw_os_error(number(4)) })
        }
    }
}

fn dup_above(fd: RawFd, floor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl on a descriptor that we hold; the copy is new and ours.
    unsafe {
        let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, floor);
        if copy < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(copy)) }
    }
}

/// Runs in the child; returns the step that failed, with errno set.
///
/// # Safety
/// Call only in a freshly forked child; `argv` and `envp` end with null.
unsafe fn child_steps(
    prepared: &Prepared,
    parent: libc::pid_t,
    floor: RawFd,
    moved: &mut [RawFd],
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
) -> Step {
    unsafe {
        if libc::setsid() < 0 {
            return Step::Session;
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            // The parent died before the signal was armed.
            libc::_exit(127);
        }
        for cgroup in &prepared.cgroups {
            if libc::write(cgroup.as_raw_fd(), b"0\n".as_ptr().cast(), 2) != 2 {
                return Step::Cgroup;
            }
        }
        if let Some(netns) = &prepared.netns
            && libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) != 0
        {
            return Step::Netns;
        }
        if let Some(cwd) = &prepared.cwd
            && libc::chdir(cwd.as_ptr()) != 0
        {
            return Step::Cwd;
        }
        // First out of each other's way, then to their numbers.
        for (copy, (fd, _)) in moved.iter_mut().zip(&prepared.fds) {
            *copy = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, floor);
            if *copy < 0 {
                return Step::Descriptors;
            }
        }
        // Whatever else is open here stays here; older kernels lack the call, and our own are close-on-exec anyway.
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for (copy, (_, target)) in moved.iter().zip(&prepared.fds) {
            if libc::dup2(*copy, *target) < 0 {
                return Step::Descriptors;
            }
        }
        for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD]
        {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::execve(prepared.program.as_ptr(), argv.as_ptr(), envp.as_ptr());
        Step::Exec
    }
}
