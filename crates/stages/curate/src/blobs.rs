//! Contents of files while a chunk of a history is read, and what was parsed of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use infradev_pycode::{Module, ParseError, Shapes};

/// Shapes that are kept at once.
const KEPT: usize = 6000;

/// The shapes of files, for all threads: what one commit leaves another begins with.
#[derive(Default)]
pub struct Parsed {
    shapes: Mutex<HashMap<String, Arc<Shapes>>>,
}

impl Parsed {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Arc<Shapes>>) -> T) -> T {
        // A thread that died while it held them left whole entries.
        work(&mut self.shapes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A blob that a commit's facts are read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Its id.
    pub id: String,
    /// Its text is read, not its shapes alone.
    pub text: bool,
}

/// What a chunk of commits is read from.
pub struct Blobs<'a> {
    parsed: &'a Parsed,
    contents: HashMap<String, Vec<u8>>,
    shapes: HashMap<String, Arc<Shapes>>,
}

impl<'a> Blobs<'a> {
    /// Nothing yet.
    pub fn over(parsed: &'a Parsed) -> Blobs<'a> {
        Blobs { parsed, contents: HashMap::new(), shapes: HashMap::new() }
    }

    /// Lets go of the last chunk, and says which blobs of this one have to be read.
    pub fn begin(&mut self, mut wanted: Vec<Wanted>) -> Vec<String> {
        self.contents.clear();
        self.shapes.clear();
        // Of one blob that with its text comes last, and stays.
        wanted.sort_unstable();
        self.parsed.with(|known| {
            for blob in wanted.iter() {
                if let Some(shapes) = known.get(&blob.id) {
                    self.shapes.insert(blob.id.clone(), shapes.clone());
                }
            }
            if known.len() > KEPT {
                known.clear();
            }
        });
        let mut ids: Vec<String> = wanted
            .into_iter()
            .filter(|blob| blob.text || !self.shapes.contains_key(&blob.id))
            .map(|blob| blob.id)
            .collect();
        ids.dedup();
        ids
    }

    /// Takes what was read.
    pub fn take(&mut self, ids: Vec<String>, contents: Vec<Vec<u8>>) {
        self.contents.extend(ids.into_iter().zip(contents));
    }

    /// The text of a blob; empty where it was not read.
    pub fn text(&self, id: &str) -> Cow<'_, str> {
        self.contents.get(id).map_or(Cow::Borrowed(""), |bytes| String::from_utf8_lossy(bytes))
    }

    /// The tree of a blob; its shapes are kept.
    ///
    /// # Errors
    /// A text that is not Python.
    pub fn module(&mut self, path: &str, id: &str) -> Result<Module, ParseError> {
        let module = Module::parse(path, &self.text(id))?;
        if !self.shapes.contains_key(id) {
            let shapes = Arc::new(module.shapes());
            self.parsed.with(|known| known.insert(id.to_owned(), shapes.clone()));
            self.shapes.insert(id.to_owned(), shapes);
        }
        Ok(module)
    }

    /// The shapes of a blob; none where the file is absent.
    ///
    /// # Errors
    /// A text that is not Python.
    pub fn shapes(&mut self, path: &str, id: Option<&str>) -> Result<Arc<Shapes>, ParseError> {
        let Some(id) = id else { return Ok(Arc::default()) };
        if let Some(known) = self.shapes.get(id) {
            return Ok(known.clone());
        }
        self.module(path, id)?;
        Ok(self.shapes.get(id).cloned().unwrap_or_default())
    }
}
