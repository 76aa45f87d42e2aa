//! Which definitions of a change's files differ, by syntax tree: added, changed, moved, renamed, gone.

use std::collections::{HashMap, HashSet};

use infradev_model::{Definitions, Hollowable, Lines};
use infradev_pycode::{DefinitionKind, Shape, Shapes};

/// Definitions that differ between the two sides of some files.
#[derive(Default)]
pub struct Differing {
    /// Those that only golden has, with their file.
    pub added: Vec<(String, Shape)>,
    /// Those that both have, with another digest.
    pub changed: Vec<(String, Shape)>,
    removed: Vec<Shape>,
    /// Parameters, fields and options that what both have gained.
    settings: u32,
    /// Lines of code, of files whose syntax trees differ.
    pub substance: Lines,
    /// Statements outside of functions and classes differ somewhere.
    pub loose: bool,
}

impl Differing {
    /// Adds the two sides of a file.
    pub fn add(&mut self, path: &str, base: &Shapes, golden: &Shapes) {
        let key = |shape: &Shape| (shape.qualified_name.clone(), shape.kind, shape.accessor);
        let before: HashMap<_, &Shape> = base.definitions.iter().map(|shape| (key(shape), shape)).collect();
        let after: HashSet<_> = golden.definitions.iter().map(key).collect();
        let mut differs = base.module != golden.module;
        self.loose |= differs;
        for shape in &golden.definitions {
            match before.get(&key(shape)) {
                None => self.added.push((path.to_owned(), shape.clone())),
                Some(old) if old.digest != shape.digest => {
                    self.settings += shape.settable.saturating_sub(old.settable);
                    self.changed.push((path.to_owned(), shape.clone()));
                }
                Some(_) => continue,
            }
            differs = true;
        }
        let gone = self.removed.len();
        self.removed.extend(base.definitions.iter().filter(|shape| !after.contains(&key(shape))).cloned());
        if differs || self.removed.len() > gone {
            let (added, deleted) = apart(&base.lines, &golden.lines);
            self.substance.files += 1;
            self.substance.added += added;
            self.substance.deleted += deleted;
            self.settings += golden.options.saturating_sub(base.options);
        }
    }

    /// Counts a file that could not be parsed as one that differs, by the lines that git counts.
    pub fn add_unparsed(&mut self, lines: (u32, u32)) {
        self.loose = true;
        self.substance.files += 1;
        self.substance.added += lines.0;
        self.substance.deleted += lines.1;
    }

    /// No syntax tree differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty() && !self.loose
    }

    /// Counts, and what of it would raise in a hollow patch.
    pub fn count(&self) -> (Definitions, Hollowable) {
        let mut gone = Gone::of(&self.removed);
        let (mut counts, mut hollow) = (Definitions::default(), Hollowable::default());
        let new_classes: HashSet<(&str, &str)> = self
            .added
            .iter()
            .filter(|(_, shape)| !is_function(shape))
            .map(|(path, shape)| (path.as_str(), shape.qualified_name.as_str()))
            .collect();
        for (path, shape) in &self.added {
            let from = gone.take(shape);
            match from {
                Some(From::Moved) => counts.moved += 1,
                Some(From::Renamed) => counts.renamed += 1,
                None => {}
            }
            // A method of a class that is new itself is no more public than that.
            let inner = shape
                .qualified_name
                .rsplit_once('.')
                .is_some_and(|(class, _)| new_classes.contains(&(path.as_str(), class)));
            if from.is_none() && !inner && is_public(&shape.qualified_name) {
                counts.public_added += 1;
            }
            if !is_function(shape) {
                counts.classes_added += u32::from(from.is_none());
            } else if from == Some(From::Moved) {
                hollow.kept += 1;
            } else {
                counts.functions_added += 1;
                if shape.has_body {
                    hollow.functions += 1;
                } else {
                    hollow.kept += 1;
                }
            }
        }
        for (_, shape) in &self.changed {
            if is_function(shape) {
                counts.functions_changed += 1;
            } else {
                counts.classes_changed += 1;
            }
        }
        counts.settings = self.settings;
        counts.removed = gone.left();
        (counts, hollow)
    }
}

/// How something that golden adds was in base before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Moved,
    Renamed,
}

/// What base has and golden does not, by what it may have become.
struct Gone<'a> {
    all: &'a [Shape],
    taken: Vec<bool>,
}

impl<'a> Gone<'a> {
    fn of(all: &'a [Shape]) -> Gone<'a> {
        Gone { all, taken: vec![false; all.len()] }
    }

    /// Of the same body: under the same name it was moved, under another renamed. A class is the same by what it says itself.
    fn take(&mut self, shape: &Shape) -> Option<From> {
        let same = |other: &Shape| match (is_function(shape), is_function(other)) {
            (true, true) => other.body == shape.body,
            (false, false) => other.digest == shape.digest,
            _ => false,
        };
        let open = |at: &usize| !self.taken[*at] && same(&self.all[*at]);
        let named = |at: &usize| simple(&self.all[*at]) == simple(shape);
        let places = 0..self.all.len();
        let moved = places.clone().find(|at| open(at) && named(at)).map(|at| (at, From::Moved));
        // A stub's body is that of many others.
        let telling = is_function(shape) && shape.has_body;
        let renamed = || places.clone().find(|at| telling && open(at)).map(|at| (at, From::Renamed));
        let (at, from) = moved.or_else(renamed)?;
        self.taken[at] = true;
        Some(from)
    }

    fn left(&self) -> u32 {
        self.taken.iter().filter(|taken| !**taken).count() as u32
    }
}

/// Whether this is a function or method.
pub fn is_function(shape: &Shape) -> bool {
    shape.kind != DefinitionKind::Class
}

/// The name without what it stands in.
pub fn simple(shape: &Shape) -> &str {
    shape.qualified_name.rsplit('.').next().unwrap_or(&shape.qualified_name)
}

fn is_public(qualified: &str) -> bool {
    qualified.split('.').all(|part| !part.starts_with('_'))
}

/// How many of two sorted lists only the second has, and only the first.
fn apart(base: &[u64], golden: &[u64]) -> (u32, u32) {
    let (mut at, mut to, mut shared) = (0, 0, 0);
    while let (Some(one), Some(two)) = (base.get(at), golden.get(to)) {
        match one.cmp(two) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => to += 1,
            std::cmp::Ordering::Equal => {
                (at, to, shared) = (at + 1, to + 1, shared + 1);
            }
        }
    }
    ((golden.len() - shared) as u32, (base.len() - shared) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use infradev_pycode::Module;

    fn differing(base: &[&str], golden: &[&str]) -> Differing {
        let mut found = Differing::default();
        let shapes = |text: &str| Module::parse("a.py", text).unwrap().shapes();
        for (at, (base, golden)) in base.iter().zip(golden).enumerate() {
            found.add(&format!("{at}.py"), &shapes(base), &shapes(golden));
        }
        found
    }

    #[test]
    fn what_moved_and_what_was_renamed_is_not_new() {
        let one = "def f(x):\n    return x + 1\n\ndef g(x):\n    return x + 2\n";
        let moved =
            differing(&[one, ""], &["def g(x):\n    return x + 2\n", "def f(x):\n    return x + 1\n"]);
        let (counts, hollow) = moved.count();
        assert_eq!((counts.moved, counts.functions_added, counts.public_added, counts.removed), (1, 0, 0, 0));
        assert_eq!((hollow.functions, hollow.kept), (0, 1));
        let renamed = differing(&[one], &["def h(x):\n    return x + 1\n\ndef g(x):\n    return x + 2\n"]);
        assert_eq!((renamed.count().0.renamed, renamed.count().0.public_added), (1, 0));
        let gone = differing(&[one], &["def g(x):\n    return x + 2\n"]);
        assert_eq!((gone.count().0.removed, gone.substance.deleted), (1, 2));
    }

    #[test]
    fn what_callers_can_use_or_set_anew_is_counted_once() {
        let base = "class C:\n    a: int = 1\n\n    def f(self):\n        return 1\n";
        let golden = "class C:\n    a: int = 1\n    b: int = 2\n\n    def f(self, x=1):\n        return x\n\n    def \
                      _own(self):\n        return 2\n\n\nclass D:\n    def f(self):\n        return 3\n";
        let (counts, _) = differing(&[base], &[golden]).count();
        assert_eq!((counts.public_added, counts.settings, counts.classes_added), (1, 2, 1));
    }

    #[test]
    fn docstrings_and_comments_are_no_lines_of_substance() {
        let base = "def f(x):\n    return x\n";
        let told = "def f(x):\n    \"\"\"Says.\n\n    More.\n    \"\"\"\n    # one\n    return x\n";
        assert!(differing(&[base], &[told]).is_empty());
        let more = differing(&[base, base], &[told, &told.replace("return x", "return x + 1")]);
        assert_eq!(more.substance, Lines { files: 1, added: 1, deleted: 1 });
    }
}
