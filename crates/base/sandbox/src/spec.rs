//! What a trial asks of its sandbox.

use std::ffi::OsString;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;

use infradev_supervise::Sink;
use serde::{Deserialize, Serialize};

use crate::gpu::GpuIndex;

/// How a trial is held apart from the host. Every result reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bubblewrap: PID, network, mount, IPC and UTS namespaces.
    Namespaces,
    /// A session of its own and nothing more; only when asked for by name.
    None,
}

/// What a mount lets the sandbox do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Read.
    ReadOnly,
    /// Read and write.
    ReadWrite,
    /// Read, write and use as a device.
    Dev,
}

/// A file or folder of the host in view of the sandbox. [`Kind::None`] sees the whole host instead, so a trial that
/// must run there too gives `source` and `target` alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// On the host; absolute.
    pub source: PathBuf,
    /// Inside; absolute.
    pub target: PathBuf,
    /// What is allowed.
    pub mode: Mode,
}

impl Mount {
    /// A path seen read-only at the same place.
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Mount { source: path.clone(), target: path, mode: Mode::ReadOnly }
    }

    /// A path seen writable at the same place.
    pub fn read_write(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Mount { source: path.clone(), target: path, mode: Mode::ReadWrite }
    }
}

/// Which network the sandbox sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// A loopback of its own and nothing else.
    Isolated,
    /// The host's.
    Host,
}

/// Bounds on the whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, of its private `/tmp` too.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// Host uids of a trial. The program starts as root with the capabilities to change to them, and must.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uids {
    /// The trusted launcher's uid and gid.
    pub launcher: u32,
    /// The uid and gid of rank 0; rank *r* may have `ranks_base + r`, up to 14.
    pub ranks_base: u32,
}

/// A sandbox to start.
#[derive(Debug)]
pub struct SandboxSpec {
    /// How it is held apart.
    pub kind: Kind,
    /// Beside `/usr`, `/bin`, `/lib*`, a minimal `/etc`, `/proc` and `/dev`: the interpreter's prefix, the environment,
    /// the workspace. Parents are made as mode 0755 where they are missing.
    pub mounts: Vec<Mount>,
    /// Read-only files with these contents, at absolute paths outside every mount.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Bound of `/tmp`, of `/dev/shm` and of the home folder, each.
    pub tmp_bytes: u64,
    /// The trial's GPUs, leased with [`crate::GpuLease`].
    pub gpus: Vec<GpuIndex>,
    /// Its network.
    pub network: Network,
    /// Its limits.
    pub limits: Limits,
    /// Its whole environment. `HOME` ([`crate::HOME`]; a path that does not exist where the kind is none), `TMPDIR`,
    /// `PATH`, `USER`, `LOGNAME` and `CUDA_VISIBLE_DEVICES` are set where missing.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory inside.
    pub cwd: PathBuf,
    /// Absolute path inside.
    pub program: PathBuf,
    /// Arguments after the program's name.
    pub args: Vec<OsString>,
    /// Descriptors to hand over, with their numbers inside (3 or more).
    pub fds: Vec<(OwnedFd, RawFd)>,
    /// Its standard input; empty where none is given.
    pub stdin: Option<OwnedFd>,
    /// Where its standard output goes.
    pub stdout: Sink,
    /// Where its standard error goes.
    pub stderr: Sink,
    /// Host uids that it will change to; `None` runs it all under one uid.
    pub uids: Option<Uids>,
    /// Let the launcher enter the network namespaces of [`crate::RankNetworks`] (adds `CAP_SYS_ADMIN`).
    pub enters_networks: bool,
}

impl SandboxSpec {
    /// A program in a namespace sandbox with its own loopback, 8 GiB of memory, 512 processes, 1 GiB of `/tmp` and
    /// nothing mounted.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        SandboxSpec {
            kind: Kind::Namespaces,
            mounts: Vec::new(),
            files: Vec::new(),
            tmp_bytes: 1 << 30,
            gpus: Vec::new(),
            network: Network::Isolated,
            limits: Limits { memory_bytes: 8 << 30, pids: 512 },
            env: Vec::new(),
            cwd: PathBuf::from("/"),
            program: program.into(),
            args: Vec::new(),
            fds: Vec::new(),
            stdin: None,
            stdout: Sink::Null,
            stderr: Sink::Null,
            uids: None,
            enters_networks: false,
        }
    }
}
