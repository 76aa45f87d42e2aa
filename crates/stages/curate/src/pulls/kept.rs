//! What GitHub said of pull requests, one a line, so that each is asked for once.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use infradev_model::Pull;
use serde::{Deserialize, Serialize};

use crate::error::CurateError;

/// Raised with every change of what is asked.
const ASKED: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Line {
    asked: u32,
    number: u64,
    /// Absent where there is no pull request of that number.
    pull: Option<Pull>,
}

/// The pull requests of a repository that are known.
pub struct Kept {
    path: PathBuf,
    known: HashMap<u64, Option<Pull>>,
}

impl Kept {
    /// Opens those of a repository below a folder. A line that was cut off by a kill is passed over.
    ///
    /// # Errors
    /// [`CurateError::Io`].
    pub fn open(folder: &Path, repository: &str) -> Result<Kept, CurateError> {
        let name = infradev_model::Digest::of(repository.as_bytes());
        let path = folder.join(format!("{}-pulls.jsonl", name.short()));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(CurateError::Io { path, source }),
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let known = lines.filter(|line| line.asked == ASKED).map(|line| (line.number, line.pull)).collect();
        Ok(Kept { path, known })
    }

    /// Whether a number was asked for before.
    pub fn has(&self, number: u64) -> bool {
        self.known.contains_key(&number)
    }

    /// What was said of a number: nothing inside where there is no such pull request.
    pub fn get(&self, number: u64) -> Option<Option<&Pull>> {
        self.known.get(&number).map(Option::as_ref)
    }

    /// Keeps answers, on the disk too.
    ///
    /// # Errors
    /// [`CurateError::Io`].
    pub fn add(&mut self, found: BTreeMap<u64, Option<Pull>>) -> Result<(), CurateError> {
        let mut text = String::from("\n");
        for (number, pull) in found {
            let line = Line { asked: ASKED, number, pull };
            let line_text = serde_json::to_string(&line).map_err(|error| self.failed(error.into()))?;
            text += &(line_text + "\n");
            self.known.insert(line.number, line.pull);
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| self.failed(error))?;
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: std::io::Error) -> CurateError {
        CurateError::Io { path: self.path.clone(), source }
    }
}
