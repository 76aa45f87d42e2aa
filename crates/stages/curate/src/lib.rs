//! Merged changes worth a task in a real history: what each is made of, with the evidence, and why the others are left out.
//!
//! A history is read once. What is known of a commit is kept below the store, so that a second run reads new commits only.
//! Nothing of a repository is kept but facts: ids, titles, paths, counts, and lines of tests that say what they need.

mod area;
mod asking;
mod blobs;
mod change;
mod choice;
mod differing;
mod error;
mod groups;
mod history;
mod kind;
mod locks;
mod message;
mod page;
mod paths;
mod pulls;
mod record;
mod score;
mod told;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use infradev_git::Repo;
use infradev_model::{CURATION_SCHEMA, Candidate, CurationDocument, Facts, LeftOut, LeftOutBecause};

pub use area::area;
pub use change::MOST_SOURCE_FILES;
pub use choice::{Filter, Want};
pub use error::CurateError;
pub use kind::{Made, kind};
pub use message::{Message, read as read_message};
pub use page::page;
pub use paths::{PathClass, classify};
pub use pulls::{Endpoint, Forge, github_name, is_repository};
use record::{Outcome, Record, Records};
pub use told::Told;

/// What is asked of a history.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Revisions whose main lines are read; of changes that several have, the first one's commit counts.
    pub revisions: Vec<String>,
    /// Which candidates.
    pub filter: Filter,
    /// How many; all where nothing is said.
    pub want: Option<Want>,
    /// Where descriptions and labels of pull requests are asked for.
    pub forge: Option<Forge>,
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
    let locked = locks::standing(read.iter().map(|(_, record)| *record));
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
        let locks = locked.get(record.commit.as_str()).map(|locks| locks::named(locks)).unwrap_or_default();
        let facts = Facts { locks, ..(**facts).clone() };
        let parts = score::parts(&facts);
        candidates.push(Candidate {
            commit: record.commit.clone(),
            base: base.clone(),
            number: record.message.number_of_change().map(str::to_owned),
            date: record.date.clone(),
            title: record.message.of_change().to_owned(),
            also: grouped.standing.remove(&record.commit).unwrap_or_default(),
            pull: None,
            facts,
            score: parts.iter().map(|part| part.points).sum(),
            parts,
        });
    }
    let all = candidates.len();
    candidates.retain(|candidate| request.filter.takes_by_facts(candidate));
    let pulls = match &request.forge {
        Some(forge) => {
            let sources = |commit: &str| {
                records.get(commit).map(|record| record.sources.iter().cloned().collect()).unwrap_or_default()
            };
            Some(pulls::add(forge, kept, &mut candidates, &sources)?)
        }
        None => None,
    };
    candidates.retain(|candidate| request.filter.takes_by_guesses(candidate));
    if candidates.len() < all {
        left_out.insert(LeftOutBecause::Filtered, (all - candidates.len()) as u32);
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
        pulls,
    })
}

/// `2026-03-01`.
fn check_date(given: &str) -> Result<(), CurateError> {
    let shape: Vec<usize> = given.split('-').map(str::len).collect();
    let digits = given.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    if shape == [4, 2, 2] && digits { Ok(()) } else { Err(CurateError::Date { given: given.to_owned() }) }
}
