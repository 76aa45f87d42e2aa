//! Attempts: an agent, a prompt and a clean workspace in; a submission out.
//!
//! What is given is a [`infradev_model::PublicTask`], which holds nothing to leak. The workspace is a copy of the base tree in a
//! fresh repository of one commit; what comes back is the difference, taken by a git directory of ours once every process of the
//! agent is dead.

mod apart;
mod arms;
mod attempting;
mod capturing;
mod error;
mod planning;
mod predictions;
mod recording;
mod trying;

pub use arms::AttemptArm;
pub use attempting::{AttemptPlan, Given, run};
pub use error::AttemptError;
pub use planning::{VERB, planned};
pub use predictions::{folder_name, prediction, submission_name};
