//! One patch and its suites in, a verdictless result out.
//!
//! [`run`] makes the tree ready ([`workspace`]), starts the trusted launcher in a sandbox and the judge in another
//! ([`inside`]), drives the official suite case by case ([`official`]), serves the judge ([`probes`]), and ends it all. What
//! counts of a result is said by a calibration ([`calibrate()`]).

mod building;
mod bytecode;
mod calibrate;
mod calls;
mod compiling;
mod devices;
mod events;
mod frames;
mod inside;
mod judge;
mod judgement;
mod launcher;
mod layering;
mod looking;
mod messages;
mod meters;
mod official;
mod probes;
mod ranks;
mod reach;
mod resuming;
mod session;
mod toolchain;
mod trial;
mod workspace;

pub use building::{BuildError, Building, Circumstances, Failure, Failures, Inputs};
pub use bytecode::bytecode;
pub use calibrate::calibrate;
pub use events::{Events, Silent, TrialEvent};
pub use looking::{FoundCase, Streams, probe_cases, shell};
pub use official::SessionEnd;
pub use reach::{CaseReach, Line, ReachLog};
pub use session::{Ask, Changed, Session, Stop, Tried};
pub use toolchain::Toolchain;
pub use trial::{StopRule, TrialError, TrialSpec, Twins, run};
pub use workspace::{PrepareError, files_of};
