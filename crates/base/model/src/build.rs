//! `[build]` of a `task.toml`: what of the tree is compiled before tests run, from which files, into which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::FormatError;
use crate::task::is_tree_path;

/// How the native code of a tree is built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildSpec {
    /// Program and arguments, run at the top of a tree that holds the inputs and nothing else. `python` is the environment's.
    pub command: Vec<String>,
    /// What of the tree it reads. A path stands for itself and for all below it, `*` for any part of one name.
    pub inputs: Vec<String>,
    /// What it makes, in the same form. The tree has none of it.
    pub outputs: Vec<String>,
    /// Seconds that it may take.
    #[serde(default = "default_timeout")]
    pub timeout: f64,
}

fn default_timeout() -> f64 {
    900.0
}

impl BuildSpec {
    /// Whether it reads this file of the tree.
    pub fn reads(&self, path: &[u8]) -> bool {
        covers(&self.inputs, path)
    }

    /// Whether this file is one that it makes.
    pub fn makes(&self, path: &[u8]) -> bool {
        covers(&self.outputs, path)
    }

    /// The first of the outputs that none of these files is.
    pub fn lacking(&self, made: &[Vec<u8>]) -> Option<&str> {
        let lacks = |output: &&String| !made.iter().any(|path| covers(std::slice::from_ref(output), path));
        self.outputs.iter().find(lacks).map(String::as_str)
    }

    pub(crate) fn check(&self, file: &str) -> Result<(), FormatError> {
        let refuse = |key: &str, what: String| Err(FormatError::new(file, Some(key), what));
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return refuse("build.command", "names a program and its arguments".into());
        }
        for (key, paths) in [("build.inputs", &self.inputs), ("build.outputs", &self.outputs)] {
            if paths.is_empty() {
                return refuse(key, "names at least one path".into());
            }
            for (at, path) in paths.iter().enumerate() {
                let key = format!("{key}[{at}]");
                if !is_tree_path(path) {
                    return refuse(&key, format!("`{path}` is not a path inside the tree"));
                }
                if path.contains("**") {
                    return refuse(&key, "a folder stands for all below it; `**` is not needed".into());
                }
            }
        }
        if !(self.timeout > 0.0 && self.timeout.is_finite() && self.timeout < 1e6) {
            return refuse("build.timeout", format!("{} is not a time in seconds", self.timeout));
        }
        Ok(())
    }
}

/// Whether one of these names the path, or a folder above it.
fn covers(patterns: &[String], path: &[u8]) -> bool {
    patterns.iter().any(|pattern| {
        let mut names = path.split(|byte| *byte == b'/');
        let mut wanted = pattern.split('/').filter(|name| !name.is_empty() && *name != ".");
        wanted.all(|wanted| names.next().is_some_and(|name| fits(wanted, name)))
    })
}

/// Whether a name is as the pattern says, in which `*` stands for any bytes.
fn fits(pattern: &str, name: &[u8]) -> bool {
    let mut pieces = pattern.as_bytes().split(|byte| *byte == b'*');
    let Some(mut rest) = name.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut last: Option<&[u8]> = None;
    for piece in pieces {
        if let Some(between) = last.replace(piece).filter(|between| !between.is_empty()) {
            let Some(at) = rest.windows(between.len()).position(|window| window == between) else {
                return false;
            };
            rest = &rest[at + between.len()..];
        }
    }
    last.map_or(rest.is_empty(), |piece| rest.ends_with(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(pattern: &str, path: &str) -> bool {
        covers(&[pattern.to_owned()], path.as_bytes())
    }

    #[test]
    fn a_path_covers_itself_and_what_lies_below_it() {
        assert!(
            covered("csrc", "csrc/ops/add.cpp")
                && covered("csrc/", "csrc/a")
                && covered("setup.py", "setup.py")
        );
        assert!(covered(".", "any/file") && covered("./csrc", "csrc/a"));
        assert!(
            !covered("csrc", "csrc2/a") && !covered("csrc/ops", "csrc") && !covered("setup.py", "a/setup.py")
        );
    }

    #[test]
    fn a_star_stands_for_any_part_of_one_name() {
        let so = "pkg/_C.cpython-311-x86_64-linux-gnu.so";
        assert!(
            covered("pkg/_C*.so", so)
                && covered("pkg/*", so)
                && covered("*/_C*", so)
                && covered("p*g/*C*311*.so", so)
        );
        assert!(!covered("pkg/_D*.so", so) && !covered("pkg/_C*.o", so) && !covered("*.so", so));
        // A piece is not counted twice.
        assert!(!covered("a*a", "a") && covered("a*a", "aa") && !covered("ab*ba*x", "abax"));
    }
}
