//! Reads a history's commits on as many threads as there are cores, those that are not known yet.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use infradev_git::{CommitId, GitError, Repo};

use crate::blobs::{Blobs, Parsed, Wanted};
use crate::change::Sorted;
use crate::error::CurateError;
use crate::record::{Record, Records};

/// Commits that one git process reads.
const CHUNK: usize = 96;

/// A commit and the line that has it.
pub struct Placed {
    /// The commit.
    pub id: CommitId,
    /// The place of the line among those that were asked for.
    pub line: usize,
}

/// The commits of several main lines, the oldest of each first; one that several have belongs to the first.
///
/// # Errors
/// A revision that names no commit, a shallow clone.
pub fn lines(repo: &Repo, revisions: &[String]) -> Result<(Vec<Placed>, Vec<CommitId>), CurateError> {
    let mut seen: HashMap<CommitId, ()> = HashMap::new();
    let (mut placed, mut heads) = (Vec::new(), Vec::new());
    for (line, revision) in revisions.iter().enumerate() {
        let commits = repo.main_line(revision)?;
        heads.extend(commits.first().cloned());
        for id in commits.into_iter().rev() {
            if seen.insert(id.clone(), ()).is_none() {
                placed.push(Placed { id, line });
            }
        }
    }
    Ok((placed, heads))
}

/// Reads the commits that `records` does not have; `told` is called with how many are read.
///
/// # Errors
/// Commits or blobs that are missing, a full disk, an interrupt.
pub fn read(
    repo: &Repo,
    placed: &[Placed],
    records: &mut Records,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<(), CurateError> {
    let wanted: Vec<CommitId> =
        placed.iter().map(|placed| placed.id.clone()).filter(|id| !records.has(id.as_str())).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let chunks: Vec<&[CommitId]> = wanted.chunks(CHUNK).collect();
    let (next, done, torn) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let parsed = Parsed::default();
    let records = Mutex::new(records);
    let failed: Mutex<Option<CurateError>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(chunks.len());
    let fail = |error: CurateError| {
        if let Ok(mut failed) = failed.lock() {
            failed.get_or_insert(error);
        }
        next.store(chunks.len(), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut blobs = Blobs::over(&parsed);
                while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if infradev_supervise::cancelled() {
                        return fail(CurateError::Interrupted);
                    }
                    let kept =
                        read_chunk(repo, chunk, &mut blobs, &torn).and_then(|new| match records.lock() {
                            Ok(mut records) => records.add(new),
                            Err(_) => Err(CurateError::Interrupted),
                        });
                    match kept {
                        Ok(()) => {
                            told(done.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len(), wanted.len());
                        }
                        Err(error) => return fail(error),
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Commits that may lack objects before the clone is no history to read: each costs git processes of its own.
const MOST_TORN: usize = 50;

/// Whether git could not read an object that a commit names.
fn lacks_objects(error: &CurateError) -> bool {
    match error {
        CurateError::Git(GitError::MissingObject { .. }) => true,
        CurateError::Git(GitError::Failed { stderr, .. }) => stderr.contains("unable to read"),
        _ => false,
    }
}

/// Reads commits; one whose objects are missing is found by halves and left out, as the rest can be read all the same.
fn read_chunk(
    repo: &Repo,
    chunk: &[CommitId],
    blobs: &mut Blobs<'_>,
    torn: &AtomicUsize,
) -> Result<Vec<Record>, CurateError> {
    let error = match read_whole(repo, chunk, blobs) {
        Err(error) if lacks_objects(&error) && torn.load(Ordering::Relaxed) < MOST_TORN => error,
        read => return read,
    };
    match chunk {
        [] => Err(error),
        [one] => {
            torn.fetch_add(1, Ordering::Relaxed);
            Ok(vec![Record::torn(&repo.info(one)?)])
        }
        several => {
            let (first, second) = several.split_at(several.len() / 2);
            let mut records = read_chunk(repo, first, blobs, torn)?;
            records.extend(read_chunk(repo, second, blobs, torn)?);
            Ok(records)
        }
    }
}

fn read_whole(repo: &Repo, chunk: &[CommitId], blobs: &mut Blobs<'_>) -> Result<Vec<Record>, CurateError> {
    let entries = repo.entries(chunk)?;
    let mut wanted: Vec<Wanted> = Vec::new();
    for entry in &entries {
        let sorted = Sorted::of(entry);
        if sorted.left_out(entry).is_none() {
            wanted.extend(sorted.blobs());
        }
    }
    let ids = blobs.begin(wanted);
    let contents = repo.blobs(&ids)?;
    blobs.take(ids, contents);
    Ok(entries.iter().map(|entry| Record::of(entry, blobs)).collect())
}
