//! Where trials run.
//!
//! An [`Executor`] makes a task ready (base tree, environment, devices), runs each trial once for its key in one of its
//! slots, keeps the record, and calibrates. Stages ask it; it knows nothing of verdicts.

mod built;
mod calibration;
mod contract;
mod derivable;
mod derived;
mod environment_words;
mod executor;
mod foreseen;
mod history;
mod kit;
mod looking;
mod progress;
mod ready;
mod reference;
mod rewritten;
mod session;
mod slot;

pub use built::Built;
pub use calibration::Calibrated;
pub use contract::ContractReading;
pub use derived::{ChangedFile, DeriveError, GoldenChange, TakenBack};
pub use executor::{Ask, Executor, ExecutorError, Settings};
pub use history::{Commits, SplitError, repository, resolve, split};
pub use infradev_pycode::Variant;
pub use infradev_pycode::contract::{DraftedName, TouchedAt};
pub use infradev_trial::{FoundCase, Streams};
pub use kit::Kit;
pub use progress::{Happening, Progress, Quiet};
pub use ready::{ReadyBase, ReadyTask, base_tree};
pub use reference::reference;
pub use rewritten::{Rewritten, RewrittenChange};
pub use slot::Slot;
