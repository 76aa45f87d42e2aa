//! Merged changes worth a task in a real history: what each is made of, with the evidence, and why the others are left out.
//!
//! A history is read once. What is known of a commit is kept below the store, so that a second run reads new commits only.
//! Nothing of a repository is kept but facts: ids, titles, paths, counts, and lines of tests that say what they need.

mod change;
mod choice;
mod error;
mod groups;
mod guess;
mod history;
mod message;
mod paths;
mod record;
mod score;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use infradev_git::Repo;
use infradev_model::{CURATION_SCHEMA, Candidate, CurationDocument, LeftOut, LeftOutBecause};

pub use change::MOST_SOURCE_FILES;
pub use choice::{Filter, Want};
pub use error::CurateError;
pub use guess::{area, kind};
pub use message::{Message, read as read_message};
pub use paths::{PathClass, classify};
use record::{Outcome, Record, Records};

/// What is asked of a history.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Revisions whose main lines are read; of changes that several have, the first one's commit counts.
    pub revisions: Vec<String>,
    /// Which candidates.
    pub filter: Filter,
    /// How many; all where nothing is said.
    pub want: Option<Want>,
}

/// Reads a history. `kept` is the folder where records of commits are kept; `told` is called with how many of the new
/// commits are read.
///
/// # Errors
/// [`CurateError`].
pub fn curate(
    repo: &Repo,
    kept: &Path,
    request: &Request,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<CurationDocument, CurateError> {
    if let Some(since) = &request.filter.since {
        check_date(since)?;
    }
    let (placed, heads) = history::lines(repo, &request.revisions)?;
    let mut records = Records::open(kept, repo.git_dir())?;
    history::read(repo, &placed, &mut records, told)?;
    let read: Vec<(usize, &Record)> =
        placed.iter().filter_map(|p| Some((p.line, records.get(p.id.as_str())?))).collect();
    let members: Vec<groups::Member> = read
        .iter()
        .map(|(line, record)| groups::Member {
            commit: record.commit.clone(),
            line: *line,
            message: record.message.clone(),
            sources: record.sources.clone(),
        })
        .collect();
    let mut grouped = groups::group(&members);
    let mut left_out: BTreeMap<LeftOutBecause, u32> = BTreeMap::new();
    let mut related = Vec::new();
    let mut candidates = Vec::new();
    for (_, record) in &read {
        let mut count = |because| *left_out.entry(because).or_default() += 1;
        if let Some((because, other)) = grouped.left_out.remove(&record.commit) {
            count(because);
            let (commit, subject) = (record.commit.clone(), record.message.title.clone());
            related.push(LeftOut { commit, subject, because, other });
            continue;
        }
        let (facts, base) = match (&record.outcome, &record.base) {
            (Outcome::Facts(facts), Some(base)) => (facts, base),
            (Outcome::Facts(_), None) => {
                count(LeftOutBecause::NoParent);
                continue;
            }
            (Outcome::LeftOut(because), _) => {
                count(*because);
                continue;
            }
        };
        let parts = score::parts(facts);
        let candidate = Candidate {
            commit: record.commit.clone(),
            base: base.clone(),
            number: record.message.number.clone(),
            date: record.date.clone(),
            title: record.message.of_change().to_owned(),
            also: grouped.standing.remove(&record.commit).unwrap_or_default(),
            facts: (**facts).clone(),
            score: parts.iter().map(|part| part.points).sum(),
            parts,
        };
        if request.filter.takes(&candidate) {
            candidates.push(candidate);
        } else {
            count(LeftOutBecause::Filtered);
        }
    }
    candidates.sort_by(|a, b| (-a.score, &b.date, &a.commit).cmp(&(-b.score, &a.date, &b.commit)));
    let (candidates, missing) = match request.want {
        Some(want) => choice::choose(candidates, want),
        None => (candidates, Vec::new()),
    };
    let numbers: BTreeSet<&str> = read.iter().filter_map(|(_, r)| r.message.number.as_deref()).collect();
    let heads = heads.iter().map(|head| head.as_str().to_owned());
    Ok(CurationDocument {
        schema: CURATION_SCHEMA,
        revisions: request.revisions.iter().cloned().zip(heads).collect(),
        commits: read.len() as u32,
        numbers: numbers.len() as u32,
        candidates,
        left_out,
        related,
        missing,
    })
}

/// `2026-03-01`.
fn check_date(given: &str) -> Result<(), CurateError> {
    let shape: Vec<usize> = given.split('-').map(str::len).collect();
    let digits = given.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    if shape == [4, 2, 2] && digits { Ok(()) } else { Err(CurateError::Date { given: given.to_owned() }) }
}
