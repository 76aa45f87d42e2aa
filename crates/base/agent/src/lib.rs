//! Coding agents as data: found by name, installed once, run in a sandbox that reaches nothing but their model.
//!
//! [`find`] reads an agent's file, [`install`] puts it into the store, [`run`] gives it a prompt and a folder to edit. What it
//! may reach is its model's endpoint, through a proxy of ours that holds the key, counts tokens and writes down what else was
//! asked for. Nothing here knows of tasks, patches or grades.

mod allocated;
mod betas;
mod disk;
mod ending;
mod endpoint;
mod error;
mod forbidden;
mod headers;
mod hosted;
mod inside;
mod install;
mod known;
mod log;
mod meter;
mod models;
mod object;
mod output;
mod pass;
mod permitted;
mod proxy;
mod queries;
mod relay;
mod remote;
mod request;
mod routes;
mod run;
mod secret;
mod skill;
mod streams;
mod tally;
mod trajectory;
mod usage;
mod waiting;

pub use error::AgentError;
pub use inside::{check_prompt, whole_prompt};
pub use install::{Installed, install};
pub use known::{KnownAgent, all, find};
pub use proxy::Endpoint;
pub use relay::{RELAY, relay};
pub use run::{RunEnd, RunSpec, check, run};
pub use secret::GivenKey;
pub use skill::Skill;
pub use waiting::{Again, PATIENCE, until_reachable};
