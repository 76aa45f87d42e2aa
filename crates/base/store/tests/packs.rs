//! Pack folders: what is read, and what a person reads when one is broken.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use infradev_model::{BaseSource, Class, Classified, TaskSpec};
use infradev_store::{History, LoadedPack, NoHistory, Split, StoreError, load_pack};

const PACK: &str = r#"schema = 1
name = "core"
version = "0.1.0"
license = "Apache-2.0"
[source]
tree = "repo"
[environments.cpu]
python = "3.11"
lock = "envs/cpu.lock"
framework = ["torch"]
"#;

const TASK: &str = r#"schema = 1
id = "dispatch"
title = "Dispatch tokens to experts"
area = "training"
kind = "feature"
environment = "cpu"
worlds = [2, 4]
[tests]
official = ["tests/test_dispatch.py"]
"#;

const MUTANT: &str =
    "schema = 1\npromise = \"a rank receives only its own tokens\"\npatch = \"everyone.patch\"\n";

const LISTED: &str = r#"schema = 1
[[mutant]]
file = "stack/moe.py"
function = ""
operator = "swap-constant"
was = "X = 1"
becomes = "X = 2"
why = "nothing reads it"
"#;

/// A small whole pack in a folder of its own; its root.
fn pack() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("core");
    let files: [(&str, &[u8]); 13] = [
        ("pack.toml", PACK.as_bytes()),
        ("envs/cpu.lock", b"six==1.17.0 --hash=sha256:00\n"),
        ("repo/stack/moe.py", b"X = 1\n"),
        ("tasks/dispatch/task.toml", TASK.as_bytes()),
        ("tasks/dispatch/spec.md", b"# Dispatch\n"),
        ("tasks/dispatch/contract.toml", b"schema = 1\n[[name]]\nname = \"stack.moe.D\"\nkind = \"class\"\n"),
        ("tasks/dispatch/golden.patch", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\xff\xfe\n+\x80\n"),
        ("tasks/dispatch/official.patch", b"--- /dev/null\n+++ b/tests/test_dispatch.py\n"),
        ("tasks/dispatch/probes/judge_dispatch.py", b"pass\n"),
        ("tasks/dispatch/probes/observe_dispatch.py", b"pass\n"),
        ("tasks/dispatch/probes/__pycache__/x.pyc", b"\0"),
        ("tasks/dispatch/adversarial/everyone.toml", MUTANT.as_bytes()),
        ("tasks/dispatch/adversarial/everyone.patch", b"diff\n"),
    ];
    for (path, bytes) in files {
        write(&root.join(path), bytes);
    }
    (folder, root)
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn load(root: &Path) -> Result<LoadedPack, StoreError> {
    load_pack(root, &NoHistory)
}

#[test]
fn a_pack_and_its_tasks_are_read_whole() {
    let (_folder, root) = pack();
    let loaded = load(&root).unwrap();
    assert_eq!((loaded.pack.name.as_str(), loaded.tasks.len()), ("core", 1));
    let task = &loaded.tasks[0].task;
    assert_eq!(task.id(), "dispatch");
    assert!(task.golden.contains(&0xff), "a patch is bytes");
    assert_eq!(task.probes.keys().collect::<Vec<_>>(), ["judge_dispatch.py", "observe_dispatch.py"]);
    assert_eq!(task.adversarial[0].name, "everyone");
    assert_eq!(task.adversarial[0].patch.as_deref(), Some(&b"diff\n"[..]));
    assert_eq!(task.public.contract.names[0].name, "stack.moe.D");
    assert_eq!(task.public.base, BaseSource::Folder(loaded.tree.clone().unwrap()));
    assert!(task.lock.as_ref().unwrap().starts_with(b"six"));
    assert!(task.folder.is_absolute());
}

#[test]
fn mutants_that_a_task_lists_are_read_and_a_wrong_key_refused() {
    let (_folder, root) = pack();
    assert!(load(&root).unwrap().tasks[0].task.equivalent.is_empty());
    let path = root.join("tasks/dispatch/equivalent.toml");
    write(&path, LISTED.as_bytes());
    let task = load(&root).unwrap().tasks.remove(0).task;
    assert_eq!(task.equivalent[0].why, "nothing reads it");
    assert_eq!(task.equivalent[0].line, Some(2));
    write(&path, LISTED.replace("becomes", "become").as_bytes());
    let error = load(&root).unwrap_err();
    assert_eq!(error.class(), Class::BadInput);
    assert!(error.to_string().contains("equivalent.toml:7: key `mutant[0].become`"), "{error}");
    assert_eq!(error.hint().unwrap(), "did you mean `becomes`?");
}

#[test]
fn the_path_of_a_task_selects_that_task_alone() {
    let (_folder, root) = pack();
    let second = root.join("tasks/second");
    for file in ["spec.md", "contract.toml", "golden.patch", "official.patch"] {
        write(&second.join(file), &fs::read(root.join("tasks/dispatch").join(file)).unwrap());
    }
    write(&second.join("task.toml"), TASK.replace("\"dispatch\"", "\"second\"").as_bytes());
    let ids =
        |path: &Path| load(path).unwrap().tasks.iter().map(|t| t.task.id().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(&root), ["dispatch", "second"]);
    assert_eq!(ids(&second), ["second"]);
    assert!(load(&second).unwrap().tasks[0].task.probes.is_empty());
}

#[test]
fn the_digest_of_a_task_follows_every_file_but_what_is_said_of_it() {
    let (_folder, root) = pack();
    let digest = || load(&root).unwrap().tasks.remove(0).digest;
    let first = digest();
    write(&root.join("tasks/dispatch/acceptance.json"), b"{}");
    write(&root.join("tasks/dispatch/probes/__pycache__/y.pyc"), b"1");
    write(&root.join("tasks/dispatch/equivalent.toml"), LISTED.as_bytes());
    assert_eq!(digest(), first);
    let mut seen = vec![first];
    for file in [
        "tasks/dispatch/spec.md",
        "tasks/dispatch/golden.patch",
        "envs/cpu.lock",
        "tasks/dispatch/adversarial/everyone.patch",
    ] {
        let mut bytes = fs::read(root.join(file)).unwrap();
        bytes.push(b'\n');
        write(&root.join(file), &bytes);
        let now = digest();
        assert!(!seen.contains(&now), "{file}");
        seen.push(now);
    }
}

#[test]
fn the_digest_of_the_suites_follows_what_decides_a_trial_and_nothing_else() {
    let (_folder, root) = pack();
    let edited = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(from), "{file}");
        write(&root.join(file), text.replace(from, to).as_bytes());
        let digest = load(&root).unwrap().tasks[0].task.suites_digest();
        write(&root.join(file), text.as_bytes());
        digest
    };
    let as_it_is = edited("pack.toml", "core", "core");
    write(&root.join("tasks/dispatch/equivalent.toml"), LISTED.as_bytes());
    assert_eq!(
        edited("pack.toml", "core", "core"),
        as_it_is,
        "what is listed as equivalent is tried like the rest"
    );
    for (file, from, to) in [
        ("pack.toml", "[\"torch\"]", "[\"torch\", \"numpy\"]"),
        ("tasks/dispatch/task.toml", "[tests]", "[timeouts]\ncase = 3.0\n[tests]"),
        ("tasks/dispatch/probes/judge_dispatch.py", "pass", "raise"),
    ] {
        assert_ne!(edited(file, from, to), as_it_is, "{file}");
    }
    for (file, from, to) in [
        ("tasks/dispatch/spec.md", "Dispatch", "Route"),
        ("tasks/dispatch/task.toml", "Dispatch tokens", "Route tokens"),
        ("pack.toml", "0.1.0", "0.2.0"),
    ] {
        assert_eq!(edited(file, from, to), as_it_is, "{file}");
    }
}

#[test]
fn the_change_of_a_task_over_a_repository_is_split_by_the_history_given() {
    struct Known;
    impl History for Known {
        fn split(&self, base: &BaseSource, _: &TaskSpec) -> Result<Split, Box<dyn Classified>> {
            let BaseSource::Commit { repository, base, head } = base else { panic!("a commit") };
            Ok(Split {
                golden: format!("{repository} {base} {head}").into_bytes(),
                official: b"tests".to_vec(),
            })
        }
    }
    let (_folder, root) = pack();
    let over_git = |git: &str| {
        write(
            &root.join("pack.toml"),
            PACK.replace("tree = \"repo\"", &format!("git = \"{git}\"")).as_bytes(),
        );
        write(
            &root.join("tasks/dispatch/task.toml"),
            format!("{TASK}[source]\nbase = \"aa\"\nhead = \"bb\"\n").as_bytes(),
        );
        let _ = fs::remove_file(root.join("tasks/dispatch/golden.patch"));
        let _ = fs::remove_file(root.join("tasks/dispatch/official.patch"));
        String::from_utf8(load_pack(&root, &Known).unwrap().tasks.remove(0).task.golden).unwrap()
    };
    assert_eq!(over_git("https://example.org/x.git"), "https://example.org/x.git aa bb");
    assert_eq!(over_git("git@example.org:x.git"), "git@example.org:x.git aa bb");
    let absolute = root.canonicalize().unwrap();
    assert_eq!(over_git("../clone"), format!("{}/../clone aa bb", absolute.display()));
    let error = load(&root).unwrap_err();
    assert_eq!(error.class(), Class::BadInput);
    assert!(error.to_string().contains("commits are not read here"), "{error}");
}

#[test]
fn each_broken_pack_is_refused_by_file_line_and_key() {
    type Break = fn(&Path);
    fn edit(path: &Path, from: &str, to: &str) {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
    }
    fn gone(path: &Path) {
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    let table: [(&str, Break); 41] = [
        ("no pack.toml", |root| gone(&root.join("pack.toml"))),
        ("a key of pack.toml is misspelt", |root| edit(&root.join("pack.toml"), "license", "licence")),
        ("a wrong type", |root| edit(&root.join("pack.toml"), "\"0.1.0\"", "0.1")),
        ("a newer schema", |root| edit(&root.join("pack.toml"), "schema = 1", "schema = 2")),
        ("pack.toml is no TOML", |root| edit(&root.join("pack.toml"), "[source]", "[source")),
        ("pack.toml is not UTF-8", |root| write(&root.join("pack.toml"), b"schema = 1\nname = \"\xff\"\n")),
        ("no base tree", |root| gone(&root.join("repo"))),
        ("a base tree outside", |root| edit(&root.join("pack.toml"), "\"repo\"", "\"../repo\"")),
        ("a base tree that is a link to everything", |root| {
            gone(&root.join("repo"));
            std::os::unix::fs::symlink("/", root.join("repo")).unwrap();
        }),
        ("a base tree that is the pack", |root| edit(&root.join("pack.toml"), "\"repo\"", "\".\"")),
        ("a Python that is none", |root| edit(&root.join("pack.toml"), "\"3.11\"", "\"three\"")),
        ("a key twice", |root| {
            edit(&root.join("pack.toml"), "[source]", "name = \"other\"\n[source]");
        }),
        ("a key of a task twice", |root| {
            edit(&root.join("tasks/dispatch/task.toml"), "[tests]", "[tests]\nroots = []\nroots = []")
        }),
        ("a file of the kit's", |root| {
            let text = "[tests.files]\n\"/infradev/python/x\" = \"\"\n\n[tests]";
            edit(&root.join("tasks/dispatch/task.toml"), "[tests]", text)
        }),
        ("a folder for equivalent.toml", |root| {
            fs::create_dir(root.join("tasks/dispatch/equivalent.toml")).unwrap()
        }),
        ("a link that leads nowhere for spec.md", |root| {
            gone(&root.join("tasks/dispatch/spec.md"));
            std::os::unix::fs::symlink("nowhere", root.join("tasks/dispatch/spec.md")).unwrap();
        }),
        ("a file for the folder of probes", |root| {
            gone(&root.join("tasks/dispatch/probes"));
            write(&root.join("tasks/dispatch/probes"), b"");
        }),
        ("no lock", |root| gone(&root.join("envs/cpu.lock"))),
        ("no tasks", |root| gone(&root.join("tasks"))),
        ("no task", |root| gone(&root.join("tasks/dispatch"))),
        ("a folder without task.toml", |root| fs::create_dir(root.join("tasks/empty")).unwrap()),
        ("an id that is not the folder's", |root| {
            edit(&root.join("tasks/dispatch/task.toml"), "\"dispatch\"", "\"dispach\"")
        }),
        ("one id twice", |root| write(&root.join("tasks/twice/task.toml"), TASK.as_bytes())),
        ("a key of task.toml is misspelt", |root| {
            edit(&root.join("tasks/dispatch/task.toml"), "worlds", "world")
        }),
        ("an unknown area", |root| edit(&root.join("tasks/dispatch/task.toml"), "training", "trainin")),
        ("an unknown environment", |root| edit(&root.join("tasks/dispatch/task.toml"), "\"cpu\"", "\"gpu\"")),
        ("no world", |root| edit(&root.join("tasks/dispatch/task.toml"), "[2, 4]", "[]")),
        ("commits in a bundled pack", |root| {
            edit(
                &root.join("tasks/dispatch/task.toml"),
                "[tests]",
                "[source]\nbase = \"a\"\nhead = \"b\"\n[tests]",
            )
        }),
        ("no commits in a git pack", |root| {
            edit(&root.join("pack.toml"), "tree = \"repo\"", "git = \"https://example.org/x\"")
        }),
        ("no spec", |root| gone(&root.join("tasks/dispatch/spec.md"))),
        ("a spec that is not UTF-8", |root| write(&root.join("tasks/dispatch/spec.md"), b"a\nb\n\xff")),
        ("an empty spec", |root| write(&root.join("tasks/dispatch/spec.md"), b"\n")),
        ("no contract", |root| gone(&root.join("tasks/dispatch/contract.toml"))),
        ("a contract's kind", |root| {
            edit(&root.join("tasks/dispatch/contract.toml"), "\"class\"", "\"klass\"")
        }),
        ("no golden patch", |root| gone(&root.join("tasks/dispatch/golden.patch"))),
        ("an empty official patch", |root| write(&root.join("tasks/dispatch/official.patch"), b"")),
        ("a stray probe file", |root| write(&root.join("tasks/dispatch/probes/test_x.py"), b"")),
        ("observers alone", |root| gone(&root.join("tasks/dispatch/probes/judge_dispatch.py"))),
        ("no adversarial patch beside its toml", |root| {
            gone(&root.join("tasks/dispatch/adversarial/everyone.patch"))
        }),
        ("an adversarial patch without its toml", |root| {
            gone(&root.join("tasks/dispatch/adversarial/everyone.toml"))
        }),
        ("an adversarial toml without a promise", |root| {
            edit(
                &root.join("tasks/dispatch/adversarial/everyone.toml"),
                "a rank receives only its own tokens",
                " ",
            )
        }),
    ];
    let mut said = String::new();
    for (what, break_it) in table {
        let (folder, root) = pack();
        break_it(&root);
        let error = load(&root).expect_err(what);
        assert_eq!(error.class(), Class::BadInput, "{what}");
        let hint = error.hint().map(|hint| format!("\n    hint: {hint}")).unwrap_or_default();
        let text = format!("{error}{hint}").replace(&format!("{}/", folder.path().display()), "");
        said.push_str(&format!("{what}\n    {text}\n"));
    }
    let (folder, root) = pack();
    for path in [root.join("nowhere"), root.join("tasks"), root.join("envs/cpu.lock")] {
        let error = load(&path).unwrap_err().to_string();
        said.push_str(&format!("{}\n", error.replace(&format!("{}/", folder.path().display()), "")));
    }
    insta::assert_snapshot!(said);
}

/// Stands for repositories that are not here.
struct Elsewhere;

impl History for Elsewhere {
    fn split(&self, _: &BaseSource, _: &TaskSpec) -> Result<Split, Box<dyn Classified>> {
        Ok(Split { golden: b"not here".to_vec(), official: b"not here".to_vec() })
    }
}

#[test]
fn the_packs_of_this_repository_are_whole() {
    let packs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packs");
    let bundled: Vec<PathBuf> = fs::read_dir(packs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(bundled.iter().any(|pack| pack.ends_with("core")));
    for pack in bundled.iter().filter(|pack| pack.is_dir()) {
        if let Err(error) = load_pack(pack, &Elsewhere) {
            panic!("{error}");
        }
    }
}
