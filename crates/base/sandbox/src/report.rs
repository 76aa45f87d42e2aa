//! How a trial was in fact held, for its result.

use serde::{Deserialize, Serialize};

use crate::spec::{Kind, Network};

/// What enforces the limits on memory and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryLimit {
    /// A control group, version 1.
    CgroupV1,
    /// A control group, version 2.
    CgroupV2,
    /// The tree is sampled, and killed when over; short peaks escape.
    Watched,
}

/// How a sandbox in fact holds its trial. Part of every result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// Namespaces or none.
    pub kind: Kind,
    /// The code under test can be given another host uid than ours.
    pub uid_separation: bool,
    /// What enforces the limits.
    pub memory_limit: MemoryLimit,
    /// Its own loopback, or the host's network.
    pub network: Network,
    /// Bubblewrap's version, where it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bubblewrap: Option<String>,
}
