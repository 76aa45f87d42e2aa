//! The trusted launcher inside the sandbox, and the worlds of ranks that it forks. One dispatcher owns the truth about
//! every rank and turns channels and exits into one stream of events.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use infradev_model::Detail;
use infradev_supervise::{LogBounds, LogSink};
use rand::RngCore;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::frames::{FrameError, Key, Sender, channel, hex};
use crate::messages::{FromLauncher, FromRank, LauncherUids, ToLauncher, ToRank};

/// How long a dead rank's channel is still read, and how long a rank that closed its channel may take to die.
const DRAIN: Duration = Duration::from_millis(500);
/// How long the launcher gets for its own small tasks.
const ERRAND: Duration = Duration::from_secs(20);
/// How long a stack is waited for; a rank whose signals are blocked or that is stopped never writes one.
const STACK: Duration = Duration::from_secs(2);
/// Worlds that can be open at once: each has a uid of its own.
pub const SLOTS: u32 = 14;

/// The launcher itself failed: a fault, not the patch's.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// It said so.
    #[error("the launcher could not work: {0}")]
    Fault(String),
    /// A module of the framework does not import, in a process that holds nothing of a patch.
    #[error("{0}")]
    Framework(String),
    /// It ended, or its channel did.
    #[error("the launcher ended by itself ({0})")]
    Gone(String),
    /// Too many worlds at once, or a system call failed.
    #[error("{0}")]
    Refused(String),
}

impl LauncherError {
    /// Whether the launcher is lost, rather than something of ours refused. Once ranks have run that is no fault of the machine:
    /// what they hold in memory or processes can end it, and then it is theirs to answer for.
    pub fn is_lost(&self) -> bool {
        !matches!(self, LauncherError::Refused(_))
    }

    /// What is written of the cases that it took with it.
    pub(crate) fn detail(&self, out_of_memory: bool) -> Detail {
        let exception = if out_of_memory { "OutOfMemory" } else { "LauncherLost" };
        let message = format!("after ranks of this patch had run: {self}");
        Detail { exception: exception.into(), message, ..Detail::default() }
    }
}

impl From<FrameError> for LauncherError {
    fn from(error: FrameError) -> LauncherError {
        LauncherError::Gone(error.to_string())
    }
}

/// How a rank's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankExit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It closed its channel and lived on.
    ClosedChannel,
}

impl RankExit {
    /// As the exception column shows it: `SIGSEGV`, `exit 3`.
    pub fn name(&self) -> String {
        match self {
            RankExit::Code(code) => format!("exit {code}"),
            RankExit::Signal(signal) => nix::sys::signal::Signal::try_from(*signal)
                .map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_string()),
            RankExit::ClosedChannel => "channel closed".to_string(),
        }
    }
}

/// What a rank did.
#[derive(Debug)]
pub enum RankEvent {
    /// It sent a sealed message.
    Message(FromRank, Vec<u8>),
    /// Bytes came that its kit did not send.
    Forged(String),
    /// It is dead, and all that it had sent has been read.
    Dead(RankExit),
}

enum Raw {
    Message(FromRank, Vec<u8>),
    Forged(String),
    Closed,
}

struct Rank {
    /// What the writer has yet to send.
    outgoing: mpsc::UnboundedSender<(Vec<u8>, Vec<u8>)>,
    writer: JoinHandle<()>,
    reader: JoinHandle<()>,
    log: LogSink,
    stack: LogSink,
    exit: Option<RankExit>,
    closed: bool,
    dead: bool,
    /// It has said hello: from then on SIGUSR1 makes it write its stacks, before that it would kill it.
    greeted: bool,
    drain: Option<Instant>,
}

/// Our ends of what a rank is forked with.
struct RankEnd {
    stream: UnixStream,
    key: Key,
    log: LogSink,
    stack: LogSink,
}

/// A world of ranks.
pub struct World {
    /// Its number, counted from 0 over the trial.
    pub launch: u32,
    /// Ranks.
    pub size: u32,
    slot: u32,
    ranks: Vec<Rank>,
}

impl World {
    /// Whether this rank is known to be dead.
    pub fn is_dead(&self, rank: u32) -> bool {
        self.ranks[rank as usize].dead
    }

    /// Sends a rank a message; a rank that cannot be reached is about to be reported dead.
    ///
    /// Does not wait: one that never reads, since it was stopped or hangs, must not keep deadlines from being held.
    pub fn send(&mut self, rank: u32, message: &ToRank<'_>, payload: &[u8]) {
        match serde_json::to_vec(message) {
            Ok(header) => {
                let _ = self.ranks[rank as usize].outgoing.send((header, payload.to_vec()));
            }
            Err(error) => tracing::error!(rank, %error, "a message of ours cannot be written"),
        }
    }

    /// What faulthandler wrote of a rank's stack, bounded.
    pub fn stack(&self, rank: u32) -> String {
        let stack = &self.ranks[rank as usize].stack;
        stack.catch_up();
        own_frames(&stack.last(64 << 10))
    }
}

/// Whether a dump is written to its end: faulthandler writes it piece by piece, the main thread last, and stops at
/// that thread's outermost frame (the launcher's `-c`) or after a hundred frames with dots.
fn is_whole(dump: &str) -> bool {
    let Some(lines) = dump.strip_suffix('\n') else { return false };
    let last = lines.rsplit('\n').next().unwrap_or_default();
    last == "  ..." || (last.starts_with("  File \"<string>\", line ") && last.ends_with(" in <module>"))
}

/// The newest dump in faulthandler's text, without the frames of the test runner below the test: faulthandler writes the
/// innermost frame first.
fn own_frames(text: &str) -> String {
    let newest = text.rfind("Fatal Python error").or_else(|| text.rfind("Current thread")).unwrap_or(0);
    let runner = |line: &&str| {
        line.contains("/_pytest/") || line.contains("/pluggy/") || line.contains("/infradev_probe/")
    };
    let kept: Vec<&str> = text[newest..].lines().filter(|line| !runner(line)).take(24).collect();
    kept.join("\n").trim_end().to_string()
}

/// What a world's ranks wrote, by rank.
#[derive(Debug)]
pub struct WorldLogs {
    /// The world's number.
    pub launch: u32,
    /// Output and stacks by rank.
    pub ranks: Vec<Vec<u8>>,
}

/// What a launch needs.
pub struct LaunchRequest<'a> {
    /// Ranks.
    pub size: u32,
    /// Environment of all ranks.
    pub env: &'a BTreeMap<String, String>,
    /// Environment by rank.
    pub rank_env: Vec<BTreeMap<String, String>>,
    /// Working directory.
    pub cwd: &'a str,
    /// A network namespace for each rank, or none.
    pub networks: Vec<BorrowedFd<'a>>,
    /// What the ranks run.
    pub args: Value,
}

/// The trusted launcher and all worlds that are alive.
pub struct Launcher {
    control: Sender,
    replies: mpsc::UnboundedReceiver<Result<FromLauncher, String>>,
    reader: JoinHandle<()>,
    raw: mpsc::Receiver<(u32, u32, Raw)>,
    raw_sender: mpsc::Sender<(u32, u32, Raw)>,
    worlds: BTreeMap<u32, World>,
    ready: VecDeque<(u32, u32, RankEvent)>,
    made: u32,
    /// Launches so far.
    pub launches: u32,
    /// Whether ranks have run.
    pub launched: bool,
    /// Seconds that the framework's import took.
    pub import_s: f64,
    /// What a template writes, read so that it never waits for us.
    sinks: Vec<LogSink>,
}

/// A fresh random key.
pub fn fresh_key() -> Key {
    let mut key = [0; 32];
    rand::rng().fill_bytes(&mut key);
    key
}

impl Launcher {
    /// Greets the launcher and waits until it has imported the framework.
    pub async fn greet(
        stream: UnixStream,
        framework: &[String],
        uids: Option<LauncherUids>,
        gid: Option<u32>,
        deadline: Duration,
    ) -> Result<Launcher, LauncherError> {
        Launcher::greet_with(stream, [0; 32], framework, uids, gid, deadline).await
    }

    async fn greet_with(
        stream: UnixStream,
        first: Key,
        framework: &[String],
        uids: Option<LauncherUids>,
        gid: Option<u32>,
        deadline: Duration,
    ) -> Result<Launcher, LauncherError> {
        let key = fresh_key();
        let (mut control, mut receiver) = channel(stream, first);
        control.send(&ToLauncher::Hello { schema: 1, key: hex(&key), framework, uids, gid }, &[]).await?;
        control.rekey(key);
        receiver.rekey(key);
        let (sender, mut replies) = mpsc::unbounded_channel();
        let reader = tokio::spawn(async move {
            loop {
                let reply = match receiver.next().await {
                    Ok(Some(frame)) => frame.message::<FromLauncher>().map_err(|error| error.to_string()),
                    Ok(None) => Err("its channel ended".to_string()),
                    Err(error) => Err(error.to_string()),
                };
                let last = reply.is_err();
                if sender.send(reply).is_err() || last {
                    return;
                }
            }
        });
        let import_s = match tokio::time::timeout(deadline, replies.recv()).await {
            Ok(Some(Ok(FromLauncher::Ready { import_s, threads }))) => {
                if threads > 1 {
                    tracing::warn!(threads, "the launcher has threads after importing the framework");
                }
                import_s
            }
            Ok(Some(Ok(FromLauncher::Fault { message }))) => return Err(LauncherError::Framework(message)),
            Ok(Some(Ok(other))) => return Err(LauncherError::Gone(format!("it said {other:?} first"))),
            Ok(Some(Err(error))) => return Err(LauncherError::Gone(error)),
            Ok(None) => return Err(LauncherError::Gone("its channel ended".into())),
            Err(_) => {
                let framework = framework.join(", ");
                return Err(LauncherError::Fault(format!(
                    "importing {framework} took longer than {} s",
                    deadline.as_secs()
                )));
            }
        };
        let (raw_sender, raw) = mpsc::channel(64);
        Ok(Launcher {
            control,
            replies,
            reader,
            raw,
            raw_sender,
            worlds: BTreeMap::new(),
            ready: VecDeque::new(),
            made: 0,
            launches: 0,
            launched: false,
            import_s,
            sinks: Vec::new(),
        })
    }

    /// Forks a world of ranks; returns its number.
    pub async fn launch(&mut self, request: LaunchRequest<'_>) -> Result<u32, LauncherError> {
        let (launch, slot, ends) = self.ask_for_ranks(request).await?;
        let mut ranks = Vec::new();
        for (number, end) in ends.into_iter().enumerate() {
            ranks.push(self.attend(launch, number as u32, end));
        }
        self.worlds.insert(launch, World { launch, size: ranks.len() as u32, slot, ranks });
        self.await_launched(launch).await?;
        Ok(launch)
    }

    /// Forks one rank that forks worlds itself, and greets it as a launcher of its own. It holds its slot until
    /// [`Launcher::end`] of the number that is returned.
    pub async fn fork_template(
        &mut self,
        request: LaunchRequest<'_>,
        patience: Duration,
    ) -> Result<(u32, Launcher), LauncherError> {
        let (launch, slot, mut ends) = self.ask_for_ranks(request).await?;
        // No rank of it is attended to here: its channel is the control channel of its own worlds.
        self.worlds.insert(launch, World { launch, size: 0, slot, ranks: Vec::new() });
        self.await_launched(launch).await?;
        let end = ends.pop().ok_or_else(|| LauncherError::Refused("a template is one rank".to_string()))?;
        match Launcher::greet_with(end.stream, end.key, &[], None, None, patience).await {
            Ok(mut template) => {
                template.sinks = vec![end.log, end.stack];
                Ok((launch, template))
            }
            Err(error) => {
                self.end(launch).await?;
                Err(error)
            }
        }
    }

    async fn await_launched(&mut self, launch: u32) -> Result<(), LauncherError> {
        let launched =
            |reply: &FromLauncher| matches!(reply, FromLauncher::Launched { launch: l } if *l == launch);
        self.await_reply(launched).await?;
        self.launched = true;
        Ok(())
    }

    /// Has the launcher fork; returns the number, the slot, and our ends by rank.
    async fn ask_for_ranks(
        &mut self,
        request: LaunchRequest<'_>,
    ) -> Result<(u32, u32, Vec<RankEnd>), LauncherError> {
        let slot = (0..SLOTS)
            .find(|slot| self.worlds.values().all(|world| world.slot != *slot))
            .ok_or_else(|| LauncherError::Refused(format!("{SLOTS} worlds are open already")))?;
        let system =
            |error: std::io::Error| LauncherError::Refused(format!("no channel for a rank: {error}"));
        let launch = self.launches;
        self.launches += 1;
        let mut keys = Vec::new();
        let mut handed: Vec<OwnedFd> = Vec::new();
        let mut ends = Vec::new();
        for _ in 0..request.size {
            let key = fresh_key();
            keys.push(hex(&key));
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(system)?;
            ours.set_nonblocking(true).map_err(system)?;
            let stream = UnixStream::from_std(ours).map_err(system)?;
            let (log, log_end) = LogSink::open(LogBounds::default()).map_err(system)?;
            let (stack, stack_end) =
                LogSink::open(LogBounds { head: 16 << 10, tail: 16 << 10 }).map_err(system)?;
            handed.extend([OwnedFd::from(theirs), log_end, stack_end]);
            ends.push(RankEnd { stream, key, log, stack });
        }
        let mut fds: Vec<BorrowedFd<'_>> = Vec::new();
        for rank in 0..request.size as usize {
            fds.extend(handed[rank * 3..rank * 3 + 3].iter().map(AsFd::as_fd));
            if let Some(network) = request.networks.get(rank) {
                fds.push(*network);
            }
        }
        let message = ToLauncher::Launch {
            launch,
            size: request.size,
            slot,
            keys,
            env: request.env,
            rank_env: request.rank_env,
            cwd: request.cwd,
            netns: !request.networks.is_empty(),
            args: request.args,
        };
        self.control.send_with(&message, &[], &fds).await?;
        drop(handed);
        Ok((launch, slot, ends))
    }

    /// Reads and writes a rank's channel from now on.
    fn attend(&self, launch: u32, rank: u32, end: RankEnd) -> Rank {
        let (mut sender, mut receiver) = channel(end.stream, end.key);
        let (outgoing, mut waiting) = mpsc::unbounded_channel::<(Vec<u8>, Vec<u8>)>();
        let writer = tokio::spawn(async move {
            while let Some((header, payload)) = waiting.recv().await {
                if let Err(error) = sender.send_written(&header, &[&payload], &[]).await {
                    tracing::debug!(rank, %error, "a rank cannot be reached");
                    return;
                }
            }
        });
        let events = self.raw_sender.clone();
        let reader = tokio::spawn(async move {
            loop {
                let raw = match receiver.next().await {
                    Ok(Some(frame)) => match frame.message::<FromRank>() {
                        Ok(message) => Raw::Message(message, frame.payload),
                        Err(error) => Raw::Forged(error.to_string()),
                    },
                    Ok(None) | Err(FrameError::Io(_)) => Raw::Closed,
                    Err(error) => Raw::Forged(error.to_string()),
                };
                let last = !matches!(raw, Raw::Message(..));
                if events.send((launch, rank, raw)).await.is_err() || last {
                    return;
                }
            }
        });
        Rank {
            outgoing,
            writer,
            reader,
            log: end.log,
            stack: end.stack,
            exit: None,
            closed: false,
            dead: false,
            greeted: false,
            drain: None,
        }
    }

    /// A world that is alive.
    pub fn world(&mut self, launch: u32) -> Option<&mut World> {
        self.worlds.get_mut(&launch)
    }

    /// The next event of any rank, or `None` at the deadline.
    pub async fn next_event(
        &mut self,
        deadline: Instant,
    ) -> Result<Option<(u32, u32, RankEvent)>, LauncherError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let drain =
                self.worlds.values().flat_map(|world| &world.ranks).filter_map(|rank| rank.drain).min();
            let wake = drain.map_or(deadline, |drain| drain.min(deadline));
            tokio::select! {
                biased;
                raw = self.raw.recv() => {
                    if let Some((launch, rank, raw)) = raw {
                        self.take_raw(launch, rank, raw);
                    }
                }
                reply = self.replies.recv() => self.take_reply(reply)?,
                () = tokio::time::sleep_until(wake) => {
                    self.end_drains();
                    if self.ready.is_empty() && Instant::now() >= deadline {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn take_raw(&mut self, launch: u32, rank: u32, raw: Raw) {
        let Some(entry) = self.worlds.get_mut(&launch).map(|world| &mut world.ranks[rank as usize]) else {
            return;
        };
        match raw {
            // The one that comes before anything of the repository runs is to be believed.
            Raw::Message(FromRank::Hello { .. }, _) if entry.greeted => {
                let evidence = "a second greeting".to_string();
                self.ready.push_back((launch, rank, RankEvent::Forged(evidence)));
            }
            Raw::Message(message, payload) => {
                entry.greeted |= matches!(message, FromRank::Hello { .. });
                self.ready.push_back((launch, rank, RankEvent::Message(message, payload)));
            }
            Raw::Forged(evidence) => self.ready.push_back((launch, rank, RankEvent::Forged(evidence))),
            Raw::Closed => {
                entry.closed = true;
                match entry.exit.clone() {
                    Some(exit) if !entry.dead => {
                        entry.dead = true;
                        entry.drain = None;
                        self.ready.push_back((launch, rank, RankEvent::Dead(exit)));
                    }
                    Some(_) => {}
                    None => entry.drain = Some(Instant::now() + DRAIN),
                }
            }
        }
    }

    fn take_reply(&mut self, reply: Option<Result<FromLauncher, String>>) -> Result<(), LauncherError> {
        match reply {
            Some(Ok(FromLauncher::Exited { launch, rank, code, signal })) => {
                let exit = match (code, signal) {
                    (_, Some(signal)) => RankExit::Signal(signal),
                    (code, None) => RankExit::Code(code.unwrap_or(0)),
                };
                let world = self.worlds.get_mut(&launch);
                if let Some(entry) = world.and_then(|world| world.ranks.get_mut(rank as usize)) {
                    entry.exit = Some(exit.clone());
                    if entry.closed && !entry.dead {
                        entry.dead = true;
                        entry.drain = None;
                        self.ready.push_back((launch, rank, RankEvent::Dead(exit)));
                    } else if !entry.dead {
                        entry.drain = Some(Instant::now() + DRAIN);
                    }
                }
                Ok(())
            }
            Some(Ok(FromLauncher::Fault { message })) => Err(LauncherError::Fault(message)),
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(LauncherError::Gone(error)),
            None => Err(LauncherError::Gone("its channel ended".into())),
        }
    }

    fn end_drains(&mut self) {
        let now = Instant::now();
        for world in self.worlds.values_mut() {
            for (rank, entry) in world.ranks.iter_mut().enumerate() {
                if entry.drain.is_some_and(|drain| drain <= now) && !entry.dead {
                    entry.dead = true;
                    entry.drain = None;
                    let exit = entry.exit.clone().unwrap_or(RankExit::ClosedChannel);
                    self.ready.push_back((world.launch, rank as u32, RankEvent::Dead(exit)));
                }
            }
        }
    }

    async fn await_reply(&mut self, wanted: impl Fn(&FromLauncher) -> bool) -> Result<(), LauncherError> {
        let deadline = Instant::now() + ERRAND;
        loop {
            let reply = tokio::time::timeout_at(deadline, self.replies.recv())
                .await
                .map_err(|_| LauncherError::Gone(format!("no answer within {} s", ERRAND.as_secs())))?;
            if let Some(Ok(reply)) = &reply
                && wanted(reply)
            {
                return Ok(());
            }
            self.take_reply(reply)?;
        }
    }

    /// Asks each of these ranks for its stack and waits a little for it.
    pub async fn dump_stacks(&mut self, launch: u32, ranks: &[u32]) -> Result<(), LauncherError> {
        let Some(world) = self.worlds.get(&launch) else { return Ok(()) };
        let ranks: Vec<u32> =
            ranks.iter().copied().filter(|rank| world.ranks[*rank as usize].greeted).collect();
        let before: Vec<u64> = ranks.iter().map(|rank| world.ranks[*rank as usize].stack.offset()).collect();
        for rank in &ranks {
            self.signal(launch, Some(*rank), nix::sys::signal::Signal::SIGUSR1 as i32).await?;
        }
        let deadline = Instant::now() + STACK;
        let mut pause = tokio::time::interval(Duration::from_millis(10));
        while Instant::now() < deadline {
            pause.tick().await;
            let Some(world) = self.worlds.get(&launch) else { return Ok(()) };
            let written = |(rank, before): (&u32, &u64)| {
                let stack = &world.ranks[*rank as usize].stack;
                stack.catch_up();
                stack.offset() > *before && is_whole(&stack.last(4 << 10))
            };
            if ranks.iter().zip(&before).all(written) {
                break;
            }
        }
        Ok(())
    }

    /// Signals one rank of a world, or all.
    pub async fn signal(&mut self, launch: u32, rank: Option<u32>, signal: i32) -> Result<(), LauncherError> {
        Ok(self.control.send(&ToLauncher::Signal { launch, rank, signal }, &[]).await?)
    }

    /// Kills a world's ranks and all that they left behind, and gives what they wrote.
    pub async fn end(&mut self, launch: u32) -> Result<Option<WorldLogs>, LauncherError> {
        if !self.worlds.contains_key(&launch) {
            return Ok(None);
        }
        self.control.send(&ToLauncher::End { launch }, &[]).await?;
        self.await_reply(|reply| matches!(reply, FromLauncher::Ended { launch: l } if *l == launch)).await?;
        let Some(world) = self.worlds.remove(&launch) else { return Ok(None) };
        self.ready.retain(|(l, ..)| *l != launch);
        let mut ranks = Vec::new();
        for rank in world.ranks {
            rank.writer.abort();
            rank.reader.abort();
            rank.log.catch_up();
            rank.stack.catch_up();
            let mut bytes = rank.log.contents().with_note();
            let stack = rank.stack.contents().with_note();
            if !stack.is_empty() {
                bytes.extend_from_slice(b"\n--- stacks ---\n");
                bytes.extend_from_slice(&stack);
            }
            ranks.push(bytes);
        }
        Ok(Some(WorldLogs { launch, ranks }))
    }

    /// Creates a directory that worlds share; returns its number to name it by.
    pub async fn shared_folder(&mut self, parent: &str, name: &str) -> Result<String, LauncherError> {
        self.made += 1;
        let path = format!("{parent}/{}-{name}", self.made);
        self.control.send(&ToLauncher::Mkdir { path: &path, mode: 0o1777 }, &[]).await?;
        self.await_reply(|reply| matches!(reply, FromLauncher::Made { path: p } if *p == path)).await?;
        Ok(path)
    }

    /// Tells the launcher to end.
    pub async fn shutdown(mut self) {
        let _ = self.control.send(&ToLauncher::Shutdown {}, &[]).await;
        self.reader.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn a_dump_is_whole_with_its_outermost_frame_and_never_before() {
        let dump = "Thread 0x01 (most recent call first):\n  File \"/usr/lib/threading.py\", line 1 in wait\n\n\
                    Current thread 0x02 (most recent call first):\n  File \"/workspace/test_x.py\", line 9 in <module>\n  \
                    File \"/kit/infradev_probe/launcher.py\", line 40 in main\n  File \"<string>\", line 1 in <module>\n";
        for end in 0..dump.len() {
            assert!(!is_whole(&dump[..end]), "{}", &dump[..end]);
        }
        assert!(is_whole(dump));
    }

    #[test]
    fn a_dump_of_a_hundred_frames_ends_with_dots() {
        assert!(is_whole(
            "Current thread 0x02 (most recent call first):\n  File \"a.py\", line 9 in f\n  ...\n"
        ));
    }
}
