//! Run folders: one verb over a pack, resumable after a kill at any instant.
//!
//! ```text
//! runs/<id>/run.json               what was asked for
//! runs/<id>/lock                   held (flock) by the process that works on it
//! runs/<id>/journal.jsonl          what happened, append-only
//! runs/<id>/grades.jsonl           grades as they are given, for those who look on; a verb's document has them in the end
//! runs/<id>/trials/<key>/          a finished trial: result.json and its logs; appears whole by one rename
//! runs/<id>/scratch/<pid>-…        of trials under way; swept when the run is opened
//! runs/<id>/finished.json          written last
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use infradev_model::{Digest, GradeDocument, GradedSoFar, RUN_SCHEMA, Run, format};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::{self, Held};
use crate::error::StoreError;
use crate::journal::{self, Contents};
use crate::removal::remove_tree;
use crate::run::{RESULT, RunFolder};
use crate::stamp::utc_stamp;

const CREATING: &str = ".creating-";
pub(crate) const FINISHED: &str = "finished.json";
pub(crate) const GRADES: &str = "grades.jsonl";

/// One line of a run's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunEvent {
    /// A process began to work on the run.
    Opened {
        /// The process.
        pid: u32,
    },
    /// A trial began.
    TrialStarted {
        /// The trial's key.
        trial: Digest,
        /// The task's id.
        task: String,
        /// `golden 1/3`, `base`, a submission's name.
        what: String,
        /// Ranks; 0 for an attempt, which has none.
        world: u32,
    },
    /// A trial's record is in its folder.
    TrialFinished {
        /// The trial's key.
        trial: Digest,
        /// Seconds.
        wall_s: f64,
    },
    /// A trial ended in a harness fault and left no record.
    TrialFault {
        /// The trial's key.
        trial: Digest,
        /// What was seen.
        evidence: String,
    },
    /// The verb gave up for a reason that the same inputs would give it again.
    Refused {
        /// The error as it was told.
        what: String,
    },
    /// The run is done.
    Finished,
}

/// The folder of all runs.
#[derive(Debug, Clone)]
pub struct Runs {
    root: PathBuf,
}

/// What a new run is to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// `accept`, `grade` or `attempt`.
    pub verb: String,
    /// The pack's name.
    pub pack: String,
    /// The command as the person gave it.
    pub command: Vec<String>,
    /// Digest of what is asked for: an unfinished run of the same digest is resumed.
    pub digest: Digest,
}

/// A run as anyone may read it, while a process works on it too.
#[derive(Debug, Clone)]
pub struct RunView {
    /// The run's folder.
    pub folder: PathBuf,
    /// `run.json`.
    pub run: Run,
    /// The journal, as far as it can be read.
    pub journal: Contents<RunEvent>,
    /// Whether the run is done.
    pub finished: bool,
    /// Whether a live process works on it.
    pub in_use: bool,
}

/// The one key that every document of a run has.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

impl RunView {
    /// A document of the run, such as `grade.json`; none where it is not there (yet).
    ///
    /// # Errors
    /// One of another schema version, which is named before any other key is looked at, or one that is damaged.
    pub fn document<T: DeserializeOwned>(&self, name: &str, schema: u32) -> Result<Option<T>, StoreError> {
        versioned(&self.folder.join(name), schema)
    }

    /// What a run of `grade` graded so far, of the lines that can be read; none where it graded nothing yet. Once it is done, its
    /// document says so.
    pub fn graded_so_far(&self) -> Option<GradeDocument> {
        let lines = journal::read::<GradedSoFar>(&self.folder.join(GRADES)).ok()?.events;
        let document = GradeDocument::so_far(&self.run.id, lines.into_iter().map(|(_, line)| line));
        (!document.submissions.is_empty()).then_some(document)
    }

    /// The record of the finished trial of this key, or a part of it; none where its folder is gone.
    ///
    /// # Errors
    /// As for a document.
    pub fn trial<T: DeserializeOwned>(&self, key: &str, schema: u32) -> Result<Option<T>, StoreError> {
        // A key comes from a document that may be another's: it names a folder here and nothing elsewhere.
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        versioned(&self.folder.join("trials").join(key).join(RESULT), schema)
    }

    /// The records of its finished trials that can be read as `R`, in the order of their keys.
    pub fn records<R: DeserializeOwned>(&self) -> Vec<R> {
        let read = self.record_files().into_iter().filter_map(|path| fs::read(path).ok());
        read.filter_map(|bytes| serde_json::from_slice(&bytes).ok()).collect()
    }

    /// The files of the records of its finished trials, in the order of their keys.
    pub fn record_files(&self) -> Vec<PathBuf> {
        let folder = self.folder.join("trials");
        let names = names_in(&folder).unwrap_or_default().into_iter();
        names.map(|name| folder.join(name).join(RESULT)).collect()
    }

    /// The same run as it is now: of its journal what was appended is read.
    ///
    /// # Errors
    /// It is gone, or cannot be read.
    pub fn again(self) -> Result<RunView, StoreError> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Runs::new(self.folder.parent().unwrap_or(Path::new("."))).run_json(&name)?;
        let in_use = Held::by_another(&self.folder.join("lock"))?;
        let journal = journal::read_on(&self.folder.join("journal.jsonl"), self.journal)?;
        Ok(RunView { finished: self.folder.join(FINISHED).is_file(), journal, in_use, ..self })
    }
}

impl Runs {
    /// The runs below a folder, usually [`crate::Home::runs`].
    pub fn new(root: impl Into<PathBuf>) -> Runs {
        Runs { root: root.into() }
    }

    /// The unfinished run of the same plan that no live process works on, opened; else a new one. The second value says
    /// whether it is a resumed one. Scratch folders that killed processes left in other runs are removed.
    pub fn start(&self, plan: &Plan) -> Result<(RunFolder, bool), StoreError> {
        let alone = self.alone()?;
        self.sweep(&alone);
        match self.find_resumable(&plan.digest)? {
            Some(run) => Ok((run, true)),
            None => Ok((self.create_alone(plan, &alone)?, false)),
        }
    }

    /// A new run.
    pub fn create(&self, plan: &Plan) -> Result<RunFolder, StoreError> {
        self.create_alone(plan, &self.alone()?)
    }

    /// Held for moments, while a run is created or folders are swept.
    fn alone(&self) -> Result<Held, StoreError> {
        disk::create_folder(&self.root)?;
        Held::take(&self.root.join(".lock"), &|| ())
    }

    fn create_alone(&self, plan: &Plan, _alone: &Held) -> Result<RunFolder, StoreError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = now.as_secs();
        // The part of the second: of runs that start within one, the later has the larger.
        let tail = (u64::from(now.subsec_nanos()) << 16) / 1_000_000_000;
        let run = Run {
            schema: RUN_SCHEMA,
            id: format!("{}-{}-{tail:04x}", plan.verb, utc_stamp(started)),
            verb: plan.verb.clone(),
            pack: plan.pack.clone(),
            command: plan.command.clone(),
            plan: plan.digest.clone(),
            started,
        };
        let creating = tempfile::Builder::new()
            .prefix(CREATING)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(&self.root)
            .map_err(|e| StoreError::io("create a folder in", &self.root, e))?;
        let held = Held::take(&creating.path().join("lock"), &|| ())?;
        disk::write_json(&creating.path().join("run.json"), &run)?;
        let folder = self.root.join(&run.id);
        fs::rename(creating.path(), &folder).map_err(|e| StoreError::io("create", &folder, e))?;
        RunFolder::open(folder, run, held)
    }

    /// Opens a run to work on it.
    ///
    /// # Errors
    /// No such run, or a live process works on it, or its journal is damaged.
    pub fn open(&self, id: &str) -> Result<RunFolder, StoreError> {
        let (folder, run) = self.run_json(id)?;
        match Held::try_take(&folder.join("lock"))? {
            Some(held) => RunFolder::open(folder, run, held),
            None => Err(StoreError::RunInUse { holder: holder(&folder), run: folder }),
        }
    }

    /// Reads a run without working on it.
    pub fn view(&self, id: &str) -> Result<RunView, StoreError> {
        let (folder, run) = self.run_json(id)?;
        let in_use = Held::by_another(&folder.join("lock"))?;
        let journal = journal::read(&folder.join("journal.jsonl"))?;
        Ok(RunView { finished: folder.join(FINISHED).is_file(), run, journal, in_use, folder })
    }

    /// Ids of all runs, oldest first.
    pub fn list(&self) -> Result<Vec<String>, StoreError> {
        let mut runs: Vec<(u64, String, String)> = Vec::new();
        for name in names_in(&self.root)? {
            if let Ok((_, run)) = self.run_json(&name) {
                let tail = name.rsplit('-').next().unwrap_or_default().to_string();
                runs.push((run.started, tail, name));
            }
        }
        runs.sort();
        Ok(runs.into_iter().map(|(_, _, id)| id).collect())
    }

    /// Folders that are no run any more, since their `run.json` is missing or cannot be read, with what is wrong.
    pub fn unreadable(&self) -> Result<Vec<StoreError>, StoreError> {
        let is_run = |name: &String| !name.starts_with('.') && self.root.join(name).is_dir();
        let names = names_in(&self.root)?;
        Ok(names.iter().filter(|name| is_run(name)).filter_map(|name| self.run_json(name).err()).collect())
    }

    /// The newest unfinished run of this plan that no live process works on, opened.
    pub fn find_resumable(&self, plan: &Digest) -> Result<Option<RunFolder>, StoreError> {
        for id in self.list()?.into_iter().rev() {
            let (folder, run) = self.run_json(&id)?;
            if run.plan != *plan || folder.join(FINISHED).exists() {
                continue;
            }
            let Some(held) = Held::try_take(&folder.join("lock"))? else { continue };
            // Its holder may have finished it between the look and the lock.
            if !folder.join(FINISHED).exists() {
                return RunFolder::open(folder, run, held).map(Some);
            }
        }
        Ok(None)
    }

    /// The newest run of this plan, opened again even where it is finished; none where there is none, or a live process works on it.
    pub fn reopen(&self, plan: &Digest) -> Result<Option<RunFolder>, StoreError> {
        for id in self.list()?.into_iter().rev() {
            let (folder, run) = self.run_json(&id)?;
            if run.plan != *plan {
                continue;
            }
            let Some(held) = Held::try_take(&folder.join("lock"))? else { return Ok(None) };
            let finished = folder.join(FINISHED);
            match fs::remove_file(&finished) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::io("remove", &finished, e));
                }
                _ => return RunFolder::open(folder, run, held).map(Some),
            }
        }
        Ok(None)
    }

    /// The newest unfinished run of this plan, as anyone may read it.
    pub fn unfinished(&self, plan: &Digest) -> Result<Option<RunView>, StoreError> {
        self.newest_where(plan, |folder| !folder.join(FINISHED).exists())
    }

    /// The newest run of this plan, finished or not, as anyone may read it: the one that [`Runs::reopen`] opens.
    pub fn newest(&self, plan: &Digest) -> Result<Option<RunView>, StoreError> {
        self.newest_where(plan, |_| true)
    }

    fn newest_where(
        &self,
        plan: &Digest,
        meant: impl Fn(&Path) -> bool,
    ) -> Result<Option<RunView>, StoreError> {
        for id in self.list()?.into_iter().rev() {
            let (folder, run) = self.run_json(&id)?;
            if run.plan == *plan && meant(&folder) {
                return self.view(&id).map(Some);
            }
        }
        Ok(None)
    }

    /// Removes scratch folders of runs that no live process works on, and runs that were killed while being created.
    fn sweep(&self, _alone: &Held) {
        for name in names_in(&self.root).unwrap_or_default() {
            let folder = self.root.join(&name);
            let scratch = folder.join("scratch");
            // What cannot be removed now is tried again at the next start.
            if name.starts_with(CREATING) {
                let _ = remove_tree(&folder);
            } else if scratch.exists() && matches!(Held::try_take(&folder.join("lock")), Ok(Some(_))) {
                let _ = remove_tree(&scratch);
            }
        }
    }

    fn run_json(&self, id: &str) -> Result<(PathBuf, Run), StoreError> {
        let folder = self.root.join(id);
        let plain = !id.is_empty() && !id.starts_with('.') && !id.contains('/');
        let path = folder.join("run.json");
        let bytes = if plain { disk::read_if_there(&path)? } else { None };
        let Some(bytes) = bytes else {
            return Err(StoreError::NoRun { id: id.to_owned(), runs: self.root.clone() });
        };
        let name = path.display().to_string();
        // Its version first: of another one, no other key can be trusted to be there.
        let found: Versioned = format::json(&name, &bytes)?;
        format::schema(&name, found.schema, RUN_SCHEMA)?;
        Ok((folder, format::json(&name, &bytes)?))
    }
}

/// Whether a live process works on the run of this folder; not where that cannot be told.
pub fn in_use(folder: &Path) -> bool {
    Held::by_another(&folder.join("lock")).unwrap_or(false)
}

fn versioned<T: DeserializeOwned>(path: &Path, schema: u32) -> Result<Option<T>, StoreError> {
    let Some(bytes) = disk::read_if_there(path)? else { return Ok(None) };
    let name = path.display().to_string();
    let found: Versioned = format::json(&name, &bytes)?;
    format::schema(&name, found.schema, schema)?;
    Ok(Some(format::json(&name, &bytes)?))
}

fn holder(folder: &Path) -> Option<u32> {
    fs::read_to_string(folder.join("lock")).ok()?.trim().parse().ok()
}

fn names_in(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StoreError::io("list", folder, e)),
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}
