//! The async form: a process that is followed while it runs.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::Signal;
use tokio::io::unix::AsyncFd;

use crate::error::SuperviseError;
use crate::exit::Exit;
use crate::invocation::Launch;
use crate::pidfd;
use crate::readiness::watch_readable;
use crate::tree;

/// The environment variable by which members of a tree are known even after they left its session and lost their
/// parent. Its value is unique on this machine while this process lives.
pub(crate) const TREE_VARIABLE: &str = "INFRADEV_TREE";

/// Where a standard stream of a child leads.
#[derive(Debug, Default)]
pub enum Sink {
    /// `/dev/null`.
    #[default]
    Null,
    /// A descriptor; the write end of a [`crate::LogSink`], say.
    Fd(OwnedFd),
}

/// A process to start and follow.
#[derive(Debug)]
pub struct Spawn {
    /// A name on PATH, or a path.
    pub program: OsString,
    /// Arguments after the program's name.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited (but `INFRADEV_TREE`, which marks the tree, is added).
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; this process's own where none is given.
    pub cwd: Option<PathBuf>,
    /// Standard input.
    pub stdin: Sink,
    /// Standard output.
    pub stdout: Sink,
    /// Standard error.
    pub stderr: Sink,
    /// Further descriptors, each with its number in the child. Nothing else is inherited.
    pub fds: Vec<(OwnedFd, RawFd)>,
    /// A network namespace to enter.
    pub netns: Option<OwnedFd>,
    /// Open `cgroup.procs` files of the control groups to join before exec.
    pub cgroups: Vec<OwnedFd>,
    /// Start it as the init of a PID namespace: the kernel ends its whole tree with it, whenever and however it ends,
    /// and the tree needs no mark. It sees itself as process 1 and the host's /proc. Needs root or user namespaces.
    pub contained: bool,
}

impl Spawn {
    /// A program by name or path, with no arguments, an empty environment and all streams on `/dev/null`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Spawn {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            stdin: Sink::Null,
            stdout: Sink::Null,
            stderr: Sink::Null,
            fds: Vec::new(),
            netns: None,
            cgroups: Vec::new(),
            contained: false,
        }
    }

    /// Starts it in a session of its own; it dies with this process. Returns once its exec succeeded.
    ///
    /// # Errors
    /// The program could not be started. Call it within a tokio runtime with I/O enabled.
    pub fn start(self) -> Result<Child, SuperviseError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let program = self.program.to_string_lossy().into_owned();
        let follow = |what| {
            let program = program.clone();
            move |source: io::Error| SuperviseError::Follow { program, what, source }
        };
        let mut fds = self.fds;
        for (sink, number) in [(self.stdin, 0), (self.stdout, 1), (self.stderr, 2)] {
            let fd = match sink {
                Sink::Fd(fd) => fd,
                Sink::Null => null().map_err(follow("opening /dev/null"))?,
            };
            fds.push((fd, number));
        }
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut env = self.env;
        if !self.contained {
            env.push((TREE_VARIABLE.into(), mark.clone().into()));
        }
        let launch = Launch {
            program: self.program,
            args: self.args,
            env,
            cwd: self.cwd,
            fds,
            netns: self.netns,
            cgroups: self.cgroups,
            contained: self.contained,
        };
        let started = launch.start()?;
        let mark = (!self.contained).then(|| format!("{TREE_VARIABLE}={mark}"));
        let mut child = Child {
            program: program.clone(),
            pid: started.pid,
            pidfd: None,
            mark,
            ended: None,
            left: Vec::new(),
        };
        child.pidfd = Some(watch_readable(started.pidfd).map_err(follow("registering it with the runtime"))?);
        Ok(child)
    }
}

fn null() -> io::Result<OwnedFd> {
    Ok(std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?.into())
}

/// A running process. Dropping it kills its tree.
#[derive(Debug)]
pub struct Child {
    program: String,
    pid: i32,
    pidfd: Option<AsyncFd<OwnedFd>>,
    mark: Option<String>,
    ended: Option<Exit>,
    /// Members of its tree that lived when it ended; from then on its own number says nothing.
    left: Vec<tree::Process>,
}

impl Child {
    /// Its process number, of its session and group too. It stays its own until [`Child::wait`] has returned.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// How it ended, if that was seen.
    pub fn ended(&self) -> Option<Exit> {
        self.ended
    }

    /// Waits for its end. May be dropped and called again; the answer stays the same.
    ///
    /// # Errors
    /// The system lost track of the child, which only a foreign `waitpid` in this process brings about.
    pub async fn wait(&mut self) -> Result<Exit, SuperviseError> {
        if let Some(exit) = self.ended {
            return Ok(exit);
        }
        if let Some(pidfd) = &self.pidfd {
            drop(pidfd.readable().await.map_err(|e| self.follow("waiting for it", e))?);
        }
        if self.mark.is_some() {
            self.left = self.tree();
        }
        let exit = pidfd::reap(self.pid).map_err(|e| self.follow("waiting for it", e))?;
        self.ended = Some(exit);
        Ok(exit)
    }

    /// Sends it a signal; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) {
        if let (None, Some(pidfd)) = (self.ended, &self.pidfd) {
            pidfd::send(pidfd.as_raw_fd(), signal as i32);
        }
    }

    /// The processes of its tree that live now: descendants, members of its session, and whoever carries its mark in
    /// the environment (daemons that left both).
    pub fn tree(&self) -> Vec<tree::Process> {
        let leader = self.ended.is_none().then_some(self.pid);
        tree::members(leader, self.mark.as_deref(), &self.left)
    }

    /// Reads the same tree as [`Child::tree`] from elsewhere, for a task that watches it.
    pub fn tree_reader(&self) -> impl Fn() -> Vec<tree::Process> + Send + 'static {
        let (leader, mark, left) =
            (self.ended.is_none().then_some(self.pid), self.mark.clone(), self.left.clone());
        let started = tree::process(self.pid).map(|process| process.started);
        move || {
            let leader = leader.filter(|pid| tree::process(*pid).map(|process| process.started) == started);
            tree::members(leader, mark.as_deref(), &left)
        }
    }

    /// Kills its whole tree and waits until all of it is dead.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub async fn kill_tree(&mut self) -> Result<Exit, SuperviseError> {
        if self.mark.is_some() {
            tree::kill_all(|| self.tree()).await;
        } else {
            // The init of a PID namespace: the kernel reports its end once all the others are dead.
            self.signal(Signal::SIGKILL);
        }
        self.wait().await
    }

    fn follow(&self, what: &'static str, source: io::Error) -> SuperviseError {
        SuperviseError::Follow { program: self.program.clone(), what, source }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        for process in self.tree() {
            process.kill();
        }
        if self.ended.is_some() {
            return;
        }
        pidfd::kill_group(self.pid);
        let _ = pidfd::reap(self.pid);
    }
}
