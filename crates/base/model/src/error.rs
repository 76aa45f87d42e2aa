//! How an error reaches the person who reads it: a class that fixes the exit code, and a hint on what to do next.

/// What an error means for the run as a whole; the cli maps each class to one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The command line asked for something that does not exist or does not fit together (exit 2).
    Usage,
    /// The machine, a tool or the harness failed; nothing is said about the patch (exit 3).
    Fault,
    /// A file, patch, task or repository that was given is not usable (exit 4).
    BadInput,
    /// The person stopped the run; it resumes with the same command (exit 130).
    Interrupted,
}

impl Class {
    /// The exit code of the process.
    pub fn exit_code(self) -> u8 {
        match self {
            Class::Usage => 2,
            Class::Fault => 3,
            Class::BadInput => 4,
            Class::Interrupted => 130,
        }
    }
}

/// An error that knows its class and, where there is one, the next step to take.
pub trait Classified: std::error::Error {
    /// The class that fixes the exit code.
    fn class(&self) -> Class;

    /// One sentence on what to do next, printed after `hint:`.
    fn hint(&self) -> Option<String> {
        None
    }
}
