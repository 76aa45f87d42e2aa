//! One git command, with nothing of the host's or the user's configuration.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use infradev_supervise::{Invocation, Output};

use crate::error::GitError;

/// Configuration given on the command line, which outranks every file.
const PINNED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.quotePath=true",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.autocrlf=false",
    "core.looseCompression=0",
    "diff.renameLimit=0",
    "diff.suppressBlankEmpty=false",
    "diff.indentHeuristic=true",
    "gc.auto=0",
    "i18n.logOutputEncoding=UTF-8",
    "log.showSignature=false",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "safe.directory=*",
];

/// Bytes of an answer that are kept.
const ANSWER_LIMIT: usize = 1 << 30;

/// A git command to be.
pub(crate) struct Git {
    invocation: Invocation,
    words: Vec<String>,
}

impl Git {
    /// A command outside any repository.
    pub(crate) fn bare() -> Git {
        let mut invocation = Invocation::new("git")
            .inherit_env("PATH")
            .env("TMPDIR", tempfile::env::temp_dir())
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_ADVICE", "0")
            // Looked up for ~/.config/git/attributes and the like.
            .env("HOME", "/nonexistent")
            .stdout_limit(ANSWER_LIMIT)
            .deadline(Duration::from_secs(600));
        for setting in PINNED {
            invocation = invocation.arg("-c").arg(*setting);
        }
        Git { invocation, words: Vec::new() }
    }

    /// A command in the repository with this git directory.
    pub(crate) fn within(git_dir: &Path) -> Git {
        let mut git = Git::bare();
        let mut flag = OsString::from("--git-dir=");
        flag.push(git_dir);
        git.invocation = git.invocation.arg(flag);
        git
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Git {
        let arg = arg.into();
        self.words.push(arg.to_string_lossy().into_owned());
        self.invocation = self.invocation.arg(arg);
        self
    }

    pub(crate) fn args<const N: usize>(self, args: [&str; N]) -> Git {
        args.into_iter().fold(self, Git::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Git {
        self.invocation = self.invocation.env(name, value);
        self
    }

    pub(crate) fn inherit_env(mut self, name: &str) -> Git {
        self.invocation = self.invocation.inherit_env(name);
        self
    }

    pub(crate) fn cwd(mut self, cwd: &Path) -> Git {
        self.invocation = self.invocation.cwd(cwd);
        self
    }

    pub(crate) fn stdin(mut self, stdin: Vec<u8>) -> Git {
        self.invocation = self.invocation.stdin(stdin);
        self
    }

    pub(crate) fn deadline(mut self, deadline: Duration) -> Git {
        self.invocation = self.invocation.deadline(deadline);
        self
    }

    fn command(words: &[String]) -> String {
        words.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Runs it; how it ended is the caller's to judge.
    pub(crate) fn output(self) -> Result<Output, GitError> {
        let output = self.invocation.run()?;
        if output.truncated && output.stdout.len() >= ANSWER_LIMIT {
            return Err(GitError::TooLarge { command: Git::command(&self.words), limit: ANSWER_LIMIT });
        }
        Ok(output)
    }

    /// Runs it; its answer where it ended well.
    pub(crate) fn run(self) -> Result<Vec<u8>, GitError> {
        let command = Git::command(&self.words);
        let output = self.output()?;
        if output.status.success() { Ok(output.stdout) } else { Err(failed(command, &output)) }
    }
}

pub(crate) fn failed(command: impl Into<String>, output: &Output) -> GitError {
    let (command, stderr) = (command.into(), output.stderr_text());
    // strerror(3)'s words for ENOSPC, and git's own where a write came out short.
    if stderr.contains("No space left on device") || stderr.contains("Out of diskspace") {
        return GitError::DiskFull { what: format!("git {command}: {stderr}") };
    }
    GitError::Failed { command, status: output.status.to_string(), stderr }
}
