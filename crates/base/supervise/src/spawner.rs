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
    /// Make it the init of a PID namespace of its own: its whole tree then ends with it, whatever the moment.
    pub contained: bool,
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
    Identity,
    Cgroup,
    Netns,
    Cwd,
    Descriptors,
    Exec,
}

impl Step {
    const ALL: [Step; 8] = [
        Step::Fork,
        Step::Session,
        Step::Identity,
        Step::Cgroup,
        Step::Netns,
        Step::Cwd,
        Step::Descriptors,
        Step::Exec,
    ];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Step::Fork => "creating a process",
            Step::Session => "opening a session",
            Step::Identity => "keeping its uid in a user namespace",
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
    let ours = Parent {
        alive: pidfd::open(std::process::id() as i32).map_err(fail)?,
        uid_map: format!("{0} {0} 1", nix::unistd::geteuid()),
        gid_map: format!("{0} {0} 1", nix::unistd::getegid()),
    };
    // SAFETY: between fork and exec the child calls only async-signal-safe functions and allocates nothing.
    let (pid, user_namespace) = match unsafe { fork(if prepared.contained { libc::CLONE_NEWPID } else { 0 }) }
    {
        // Without the right to make a PID namespace, a user namespace may grant it.
        Err(libc::EPERM) if prepared.contained => {
            // SAFETY: as above.
            (unsafe { fork(libc::CLONE_NEWPID | libc::CLONE_NEWUSER) }, true)
        }
        first => (first, false),
    };
    let pid = pid.map_err(|errno| fail(io::Error::from_raw_os_error(errno)))?;
    if pid == 0 {
        // SAFETY: we are the single-threaded child; every pointer was made before the fork.
        unsafe {
            let step = child_steps(&prepared, &ours, user_namespace, floor, &mut moved, &argv, &envp);
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

/// What a child needs to know of us.
struct Parent {
    /// Readable once we are dead.
    alive: OwnedFd,
    /// Lines for a user namespace in which the child keeps its uid and gid.
    uid_map: String,
    gid_map: String,
}

/// Forks into new namespaces; 0 in the child, an errno if that failed.
///
/// # Safety
/// The child may call only async-signal-safe functions.
unsafe fn fork(namespaces: libc::c_int) -> Result<libc::pid_t, i32> {
    let flags = (namespaces | libc::SIGCHLD) as libc::c_ulong;
    // Without a stack of its own `clone` is `fork`; all arguments that differ between architectures are 0.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, 0usize, 0usize, 0usize) };
    if pid < 0 {
        Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN))
    } else {
        Ok(pid as libc::pid_t)
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
    ours: &Parent,
    user_namespace: bool,
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
        let mut alive = libc::pollfd { fd: ours.alive.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        if libc::poll(&mut alive, 1, 0) == 1 {
            // We died before the signal was armed.
            libc::_exit(127);
        }
        if user_namespace && !keep_identity(ours) {
            return Step::Identity;
        }
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
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

/// In a new user namespace: stays who it was, user_namespaces(7).
///
/// # Safety
/// Call only in a freshly forked child.
unsafe fn keep_identity(ours: &Parent) -> bool {
    let write = |path: &std::ffi::CStr, text: &[u8]| unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let done = fd >= 0 && libc::write(fd, text.as_ptr().cast(), text.len()) == text.len() as isize;
        libc::close(fd);
        done
    };
    write(c"/proc/self/setgroups", b"deny")
        && write(c"/proc/self/uid_map", ours.uid_map.as_bytes())
        && write(c"/proc/self/gid_map", ours.gid_map.as_bytes())
}
