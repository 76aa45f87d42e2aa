//! Limits where no control group can be had: the tree is sampled, and killed when over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use infradev_supervise::{Process, kill_processes};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::spec::Limits;

/// How often the tree is read.
const EVERY: Duration = Duration::from_millis(100);

/// A limit that a tree went over, and was killed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Excess {
    /// Memory.
    Memory,
    /// Processes.
    Pids,
}

/// What a watched tree is known to have used.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub peak_bytes: AtomicU64,
    pub excess: Mutex<Option<Excess>>,
}

/// The task that watches a tree. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    pub seen: Arc<Seen>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Watches the processes that `tree` names. Resident memory counts shared pages in each process, so this errs on
    /// the strict side.
    pub(crate) fn start(limits: Limits, tree: impl Fn() -> Vec<Process> + Send + 'static) -> Watch {
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let processes = tree();
                let bytes = resident(&processes);
                shared.peak_bytes.fetch_max(bytes, Ordering::Relaxed);
                let excess = if bytes > limits.memory_bytes {
                    Excess::Memory
                } else if processes.len() as u64 > limits.pids {
                    Excess::Pids
                } else {
                    continue;
                };
                *shared.excess.lock().unwrap_or_else(PoisonError::into_inner) = Some(excess);
                kill_processes(tree).await;
                return;
            }
        });
        Watch { seen, task }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Resident bytes of all together.
pub(crate) fn resident(processes: &[Process]) -> u64 {
    processes.iter().map(|process| process.resident_bytes).sum()
}

/// Most resident bytes of each process so far, summed: no less than the tree's own peak.
pub(crate) fn peak_resident(processes: &[Process]) -> u64 {
    processes.iter().map(|process| high_water(process.pid).unwrap_or(process.resident_bytes)).sum()
}

/// Starts each process's peak anew; false if one could not be.
pub(crate) fn reset_peak_resident(processes: &[Process]) -> bool {
    // 5 resets the peak resident set size, proc(5).
    processes.iter().all(|process| std::fs::write(format!("/proc/{}/clear_refs", process.pid), "5").is_ok())
}

/// `VmHWM` of a process, in bytes.
fn high_water(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use infradev_supervise::{Exit, Spawn};

    use super::*;

    async fn watched(script: &str, limits: Limits) -> (Exit, Option<Excess>, u64) {
        let mut spawn = Spawn::new("/usr/bin/python3");
        spawn.args = vec!["-c".into(), script.into()];
        let mut child = spawn.start().unwrap();
        let watch = Watch::start(limits, child.tree_reader());
        let exit = tokio::time::timeout(Duration::from_secs(60), child.wait()).await.unwrap().unwrap();
        let excess = *watch.seen.excess.lock().unwrap();
        (exit, excess, watch.seen.peak_bytes.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_tree_over_its_memory_is_killed_and_the_reason_known() {
        let limits = Limits { memory_bytes: 60 << 20, pids: 100 };
        let (exit, excess, peak) =
            watched("import os, signal; os.fork(); x = bytearray(40 << 20); signal.pause()", limits).await;
        assert_eq!((exit, excess), (Exit::Signal(9), Some(Excess::Memory)));
        assert!(peak > 60 << 20);
    }

    #[tokio::test]
    async fn a_tree_with_too_many_processes_is_killed_and_the_reason_known() {
        let limits = Limits { memory_bytes: 8 << 30, pids: 3 };
        let (exit, excess, _) =
            watched("import os, signal; [os.fork() for _ in range(3)]; signal.pause()", limits).await;
        assert_eq!((exit, excess), (Exit::Signal(9), Some(Excess::Pids)));
    }

    #[test]
    fn a_peak_can_be_read_and_reset() {
        let own = infradev_supervise::process(std::process::id() as i32).unwrap();
        let block = vec![1u8; 50 << 20];
        drop(std::hint::black_box(block));
        let before = peak_resident(std::slice::from_ref(&own));
        assert!(reset_peak_resident(std::slice::from_ref(&own)));
        let after = peak_resident(std::slice::from_ref(&own));
        assert!(after + (30 << 20) < before, "{before} then {after}");
    }
}
