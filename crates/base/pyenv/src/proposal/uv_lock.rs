//! Pins out of `uv.lock`: what the project and its tests reach on one platform.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::path::Path;

use toml::{Table, Value};

use super::{OF_TESTS, Proposal};
use crate::lock::Lock;
use crate::marker::{Marker, MarkerValues};

const PYPI: &str = "https://pypi.org/simple";

/// Most packages that are named in one line.
const NAMED: usize = 12;

/// Writes the lock into the proposal, or why there is none.
pub fn pins(lock: &Table, markers: &MarkerValues, proposal: &mut Proposal) {
    let packages: Vec<&Table> = lock
        .get("package")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_table)
        .collect();
    let Some(root) = packages.iter().find(|package| is_root(package)) else {
        proposal.left.push("uv.lock names no package of the tree itself, so nothing is taken from it".into());
        return;
    };
    let mut walk = Walk { packages: &packages, markers, open: VecDeque::new(), skipped: BTreeSet::new() };
    walk.follow(array(root, "dependencies"));
    let mut groups = Vec::new();
    for table in ["dev-dependencies", "optional-dependencies"] {
        let known = root.get(table).and_then(Value::as_table);
        for (name, wanted) in
            known.into_iter().flatten().filter(|(name, _)| OF_TESTS.contains(&name.as_str()))
        {
            walk.follow(wanted.as_array().map_or(&[][..], Vec::as_slice));
            groups.push(name.clone());
        }
    }
    let reached = walk.all();
    let (mut pinned, mut indexes, mut unpinned) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for package in reached {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let hashes = hashes(package);
        let registry =
            package.get("source").and_then(|source| source.get("registry")).and_then(Value::as_str);
        match registry {
            Some(registry) if !hashes.is_empty() && !version.is_empty() => {
                if registry != PYPI
                    && registry.starts_with("https://")
                    && !registry.contains(char::is_whitespace)
                {
                    indexes.insert(registry.to_owned());
                }
                pinned.insert(name.to_owned(), (version.to_owned(), hashes));
            }
            _ => {
                unpinned.insert(name.to_owned());
            }
        }
    }
    let mut text = String::from("# Proposed from uv.lock: look it over.\n");
    for index in &indexes {
        let _ = writeln!(text, "--extra-index-url {index}");
    }
    for (name, (version, hashes)) in &pinned {
        let _ = write!(text, "{name}=={version}");
        for hash in hashes {
            let _ = write!(text, " \\\n    --hash={hash}");
        }
        text.push('\n');
    }
    let named = |names: &BTreeSet<String>| {
        let more = names.len().saturating_sub(NAMED);
        let shown: Vec<&str> = names.iter().map(String::as_str).take(NAMED).collect();
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    match Lock::parse(text.as_bytes(), Path::new("uv.lock")) {
        Ok(_) => {
            let groups =
                if groups.is_empty() { String::new() } else { format!(", with {}", groups.join(", ")) };
            proposal.said.push(format!("a lock of {} packages, from uv.lock{groups}", pinned.len()));
            proposal.lock = Some(text);
        }
        Err(error) => proposal.left.push(format!("uv.lock gives no lock: {error}")),
    }
    if !walk.skipped.is_empty() {
        let names = named(&walk.skipped);
        proposal.left.push(format!(
            "uv.lock itself leaves out {names} on this platform: pin them by hand if tests need them"
        ));
    }
    if !unpinned.is_empty() {
        let names = named(&unpinned);
        proposal.left.push(format!(
            "{names}: from git, a url or a folder, so no index has a hash to pin: build them by hand"
        ));
    }
}

fn is_root(package: &Table) -> bool {
    let source = package.get("source").and_then(Value::as_table);
    source.is_some_and(|source| {
        ["editable", "virtual", "directory"]
            .iter()
            .any(|kind| source.get(*kind).and_then(Value::as_str) == Some("."))
    })
}

fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn array<'a>(table: &'a Table, key: &str) -> &'a [Value] {
    table.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `sha256:…` of each file.
fn hashes(package: &Table) -> BTreeSet<String> {
    let sdist = package.get("sdist").into_iter();
    let files = sdist.chain(array(package, "wheels"));
    files.filter_map(|file| file.get("hash")?.as_str()).map(str::to_owned).collect()
}

struct Walk<'a> {
    packages: &'a [&'a Table],
    markers: &'a MarkerValues,
    open: VecDeque<(&'a Table, String)>,
    /// What the project itself or another asks for elsewhere only.
    skipped: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    /// Takes the edges that hold on this platform.
    fn follow(&mut self, edges: &'a [Value]) {
        for edge in edges.iter().filter_map(Value::as_table) {
            let name = text(edge, "name");
            if !self.holds(text(edge, "marker")) {
                // What is for another system is no loss; what holds nowhere was taken out by hand.
                if text(edge, "marker").contains("never") {
                    self.skipped.insert(name.to_owned());
                }
                continue;
            }
            let Some(package) = self.find(name, text(edge, "version")) else { continue };
            self.open.push_back((package, String::new()));
            for extra in array(edge, "extra").iter().filter_map(Value::as_str) {
                self.open.push_back((package, extra.to_owned()));
            }
        }
    }

    fn holds(&self, marker: &str) -> bool {
        // One that can't be read is taken to hold: too much is seen sooner than too little.
        marker.is_empty()
            || Marker::parse(marker).and_then(|marker| marker.holds(self.markers)).unwrap_or(true)
    }

    /// The package of a name: of several versions the one that is named, else the one for this platform.
    fn find(&self, name: &str, version: &str) -> Option<&'a Table> {
        let of_name = || self.packages.iter().copied().filter(|package| text(package, "name") == name);
        let here = |package: &&Table| {
            let markers = array(package, "resolution-markers");
            markers.is_empty() || markers.iter().filter_map(Value::as_str).any(|marker| self.holds(marker))
        };
        of_name()
            .find(|package| !version.is_empty() && text(package, "version") == version)
            .or_else(|| of_name().find(here))
            .or_else(|| of_name().next())
    }

    fn all(&mut self) -> Vec<&'a Table> {
        let mut seen: BTreeSet<(String, String, String)> = BTreeSet::new();
        let mut found: Vec<&'a Table> = Vec::new();
        while let Some((package, extra)) = self.open.pop_front() {
            let key = (text(package, "name").to_owned(), text(package, "version").to_owned(), extra.clone());
            if !seen.insert(key) || is_root(package) {
                continue;
            }
            if extra.is_empty() {
                found.push(package);
                self.follow(array(package, "dependencies"));
            } else if let Some(wanted) = package.get("optional-dependencies").and_then(|all| all.get(&extra))
            {
                self.follow(wanted.as_array().map_or(&[], Vec::as_slice));
            }
        }
        found
    }
}
