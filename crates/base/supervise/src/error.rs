//! What can go wrong when a process is started or run, by cause.

use std::io;
use std::path::PathBuf;

use infradev_model::{Class, Classified};

/// A process could not be started or followed. That it exited badly is not an error: see [`crate::Exit`].
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// No executable of that name on PATH, or at that path.
    #[error("program `{program}` not found{}", if program.contains('/') { "" } else { " on PATH" })]
    NotFound {
        /// The name or path as asked for.
        program: String,
    },
    /// The working directory of the process does not exist or cannot be entered.
    #[error("cannot start `{program}` in {}: {source}", cwd.display())]
    WorkingDirectory {
        /// The program.
        program: String,
        /// The directory asked for.
        cwd: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The process was refused a step between fork and exec.
    #[error("cannot start `{program}`: {step}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The step that failed, in words.
        step: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// An argument or environment variable holds a NUL byte, or a variable's name is unusable.
    #[error("cannot start `{program}`: {what} holds a NUL byte or an unusable name")]
    BadText {
        /// The program.
        program: String,
        /// Which text: `argument 2`, `variable FOO`.
        what: String,
    },
    /// Following a process failed (pipes, pidfd, poll).
    #[error("following `{program}`: {what}: {source}")]
    Follow {
        /// The program.
        program: String,
        /// What failed, in words.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The person asked for an end; the process group was killed.
    #[error("`{program}` was interrupted")]
    Cancelled {
        /// The program.
        program: String,
    },
}

impl Classified for SuperviseError {
    fn class(&self) -> Class {
        match self {
            SuperviseError::Cancelled { .. } => Class::Interrupted,
            _ => Class::Fault,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            SuperviseError::NotFound { program } => Some(match program.as_str() {
                "bwrap" => "install it: apt-get install bubblewrap".to_owned(),
                "ip" => "install it: apt-get install iproute2".to_owned(),
                "git" => "install it: apt-get install git".to_owned(),
                "uv" => "install it: https://docs.astral.sh/uv/ (or `pip install uv`)".to_owned(),
                other => format!("install `{other}` or put it on PATH"),
            }),
            SuperviseError::Start { source, .. } => match source.raw_os_error() {
                Some(libc::EAGAIN) => Some("the limit on processes is reached; see `ulimit -u`".to_owned()),
                Some(libc::EMFILE) => Some("too many open files; raise `ulimit -n`".to_owned()),
                Some(libc::EPERM) => {
                    Some("the host does not grant this; `infradev doctor` says what it does".to_owned())
                }
                _ => None,
            },
            _ => None,
        }
    }
}
