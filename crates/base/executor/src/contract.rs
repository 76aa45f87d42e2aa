//! A task's contract read against its change, its tests and its probes. Nothing is run.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use infradev_model::{CONTRACT_SCHEMA, ContractDocument, ContractFinding, ContractRule, SealedTask};
use infradev_pycode::contract::{
    DraftedName, Interface, Leaks, SourceTree, Texts, Touched, TouchedAt, added, attribute_names,
    without_allowed,
};
use infradev_pycode::{Module, ParseError};
use infradev_store::StoreError;

use crate::derived::{DeriveError, GoldenChange};

/// All texts that a contract is compared with.
pub struct ContractReading<'a> {
    task: &'a SealedTask,
    tree: PathBuf,
    before: Vec<(String, String)>,
    after: Vec<(String, String)>,
    official: Vec<(String, String)>,
    probes: Vec<(String, String)>,
    contract_text: String,
    /// What base's Python files hold, read when it is first asked for.
    base_words: OnceCell<BaseWords>,
}

/// Words of base's Python files.
#[derive(Debug, Default)]
struct BaseWords {
    all: HashSet<String>,
    /// Those that are names of attributes or methods somewhere.
    attributes: HashSet<String>,
}

impl<'a> ContractReading<'a> {
    /// Reads them. `tree` is the folder of the base tree.
    ///
    /// # Errors
    /// Where golden or the official tests do not apply, or a file can't be read.
    pub fn of(task: &'a SealedTask, tree: &Path) -> Result<ContractReading<'a>, DeriveError> {
        let change = GoldenChange::on(task, tree)?;
        let (before, after, official) = (change.before()?, change.after()?, change.official()?);
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let probes =
            task.probes.iter().map(|(name, bytes)| (format!("probes/{name}"), text(bytes))).collect();
        let path = task.folder.join("contract.toml");
        let contract_text =
            fs::read_to_string(&path).map_err(|error| StoreError::io("read", &path, error))?;
        Ok(ContractReading {
            task,
            tree: tree.to_path_buf(),
            before,
            after,
            official,
            probes,
            contract_text,
            base_words: OnceCell::new(),
        })
    }

    /// What official tests and observers touch of golden's names, in the order of golden's files.
    pub fn touched(&self) -> Vec<TouchedAt> {
        self.with_interface(|interface, _| interface.touched())
    }

    /// A contract with an entry for each of them, drafted from golden's signatures.
    pub fn draft(&self) -> Vec<DraftedName> {
        self.with_interface(|interface, _| interface.draft())
    }

    /// The official tests and probes that are no Python, so that what they touch is not known.
    pub fn unread_tests(&self) -> Vec<ContractFinding> {
        self.with_interface(|_, unread| unread.iter().filter_map(|error| self.unread(error)).collect())
    }

    /// A finding on a file that is not Python, if it is a test or a probe. Files of data that tests bring along may be anything.
    fn unread(&self, error: &ParseError) -> Option<ContractFinding> {
        let official = &self.task.public.spec.tests.official;
        let is_test = official.contains(&error.file) || error.file.starts_with("probes/");
        let what =
            format!("what this file touches is not known, since it is not valid Python: {}", error.what);
        is_test.then(|| ContractFinding {
            hint: Some(format!("mend {}, or leave it out of the task", error.file)),
            ..ContractFinding::new(&error.file, error.line as u32, ContractRule::Unread, what)
        })
    }

    /// What is wrong with the contract, and what spec.md and contract.toml give away.
    pub fn document(&self) -> ContractDocument {
        let contract = &self.task.public.contract;
        let (touched, mut findings, listed, unread) = self.with_interface(|interface, unread| {
            let touched = interface.touched().iter().map(TouchedAt::to_document).collect();
            let objects = contract.names.iter().filter_map(|listed| interface.golden.resolve(&listed.name));
            let listed: Vec<(String, String)> = objects.map(|object| (object.file, object.name)).collect();
            (touched, interface.lint(contract, &self.contract_text), listed, unread)
        });
        let leaks = self.leaks(&listed);
        let mut leaked = leaks.find("spec.md", &self.task.public.description);
        leaked.extend(leaks.find_in_contract("contract.toml", contract, &self.contract_text));
        let sifted = without_allowed(leaked, contract, &self.contract_text);
        findings.extend(sifted.findings);
        findings.extend(unread.iter().filter_map(|error| self.unread(error)));
        findings.sort();
        let mut unread: Vec<String> = unread.iter().map(ParseError::to_string).collect();
        unread.sort();
        ContractDocument {
            schema: CONTRACT_SCHEMA,
            task: self.task.id().to_owned(),
            touched,
            allowed: sifted.allowed,
            findings,
            unread,
        }
    }

    fn with_interface<T>(&self, ask: impl FnOnce(&Interface<'_>, Vec<ParseError>) -> T) -> T {
        let roots = &self.task.public.spec.tests.import_roots;
        let after: BTreeMap<&str, &str> = self.after.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        let removed: BTreeSet<&str> = self
            .before
            .iter()
            .map(|(path, _)| path.as_str())
            .filter(|path| !after.contains_key(path))
            .collect();
        let from_tree = |path: &str| fs::read_to_string(self.tree.join(path)).ok();
        let from_golden = |path: &str| match after.get(path) {
            Some(text) => Some((*text).to_owned()),
            None if removed.contains(path) => None,
            None => from_tree(path),
        };
        let (base, golden) = (SourceTree::new(&from_tree, roots), SourceTree::new(&from_golden, roots));
        let mut unread = Vec::new();
        let mut read = |files: Vec<&(String, String)>| -> Vec<Touched> {
            let mut touched = Vec::new();
            for (path, text) in files {
                match Module::parse(path, text) {
                    Ok(module) => touched.push(Touched::of(&module)),
                    Err(error) => unread.push(error),
                }
            }
            touched
        };
        let (judges, observers): (Vec<_>, Vec<_>) =
            self.probes.iter().partition(|(path, _)| path.starts_with("probes/judge_"));
        let tests = read(self.official.iter().chain(observers).collect());
        let judges = read(judges);
        let files: Vec<String> = self.after.iter().map(|(path, _)| path.clone()).collect();
        for (path, text) in &self.after {
            if let Err(error) = Module::parse(path, text) {
                unread.push(error);
            }
        }
        let golden_words: HashSet<&str> = self.after.iter().flat_map(|(_, text)| words(text)).collect();
        let interface = Interface {
            added: added(&base, &golden, &files),
            base: &base,
            golden: &golden,
            tests,
            judges,
            base_has_word: &|word| self.base_has_word(word),
            base_has_attribute: &|word| self.base_words().attributes.contains(word),
            golden_has_word: &|word| golden_words.contains(word),
        };
        ask(&interface, unread)
    }

    /// `listed` is where golden has what the contract lists.
    fn leaks(&self, listed: &[(String, String)]) -> Leaks {
        let tests = self.official.iter().chain(&self.probes);
        let tests: Vec<&str> = tests.map(|(_, text)| text.as_str()).collect();
        Leaks::of(&Texts {
            base: &self.before,
            golden: &self.after,
            tests: &tests,
            base_has_word: &|word| self.base_has_word(word),
            contract: &self.task.public.contract,
            listed,
        })
    }

    /// Whether a word stands in a Python file of base.
    fn base_has_word(&self, word: &str) -> bool {
        self.base_words().all.contains(word)
    }

    fn base_words(&self) -> &BaseWords {
        self.base_words.get_or_init(|| {
            let mut found = BaseWords::default();
            let mut folders = vec![self.tree.clone()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                    let (path, kind) = (entry.path(), entry.file_type());
                    if kind.is_ok_and(|kind| kind.is_dir()) {
                        folders.push(path);
                    } else if path.extension().is_some_and(|end| end == "py")
                        && let Ok(text) = fs::read_to_string(&path)
                    {
                        found.all.extend(words(&text).map(str::to_owned));
                        found.attributes.extend(attribute_names(&text).map(str::to_owned));
                    }
                }
            }
            found
        })
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
