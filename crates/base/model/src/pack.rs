//! `pack.toml`: a benchmark pack, its base tree and its environments.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canary::Canary;
use crate::format::{self, FormatError};

/// The schema version of `pack.toml` that this program reads.
pub const PACK_SCHEMA: u32 = 1;

/// A pack: where the base trees come from, and the environments that tasks name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// Version of this file's format.
    pub schema: u32,
    /// Name of the pack, such as `core`.
    pub name: String,
    /// Version of the pack's content.
    pub version: String,
    /// SPDX expression of the pack's own files.
    pub license: String,
    /// The contamination canary, a GUID: it stands in every sealed file and in no public one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<String>,
    /// Where base trees come from.
    pub source: Source,
    /// Environments by the name that `task.toml` gives.
    pub environments: BTreeMap<String, EnvironmentSpec>,
}

/// Where base trees come from: exactly one key is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A bundled base tree: a folder relative to the pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// A git repository: a path or a url. Tasks then name commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
}

/// A Python environment: a hashed lock, or an interpreter that is taken as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentSpec {
    /// Python version of a locked environment, such as `3.11`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Hashed requirements file, relative to the pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Absolute path of an interpreter whose packages are taken as they are and fingerprinted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Modules imported once, in the trusted launcher, before ranks are forked.
    #[serde(default)]
    pub framework: Vec<String>,
}

impl Pack {
    /// Parses and checks a `pack.toml`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Pack, FormatError> {
        let pack: Pack = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        pack.check(file).map_err(|error| error.locate(text))?;
        Ok(pack)
    }

    /// The canary.
    pub fn canary(&self) -> Option<Canary> {
        self.canary.as_deref().and_then(Canary::parse)
    }

    fn check(&self, file: &str) -> Result<(), FormatError> {
        format::schema(file, self.schema, PACK_SCHEMA)?;
        let refuse = |key: &str, what: &str| Err(FormatError::new(file, Some(key), what));
        if !is_name(&self.name) {
            return refuse("name", "is lower-case letters, digits and dashes");
        }
        if self.canary.as_deref().is_some_and(|guid| Canary::parse(guid).is_none()) {
            return refuse(
                "canary",
                "is a GUID in lower case, such as `infradev canary PACK --write` makes one",
            );
        }
        if self.source.tree.is_some() == self.source.git.is_some() {
            return refuse("source", "names exactly one of `tree` and `git`");
        }
        for (name, environment) in &self.environments {
            let key = format!("environments.{name}");
            match (&environment.lock, &environment.interpreter, &environment.python) {
                (Some(_), None, Some(_)) | (None, Some(_), None) => {}
                (Some(_), None, None) => {
                    return refuse(&key, "a lock needs `python`, the version to build it for");
                }
                _ => return refuse(&key, "names either `lock` with `python`, or `interpreter`"),
            }
            if let Some(python) = environment.python.as_ref().filter(|python| !is_python_version(python)) {
                let what = format!("`{python}` is no Python version");
                let error = FormatError::new(file, Some(&format!("{key}.python")), what);
                return Err(error.advise("write it as \"3.11\" or \"3.11.7\""));
            }
            if environment.interpreter.as_ref().is_some_and(|path| !path.starts_with('/')) {
                return refuse(&format!("{key}.interpreter"), "is an absolute path");
            }
        }
        Ok(())
    }
}

/// Whether a text is two or three numbers, as `3.11` or `3.11.7`.
pub fn is_python_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (2..=3).contains(&parts.len()) && parts.iter().all(digits)
}

/// Whether a word serves as the name of a pack, a task or an adversarial patch.
pub fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
        && word.starts_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Classified;

    #[test]
    fn a_version_that_is_none_is_told_with_its_line_and_what_it_looks_like() {
        let pack = |python: &str| {
            let text = format!(
                "schema = 1\nname = \"toy\"\nversion = \"1\"\nlicense = \"MIT\"\n[source]\ntree = \"repo\"\n\
                 [environments.gpu]\npython = \"3.12\"\nlock = \"gpu.lock\"\n\
                 [environments.cpu]\npython = \"{python}\"\nlock = \"cpu.lock\"\n"
            );
            Pack::parse("pack.toml", text.as_bytes())
        };
        assert!(pack("3.11").is_ok() && pack("3.11.7").is_ok());
        for wrong in ["three", "3", "3.x", "", "3.11.7.1", ">=3.11"] {
            let Err(error) = pack(wrong) else { panic!("{wrong} was taken") };
            let told = format!("pack.toml:11: key `environments.cpu.python`: `{wrong}` is no Python version");
            assert_eq!(error.to_string(), told);
            assert_eq!(error.hint().as_deref(), Some("write it as \"3.11\" or \"3.11.7\""));
        }
    }
}
