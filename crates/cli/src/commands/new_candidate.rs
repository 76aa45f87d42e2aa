//! The candidate that a task is made of, from a file that `infradev curate --jsonl` wrote.

use std::fs;
use std::path::Path;

use infradev_model::Candidate;

use crate::report::{Failure, visible};

/// Candidates that are named where none was chosen.
const NAMED: usize = 8;

/// The candidate of a number or commit; the file's only one where neither is given.
pub fn read(path: &Path, commit: Option<&str>, number: Option<u64>) -> Result<Candidate, Failure> {
    let shown = path.display();
    let made_by = "write one with infradev curate REPO --jsonl FILE";
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::bad_input(format!("{shown}: {error}")).hint(made_by))?;
    let mut found: Vec<Candidate> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let candidate = serde_json::from_str(line).map_err(|error| {
            Failure::bad_input(format!("{shown}:{}: no candidate: {error}", at + 1)).hint(made_by)
        })?;
        found.push(candidate);
    }
    let of_number = number.map(|number| (format!("#{number}"), format!("!{number}")));
    let wanted = |candidate: &&Candidate| match (commit, &of_number) {
        (Some(commit), _) => !commit.is_empty() && candidate.commit.starts_with(commit),
        (None, Some((github, gitlab))) => {
            candidate.number.as_ref().is_some_and(|number| number == github || number == gitlab)
        }
        (None, None) => true,
    };
    let chosen: Vec<&Candidate> = found.iter().filter(wanted).collect();
    match chosen[..] {
        [one] => Ok(one.clone()),
        [] if found.is_empty() => {
            Err(Failure::bad_input(format!("{shown} holds no candidate")).hint(made_by))
        }
        [] => {
            let asked = commit.map(str::to_owned).or(of_number.map(|(github, _)| github)).unwrap_or_default();
            Err(Failure::bad_input(format!("{shown} has no candidate {asked}"))
                .hint(format!("it has {}", names(&found.iter().collect::<Vec<_>>()))))
        }
        _ => Err(Failure::usage(format!("{shown} has {} candidates that fit", chosen.len()))
            .hint(format!("choose one with --pr or --commit: {}", names(&chosen)))),
    }
}

fn names(candidates: &[&Candidate]) -> String {
    let name = |candidate: &&Candidate| match &candidate.number {
        Some(number) => number.clone(),
        None => candidate.commit.chars().take(10).collect(),
    };
    let mut names: Vec<String> = candidates.iter().map(name).collect();
    // A file has them by score; who looks for a number reads them in order.
    names.sort_by_key(|name| (name.len(), name.clone()));
    names.truncate(NAMED);
    if candidates.len() > NAMED {
        names.push(format!("and {} more", candidates.len() - NAMED));
    }
    visible(&names.join(", ")).into_owned()
}
