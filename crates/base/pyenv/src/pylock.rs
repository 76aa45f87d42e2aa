//! `pylock.toml`, the standard lock file: its pins as the hashed requirements that the rest of this crate reads.
//!
//! Source: *pylock.toml specification*, Python Packaging User Guide (PEP 751), lock version 1.

use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::Table;

use crate::error::PyenvError;

/// Whether a file of this name is one: `pylock.toml`, `pylock.NAME.toml`.
pub(crate) fn is_one(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let middle = name.strip_prefix("pylock.").and_then(|rest| rest.strip_suffix("toml"));
    middle.is_some_and(|middle| middle.is_empty() || middle.len() > 1 && middle.ends_with('.'))
}

/// What is read of it; more may stand there.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    lock_version: Spanned<String>,
    #[serde(default)]
    packages: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    version: Option<String>,
    marker: Option<String>,
    vcs: Option<Table>,
    directory: Option<Table>,
    archive: Option<Table>,
    sdist: Option<Artifact>,
    #[serde(default)]
    wheels: Vec<Artifact>,
}

#[derive(Deserialize)]
struct Artifact {
    #[serde(default)]
    hashes: std::collections::BTreeMap<String, String>,
}

/// Its pins as hashed requirements. `path` serves messages only.
///
/// # Errors
/// [`PyenvError::Lock`] with the line: no TOML, another lock version, a package from elsewhere than an index, one without a version or
/// a hash.
pub(crate) fn requirements(text: &[u8], path: &Path) -> Result<Vec<u8>, PyenvError> {
    let refuse = |line: usize, reason: String| PyenvError::Lock { path: path.to_owned(), line, reason };
    let text = std::str::from_utf8(text).map_err(|_| refuse(1, "the file is not UTF-8".to_owned()))?;
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        refuse(line(error.span().map_or(0, |span| span.start)), error.message().to_owned())
    })?;
    let version = file.lock_version.get_ref();
    if version.split('.').next() != Some("1") {
        let reason = format!("lock version `{version}` is not known; 1.0 is");
        return Err(refuse(line(file.lock_version.span().start), reason));
    }
    let mut out = String::new();
    for entry in &file.packages {
        let pin = pin(entry.get_ref()).map_err(|reason| refuse(line(entry.span().start), reason))?;
        out.push_str(&pin);
    }
    Ok(out.into_bytes())
}

fn pin(entry: &Entry) -> Result<String, String> {
    let Entry { name, .. } = entry;
    let elsewhere =
        [(&entry.vcs, "a repository"), (&entry.directory, "a folder"), (&entry.archive, "an archive")];
    if let Some((_, from)) = elsewhere.iter().find(|(table, _)| table.is_some()) {
        return Err(format!("`{name}` comes from {from}; only packages of an index are accepted"));
    }
    let version = entry.version.as_deref().ok_or_else(|| format!("`{name}` has no version"))?;
    let mut pin = format!("{name}=={version}");
    if let Some(marker) = &entry.marker {
        let _ = write!(pin, " ; {marker}");
    }
    let files = entry.sdist.iter().chain(&entry.wheels);
    let hashes: Vec<String> = files
        .flat_map(|file| &file.hashes)
        .map(|(algorithm, digits)| format!("{algorithm}:{digits}"))
        .collect();
    if hashes.is_empty() {
        return Err(format!("`{name}` has no file with a hash"));
    }
    for hash in hashes {
        let _ = write!(pin, " \\\n    --hash={hash}");
    }
    pin.push('\n');
    Ok(pin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHEEL: &str = "wheels = [{ url = \"https://e.org/six.whl\", hashes = { sha256 = \"HASH\" } }]";

    fn file(packages: &str) -> String {
        let hash = "ab".repeat(32);
        format!("lock-version = \"1.0\"\ncreated-by = \"uv\"\n{packages}").replace("HASH", &hash)
    }

    fn told(packages: &str) -> String {
        let path = Path::new("envs/pylock.cpu.toml");
        requirements(file(packages).as_bytes(), path)
            .map_or_else(|error| error.to_string(), |bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn pins_with_their_markers_and_the_hashes_of_all_files_become_requirements() {
        let sdist = "sdist = { url = \"https://e.org/six.tar.gz\", hashes = { sha256 = \"HASH\" } }";
        let one = format!(
            "[[packages]]\nname = \"six\"\nversion = \"1.17.0\"\nmarker = \"python_version >= '3.9'\"\n{sdist}\n{WHEEL}\n"
        );
        let hash = format!(" \\\n    --hash=sha256:{}", "ab".repeat(32));
        assert_eq!(told(&one), format!("six==1.17.0 ; python_version >= '3.9'{hash}{hash}\n"));
        let lock = crate::lock::Lock::parse(told(&one).as_bytes(), Path::new("x"));
        assert!(lock.is_ok(), "{lock:?}");
    }

    #[test]
    fn what_fixes_no_content_is_refused_with_its_line() {
        let of = |rest: &str| format!("\n[[packages]]\nname = \"six\"\n{rest}\n");
        for (packages, reason) in [
            (of(WHEEL), "envs/pylock.cpu.toml:4: `six` has no version"),
            (of("version = \"1.17.0\""), "envs/pylock.cpu.toml:4: `six` has no file with a hash"),
            (
                of("vcs = { type = \"git\", commit-id = \"x\" }"),
                "envs/pylock.cpu.toml:4: `six` comes from a repository; only packages of an index are accepted",
            ),
        ] {
            assert_eq!(told(&packages), reason);
        }
        let later = file("").replace("1.0", "2.0");
        let refused = requirements(later.as_bytes(), Path::new("pylock.toml")).unwrap_err().to_string();
        assert_eq!(refused, "pylock.toml:1: lock version `2.0` is not known; 1.0 is");
        let broken =
            requirements(b"lock-version = \"1.0\"\n[[packages]\n", Path::new("pylock.toml")).unwrap_err();
        assert!(broken.to_string().starts_with("pylock.toml:2: "), "{broken}");
    }

    #[test]
    fn it_is_known_by_its_name() {
        for (name, wanted) in [
            ("pylock.toml", true),
            ("envs/pylock.cpu.toml", true),
            ("pylock..toml", false),
            ("pylockcpu.toml", false),
            ("my.pylock.toml", false),
            ("pylock.lock", false),
        ] {
            assert_eq!(is_one(Path::new(name)), wanted, "{name}");
        }
    }
}
