//! The part of an attempt that runs inside the sandbox: it joins a port of the sandbox's own loopback to the proxy's socket,
//! starts the agent, and tells at its end what the agent left running. `infradev` itself is mounted there for it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use infradev_supervise::{Exit, Sink, Spawn};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, UnixStream};

use crate::error::AgentError;
use crate::forbidden::forbid_calls;
use crate::proxy::PORT;

/// The word by which `infradev` is started as a relay; no verb for people.
pub const RELAY: &str = "agent-relay";

/// What the relay tells at the agent's end, on its third descriptor.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// Command lines of processes that were still there; none where nothing was told.
    pub left_running: Option<Vec<String>>,
    /// Why the agent could not be started.
    pub not_started: Option<String>,
}

/// Relays for one agent until that ends; gives the exit code. Both run as `uid`, where one is given.
///
/// # Errors
/// The uid is not granted, the port is taken, or the system gives no descriptors.
pub async fn relay(
    socket: PathBuf,
    uid: Option<u32>,
    report: OwnedFd,
    command: Vec<OsString>,
) -> Result<i32, AgentError> {
    if let Some(uid) = uid {
        become_user(uid).map_err(AgentError::io(format!("become user {uid}")))?;
    }
    // A machine that knows no filters forbids nothing, as it does ranks.
    let _ = forbid_calls();
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)))
        .await
        .map_err(AgentError::io("listen inside the sandbox"))?;
    tokio::spawn(join(listener, socket));
    let mut command = command.into_iter();
    let mut spawn = Spawn::new(command.next().unwrap_or_default());
    spawn.args = command.collect();
    spawn.env = std::env::vars_os().collect();
    let copy = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().map_err(AgentError::io("copy a descriptor"));
    spawn.stdin = Sink::Fd(copy(&std::io::stdin())?);
    spawn.stdout = Sink::Fd(copy(&std::io::stdout())?);
    spawn.stderr = Sink::Fd(copy(&std::io::stderr())?);
    let mut told = Told::default();
    let code = match spawn.start() {
        Ok(mut child) => {
            let exit = child.wait().await?;
            told.left_running = Some(left_running());
            match exit {
                Exit::Code(code) => code,
                Exit::Signal(signal) => 128 + signal,
                Exit::TimedOut => 1,
            }
        }
        Err(error) => {
            told.left_running = Some(Vec::new());
            told.not_started = Some(error.to_string());
            127
        }
    };
    // Without a reader nobody needs it.
    let _ = File::from(report).write_all(&serde_json::to_vec(&told).unwrap_or_default());
    Ok(code)
}

/// Gives the home folder's parts away, which the sandbox made as root, and changes to the uid for good.
fn become_user(uid: u32) -> std::io::Result<()> {
    if let Some(home) = std::env::var_os("HOME") {
        open_folders(Path::new(&home))?;
    }
    setgroups(&[])?;
    setresgid(Gid::from_raw(uid), Gid::from_raw(uid), Gid::from_raw(uid))?;
    setresuid(Uid::from_raw(uid), Uid::from_raw(uid), Uid::from_raw(uid))?;
    Ok(())
}

fn open_folders(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            match std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o777)) {
                // A skill, mounted for everyone to read.
                Err(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => continue,
                done => done?,
            }
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

async fn join(listener: TcpListener, socket: PathBuf) {
    loop {
        let Ok((mut inner, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let socket = socket.clone();
        tokio::spawn(async move {
            if let Ok(mut outer) = UnixStream::connect(socket).await {
                let _ = tokio::io::copy_bidirectional(&mut inner, &mut outer).await;
            }
        });
    }
}

/// Processes of this PID namespace beside its init, the relay and the dead.
fn left_running() -> Vec<String> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid > 1 && pid != own && !is_dead(&entry.path()) {
            found.push((pid, command_line(&entry.path())));
        }
    }
    found.sort();
    found.into_iter().map(|(_, line)| line).collect()
}

fn is_dead(process: &Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let (state, threads) = (fields.next().unwrap_or_default(), fields.nth(16));
    // One whose first thread has ended looks like a zombie, and its other threads live on.
    let alone = threads.and_then(|count| count.parse::<u32>().ok()).is_none_or(|count| count < 2);
    matches!(state, "" | "Z" | "X") && alone
}

fn command_line(process: &Path) -> String {
    let bytes = std::fs::read(process.join("cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let line = line.trim();
    let shown = if line.is_empty() {
        std::fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned()
    } else {
        line.to_owned()
    };
    shown.chars().take(200).collect()
}
