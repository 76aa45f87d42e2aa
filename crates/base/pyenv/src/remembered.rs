//! Interpreters found before, kept beside the environments: looking for one starts uv and Python, which costs 0.2 s and more
//! where pyenv's shims are on PATH.
//!
//! What was found holds for the same question (version, search path, what else steers uv's search, the kernel's release, which
//! is one of PEP 508's markers) and for as long as the executable is the very same file. Anything else is looked for anew; a
//! record that cannot be read or written costs that time and nothing more.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use infradev_model::DigestBuilder;
use serde::{Deserialize, Serialize};

use crate::interpreter::Interpreter;

const FOLDER: &str = ".interpreters";
const SCHEMA: u32 = 1;
/// What of the caller's environment decides which interpreter uv finds, and what that says about itself.
const STEERS: [&str; 14] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "LD_LIBRARY_PATH",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "UV_CONFIG_FILE",
    "UV_NO_CONFIG",
    "UV_PYTHON_SEARCH_PATH",
    "UV_PYTHON_INSTALL_DIR",
    "UV_PYTHON_PREFERENCE",
    "UV_MANAGED_PYTHON",
    "UV_NO_MANAGED_PYTHON",
];

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    schema: u32,
    file: FileIdentity,
    interpreter: Interpreter,
}

/// A file's content, as far as its inode tells.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileIdentity {
    /// With links followed.
    path: PathBuf,
    device: u64,
    inode: u64,
    bytes: u64,
    /// Nanoseconds since 1970.
    changed: i128,
}

impl FileIdentity {
    fn of(executable: &Path) -> Option<FileIdentity> {
        let path = executable.canonicalize().ok()?;
        let about = fs::metadata(&path).ok()?;
        let changed = i128::from(about.ctime()) * 1_000_000_000 + i128::from(about.ctime_nsec());
        Some(FileIdentity { path, device: about.dev(), inode: about.ino(), bytes: about.size(), changed })
    }
}

/// The interpreter that was found for this version, if it still is what it was.
pub(crate) fn recall(root: &Path, version: &str) -> Option<Interpreter> {
    let record: Record = serde_json::from_slice(&fs::read(place(root, version)).ok()?).ok()?;
    let same = record.schema == SCHEMA
        && FileIdentity::of(&record.interpreter.executable).as_ref() == Some(&record.file);
    same.then_some(record.interpreter)
}

/// Keeps what was found.
pub(crate) fn remember(root: &Path, version: &str, interpreter: &Interpreter) {
    let Some(file) = FileIdentity::of(&interpreter.executable) else { return };
    let record = Record { schema: SCHEMA, file, interpreter: interpreter.clone() };
    // Lost, it is found anew; half-written it must not be, hence the rename.
    let _ = write(&place(root, version), &record);
}

fn write(place: &Path, record: &Record) -> std::io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec_pretty(record)?)?;
    file.persist(place)?;
    Ok(())
}

/// What stands now where uv would look: interpreters of the search path by file, and the version that pyenv's shims lead to.
fn candidates(version: &str) -> Vec<String> {
    let named = |folder: PathBuf| {
        let names = [format!("python{version}"), "python3".to_string(), "python".to_string()];
        names.map(|name| folder.join(name))
    };
    let paths = ["PATH", "UV_PYTHON_SEARCH_PATH"].map(|name| std::env::var_os(name).unwrap_or_default());
    let folders = paths.iter().flat_map(std::env::split_paths);
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let chosen = pyenv.and_then(|root| fs::read_to_string(root.join("version")).ok()).unwrap_or_default();
    let stand = folders.flat_map(named).filter_map(|path| Some(format!("{:?}", FileIdentity::of(&path)?)));
    stand.chain([chosen]).collect()
}

fn place(root: &Path, version: &str) -> PathBuf {
    let mut digest = DigestBuilder::new("infradev interpreter question v1");
    digest.part("version", version.as_bytes());
    digest.part("kernel", &fs::read("/proc/sys/kernel/osrelease").unwrap_or_default());
    for name in STEERS {
        let value = std::env::var_os(name).unwrap_or_default();
        digest.part(name, value.as_encoded_bytes());
    }
    for candidate in candidates(version) {
        digest.part("candidate", candidate.as_bytes());
    }
    root.join(FOLDER).join(format!("{}.json", &digest.finish().as_str()[..32]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that stands for an interpreter; what is remembered never runs it.
    fn stand_in(folder: &Path) -> Interpreter {
        let executable = folder.join("python3.11");
        fs::write(&executable, "first").unwrap();
        let text = serde_json::json!({
            "version": "3.11.7", "build": "3.11.7 (main)", "platform": "linux-x86_64",
            "abi": "cpython-311-x86_64-linux-gnu", "libc": "glibc", "executable": executable,
            "prefix": folder, "base_prefix": folder, "site": folder, "site_folders": [], "distributions": {"a": "1"},
            "markers": {
                "implementation_name": "cpython", "implementation_version": "3.11.7", "os_name": "posix",
                "platform_machine": "x86_64", "platform_python_implementation": "CPython",
                "platform_release": "6.1", "platform_system": "Linux", "platform_version": "#1",
                "python_full_version": "3.11.7", "python_version": "3.11", "sys_platform": "linux"
            }
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn what_was_found_is_recalled_for_the_same_version_alone() {
        let folder = tempfile::tempdir().unwrap();
        let found = stand_in(folder.path());
        assert_eq!(recall(folder.path(), "3.11"), None);
        remember(folder.path(), "3.11", &found);
        assert_eq!(recall(folder.path(), "3.11"), Some(found));
        assert_eq!(recall(folder.path(), "3.12"), None);
    }

    #[test]
    fn an_executable_that_was_replaced_or_removed_is_looked_for_anew() {
        let folder = tempfile::tempdir().unwrap();
        let found = stand_in(folder.path());
        remember(folder.path(), "3.11", &found);
        let other = folder.path().join("other");
        fs::write(&other, "other").unwrap();
        fs::rename(&other, &found.executable).unwrap();
        assert_eq!(recall(folder.path(), "3.11"), None);
        remember(folder.path(), "3.11", &found);
        assert!(recall(folder.path(), "3.11").is_some());
        fs::remove_file(&found.executable).unwrap();
        assert_eq!(recall(folder.path(), "3.11"), None);
    }

    #[test]
    fn a_damaged_record_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let found = stand_in(folder.path());
        remember(folder.path(), "3.11", &found);
        let place = place(folder.path(), "3.11");
        let whole = fs::read(&place).unwrap();
        fs::write(&place, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(recall(folder.path(), "3.11"), None);
        remember(folder.path(), "3.11", &found);
        assert_eq!(recall(folder.path(), "3.11"), Some(found));
    }
}
