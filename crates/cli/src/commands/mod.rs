//! One file a verb.

pub mod accept;
pub mod attempt;
pub mod attempt_arms;
pub mod attempt_built_in;
pub mod attempt_shown;
pub mod canary;
pub mod contract;
pub mod curate;
pub mod doctor;
pub mod env;
pub mod env_doctor;
pub mod env_layers;
pub mod eval;
pub mod grade;
pub mod new;
pub mod new_candidate;
pub mod new_pack;
pub mod probe;
pub mod probe_gaps;
pub mod prompt;
pub mod report;
pub mod rounds;
pub mod run;
pub mod schema;
pub mod serve;
pub mod synthesize;
