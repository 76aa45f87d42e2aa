//! The names that a change adds, read off both trees' versions of the files that it touches.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::NameKind;

use super::making::making;
use super::outline::{Function, Mark, Outline, Word};
use super::special;
use super::tree::{Object, SourceTree};

/// A name that golden has and base has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedName {
    /// The dotted name that leads to it; a flag or an environment variable as it is written; of what no dotted name leads to the word
    /// alone.
    pub name: String,
    /// The last part: what a test writes.
    pub word: String,
    /// What it is.
    pub kind: AddedKind,
    /// Where it stands.
    pub object: Object,
    /// Line in golden's file, from 1.
    pub line: usize,
    /// Its signature or declaration, where there is one.
    pub signature: Option<String>,
    /// The first line of its docstring: golden's own words, for the author only; where golden sets what no dotted name leads to.
    pub about: Option<String>,
}

/// What an added name is: one of the contract's kinds, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddedKind {
    /// Of one of the contract's kinds.
    Name(NameKind),
    /// A parameter of a function that base has.
    Parameter,
    /// A key of a dictionary.
    Key,
    /// A sub-command of a command line.
    Command,
    /// An attribute that is set on objects whose class is not known.
    Mark,
    /// An attribute of parsed arguments. Its object's name is the flag that gives it.
    Argument,
}

impl AddedName {
    /// The dotted name of what holds it: the function of a parameter or key, the class of a member.
    pub fn owner(&self) -> Option<&str> {
        self.name.rsplit_once('.').map(|(owner, _)| owner)
    }
}

/// Ends of the names of classes whose fields are settings.
const SETTINGS: [&str; 6] = ["Config", "Configuration", "Args", "Arguments", "Settings", "Options"];

/// All names that the change adds, in the order of files and names.
///
/// `files` are the paths that golden adds or changes.
pub fn added(base: &SourceTree<'_>, golden: &SourceTree<'_>, files: &[String]) -> Vec<AddedName> {
    let mut found = Vec::new();
    // Arguments that only move from one file to another are not new.
    let known: BTreeSet<String> = files
        .iter()
        .filter_map(|file| base.outline(file))
        .flat_map(|outline| outline.arguments.keys().cloned().collect::<Vec<_>>())
        .collect();
    for file in files {
        let (Some(after), Some(module)) = (golden.outline(file), golden.module_name(file)) else { continue };
        let before = base.outline(file);
        let is_new = before.is_none();
        let before = before.map(|outline| (*outline).clone()).unwrap_or_default();
        if is_new {
            found.push(AddedName {
                word: module.rsplit('.').next().unwrap_or(&module).to_owned(),
                name: module.clone(),
                kind: AddedKind::Name(NameKind::Module),
                object: Object { file: file.clone(), name: String::new() },
                line: 1,
                signature: None,
                about: None,
            });
        }
        Comparison {
            file,
            module: &module,
            before: &before,
            after: &after,
            base,
            golden,
            known: &known,
            found: &mut found,
        }
        .run();
    }
    found
}

struct Comparison<'a> {
    file: &'a str,
    module: &'a str,
    before: &'a Outline,
    after: &'a Outline,
    base: &'a SourceTree<'a>,
    golden: &'a SourceTree<'a>,
    /// Attributes of arguments that base's versions of the files have.
    known: &'a BTreeSet<String>,
    found: &'a mut Vec<AddedName>,
}

impl Comparison<'_> {
    fn run(&mut self) {
        let (before, after) = (self.before, self.after);
        for (name, class) in &after.classes {
            let old = before.classes.get(name);
            // What a call makes a class of may have been another variable.
            if old.is_none() && !before.variables.contains_key(name) {
                let object = Object { file: self.file.to_owned(), name: name.clone() };
                let signature = making(self.golden, &object);
                self.push(name, NameKind::Class, class.line, signature, class.about.clone());
            }
            let last = name.rsplit('.').next().unwrap_or(name);
            let settings = class.is_record && SETTINGS.iter().any(|end| last.ends_with(end));
            for (variable, held) in &class.variables {
                if old.is_none_or(|old| !old.variables.contains_key(variable))
                    && !before.functions.contains_key(&format!("{name}.{variable}"))
                    && !before.marks.contains_key(variable)
                {
                    let field = class.fields.contains(variable);
                    let kind = if settings && field { NameKind::Setting } else { NameKind::Attribute };
                    let name = format!("{name}.{variable}");
                    self.push(&name, kind, held.line, held.declared.clone(), None);
                }
            }
        }
        for (name, function) in &after.functions {
            match before.functions.get(name) {
                None => self.function(name, function),
                Some(old) => {
                    for parameter in &function.parameters {
                        if !old.parameters.iter().any(|known| known.name == parameter.name) {
                            self.parameter(name, function, &parameter.name, &parameter.text);
                        }
                    }
                }
            }
        }
        for (name, variable) in &after.variables {
            let was_class = before.classes.contains_key(name);
            if !before.variables.contains_key(name) && !was_class && name != "__all__" {
                self.push(name, NameKind::Attribute, variable.line, variable.declared.clone(), None);
            }
        }
        for (flag, word) in &after.flags {
            if !before.flags.contains_key(flag) {
                self.word(flag, NameKind::Flag, word.line);
            }
        }
        let known = environment(self.base, self.module, before);
        for (variable, line) in environment(self.golden, self.module, after) {
            if !known.contains_key(&variable) {
                self.word(&variable, NameKind::Variable, line);
            }
        }
        for (mark, Mark { word, on }) in &after.marks {
            let is_another_s = on.as_ref().is_some_and(|on| self.golden.resolve(on).is_none());
            if !before.marks.contains_key(mark) && !is_another_s {
                let whose = if word.within.is_empty() { self.module } else { &word.within };
                let about = format!("`{whose}` sets it ({}:{})", self.file, word.line);
                self.unowned(mark, AddedKind::Mark, "", word.line, about);
            }
        }
        for (argument, word) in &after.arguments {
            if !self.known.contains(argument) {
                let about = format!("the value of `{}` ({}:{})", word.within, self.file, word.line);
                self.unowned(argument, AddedKind::Argument, &word.within, word.line, about);
            }
        }
        for (key, word) in &after.keys {
            if !before.keys.contains_key(key) && is_word(key) {
                self.part(key, AddedKind::Key, word);
            }
        }
        for (command, word) in &after.commands {
            if !before.commands.contains_key(command) && is_word(command) {
                self.part(command, AddedKind::Command, word);
            }
        }
    }

    /// A string that is part of what it stands in.
    fn part(&mut self, part: &str, kind: AddedKind, word: &Word) {
        let gap = if word.within.is_empty() { "" } else { "." };
        self.found.push(AddedName {
            name: format!("{}{gap}{}.{part}", self.module, word.within),
            word: part.to_owned(),
            kind,
            object: Object { file: self.file.to_owned(), name: word.within.clone() },
            line: word.line,
            signature: None,
            about: None,
        });
    }

    fn function(&mut self, name: &str, function: &Function) {
        let last = name.rsplit('.').next().unwrap_or(name);
        // Special methods are no names of an interface, but for those that syntax calls.
        let is_called = name.contains('.') && special::is_special(last);
        if last.starts_with("__") && last.ends_with("__") && !is_called {
            return;
        }
        // What was an attribute may be a property now: nothing new to whoever reads it.
        let was_attribute = name.rsplit_once('.').is_some_and(|(class, member)| {
            self.before.classes.get(class).is_some_and(|class| class.variables.contains_key(member))
        });
        if was_attribute {
            return;
        }
        let kind = match (function.is_property, name.contains('.')) {
            (true, _) => NameKind::Attribute,
            (false, true) => NameKind::Method,
            (false, false) => NameKind::Function,
        };
        let signature =
            if function.is_property { function.returns.clone() } else { Some(function.signature.clone()) };
        self.push(name, kind, function.line, signature, function.about.clone());
    }

    fn parameter(&mut self, name: &str, function: &Function, parameter: &str, text: &str) {
        // What makes an object is called by its class's name.
        let owner = name.strip_suffix(".__init__").or(name.strip_suffix(".__new__")).unwrap_or(name);
        self.found.push(AddedName {
            name: format!("{}.{owner}.{parameter}", self.module),
            word: parameter.to_owned(),
            kind: AddedKind::Parameter,
            object: Object { file: self.file.to_owned(), name: owner.to_owned() },
            line: function.line,
            signature: Some(text.to_owned()),
            about: None,
        });
    }

    fn push(
        &mut self,
        name: &str,
        kind: NameKind,
        line: usize,
        signature: Option<String>,
        about: Option<String>,
    ) {
        self.found.push(AddedName {
            name: format!("{}.{name}", self.module),
            word: name.rsplit('.').next().unwrap_or(name).to_owned(),
            kind: AddedKind::Name(kind),
            object: Object { file: self.file.to_owned(), name: name.to_owned() },
            line,
            signature,
            about,
        });
    }

    /// A name that no dotted name leads to.
    fn unowned(&mut self, word: &str, kind: AddedKind, object: &str, line: usize, about: String) {
        self.found.push(AddedName {
            name: word.to_owned(),
            word: word.to_owned(),
            kind,
            object: Object { file: self.file.to_owned(), name: object.to_owned() },
            line,
            signature: None,
            about: Some(about),
        });
    }

    fn word(&mut self, word: &str, kind: NameKind, line: usize) {
        self.found.push(AddedName {
            name: word.to_owned(),
            word: word.to_owned(),
            kind: AddedKind::Name(kind),
            object: Object { file: self.file.to_owned(), name: word.to_owned() },
            line,
            signature: None,
            about: None,
        });
    }
}

/// The environment variables that a module reads, with the first line that does: those behind a constant of the tree too.
fn environment(tree: &SourceTree<'_>, module: &str, outline: &Outline) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> =
        outline.environment.iter().map(|(name, word)| (name.clone(), word.line)).collect();
    for (name, word) in &outline.environment_by_name {
        let constant = tree.resolve(&format!("{module}.{name}"));
        let text = constant.and_then(|at| tree.outline(&at.file)?.constants.get(&at.name).cloned());
        if let Some(text) = text {
            found.entry(text).or_insert(word.line);
        }
    }
    found
}

fn is_word(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-' || c == '.')
}
