//! What this host grants, for `infradev doctor`.

use serde::Serialize;

use infradev_model::Classified;
use infradev_supervise::find_program;

use crate::cgroup_place::Places;
use crate::gpu::list_gpus;
use crate::locks::LockFolder;
use crate::rank_networks::RankNetworks;
use crate::report::MemoryLimit;
use crate::sandbox::Sandbox;
use crate::spec::{Limits, SandboxSpec};
use crate::uids::uid_separation_granted;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether all that InfraDev can use of it is there.
    pub ok: bool,
    /// Whether nothing works without it; what is not required costs precision or protection only.
    pub required: bool,
    /// What was found.
    pub detail: String,
    /// What to do, where something is missing.
    pub hint: Option<String>,
}

impl Check {
    fn new(name: &'static str, ok: bool, detail: impl Into<String>) -> Check {
        Check { name, ok, required: false, detail: detail.into(), hint: None }
    }

    fn required(self) -> Check {
        Check { required: true, ..self }
    }

    fn or(self, hint: &str) -> Check {
        let hint = (!self.ok).then(|| hint.to_owned());
        Check { hint, ..self }
    }
}

/// Tries each of the things that a sandbox is made of, for real.
pub async fn examine() -> Vec<Check> {
    vec![namespaces().await, uids(), control_groups().await, networks(), locks(), gpus()]
}

async fn namespaces() -> Check {
    let name = "sandbox";
    if find_program("bwrap").is_none() {
        let check = Check::new(name, false, "bubblewrap is not installed").required();
        return check.or("apt-get install bubblewrap");
    }
    let tried = match Sandbox::start(SandboxSpec::new("/bin/true")).await {
        Ok(mut sandbox) => {
            let version = sandbox.report().bubblewrap.clone().unwrap_or_default();
            sandbox.wait().await.map(|end| (version, end))
        }
        Err(error) => Err(error),
    };
    match tried {
        Ok((version, end)) if end.exit.success() => {
            Check::new(name, true, format!("bubblewrap {version} works")).required()
        }
        Ok((_, end)) => {
            Check::new(name, false, format!("a sandboxed `true` ended with {}", end.exit)).required()
        }
        Err(error) => Check { hint: error.hint(), ..Check::new(name, false, error.to_string()).required() },
    }
}

fn uids() -> Check {
    let granted = uid_separation_granted();
    let detail = if granted {
        "code under test runs under host uids of its own (from 200000)"
    } else {
        "code under test runs under this user's uid"
    };
    Check::new("uid separation", granted, detail).or("run as root, with the uids from 200000 mapped")
}

async fn control_groups() -> Check {
    let name = "memory limits";
    match Places::of_this_process().create(Limits { memory_bytes: 1 << 30, pids: 64 }) {
        Ok(group) => {
            let version = if group.version() == MemoryLimit::CgroupV1 { "1" } else { "2" };
            let pids = if group.bounds_pids() { "memory and processes" } else { "memory" };
            group.remove().await;
            Check::new(name, true, format!("control groups, version {version}, bound {pids}"))
        }
        Err(reason) => Check::new(name, false, format!("the process tree is sampled instead; {reason}"))
            .or("run as root, or under `systemd-run --user --scope -p Delegate=yes`"),
    }
}

fn networks() -> Check {
    let name = "rank networks";
    match RankNetworks::create(2).and_then(|networks| networks.counters()) {
        Ok(_) => Check::new(name, true, "bytes that each rank receives can be counted"),
        Err(error) => Check { hint: error.hint(), ..Check::new(name, false, error.to_string()) },
    }
}

fn locks() -> Check {
    match LockFolder::machine() {
        Ok(folder) => Check::new("locks", true, format!("in {}", folder.path().display())).required(),
        Err(error) => {
            Check { hint: error.hint(), ..Check::new("locks", false, error.to_string()).required() }
        }
    }
}

fn gpus() -> Check {
    match list_gpus() {
        Ok(gpus) if gpus.is_empty() => {
            Check::new("GPUs", true, "none; tasks that ask for some can't run here")
        }
        Ok(gpus) => {
            let unnamed = gpus.iter().any(|gpu| gpu.uuid.is_empty());
            let name = gpus.first().map_or("", |gpu| gpu.name.as_str());
            Check::new("GPUs", !unnamed, format!("{} × {name}", gpus.len()))
                .or("is `nvidia-smi` on PATH and working?")
        }
        Err(error) => Check { hint: error.hint(), ..Check::new("GPUs", false, error.to_string()) },
    }
}
