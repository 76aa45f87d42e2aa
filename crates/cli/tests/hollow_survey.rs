//! Hollow files and mutants of the latest merged pull requests of Megatron-LM and verl. Runs where `INFRADEV_MEGATRON` or
//! `INFRADEV_VERL` names a clone (`make hollow-survey`), since it needs upstream's history and minutes. Signatures are compared
//! by CPython's parser. Where `INFRADEV_SURVEY_PYTHON` names a Python that has torch, the hollow modules of the latest changes
//! are imported besides. docs/src/mutants.md has the counts.

#![allow(clippy::disallowed_macros, reason = "says what it counted")]

mod ground;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ground::{Ground, repository};
use infradev_git::{CommitId, Renames, Repo};
use infradev_model::{Mutant, Operator};
use infradev_patch::{Patch, looks_like_test};
use infradev_pycode::{Hollowed, MutationSource, ParseError, Variant, hollow, mutants};
use serde_json::{Value, json};

/// Changes whose trees lie on the disk at a time, while their modules are imported.
const AT_A_TIME: usize = 10;

const VARIANTS: [(&str, Variant); 2] = [("full", Variant::Full), ("keep-init", Variant::KeepInit)];

/// The Python files of a merged pull request that are no tests, before and after.
struct Change {
    subject: String,
    base_commit: CommitId,
    commit: CommitId,
    base: Vec<(String, String)>,
    golden: Vec<(String, String)>,
}

/// The latest `wanted` commits on the way of first parents whose subject ends in a number of a pull request, and that change
/// some Python source. Tests are left aside.
fn latest_changes(ground: &Ground, repo: &Repo, wanted: usize) -> Vec<Change> {
    let git_dir = repo.git_dir().to_str().unwrap();
    let log = ground
        .tool("git", &["--git-dir", git_dir, "log", "--first-parent", "--format=%H %s", "HEAD"])
        .exits(0)
        .out;
    let mut changes = Vec::new();
    for line in log.lines() {
        let (id, subject) = line.split_once(' ').unwrap();
        let number = subject.rsplit_once("(#").and_then(|(_, number)| number.strip_suffix(')'));
        if number.is_none_or(|number| number.parse::<u64>().is_err()) {
            continue;
        }
        changes.extend(Change::of(repo, id).filter(|change| !change.golden.is_empty()));
        if changes.len() == wanted {
            break;
        }
    }
    changes
}

impl Change {
    /// `None`, and a line that says so, where the diff does not parse.
    fn of(repo: &Repo, id: &str) -> Option<Change> {
        let commit = repo.resolve(id).unwrap();
        let subject = repo.info(&commit).unwrap().subject;
        let base_commit = repo.parent(&commit).unwrap();
        let diff = repo.diff(&base_commit, &commit, Renames::Off).unwrap();
        let Ok(patch) = Patch::parse(&diff) else {
            println!("{subject}: its diff does not parse; passed over");
            return None;
        };
        let is_source = |path: &&[u8]| path.ends_with(b".py") && !looks_like_test(path);
        let sources: Vec<&[u8]> = patch.paths().into_iter().filter(is_source).collect();
        let texts = |commit: &CommitId| -> Vec<(String, String)> {
            let text = |path: &&[u8]| {
                let path = String::from_utf8((*path).to_vec()).ok()?;
                let text = String::from_utf8(repo.show(commit, path.as_bytes()).ok()?).ok()?;
                Some((path, text))
            };
            sources.iter().filter_map(text).collect()
        };
        let (base, golden) = (texts(&base_commit), texts(&commit));
        Some(Change { subject, base_commit, commit, base, golden })
    }

    /// The mutants of each file; of one that does not parse, none.
    fn mutants(&self) -> Vec<Result<Vec<Mutant>, ParseError>> {
        let mut paths: Vec<&str> =
            self.base.iter().chain(&self.golden).map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        fn text<'a>(files: &'a [(String, String)], path: &str) -> Option<&'a str> {
            files.iter().find(|(other, _)| other == path).map(|(_, text)| text.as_str())
        }
        let sources = paths.into_iter().map(|path| MutationSource {
            path,
            base: text(&self.base, path),
            golden: text(&self.golden, path),
        });
        sources.map(|source| mutants(&source)).collect()
    }
}

#[derive(Default)]
struct Counts {
    hollow: usize,
    not_applicable: BTreeMap<String, usize>,
    functions: usize,
    kept: BTreeMap<String, usize>,
    unparsed: Vec<String>,
    files: usize,
    failures: Vec<String>,
}

impl Counts {
    fn add(&mut self, hollowed: &Hollowed) {
        let word = |reason: &infradev_pycode::Reason| {
            let words = reason.to_string();
            words.split(" from ").next().unwrap_or_default().to_owned()
        };
        self.functions += hollowed.hollowed.len();
        for (_, reason) in &hollowed.kept {
            *self.kept.entry(word(reason)).or_default() += 1;
        }
        self.unparsed.extend(hollowed.unparsed.iter().map(ToString::to_string));
        if hollowed.is_applicable() {
            self.hollow += 1;
            return;
        }
        let mut reasons: Vec<String> = hollowed.kept.iter().map(|(_, reason)| word(reason)).collect();
        reasons.sort();
        reasons.dedup();
        let why = match reasons.as_slice() {
            [] if hollowed.unparsed.is_empty() => "adds no function, changes bodies or constants".to_owned(),
            [] => "does not parse".to_owned(),
            reasons => format!("adds only functions that are {}", reasons.join(", ")),
        };
        *self.not_applicable.entry(why).or_default() += 1;
    }
}

/// Writes a file and returns where it is.
fn written(ground: &Ground, path: &str, text: &str) -> String {
    ground.write(path, text);
    ground.path().join(path).to_str().unwrap().to_owned()
}

/// A clone and its latest changes.
struct Surveyed {
    ground: Ground,
    repo: Repo,
    changes: Vec<Change>,
}

/// `None` where `variable` names no clone.
fn surveyed(variable: &str, wanted: usize) -> Option<Surveyed> {
    let clone = clone_named_by(variable)?;
    let ground = Ground::new();
    let repo = Repo::open(&clone).unwrap();
    let changes = latest_changes(&ground, &repo, wanted);
    assert_eq!(changes.len(), wanted, "{} has fewer such changes", clone.display());
    let (first, last) = (&changes[wanted - 1].commit, &changes[0].commit);
    println!("{variable}: {wanted} merged pull requests, from {first} to {last}");
    Some(Surveyed { ground, repo, changes })
}

/// Makes all changes hollow; what CPython's parser finds wrong with it.
fn compare_signatures(Surveyed { ground, changes, .. }: &Surveyed) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut index = String::new();
    for (variant_name, variant) in VARIANTS {
        let mut counts = Counts::default();
        for (at, change) in changes.iter().enumerate() {
            let hollowed = match hollow(&change.base, &change.golden, variant) {
                Ok(hollowed) => hollowed,
                Err(error) => {
                    counts.failures.push(format!("{}: {error}", change.subject));
                    continue;
                }
            };
            counts.add(&hollowed);
            for (file, ((path, golden), (_, text))) in change.golden.iter().zip(&hollowed.files).enumerate() {
                if golden == text {
                    continue;
                }
                counts.files += 1;
                let names: Vec<&str> =
                    hollowed.hollowed.iter().filter(|h| h.path == *path).map(|h| h.name.as_str()).collect();
                let folder = format!("{variant_name}/{at}/{file}");
                let one = json!({
                    "what": format!("{variant_name}, {} {path}", change.subject),
                    "golden": written(ground, &format!("{folder}/golden.py"), golden),
                    "hollow": written(ground, &format!("{folder}/hollow.py"), text),
                    "hollowed": names,
                });
                index.push_str(&format!("{one}\n"));
            }
        }
        println!(
            "  {variant_name}: {} hollow ({} files, {} functions)",
            counts.hollow, counts.files, counts.functions
        );
        counts.not_applicable.iter().for_each(|(why, n)| println!("    not applicable, {why}: {n}"));
        counts.kept.iter().for_each(|(why, n)| println!("    functions kept, {why}: {n}"));
        counts.unparsed.iter().for_each(|file| println!("    {file}"));
        breaches.extend(counts.failures);
    }
    // The check itself: that it sees a lost default, a lost decorator and a body that is left.
    let broken = [("def f(a=1): pass", "def f(a): pass"), ("@a\ndef f(): pass", "def f(): pass")];
    for (at, (golden, hollow)) in broken.into_iter().chain([("def f(): x", "def f(): y")]).enumerate() {
        let one = json!({
            "what": "broken",
            "golden": written(ground, &format!("broken/{at}/golden.py"), golden),
            "hollow": written(ground, &format!("broken/{at}/hollow.py"), hollow),
            "hollowed": [],
        });
        index.push_str(&format!("{one}\n"));
    }
    let index = written(ground, "index.jsonl", &index);
    let script = repository().join("crates/cli/tests/survey/signatures.py");
    let script = script.to_str().unwrap();
    let said = ground.tool_within(Duration::from_secs(1800), &python(), &[script, &index]).exits(0);
    let (seen, found): (Vec<&str>, Vec<&str>) =
        said.out.lines().partition(|line| line.starts_with("broken: "));
    assert_eq!(seen.len(), 3, "the check is blind: {seen:?}");
    breaches.extend(found.into_iter().map(str::to_owned));
    breaches
}

/// What compares and imports: `INFRADEV_SURVEY_PYTHON`, else the machine's own.
fn python() -> String {
    std::env::var("INFRADEV_SURVEY_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Counts the mutants of all changes.
fn mutate(changes: &[Change]) {
    let started = Instant::now();
    let mut by_operator: BTreeMap<_, usize> = BTreeMap::new();
    let (mut of_changes, mut unparsed) = (Vec::new(), 0);
    for change in changes {
        let mut count = 0;
        for file in change.mutants() {
            match file {
                Ok(found) => {
                    count += found.len();
                    found.iter().for_each(|mutant| *by_operator.entry(mutant.operator).or_default() += 1);
                }
                Err(_) => unparsed += 1,
            }
        }
        of_changes.push(count);
    }
    of_changes.sort_unstable();
    let total: usize = of_changes.iter().sum();
    let none = of_changes.iter().filter(|count| **count == 0).count();
    let at = |share: usize| of_changes[(of_changes.len() - 1) * share / 100];
    println!(
        "  {total} mutants in {:.0} s; of the changes {none} have none, half at most {}, 90 % at most {}, the largest {}; \
         files that do not parse: {unparsed}",
        started.elapsed().as_secs_f64(),
        at(50),
        at(90),
        at(100)
    );
    by_operator.iter().for_each(|(operator, count)| println!("    {operator}: {count}"));
}

/// Imports the modules of the latest hollow changes, ten or as many as `INFRADEV_SURVEY_IMPORTS` says, in base's, golden's and hollow trees; those that golden's tree imports and a hollow
/// one does not.
fn import(Surveyed { ground, repo, changes }: &Surveyed) -> Vec<String> {
    let is_hollow =
        |change: &&Change| hollow(&change.base, &change.golden, Variant::Full).unwrap().is_applicable();
    let most = std::env::var("INFRADEV_SURVEY_IMPORTS").ok().and_then(|most| most.parse().ok()).unwrap_or(10);
    let imported: Vec<&Change> = changes.iter().filter(is_hollow).take(most).collect();
    let mut counted = Imports::default();
    for some in imported.chunks(AT_A_TIME) {
        for answer in import_some(ground, repo, some) {
            counted.add(&answer);
        }
        std::fs::remove_dir_all(ground.path().join("trees")).unwrap();
    }
    println!(
        "  imports of {} changes: {} modules in golden, {} import in its tree, {} in base's; hollow trees fail to import {} of them",
        imported.len(),
        counted.modules,
        counted.importable,
        counted.by_base,
        counted.breaches.len()
    );
    counted.elsewhere.iter().for_each(|(why, count)| println!("    not in golden's either: {why}: {count}"));
    counted.breaches
}

/// How the modules of changes import.
#[derive(Default)]
struct Imports {
    /// Modules of golden's trees.
    modules: usize,
    /// Those that import there.
    importable: usize,
    /// Those that import in base's trees.
    by_base: usize,
    /// Why others do not import in golden's, counted.
    elsewhere: BTreeMap<String, usize>,
    /// Those that import in golden's tree and not in a hollow one.
    breaches: Vec<String>,
}

impl Imports {
    fn add(&mut self, answer: &Value) {
        let tree = |name: &str| answer["trees"][name].as_object().unwrap();
        self.by_base += tree("base").values().filter(|why| why.is_null()).count();
        for (module, why) in tree("golden") {
            self.modules += 1;
            if let Some(why) = why.as_str() {
                let why = why.split(" (").next().unwrap_or_default().to_owned();
                *self.elsewhere.entry(why).or_default() += 1;
                continue;
            }
            self.importable += 1;
            for (name, _) in VARIANTS {
                if let Some(why) = tree(name)[module].as_str() {
                    self.breaches
                        .push(format!("{name}, {} {module}: does not import: {why}", answer["what"]));
                }
            }
        }
    }
}

/// What the script says of each change.
fn import_some(ground: &Ground, repo: &Repo, changes: &[&Change]) -> Vec<Value> {
    let mut index = String::new();
    for (at, change) in changes.iter().enumerate() {
        let tree = |name: &str, commit: &CommitId| -> String {
            let folder = ground.path().join(format!("trees/{at}/{name}"));
            std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
            repo.materialise(commit, &folder).unwrap();
            folder.to_str().unwrap().to_owned()
        };
        let (base, golden) = (tree("base", &change.base_commit), tree("golden", &change.commit));
        let mut folders = serde_json::Map::new();
        for (name, variant) in VARIANTS {
            let folder = format!("trees/{at}/{name}");
            for (path, text) in &hollow(&change.base, &change.golden, variant).unwrap().files {
                ground.write(&format!("{folder}/{path}"), text);
            }
            folders.insert(name.to_owned(), ground.path().join(folder).to_str().unwrap().into());
        }
        let modules: Vec<&str> = change.golden.iter().map(|(path, _)| path.as_str()).collect();
        let one = json!({"what": change.subject, "base": base, "golden": golden, "hollow": folders, "modules": modules});
        index.push_str(&format!("{one}\n"));
    }
    let index = written(ground, "imports.jsonl", &index);
    let script = repository().join("crates/cli/tests/survey/imports.py");
    let said = ground
        .tool_within(Duration::from_secs(3600), &python(), &[script.to_str().unwrap(), &index])
        .exits(0);
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn clone_named_by(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty());
    if path.is_none() {
        println!("not run: {variable} names no clone");
    }
    path.map(PathBuf::from)
}

#[test]
fn every_hollow_file_of_200_changes_of_megatron_keeps_its_signatures() {
    let Some(surveyed) = surveyed("INFRADEV_MEGATRON", 200) else { return };
    let breaches = compare_signatures(&surveyed);
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn every_hollow_file_of_100_changes_of_verl_keeps_its_signatures() {
    let Some(surveyed) = surveyed("INFRADEV_VERL", 100) else { return };
    let breaches = compare_signatures(&surveyed);
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn hollow_modules_import_where_golden_does() {
    if std::env::var_os("INFRADEV_SURVEY_PYTHON").is_none() {
        println!("not run: INFRADEV_SURVEY_PYTHON names no Python that has torch");
        return;
    }
    for (variable, wanted) in [("INFRADEV_MEGATRON", 200), ("INFRADEV_VERL", 100)] {
        let Some(surveyed) = surveyed(variable, wanted) else { continue };
        let breaches = import(&surveyed);
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    }
}

#[test]
fn mutants_of_all_changes_are_counted() {
    for (variable, wanted) in [("INFRADEV_MEGATRON", 200), ("INFRADEV_VERL", 100)] {
        let Some(surveyed) = surveyed(variable, wanted) else { continue };
        mutate(&surveyed.changes);
    }
}

/// Golden's line of each hunk that is taken back, by file.
fn hunks_taken_back(repo: &Repo, id: &str) -> Vec<String> {
    let files = Change::of(repo, id).unwrap().mutants();
    let mutants = files.into_iter().flat_map(Result::unwrap);
    let hunks = mutants.filter(|mutant| mutant.operator == Operator::TakeBackHunk);
    hunks.map(|hunk| format!("{}:{}", hunk.file.rsplit('/').next().unwrap(), hunk.line)).collect()
}

/// What survives the official tests when a hunk alone is taken back, by hand told apart: what has behaviour, and what has not
/// (comments, docstrings, help, years, parentheses).
#[test]
fn of_4705_3715_and_5860_hunks_that_behave_are_taken_back_and_none_that_do_not() {
    let Some(clone) = clone_named_by("INFRADEV_MEGATRON") else { return };
    let repo = Repo::open(&clone).unwrap();
    let changes: [(&str, &[&str], &[&str]); 3] = [
        (
            "27e312ca10a2dfdadabfdee4fe39a2172a6656d4",
            &[
                "distrib_optimizer.py:902",
                "distrib_optimizer.py:904",
                "distrib_optimizer.py:906",
                "training.py:990",
            ],
            &["distrib_optimizer.py:892", "distrib_optimizer.py:900", "optimizer.py:590"],
        ),
        (
            "f58a3281fa80ca44efcd084f96880e55042be59f",
            &["__init__.py:210", "__init__.py:222"],
            &["__init__.py:135", "arguments.py:2233"],
        ),
        (
            "3fe15193cf95c1c552b6a288fa0cb07c6b5aca24",
            &["dynamic_context.py:642", "dynamic_context.py:3329"],
            &[
                "dynamic_context.py:1",
                "dynamic_context.py:478",
                "dynamic_context.py:3073",
                "kv_block_allocator.py:1",
                "dynamic_engine.py:1",
                "dynamic_engine.py:1959",
                "dynamic_engine.py:2039",
            ],
        ),
    ];
    for (id, behave, idle) in changes {
        let found = hunks_taken_back(&repo, id);
        println!("{id}: {found:?}");
        let there = |hunk: &&str| found.iter().any(|other| other == hunk);
        assert_eq!(
            behave.iter().copied().filter(|h| !there(h)).collect::<Vec<_>>(),
            [""; 0],
            "missing of {id}"
        );
        assert_eq!(
            idle.iter().copied().filter(there).collect::<Vec<_>>(),
            [""; 0],
            "without behaviour, of {id}"
        );
    }
}
