//! A hashed requirements file, as `uv pip compile --generate-hashes` and `pip-compile --generate-hashes` write it.
//!
//! Only what pins content is accepted: `name==version`, optional markers, one or more `--hash`. All else (urls, paths,
//! editable lines, ranges, options that change what is installed) is refused with the line that holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pep440_rs::Version;

use crate::error::PyenvError;
use crate::interpreter::normalised;
use crate::marker::{Marker, MarkerValues};

/// Options that say where packages come from. Hashes fix what they hold, so these don't take part in the key.
const INDEX_OPTIONS: [&str; 3] = ["--index-url", "-i", "--extra-index-url"];

/// Algorithms that uv accepts in `--hash`.
const HASHES: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// One pinned line of a lock.
#[derive(Debug, Clone)]
struct Pin {
    line: usize,
    /// Normalised as in PEP 503.
    name: String,
    version: String,
    hashes: BTreeSet<String>,
    /// Absent where the pin counts on every interpreter.
    marker: Option<Marker>,
}

/// A parsed lock: pins with their markers, before an interpreter decides which of them count.
#[derive(Debug, Clone)]
pub struct Lock {
    path: PathBuf,
    pins: Vec<Pin>,
}

/// One package of a resolved set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The normalised version (PEP 440), for example `2.1.0`.
    pub version: String,
    /// `sha256:…` of each file that may be installed, sorted.
    pub hashes: BTreeSet<String>,
}

/// Package name, normalised as in PEP 503, to what is pinned.
pub type Resolved = BTreeMap<String, Package>;

impl Lock {
    /// Parses the text of a lock; `path` serves messages only.
    pub fn parse(text: &[u8], path: &Path) -> Result<Lock, PyenvError> {
        let refuse = |line: usize, reason: String| PyenvError::Lock { path: path.to_owned(), line, reason };
        let text = std::str::from_utf8(text).map_err(|e| {
            let line = text[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            refuse(line, "the file is not UTF-8".to_owned())
        })?;
        let mut pins = Vec::new();
        for (line, logical) in logical_lines(text.strip_prefix('\u{feff}').unwrap_or(text)) {
            if let Some(pin) = parse_line(line, &logical).map_err(|reason| refuse(line, reason))? {
                pins.push(pin);
            }
        }
        if pins.is_empty() {
            return Err(refuse(1, "the lock pins no package".to_owned()));
        }
        Ok(Lock { path: path.to_owned(), pins })
    }

    /// The pins whose markers hold for this interpreter.
    pub fn resolve(&self, markers: &MarkerValues) -> Result<Resolved, PyenvError> {
        let mut set: BTreeMap<String, (usize, Package)> = BTreeMap::new();
        for pin in &self.pins {
            let refuse =
                |reason: String| PyenvError::Lock { path: self.path.clone(), line: pin.line, reason };
            let counts = pin.marker.as_ref().map_or(Ok(true), |marker| marker.holds(markers));
            if !counts.map_err(refuse)? {
                continue;
            }
            let name = pin.name.clone();
            if let Some((first, package)) = set.get_mut(&name) {
                if package.version != pin.version {
                    let reason = format!(
                        "`{name}` is pinned to {} here and to {} on line {first}",
                        pin.version, package.version
                    );
                    return Err(refuse(reason));
                }
                package.hashes.extend(pin.hashes.iter().cloned());
                continue;
            }
            let package = Package { version: pin.version.clone(), hashes: pin.hashes.clone() };
            set.insert(name, (pin.line, package));
        }
        Ok(set.into_iter().map(|(name, (_, package))| (name, package)).collect())
    }
}

/// Joins continued lines and drops comments; each with the number of its first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, raw) in text.lines().enumerate() {
        // A comment line inside a continuation is skipped, as pip does.
        let raw = strip_comment(raw).trim();
        let (part, continues) = match raw.strip_suffix('\\') {
            Some(part) => (part.trim_end(), true),
            None => (raw, false),
        };
        let (_, joined) = open.get_or_insert_with(|| (index + 1, String::new()));
        if !part.is_empty() {
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(part);
        }
        if !continues && let Some((line, joined)) = open.take().filter(|(_, joined)| !joined.is_empty()) {
            lines.push((line, joined));
        }
    }
    lines.extend(open.filter(|(_, joined)| !joined.is_empty()));
    lines
}

/// A `#` starts a comment at the start of a line or after white space.
fn strip_comment(line: &str) -> &str {
    let mut previous = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && previous.is_whitespace() {
            return &line[..at];
        }
        previous = c;
    }
    line
}

fn parse_line(line: usize, text: &str) -> Result<Option<Pin>, String> {
    if text.starts_with('-') {
        let option = text.split([' ', '=']).next().unwrap_or(text);
        if INDEX_OPTIONS.contains(&option) {
            return Ok(None);
        }
        return Err(match option {
            "-e" | "--editable" => "an editable package has no fixed content".to_owned(),
            "-r" | "--requirement" | "-c" | "--constraint" => {
                format!("`{option}` names another file; a lock stands alone")
            }
            _ => format!("the option `{option}` is not accepted in a lock"),
        });
    }
    let (spec, options) = match text.find(" --") {
        Some(at) => (text[..at].trim(), &text[at..]),
        None => (text, ""),
    };
    let looks_like_path = spec.starts_with(['.', '/']) || spec.ends_with(".whl") || spec.ends_with(".tar.gz");
    if looks_like_path || spec.contains("://") || spec.contains(" @ ") {
        return Err(format!("`{spec}` is a url or path; only `name==version` from an index is accepted"));
    }
    let (pinned, marker) = match spec.split_once(';') {
        Some((pinned, marker)) => (pinned.trim(), marker.trim()),
        None => (spec, ""),
    };
    let (name, version) = parse_pin(pinned)?;
    let marker = match marker {
        "" => None,
        text => Some(Marker::parse(text).map_err(|reason| format!("marker `{text}`: {reason}"))?),
    };
    let mut hashes = BTreeSet::new();
    for option in options.split_whitespace() {
        let Some(hash) = option.strip_prefix("--hash=") else {
            return Err(format!("the option `{option}` is not accepted in a lock"));
        };
        hashes.insert(checked_hash(hash)?);
    }
    if hashes.is_empty() {
        return Err(format!("`{name}` has no --hash"));
    }
    Ok(Some(Pin { line, name: normalised(name), version, hashes, marker }))
}

/// `name==version` or `name[extra]==version`. Extras ask for other packages, which a lock pins on lines of their own.
fn parse_pin(text: &str) -> Result<(&str, String), String> {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    let in_name = |c: char| alphanumeric(c) || matches!(c, '-' | '_' | '.');
    let end = text.find(|c| !in_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !name.starts_with(alphanumeric) || !name.ends_with(alphanumeric) {
        return Err(format!("`{text}` does not start with the name of a package"));
    }
    let mut rest = rest.trim_start();
    if let Some(extras) = rest.strip_prefix('[') {
        let known = |c: char| in_name(c) || matches!(c, ',' | ' ');
        let Some((_, after)) = extras.split_once(']').filter(|(inside, _)| inside.chars().all(known)) else {
            return Err(format!("the extras of `{name}` are not closed by `]`"));
        };
        rest = after.trim_start();
    }
    let version = rest.strip_prefix("==").map(|rest| rest.strip_prefix('=').unwrap_or(rest).trim());
    let Some(version) = version.filter(|version| !version.contains([',', '*'])) else {
        return Err(format!("`{name}` is not pinned with `==`"));
    };
    let version = Version::from_str(version)
        .map_err(|e| format!("`{version}` is no version: {}", first_line(&e.to_string())))?;
    Ok((name, version.to_string()))
}

fn checked_hash(hash: &str) -> Result<String, String> {
    let lower = hash.to_ascii_lowercase();
    let known = lower.split_once(':').is_some_and(|(algorithm, digits)| {
        HASHES.contains(&(algorithm, digits.len())) && digits.bytes().all(|b| b.is_ascii_hexdigit())
    });
    if known { Ok(lower) } else { Err(format!("`--hash={hash}` is no sha256, sha384 or sha512 digest")) }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pins() -> impl Strategy<Value = BTreeMap<String, (String, BTreeSet<String>)>> {
        let hashes = prop::collection::btree_set("sha256:[0-9a-f]{64}", 1..4);
        prop::collection::btree_map(
            "[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,3})?",
            ("[1-9]\\.[1-9][0-9]?", hashes),
            1..6,
        )
    }

    proptest! {
        #[test]
        fn any_layout_of_the_same_pins_parses_to_the_same_set(pins in pins(), seed in any::<u64>()) {
            let mut entries: Vec<_> = pins.iter().collect();
            if seed & 1 == 1 {
                entries.reverse();
            }
            let newline = if seed & 2 == 2 { "\r\n" } else { "\n" };
            let join = if seed & 4 == 4 { format!(" \\{newline}    ") } else { " ".to_owned() };
            let comment = if seed & 8 == 8 { format!("    # via x --hash=no{newline}") } else { String::new() };
            let mut text = format!("# head{newline}{newline}");
            for (name, (version, hashes)) in entries {
                let name = if seed & 16 == 16 { name.to_uppercase().replace('-', "_") } else { name.clone() };
                let hashes = hashes.iter().map(|hash| format!("{join}--hash={hash}")).collect::<String>();
                text.push_str(&format!("{name}=={version}{hashes}{newline}{comment}"));
            }
            let lock = Lock::parse(text.as_bytes(), Path::new("a.lock")).unwrap();
            let parsed: BTreeMap<String, (String, BTreeSet<String>)> = lock
                .pins
                .into_iter()
                .map(|pin| (pin.name, (pin.version, pin.hashes)))
                .collect();
            prop_assert_eq!(parsed, pins);
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[-a-z=<>!~;@#\\\\ \n:./'\"\\[\\]]{0,80}") {
            let _ = Lock::parse(&bytes, Path::new("a.lock"));
            let refused = Lock::parse(text.as_bytes(), Path::new("a.lock"));
            prop_assert!(refused.is_err(), "there was no hash in {:?}", text);
        }
    }
}
