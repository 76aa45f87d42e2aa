//! A contract drafted from golden's signatures, for what tests touch.

use std::collections::BTreeMap;

use infradev_model::{ContractName, NameKind};

use super::added::AddedKind;
use super::interface::{Interface, TouchedAt};
use super::making::making;
use super::tree::Object;

/// An entry of the draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftedName {
    /// Name, kind and signature as golden has them; `about` says what is new of a name that base has, and is empty
    /// otherwise.
    pub listed: ContractName,
    /// The first line of golden's docstring: for the author, who is to say it without the algorithm.
    pub golden_says: Option<String>,
    /// Where it is touched: a test's file and line.
    pub touched: (String, usize),
}

impl Interface<'_> {
    /// An entry for each name that tests touch, sorted by name. New parameters and keys stand in the entry of their
    /// function.
    pub fn draft(&self) -> Vec<DraftedName> {
        let mut drafted: BTreeMap<String, DraftedName> = BTreeMap::new();
        for touched in self.touched() {
            match touched.name.kind {
                // A module is stated by what it holds.
                AddedKind::Name(NameKind::Module) => {}
                AddedKind::Name(kind) => {
                    let name = self.public_name(&touched);
                    let signature = touched.name.signature.clone();
                    let says = touched.name.about.clone();
                    drafted
                        .entry(name.clone())
                        .or_insert_with(|| entry(name, kind, signature, says, &touched));
                }
                AddedKind::Mark => {
                    let (name, says) = (touched.name.name.clone(), touched.name.about.clone());
                    drafted
                        .entry(name.clone())
                        .or_insert_with(|| entry(name, NameKind::Attribute, None, says, &touched));
                }
                AddedKind::Argument => {
                    let name = touched.name.name.clone();
                    let drafted = drafted
                        .entry(name.clone())
                        .or_insert_with(|| entry(name, NameKind::Setting, None, None, &touched));
                    drafted.listed.about =
                        format!("Of the parsed arguments, by `{}`.", touched.name.object.name);
                }
                AddedKind::Parameter => self.add_to_owner(&mut drafted, &touched, "parameter"),
                AddedKind::Key => self.add_to_owner(&mut drafted, &touched, "key"),
                AddedKind::Command => self.add_to_owner(&mut drafted, &touched, "sub-command"),
            }
        }
        // Modules of which nothing is touched by name are entries of their own.
        for touched in self.touched() {
            let below = format!("{}.", touched.name.name);
            if touched.name.kind == AddedKind::Name(NameKind::Module)
                && !drafted.keys().any(|name| name.starts_with(&below))
            {
                let name = touched.name.name.clone();
                drafted
                    .entry(name.clone())
                    .or_insert_with(|| entry(name, NameKind::Module, None, None, &touched));
            }
        }
        drafted.into_values().collect()
    }

    /// States a new part of a function or class that may be base's.
    fn add_to_owner(&self, drafted: &mut BTreeMap<String, DraftedName>, touched: &TouchedAt, part: &str) {
        let mut object = touched.name.object.clone();
        let Some(outline) = self.golden.outline(&object.file) else { return };
        let (kind, signature) = loop {
            let name = object.name.as_str();
            let last = name.rsplit_once('.');
            if let Some(function) = outline.functions.get(name) {
                let kind = if last.is_some() { NameKind::Method } else { NameKind::Function };
                break (kind, Some(function.signature.clone()));
            }
            if outline.classes.contains_key(name) {
                break (NameKind::Class, making(self.golden, &object));
            }
            let held = match last {
                Some((class, name)) => outline.classes.get(class).and_then(|c| c.variables.get(name)),
                None => outline.variables.get(name),
            };
            if let Some(variable) = held {
                break (NameKind::Attribute, variable.declared.clone());
            }
            if name.is_empty() {
                break (NameKind::Module, None);
            }
            // What stands in no name of the file's own is stated by what is around it.
            object.name = last.map_or(String::new(), |(around, _)| around.to_owned());
        };
        let name = self.path_of(&object);
        let drafted =
            drafted.entry(name.clone()).or_insert_with(|| entry(name, kind, signature, None, touched));
        if !drafted.listed.about.is_empty() {
            drafted.listed.about.push(' ');
        }
        drafted.listed.about.push_str(&format!("New {part}: {}.", touched.name.word));
    }

    /// The dotted name that an author would list: the one that the test imports, or by the class that tests import.
    fn public_name(&self, touched: &TouchedAt) -> String {
        match touched.name.kind {
            AddedKind::Name(NameKind::Flag | NameKind::Variable) => touched.name.name.clone(),
            _ if touched.name.object.name.contains('.') => self.path_of(&touched.name.object),
            _ => touched.name.name.clone(),
        }
    }

    /// A dotted name of an object: the shortest that tests import it by, else the one of its file.
    fn path_of(&self, object: &Object) -> String {
        let imports = || self.tests.iter().flat_map(|test| test.imports.keys());
        let imported = |object: &Object| {
            let mut paths: Vec<&String> =
                imports().filter(|path| self.golden.resolve(path).as_ref() == Some(object)).collect();
            paths.sort_by_key(|path| (path.len(), path.as_str()));
            paths.first().map(|path| (*path).clone())
        };
        if let Some(path) = imported(object) {
            return path;
        }
        match object.name.rsplit_once('.') {
            Some((owner, last)) => {
                let owner = Object { file: object.file.clone(), name: owner.to_owned() };
                format!("{}.{last}", self.path_of(&owner))
            }
            None => {
                let module = self.golden.module_name(&object.file).unwrap_or_default();
                [module.as_str(), object.name.as_str()].join(".").trim_matches('.').to_owned()
            }
        }
    }
}

fn entry(
    name: String,
    kind: NameKind,
    signature: Option<String>,
    golden_says: Option<String>,
    touched: &TouchedAt,
) -> DraftedName {
    DraftedName {
        listed: ContractName { name, kind, signature, about: String::new(), untested: None },
        golden_says,
        touched: (touched.file.clone(), touched.line),
    }
}
