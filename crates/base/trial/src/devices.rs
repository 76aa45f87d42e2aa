//! What the host says of a trial's GPUs: evidence of a fault that no patch can make.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use infradev_model::{Fault, FaultKind};

/// Memory in use on a leased GPU before the trial, MiB, above which somebody else works there. Driver and display hold some.
const FOREIGN_MIB: u64 = 1024;

/// Memory of others on the trial's GPUs, before anything of the trial runs.
pub fn foreign_memory(gpus: &[u32]) -> Option<Fault> {
    if gpus.is_empty() {
        return None;
    }
    let found = infradev_sandbox::list_gpus().ok()?;
    let taken = found.iter().find(|gpu| gpus.contains(&gpu.index) && gpu.memory_used_mib > FOREIGN_MIB)?;
    let evidence = format!(
        "GPU {} ({}) holds {} MiB of others before the trial began",
        taken.index, taken.name, taken.memory_used_mib
    );
    Some(Fault { kind: FaultKind::ForeignGpuMemory, evidence })
}

/// A moment on the kernel log's clock, microseconds since boot.
#[derive(Debug, Clone, Copy)]
pub struct Moment(u64);

impl Moment {
    /// Now.
    pub fn now() -> Moment {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let seconds: f64 = uptime.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        Moment((seconds * 1e6) as u64)
    }
}

/// An Xid of the driver (a GPU's error report) in the kernel's log since a moment.
pub fn xid_since(moment: Moment, gpus: &[u32]) -> Option<Fault> {
    if gpus.is_empty() {
        return None;
    }
    let mut log = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open("/dev/kmsg").ok()?;
    let mut record = [0u8; 8192];
    // Each read gives one record, and an error where there is none left.
    while let Ok(length) = log.read(&mut record) {
        if let Some(line) = xid_of(&String::from_utf8_lossy(&record[..length]), moment) {
            return Some(Fault { kind: FaultKind::Gpu, evidence: format!("the kernel's log says: {line}") });
        }
    }
    None
}

/// The message of a `/dev/kmsg` record (`priority,sequence,microseconds,flags;message`) that reports an Xid.
fn xid_of(record: &str, since: Moment) -> Option<String> {
    let (prefix, message) = record.split_once(';')?;
    let at: u64 = prefix.split(',').nth(2)?.parse().ok()?;
    let message = message.lines().next()?;
    (at >= since.0 && message.contains("NVRM: Xid")).then(|| message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xid_counts_from_the_trials_start_on() {
        let record =
            "4,1063,5000000,-;NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus.\n SUBSYSTEM=pci\n";
        let said = xid_of(record, Moment(4_000_000)).unwrap();
        assert!(said.starts_with("NVRM: Xid (PCI:0000:19:00): 79"), "{said}");
        assert_eq!(xid_of(record, Moment(6_000_000)), None);
        assert_eq!(xid_of("4,1,9000000,-;eth0: link up\n", Moment(0)), None);
        assert_eq!(xid_of("no record at all", Moment(0)), None);
    }
}
