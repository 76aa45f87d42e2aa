//! The only code that starts processes.
//!
//! [`Invocation`] is the blocking form, for tools that answer and exit (git, uv, ip). [`Spawn`] is the async form, for
//! what is followed while it runs; [`LogSink`] keeps a bounded part of what such a process writes. Every child gets a
//! session of its own, an environment that inherits nothing unasked, bounded output, and dies with this process.
//!
//! The kernel sends a child its parent-death signal when the *thread* that forked it ends, not the process. All forks
//! therefore happen on one thread that lives as long as the process (the module `spawner`).

mod cancel;
mod child;
mod error;
mod exit;
mod invocation;
mod log_sink;
mod pidfd;
mod program;
mod readiness;
mod spawner;
mod tree;

pub use cancel::{cancel, cancel_requested, cancelled};
pub use child::{Child, Sink, Spawn};
pub use error::SuperviseError;
pub use exit::Exit;
pub use invocation::{Invocation, Output};
pub use log_sink::{LogBounds, LogSink, LogSlice};
pub use program::find_program;
pub use readiness::{watch_process, watch_readable};
pub use tree::{Process, descendants, kill_processes, process};
