//! `infradev accept` on a small pack.

mod ground;

use std::collections::BTreeSet;

use ground::Ground;

/// In place of what `triple` returns.
const HANGS: &str = "return __import__('threading').Event().wait()";

#[test]
fn a_good_task_is_accepted_and_its_record_is_written_beside_it() {
    let ground = Ground::new();
    let said = ground.infradev(&["accept", "pack", "--json", "--no-write"]).exits(0);
    let task = &said.json()["tasks"][0];
    assert_eq!(task["id"], "triple");
    assert_eq!(task["accepted"], true);
    assert_eq!(task["rejected"]["base"], true);
    assert_eq!(task["rejected"]["large-numbers"], true);
    assert_eq!(task["fools_official"]["large-numbers"], true);
    assert!(!ground.path().join("pack/tasks/triple/acceptance.json").exists(), "--no-write");
    let said = ground.infradev(&["accept", "pack/tasks/triple"]).exits(0);
    assert!(said.out.starts_with("task    accepted"), "{}", said.out);
    assert!(said.out.contains("accepted 1 of 1"), "{}", said.out);
    assert!(ground.read("pack/tasks/triple/acceptance.json").contains("\"accepted\": true"));
}

#[test]
fn one_seed_makes_the_same_trials_again_and_another_makes_others() {
    let trials = |seed: &[&str]| -> BTreeSet<String> {
        let ground = Ground::new();
        let plain = ["accept", "pack", "--no-write", "--runs", "2", "--rewrites", "0"];
        ground.infradev(&[&plain, seed].concat()).exits(0);
        let runs = ground.path().join("home/runs");
        let run =
            std::fs::read_dir(&runs).unwrap().flatten().find(|entry| entry.path().join("trials").is_dir());
        let trials = std::fs::read_dir(run.unwrap().path().join("trials")).unwrap().flatten();
        trials.map(|trial| trial.file_name().into_string().unwrap()).collect()
    };
    // A trial's name is the digest of all that goes into it, its seed too.
    let of_seven = trials(&["--seed", "7"]);
    assert_eq!(trials(&["--seed", "7"]), of_seven);
    assert_eq!(trials(&["--seed", "8"]).intersection(&of_seven).count(), 0);
}

#[test]
fn a_task_whose_probe_sees_nothing_is_not_accepted_and_the_exit_code_is_1() {
    let ground = Ground::new();
    ground.edit("pack/tasks/triple/probes/judge_model.py", "int(rng.integers(10, 1000))", "2");
    let said = ground.infradev(&["accept", "pack"]).exits(1);
    assert!(said.out.contains("triple: not accepted"), "{}", said.out);
    assert!(said.out.contains("large-numbers"), "{}", said.out);
}

#[test]
fn a_judge_that_fails_by_itself_rejects_no_patch() {
    let ground = Ground::new();
    ground.edit(
        "pack/tasks/triple/probes/judge_model.py",
        "    expect.equal(w.observe(\"observe_model.triple_of\", x=x)[0][\"y\"], 3 * x)\n",
        "    y = w.observe(\"observe_model.triple_of\", x=x)[0][\"y\"]\n    expect.equal({3 * x: y}[y], 3 * x)\n",
    );
    let said = ground.infradev(&["accept", "pack", "--json"]).exits(1);
    let task = &said.json()["tasks"][0];
    assert_eq!(task["rejected"]["base"], true, "{task}");
    assert_eq!(task["rejected"]["large-numbers"], false, "{task}");
    assert_eq!(task["cases"][0]["words"]["large-numbers"], "error", "{task}");
    let tried = ground
        .infradev(&["probe", "try", "pack/tasks/triple", "any_number", "--patch", "large-numbers"])
        .exits(1);
    assert!(tried.out.contains("the judge failed by itself"), "{}", tried.out);
    let graded = ground.infradev(&["grade", "pack", "--patches", "adversarial", "--json"]).exits(0);
    assert_eq!(graded.json()["submissions"][0]["verdict"], "unresolved");
}

#[test]
fn a_task_whose_prompt_gives_golden_away_or_leaves_out_what_probes_touch_is_not_accepted() {
    let ground = Ground::new();
    ground.write("pack/tasks/triple/spec.md", "# Add triple\n\nLet it `return 3 * x`.\n");
    ground.write("pack/tasks/triple/contract.toml", "schema = 1\n");
    let said = ground.infradev(&["accept", "pack", "--json", "--no-write"]).exits(1).json();
    assert_eq!(said["tasks"][0]["accepted"], false);
    assert_eq!(
        said["tasks"][0]["reasons"],
        serde_json::json!([
            "spec.md:3: a statement of golden's stands here: `return 3 * x` (toy/model.py:6)",
            "tests/test_model.py:9: the function `toy.model.triple` is touched here, golden adds it (toy/model.py:5), and \
             contract.toml does not state it",
        ])
    );
}

#[test]
fn what_the_contract_allows_is_no_reason_and_the_record_says_that_it_does() {
    let ground = Ground::new();
    ground.write("pack/tasks/triple/spec.md", "# Add triple\n\nLet it `return 3*x`.\n");
    let allow =
        "\n[[allow]]\nrule = \"body-line\"\ntext = \"return 3 * x\"\nwhy = \"it is what triple means\"\n";
    let contract = ground.read("pack/tasks/triple/contract.toml");
    ground.write("pack/tasks/triple/contract.toml", &(contract + allow));
    let said = ground.infradev(&["accept", "pack", "--json", "--no-write"]).exits(0).json();
    let remarks = said["tasks"][0]["remarks"].to_string();
    let told = "contract.toml lets `return 3 * x` stand, which golden has, too (body-line), because: it is what triple means";
    assert!(remarks.contains(told), "{remarks}");
}

#[test]
fn an_adversarial_patch_that_misses_a_deadline_is_tried_again_and_one_that_hangs_is_refused() {
    let ground = Ground::new();
    ground.edit(
        "pack/tasks/triple/adversarial/large-numbers.toml",
        "return 3 * x if x < 10 else 4 * x",
        HANGS,
    );
    ground.edit("pack/tasks/triple/task.toml", "case = 10.0", "case = 5.0");
    let said = ground.infradev(&["accept", "pack", "--json", "--no-write", "--runs", "1"]).exits(1).json();
    let task = &said["tasks"][0];
    let reason = "large-numbers does not fool the official tests: tests/test_model.py::test_triple timeout at world size 1";
    assert!(task["reasons"].as_array().unwrap().contains(&reason.into()), "{task:#}");
    let again = "at world size 1 large-numbers missed a deadline of the official tests, and was tried again";
    assert!(task["remarks"].as_array().unwrap().contains(&again.into()), "{task:#}");
}

/// Golden with a private function and a local name, and a probe that asks for that name.
fn over_fitted() -> Ground {
    let ground = Ground::new();
    ground.write(
        "pack/tasks/triple/golden.patch",
        "\
diff --git a/toy/model.py b/toy/model.py
--- a/toy/model.py
+++ b/toy/model.py
@@ -1,2 +1,11 @@
 def double(x):
     return 2 * x
+
+
+def _scaled(x, factor):
+    return factor * x
+
+
+def triple(x):
+    total = _scaled(x, 3)
+    return total
",
    );
    ground.edit(
        "pack/tasks/triple/adversarial/large-numbers.toml",
        "find = \"return 3 * x\"",
        "find = \"_scaled(x, 3)\"",
    );
    ground.edit(
        "pack/tasks/triple/adversarial/large-numbers.toml",
        "with = \"return 3 * x if x < 10 else 4 * x\"",
        "with = \"_scaled(x, 3 if x < 10 else 4)\"",
    );
    let observer = ground.read("pack/tasks/triple/probes/observe_model.py");
    let names = "\n\n@observer\ndef names(x):\n    from toy.model import triple\n\n    triple(x)\n    return {\"names\": list(triple.__code__.co_varnames)}\n";
    ground.write("pack/tasks/triple/probes/observe_model.py", &(observer + names));
    let judge = ground.read("pack/tasks/triple/probes/judge_model.py");
    let case = "\n\n@case(worlds=[1], checks=\"numbers\")\ndef the_sum_is_called_total(worlds, rng):\n    w = worlds.open()\n    \
                expect.true(\"total\" in w.observe(\"observe_model.names\", x=1)[0][\"names\"], \"it is called total\")\n";
    ground.write("pack/tasks/triple/probes/judge_model.py", &(judge + case));
    ground
}

#[test]
fn a_probe_that_asks_how_golden_is_written_is_named_over_fitted_and_no_other() {
    let ground = over_fitted();
    let said = ground.infradev(&["accept", "pack", "--json", "--no-write"]).exits(1).json();
    let task = &said["tasks"][0];
    let found = task["over_fitted"].as_array().unwrap();
    assert!(!found.is_empty(), "{task:#}");
    for one in found {
        assert_eq!(one["case"], "probes/judge_model.py::the_sum_is_called_total[world=1]", "{one}");
        assert_eq!(one["world"], 1);
    }
    let renamed = "renamed-locals of toy/model.py::triple";
    assert!(found.iter().any(|one| one["rewrite"] == renamed), "{found:?}");
    let reasons = task["reasons"].as_array().unwrap();
    let [reason] = &reasons[..] else { panic!("{reasons:?}") };
    assert!(reason.as_str().unwrap().contains("the_sum_is_called_total[world=1] is over-fitted"), "{reason}");
    let (tried, of) = (task["rewrites"]["tried"].as_u64().unwrap(), task["rewrites"]["of"].as_u64().unwrap());
    assert!(2 <= tried && tried <= of, "{tried} of {of}");

    // Fewer are tried where that is asked; without any, nothing is found.
    let one = ground.infradev(&["accept", "pack", "--json", "--no-write", "--rewrites", "1"]).json();
    assert_eq!(one["tasks"][0]["rewrites"]["tried"], 1);
    let none =
        ground.infradev(&["accept", "pack", "--json", "--no-write", "--rewrites", "0"]).exits(0).json();
    assert_eq!(none["tasks"][0]["rewrites"]["tried"], 0);
    assert_eq!(none["tasks"][0]["accepted"], true);
    let said = ground.infradev(&["accept", "pack", "--rewrites", "some"]).exits(2);
    assert!(said.err.contains("a number of rewrites, or all"), "{}", said.err);

    // Synthesis says the same, in its sessions.
    let said = ground.infradev(&["synthesize", "pack", "--json", "--rewrites", "all"]).exits(0).json();
    let rewrites = said["tasks"][0]["rewrites"].as_array().unwrap();
    assert_eq!(rewrites.len() as u64, of);
    let renamed = rewrites.iter().find(|record| record["rewrite"] == renamed).unwrap();
    assert_eq!(renamed["failed"][0]["suite"], "probe", "{renamed}");
    for by in rewrites.iter().filter_map(|record| record["failed"].as_array()).flatten() {
        assert_eq!(by["case"], "probes/judge_model.py::the_sum_is_called_total[world=1]", "{by}");
    }
    let said = ground.infradev(&["synthesize", "pack"]).exits(0);
    assert!(said.out.contains("triple: over-fitted tests, which fail golden written anew"), "{}", said.out);
    assert!(
        said.out.contains("fails renamed-locals of toy/model.py::triple at world size 1"),
        "{}",
        said.out
    );
}
