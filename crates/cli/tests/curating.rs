//! `infradev curate` on a small history that has of everything: squashed, merged, reverted, brought back, picked, renamed,
//! binary, vendored.

mod ground;

use ground::Ground;
use serde_json::Value;

const ENGINE: &str = "def step(x):\n    return x + 1\n";

const TEST: &str = "\
import torch
from pkg.training.engine import step


def test_step():
    assert torch.allclose(step(torch.ones(1)), torch.full((1,), 2.0))
";

struct History<'a> {
    ground: &'a Ground,
    day: u32,
}

impl History<'_> {
    fn git(&self, args: &[&str]) -> String {
        let date = format!("2026-03-{:02}T12:00:00+00:00", self.day);
        let repo = self.ground.path().join("repo");
        let own = [
            "-C",
            repo.to_str().unwrap(),
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=a@b",
            "-c",
            "commit.gpgsign=false",
        ];
        let all: Vec<&str> = own.iter().chain(args).copied().collect();
        let dates = [("GIT_AUTHOR_DATE", date.as_str()), ("GIT_COMMITTER_DATE", date.as_str())];
        self.ground.tool_with(&dates, "git", &all).exits(0).out.trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        self.ground.write(&format!("repo/{path}"), text);
    }

    fn commit(&mut self, message: &str) -> String {
        self.day += 1;
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// A change with a test of its own.
    fn change(&mut self, name: &str, message: &str) -> String {
        self.write(
            &format!("pkg/training/{name}.py"),
            &format!("def {name}(x):\n    # So many times.\n    return x * 3\n"),
        );
        self.write(
            &format!("tests/test_{name}.py"),
            &format!(
                "from pkg.training.{name} import {name}\n\n\ndef test_{name}():\n    assert {name}(1) == 3\n"
            ),
        );
        self.commit(message)
    }
}

fn history(ground: &Ground) -> History<'_> {
    std::fs::create_dir_all(ground.path().join("repo")).unwrap();
    let mut h = History { ground, day: 0 };
    h.git(&["init", "-q", "-b", "main"]);
    h.write("pkg/training/engine.py", ENGINE);
    h.write("tests/test_engine.py", TEST);
    h.commit("Initial");
    h
}

fn candidate<'a>(document: &'a Value, number: &str) -> &'a Value {
    let all = document["candidates"].as_array().unwrap();
    all.iter()
        .find(|c| c["number"] == number)
        .unwrap_or_else(|| panic!("{number} is no candidate: {document:#}"))
}

fn numbers(document: &Value) -> Vec<String> {
    let all = document["candidates"].as_array().unwrap().iter();
    let mut numbers: Vec<String> = all.map(|c| c["number"].as_str().unwrap_or("none").to_owned()).collect();
    numbers.sort();
    numbers
}

#[test]
fn each_change_of_a_history_is_one_candidate_or_left_out_with_a_reason() {
    let ground = Ground::new();
    let mut h = history(&ground);
    h.change("plain", "Add plain \u{7}scaling (#1)");
    // Merged.
    h.git(&["checkout", "-q", "-b", "side"]);
    h.change("merged", "wip");
    h.git(&["checkout", "-q", "main"]);
    h.git(&[
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "Merge branch 'side' into 'main'\n\nFix merged rounding\n\nSee merge request a/b!2",
        "side",
    ]);
    // Taken back, and another taken back and brought back.
    h.change("gone", "Add gone (#3)");
    h.git(&["revert", "--no-edit", "HEAD"]);
    h.git(&["commit", "-q", "--amend", "-m", "Revert \"Add gone (#3)\" (#4)"]);
    let first = h.change("back", "Add back (#5)");
    h.git(&["revert", "--no-edit", "HEAD"]);
    h.git(&["revert", "--no-edit", "HEAD"]);
    h.git(&["commit", "-q", "--amend", "-m", "Reapply \"Add back (#5)\" (#6)"]);
    // Renamed with a change, a binary file beside it.
    h.git(&["mv", "pkg/training/plain.py", "pkg/training/scaled.py"]);
    h.write("pkg/training/scaled.py", "def plain(x):\n    # So many times.\n    return x * 4\n");
    h.write(
        "tests/test_plain.py",
        "from pkg.training.scaled import plain\n\n\ndef test_plain():\n    assert plain(1) == 4\n",
    );
    std::fs::write(ground.path().join("repo/table.bin"), b"\0\x01\x02").unwrap();
    h.commit("Rename plain to scaled (#7)");
    // None of these is a task.
    h.write("third_party/x/a.py", "A = 1\n");
    h.write("tests/test_vendored.py", "def test_v():\n    pass\n");
    h.commit("Bring x along (#8)");
    h.write("pkg/training/engine.py", "def step(x):\n    \"\"\"One more.\"\"\"\n    return x + 1  # one\n");
    h.write("tests/test_engine.py", &format!("{TEST}\n\ndef test_doc():\n    assert step.__doc__\n"));
    h.commit("Say what step does (#9)");
    h.write("pkg/training/engine.py", "def step(x):\n    return x + 2\n");
    h.commit("Two at once (#10)");
    h.commit("Nothing (#11)");
    // Picked onto a branch.
    h.git(&["checkout", "-q", "-b", "release", "main~1"]);
    h.git(&["checkout", "-q", "main"]);
    let picked = h.change("fixed", "Fix a race (#12)");
    h.git(&["checkout", "-q", "release"]);
    h.git(&["cherry-pick", "-x", &picked]);
    h.git(&["checkout", "-q", "main"]);

    let said = ground.infradev(&["curate", "repo", "--rev", "main", "--rev", "release", "--json"]).exits(0);
    let document = said.json();
    assert_eq!(numbers(&document), ["!2", "#1", "#12", "#6", "#7"], "{document:#}");
    let left: Value = serde_json::json!({
        "reverted": 2, "revert": 2, "duplicate": 1, "no-parent": 1, "empty": 1, "no-source": 1, "no-tests": 1, "no-code": 1
    });
    assert_eq!(document["left_out"], left);
    assert_eq!(candidate(&document, "#6")["also"][0]["commit"], first);
    assert_eq!(candidate(&document, "#6")["also"][0]["by"], "reland");
    assert_eq!(candidate(&document, "#12")["also"][0]["by"], "cherry-pick");
    assert_eq!(candidate(&document, "#1")["title"], "Add plain scaling");
    let merged = candidate(&document, "!2");
    assert_eq!(
        (&merged["title"], &merged["facts"]["kind"]["is"]),
        (&"Fix merged rounding".into(), &"fix".into())
    );
    let renamed = &candidate(&document, "#7")["facts"];
    assert_eq!(renamed["definitions"]["functions_changed"], 1);
    assert_eq!(renamed["definitions"]["functions_added"], 0);
    assert_eq!((&renamed["hollow"]["functions"], &renamed["other"]["files"]), (&0.into(), &1.into()));
    let table = ground.infradev(&["curate", "repo", "--rev", "main"]).exits(0);
    insta::assert_snapshot!(table.out);
}

#[test]
fn what_tests_need_and_check_is_read_from_them() {
    let ground = Ground::new();
    let mut h = history(&ground);
    h.write(
        "pkg/inference/cache.py",
        "class Cache:\n    def put(self, x):\n        return x\n\n    def drop(self):\n        ...\n",
    );
    h.write("pkg/fast.cu", "// a kernel\n");
    h.write("requirements.txt", "torch\n");
    h.write(
        "tests/test_cache.py",
        "import torch\nfrom tests.utils import Utils\n\n\ndef test_put():\n    Utils.initialize_model_parallel(2, 2)\n    \
         torch.testing.assert_close(torch.ones(1).cuda(), torch.ones(1).cuda())\n    assert torch.cuda.memory_allocated() > 0\n",
    );
    h.commit("Overlap cache writes (#1)");
    let document = ground.infradev(&["curate", "repo", "--json"]).exits(0).json();
    let facts = &candidate(&document, "#1")["facts"];
    assert_eq!(facts["area"]["is"], "inference");
    assert_eq!(facts["kind"]["is"], "performance");
    assert_eq!(facts["kind"]["evidence"][0], serde_json::json!({"what": "overlap", "place": "subject"}));
    assert_eq!((&facts["needs"]["world"], &facts["needs"]["gpus"]), (&4.into(), &4.into()));
    assert_eq!(facts["needs"]["evidence"][0]["what"], "Utils.initialize_model_parallel(2, 2)");
    assert_eq!(
        (&facts["native"][0], &facts["dependencies"][0]),
        (&"pkg/fast.cu".into(), &"requirements.txt".into())
    );
    assert_eq!(facts["hollow"], serde_json::json!({"functions": 1, "kept": 1}));
    assert_eq!(facts["checks"]["numbers"].as_array().unwrap().len(), 1);
    assert_eq!(facts["checks"]["resources"].as_array().unwrap().len(), 1);
}

#[test]
fn the_lock_that_stands_at_a_change_is_a_fact_of_it_and_of_those_after_it() {
    let ground = Ground::new();
    let mut h = history(&ground);
    h.change("one", "Add one (#1)");
    h.write("uv.lock", "version = 1\n");
    h.change("two", "Add two (#2)");
    h.change("three", "Add three (#3)");
    h.git(&["checkout", "-q", "-b", "release"]);
    h.git(&["mv", "uv.lock", "docker.lock"]);
    h.change("four", "Add four (#4)");
    h.git(&["checkout", "-q", "main"]);
    h.change("five", "Add five (#5)");
    let args = ["curate", "repo", "--rev", "main", "--rev", "release", "--json"];
    let document = ground.infradev(&args).exits(0).json();
    let locks = |number: &str| candidate(&document, number)["facts"]["locks"].clone();
    let stands = serde_json::json!([{ "path": "uv.lock", "blob": h.git(&["rev-parse", "main:uv.lock"]) }]);
    assert_eq!(locks("#1"), serde_json::json!([]));
    for number in ["#2", "#3", "#5"] {
        assert_eq!(locks(number), stands, "{number}");
    }
    assert_eq!(locks("#4"), serde_json::json!([]));
    assert_eq!(ground.infradev(&args).exits(0).json(), document);
}

#[test]
fn a_reland_that_a_tag_names_is_the_candidate_of_what_was_taken_back() {
    let ground = Ground::new();
    let mut h = history(&ground);
    let first = h.change("one", "[core] Add one (#1)");
    h.git(&["revert", "--no-edit", "HEAD"]);
    h.change("one", "[core][Reland] Add one (#3)");
    h.change("two", "Add two (#4)");
    h.git(&["revert", "--no-edit", "HEAD"]);
    h.git(&["revert", "--no-edit", "HEAD"]);
    let document = ground.infradev(&["curate", "repo", "--json"]).exits(0).json();
    assert_eq!(numbers(&document), ["#3", "#4"]);
    let one = candidate(&document, "#3");
    assert_eq!(one["title"], "[core] Add one");
    assert_eq!(one["also"], serde_json::json!([{ "commit": first, "by": "reland" }]));
    // What git itself brings back has no number of its own.
    assert_eq!(candidate(&document, "#4")["title"], "Add two");
}

#[test]
fn a_second_run_reads_new_commits_only_and_survives_a_line_that_was_cut_off() {
    let ground = Ground::new();
    let mut h = history(&ground);
    h.change("one", "Add one (#1)");
    let first = ground.infradev(&["curate", "repo"]).exits(0);
    assert!(first.err.contains("2 of 2 new commits read"), "{}", first.err);
    h.change("two", "Add two (#2)");
    let second = ground.infradev(&["curate", "repo", "--json"]).exits(0);
    assert!(second.err.contains("1 of 1 new commits read"), "{}", second.err);
    assert_eq!(numbers(&second.json()), ["#1", "#2"]);
    let folder = ground.path().join("home/curations");
    let kept = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, &text[..text.len() - 40]).unwrap();
    let third = ground.infradev(&["curate", "repo", "--json"]).exits(0);
    assert!(third.err.contains("1 of 1 new commits read"), "{}", third.err);
    assert_eq!(third.out, second.out);
    let fourth = ground.infradev(&["curate", "repo", "--json"]).exits(0);
    assert_eq!((fourth.out, fourth.err.as_str()), (second.out, ""));
}

#[test]
fn a_choice_takes_of_each_kind_and_says_what_is_missing() {
    let ground = Ground::new();
    let mut h = history(&ground);
    for (name, message) in [
        ("one", "Add one (#1)"),
        ("two", "Add two (#2)"),
        ("three", "Add three (#3)"),
        ("four", "Fix four (#4)"),
        ("five", "Move five (#5)"),
    ] {
        h.change(name, message);
    }
    let args = ["curate", "repo", "--want", "3", "--jsonl", "chosen.jsonl", "--json"];
    let document = ground.infradev(&args).exits(0).json();
    let kinds: Vec<&str> = document["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["facts"]["kind"]["is"].as_str().unwrap())
        .collect();
    let mut sorted = kinds.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["feature", "fix", "refactor"]);
    assert_eq!(ground.read("chosen.jsonl").lines().count(), 3);
    ground.infradev(&["curate", "repo", "--html", "page/candidates.html", "--quiet"]).exits(0);
    let page = ground.read("page/candidates.html");
    assert!(page.contains("<title>Candidates of repo</title>"));
    assert_eq!(page.matches("<tbody").count(), 5);
    let said =
        ground.infradev(&["curate", "repo", "--want", "9", "--multi-gpu", "2", "--kinds", "fix"]).exits(0);
    assert!(said.err.contains("2 with two ranks or more were wanted, there are 0"), "{}", said.err);
    assert!(said.err.contains("9 were wanted, there are 1"), "{}", said.err);
}

#[test]
fn bad_input_says_what_and_what_next() {
    let ground = Ground::new();
    let mut h = history(&ground);
    h.change("one", "Add one (#1)");
    let url = format!("file://{}", ground.path().join("repo").display());
    ground.git(&["clone", "-q", "--depth", "1", &url, "shallow"]);
    let mut told = String::new();
    for (args, code) in [
        (&["curate", "shallow"][..], 4),
        (&["curate", "absent"][..], 4),
        (&["curate", "repo", "--rev", "nothing"][..], 4),
        (&["curate", "repo", "--since", "yesterday"][..], 2),
        (&["curate", "repo", "--want", "1", "--multi-gpu", "2"][..], 2),
    ] {
        let said = ground.infradev(args);
        told += &format!("{args:?}: exit {}\n{}\n", said.code, said.err);
        assert_eq!(said.code, code, "{told}");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_commit_whose_objects_are_missing_is_left_out_until_they_are_there() {
    let ground = Ground::new();
    let mut h = history(&ground);
    h.change("one", "Add one (#1)");
    h.change("two", "Add two (#2)");
    // A file of a commit that would be a candidate is gone.
    ground.git(&["clone", "-q", "repo", "torn"]);
    let blob = ground.git(&["-C", "torn", "rev-parse", "HEAD~1:pkg/training/one.py"]);
    let (folder, name) = blob.trim().split_at(2);
    let object = ground.path().join("torn/.git/objects").join(folder).join(name);
    let aside = ground.path().join("object");
    std::fs::rename(&object, &aside).unwrap();
    let said = ground.infradev(&["curate", "torn", "--json"]).exits(0);
    assert_eq!(numbers(&said.json()), ["#2"]);
    assert_eq!(said.json()["left_out"]["missing-objects"], 1);
    assert!(said.err.contains("the clone lacks objects of 1 commit"), "{}", said.err);
    std::fs::rename(&aside, &object).unwrap();
    let said = ground.infradev(&["curate", "torn", "--json"]).exits(0);
    assert_eq!(numbers(&said.json()), ["#1", "#2"]);
}

#[test]
fn a_history_written_anew_counts_as_it_is_now() {
    let ground = Ground::new();
    let mut h = history(&ground);
    let before = h.change("one", "Add one (#1)");
    ground.infradev(&["curate", "repo"]).exits(0);
    h.git(&["commit", "-q", "--amend", "-m", "Add one at last (#1)"]);
    let document = ground.infradev(&["curate", "repo", "--json"]).exits(0).json();
    let one = candidate(&document, "#1");
    assert_eq!(one["title"], "Add one at last");
    assert_ne!(one["commit"], before);
}

#[test]
fn a_change_of_very_many_files_and_a_repository_without_tests_have_no_candidates() {
    let ground = Ground::new();
    let mut h = history(&ground);
    for at in 0..300 {
        h.write(&format!("pkg/many/m{at}.py"), &format!("X = {at}\n"));
    }
    h.write("tests/test_many.py", "def test_many():\n    assert True\n");
    h.commit("Add very many (#1)");
    let document = ground.infradev(&["curate", "repo", "--json"]).exits(0).json();
    assert_eq!(document["left_out"], serde_json::json!({ "no-parent": 1, "too-large": 1 }));
    h.git(&["checkout", "-q", "--orphan", "untested"]);
    h.git(&["rm", "-q", "-r", "--cached", "tests"]);
    std::fs::remove_dir_all(ground.path().join("repo/tests")).unwrap();
    h.commit("Begin");
    h.write("pkg/training/engine.py", "def step(x):\n    return x + 3\n");
    h.commit("Step by three (#2)");
    let said = ground.infradev(&["curate", "repo", "--rev", "untested"]).exits(0);
    assert!(said.out.contains("0 candidates of 2 commits"), "{}", said.out);
    assert!(said.out.contains("no-tests 1"), "{}", said.out);
}

#[test]
fn a_change_that_is_mostly_docstrings_does_not_rank_high() {
    let ground = Ground::new();
    let mut h = history(&ground);
    let said: String = (0..200).map(|at| format!("    Line {at} of much that is said.\n")).collect();
    h.write(
        "pkg/training/engine.py",
        &format!("def step(x):\n    \"\"\"Steps.\n\n{said}    \"\"\"\n    # By one.\n    return x + 1.0\n"),
    );
    h.write("tests/test_engine.py", &TEST.replace("2.0", "2.0, dtype=torch.float32"));
    h.commit("Say what step does (#1)");
    let document = ground.infradev(&["curate", "repo", "--json"]).exits(0).json();
    let one = candidate(&document, "#1");
    assert_eq!(one["facts"]["substance"], serde_json::json!({ "files": 1, "added": 1, "deleted": 1 }));
    assert!(one["facts"]["source"]["added"].as_u64().unwrap() > 200);
    let parts = one["parts"].as_array().unwrap();
    assert!(parts.iter().all(|part| part["name"] != "size"), "{parts:?}");
}
