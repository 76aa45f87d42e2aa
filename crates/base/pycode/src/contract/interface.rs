//! Whether a contract lists what tests touch of a change, and nothing else.

use infradev_model::{Contract, ContractFinding, ContractName, ContractRule, NameKind, TouchedName};

use super::added::{AddedKind, AddedName, class_signature};
use super::outline::words_of;
use super::signature::{difference, parse_signature};
use super::touched::Touched;
use super::tree::{Object, SourceTree};

/// The name under which findings name the contract.
const CONTRACT: &str = "contract.toml";

/// All that is needed to compare a contract with a change and its tests.
pub struct Interface<'a> {
    /// The tree before.
    pub base: &'a SourceTree<'a>,
    /// The tree after.
    pub golden: &'a SourceTree<'a>,
    /// What the change adds.
    pub added: Vec<AddedName>,
    /// Official tests and observers: they use the tree themselves.
    pub tests: Vec<Touched>,
    /// Judges: they send settings by name, and use nothing of the tree.
    pub judges: Vec<Touched>,
    /// Whether a word stands anywhere in base's Python files: an attribute of that name may be another's.
    pub base_has_word: &'a dyn Fn(&str) -> bool,
    /// Whether base's Python files know an attribute or method of that name.
    pub base_has_attribute: &'a dyn Fn(&str) -> bool,
    /// Whether a word stands in a Python file that golden changes.
    pub golden_has_word: &'a dyn Fn(&str) -> bool,
}

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

/// An added name with the place where it is touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedAt {
    /// Whether it is this name for certain, and not another one of the change with the same last part.
    pub exact: bool,
    /// The name. Its dotted name is the one that the test imports, where it does.
    pub name: AddedName,
    /// The test's file.
    pub file: String,
    /// Line in it, from 1.
    pub line: usize,
}

impl TouchedAt {
    /// As documents name it.
    pub fn to_document(&self) -> TouchedName {
        let kind = match self.name.kind {
            AddedKind::Name(kind) => Some(kind),
            AddedKind::Parameter | AddedKind::Key => None,
        };
        TouchedName { name: self.name.name.clone(), kind, file: self.file.clone(), line: self.line as u32 }
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
                let known = match path {
                    Some(path) => {
                        name.name = path;
                        found.iter_mut().find(|other| other.name.name == name.name)
                    }
                    None => {
                        found.iter_mut().find(|o| o.name.object == name.object && o.name.word == name.word)
                    }
                };
                match known {
                    // The better evidence stays.
                    Some(known) if known.exact || !exact => {}
                    Some(known) => *known = TouchedAt { exact, name, file: test.file.clone(), line },
                    None => found.push(TouchedAt { exact, name, file: test.file.clone(), line }),
                }
            }
        }
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
            AddedKind::Key => test.strings.get(word).filter(|_| is_word_of_its_own()).map(own),
            AddedKind::Parameter => self
                .called(test, &name.object, word)
                .or_else(|| test.keywords.get(word).filter(|_| is_word_of_its_own()).map(own)),
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
                        test.attributes.get(word).or(keyword).or(string).map(own)
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

    /// Findings on a contract, by file and line.
    pub fn lint(&self, contract: &Contract, text: &str) -> Vec<ContractFinding> {
        let mut findings = self.missing(contract);
        for listed in &contract.names {
            let line = listed.line_in(text).unwrap_or(1) as u32;
            let mut report = |rule: ContractRule, what: String| {
                findings.push(ContractFinding::new(CONTRACT, line, rule, what));
            };
            if !self.exists(listed) {
                report(ContractRule::Unknown, format!("golden has no {} `{}`", listed.kind, listed.name));
                continue;
            }
            if let Some(what) = self.signature(listed) {
                report(ContractRule::Signature, format!("`{}`: {what}", listed.name));
            }
            match (self.use_of(contract, listed), &listed.untested) {
                (None, None) => report(
                    ContractRule::Untouched,
                    format!(
                        "no test touches `{}`: leave it out, or say why it is listed with `untested`",
                        listed.name
                    ),
                ),
                (Some((file, line)), Some(_)) if line > 0 => report(
                    ContractRule::Untouched,
                    format!("`{}` is marked `untested`, but {file}:{line} touches it", listed.name),
                ),
                _ => {}
            }
        }
        findings.sort();
        findings.dedup();
        findings
    }

    fn missing(&self, contract: &Contract) -> Vec<ContractFinding> {
        let mut findings = Vec::new();
        let all = self.touched();
        for touched in &all {
            let below = format!("{}.", touched.name.name);
            // A module is stated by what is touched in it.
            let stated_below = touched.name.kind == AddedKind::Name(NameKind::Module)
                && all.iter().any(|other| other.name.name.starts_with(&below));
            if stated_below || self.is_listed(contract, touched) {
                continue;
            }
            let name = &touched.name;
            let what = match name.kind {
                AddedKind::Name(kind) => format!("the {kind} `{}`", name.name),
                AddedKind::Parameter => {
                    format!("the parameter `{}` of `{}`", name.word, name.owner().unwrap_or_default())
                }
                AddedKind::Key => {
                    format!("the key \"{}\" of `{}`", name.word, name.owner().unwrap_or_default())
                }
            };
            let what = format!(
                "{what} is touched here, golden adds it ({}:{}), and contract.toml does not state it",
                name.object.file, name.line
            );
            let line = touched.line as u32;
            findings.push(ContractFinding::new(&touched.file, line, ContractRule::Missing, what));
        }
        findings
    }

    /// Whether the contract states an added name: by its own entry under the name that tests use, or, for what
    /// belongs to another name, in that one's entry.
    fn is_listed(&self, contract: &Contract, touched: &TouchedAt) -> bool {
        let name = &touched.name;
        let word = name.word.as_str();
        let below = format!("{}.", name.name);
        let says = |listed: &ContractName| {
            let texts = [listed.signature.as_deref().unwrap_or_default(), &listed.about];
            texts.iter().any(|text| words_of(text).contains(word))
        };
        contract.names.iter().any(|listed| match name.kind {
            AddedKind::Name(NameKind::Module) => listed.name == name.name || listed.name.starts_with(&below),
            AddedKind::Name(NameKind::Flag | NameKind::Variable) | AddedKind::Key => {
                listed.word() == word || says(listed)
            }
            AddedKind::Name(_) if !name.object.name.contains('.') => listed.name == name.name,
            AddedKind::Name(_) => {
                let object = self.golden.resolve(&listed.name);
                let same = object.as_ref() == Some(&name.object);
                let owner = name.object.name.rsplit_once('.').map_or("", |(owner, _)| owner);
                let is_owner = object.is_some_and(|o| o.file == name.object.file && o.name == owner);
                same || (!touched.exact && listed.word() == word) || (is_owner && says(listed))
            }
            AddedKind::Parameter => {
                let object = self.golden.resolve(&listed.name);
                listed.word() == word || (object.as_ref() == Some(&name.object) && says(listed))
            }
        })
    }

    fn exists(&self, listed: &ContractName) -> bool {
        match listed.kind {
            NameKind::Flag | NameKind::Variable => {
                words_of(&listed.name).iter().all(|word| (self.golden_has_word)(word))
            }
            _ => {
                if self.golden.resolve(&listed.name).is_some() {
                    return true;
                }
                // Set by other means than an assignment: `register_buffer`, `setattr`.
                let owner = listed.name.rsplit_once('.').and_then(|(owner, _)| self.golden.resolve(owner));
                let class = owner.filter(|owner| !owner.name.is_empty());
                class.is_some() && (self.golden_has_word)(listed.word())
            }
        }
    }

    fn signature(&self, listed: &ContractName) -> Option<String> {
        let text = listed.signature.as_deref().filter(|text| text.trim_start().starts_with('('))?;
        let Some(parameters) = parse_signature(text) else {
            return Some(format!("the signature `{text}` is not Python"));
        };
        let object = self.golden.resolve(&listed.name)?;
        let outline = self.golden.outline(&object.file)?;
        if let Some(function) = outline.functions.get(&object.name) {
            return difference(&parameters, &function.parameters);
        }
        let class = outline.classes.get(&object.name)?;
        let made = outline.functions.contains_key(&format!("{}.__init__", object.name)) || class.is_record;
        // What a base class takes is not looked for.
        if !made && !class.bases.is_empty() {
            return None;
        }
        difference(&parameters, &parse_signature(&class_signature(&outline, &object.name, class))?)
    }

    /// Where something uses a listed name: a test or judge, or (at line 0) a signature of another listed name.
    fn use_of(&self, contract: &Contract, listed: &ContractName) -> Option<(String, usize)> {
        self.seen(listed).or_else(|| {
            let word = listed.word();
            let mut others = contract.names.iter().filter(|other| other.name != listed.name);
            let by = others.find(|other| {
                let text = other.signature.as_deref().unwrap_or_default();
                words_of(text).contains(word) && self.seen(other).is_some()
            })?;
            Some((by.name.clone(), 0))
        })
    }

    fn seen(&self, listed: &ContractName) -> Option<(String, usize)> {
        let mut words = vec![listed.word().to_owned()];
        if matches!(listed.kind, NameKind::Class | NameKind::Module) {
            words.extend(self.members(listed));
        } else if listed.word().starts_with("__") {
            // Called by an operator or a statement: touched where its class is.
            words.extend(listed.name.rsplit('.').nth(1).map(str::to_owned));
        }
        if listed.kind == NameKind::Attribute
            && let Some(object) = self.golden.resolve(&listed.name)
        {
            // A dictionary is touched where a key is that it has anew.
            let keys = self.added.iter().filter(|name| name.kind == AddedKind::Key && name.object == object);
            words.extend(keys.map(|key| key.word.clone()));
        }
        let is_flag = listed.kind == NameKind::Flag;
        self.tests.iter().chain(&self.judges).find_map(|test| {
            let set = format!("{}=", listed.name);
            let flag = test.strings.iter().find(|(text, _)| is_flag && text.starts_with(&set));
            let line = words.iter().find_map(|word| test.line_of(word)).or(flag.map(|(_, line)| *line));
            line.map(|line| (test.file.clone(), line))
        })
    }

    /// The names that a class or a module holds.
    fn members(&self, listed: &ContractName) -> Vec<String> {
        let Some(object) = self.golden.resolve(&listed.name) else { return Vec::new() };
        let Some(outline) = self.golden.outline(&object.file) else { return Vec::new() };
        let is_public = |name: &&str| !name.starts_with('_');
        if object.name.is_empty() {
            let names =
                outline.functions.keys().chain(outline.classes.keys()).chain(outline.variables.keys());
            return names.map(String::as_str).filter(is_public).map(str::to_owned).collect();
        }
        let below = format!("{}.", object.name);
        let methods = outline.functions.keys().filter_map(|name| name.strip_prefix(&below));
        let variables =
            outline.classes.get(&object.name).into_iter().flat_map(|class| class.variables.keys());
        methods.chain(variables.map(String::as_str)).filter(is_public).map(str::to_owned).collect()
    }
}
