//! `infradev synthesize`: mutants of a small task through official tests and probes, killed and resumed, and bad input.

mod ground;
mod harm;

use std::collections::BTreeMap;

use ground::Ground;
use harm::{Running, assert_nothing_left, no_process_of};
use infradev_supervise::Exit;
use nix::sys::signal::Signal;
use serde_json::Value;

const GOLDEN: &str = "\
diff --git a/toy/model.py b/toy/model.py
--- a/toy/model.py
+++ b/toy/model.py
@@ -1,2 +1,13 @@
 def double(x):
     return 2 * x
+
+
+def triple(x):
+    if x < 0:
+        raise ValueError(\"negative\")
+    return 3 * x
+
+
+def unused(x):
+    y = x + 1
+    return y
";

/// The toy pack with a golden of more lines: a guard that no test and no probe asks about, a boundary that a probe alone asks
/// about, a function that nobody calls.
fn ground() -> Ground {
    let ground = Ground::new();
    ground.write("pack/tasks/triple/golden.patch", GOLDEN);
    ground
}

fn mutants(task: &Value) -> &Vec<Value> {
    task["mutants"].as_array().unwrap()
}

fn fates(task: &Value) -> BTreeMap<(u64, String, String), String> {
    mutants(task)
        .iter()
        .map(|record| {
            let mutant = &record["mutant"];
            let word = |value: &Value| value.as_str().unwrap_or_default().trim().to_string();
            let key = (mutant["line"].as_u64().unwrap(), word(&mutant["operator"]), word(&record["becomes"]));
            (key, word(&record["fate"]))
        })
        .collect()
}

fn fate(fates: &BTreeMap<(u64, String, String), String>, line: u64, operator: &str) -> Vec<String> {
    let of = |(at, name, _): &&(u64, String, String)| *at == line && name == operator;
    fates.iter().filter(|(key, _)| of(key)).map(|(_, fate)| fate.clone()).collect()
}

#[test]
fn each_mutant_ends_with_who_rejects_it_or_with_the_promise_that_nothing_checks() {
    let ground = ground();
    let document = ground.infradev(&["synthesize", "pack", "--json", "--jobs", "2"]).exits(0).json();
    let task = &document["tasks"][0];
    let found = fates(task);
    assert_eq!(fate(&found, 6, "drop-guard"), ["survived"], "{found:#?}");
    assert!(fate(&found, 6, "swap-comparison").contains(&"probe".to_string()), "{found:#?}");
    assert!(fate(&found, 8, "swap-arithmetic").iter().all(|fate| fate == "official"), "{found:#?}");
    assert!(fate(&found, 12, "swap-arithmetic").iter().all(|fate| fate == "unreached"), "{found:#?}");
    for record in mutants(task) {
        let rejected = record["by"].is_object();
        assert_eq!(rejected, matches!(record["fate"].as_str(), Some("official" | "probe")), "{record}");
        assert!(!record["promise"].as_str().unwrap().is_empty());
    }
    let probed = mutants(task).iter().find(|record| record["fate"] == "probe").unwrap();
    assert_eq!(probed["probes"]["probes/judge_model.py::zero_stays_zero[world=1]"], "error");
    assert_eq!(probed["probes"]["probes/judge_model.py::any_number_is_tripled[world=1]"], "passed");
    let strength = &task["strength"]["mutants"];
    let count = |fate: &str| found.values().filter(|found| *found == fate).count();
    assert_eq!(strength["official"], count("official"));
    assert_eq!(strength["probes"], count("probe"));

    // A finished run is not resumed, and its text says the same.
    let said = ground.infradev(&["synthesize", "pack"]).exits(0);
    assert!(said.out.contains("triple: mutants that pass the official tests"), "{}", said.out);
    assert!(
        said.out.contains("breaks: what the guard refuses or passes over never gets beyond it"),
        "{}",
        said.out
    );
    assert!(said.out.contains("rejected by probes/judge_model.py::zero_stays_zero[world=1]"), "{}", said.out);
    assert!(said.out.contains("no test runs these lines"), "{}", said.out);
}

#[test]
fn candidates_are_written_as_adversarial_patches_that_acceptance_takes() {
    let ground = ground();
    let said = ground.infradev(&["synthesize", "pack", "--write"]).exits(0);
    assert!(said.err.contains("triple: wrote adversarial/swap-comparison-model-6.toml"), "{}", said.err);
    let text = ground.read("pack/tasks/triple/adversarial/swap-comparison-model-6.toml");
    assert!(text.contains("take") || text.contains("find = "), "{text}");
    let document = ground.infradev(&["accept", "pack", "--no-write", "--json"]).json();
    let record = &document["tasks"][0];
    assert_eq!(record["fools_official"]["swap-comparison-model-6"], true, "{record:#}");
    assert_eq!(record["rejected"]["swap-comparison-model-6"], true, "{record:#}");
    // What is there is left as it is.
    let again = ground.infradev(&["synthesize", "pack", "--write"]).exits(0);
    assert!(!again.err.contains("wrote"), "{}", again.err);
}

fn digests(document: &Value) -> Vec<String> {
    let digest = |record: &Value| record["mutant"]["digest"].as_str().unwrap().to_string();
    let mut found: Vec<String> = mutants(&document["tasks"][0]).iter().map(digest).collect();
    found.sort();
    found
}

#[test]
fn shards_are_parts_of_the_whole_and_are_put_together_to_it() {
    let ground = ground();
    let synthesize = |more: &[&str]| {
        let args = [&["synthesize", "pack", "--json"], more].concat();
        let said = ground.infradev(&args).exits(0);
        (said.json(), said.out)
    };
    let (whole, whole_text) = synthesize(&[]);
    let (one, one_text) = synthesize(&["--shard", "1/2"]);
    let (two, two_text) = synthesize(&["--shard", "2/2"]);
    let mut both = [digests(&one), digests(&two)].concat();
    both.sort();
    assert_eq!(both, digests(&whole));
    assert!(!digests(&one).is_empty() && !digests(&two).is_empty());
    let said = ground.infradev(&["synthesize", "pack", "--shard", "3/2"]).exits(2);
    assert!(said.err.contains("a shard is K/N with K from 1 to N"), "{}", said.err);

    for (name, text) in [("whole.json", &whole_text), ("1.json", &one_text), ("2.json", &two_text)] {
        ground.write(name, text);
    }
    let merged = ground.infradev(&["synthesize", "merge", "2.json", "1.json", "--json"]).exits(0).json();
    let (merged_task, whole_task) = (&merged["tasks"][0], &whole["tasks"][0]);
    assert_eq!(fates(merged_task), fates(whole_task));
    for field in ["strength", "unprobed_hunks", "remarks", "inputs"] {
        assert_eq!(merged_task[field], whole_task[field], "{field}");
    }
    assert!(merged_task["shard"].is_null());
    let names = |task: &Value| -> Vec<String> {
        let all = task["rewrites"].as_array().unwrap().iter();
        all.map(|record| record["rewrite"].as_str().unwrap().to_string()).collect()
    };
    assert!(!names(whole_task).is_empty());
    assert_eq!(names(merged_task), names(whole_task));
    let said = ground.infradev(&["synthesize", "merge", "1.json", "2.json"]).exits(0);
    assert!(said.out.contains("triple: mutants that pass the official tests"), "{}", said.out);

    for (files, why) in [
        (&["1.json"][..], "task triple: shard 2/2 is missing"),
        (&["1.json", "1.json"], "1.json and 1.json are both shard 1/2 of task triple"),
        (&["1.json", "whole.json"], "whole.json: task triple is no shard: it has all mutants"),
        (&["1.json", "pack/pack.toml"], "pack/pack.toml: no document of `infradev synthesize --json`"),
        (&["1.json", "3.json"], "3.json: No such file"),
    ] {
        let said = ground.infradev(&[&["synthesize", "merge"], files].concat()).exits(4);
        assert!(said.err.contains(why), "{why}: {}", said.err);
    }
    ground.infradev(&["synthesize"]).exits(2);
    ground.infradev(&["synthesize", "merge"]).exits(2);
}

#[test]
fn a_case_that_answers_golden_differently_from_run_to_run_is_left_out_by_name() {
    let ground = ground();
    // Forty cases that pass by chance: that all of them answer alike twice is one in 10 ** 8.
    let chance = "import random\n\nimport pytest\n\n\n@pytest.mark.parametrize(\"n\", range(40))\ndef test_by_chance(n):\n    \
                  assert random.SystemRandom().random() < 0.5\n";
    ground.write("pack/repo/tests/test_chance.py", chance);
    let official = "official = [\"tests/test_model.py\", \"tests/test_chance.py\"]";
    ground.edit("pack/tasks/triple/task.toml", "official = [\"tests/test_model.py\"]", official);
    let document = ground.infradev(&["synthesize", "pack", "--skip-failing", "--json"]).exits(0).json();
    let task = &document["tasks"][0];
    let golden = &task["golden"][0];
    let flaky: Vec<&str> =
        golden["flaky"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert!(flaky.iter().all(|id| id.starts_with("tests/test_chance.py::test_by_chance[")), "{flaky:?}");
    for record in mutants(task) {
        let by = record["by"]["case"].as_str().unwrap_or_default();
        assert!(!flaky.contains(&by), "{record}");
    }
    let remarks = task["remarks"].as_array().unwrap();
    let told = |remark: &Value| {
        let remark = remark.as_str().unwrap();
        remark.contains("they answer differently from one run of golden to the next")
            && remark.contains(flaky[0])
    };
    assert!(remarks.iter().any(told), "{remarks:?}");
}

fn tells_a_mutant(line: &str) -> bool {
    line.contains(" · ") && line.contains("toy/model.py:")
}

#[tokio::test]
async fn killed_it_goes_on_where_it_stopped_and_repeats_no_finished_mutant() {
    let ground = ground();
    let here = ground.path();
    let args = ["synthesize", "pack", "--json", "--jobs", "2"];
    let calm = Running::start(here, &args, &[]).end().await.exits(0);
    let calm_fates = fates(&calm.json()["tasks"][0]);

    let mut pids = Vec::new();
    // During the control, in the middle, near the end.
    for mutants_before in [0, 3, 2] {
        let mut running = Running::start(here, &args, &[]);
        pids.push(running.pid());
        for _ in 0..mutants_before {
            assert!(running.says(tells_a_mutant).await, "it ended early");
        }
        running.signal(Signal::SIGKILL);
        assert_eq!(running.end().await.exit, Exit::Signal(9));
        no_process_of(here).await;
    }
    let last = Running::start(here, &args, &[]);
    pids.push(last.pid());
    let ended = last.end().await.exits(0);
    let resumed = ended.err.lines().find(|line| line.starts_with("resuming run")).unwrap_or_default();
    assert!(resumed.ends_with(" mutants are done)") && !resumed.contains("(0 "), "{}", ended.err);
    let document = ended.json();
    assert_eq!(fates(&document["tasks"][0]), calm_fates);
    // Each mutant stands in the journal once: none was tried again.
    let run = here.join("home/runs").join(document["run"].as_str().unwrap());
    let journal = std::fs::read_to_string(run.join("mutants-triple.jsonl")).unwrap();
    let mut digests: Vec<String> = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["event"]["record"]["mutant"]["digest"].as_str().unwrap().to_string())
        .collect();
    let all = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!((digests.len(), all), (calm_fates.len(), calm_fates.len()));
    no_process_of(here).await;
    assert_nothing_left(here, &pids);
}

#[tokio::test]
async fn interrupted_it_ends_at_once_and_leaves_nothing_but_its_run() {
    let ground = ground();
    let here = ground.path();
    let mut running = Running::start(here, &["synthesize", "pack", "--jobs", "2"], &[]);
    let pid = running.pid();
    assert!(running.says(tells_a_mutant).await, "it ended early");
    running.signal(Signal::SIGINT);
    let ended = running.end().await.exits(130);
    assert!(ended.err.ends_with("interrupted\nhint: run the same command again to resume"), "{}", ended.err);
    no_process_of(here).await;
    assert_nothing_left(here, &[pid]);
}

#[test]
fn a_golden_that_fails_its_own_tests_stops_it_by_name_or_is_left_out() {
    let ground = ground();
    let broken = "+    assert triple(2) == 6\n+\n+\n+def test_never():\n+    assert triple(1) == 4\n";
    ground.edit("pack/tasks/triple/official.patch", "+    assert triple(2) == 6\n", broken);
    ground.edit("pack/tasks/triple/official.patch", "@@ -3,3 +3,9 @@", "@@ -3,3 +3,13 @@");
    let said = ground.infradev(&["synthesize", "pack"]).exits(4);
    assert!(
        said.err.contains("triple: the unmutated change fails official tests at world size 1: tests/test_model.py::test_never")
            || said.err.contains("test_never (AssertionError"),
        "{}",
        said.err
    );
    assert!(said.err.contains("leave such cases out with --skip-failing"), "{}", said.err);
    let document = ground.infradev(&["synthesize", "pack", "--skip-failing", "--json"]).exits(0).json();
    let golden = &document["tasks"][0]["golden"][0];
    assert_eq!(golden["cases"], 2);
    assert_eq!(golden["left_out"][0], "tests/test_model.py::test_never");
}

#[test]
fn tests_that_cannot_be_collected_are_told_with_their_reason() {
    let ground = ground();
    let official = ground.read("pack/tasks/triple/official.patch");
    let spoilt = official.replace("from toy.model import triple", "from toy.model import tripel");
    let spoilt = spoilt.replace("+    from toy.model", "+from toy.model");
    ground.write("pack/tasks/triple/official.patch", &spoilt);
    let said = ground.infradev(&["synthesize", "pack"]).exits(4);
    assert!(said.err.contains("tests/test_model.py"), "{}", said.err);
}

/// An `equivalent.toml` that lists these records.
fn listing(records: &[&Value], why: &str) -> String {
    let mut text = "schema = 1\n".to_string();
    for record in records {
        let mutant = &record["mutant"];
        text += "\n[[mutant]]\n";
        for (key, value) in [
            ("file", &mutant["file"]),
            ("function", &mutant["function"]),
            ("operator", &mutant["operator"]),
            ("was", &record["was"]),
            ("becomes", &record["becomes"]),
        ] {
            let value = value.as_str().unwrap_or_default();
            text += &format!("{key} = {}\n", toml::Value::from(value));
        }
        text += &format!("why = {}\n", toml::Value::from(why));
    }
    text
}

const LISTED: &str = "pack/tasks/triple/equivalent.toml";

#[test]
fn survivors_that_are_listed_are_told_apart_with_their_reason_and_nothing_else_is_required() {
    let ground = ground();
    let required = ["synthesize", "pack", "--json", "--require", "rejected"];
    let before = ground.infradev(&required).exits(1).json();
    let of_fate = |document: &Value, fate: &str| -> Vec<Value> {
        mutants(&document["tasks"][0]).iter().filter(|record| record["fate"] == fate).cloned().collect()
    };
    let open = [of_fate(&before, "survived"), of_fate(&before, "unreached")].concat();
    assert!(open.len() > 1 && open.iter().any(|record| record["mutant"]["operator"] == "drop-guard"));
    let why = "nobody calls it so, \"says\" the specification";
    ground.write(LISTED, &listing(&open.iter().collect::<Vec<_>>(), why));

    let after = ground.infradev(&required).exits(0).json();
    let task = &after["tasks"][0];
    assert_eq!(of_fate(&after, "equivalent").len(), open.len());
    assert!(of_fate(&after, "equivalent").iter().all(|record| record["equivalent"] == why));
    assert!(of_fate(&after, "survived").is_empty() && of_fate(&after, "unreached").is_empty());
    assert_eq!(task["strength"]["mutants"]["equivalent"], open.len());
    assert_eq!(
        task["strength"]["mutants"]["official"],
        before["tasks"][0]["strength"]["mutants"]["official"]
    );
    assert_eq!(task["unprobed_hunks"], Value::Array(Vec::new()));
    let said = ground.infradev(&["synthesize", "pack"]).exits(0);
    let apart = said.out.split("triple: mutants listed as equivalent to golden").nth(1).unwrap();
    assert!(apart.contains("toy/model.py:6 drop-guard\n    - if x < 0:"), "{}", said.out);
    assert!(apart.contains(&format!("    because {why}")), "{}", said.out);

    // One left out, and it is asked for again.
    ground.write(LISTED, &listing(&open.iter().skip(1).collect::<Vec<_>>(), why));
    ground.infradev(&required).exits(1);
}

#[test]
fn a_mutant_that_a_test_rejects_is_a_wrong_listing() {
    let ground = ground();
    let document = ground.infradev(&["synthesize", "pack", "--json"]).exits(0).json();
    let wrong: Vec<&Value> = mutants(&document["tasks"][0])
        .iter()
        .filter(|record| record["fate"] != "official" || record["mutant"]["operator"] == "swap-arithmetic")
        .collect();
    let rejected = wrong.iter().filter(|record| record["by"].is_object()).count();
    assert!(rejected >= 2, "an official test rejects one, a probe another");
    ground.write(LISTED, &listing(&wrong, "it makes no difference"));
    let said = ground.infradev(&["synthesize", "pack", "--require", "rejected"]).exits(1);
    let told = said.out.split("triple: listed as equivalent, but rejected").nth(1).unwrap();
    assert_eq!(told.matches("listed because it makes no difference").count(), rejected, "{}", said.out);
    assert!(told.contains("rejected by probes/judge_model.py::zero_stays_zero[world=1]"), "{}", said.out);
    assert!(told.contains("rejected by tests/test_model.py::test_triple"), "{}", said.out);
    assert!(said.err.contains("listed as equivalent, but "), "{}", said.err);
}

#[test]
fn a_listing_that_names_no_mutant_or_several_is_refused_before_anything_runs() {
    let ground = ground();
    let entry = "schema = 1\n\n[[mutant]]\nfile = \"toy/model.py\"\nfunction = \"triple\"\n\
                 operator = \"swap-constant\"\nwas = \"return 3 * x\"\nbecomes = \"return 4 * x\"\n\
                 why = \"three is as good as four\"\n";
    let mut told = String::new();
    let mut tell = |text: &str| {
        ground.write(LISTED, text);
        let said = ground.infradev(&["synthesize", "pack", "--require", "rejected"]).exits(4);
        told += &format!("{}\n\n", said.err);
    };
    tell(&entry.replace("return 3 * x", "return 2 * x"));
    tell(&entry.replace("triple", "tripel"));
    tell(&entry.replace("why = \"three is as good as four\"\n", "why = \"so\"\n"));
    // Two statements that are the same: their number tells them apart.
    ground.edit("pack/tasks/triple/golden.patch", "+    y = x + 1\n", "+    y = x + 1\n+    y = x + 1\n");
    ground.edit("pack/tasks/triple/golden.patch", "@@ -1,2 +1,13 @@", "@@ -1,2 +1,14 @@");
    let twice = entry.replace("triple", "unused").replace("return 3 * x", "y = x + 1");
    let twice = twice.replace("return 4 * x", "y = x + 2");
    tell(&twice);
    tell(&twice.replace("why =", "nth = 3\nwhy ="));
    insta::assert_snapshot!(told);
    assert!(!ground.path().join("home/runs").exists(), "nothing was begun");
    ground.write(LISTED, &twice.replace("why =", "nth = 2\nwhy ="));
    let document = ground.infradev(&["synthesize", "pack", "--json"]).exits(0).json();
    let listed = mutants(&document["tasks"][0]).iter().filter(|record| record["equivalent"].is_string());
    assert_eq!(listed.count(), 1);
}
