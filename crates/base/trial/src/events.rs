//! What a trial tells while it runs. Libraries emit; only the cli prints.

use infradev_model::{CaseId, Outcome, Suite};

/// Something that happened in a trial.
#[derive(Debug, Clone)]
pub enum TrialEvent {
    /// A suite's cases are known.
    Collected {
        /// The suite.
        suite: Suite,
        /// How many cases it has, canaries and twins apart.
        cases: usize,
    },
    /// A case began.
    CaseStarted {
        /// Which.
        case: CaseId,
    },
    /// A case ended.
    CaseEnded {
        /// Which.
        case: CaseId,
        /// One entry a rank.
        outcomes: Vec<Outcome>,
    },
    /// New ranks were forked.
    Launched {
        /// Counted from 0 over the trial.
        launch: u32,
        /// Ranks.
        size: u32,
    },
}

/// Receives a trial's events.
pub trait Events: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: TrialEvent);
}

/// Takes events and forgets them.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Events for Silent {
    fn emit(&self, _event: TrialEvent) {}
}
