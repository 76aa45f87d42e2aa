//! `infradev new` on small histories.

mod ground;

use ground::{Ground, MODEL};

/// A repository whose newest commit is pull request 7: it adds `triple` and a test of it.
fn with_history() -> Ground {
    let ground = Ground::new();
    ground.git(&["init", "-q", "-b", "main", "up"]);
    let commit = |message: &str| {
        ground.git(&["-C", "up", "add", "-A"]);
        ground.git(&["-C", "up", "commit", "-q", "-m", message]);
    };
    ground.write("up/toy/__init__.py", "");
    ground.write("up/toy/model.py", MODEL);
    ground.write(
        "up/tests/test_model.py",
        "def test_double():\n    from toy.model import double\n    assert double(2) == 4\n",
    );
    commit("Begin");
    ground.write("up/toy/model.py", &format!("{MODEL}\n\ndef triple(x):\n    return 3 * x\n"));
    ground.write(
        "up/tests/test_triple.py",
        "def test_triple():\n    from toy.model import triple\n    assert triple(2) == 6\n",
    );
    commit("[Core] Add triple \"quoted\" (#7)\n\nTwo are not enough.");
    ground
}

const LOCKED: [&str; 4] = ["--lock", "pack/envs/cpu.lock", "--python", "3.11"];

fn new(ground: &Ground, more: &[&str]) -> ground::Said {
    let mut args = vec!["new", "--repo", "up", "--pack", "mine"];
    args.extend(more);
    ground.infradev(&args)
}

#[test]
fn a_task_of_a_pull_request_is_graded_at_once() {
    let ground = with_history();
    new(&ground, &[&["--pr", "7"], &LOCKED[..]].concat()).exits(0);
    let task = ground.read("mine/tasks/add-triple-quoted/task.toml");
    for text in [
        "official = [\"tests/test_triple.py\"]",
        "roots = [\"tests\"]",
        "worlds = [1]",
        "environment = \"cpu\"",
    ] {
        assert!(task.contains(text), "{task}");
    }
    assert!(ground.read("mine/tasks/add-triple-quoted/spec.md").contains("Two are not enough."));
    let base = ground.git(&["-C", "up", "rev-parse", "HEAD~1"]);
    assert!(task.contains(base.trim()), "{task}");
    assert!(ground.read("mine/pack.toml").contains("\ncanary = \""), "a new pack has a canary");
    let folder = "mine/tasks/add-triple-quoted";
    let description = ground.read(&format!("{folder}/description.md"));
    assert_eq!(description, "# [Core] Add triple \"quoted\" (#7)\n\nTwo are not enough.\n");
    let prompt = ground.infradev(&["prompt", folder, "--arm", "pr-description"]).exits(0).out;
    assert!(prompt.starts_with(&description), "{prompt}");
    std::fs::remove_file(ground.path().join(folder).join("description.md")).unwrap();
    let from_commit = ground.infradev(&["prompt", folder, "--arm", "pr-description"]).exits(0).out;
    assert_eq!(from_commit, prompt, "the commit's message stands in");
    let graded = ground.infradev(&["grade", "mine", "--patches", "golden", "--json"]).exits(0).json();
    assert_eq!(graded["submissions"][0]["verdict"], "resolved");
    assert_eq!(graded["submissions"][0]["fail_to_pass"]["of"], 1);
}

#[test]
fn a_task_that_is_there_is_replaced_only_by_force() {
    let ground = with_history();
    new(&ground, &[&["--commit", "HEAD", "--id", "t"], &LOCKED[..]].concat()).exits(0);
    ground.write("mine/tasks/t/spec.md", "written by hand");
    let said = new(&ground, &["--commit", "HEAD", "--id", "t"]).exits(2);
    assert!(said.err.contains("--force"), "{}", said.err);
    assert_eq!(ground.read("mine/tasks/t/spec.md"), "written by hand");
    new(&ground, &["--commit", "HEAD", "--id", "t", "--force"]).exits(0);
    assert!(ground.read("mine/tasks/t/spec.md").contains("Two are not enough."));
}

#[test]
fn what_cannot_be_a_task_is_refused_and_leaves_nothing() {
    let ground = with_history();
    ground.write("up/toy/model.py", "");
    ground.git(&["-C", "up", "commit", "-q", "-am", "Source alone"]);
    ground.write("up/tests/test_more.py", "");
    ground.git(&["-C", "up", "add", "-A"]);
    ground.git(&["-C", "up", "commit", "-q", "-m", "Tests alone"]);
    let up = format!("file://{}", ground.path().join("up").display());
    ground.git(&["clone", "-q", "--depth", "1", &up, "shallow"]);
    let mut table = String::new();
    for (what, args) in [
        ("no such commit", vec!["--commit", "0123456"]),
        ("no such pull request", vec!["--pr", "8"]),
        ("a first commit", vec!["--commit", "HEAD~3"]),
        ("no test", vec!["--commit", "HEAD~1"]),
        ("no source", vec!["--commit", "HEAD"]),
        ("neither commit nor number", vec![]),
        ("no environment for a new pack", vec!["--commit", "HEAD~2"]),
        ("no such interpreter", vec!["--commit", "HEAD~2", "--interpreter", "nowhere/python"]),
        ("no name", vec!["--commit", "HEAD~2", "--id", "Not A Name"]),
        ("world size 0", vec!["--commit", "HEAD~2", "--worlds", "0", "--interpreter", "/bin/sh"]),
        ("a world size twice", vec!["--commit", "HEAD~2", "--worlds", "2,2", "--interpreter", "/bin/sh"]),
        ("a pack over a tree", vec!["--commit", "HEAD~2", "--pack", "pack"]),
        ("a shallow clone", vec!["--commit", "HEAD", "--repo", "shallow"]),
        ("no repository", vec!["--commit", "HEAD", "--repo", "nowhere"]),
    ] {
        // The last of an option that is given twice is refused: build the arguments anew.
        let option = |name: &str, or: &str| {
            let at = args.iter().position(|arg| *arg == name);
            at.map_or(or.to_string(), |at| args[at + 1].to_string())
        };
        let (repo, pack) = (option("--repo", "up"), option("--pack", "mine"));
        let mut all = vec!["new", "--repo", &repo, "--pack", &pack];
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if ["--repo", "--pack"].contains(arg) {
                rest.next();
            } else {
                all.push(arg);
            }
        }
        let said = ground.infradev(&all);
        table += &format!("# {what}: exit {}\n{}\n", said.code, said.err);
    }
    let ids = ground.git(&["-C", "up", "log", "--format=%H"]);
    for (index, id) in ids.lines().enumerate() {
        table = table.replace(id, &format!("COMMIT{index}"));
    }
    insta::assert_snapshot!(table);
    assert!(!ground.path().join("mine").exists());
}
