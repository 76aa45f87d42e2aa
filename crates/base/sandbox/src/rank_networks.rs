//! A network for each rank, joined by a bridge, so that what each rank receives can be counted from outside.
//!
//! None of the namespaces has a name: they live by our descriptors and by the processes in them, and end with both.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use infradev_supervise::Invocation;
use nix::sched::{CloneFlags, setns, unshare};
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::network::interface_bytes;

/// Bytes of one rank's interface, headers of Ethernet, IP and TCP included (below 1 % for large messages; acknowledgements
/// count on the other side).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankTraffic {
    /// Bytes that the rank received from other ranks.
    pub received: u64,
    /// Bytes that the rank sent to other ranks.
    pub sent: u64,
}

/// Network namespaces, one a rank. Rank *r* has `eth0` with `10.77.0.(r+1)/24` and a loopback of its own, so ranks meet
/// at rank 0's address, not at `127.0.0.1`.
#[derive(Debug)]
pub struct RankNetworks {
    hub: OwnedFd,
    ranks: Vec<OwnedFd>,
}

impl RankNetworks {
    /// Makes the namespaces and joins them. Takes some 10 ms; call it off the async runtime if that matters.
    ///
    /// # Errors
    /// No permission, no `ip` program, or a kernel without bridges or veth.
    pub fn create(count: usize) -> Result<RankNetworks, SandboxError> {
        if count == 0 || count > 200 {
            return Err(SandboxError::Spec { what: format!("{count} rank networks; 1 to 200 can be made") });
        }
        let mut namespaces = on_a_thread(move || make_namespaces(count + 1))?.map_err(|source| {
            if source.raw_os_error() == Some(libc::EPERM) {
                SandboxError::NetworksRefused { source }
            } else {
                SandboxError::Networks { message: format!("making a namespace: {source}") }
            }
        })?;
        let ranks = namespaces.split_off(1);
        let networks = RankNetworks { hub: namespaces.remove(0), ranks };
        ip_batch(&networks.hub, &networks.hub_commands())?;
        for (rank, namespace) in networks.ranks.iter().enumerate() {
            let address = networks.address(rank);
            let commands = format!(
                "link set lo up\nlink set r{rank} name eth0\naddr add {address}/24 dev eth0\nlink set eth0 up\n"
            );
            ip_batch(namespace, &commands)?;
        }
        Ok(networks)
    }

    fn hub_commands(&self) -> String {
        let us = std::process::id();
        let mut commands = "link add hub type bridge mcast_snooping 0\nlink set hub up\n".to_owned();
        for (rank, namespace) in self.ranks.iter().enumerate() {
            let fd = namespace.as_raw_fd();
            commands += &format!(
                "link add h{rank} type veth peer name r{rank}\nlink set r{rank} netns /proc/{us}/fd/{fd}\n\
                 link set h{rank} master hub\nlink set h{rank} up\n"
            );
        }
        commands
    }

    /// The address of a rank, as text.
    pub fn address(&self, rank: usize) -> String {
        format!("10.77.0.{}", rank + 1)
    }

    /// Copies of the ranks' namespace descriptors, in rank order, to hand to the launcher: a child forked for rank *r*
    /// enters with `setns(fd, CLONE_NEWNET)` before it gives up its uid.
    ///
    /// # Errors
    /// Too many open files.
    pub fn fds(&self) -> Result<Vec<OwnedFd>, SandboxError> {
        let copies = self.ranks.iter().map(OwnedFd::try_clone).collect::<io::Result<Vec<_>>>();
        copies.map_err(SandboxError::host("copying namespace descriptors"))
    }

    /// Bytes that each rank received and sent so far, read at the hub's ends, where no rank can reach. Take it before
    /// and after, and subtract.
    ///
    /// # Errors
    /// The hub can't be entered any more.
    pub fn counters(&self) -> Result<Vec<RankTraffic>, SandboxError> {
        let hub = self.hub.try_clone().map_err(SandboxError::host("copying a namespace descriptor"))?;
        let text = on_a_thread(move || {
            setns(hub, CloneFlags::CLONE_NEWNET)?;
            std::fs::read_to_string("/proc/thread-self/net/dev")
        })?
        .map_err(SandboxError::host("reading the hub's counters"))?;
        let rank = |rank: usize| {
            // What the hub's end sends is what the rank receives.
            let (sent, received) = interface_bytes(&text, &format!("h{rank}"))?;
            Some(RankTraffic { received, sent })
        };
        (0..self.ranks.len())
            .map(|r| {
                rank(r)
                    .ok_or_else(|| SandboxError::Networks { message: format!("rank {r} has left the hub") })
            })
            .collect()
    }
}

/// Runs it on a thread that ends with it: namespaces entered there are never ours.
fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SandboxError> {
    let thread = std::thread::Builder::new().name("network namespace".into()).spawn(work);
    let thread = thread.map_err(SandboxError::host("starting a thread"))?;
    thread.join().map_err(|_| SandboxError::Networks { message: "its thread panicked".to_owned() })
}

fn make_namespaces(count: usize) -> io::Result<Vec<OwnedFd>> {
    (0..count)
        .map(|_| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            // Neighbour discovery would add to the counters; kernels without IPv6 lack the files.
            for scope in ["all", "default"] {
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
            Ok(File::open("/proc/thread-self/ns/net")?.into())
        })
        .collect()
}

fn ip_batch(namespace: &OwnedFd, commands: &str) -> Result<(), SandboxError> {
    let namespace = namespace.try_clone().map_err(SandboxError::host("copying a namespace descriptor"))?;
    let ip = Invocation::new("ip").args(["-batch", "-"]).stdin(commands).netns(namespace);
    let output = ip.deadline(Duration::from_secs(60)).run()?;
    if output.status.success() {
        return Ok(());
    }
    Err(SandboxError::Networks {
        message: format!("`ip` ended with {}: {}", output.status, output.stderr_text()),
    })
}
