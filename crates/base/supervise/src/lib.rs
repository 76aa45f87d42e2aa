//! The only code that starts processes.
//!
//! [`Invocation`] is the blocking form, for tools that answer and exit (git, uv, ip). Every child gets a session of its
//! own, an environment that inherits nothing unasked, bounded output, a deadline, and dies with this process.
//!
//! The kernel sends a child its parent-death signal when the *thread* that forked it ends, not the process. All forks
//! therefore happen on one thread that lives as long as the process (the module `spawner`).

mod cancel;
mod error;
mod exit;
mod invocation;
mod pidfd;
mod program;
mod spawner;

pub use cancel::{cancel, cancelled};
pub use error::SuperviseError;
pub use exit::Exit;
pub use invocation::{Invocation, Output};
pub use program::find_program;
