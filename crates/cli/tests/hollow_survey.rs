//! Hollow files and mutants of the latest merged pull requests of Megatron-LM and verl. Runs where `INFRADEV_MEGATRON` or
//! `INFRADEV_VERL` names a clone (`make hollow-survey`), since it needs upstream's history and minutes. Signatures are compared
//! by CPython's parser. Where `INFRADEV_SURVEY_PYTHON` names a Python that has torch, the hollow modules of the latest changes
//! are imported besides. docs/src/mutants.md has the counts.

#![allow(clippy::disallowed_macros, reason = "says what it counted")]

mod ground;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ground::{Ground, repository};
use infradev_git::{CommitId, Renames, Repo};
use infradev_patch::{Patch, looks_like_test};
use infradev_pycode::{Hollowed, MutationSource, Variant, hollow, mutants};
use serde_json::{Value, json};

/// Changes whose modules are imported, of each repository.
const IMPORTED: usize = 10;

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
        let commit = repo.resolve(id).unwrap();
        let base_commit = repo.parent(&commit).unwrap();
        let diff = repo.diff(&base_commit, &commit, Renames::Off).unwrap();
        let Ok(patch) = Patch::parse(&diff) else {
            println!("{subject}: its diff does not parse; passed over");
            continue;
        };
        let sources: Vec<&[u8]> = patch
            .paths()
            .into_iter()
            .filter(|path| path.ends_with(b".py") && !looks_like_test(path))
            .collect();
        let texts = |commit: &CommitId| -> Vec<(String, String)> {
            let text = |path: &&[u8]| {
                let path = String::from_utf8((*path).to_vec()).ok()?;
                let text = String::from_utf8(repo.show(commit, path.as_bytes()).ok()?).ok()?;
                Some((path, text))
            };
            sources.iter().filter_map(text).collect()
        };
        let (base, golden) = (texts(&base_commit), texts(&commit));
        if !golden.is_empty() {
            changes.push(Change { subject: subject.to_owned(), base_commit, commit, base, golden });
        }
        if changes.len() == wanted {
            break;
        }
    }
    changes
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
            [] if hollowed.unparsed.is_empty() => "adds no function".to_owned(),
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

/// Surveys one repository; the breaches that were found.
fn survey(name: &str, clone: &Path, wanted: usize) -> Vec<String> {
    let ground = Ground::new();
    let repo = Repo::open(clone).unwrap();
    let changes = latest_changes(&ground, &repo, wanted);
    assert_eq!(changes.len(), wanted, "{name} has fewer such changes");
    println!(
        "{name}: {wanted} merged pull requests, {} back to {}",
        changes[0].commit,
        changes[wanted - 1].commit
    );

    let mut breaches = Vec::new();
    let mut index = String::new();
    let mut to_import = Vec::new();
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
                    "golden": written(&ground, &format!("{folder}/golden.py"), golden),
                    "hollow": written(&ground, &format!("{folder}/hollow.py"), text),
                    "hollowed": names,
                });
                index.push_str(&format!("{one}\n"));
            }
            if variant == Variant::Full && hollowed.is_applicable() && to_import.len() < IMPORTED {
                to_import.push(at);
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
    let index = written(&ground, "index.jsonl", &index);
    let script = repository().join("crates/cli/tests/survey/signatures.py");
    let python = std::env::var("INFRADEV_SURVEY_PYTHON").unwrap_or_else(|_| "python3".into());
    let patience = Duration::from_secs(1800);
    let said = ground.tool_within(patience, &python, &[script.to_str().unwrap(), &index]).exits(0);
    breaches.extend(said.out.lines().map(str::to_owned));

    mutate(&changes);
    if std::env::var_os("INFRADEV_SURVEY_PYTHON").is_some() {
        breaches.extend(import(&ground, &repo, &changes, &to_import, &python));
    }
    breaches
}

/// Counts the mutants of all changes.
fn mutate(changes: &[Change]) {
    let started = Instant::now();
    let mut by_operator: BTreeMap<_, usize> = BTreeMap::new();
    let (mut of_changes, mut unparsed) = (Vec::new(), 0);
    for change in changes {
        let mut paths: Vec<&str> =
            change.base.iter().chain(&change.golden).map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let text = |files: &'_ [(String, String)], path: &str| {
            files.iter().find(|(other, _)| other == path).map(|(_, text)| text.clone())
        };
        let mut count = 0;
        for path in paths {
            let (base, golden) = (text(&change.base, path), text(&change.golden, path));
            match mutants(&MutationSource { path, base: base.as_deref(), golden: golden.as_deref() }) {
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
    let (none, median) =
        (of_changes.iter().filter(|count| **count == 0).count(), of_changes[of_changes.len() / 2]);
    let took = started.elapsed().as_secs_f64();
    println!(
        "  {total} mutants in {took:.0} s; a change has {median} in the median, {none} have none; unparsed files: {unparsed}"
    );
    by_operator.iter().for_each(|(operator, count)| println!("    {operator}: {count}"));
}

/// Imports the modules of some changes in base's, golden's and hollow trees; those that golden's tree imports and a hollow one
/// does not.
fn import(ground: &Ground, repo: &Repo, changes: &[Change], which: &[usize], python: &str) -> Vec<String> {
    let mut index = String::new();
    for &at in which {
        let change = &changes[at];
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
    let said =
        ground.tool_within(Duration::from_secs(3600), python, &[script.to_str().unwrap(), &index]).exits(0);
    let mut breaches = Vec::new();
    let (mut modules, mut importable, mut by_base, mut elsewhere) =
        (0, 0, 0, BTreeMap::<String, usize>::new());
    for line in said.out.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        let tree = |name: &str| answer["trees"][name].as_object().unwrap();
        by_base += tree("base").values().filter(|why| why.is_null()).count();
        for (module, why) in tree("golden") {
            modules += 1;
            if let Some(why) = why.as_str() {
                let why = why.split(" (").next().unwrap_or_default().to_owned();
                *elsewhere.entry(why).or_default() += 1;
                continue;
            }
            importable += 1;
            for (name, _) in VARIANTS {
                if let Some(why) = tree(name)[module].as_str() {
                    breaches.push(format!("{name}, {} {module}: does not import: {why}", answer["what"]));
                }
            }
        }
    }
    println!(
        "  imports of {} changes: {modules} modules in golden, {importable} import in its tree, {by_base} in base's; \
         hollow trees fail to import {} of them",
        which.len(),
        breaches.len()
    );
    elsewhere.iter().for_each(|(why, count)| println!("    not in golden's either: {why}: {count}"));
    breaches
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
    let Some(clone) = clone_named_by("INFRADEV_MEGATRON") else { return };
    let breaches = survey("Megatron-LM", &clone, 200);
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn every_hollow_file_of_100_changes_of_verl_keeps_its_signatures() {
    let Some(clone) = clone_named_by("INFRADEV_VERL") else { return };
    let breaches = survey("verl", &clone, 100);
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}
