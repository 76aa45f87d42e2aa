//! The environment in which ranks find each other and the code under test: ports, paths, caches and threads are ours, not
//! the host's.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where things are for whoever runs inside. In namespaces these are fixed paths, without a sandbox paths of the host.
#[derive(Debug, Clone)]
pub struct InsidePaths {
    /// The patched tree.
    pub workspace: String,
    /// The patched tree with the patch's own conftest and runner configuration, where there is one.
    pub suspect: String,
    /// The base tree, for probes that compare with it.
    pub base: String,
    /// Observers.
    pub probes: String,
    /// The kit's folder, to be put on `sys.path`.
    pub kit: String,
    /// A private folder that ranks may write.
    pub scratch: String,
    /// Where ranks look for bytecode, and keep it where they may: never in the tree.
    pub pycache: String,
}

/// All that worlds of one trial have in common.
#[derive(Debug, Clone)]
pub struct WorldSetup {
    /// Paths inside.
    pub paths: InsidePaths,
    /// Roots relative to the tree.
    pub import_roots: Vec<String>,
    /// The task's own variables, and those of the devices.
    pub env: BTreeMap<String, String>,
    /// `cpu` or `cuda`.
    pub device: &'static str,
    /// Whether ports are the sandbox's own; else a free one of the host is looked for.
    pub own_network: bool,
    /// Files of the tree whose lines ranks follow as they run; usually none.
    pub reach: Vec<String>,
    /// Whether ranks may keep bytecode that they compiled, where they can.
    pub keeps_bytecode: bool,
    /// Folders of earlier ranks that the first rank of the next world removes.
    pub leavings: Vec<String>,
}

/// How ranks of a world reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// All on the sandbox's loopback.
    Shared,
    /// A network namespace a rank, joined by a bridge.
    PerRank,
}

impl WorldSetup {
    /// Variables of all ranks.
    pub fn common_env(&self, launch: u32, size: u32, network: Network) -> BTreeMap<String, String> {
        let (address, interface) = match network {
            Network::Shared => ("127.0.0.1", "lo"),
            Network::PerRank => ("10.77.0.1", "eth0"),
        };
        let port = if self.own_network { 29_500 + (launch % 1000) as u16 } else { free_port() };
        let scratch = &self.paths.scratch;
        let mut env: BTreeMap<String, String> = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_string()),
            ("HOME", format!("{scratch}/home")),
            ("TMPDIR", scratch.clone()),
            ("XDG_CACHE_HOME", format!("{scratch}/cache")),
            ("TORCHINDUCTOR_CACHE_DIR", format!("{scratch}/cache/inductor")),
            ("TRITON_CACHE_DIR", format!("{scratch}/cache/triton")),
            ("LANG", "C.UTF-8".to_string()),
            ("TZ", "UTC".to_string()),
            ("OMP_NUM_THREADS", "1".to_string()),
            ("OPENBLAS_NUM_THREADS", "1".to_string()),
            ("PYTHONHASHSEED", "0".to_string()),
            ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1".to_string()),
            ("HF_HUB_OFFLINE", "1".to_string()),
            ("TRANSFORMERS_OFFLINE", "1".to_string()),
            ("WORLD_SIZE", size.to_string()),
            ("LOCAL_WORLD_SIZE", size.to_string()),
            ("MASTER_ADDR", address.to_string()),
            ("MASTER_PORT", port.to_string()),
            ("GLOO_SOCKET_IFNAME", interface.to_string()),
            ("NCCL_SOCKET_IFNAME", interface.to_string()),
            ("NCCL_NVLS_ENABLE", "0".to_string()),
            ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1".to_string()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect();
        if network == Network::PerRank {
            // Every byte then crosses the metered interfaces (measured: 0.000 of the payload otherwise).
            for name in ["NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"] {
                env.insert(name.to_string(), "1".to_string());
            }
        }
        env.extend(self.env.clone());
        env
    }

    /// Variables by rank.
    pub fn rank_env(&self, size: u32) -> Vec<BTreeMap<String, String>> {
        (0..size)
            .map(|rank| {
                [("RANK", rank), ("LOCAL_RANK", rank), ("GROUP_RANK", 0)]
                    .into_iter()
                    .map(|(name, value)| (name.to_string(), value.to_string()))
                    .collect()
            })
            .collect()
    }

    /// What ranks of both suites are told of a tree.
    pub fn common_args(&self, tree: &str) -> Value {
        let reach: Vec<String> = self.reach.iter().map(|file| format!("{tree}/{file}")).collect();
        json!({
            "root": tree,
            "import_roots": self.import_roots_in(tree),
            "pycache": self.paths.pycache,
            "device": self.device,
            "reach": reach,
            "keeps_bytecode": self.keeps_bytecode,
            "leavings": self.leavings,
        })
    }

    /// Import roots inside a tree, as absolute paths.
    pub fn import_roots_in(&self, tree: &str) -> Vec<String> {
        let inside = |root: &String| match root.as_str() {
            "." => tree.to_string(),
            root => format!("{tree}/{}", root.trim_start_matches("./")),
        };
        self.import_roots.iter().map(inside).collect()
    }
}

fn free_port() -> u16 {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    port.map_or(29_500, |address| address.port())
}
