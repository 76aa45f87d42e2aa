//! Meters read outside the sandbox. Each says what it misses.

use infradev_sandbox::{RankNetworks, Sandbox};
use serde_json::{Value, json};

use crate::official::OutOfMemory;

/// One reading of a meter.
#[derive(Debug, Clone)]
pub enum Reading {
    /// Bytes on interfaces since they were made. Misses shared memory and device-to-device copies.
    Traffic {
        /// Sandbox's loopback, or the sum over ranks.
        total: (u64, u64),
        /// Received and sent by rank, where each has a network of its own.
        ranks: Option<Vec<(u64, u64)>>,
    },
    /// Bytes held by the sandbox's process tree (and its private /tmp). Misses memory of devices.
    Memory(u64),
}

impl Reading {
    /// The difference to an earlier reading, as the judge gets it.
    pub fn since(&self, start: &Reading) -> Value {
        let bytes = |pair: (u64, u64)| json!({"received": pair.0, "sent": pair.1});
        let less =
            |now: (u64, u64), then: (u64, u64)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1));
        match (self, start) {
            (Reading::Traffic { total, ranks }, Reading::Traffic { total: then, ranks: then_ranks }) => {
                let by_rank = ranks.as_ref().zip(then_ranks.as_ref()).map(|(now, then)| {
                    now.iter().zip(then).map(|(now, then)| bytes(less(*now, *then))).collect::<Vec<_>>()
                });
                json!({"traffic": {"total": bytes(less(*total, *then)), "ranks": by_rank}})
            }
            (Reading::Memory(peak), Reading::Memory(baseline)) => {
                json!({"memory": {"baseline_bytes": baseline, "peak_bytes": peak}})
            }
            _ => json!({}),
        }
    }
}

/// What can be read from outside.
pub trait Meters: OutOfMemory + Send {
    /// Bytes on the network so far.
    fn traffic(&mut self, networks: Option<&RankNetworks>) -> Result<Reading, String>;
    /// Memory held now; the peak counts from here.
    fn memory_baseline(&mut self) -> Result<Reading, String>;
    /// Largest memory held since the baseline.
    fn memory_peak(&mut self) -> Result<Reading, String>;
}

/// The meters of a sandbox.
pub struct SandboxMeters<'a> {
    sandbox: &'a Sandbox,
    kills: u64,
}

impl<'a> SandboxMeters<'a> {
    /// Meters of this sandbox.
    pub fn new(sandbox: &'a Sandbox) -> SandboxMeters<'a> {
        SandboxMeters { sandbox, kills: sandbox.oom_kills() }
    }
}

impl OutOfMemory for SandboxMeters<'_> {
    fn struck(&mut self) -> bool {
        let before = std::mem::replace(&mut self.kills, self.sandbox.oom_kills());
        self.kills > before
    }
}

impl Meters for SandboxMeters<'_> {
    fn traffic(&mut self, networks: Option<&RankNetworks>) -> Result<Reading, String> {
        let text = |error: infradev_sandbox::SandboxError| error.to_string();
        match networks {
            Some(networks) => {
                let counters = networks.counters().map_err(text)?;
                let ranks: Vec<(u64, u64)> =
                    counters.iter().map(|counter| (counter.received, counter.sent)).collect();
                let sum = |pick: fn(&(u64, u64)) -> u64| ranks.iter().map(pick).sum();
                Ok(Reading::Traffic { total: (sum(|pair| pair.0), sum(|pair| pair.1)), ranks: Some(ranks) })
            }
            None => {
                let bytes = self.sandbox.loopback_bytes().ok_or("this sandbox has no loopback of its own")?.0;
                Ok(Reading::Traffic { total: (bytes, bytes), ranks: None })
            }
        }
    }

    fn memory_baseline(&mut self) -> Result<Reading, String> {
        if !self.sandbox.reset_memory_peak() {
            return Err("this host cannot start a peak of memory anew".to_string());
        }
        self.sandbox.memory_current().map(Reading::Memory).ok_or_else(ended)
    }

    fn memory_peak(&mut self) -> Result<Reading, String> {
        self.sandbox.memory_peak().map(Reading::Memory).ok_or_else(ended)
    }
}

fn ended() -> String {
    "the sandbox has ended".to_string()
}
