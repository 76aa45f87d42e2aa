//! Mutants of the golden patches of the core pack: how many of each kind, and that each keeps what is promised of all.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use infradev_model::Mutant;
use infradev_patch::{Patch, apply};
use infradev_pycode::{MutationSource, ast_equal, mutants};

struct Changed {
    path: String,
    base: Option<String>,
    golden: Option<String>,
}

/// The Python files that a task's golden patch touches, before and after.
fn changed_by(task: &str) -> Vec<Changed> {
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packs/core");
    let patch = fs::read(pack.join("tasks").join(task).join("golden.patch")).unwrap();
    let patch = Patch::parse(&patch).unwrap();
    let paths: Vec<String> =
        patch.paths().iter().map(|path| String::from_utf8(path.to_vec()).unwrap()).collect();
    let tree = tempfile::tempdir().unwrap();
    let read = |root: PathBuf, path: &str| fs::read_to_string(root.join(path)).ok();
    for path in &paths {
        if let Some(text) = read(pack.join("repo"), path) {
            let there = tree.path().join(path);
            fs::create_dir_all(there.parent().unwrap()).unwrap();
            fs::write(there, text).unwrap();
        }
    }
    apply(&patch, tree.path()).unwrap();
    let python = paths.into_iter().filter(|path| path.ends_with(".py"));
    python
        .map(|path| Changed {
            base: read(pack.join("repo"), &path),
            golden: read(tree.path().to_path_buf(), &path),
            path,
        })
        .collect()
}

fn mutants_of(file: &Changed) -> Vec<Mutant> {
    let source =
        MutationSource { path: &file.path, base: file.base.as_deref(), golden: file.golden.as_deref() };
    mutants(&source).unwrap()
}

const TASKS: [&str; 3] = ["expert-dispatch", "prefix-cache", "weight-sync"];

#[test]
fn each_core_task_has_mutants_of_many_kinds() {
    let mut table = String::new();
    for task in TASKS {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for file in changed_by(task) {
            for mutant in mutants_of(&file) {
                *counts.entry(mutant.operator).or_default() += 1;
            }
        }
        writeln!(table, "{task}: {}", counts.values().sum::<usize>()).unwrap();
        for (operator, count) in counts {
            writeln!(table, "  {operator} {count}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn every_mutant_of_the_core_tasks_is_another_program_and_no_two_are_one() {
    for task in TASKS {
        for file in changed_by(task) {
            let golden = file.golden.as_deref().unwrap();
            let found = mutants_of(&file);
            let mut digests = HashSet::new();
            for mutant in &found {
                assert!(digests.insert(mutant.digest.clone()), "{mutant:?} is there twice");
                if let Some(text) = mutant.text(golden) {
                    assert!(!ast_equal(golden, &text).unwrap(), "{mutant:?} is golden");
                }
                assert_eq!(mutant.digest, Mutant::digest_of(&file.path, mutant.text(golden).as_deref()));
            }
            assert_eq!(found, mutants_of(&file), "the order differs from one call to the next");
        }
    }
}
