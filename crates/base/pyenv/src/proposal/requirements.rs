//! Requirements without hashes, gathered for a resolver.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::{OF_TESTS, Proposal};

/// Gathers what `pyproject.toml` and requirements files ask for.
pub fn collect(files: &BTreeMap<String, Vec<u8>>, project: Option<&Table>, proposal: &mut Proposal) {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let mut from: Vec<String> = Vec::new();
    if let Some(project) = project {
        let found = of_project(project, &mut proposal.left);
        if !found.is_empty() {
            from.push("pyproject.toml".into());
            wanted.extend(found);
        }
    }
    let mut passed_over: BTreeSet<&str> = BTreeSet::new();
    for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".txt")) {
        if !is_general(path) {
            passed_over.insert(path);
            continue;
        }
        from.push(path.clone());
        for line in String::from_utf8_lossy(bytes).lines() {
            let line = line.split(" #").next().unwrap_or(line).trim();
            if line.is_empty() || line.starts_with('#') || line.starts_with("-r") || line.starts_with("-c") {
                continue;
            }
            if line.starts_with('-') || line.contains("://") || line.starts_with(['.', '/']) {
                let shown: String = line.chars().take(80).collect();
                proposal.left.push(format!("{path}: `{shown}` is no package of an index"));
                continue;
            }
            wanted.insert(line.to_owned());
        }
    }
    if !passed_over.is_empty() {
        let names: Vec<&str> = passed_over.into_iter().collect();
        proposal.left.push(format!("{}: for some device or use only, not taken", names.join(", ")));
    }
    if wanted.is_empty() {
        proposal.left.push("no file of the tree says which packages it needs".into());
        return;
    }
    let ending = if wanted.len() == 1 { "" } else { "s" };
    proposal.said.push(format!("{} requirement{ending}, from {}", wanted.len(), from.join(", ")));
    proposal.left.push("they have no hashes, and resolving them needs an index".into());
    proposal.requirements = Some(wanted.into_iter().collect::<Vec<_>>().join("\n") + "\n");
}

/// `requirements.txt` and those of tests; others are for devices, docs, one engine of several.
fn is_general(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".txt");
    let rest = name.trim_start_matches("requirements").trim_start_matches(['-', '_', '.']);
    let general = ["", "base", "common", "main", "core"];
    general.contains(&rest) || OF_TESTS.contains(&rest)
}

fn of_project(project: &Table, left: &mut Vec<String>) -> Vec<String> {
    let table = project.get("project").and_then(Value::as_table);
    let list = |value: Option<&Value>| -> Vec<String> {
        let array = value.and_then(Value::as_array).into_iter().flatten();
        array.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut found = list(table.and_then(|table| table.get("dependencies")));
    let extras = table.and_then(|table| table.get("optional-dependencies")).and_then(Value::as_table);
    let groups = project.get("dependency-groups").and_then(Value::as_table);
    for (name, wanted) in extras.into_iter().flatten().chain(groups.into_iter().flatten()) {
        if OF_TESTS.contains(&name.as_str()) {
            found.extend(list(Some(wanted)));
        }
    }
    let dynamic = list(table.and_then(|table| table.get("dynamic")));
    if dynamic.iter().any(|name| name == "dependencies") {
        left.push("pyproject.toml leaves its dependencies to the build, which is not run".into());
    }
    let tools = project.get("tool").and_then(Value::as_table);
    if tools.is_some_and(|tools| tools.contains_key("poetry")) && table.is_none() {
        left.push("pyproject.toml says its dependencies in poetry's own words, which are not read".into());
    }
    found
}
