//! `infradev new` from a line that `infradev curate` wrote.

mod ground;

use ground::{Ground, MODEL, Said};

const TEST: &str = "\
import os


def test_triple():
    from toy.model import triple
    world_size = int(os.environ.get('WORLD_SIZE', '1'))
    assert world_size >= 1
    assert triple(2) == 6
";

/// A repository whose newest commits are pull requests 7 and 8; the base asks for packages in `requirements.txt`.
fn with_history(requirements: &str) -> Ground {
    let ground = Ground::new();
    ground.git(&["init", "-q", "-b", "main", "up"]);
    let commit = |message: &str| {
        ground.git(&["-C", "up", "add", "-A"]);
        ground.git(&["-C", "up", "commit", "-q", "-m", message]);
    };
    ground.write("up/toy/__init__.py", "");
    ground.write("up/toy/model.py", MODEL);
    ground.write("up/requirements.txt", requirements);
    ground.write("up/.python-version", "3.11\n");
    ground.write("up/tests/test_model.py", "def test_double():\n    assert True\n");
    commit("Begin");
    ground.write("up/toy/model.py", &format!("{MODEL}\n\ndef triple(x):\n    return 3 * x\n"));
    ground.write("up/tests/test_triple.py", TEST);
    commit("Add triple for training (#7)\n\nTwo are not enough.");
    ground.write("up/toy/half.py", "def half(x):\n    return x / 2\n");
    ground.write(
        "up/tests/test_half.py",
        "def test_half():\n    from toy.half import half\n    assert half(2) == 1\n",
    );
    commit("Fix halves (#8)");
    ground.infradev(&["curate", "up", "--jsonl", "chosen.jsonl"]).exits(0);
    ground
}

fn new(ground: &Ground, more: &[&str]) -> Said {
    ground
        .infradev(&[&["new", "--repo", "up", "--pack", "mine", "--candidate", "chosen.jsonl"], more].concat())
}

/// The output without ids of commits.
fn plain(ground: &Ground, said: &Said) -> String {
    let mut text = said.out.clone() + &said.err;
    for (index, id) in ground.git(&["-C", "up", "log", "--format=%H"]).lines().enumerate() {
        text = text.replace(id, &format!("COMMIT{index}"));
    }
    text
}

#[test]
fn a_candidate_becomes_a_task_with_its_lock_in_one_step_and_is_calibrated() {
    let lock = std::fs::read_to_string(ground::repository().join("python/judge.lock")).unwrap();
    let ground = with_history(&lock);
    let said = new(&ground, &["--pr", "7", "--calibrate"]).exits(0);
    let told = plain(&ground, &said);
    assert!(told.contains("proposed: Python 3.11, from .python-version"), "{told}");
    assert!(told.contains("proposed: the lock is requirements.txt as it stands"), "{told}");
    assert!(told.contains("resolved"), "golden is graded: {told}");
    assert_eq!(ground.read("mine/envs/cpu.lock"), lock);
    let task = ground.read("mine/tasks/add-triple-for-training/task.toml");
    assert!(task.contains("kind = \"feature\"") && task.contains("# kind: “add” in subject"), "{task}");
    assert!(ground.read("mine/tasks/add-triple-for-training/spec.md").contains("Two are not enough."));
    // The pack is there now: the next candidate joins it.
    new(&ground, &["--pr", "8"]).exits(0);
    assert!(ground.read("mine/tasks/fix-halves/task.toml").contains("kind = \"fix\""));
}

#[test]
fn what_an_index_would_have_to_resolve_is_left_with_the_command_that_does_it() {
    let ground = with_history("numpy>=1.26\n-e .\n");
    let said = new(&ground, &["--pr", "7"]).exits(0);
    insta::assert_snapshot!(plain(&ground, &said));
    assert_eq!(ground.read("mine/envs/cpu.in"), "numpy>=1.26\n");
    let said = new(&ground, &["--pr", "8", "--calibrate"]);
    assert_eq!(said.code, 4, "no lock yet: {}{}", said.out, said.err);
}

#[test]
fn the_worlds_gpus_and_words_of_a_candidate_are_its_task_s() {
    let ground = with_history("numpy\n");
    let line = ground.read("chosen.jsonl").lines().find(|line| line.contains("\"#7\"")).unwrap().to_owned();
    let mut candidate: serde_json::Value = serde_json::from_str(&line).unwrap();
    candidate["facts"]["needs"] = serde_json::json!({
        "world": 4, "worlds": [2, 4], "distributed": true, "gpus": 4, "device": "cuda",
        "evidence": [{ "what": "world_size != 4", "place": "tests/a\nb.py" }]
    });
    candidate["pull"] = serde_json::json!({
        "url": "https://github.com/a/b/pull/7", "title": "Add triple", "body": "As the pull request says it.", "labels": []
    });
    ground.write("one.jsonl", &format!("{candidate}\n"));
    let args = ["new", "--repo", "up", "--pack", "mine", "--candidate", "one.jsonl", "--id", "t"];
    ground.infradev(&args).exits(0);
    let task = ground.read("mine/tasks/t/task.toml");
    assert!(task.contains("worlds = [4]") && task.contains("gpus = 4"), "{task}");
    assert!(task.contains("# worlds: “world_size != 4” in tests/a b.py"), "{task}");
    assert!(ground.read("mine/tasks/t/spec.md").contains("As the pull request says it."));
    assert_eq!(ground.read("mine/tasks/t/description.md"), "# Add triple\n\nAs the pull request says it.\n");
    ground.infradev(&[&args[..], &["--worlds", "1,2", "--force"]].concat()).exits(0);
    assert!(ground.read("mine/tasks/t/task.toml").contains("worlds = [1, 2]"));
}

#[test]
fn a_candidate_that_cannot_be_one_is_refused_and_leaves_nothing() {
    let ground = with_history("");
    let text = ground.read("chosen.jsonl");
    ground.write("broken.jsonl", "{\"commit\": 1}\n");
    ground.write("empty.jsonl", "\n");
    let base = ground.git(&["-C", "up", "rev-parse", "HEAD~2"]);
    let other = ground.git(&["-C", "up", "rev-parse", "HEAD~1"]);
    let seven = text.lines().find(|line| line.contains("\"#7\"")).unwrap();
    ground.write("rewritten.jsonl", &seven.replace(base.trim(), other.trim()));
    let gone = seven.replace(other.trim(), "0123456789abcdef0123456789abcdef01234567");
    ground.write("gone.jsonl", &gone);
    let mut table = String::new();
    for (what, file, more) in [
        ("no such file", "absent.jsonl", &["--pr", "7"][..]),
        ("no candidate", "broken.jsonl", &["--pr", "7"][..]),
        ("an empty file", "empty.jsonl", &["--pr", "7"][..]),
        ("another number", "chosen.jsonl", &["--pr", "99"][..]),
        ("several", "chosen.jsonl", &[][..]),
        ("a history written anew", "rewritten.jsonl", &[][..]),
        ("a commit that is gone", "gone.jsonl", &[][..]),
        ("no file says what is needed", "chosen.jsonl", &["--pr", "7"][..]),
    ] {
        let args = [&["new", "--repo", "up", "--pack", "mine", "--candidate", file], more].concat();
        let said = ground.infradev(&args);
        table += &format!("# {what}: exit {}\n{}\n", said.code, plain(&ground, &said));
    }
    insta::assert_snapshot!(table);
    assert!(!ground.path().join("mine").exists());
}
