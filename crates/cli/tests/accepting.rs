//! `infradev accept` on a small pack.

mod ground;

use ground::Ground;

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
