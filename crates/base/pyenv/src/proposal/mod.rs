//! A lock proposed from a repository's own files: what can be pinned by hash from what stands there, and what can't.
//!
//! Nothing is run and nothing is fetched. What comes out is a draft for a person to look over.

mod requirements;
mod uv_lock;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use crate::error::PyenvError;
use crate::lock::Lock;
use crate::marker::MarkerValues;

/// Files of a tree's top that a proposal reads, requirements files apart.
const READ: [&str; 8] = [
    ".python-version",
    "Pipfile.lock",
    "environment.yml",
    "poetry.lock",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "uv.lock",
];

/// Whether a proposal reads a path of the tree.
pub fn is_read(path: &str) -> bool {
    let (folder, name) = path.split_once('/').unwrap_or(("", path));
    let text = name.ends_with(".txt") && !name.contains('/');
    READ.contains(&path)
        || folder == "requirements" && text
        || folder.is_empty() && text && name.starts_with("requirements")
}

/// What is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proposal {
    /// A Python version, `3.12`.
    pub python: String,
    /// A hashed lock.
    pub lock: Option<String>,
    /// What is asked for, to be locked by a resolver, where there is no lock.
    pub requirements: Option<String>,
    /// What was proposed, and from which file.
    pub said: Vec<String>,
    /// What could not be done, and what to do about it.
    pub left: Vec<String>,
}

/// Versions of Python that are proposed, the first that the repository allows.
const PYTHONS: [&str; 6] = ["3.12", "3.11", "3.13", "3.10", "3.14", "3.9"];

/// Proposes a lock from files by their path in the tree.
pub fn propose(files: &BTreeMap<String, Vec<u8>>) -> Proposal {
    let mut proposal = Proposal::default();
    let project = toml_of(files, "pyproject.toml", &mut proposal.left);
    let locked = toml_of(files, "uv.lock", &mut proposal.left);
    python(files, project.as_ref(), locked.as_ref(), &mut proposal);
    if !hashed(files, &mut proposal) {
        if let Some(locked) = &locked {
            let markers = markers(&proposal.python);
            uv_lock::pins(locked, &markers, &mut proposal);
        }
        if proposal.lock.is_none() {
            requirements::collect(files, project.as_ref(), &mut proposal);
        }
    }
    for name in ["poetry.lock", "Pipfile.lock", "environment.yml"] {
        if files.contains_key(name) && proposal.lock.is_none() {
            proposal.left.push(format!(
                "{name} is not read: export it as hashed requirements and give that with --lock"
            ));
        }
    }
    if files.contains_key("setup.py") && proposal.lock.is_none() {
        proposal.left.push("setup.py is not run: what only it asks for is missing".into());
    }
    proposal
}

/// What `uv.lock` pins on a platform, tests included, as hashed requirements.
///
/// # Errors
/// [`PyenvError::Lock`]: no TOML, a package that no index has, one that the lock has on other platforms only.
pub(crate) fn requirements_of_uv_lock(
    text: &[u8],
    path: &Path,
    markers: &MarkerValues,
) -> Result<Vec<u8>, PyenvError> {
    let refuse = |line: usize, reason: String| PyenvError::Lock { path: path.to_owned(), line, reason };
    let text = std::str::from_utf8(text).map_err(|_| refuse(1, "the file is not UTF-8".to_owned()))?;
    let table = toml::from_str::<toml::Table>(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        refuse(text[..at].matches('\n').count() + 1, error.message().to_owned())
    })?;
    let mut proposal = Proposal::default();
    uv_lock::pins(&table, markers, &mut proposal);
    match (proposal.lock, proposal.left.first()) {
        (Some(lock), None) => Ok(lock.into_bytes()),
        (_, Some(left)) => Err(refuse(1, left.clone())),
        (None, None) => Err(refuse(1, "the lock pins no package".to_owned())),
    }
}

fn toml_of(files: &BTreeMap<String, Vec<u8>>, name: &str, left: &mut Vec<String>) -> Option<toml::Table> {
    let text = std::str::from_utf8(files.get(name)?).ok();
    match text.map(toml::from_str::<toml::Table>) {
        Some(Ok(table)) => Some(table),
        Some(Err(error)) => {
            left.push(format!("{name} is not read: {}", error.message()));
            None
        }
        None => {
            left.push(format!("{name} is not read: it is not UTF-8"));
            None
        }
    }
}

fn python(
    files: &BTreeMap<String, Vec<u8>>,
    project: Option<&toml::Table>,
    locked: Option<&toml::Table>,
    proposal: &mut Proposal,
) {
    let pinned = files.get(".python-version").and_then(|bytes| std::str::from_utf8(bytes).ok());
    let pinned = pinned.and_then(|text| text.lines().next()).map(|line| line.trim().to_owned());
    if let Some(version) = pinned.filter(|version| Version::from_str(version).is_ok()) {
        let short: Vec<&str> = version.split('.').take(2).collect();
        proposal.python = short.join(".");
        proposal.said.push(format!("Python {}, from .python-version", proposal.python));
        return;
    }
    let of_project = project.and_then(|table| table.get("project")?.get("requires-python")?.as_str());
    let of_lock = locked.and_then(|table| table.get("requires-python")?.as_str());
    let asked = of_project.map(|text| (text, "pyproject.toml")).or(of_lock.map(|text| (text, "uv.lock")));
    let allowed = asked.and_then(|(text, from)| Some((VersionSpecifiers::from_str(text).ok()?, text, from)));
    let fits = |version: &&&str| match &allowed {
        Some((asked, _, _)) => {
            Version::from_str(&format!("{version}.9")).is_ok_and(|version| asked.contains(&version))
        }
        None => true,
    };
    let Some(version) = PYTHONS.iter().find(fits) else {
        proposal.python = PYTHONS[0].to_owned();
        proposal.left.push("no Python that is known here is what the repository asks for".into());
        return;
    };
    proposal.python = (*version).to_owned();
    proposal.said.push(match allowed {
        Some((_, text, from)) => format!("Python {version}, since {from} asks for {text}"),
        None => format!("Python {version}: no file says which"),
    });
}

/// Takes a requirements file that is a lock already.
fn hashed(files: &BTreeMap<String, Vec<u8>>, proposal: &mut Proposal) -> bool {
    for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".txt")) {
        if Lock::parse(bytes, Path::new(path)).is_ok() {
            proposal.lock = Some(String::from_utf8_lossy(bytes).into_owned());
            proposal.said.push(format!("the lock is {path} as it stands: each pin has its hashes"));
            return true;
        }
    }
    false
}

/// What CPython of a version says of itself on Linux.
fn markers(python: &str) -> MarkerValues {
    let values = [
        ("implementation_name", "cpython"),
        ("implementation_version", python),
        ("os_name", "posix"),
        ("platform_machine", "x86_64"),
        ("platform_python_implementation", "CPython"),
        ("platform_system", "Linux"),
        ("python_full_version", python),
        ("python_version", python),
        ("sys_platform", "linux"),
    ];
    values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Names that groups and extras of tests go by.
const OF_TESTS: [&str; 5] = ["test", "tests", "testing", "dev", "ci"];

#[cfg(test)]
mod tests {
    use super::*;

    fn files(given: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        given.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
    }

    const LOCKED: &str = r#"
version = 1
requires-python = ">=3.11"

[[package]]
name = "app"
version = "0.1.0"
source = { editable = "." }
dependencies = [
    { name = "numpy" },
    { name = "torch", marker = "sys_platform == 'never'" },
    { name = "winonly", marker = "sys_platform == 'win32'" },
    { name = "from-git" },
]

[package.dev-dependencies]
test = [{ name = "pytest", extra = ["fast"] }]
docs = [{ name = "sphinx" }]

[[package]]
name = "numpy"
version = "2.1.0"
source = { registry = "https://pypi.org/simple" }
wheels = [{ url = "https://x/n.whl", hash = "sha256:0000000000000000000000000000000000000000000000000000000000000001" }]

[[package]]
name = "pytest"
version = "8.0.0"
source = { registry = "https://pypi.org/simple" }
sdist = { url = "https://x/p.tar.gz", hash = "sha256:0000000000000000000000000000000000000000000000000000000000000002" }

[package.optional-dependencies]
fast = [{ name = "quick" }]

[[package]]
name = "quick"
version = "1.0"
source = { registry = "https://example.org/simple" }
sdist = { url = "https://x/q.tar.gz", hash = "sha256:0000000000000000000000000000000000000000000000000000000000000003" }

[[package]]
name = "sphinx"
version = "1.0"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "from-git"
version = "1.0"
source = { git = "https://example.org/a.git?rev=1#2" }
"#;

    #[test]
    fn a_uv_lock_becomes_pins_of_what_tests_reach_and_the_rest_is_said() {
        let proposal = propose(&files(&[("uv.lock", LOCKED), ("setup.py", "")]));
        insta::assert_snapshot!(format!("{proposal:#?}"));
        let lock = proposal.lock.unwrap();
        assert!(Lock::parse(lock.as_bytes(), Path::new("x")).is_ok(), "{lock}");
    }

    #[test]
    fn requirements_without_hashes_are_gathered_for_a_resolver() {
        let project = "[project]\nrequires-python = '>=3.8,<3.11'\ndependencies = ['torch>=2.1', 'ray']\n[project.optional-dependencies]\ntest = ['pytest']\ngpu = ['flash-attn']\n";
        let proposal = propose(&files(&[
            ("pyproject.toml", project),
            (
                "requirements-test.txt",
                "pytest-asyncio # for async\n-r requirements.txt\n-e .\nhttps://x/y.whl\n",
            ),
            ("requirements-npu.txt", "torch-npu\n"),
        ]));
        insta::assert_snapshot!(format!("{proposal:#?}"));
    }

    #[test]
    fn a_hashed_requirements_file_is_taken_as_it_stands() {
        let hashed = format!("numpy==2.1.0 --hash=sha256:{}\n", "0".repeat(64));
        let proposal = propose(&files(&[("requirements.txt", &hashed), (".python-version", "3.11.4\n")]));
        assert_eq!((proposal.python.as_str(), proposal.lock), ("3.11", Some(hashed)));
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let broken = propose(&files(&[("uv.lock", "[["), ("poetry.lock", ""), ("pyproject.toml", "x = ")]));
        assert_eq!((broken.lock, broken.requirements), (None, None));
        assert!(broken.left.iter().any(|left| left.starts_with("uv.lock is not read")), "{:?}", broken.left);
        assert!(broken.left.iter().any(|left| left.starts_with("poetry.lock")), "{:?}", broken.left);
    }
}
