//! Why an agent cannot be used.

use std::path::PathBuf;

use infradev_model::{Class, Classified, FormatError};
use infradev_sandbox::SandboxError;
use infradev_store::StoreError;
use infradev_supervise::SuperviseError;

/// What kept an agent from being installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotInstalled {
    /// The registry was not reached.
    Unreachable,
    /// The registry has no such package, or not in this version.
    Absent,
    /// Something else; the program's own words say what.
    Other,
}

/// Why an agent cannot be installed or started. What it does once it runs is no error: see [`crate::RunEnd`].
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AgentError {
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
    #[error("there is no agent `{name}`; known are {}", known.join(", "))]
    Unknown { name: String, nearest: Option<String>, known: Vec<String> },
    #[error("agent {agent} needs `{program}`, which is not on PATH")]
    Missing { agent: String, program: &'static str },
    #[error("agent {agent} {version} could not be installed: {program} says: {words}")]
    Install { agent: String, version: String, program: &'static str, words: String, why: NotInstalled },
    #[error("agent {agent} is not of version {version}: `{command}` answers: {answer}")]
    Version { agent: String, version: String, command: String, answer: String },
    #[error("agent {agent} needs a model: give --model")]
    NoModel { agent: String },
    #[error("agent {agent} needs no model, and --model or --base-url was given")]
    ModelUnasked { agent: String },
    #[error("no key for {endpoint}: none of {} is set", variables.join(", "))]
    NoKey { endpoint: String, variables: Vec<String> },
    #[error("{variable} holds a key that no header can hold: {what}")]
    Key { variable: String, what: String },
    #[error(
        "`{model}` is no model to agent {agent}, but a word for one of its program's own choice: a record is of one model"
    )]
    Alias { agent: String, model: String, meant: String },
    #[error("`{url}` is no endpoint: {what}")]
    Endpoint { url: String, what: String },
    #[error("agent {agent} runs what --command says, and none was given")]
    NoCommand { agent: String },
    #[error(
        "agent {agent} is given its prompt as an argument, which has {most} bytes at most, and with its skill the prompt has {bytes}"
    )]
    LongPrompt { agent: String, bytes: usize, most: usize },
    #[error("{}: there is no such folder", path.display())]
    NoFolder { path: PathBuf },
    #[error("{}: {what}", path.display())]
    Skill { path: PathBuf, what: String, hint: String },
    #[error("cannot {what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error(
        "the disk of {} has {} MiB left, and the agent is within its bound: it took {} MiB",
        folder.display(), free >> 20, taken >> 20
    )]
    HostDisk { folder: PathBuf, free: u64, taken: u64 },
    #[error("the attempt was interrupted")]
    Cancelled,
}

impl AgentError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> AgentError {
        let what = what.into();
        move |source| AgentError::Io { what, source }
    }
}

impl Classified for AgentError {
    fn class(&self) -> Class {
        match self {
            AgentError::Format(error) => error.class(),
            AgentError::Store(error) => error.class(),
            AgentError::Sandbox(error) => error.class(),
            AgentError::Supervise(error) => error.class(),
            AgentError::Install { why: NotInstalled::Absent, .. } => Class::BadInput,
            AgentError::Missing { .. }
            | AgentError::Install { .. }
            | AgentError::HostDisk { .. }
            | AgentError::Io { .. } => Class::Fault,
            AgentError::Version { .. }
            | AgentError::Key { .. }
            | AgentError::LongPrompt { .. }
            | AgentError::Skill { .. } => Class::BadInput,
            AgentError::Cancelled => Class::Interrupted,
            _ => Class::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AgentError::Format(error) => error.hint(),
            AgentError::Store(error) => error.hint(),
            AgentError::Sandbox(error) => error.hint(),
            AgentError::Supervise(error) => error.hint(),
            AgentError::Unknown { nearest, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "an agent of your own: give its file, --agent ./mine.toml".to_owned(),
            }),
            AgentError::Missing { program: "node" | "npm", .. } => {
                Some("install Node.js and npm: apt-get install nodejs npm".to_owned())
            }
            AgentError::Missing { .. } => Some("install uv: https://docs.astral.sh/uv/".to_owned()),
            AgentError::Install { why: NotInstalled::Absent, .. } => {
                Some("set `version` and `install` of the agent's file to what its registry has".to_owned())
            }
            AgentError::Install { why: NotInstalled::Unreachable, program, .. } => Some(match *program {
                "npm" => {
                    "the registry is not reachable: see `npm config get registry`, HTTPS_PROXY".to_owned()
                }
                _ => "the package index is not reachable: see UV_DEFAULT_INDEX, HTTPS_PROXY".to_owned(),
            }),
            AgentError::Version { .. } => {
                Some("set `version` and `probe` of the agent's file to what is installed".to_owned())
            }
            AgentError::HostDisk { .. } => {
                Some("free some space, then run the same command again to go on".to_owned())
            }
            AgentError::NoKey { .. } => {
                Some("set one of them; it stays on this machine's side of the sandbox".to_owned())
            }
            AgentError::Key { .. } => Some(
                "set it to the key alone, such as by $(cat FILE), which drops a last line's end".to_owned(),
            ),
            AgentError::Alias { meant, .. } => Some(format!("give its full id, such as --model {meant}")),
            AgentError::Skill { hint, .. } => Some(hint.clone()),
            AgentError::LongPrompt { .. } => {
                Some("shorten spec.md or the skill, or use an agent that reads its prompt from a file or its input".to_owned())
            }
            AgentError::NoCommand { .. } => {
                Some("--command 'python3 {agent}/mine.py' --folder mine".to_owned())
            }
            _ => None,
        }
    }
}
