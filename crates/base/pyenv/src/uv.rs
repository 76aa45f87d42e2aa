//! The three uv subcommands that are used, with what they read from the environment pinned.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_supervise::{Invocation, Output, SuperviseError, find_program};
use serde::Deserialize;

use crate::error::PyenvError;

/// Large wheels over a slow line, or a package built from source, may take long.
const INSTALL_DEADLINE: Duration = Duration::from_secs(2 * 3600);
const QUERY_DEADLINE: Duration = Duration::from_secs(120);

/// What uv may see of the caller's environment: how to run, and how to reach its index. All else (`UV_PROJECT`,
/// `UV_LINK_MODE`, `PIP_*`, `PYTHON*`, `VIRTUAL_ENV`, compilers' flags) could change what is installed and is withheld.
pub const PASSED_TO_UV: [&str; 45] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSL_CLIENT_CERT",
    "NETRC",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_KEYRING_PROVIDER",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "UV_INSECURE_HOST",
    "UV_OFFLINE",
    "UV_CONFIG_FILE",
    "UV_NO_CONFIG",
    "UV_CREDENTIALS_DIR",
    "UV_HTTP_TIMEOUT",
    "UV_HTTP_CONNECT_TIMEOUT",
    "UV_HTTP_RETRIES",
    "UV_CONCURRENT_DOWNLOADS",
    "UV_CONCURRENT_BUILDS",
    "UV_CONCURRENT_INSTALLS",
    "UV_PYTHON_INSTALL_DIR",
    "UV_PYTHON_PREFERENCE",
    "UV_MANAGED_PYTHON",
    "UV_NO_MANAGED_PYTHON",
    "UV_PYTHON_SEARCH_PATH",
];

/// Credentials of named indexes: `UV_INDEX_<NAME>_USERNAME`, `UV_INDEX_<NAME>_PASSWORD`.
const PASSED_PREFIX: &str = "UV_INDEX_";

/// uv, with the cache that environments are linked from.
#[derive(Debug, Clone)]
pub(crate) struct Uv {
    cache: PathBuf,
    cwd: PathBuf,
}

#[derive(Deserialize)]
struct Listed {
    version: String,
    path: PathBuf,
}

impl Uv {
    /// `cwd` is a folder of ours: uv would otherwise read a project's settings around the caller's folder.
    pub(crate) fn new(cache: PathBuf, cwd: PathBuf) -> Uv {
        Uv { cache, cwd }
    }

    /// The executable of an interpreter of this version, never downloaded.
    pub(crate) fn find_python(&self, version: &str) -> Result<PathBuf, PyenvError> {
        let flags = ["python", "find", "--no-python-downloads", "--system", "--no-project"];
        let find = || self.command().args(flags).arg(version).deadline(QUERY_DEADLINE);
        let mut found = self.run("python find", find())?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let behind = behind_shims(&path, version);
        if !found.status.success() && !behind.is_empty() {
            // pyenv's shim of a version that is installed and not the chosen one fails, and uv gives up there.
            let all = behind.into_iter().chain(std::env::split_paths(&path));
            if let Ok(path) = std::env::join_paths(all) {
                found = self.run("python find", find().env("PATH", path))?;
            }
        }
        if found.status.success() {
            return Ok(PathBuf::from(String::from_utf8_lossy(&found.stdout).trim()));
        }
        let words = trimmed(&found.stderr);
        if !words.contains("No interpreter found") {
            return Err(PyenvError::Uv { verb: "python find", words });
        }
        Err(PyenvError::NoInterpreter { wanted: version.to_owned(), found: self.pythons()? })
    }

    fn pythons(&self) -> Result<Vec<String>, PyenvError> {
        let flags =
            ["python", "list", "--only-installed", "--no-python-downloads", "--output-format", "json"];
        let output = self.run("python list", self.command().args(flags).deadline(QUERY_DEADLINE))?;
        let listed: Vec<Listed> = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let mut seen = std::collections::BTreeSet::new();
        let firsts = listed.into_iter().filter(|python| seen.insert(python.version.clone()));
        Ok(firsts.map(|python| format!("{} ({})", python.version, python.path.display())).collect())
    }

    /// An empty environment whose scripts work wherever it is moved.
    pub(crate) fn venv(&self, python: &Path, into: &Path) -> Result<(), PyenvError> {
        let flags = ["venv", "--quiet", "--relocatable", "--no-project", "--no-python-downloads", "--python"];
        let output =
            self.run("venv", self.command().args(flags).arg(python).arg(into).deadline(QUERY_DEADLINE))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failure(into, "venv", trimmed(&output.stderr)))
    }

    /// Installs exactly what the lock names, hashes checked, files hard-linked from the cache, bytecode compiled.
    /// `named` is the lock in messages.
    pub(crate) fn sync(&self, python: &Path, lock: &Path, named: &Path) -> Result<(), PyenvError> {
        let flags = [
            "pip",
            "sync",
            "--quiet",
            "--require-hashes",
            "--link-mode",
            "hardlink",
            "--compile-bytecode",
            "--no-python-downloads",
            "--python",
        ];
        let command = self.command().args(flags).arg(python).arg(lock).deadline(INSTALL_DEADLINE);
        let output = self.run("pip sync", command)?;
        if output.status.success() {
            return Ok(());
        }
        if output.status == infradev_supervise::Exit::TimedOut {
            let words = format!("not done after {} minutes", INSTALL_DEADLINE.as_secs() / 60);
            return Err(PyenvError::Uv { verb: "pip sync", words });
        }
        let shown = named.display().to_string();
        let words = trimmed(&output.stderr).replace(&*lock.to_string_lossy(), &shown);
        match failure(python, "pip sync", words) {
            PyenvError::Uv { words, .. } if !unreachable_index(&words) => {
                Err(PyenvError::Install { path: named.to_owned(), words })
            }
            other => Err(other),
        }
    }

    fn command(&self) -> Invocation {
        let mut command = Invocation::new("uv").cwd(&self.cwd);
        for name in PASSED_TO_UV {
            command = command.inherit_env(name);
        }
        let credentials =
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with(PASSED_PREFIX));
        for (name, value) in credentials {
            command = command.env(name, value);
        }
        command.env("UV_CACHE_DIR", &self.cache).args(["--no-progress", "--color", "never"])
    }

    fn run(&self, verb: &'static str, command: Invocation) -> Result<Output, PyenvError> {
        if find_program("uv").is_none() {
            return Err(PyenvError::NoUv);
        }
        match command.run() {
            Err(SuperviseError::NotFound { .. }) => Err(PyenvError::NoUv),
            Err(other) => Err(other.into()),
            Ok(output) if output.status.success() || !output.stderr.is_empty() => Ok(output),
            Ok(output) => Err(PyenvError::Uv { verb, words: output.status.to_string() }),
        }
    }
}

/// The folders of programs of this version (`3.12` has all of its patch releases) in which the shims on `path` lead, the
/// newest release first: pyenv keeps `shims` and `versions/<version>/bin` side by side.
fn behind_shims(path: &OsStr, version: &str) -> Vec<PathBuf> {
    let shims = std::env::split_paths(path).filter(|folder| folder.ends_with("shims"));
    let mut found: Vec<(Vec<u32>, PathBuf)> = Vec::new();
    for entry in
        shims.filter_map(|folder| std::fs::read_dir(folder.with_file_name("versions")).ok()).flatten()
    {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_of_version =
            name.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        // Those that are not numbers alone, such as 3.13t, are other builds.
        let numbers: Option<Vec<u32>> = name.split('.').map(|part| part.parse().ok()).collect();
        if let Some(numbers) = numbers.filter(|_| is_of_version) {
            found.push((numbers, entry.path().join("bin")));
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, folder)| folder).collect()
}

/// A full disk told from the rest.
fn failure(writing: &Path, verb: &'static str, words: String) -> PyenvError {
    if ["No space left on device", "os error 28", "Disk quota exceeded", "os error 122"]
        .iter()
        .any(|sign| words.contains(sign))
    {
        return PyenvError::DiskFull { path: writing.to_owned() };
    }
    PyenvError::Uv { verb, words }
}

/// Whether the index could not be reached at all, which says nothing about the lock.
fn unreachable_index(words: &str) -> bool {
    [
        "error sending request",
        "client error (Connect)",
        "dns error",
        "operation timed out",
        "network was disabled",
    ]
    .iter()
    .any(|sign| words.contains(sign))
}

/// uv's message without its warnings on unrelated interpreters and without `error: `; at most 20 lines.
fn trimmed(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = Vec::new();
    let mut in_warning = false;
    for line in text.lines() {
        let starts = !line.starts_with(' ') && !line.is_empty();
        if starts {
            in_warning = line.starts_with("warning:") || line.starts_with("Using ");
        }
        if !in_warning && !line.trim().is_empty() {
            lines.push(line.strip_prefix("error: ").unwrap_or(line).trim_end());
        }
    }
    lines.truncate(20);
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_on_other_interpreters_are_left_out_of_a_message() {
        let stderr = b"error: No interpreter found for Python 9.9\nwarning: Failed to inspect `/x`\n  cause: status 127\n\n";
        assert_eq!(trimmed(stderr), "No interpreter found for Python 9.9");
    }

    #[test]
    fn the_newest_release_behind_a_shim_comes_first_and_other_versions_not_at_all() {
        let pyenv = tempfile::tempdir().unwrap();
        for name in ["3.12.9", "3.12.10", "3.13.0", "3.1.2", "3.12-dev", "2.7.18"] {
            std::fs::create_dir_all(pyenv.path().join("versions").join(name).join("bin")).unwrap();
        }
        let path = std::env::join_paths([pyenv.path().join("bin"), pyenv.path().join("shims")]).unwrap();
        let releases = |version: &str| {
            let folders = behind_shims(&path, version).into_iter();
            let names = folders.map(|folder| folder.parent().unwrap().file_name().unwrap().to_owned());
            names.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(releases("3.12"), ["3.12.10", "3.12.9"]);
        assert_eq!(releases("3.13.0"), ["3.13.0"]);
        assert!(releases("3.11").is_empty());
        assert!(behind_shims(OsStr::new("/usr/bin:/bin"), "3.12").is_empty());
    }

    #[test]
    fn a_full_disk_in_the_words_of_uv_is_typed() {
        let error = failure(
            Path::new("/store"),
            "venv",
            "failed to write: No space left on device (os error 28)".into(),
        );
        assert!(matches!(error, PyenvError::DiskFull { .. }), "{error}");
    }
}
