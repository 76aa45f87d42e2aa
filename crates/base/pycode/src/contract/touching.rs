//! Which of the names that a change adds a test touches, and how it is known.

use std::collections::BTreeSet;

use infradev_model::NameKind;

use super::added::{AddedKind, AddedName};
use super::interface::{Interface, TouchedAt};
use super::special;
use super::touched::Touched;
use super::tree::Object;

/// How a test touches a name.
struct Evidence {
    /// The dotted name that it imports.
    path: Option<String>,
    line: usize,
    exact: bool,
}

impl Evidence {
    fn exact(line: usize) -> Evidence {
        Evidence { path: None, line, exact: true }
    }
}

impl Interface<'_> {
    /// The added names that official tests and observers touch for certain: by an import that leads to them, or by
    /// a word that base does not have.
    pub fn touched(&self) -> Vec<TouchedAt> {
        let mut found: Vec<TouchedAt> = Vec::new();
        for name in &self.added {
            for test in &self.tests {
                let Some(Evidence { path, line, exact }) = self.touches(test, name) else { continue };
                let mut name = name.clone();
                let by_path = path.is_some() && name.kind != AddedKind::Mark;
                name.name = path.unwrap_or(name.name);
                let known = found.iter_mut().find(|other| {
                    let other = &other.name;
                    match by_path {
                        true => other.name == name.name,
                        false => other.object == name.object && other.word == name.word,
                    }
                });
                match known {
                    // The better evidence stays.
                    Some(known) if known.exact || !exact => {}
                    Some(known) => *known = TouchedAt { exact, name, file: test.file.clone(), line },
                    None => found.push(TouchedAt { exact, name, file: test.file.clone(), line }),
                }
            }
        }
        // What a dotted name leads to is not stated by its word alone, too.
        let is_word =
            |touched: &TouchedAt| matches!(touched.name.kind, AddedKind::Mark | AddedKind::Argument);
        let named: BTreeSet<String> = found
            .iter()
            .filter(|touched| !is_word(touched))
            .map(|touched| touched.name.word.clone())
            .collect();
        let mut words = BTreeSet::new();
        found.retain(|touched| {
            let word = &touched.name.word;
            !is_word(touched) || (!named.contains(word) && words.insert(word.clone()))
        });
        found
    }

    /// Where a test touches a name, with the dotted name that it imports.
    fn touches(&self, test: &Touched, name: &AddedName) -> Option<Evidence> {
        let word = name.word.as_str();
        if let AddedKind::Name(NameKind::Module) = name.kind {
            let below = format!("{}.", name.name);
            let found = test.imports.iter().find(|(path, _)| **path == name.name || path.starts_with(&below));
            let found = found.map(|(_, line)| Evidence::exact(*line));
            return found.or_else(|| {
                self.spelled_out(test, &name.object).map(|evidence| Evidence { path: None, ..evidence })
            });
        }
        let is_word_of_its_own = || !(self.base_has_word)(word);
        let own = |line: &usize| Evidence { path: None, line: *line, exact: false };
        match name.kind {
            AddedKind::Name(NameKind::Flag) => {
                let set = format!("{word}=");
                let mut strings = test.strings.iter();
                strings.find(|(text, _)| *text == word || text.starts_with(&set)).map(|(_, line)| own(line))
            }
            AddedKind::Name(NameKind::Variable) => test.strings.get(word).map(own),
            AddedKind::Key | AddedKind::Command => {
                test.strings.get(word).filter(|_| is_word_of_its_own()).map(own)
            }
            AddedKind::Parameter => self
                .called(test, &name.object, word)
                .or_else(|| test.keywords.get(word).filter(|_| is_word_of_its_own()).map(own)),
            AddedKind::Mark => self.marked(test, word).filter(|_| is_word_of_its_own()),
            AddedKind::Argument => {
                // Tests set it on the arguments that they make themselves, too.
                let set = test.own.get(word).or(test.keywords.get(word));
                let found = seen_as_attribute(test, word).or(set.copied());
                found.filter(|_| is_word_of_its_own()).map(|line| own(&line))
            }
            // Of any class that has one: only where the test shows the class.
            AddedKind::Name(NameKind::Method) if special::is_special(word) => self
                .imported(test, &name.object)
                .or_else(|| self.spelled_out(test, &name.object))
                .or_else(|| self.accessed(test, &name.object, word)),
            AddedKind::Name(kind) => {
                let owner = name
                    .object
                    .name
                    .rsplit_once('.')
                    .map(|(owner, _)| Object { file: name.object.file.clone(), name: owner.to_owned() });
                // The fields of a record are its parameters; those of another class stand in its own signature.
                let record = owner.as_ref().filter(|owner| self.is_record(owner));
                self.imported(test, &name.object)
                    .or_else(|| self.spelled_out(test, &name.object))
                    .or_else(|| self.accessed(test, &name.object, word))
                    .or_else(|| self.called(test, record?, word))
                    .or_else(|| owner.as_ref().and_then(|_| self.reached(test, word)))
                    .or_else(|| {
                        let is_own = test.own.contains_key(word) || !is_word_of_its_own();
                        test.spelled.get(word).filter(|_| !is_own).map(own)
                    })
                    .or_else(|| {
                        if owner.is_none() || !is_word_of_its_own() || test.own.contains_key(word) {
                            return None;
                        }
                        let keyword = record.and_then(|_| test.keywords.get(word));
                        let string = test.strings.get(word).filter(|_| kind == NameKind::Setting);
                        seen_as_attribute(test, word).or(keyword.or(string).copied()).map(|line| own(&line))
                    })
            }
        }
    }

    fn is_record(&self, class: &Object) -> bool {
        let outline = self.golden.outline(&class.file);
        outline.is_some_and(|outline| outline.classes.get(&class.name).is_some_and(|class| class.is_record))
    }

    fn imported(&self, test: &Touched, object: &Object) -> Option<Evidence> {
        let last = object.name.rsplit('.').next().unwrap_or(&object.name);
        let mut paths = test.imports.iter().filter(|(path, _)| {
            // Renamed on its way or not, a path ends in some word; resolving is what decides.
            path.ends_with(last) || !object.name.contains('.')
        });
        paths
            .find(|(path, _)| self.golden.resolve(path).as_ref() == Some(object))
            .map(|(path, line)| Evidence { path: Some(path.clone()), line: *line, exact: true })
    }

    /// A string that is the dotted name of something of golden's, whose name or part of it leads to the object.
    fn spelled_out(&self, test: &Touched, object: &Object) -> Option<Evidence> {
        test.paths.iter().find_map(|(path, line)| {
            let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
            let mut parts = ends.map(|end| &path[..end]);
            let part = parts.find(|part| self.golden.resolve(part).as_ref() == Some(object))?;
            self.golden.resolve(path)?;
            Some(Evidence { path: Some(part.to_owned()), line: *line, exact: true })
        })
    }

    fn called(&self, test: &Touched, callee: &Object, keyword: &str) -> Option<Evidence> {
        let mut calls = test.calls.iter().filter(|((_, name), _)| name == keyword);
        calls
            .find(|((path, _), _)| self.golden.resolve(path).as_ref() == Some(callee))
            .map(|(_, line)| Evidence::exact(*line))
    }

    /// An attribute of an object that the test makes by calling its class.
    fn accessed(&self, test: &Touched, object: &Object, word: &str) -> Option<Evidence> {
        let mut accesses = test.typed.iter().filter(|((_, attribute), _)| attribute == word);
        accesses
            .find(|((made_by, _), _)| {
                self.golden.resolve(&format!("{made_by}.{word}")).as_ref() == Some(object)
            })
            .map(|(_, line)| Evidence::exact(*line))
    }

    /// An attribute that golden sets on objects of some class: on what the test shows of them, its dotted name begins with that.
    fn marked(&self, test: &Touched, word: &str) -> Option<Evidence> {
        if test.own.contains_key(word) {
            return None;
        }
        let is_class = |object: &Object| {
            self.golden
                .outline(&object.file)
                .is_some_and(|outline| outline.classes.contains_key(&object.name))
        };
        let exact =
            |path: String, line: &usize| Some(Evidence { path: Some(path), line: *line, exact: true });
        // `module.function.calls` and `module.Class.limit`.
        let by_path = test.imports.iter().find_map(|(path, line)| {
            let owner = path.strip_suffix(word)?.strip_suffix('.')?;
            self.golden.resolve(owner).filter(|owner| !owner.name.is_empty())?;
            exact(path.clone(), line)
        });
        let by_class = || {
            let mut typed = test.typed.iter().filter(|((_, attribute), _)| attribute == word);
            typed.find_map(|((made_by, _), line)| {
                self.golden.resolve(made_by).filter(is_class)?;
                exact(format!("{made_by}.{word}"), line)
            })
        };
        by_path
            .or_else(by_class)
            .or_else(|| seen_as_attribute(test, word).map(|line| Evidence { path: None, line, exact: false }))
    }

    /// An attribute, new to the tree, of something that is reached from an object of the tree: a loop's variable, what is unpacked,
    /// what `with` binds. Its class is not known, so the name decides.
    fn reached(&self, test: &Touched, word: &str) -> Option<Evidence> {
        if test.own.contains_key(word) || (self.base_has_attribute)(word) {
            return None;
        }
        let mut accesses = test.within.iter().filter(|((_, attribute), _)| attribute == word);
        accesses.find(|((made_by, _), _)| self.golden.resolve(made_by).is_some()).map(|(_, line)| Evidence {
            path: None,
            line: *line,
            exact: false,
        })
    }
}

/// Where a test has a word as the name of an attribute, written or given as a string.
fn seen_as_attribute(test: &Touched, word: &str) -> Option<usize> {
    let of = |(_, attribute): &(String, String)| attribute == word;
    let known = test.typed.iter().chain(&test.within).find(|(access, _)| of(access)).map(|(_, line)| line);
    test.attributes.get(word).or(test.spelled.get(word)).or(known).copied()
}
