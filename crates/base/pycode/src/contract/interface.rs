//! Whether a contract lists what tests touch of a change, and nothing else.

use infradev_model::{Contract, ContractFinding, ContractName, ContractRule, NameKind, TouchedName};

use super::added::{AddedKind, AddedName};
use super::making::making;
use super::outline::words_of;
use super::signature::{difference, parse_signature};
use super::touched::Touched;
use super::tree::SourceTree;

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
            AddedKind::Mark => Some(NameKind::Attribute),
            AddedKind::Argument => Some(NameKind::Setting),
            AddedKind::Parameter | AddedKind::Key | AddedKind::Command => None,
        };
        TouchedName { name: self.name.name.clone(), kind, file: self.file.clone(), line: self.line as u32 }
    }
}

impl Interface<'_> {
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
                AddedKind::Command => {
                    format!("the sub-command \"{}\" of `{}`", name.word, name.owner().unwrap_or_default())
                }
                AddedKind::Mark => format!("the attribute `{}`", name.name),
                AddedKind::Argument => {
                    format!("the attribute `{}` of parsed arguments, by `{}`,", name.word, name.object.name)
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
            let is_told = |text: &&str| words_of(text).contains(word) || stands_in(text, word);
            texts.iter().any(is_told)
        };
        contract.names.iter().any(|listed| match name.kind {
            AddedKind::Name(NameKind::Module) => listed.name == name.name || listed.name.starts_with(&below),
            AddedKind::Name(NameKind::Flag | NameKind::Variable)
            | AddedKind::Key
            | AddedKind::Command
            | AddedKind::Mark
            | AddedKind::Argument => listed.word() == word || says(listed),
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
                self.added.iter().any(|name| name.name == listed.name)
                    || words_of(&listed.name).iter().all(|word| (self.golden_has_word)(word))
            }
            _ => {
                let has_no_path =
                    |name: &AddedName| matches!(name.kind, AddedKind::Mark | AddedKind::Argument);
                if self.golden.resolve(&listed.name).is_some()
                    || self.added.iter().any(|name| has_no_path(name) && name.word == listed.name)
                {
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
        outline.classes.get(&object.name)?;
        difference(&parameters, &parse_signature(&making(self.golden, &object)?)?)
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
        let mut arguments = self.added.iter().filter(|name| name.kind == AddedKind::Argument);
        let is_argument = arguments.any(|name| name.word == listed.word());
        self.tests.iter().chain(&self.judges).find_map(|test| {
            let set = format!("{}=", listed.name);
            let flag = test.strings.iter().find(|(text, _)| is_flag && text.starts_with(&set));
            // An argument that a test sets is given to golden.
            let set = test.own.get(listed.word()).filter(|_| is_argument).copied();
            let line =
                words.iter().find_map(|word| test.line_of(word)).or(flag.map(|(_, line)| *line)).or(set);
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

/// Whether a word with hyphens stands in a text: `drain-now`.
fn stands_in(text: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    word.contains('-')
        && text
            .match_indices(word)
            .any(|(at, _)| !text[..at].ends_with(goes_on) && !text[at + word.len()..].starts_with(goes_on))
}
