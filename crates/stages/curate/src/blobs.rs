//! Contents of files while a chunk of a history is read, and what was parsed of them.

use std::collections::HashMap;
use std::sync::Arc;

use infradev_pycode::{Module, ParseError, Shapes};

/// Contents of blobs by id, and the shapes of those that were parsed.
#[derive(Default)]
pub struct Blobs {
    /// Contents.
    pub contents: HashMap<String, Vec<u8>>,
    /// Shapes; empty for what does not parse.
    shapes: HashMap<String, Arc<Shapes>>,
}

/// Shapes that are kept at once.
const KEPT: usize = 4000;

impl Blobs {
    /// Lets go of contents, and of shapes where there are too many.
    pub fn begin_chunk(&mut self) {
        self.contents.clear();
        if self.shapes.len() > KEPT {
            self.shapes.clear();
        }
    }

    /// The text of a blob; empty where it was not read.
    pub fn text(&self, id: &str) -> String {
        self.contents.get(id).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// The tree of a blob; its shapes are kept.
    ///
    /// # Errors
    /// A text that is not Python.
    pub fn module(&mut self, path: &str, id: &str) -> Result<Module, ParseError> {
        let module = Module::parse(path, &self.text(id))?;
        if !self.shapes.contains_key(id) {
            self.shapes.insert(id.to_owned(), Arc::new(module.shapes()));
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
