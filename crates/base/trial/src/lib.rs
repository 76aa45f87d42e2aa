//! One patch and its suites in, a verdictless result out.
//!
//! [`run`] makes the tree ready ([`workspace`]), starts the trusted launcher in a sandbox and the judge in another
//! ([`inside`]), drives the official suite case by case ([`official`]), serves the judge ([`probes`]), and ends it all. What
//! counts of a result is said by a calibration ([`calibrate()`]).

mod bytecode;
mod calibrate;
mod calls;
mod devices;
mod events;
mod frames;
mod inside;
mod judge;
mod judgement;
mod launcher;
mod looking;
mod messages;
mod meters;
mod official;
mod probes;
mod ranks;
mod reach;
mod resuming;
mod session;
mod trial;
mod workspace;

pub use bytecode::bytecode;
pub use calibrate::calibrate;
pub use events::{Events, Silent, TrialEvent};
pub use looking::{FoundCase, Streams, probe_cases, shell};
pub use reach::{CaseReach, Line, ReachLog};
pub use session::{Ask, Changed, Session, Stop, Tried};
pub use trial::{StopRule, TrialError, TrialSpec, Twins, run};
