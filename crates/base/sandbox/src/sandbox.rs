//! A running sandbox: its start, its meters, its end.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

use infradev_supervise::{Child, Exit, Invocation, Process, Sink, Spawn, descendants, watch_readable};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::bubblewrap::{self, Arguments, STARTED};
use crate::cgroup::Group;
use crate::cgroup_place::Places;
use crate::error::SandboxError;
use crate::network::{LoopbackBytes, loopback_of};
use crate::report::{MemoryLimit, SandboxReport};
use crate::spec::{Kind, Limits, Network, SandboxSpec};
use crate::watch::{Excess, Watch, peak_resident, reset_peak_resident, resident};

/// A trial's processes and what holds them. Dropping it kills them all.
#[derive(Debug)]
pub struct Sandbox {
    child: Child,
    /// The init of the PID namespace that the program is in.
    init: Option<Process>,
    /// The reading end of what bubblewrap complains to; closed, a complaint would kill it.
    _complaints: Option<OwnedFd>,
    group: Option<Group>,
    watch: Option<Watch>,
    report: SandboxReport,
    end: Option<SandboxEnd>,
}

/// How a sandbox ended. By then every process of it is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxEnd {
    /// How the program ended. Bubblewrap says 128 + n for signal n; so does a program that exits so.
    pub exit: Exit,
    /// The limit that the watched tree was killed for, where no control group bounds it.
    pub excess: Option<Excess>,
    /// Processes that the kernel killed for want of memory in the control group.
    pub oom_kills: u64,
    /// Most memory in use at once since the start or the last reset, in bytes.
    pub memory_peak: Option<u64>,
}

impl Sandbox {
    /// Starts the program in its sandbox, and returns once that is set up and the program is next to run.
    ///
    /// # Errors
    /// The sandbox could not be set up: no bubblewrap, no permission, a mount that is missing, a full disk. That is never
    /// the doing of the code under test, which has not run by then.
    pub async fn start(mut spec: SandboxSpec) -> Result<Sandbox, SandboxError> {
        spec.uids = spec.uids.filter(|uids| uids.granted());
        let group = Places::of_this_process().create(spec.limits).ok();
        let report = SandboxReport {
            kind: spec.kind,
            uid_separation: spec.uids.is_some(),
            memory_limit: group.as_ref().map_or(MemoryLimit::Watched, Group::version),
            network: if spec.kind == Kind::None { Network::Host } else { spec.network },
            bubblewrap: if spec.kind == Kind::Namespaces { Some(bubblewrap_version()?) } else { None },
        };
        let limits = spec.limits;
        let started = match spec.kind {
            Kind::None => start_bare(spec, group.as_ref()).map(|child| (child, None, None)),
            Kind::Namespaces => start_in_namespaces(spec, group.as_ref()).await,
        };
        match started {
            Ok((child, init, complaints)) => {
                let watch = watch_if_needed(&child, init.as_ref(), group.as_ref(), limits);
                Ok(Sandbox { child, init, _complaints: complaints, group, watch, report, end: None })
            }
            Err(error) => {
                if let Some(group) = group {
                    group.remove().await;
                }
                Err(error)
            }
        }
    }

    /// How it in fact holds its trial.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// The host's number of the namespace's init; of bubblewrap where that had ended before it was looked at, of the
    /// program where there is no namespace.
    pub fn pid(&self) -> i32 {
        self.init.as_ref().map_or(self.child.pid(), |init| init.pid)
    }

    /// Waits until the program has ended, then ends what it left running. May be dropped and called again.
    ///
    /// # Errors
    /// The system lost track of the process.
    pub async fn wait(&mut self) -> Result<SandboxEnd, SandboxError> {
        self.child.wait().await?;
        self.kill().await
    }

    /// Kills the whole tree, daemons in sessions of their own included, and waits until all of it is dead.
    ///
    /// # Errors
    /// The system lost track of the process.
    pub async fn kill(&mut self) -> Result<SandboxEnd, SandboxError> {
        if let Some(end) = &self.end {
            return Ok(end.clone());
        }
        let exit = self.child.kill_tree().await?;
        let end = SandboxEnd {
            exit: if self.init.is_some() { from_shell_convention(exit) } else { exit },
            excess: self
                .watch
                .as_ref()
                .and_then(|w| *w.seen.excess.lock().unwrap_or_else(PoisonError::into_inner)),
            oom_kills: self.oom_kills(),
            memory_peak: self.memory_peak(),
        };
        self.watch = None;
        self.end = Some(end.clone());
        if let Some(group) = self.group.take() {
            group.remove().await;
        }
        Ok(end)
    }

    /// The processes in it now, by the host's numbers and uids, the init among them.
    pub fn processes(&self) -> Vec<Process> {
        match (&self.init, self.report.kind) {
            (Some(init), _) => alive(init),
            (None, Kind::None) => self.child.tree(),
            // It had ended before it was looked at.
            (None, Kind::Namespaces) => Vec::new(),
        }
    }

    /// Bytes that crossed its own loopback so far, read from outside; `None` on the host's network or after its end.
    pub fn loopback_bytes(&self) -> Option<LoopbackBytes> {
        let init =
            self.init.as_ref().filter(|_| self.report.network == Network::Isolated && self.end.is_none())?;
        loopback_of(init.pid)
    }

    /// Bytes of memory in use now, of private tmpfs too where a control group counts; `None` after its end.
    pub fn memory_current(&self) -> Option<u64> {
        match &self.group {
            Some(group) => group.current(),
            None => self.end.is_none().then(|| resident(&self.processes())),
        }
    }

    /// Most bytes in use at once since the start or the last reset. Without a control group: the sum of each living
    /// process's own peak, or what sampling saw if that is more.
    pub fn memory_peak(&self) -> Option<u64> {
        if let Some(end) = &self.end {
            return end.memory_peak;
        }
        match &self.group {
            Some(group) => group.peak(),
            None => {
                let sampled = self.watch.as_ref().map_or(0, |w| w.seen.peak_bytes.load(Ordering::Relaxed));
                Some(peak_resident(&self.processes()).max(sampled))
            }
        }
    }

    /// Starts the peak anew. False where this host can't: compare peaks with care then.
    pub fn reset_memory_peak(&self) -> bool {
        match &self.group {
            Some(group) => group.reset_peak(),
            None => {
                if let Some(watch) = &self.watch {
                    watch.seen.peak_bytes.store(0, Ordering::Relaxed);
                }
                reset_peak_resident(&self.processes())
            }
        }
    }

    /// Processes that the kernel killed so far for want of memory in the control group; 0 where there is none.
    pub fn oom_kills(&self) -> u64 {
        match (&self.end, &self.group) {
            (Some(end), _) => end.oom_kills,
            (None, group) => group.as_ref().map_or(0, Group::oom_kills),
        }
    }
}

fn alive(init: &Process) -> Vec<Process> {
    let tree = descendants(init.pid);
    let same = tree.iter().any(|p| (p.pid, p.started) == (init.pid, init.started));
    if same { tree } else { Vec::new() }
}

fn from_shell_convention(exit: Exit) -> Exit {
    match exit {
        Exit::Code(code) if (129..=192).contains(&code) => Exit::Signal(code - 128),
        other => other,
    }
}

/// Bubblewrap's version, asked once.
///
/// # Errors
/// It is not installed or does not run.
pub fn bubblewrap_version() -> Result<String, SandboxError> {
    static VERSION: OnceLock<String> = OnceLock::new();
    if let Some(version) = VERSION.get() {
        return Ok(version.clone());
    }
    let ask = Invocation::new("bwrap").arg("--version").deadline(Duration::from_secs(20));
    let output = ask.run().map_err(SandboxError::Bubblewrap)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(VERSION.get_or_init(|| text.strip_prefix("bubblewrap ").unwrap_or(&text).to_owned()).clone())
}

fn doors(group: Option<&Group>) -> Result<Vec<OwnedFd>, SandboxError> {
    group.map_or(Ok(Vec::new()), |group| {
        group.doors().map_err(SandboxError::host("opening the control group"))
    })
}

fn start_bare(spec: SandboxSpec, group: Option<&Group>) -> Result<Child, SandboxError> {
    let env = bubblewrap::environment(&spec);
    let mut spawn = Spawn::new(spec.program);
    spawn.env = env;
    spawn.args = spec.args;
    spawn.cwd = Some(spec.cwd);
    if let Some(stdin) = spec.stdin {
        spawn.stdin = Sink::Fd(stdin);
    }
    spawn.stdout = spec.stdout;
    spawn.stderr = spec.stderr;
    spawn.fds = spec.fds;
    spawn.cgroups = doors(group)?;
    Ok(spawn.start()?)
}

fn watch_if_needed(
    child: &Child,
    init: Option<&Process>,
    group: Option<&Group>,
    limits: Limits,
) -> Option<Watch> {
    if group.is_some_and(Group::bounds_pids) {
        return None;
    }
    // The kernel bounds memory if there is a group at all.
    let limits =
        Limits { memory_bytes: if group.is_some() { u64::MAX } else { limits.memory_bytes }, ..limits };
    Some(match init.cloned() {
        Some(init) => Watch::start(limits, move || alive(&init)),
        None => Watch::start(limits, child.tree_reader()),
    })
}

type Started = (Child, Option<Process>, Option<OwnedFd>);

async fn start_in_namespaces(mut spec: SandboxSpec, group: Option<&Group>) -> Result<Started, SandboxError> {
    let (setup_read, setup_write) = io::pipe().map_err(SandboxError::host("opening a pipe"))?;
    let above = spec.fds.iter().map(|(_, number)| *number).max().unwrap_or(2) + 1;
    let privileged = crate::privilege::may_unshare();
    let (input, above) = if spec.stdin.is_some() { (Some(above), above + 1) } else { (None, above) };
    let Arguments { args, fds } = bubblewrap::arguments(&spec, privileged, input, above)?;
    let mut spawn = Spawn::new("bwrap");
    spawn.args = args;
    spawn.cwd = Some(Path::new("/").to_owned());
    // The wrapper turns these to their places; see `bubblewrap::arguments`.
    spawn.stdin = match spec.stderr {
        Sink::Null => Sink::Fd(null()?),
        given => given,
    };
    spawn.stdout = spec.stdout;
    spawn.stderr = Sink::Fd(setup_write.into());
    spawn.fds = std::mem::take(&mut spec.fds);
    spawn.fds.extend(fds);
    spawn.fds.extend(spec.stdin.take().zip(input));
    spawn.cgroups = doors(group)?;
    // A PID namespace around bubblewrap's own: it arms its parent-death signal only when all is set up, so that a kill of
    // this process before that would leave it behind.
    spawn.contained = true;
    let mut child = spawn.start().map_err(SandboxError::Bubblewrap)?;
    let setup = OwnedFd::from(setup_read);
    let said = until_started(setup.try_clone().map_err(SandboxError::host("copying a pipe"))?).await?;
    if !said.ends_with(STARTED) {
        let exit = child.wait().await?;
        let words = said.trim().trim_start_matches("bwrap: ");
        let message =
            if words.is_empty() { format!("bubblewrap ended with {exit}") } else { words.to_owned() };
        return Err(SandboxError::from_bubblewrap(message));
    }
    // Bubblewrap's one child; none if the program has ended by now.
    let init = descendants(child.pid()).into_iter().find(|process| process.parent == child.pid());
    Ok((child, init, Some(setup)))
}

fn null() -> Result<OwnedFd, SandboxError> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    Ok(file.map_err(SandboxError::host("opening /dev/null"))?.into())
}

/// What bubblewrap says up to the wrapper's word that all is set up, or up to its end.
async fn until_started(fd: OwnedFd) -> Result<String, SandboxError> {
    let failed = || SandboxError::host("reading what bubblewrap says");
    fcntl(&fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|e| failed()(e.into()))?;
    let watched = watch_readable(fd).map_err(failed())?;
    let mut said = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        let mut ready = watched.readable().await.map_err(failed())?;
        match nix::unistd::read(watched.get_ref(), &mut buffer) {
            Ok(0) => break,
            // More than this it never has to say.
            Ok(count) if said.len() < 64 << 10 => said.extend_from_slice(&buffer[..count]),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(nix::errno::Errno::EAGAIN) => ready.clear_ready(),
            Err(errno) => return Err(failed()(errno.into())),
        }
        if said.ends_with(STARTED.as_bytes()) {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}
