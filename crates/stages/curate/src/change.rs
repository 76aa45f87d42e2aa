//! What a commit changed, by class of path and by syntax tree.

use std::collections::{BTreeSet, HashSet};

use infradev_git::{ChangedFile, Entry};
use infradev_model::{Facts, LeftOutBecause, Lines};
use infradev_patch::is_collected;
use infradev_pycode::Shape;

use crate::area::area;
use crate::asking::Asking;
use crate::blobs::{Blobs, Wanted};
use crate::differing::{Differing, is_function, simple};
use crate::kind::{Made, kind};
use crate::paths::{PathClass, classify};
use crate::told::Told;

/// More source files than this are no task but a reorganisation.
pub const MOST_SOURCE_FILES: usize = 100;

/// Files of a list that are named.
const NAMED: usize = 8;

/// The files of a commit, by class.
pub struct Sorted<'a> {
    files: Vec<(PathClass, String, &'a ChangedFile)>,
}

impl<'a> Sorted<'a> {
    /// Sorts the files of a commit. A path that is no UTF-8 can't be named in a task and counts as data.
    pub fn of(entry: &'a Entry) -> Sorted<'a> {
        let sort = |file: &'a ChangedFile| {
            let path = String::from_utf8_lossy(&file.path).into_owned();
            let odd = std::str::from_utf8(&file.path).is_err();
            // A submodule is another project's code, and a link is what it leads to.
            let class = match (file.modes.0.max(file.modes.1), file.modes.1) {
                (0o160000, _) => PathClass::Vendored,
                (_, 0o120000) => PathClass::Data,
                _ if odd => PathClass::Data,
                _ => classify(&path),
            };
            (class, path, file)
        };
        Sorted { files: entry.files.iter().map(sort).collect() }
    }

    fn of_class(&self, class: PathClass) -> impl Iterator<Item = (&str, &'a ChangedFile)> {
        self.files.iter().filter(move |(c, _, _)| *c == class).map(|(_, path, file)| (path.as_str(), *file))
    }

    fn named(&self, class: PathClass) -> Vec<String> {
        self.of_class(class).map(|(path, _)| path.to_owned()).take(NAMED).collect()
    }

    /// Paths of its source files.
    pub fn sources(&self) -> BTreeSet<String> {
        self.of_class(PathClass::Source).map(|(path, _)| path.to_owned()).collect()
    }

    fn lines(&self, wanted: impl Fn(PathClass) -> bool) -> Lines {
        let mut lines = Lines::default();
        for (_, _, file) in self.files.iter().filter(|(class, _, _)| wanted(*class)) {
            let (added, deleted) = file.lines.unwrap_or_default();
            lines.files += 1;
            lines.added += added;
            lines.deleted += deleted;
        }
        lines
    }

    /// Why it is no candidate, as far as paths say so.
    pub fn left_out(&self, entry: &Entry) -> Option<LeftOutBecause> {
        let sources = self.of_class(PathClass::Source).count();
        let tested = self
            .of_class(PathClass::Test)
            .any(|(path, file)| is_collected(path.as_bytes()) && file.new_blob.is_some());
        if entry.parents.is_empty() {
            Some(LeftOutBecause::NoParent)
        } else if self.files.is_empty() {
            Some(LeftOutBecause::Empty)
        } else if sources == 0 {
            Some(LeftOutBecause::NoSource)
        } else if !tested {
            Some(LeftOutBecause::NoTests)
        } else if sources > MOST_SOURCE_FILES {
            Some(LeftOutBecause::TooLarge)
        } else {
            None
        }
    }

    /// The blobs that [`facts`] reads: of source the shapes, of tests also the text as it is after.
    pub fn blobs(&self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for (class, path, file) in &self.files {
            let sides = match class {
                PathClass::Source => [(&file.old_blob, false), (&file.new_blob, false)],
                PathClass::Test => [(&file.old_blob, false), (&file.new_blob, true)],
                PathClass::Script if path.contains("test") => [(&None, false), (&file.new_blob, true)],
                _ => continue,
            };
            let there = sides.into_iter().filter_map(|(id, text)| Some((id.clone()?, text)));
            wanted.extend(there.map(|(id, text)| Wanted { id, text }));
        }
        wanted
    }
}

/// Facts about a commit, or why it is no candidate after all.
pub fn facts(sorted: &Sorted<'_>, told: &Told<'_>, blobs: &mut Blobs<'_>) -> Result<Facts, LeftOutBecause> {
    let mut unparsed = Vec::new();
    let mut differing = Differing::default();
    for (path, file) in sorted.of_class(PathClass::Source) {
        pair(path, file, &mut differing, blobs, &mut unparsed);
    }
    if differing.is_empty() {
        return Err(LeftOutBecause::NoCode);
    }
    let (mut tests_added, mut tests_changed) = (0, 0);
    let mut asked = Asking::default();
    for (path, file) in sorted.of_class(PathClass::Test) {
        let mut tests = Differing::default();
        // Read first: what it asks for is read off the same tree as its shapes.
        let golden = file.new_blob.as_deref().map(|blob| blobs.module(path, blob));
        pair(path, file, &mut tests, blobs, &mut unparsed);
        let is_test = |(_, shape): &&(String, Shape)| is_function(shape) && simple(shape).starts_with("test");
        if is_collected(path.as_bytes()) {
            tests_added += tests.added.iter().filter(is_test).count() as u32;
            tests_changed += tests.changed.iter().filter(is_test).count() as u32;
        }
        let Some(golden) = golden.filter(|_| is_collected(path.as_bytes())) else { continue };
        let differing = tests.added.iter().chain(&tests.changed);
        let names: HashSet<String> =
            differing.filter(|(_, s)| is_function(s)).map(|(_, s)| s.qualified_name.clone()).collect();
        if let Ok(module) = golden {
            asked.read(path, &module, &names);
            asked.launches(path, module.source());
        }
    }
    for (path, file) in sorted.of_class(PathClass::Script) {
        if let Some(blob) = file.new_blob.as_deref().filter(|_| path.contains("test")) {
            asked.launches(path, &blobs.text(blob));
        }
    }
    let (definitions, hollow) = differing.count();
    let paths: Vec<String> = sorted.sources().into_iter().collect();
    let rest = |class| !matches!(class, PathClass::Source | PathClass::Test);
    unparsed.truncate(NAMED);
    let checks = asked.checks();
    let measured = !checks.resources.is_empty();
    let made = Made { definitions, substance: differing.substance, tests_added, measured };
    Ok(Facts {
        source: sorted.lines(|class| class == PathClass::Source),
        substance: differing.substance,
        tests: sorted.lines(|class| class == PathClass::Test),
        other: sorted.lines(rest),
        definitions,
        tests_added,
        tests_changed,
        needs: asked.needs(),
        native: sorted.named(PathClass::Native),
        dependencies: sorted.named(PathClass::Dependency),
        // Known from the history, not from the commit alone.
        locks: Vec::new(),
        area: area(told, &paths),
        kind: kind(told, Some(&made)),
        checks,
        hollow,
        unparsed,
    })
}

/// Adds the two sides of a file.
fn pair(
    path: &str,
    file: &ChangedFile,
    into: &mut Differing,
    blobs: &mut Blobs<'_>,
    unparsed: &mut Vec<String>,
) {
    let base = blobs.shapes(path, file.old_blob.as_deref());
    let golden = blobs.shapes(path, file.new_blob.as_deref());
    match (base, golden) {
        (Ok(base), Ok(golden)) => into.add(path, &base, &golden),
        (Err(error), _) | (_, Err(error)) => {
            into.add_unparsed(file.lines.unwrap_or_default());
            unparsed.push(error.to_string());
        }
    }
}
