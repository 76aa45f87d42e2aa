//! What is known of one commit, and where it is kept: it never changes, so that a second run reads new commits only.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use infradev_git::{CommitInfo, Entry};
use infradev_model::{Facts, LeftOutBecause};
use serde::{Deserialize, Serialize};

use crate::blobs::Blobs;
use crate::change::{Sorted, facts};
use crate::error::CurateError;
use crate::locks::{self, LockChange};
use crate::message::{self, Message};
use crate::told::Told;

/// Raised with every change of what is read of a commit: records of another number are read anew.
pub const RULES: u32 = 4;

/// One commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`RULES`] of the program that made it.
    pub rules: u32,
    /// Its id.
    pub commit: String,
    /// Its first parent.
    pub base: Option<String>,
    /// Date of its author.
    pub date: String,
    /// What its message says.
    pub message: Message,
    /// Source files that it changes; of very large commits only some.
    pub sources: BTreeSet<String>,
    /// What it did to files that pin packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockChange>,
    /// Facts, or why it is no candidate.
    pub outcome: Outcome,
}

/// What came of reading a commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It may be a candidate.
    Facts(Box<Facts>),
    /// It is none.
    LeftOut(LeftOutBecause),
}

/// Source files that a record names at most.
const NAMED: usize = 200;

impl Record {
    /// Reads a commit whose blobs are at hand.
    pub fn of(entry: &Entry, blobs: &mut Blobs<'_>) -> Record {
        let message = message::read(&entry.subject, &entry.body);
        let sorted = Sorted::of(entry);
        let told = Told { title: message.of_change(), body: &entry.body, labels: &[] };
        let outcome = match sorted.left_out(entry) {
            Some(because) => Outcome::LeftOut(because),
            None => match facts(&sorted, &told, blobs) {
                Ok(facts) => Outcome::Facts(Box::new(facts)),
                Err(because) => Outcome::LeftOut(because),
            },
        };
        Record {
            rules: RULES,
            commit: entry.id.as_str().to_owned(),
            base: entry.parents.first().map(|parent| parent.as_str().to_owned()),
            date: entry.author_date.clone(),
            message,
            sources: sorted.sources().into_iter().take(NAMED).collect(),
            locks: locks::changes(entry),
            outcome,
        }
    }
}

impl Record {
    /// A commit whose objects are missing: what its message says.
    pub fn torn(info: &CommitInfo) -> Record {
        Record {
            rules: RULES,
            commit: info.id.as_str().to_owned(),
            base: info.parents.first().map(|parent| parent.as_str().to_owned()),
            date: info.author_date.clone(),
            message: message::read(&info.subject, &info.body),
            sources: BTreeSet::new(),
            locks: Vec::new(),
            outcome: Outcome::LeftOut(LeftOutBecause::MissingObjects),
        }
    }

    /// It stays true: objects that are missing may be there next time.
    fn lasts(&self) -> bool {
        !matches!(self.outcome, Outcome::LeftOut(LeftOutBecause::MissingObjects))
    }
}

/// The records of a repository, one a line.
pub struct Records {
    path: PathBuf,
    known: HashMap<String, Record>,
}

impl Records {
    /// Opens those of a repository below a folder. A line that was cut off by a kill, or that is of other rules, is passed over.
    ///
    /// # Errors
    /// [`CurateError::Io`].
    pub fn open(folder: &Path, git_dir: &Path) -> Result<Records, CurateError> {
        let name = infradev_model::Digest::of(git_dir.as_os_str().as_encoded_bytes());
        let path = folder.join(format!("{}.jsonl", name.short()));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(CurateError::Io { path, source }),
        };
        let lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()).collect();
        let half = lines.len() / 2;
        let parse = |lines: &[&[u8]]| -> Vec<Record> {
            lines.iter().filter_map(|line| serde_json::from_slice::<Record>(line).ok()).collect()
        };
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| parse(&lines[half..]));
            (parse(&lines[..half]), second.join().unwrap_or_default())
        });
        let records = first.into_iter().chain(second).filter(|record| record.rules == RULES);
        Ok(Records { path, known: records.map(|record| (record.commit.clone(), record)).collect() })
    }

    /// Whether a commit was read before.
    pub fn has(&self, commit: &str) -> bool {
        self.known.contains_key(commit)
    }

    /// What is known of a commit.
    pub fn get(&self, commit: &str) -> Option<&Record> {
        self.known.get(commit)
    }

    /// Keeps records, on the disk too.
    ///
    /// # Errors
    /// [`CurateError::Io`].
    pub fn add(&mut self, records: Vec<Record>) -> Result<(), CurateError> {
        let mut text = Vec::new();
        for record in records.iter().filter(|record| record.lasts()) {
            // A line of its own even after one that a kill cut off.
            text.push(b'\n');
            serde_json::to_writer(&mut text, record).map_err(|error| self.failed(error.into()))?;
        }
        text.push(b'\n');
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| self.failed(error))?;
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(&text)).map_err(|error| self.failed(error))?;
        self.known.extend(records.into_iter().map(|record| (record.commit.clone(), record)));
        Ok(())
    }

    fn failed(&self, source: std::io::Error) -> CurateError {
        CurateError::Io { path: self.path.clone(), source }
    }
}
