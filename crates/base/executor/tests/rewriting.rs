//! Rewrites of the core tasks' golden patches: how many there are, and that each is a submission.
//!
//! `INFRADEV_REWRITES=DIR` writes them to DIR, NAME/TASK.patch each, for `infradev grade --patches DIR --require resolved`.

use std::collections::BTreeMap;
use std::path::Path;

use infradev_executor::GoldenChange;
use infradev_model::BaseSource;
use infradev_patch::{Patch, apply};
use infradev_store::{NoHistory, Sharing, Trees, load_pack};

#[test]
fn the_core_tasks_goldens_are_rewritten_in_every_way_that_they_allow() {
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packs/core");
    let store = tempfile::tempdir().expect("a folder");
    let trees = Trees::new(store.path());
    let mut told = String::new();
    for loaded in load_pack(&pack, &NoHistory).expect("the core pack").tasks {
        let task = loaded.task;
        let BaseSource::Folder(tree) = &task.public.base else { panic!("the core pack bundles its tree") };
        let base = trees.of_folder(tree).expect("base's tree");
        let change = GoldenChange::on(&task, tree).expect("golden applies");
        let all = change.rewrites().expect("rewrites");
        assert!(all.unparsed.is_empty());
        let golden: BTreeMap<String, String> = change.after().expect("golden's files").into_iter().collect();
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (number, rewritten) in all.rewritten.iter().enumerate() {
            kinds.entry(rewritten.kind.to_string()).or_default().push(rewritten.function.clone());
            let bytes = change.rewritten(rewritten).expect("a submission");
            let patch = Patch::parse(&bytes).expect("a patch");
            let folder = tempfile::tempdir().expect("a folder");
            let whole = folder.path().join("tree");
            trees.workspace(&base, &whole, Sharing::Private).expect("base's tree");
            apply(&patch, &whole).expect("it applies to base");
            for (path, text) in &golden {
                let same = std::fs::read_to_string(whole.join(path)).expect("golden's file") == *text;
                assert_eq!(same, *path != rewritten.file, "{} in {path}", rewritten.name());
            }
            if let Some(folder) = std::env::var_os("INFRADEV_REWRITES") {
                let folder = Path::new(&folder).join(format!("{number:03}-{}", rewritten.kind));
                std::fs::create_dir_all(&folder).expect("a folder");
                std::fs::write(folder.join(format!("{}.patch", task.id())), &bytes).expect("a patch");
            }
        }
        told += &format!("{}: {}\n", task.id(), all.rewritten.len());
        for (kind, functions) in kinds {
            told += &format!("  {kind}: {}: {}\n", functions.len(), functions.join(", "));
        }
    }
    insta::assert_snapshot!(told);
}
