//! Acceptance: golden passes every probe N times; base, hollow and each adversarial patch are rejected.

mod accepting;
mod evidence;
mod rewrites;

pub use accepting::{AcceptError, AcceptPlan, OnAccept, run};
