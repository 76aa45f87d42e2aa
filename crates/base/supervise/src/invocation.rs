//! The blocking form: a tool that answers and exits.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::cancel::{cancel_fd, cancelled};
use crate::error::SuperviseError;
use crate::exit::Exit;
use crate::pidfd;
use crate::program::find_program;
use crate::spawner::{self, Prepared, StartFailure, Started, Step, c_string};

/// A program to run to its end, with what it reads and how much of what it writes is kept.
///
/// The child has a session of its own (so Ctrl-C on the terminal reaches only this process) and dies with this process.
/// When its leader ends, the rest of its process group is killed.
#[derive(Debug)]
pub struct Invocation {
    /// A name on PATH, or a path.
    pub program: OsString,
    /// Arguments after the program's name.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited. A later entry of a name replaces an earlier one.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; this process's own where none is given.
    pub cwd: Option<PathBuf>,
    /// Bytes for standard input, which then ends.
    pub stdin: Vec<u8>,
    /// Bytes of standard output to keep (64 MiB); the rest is read and dropped.
    pub stdout_limit: usize,
    /// Bytes of standard error to keep (1 MiB); the rest is read and dropped.
    pub stderr_limit: usize,
    /// After this the process group is killed (10 minutes).
    pub deadline: Duration,
    /// A network namespace to run in, by descriptor.
    pub netns: Option<OwnedFd>,
    /// Run it as the init of a PID namespace, so that whatever it starts ends with it, even if this process is killed.
    /// Needs root or user namespaces.
    pub contained: bool,
}

/// What a program left behind.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: Exit,
    /// Standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// Standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Whether something of either was dropped.
    pub truncated: bool,
}

impl Output {
    /// Standard error as text, trimmed, for messages.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}

impl Invocation {
    /// A program by name or path, with no arguments and an empty environment.
    pub fn new(program: impl Into<OsString>) -> Self {
        Invocation {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            stdin: Vec::new(),
            stdout_limit: 64 << 20,
            stderr_limit: 1 << 20,
            deadline: Duration::from_secs(600),
            netns: None,
            contained: false,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Takes an environment variable over from this process, where it is set.
    pub fn inherit_env(mut self, name: impl Into<OsString>) -> Self {
        let name = name.into();
        if let Some(value) = std::env::var_os(&name) {
            self.env.push((name, value));
        }
        self
    }

    /// Sets the working directory.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets the bytes of standard input.
    pub fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets how many bytes of standard output are kept.
    pub fn stdout_limit(mut self, bytes: usize) -> Self {
        self.stdout_limit = bytes;
        self
    }

    /// Sets the deadline.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs the program inside a network namespace.
    pub fn netns(mut self, netns: OwnedFd) -> Self {
        self.netns = Some(netns);
        self
    }

    /// Makes whatever it starts end with it, even if this process is killed; see [`Invocation::contained`].
    pub fn contained(mut self) -> Self {
        self.contained = true;
        self
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// The program could not be started or followed, or [`crate::cancel`] was called. A bad exit status or a passed
    /// deadline is no error: see [`Output::status`].
    pub fn run(self) -> Result<Output, SuperviseError> {
        let name = self.program.to_string_lossy().into_owned();
        if cancelled() {
            return Err(SuperviseError::Cancelled { program: name });
        }
        let until = Instant::now() + self.deadline;
        let follow = |what| {
            let program = name.clone();
            move |source: io::Error| SuperviseError::Follow { program, what, source }
        };
        let [stdin, stdout, stderr] = [pipe(), pipe(), pipe()];
        let (stdin_read, stdin_write) = stdin.map_err(follow("opening pipes"))?;
        let (stdout_read, stdout_write) = stdout.map_err(follow("opening pipes"))?;
        let (stderr_read, stderr_write) = stderr.map_err(follow("opening pipes"))?;
        let launch = Launch {
            program: self.program,
            args: self.args,
            env: self.env,
            cwd: self.cwd,
            fds: vec![(stdin_read, 0), (stdout_write, 1), (stderr_write, 2)],
            netns: self.netns,
            cgroups: Vec::new(),
            contained: self.contained,
        };
        let Started { pid, pidfd } = launch.start()?;
        let mut pump = Pump {
            stdin: (!self.stdin.is_empty()).then(|| File::from(stdin_write)),
            to_write: self.stdin,
            written: 0,
            streams: [
                Stream { source: Some(File::from(stdout_read)), kept: Vec::new(), limit: self.stdout_limit },
                Stream { source: Some(File::from(stderr_read)), kept: Vec::new(), limit: self.stderr_limit },
            ],
            truncated: false,
        };
        let ended = pump.unblock().and_then(|()| pump.follow(&pidfd, until));
        // The leader is not reaped yet, so its group's number is still its own.
        pidfd::kill_group(pid);
        let exit = pidfd::reap(pid).map_err(follow("waiting for it"))?;
        let ended = ended.map_err(follow("reading its output"))?;
        if ended == Ended::Cancelled {
            return Err(SuperviseError::Cancelled { program: name });
        }
        pump.drain_what_is_left().map_err(follow("reading its output"))?;
        let [stdout, stderr] = pump.streams;
        let status = if ended == Ended::DeadlinePassed { Exit::TimedOut } else { exit };
        Ok(Output { status, stdout: stdout.kept, stderr: stderr.kept, truncated: pump.truncated })
    }
}

/// What both forms hand to the spawner.
pub(crate) struct Launch {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Option<PathBuf>,
    pub fds: Vec<(OwnedFd, i32)>,
    pub netns: Option<OwnedFd>,
    pub cgroups: Vec<OwnedFd>,
    pub contained: bool,
}

impl Launch {
    pub(crate) fn start(self) -> Result<Started, SuperviseError> {
        let name = self.program.to_string_lossy().into_owned();
        let bad = |what: String| SuperviseError::BadText { program: name.clone(), what };
        let path = match self.program.to_str() {
            Some(text) if !text.contains('/') => {
                find_program(text).ok_or_else(|| SuperviseError::NotFound { program: name.clone() })?
            }
            _ => PathBuf::from(&self.program),
        };
        let mut argv = vec![c_string(&self.program).ok_or_else(|| bad("its name".into()))?];
        for (index, arg) in self.args.iter().enumerate() {
            argv.push(c_string(arg).ok_or_else(|| bad(format!("argument {}", index + 1)))?);
        }
        let cwd = self.cwd.as_ref().map(|cwd| c_string(cwd.as_os_str()).ok_or_else(|| bad("its cwd".into())));
        let prepared = Prepared {
            program: c_string(path.as_os_str()).ok_or_else(|| bad("its path".into()))?,
            argv,
            envp: environment(&self.env).map_err(|variable| bad(format!("variable {variable}")))?,
            cwd: cwd.transpose()?,
            fds: self.fds,
            netns: self.netns,
            cgroups: self.cgroups,
            contained: self.contained,
        };
        spawner::start(prepared).map_err(|StartFailure { step, source }| match (step, self.cwd) {
            (Step::Cwd, Some(cwd)) => SuperviseError::WorkingDirectory { program: name, cwd, source },
            (Step::Exec, _) if source.kind() == io::ErrorKind::NotFound && !path.exists() => {
                SuperviseError::NotFound { program: name }
            }
            _ => SuperviseError::Start { program: name, step: step.words(), source },
        })
    }
}

/// `NAME=value` texts, the last of each name; the error is the name of an unusable variable.
fn environment(variables: &[(OsString, OsString)]) -> Result<Vec<CString>, String> {
    let mut texts: Vec<(&OsStr, CString)> = Vec::with_capacity(variables.len());
    for (name, value) in variables {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        let usable = !name.is_empty() && !name.as_bytes().contains(&b'=');
        let text = c_string(&text).filter(|_| usable).ok_or_else(|| name.to_string_lossy().into_owned())?;
        texts.retain(|(other, _)| *other != name.as_os_str());
        texts.push((name, text));
    }
    Ok(texts.into_iter().map(|(_, text)| text).collect())
}

pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(nix::unistd::pipe2(OFlag::O_CLOEXEC)?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Exited,
    DeadlinePassed,
    Cancelled,
}

struct Stream {
    source: Option<File>,
    kept: Vec<u8>,
    limit: usize,
}

/// Moves bytes between us and the child until it ends, from one thread.
struct Pump {
    stdin: Option<File>,
    to_write: Vec<u8>,
    written: usize,
    streams: [Stream; 2],
    truncated: bool,
}

impl Pump {
    fn unblock(&self) -> io::Result<()> {
        for file in self.streams.iter().filter_map(|s| s.source.as_ref()).chain(&self.stdin) {
            fcntl(file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(())
    }

    fn follow(&mut self, pidfd: &OwnedFd, until: Instant) -> io::Result<Ended> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Ended::DeadlinePassed);
            }
            // One millisecond up, so that the last wait does not spin.
            let timeout =
                PollTimeout::try_from(left.as_millis().min(1 << 30) as i32 + 1).unwrap_or(PollTimeout::MAX);
            let mut polled = vec![PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            polled.extend(cancel_fd().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            for stream in self.streams.iter().filter_map(|s| s.source.as_ref()) {
                polled.push(PollFd::new(stream.as_fd(), PollFlags::POLLIN));
            }
            if let Some(stdin) = &self.stdin {
                polled.push(PollFd::new(stdin.as_fd(), PollFlags::POLLOUT));
            }
            match poll(&mut polled, timeout) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let exited = polled[0].any().unwrap_or(false);
            drop(polled);
            if cancelled() {
                return Ok(Ended::Cancelled);
            }
            self.write_some()?;
            // A few reads each, so that a flood on one stream starves neither the other nor the deadline.
            for index in 0..2 {
                self.read_some(index, 16)?;
            }
            if exited {
                return Ok(Ended::Exited);
            }
        }
    }

    fn write_some(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        match stdin.write(&self.to_write[self.written..]) {
            Ok(count) => self.written += count,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // It stopped reading; that is its business.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.written = self.to_write.len(),
            Err(e) => return Err(e),
        }
        if self.written == self.to_write.len() {
            self.stdin = None;
            self.to_write = Vec::new();
            self.written = 0;
        }
        Ok(())
    }

    /// Up to `times` reads of 64 KiB; true if nothing more is there now.
    fn read_some(&mut self, index: usize, times: usize) -> io::Result<bool> {
        let mut buffer = [0u8; 64 << 10];
        let stream = &mut self.streams[index];
        for _ in 0..times {
            let Some(source) = &mut stream.source else { return Ok(true) };
            match source.read(&mut buffer) {
                Ok(0) => stream.source = None,
                Ok(count) => {
                    let room = count.min(stream.limit.saturating_sub(stream.kept.len()));
                    stream.kept.extend_from_slice(&buffer[..room]);
                    self.truncated |= room < count;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(stream.source.is_none())
    }

    /// What is in the pipes after the whole group is dead. A process that left the group may hold a pipe open and write
    /// on: at most a pipe's capacity (1 MiB) is taken.
    fn drain_what_is_left(&mut self) -> io::Result<()> {
        for index in 0..2 {
            self.read_some(index, 32)?;
        }
        Ok(())
    }
}
