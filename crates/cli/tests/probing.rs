//! `infradev probe`: the loop in which probes are written.

mod ground;

use ground::Ground;

const TASK: &str = "pack/tasks/triple";

#[test]
fn a_try_shows_expected_beside_got_and_its_seed_replays_it() {
    let ground = Ground::new();
    let try_it = |more: &[&str]| {
        let mut args = vec!["probe", "try", TASK, "tripled", "--json"];
        args.extend(more);
        ground.infradev(&args)
    };
    assert_eq!(try_it(&["--patch", "golden"]).exits(0).json()["passed"], true);
    let first = try_it(&["--patch", "large-numbers"]).exits(1).json();
    assert_eq!(first["judgement"]["rejection"], "substantive");
    let seed = first["judgement"]["seed"].as_u64().unwrap().to_string();
    let second = try_it(&["--patch", "large-numbers", "--seed", &seed]).exits(1).json();
    let expectation = &second["judgement"]["expectations"][0];
    assert_eq!(expectation, &first["judgement"]["expectations"][0]);
    let number = |key: &str| expectation[key].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(number("expected") * 4, number("got") * 3);
}

#[test]
fn a_try_says_in_words_what_went_wrong_on_which_rank() {
    let ground = Ground::new();
    let said = ground.infradev(&["probe", "try", TASK, "zero_stays", "--patch", "base"]).exits(1);
    assert!(said.out.contains("a trivial rejection"), "{}", said.out);
    assert!(said.out.contains("rank 0 error"), "{}", said.out);
    assert!(said.out.contains("cannot import name 'triple'"), "{}", said.out);
    assert!(said.out.contains("replay with --seed"), "{}", said.out);
}

#[test]
fn a_part_of_several_ids_lists_them_and_an_unknown_one_lists_all() {
    let ground = Ground::new();
    for wanted in ["judge_model", "quadrupled"] {
        let said = ground.infradev(&["probe", "try", TASK, wanted]).exits(2);
        for case in ["any_number_is_tripled[world=1]", "zero_stays_zero[world=1]"] {
            assert!(said.err.contains(&format!("probes/judge_model.py::{case}")), "{}", said.err);
        }
    }
    let said = ground.infradev(&["probe", "try", TASK, "zero", "--patch", "large-number"]).exits(2);
    assert!(said.err.contains("did you mean `large-numbers`?"), "{}", said.err);
}

#[test]
fn the_list_names_each_case_with_what_it_checks() {
    let ground = Ground::new();
    let listed = ground.infradev(&["probe", "list", TASK, "--json"]).exits(0).json();
    let checks: Vec<&str> =
        listed["cases"].as_array().unwrap().iter().map(|c| c["checks"].as_str().unwrap()).collect();
    assert_eq!(checks, ["numbers", "condition"]);
}

#[test]
fn a_mistake_in_a_probe_names_its_file_and_line() {
    let ground = Ground::new();
    ground.edit(
        "pack/tasks/triple/probes/judge_model.py",
        "from infradev_probe import case, expect",
        "import nowhere",
    );
    let said = ground.infradev(&["probe", "list", TASK]).exits(4);
    assert!(said.err.contains("judge_model.py:1: ModuleNotFoundError"), "{}", said.err);
}

#[test]
fn the_shell_sees_the_patched_tree_under_a_uid_of_its_own_and_cannot_write_it() {
    let ground = Ground::new();
    ground.write("typed", "python -c 'from toy.model import triple; print(triple(14))'\ntouch new\npwd\n");
    let run = format!("{} probe try {TASK} zero --shell < typed", env!("CARGO_BIN_EXE_infradev"));
    let said = ground.tool("sh", &["-c", &run]).exits(0);
    assert!(said.out.starts_with("42\n"), "{}", said.out);
    assert!(said.out.contains("touch: cannot touch 'new': Read-only file system"), "{}", said.out);
    assert!(said.out.ends_with("/workspace\n"), "{}", said.out);
}
