//! What is told while trials run.

use infradev_trial::TrialEvent;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Happening {
    /// An environment is being built, waited for, or is ready.
    Environment(String),
    /// A base tree is being made.
    Tree(String),
    /// Golden is run to calibrate a task.
    Calibrating {
        /// The task.
        task: String,
        /// Ranks.
        world: u32,
        /// Golden runs.
        runs: u32,
    },
    /// A trial began.
    TrialStarted {
        /// Task, patch and world size, for people.
        label: String,
        /// Cases that its calibration counts, where there is one.
        expected: Option<u64>,
    },
    /// Something in a trial.
    Trial {
        /// As in `TrialStarted`.
        label: String,
        /// What.
        event: TrialEvent,
    },
    /// A trial ended.
    TrialEnded {
        /// As in `TrialStarted`.
        label: String,
        /// Seconds.
        wall_s: f64,
        /// Whether its record was there already.
        cached: bool,
        /// `7 of 9 cases passed on every rank`, or what stopped it.
        summary: String,
    },
    /// A fault is retried.
    Retried {
        /// As in `TrialStarted`.
        label: String,
        /// The fault's evidence.
        evidence: String,
    },
}

/// Receives what happens. Only the cli prints.
pub trait Progress: Send + Sync {
    /// Takes one happening.
    fn emit(&self, happening: Happening);
}

/// Takes happenings and forgets them.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl Progress for Quiet {
    fn emit(&self, _happening: Happening) {}
}
