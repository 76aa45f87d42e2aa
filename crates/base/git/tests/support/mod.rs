//! Small repositories to try things on.

use std::fs;
use std::path::{Path, PathBuf};

use infradev_supervise::Invocation;

/// A repository in a folder of its own.
pub struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Scratch {
        let scratch = Scratch { folder: tempfile::tempdir().unwrap() };
        scratch.git(&["init", "-q", "-b", "main"]);
        scratch
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let place = self.join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    pub fn git(&self, args: &[&str]) -> String {
        git(self.path(), args)
    }

    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A", "-f"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = Invocation::new("git")
        .inherit_env("PATH")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@b")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@b")
        .env("GIT_AUTHOR_DATE", "2026-03-01T12:00:00+01:00")
        .env("GIT_COMMITTER_DATE", "2026-03-01T12:00:00+01:00")
        .env("HOME", "/nonexistent")
        .args(args.iter().copied())
        .cwd(folder)
        .run()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", output.stderr_text());
    String::from_utf8(output.stdout).unwrap().trim_end().to_string()
}
