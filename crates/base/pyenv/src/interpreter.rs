//! What an interpreter says about itself, by running it once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_model::{Digest, DigestBuilder};
use infradev_supervise::{Invocation, SuperviseError};
use serde::{Deserialize, Serialize};

use crate::error::PyenvError;
use crate::marker::MarkerValues;

const DESCRIBE: &str = include_str!("describe.py");

/// Starting Python from a cold disk and listing a large site-packages stays far below this.
const DESCRIBE_DEADLINE: Duration = Duration::from_secs(60);

/// An interpreter's own account of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Interpreter {
    /// For example `3.11.7`.
    pub version: String,
    /// `sys.version`: version, build date, compiler.
    build: String,
    /// For example `linux-x86_64`.
    platform: String,
    /// For example `cpython-311-x86_64-linux-gnu`.
    abi: String,
    /// `glibc` or empty.
    libc: String,
    pub executable: PathBuf,
    pub prefix: PathBuf,
    pub base_prefix: PathBuf,
    pub site: PathBuf,
    pub site_folders: Vec<PathBuf>,
    distributions: BTreeMap<String, String>,
    pub markers: MarkerValues,
}

impl Interpreter {
    /// Runs the executable in isolated mode (`-I`: no PYTHON* variables, no user site, no current folder).
    pub(crate) fn describe(path: &Path) -> Result<Interpreter, PyenvError> {
        let bad = |reason: String| PyenvError::BadInterpreter { path: path.to_owned(), reason };
        if !path.is_file() {
            return Err(bad("there is no such file".to_owned()));
        }
        let mut invocation = Invocation::new(path);
        invocation = invocation.args(["-I", "-c", DESCRIBE]).deadline(DESCRIBE_DEADLINE);
        for name in ["PATH", "HOME", "LD_LIBRARY_PATH", "PYENV_ROOT", "PYENV_VERSION"] {
            invocation = invocation.inherit_env(name);
        }
        let output = invocation.run().map_err(|e| match e {
            SuperviseError::Cancelled { .. } => PyenvError::Supervise(e),
            other => bad(other.to_string()),
        })?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let last = words.trim().lines().last().unwrap_or("it printed nothing").to_owned();
            return Err(bad(format!("{}: {last}", output.status)));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| bad(format!("its answer is not understood: {e}")))
    }

    /// What decides which wheels fit: version, platform, ABI, C library.
    pub(crate) fn platform_key(&self) -> Digest {
        let mut digest = DigestBuilder::new("infradev interpreter v1");
        digest
            .part("version", self.version.as_bytes())
            .part("platform", self.platform.as_bytes())
            .part("abi", self.abi.as_bytes())
            .part("libc", self.libc.as_bytes());
        digest.finish()
    }

    /// For example `("3", "11")`.
    pub(crate) fn major_minor(&self) -> (&str, &str) {
        let mut parts = self.version.split('.');
        (parts.next().unwrap_or("3"), parts.next().unwrap_or("0"))
    }

    /// Installed packages by normalised name (PEP 503).
    pub(crate) fn packages(&self) -> BTreeMap<String, String> {
        self.distributions.iter().map(|(name, version)| (normalised(name), version.clone())).collect()
    }

    /// The fingerprint of an environment that was not built here: its package set, `sys.version`, platform.
    pub(crate) fn fingerprint(&self) -> Digest {
        let mut digest = DigestBuilder::new("infradev interpreter environment v1");
        digest.part("build", self.build.as_bytes()).part("platform", self.platform.as_bytes());
        digest.part("abi", self.abi.as_bytes()).part("libc", self.libc.as_bytes());
        for (name, version) in self.packages() {
            digest.part(&name, version.as_bytes());
        }
        digest.finish()
    }

    /// Host folders that must be visible at their own path for this interpreter to run: its prefixes and
    /// site-packages, each also by the name that a link leads to; none below another.
    pub(crate) fn mounts(&self) -> Vec<PathBuf> {
        let mut wanted = vec![self.prefix.clone(), self.base_prefix.clone()];
        wanted.extend(self.site_folders.iter().cloned());
        wanted.extend(self.executable.parent().map(Path::to_owned));
        if let Ok(real) = self.executable.canonicalize() {
            wanted.extend(real.parent().map(Path::to_owned));
        }
        outermost(wanted)
    }
}

/// Adds the real path of each, then drops each path that lies below another of them.
pub(crate) fn outermost(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut all: Vec<PathBuf> = paths.into_iter().chain(real).collect();
    all.sort();
    all.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in all {
        // Sorted by component, so whatever holds this path was seen before it.
        if !kept.iter().any(|outer| path.starts_with(outer)) {
            kept.push(path);
        }
    }
    kept
}

/// A package name as PEP 503 normalises it: lower case, runs of `-`, `_`, `.` become one `-`.
pub(crate) fn normalised(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.extend(c.to_lowercase());
        }
    }
    out
}
