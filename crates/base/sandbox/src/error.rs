//! What can go wrong around a sandbox, by cause. All of it is the harness's or the host's, never the patch's.

use std::io;
use std::path::PathBuf;

use infradev_model::{Class, Classified};
use infradev_supervise::SuperviseError;

/// A sandbox, lock or network that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The description of the sandbox contradicts itself.
    #[error("sandbox description: {what}")]
    Spec {
        /// What is wrong.
        what: String,
    },
    /// A path to mount does not exist on the host.
    #[error("cannot show {} to the sandbox: {source}", path.display())]
    Mount {
        /// The path on the host.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Bubblewrap is not installed, or could not be run.
    #[error("the sandbox did not start: {0}")]
    Bubblewrap(#[source] SuperviseError),
    /// The host does not allow the namespaces.
    #[error("the sandbox did not start, the host refuses its namespaces: {message}")]
    Refused {
        /// Bubblewrap's words.
        message: String,
    },
    /// A disk or a tmpfs ran full while the sandbox was set up.
    #[error("the sandbox did not start, a disk is full: {message}")]
    DiskFull {
        /// Bubblewrap's words.
        message: String,
    },
    /// Bubblewrap ended before it ran the program.
    #[error("the sandbox did not start: {message}")]
    DidNotStart {
        /// Bubblewrap's words, or how it ended.
        message: String,
    },
    /// A process of ours could not be started or followed.
    #[error(transparent)]
    Process(#[from] SuperviseError),
    /// A lock file could not be used.
    #[error("lock {}: {source}", path.display())]
    Lock {
        /// The lock file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// More GPUs were asked for than there are.
    #[error("{} asked for, {present} present", if *.asked == 1 { "1 GPU".to_owned() } else { format!("{asked} GPUs") })]
    TooFewGpus {
        /// How many were asked for.
        asked: usize,
        /// How many the host has.
        present: usize,
    },
    /// All uid ranges are taken.
    #[error("all {slots} ranges of host uids are in use")]
    NoUidsLeft {
        /// How many ranges there are.
        slots: u32,
    },
    /// The host does not let us make network namespaces.
    #[error("no permission to make network namespaces for the ranks: {source}")]
    NetworksRefused {
        /// The system's reason.
        source: io::Error,
    },
    /// Network namespaces could not be joined.
    #[error("joining the ranks' network namespaces: {message}")]
    Networks {
        /// What failed.
        message: String,
    },
    /// Reading or changing the host's state failed.
    #[error("{what}: {source}")]
    Host {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl SandboxError {
    pub(crate) fn host(what: impl Into<String>) -> impl FnOnce(io::Error) -> SandboxError {
        let what = what.into();
        move |source| SandboxError::Host { what, source }
    }

    /// Sorts what bubblewrap said before it gave up.
    pub(crate) fn from_bubblewrap(message: String) -> SandboxError {
        let says = |text: &str| message.contains(text);
        if says("No space left on device") || says("Disk quota exceeded") {
            SandboxError::DiskFull { message }
        } else if says("creating new namespace") || says("Creating new namespace") || says("not permitted") {
            SandboxError::Refused { message }
        } else {
            SandboxError::DidNotStart { message }
        }
    }
}

impl Classified for SandboxError {
    fn class(&self) -> Class {
        match self {
            SandboxError::Process(error) | SandboxError::Bubblewrap(error) => error.class(),
            SandboxError::TooFewGpus { .. } => Class::Usage,
            _ => Class::Fault,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            SandboxError::Process(error) | SandboxError::Bubblewrap(error) => return error.hint(),
            SandboxError::Refused { .. } => {
                "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
                 kernel.apparmor_restrict_unprivileged_userns=0); `--sandbox none` runs without, and every result says so"
            }
            SandboxError::DiskFull { .. } => "free some space and run the same command again; it resumes",
            SandboxError::Mount { .. } => "build the environment again, or check the path",
            SandboxError::Lock { .. } => {
                "lock files are shared by all users of the machine; make the folder mode 1777"
            }
            SandboxError::NoUidsLeft { .. } => "wait for other runs on this machine to end",
            SandboxError::NetworksRefused { .. } => {
                "counting what each rank receives needs root (CAP_SYS_ADMIN)"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}
