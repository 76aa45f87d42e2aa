//! What submissions are held against: golden and the official tests of their task, as the run that graded them keeps them, else as
//! the pack has them that the person named.

use std::collections::{BTreeMap, HashMap};

use infradev_model::{Likeness, REFERENCE_SCHEMA, TaskReference, is_name};
use infradev_patch::{Patch, PathClass, TestPaths};
use infradev_pycode::assertions::{Assertion, assertions, at_line};
use infradev_store::RunView;

use crate::error::AnalyseError;
use crate::likeness::Golden;

/// A task's texts, read.
pub(crate) struct Reference {
    tests: TestPaths,
    /// Assertions by file; none where that is no Python.
    official: HashMap<String, Vec<Assertion>>,
    /// None where golden cannot be read.
    golden: Option<Golden>,
}

impl Reference {
    fn of(texts: &TaskReference) -> Reference {
        let tests = TestPaths::new(&texts.roots);
        let read = |(path, text): (&String, &String)| Some((path.clone(), assertions(path, text).ok()?));
        Reference {
            official: texts.official.iter().filter_map(read).collect(),
            golden: Golden::of(texts.golden.as_bytes(), &tests),
            tests,
        }
    }

    /// The official assertion that stopped a case at this line.
    pub fn asserted(&self, file: &str, line: u32) -> Option<&Assertion> {
        at_line(self.official.get(file)?, usize::try_from(line).ok()?)
    }

    /// How close a patch is to golden.
    pub fn likeness(&self, patch: &Patch) -> Option<Likeness> {
        Some(self.golden.as_ref()?.likeness(patch, &self.tests))
    }

    /// Whether a path lies in the task's test trees.
    pub fn is_test(&self, path: &[u8]) -> bool {
        self.tests.classify(path) == PathClass::Test
    }
}

/// References by the run that graded and task, read when they are first asked for.
pub(crate) struct References<'a> {
    given: &'a [TaskReference],
    found: BTreeMap<(Option<usize>, String), Option<Reference>>,
}

impl<'a> References<'a> {
    /// `given` serves tasks of which runs keep none.
    pub fn new(given: &'a [TaskReference]) -> References<'a> {
        References { given, found: BTreeMap::new() }
    }

    /// The reference of a task; `at` and `grader` are the run that graded it.
    ///
    /// # Errors
    /// One of another schema version, or one that is damaged.
    pub fn of(
        &mut self,
        task: &str,
        at: Option<usize>,
        grader: Option<&RunView>,
    ) -> Result<Option<&Reference>, AnalyseError> {
        let key = (at, task.to_owned());
        if !self.found.contains_key(&key) {
            // The task's name comes from a document that may be another's: it names a file here and nothing elsewhere.
            let kept: Option<TaskReference> = match grader.filter(|_| is_name(task)) {
                Some(grader) => grader.document(&format!("sealed/{task}.json"), REFERENCE_SCHEMA)?,
                None => None,
            };
            let texts = kept.as_ref().or_else(|| self.given.iter().find(|given| given.task == task));
            self.found.insert(key.clone(), texts.map(Reference::of));
        }
        Ok(self.found.get(&key).and_then(Option::as_ref))
    }
}
