//! Where code under test runs.
//!
//! A [`Sandbox`] holds one trial: a bubblewrap of PID, network, mount, IPC and UTS namespaces with only what the trial
//! needs in view, limits on memory and processes, and, where the host grants it, host uids of its own. Meters read it
//! from outside: bytes on its loopback ([`Sandbox::loopback_bytes`]), memory of its control group, and bytes that each
//! rank received ([`RankNetworks`]).
//!
//! Nothing here outlives this process: namespaces have no names, locks are `flock`s, every process dies with its
//! parent. Control groups are the one exception; [`sweep`] removes those of dead owners.

mod bubblewrap;
mod cgroup;
mod cgroup_place;
mod error;
mod examine;
mod gpu;
mod locks;
mod network;
mod privilege;
mod rank_networks;
mod report;
mod root;
mod sandbox;
mod spec;
mod uids;
mod view;
mod watch;

pub use cgroup_place::sweep;
pub use error::SandboxError;
pub use examine::{Check, examine};
pub use gpu::{Gpu, GpuIndex, GpuLease, list_gpus};
pub use locks::LockFolder;
pub use network::LoopbackBytes;
pub use rank_networks::{RankNetworks, RankTraffic};
pub use report::{MemoryLimit, SandboxReport};
pub use root::HOME;
pub use sandbox::{Sandbox, SandboxEnd, bubblewrap_version};
pub use spec::{Kind, Limits, Mode, Mount, Network, SandboxSpec, Uids};
pub use uids::{UidLease, uid_separation_granted};
pub use watch::Excess;
