//! `infradev contract`: the core tasks are in order, and stay so only as they are.

mod ground;

use std::path::Path;

use ground::{Ground, repository};

const CORE: [&str; 3] = ["expert-dispatch", "prefix-cache", "weight-sync"];

/// A copy of the core pack's sealed and public files over its own base tree.
fn core(ground: &Ground) {
    copy(&repository().join("packs/core"), &ground.path().join("core"));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn lint(ground: &Ground, id: &str) -> ground::Said {
    ground.infradev(&["contract", "lint", &format!("core/tasks/{id}")])
}

#[test]
fn the_core_tasks_contracts_are_in_order() {
    let ground = Ground::new();
    core(&ground);
    let mut told = String::new();
    for id in CORE {
        told += &lint(&ground, id).exits(0).out;
    }
    insta::assert_snapshot!(told);
}

#[test]
fn each_name_that_is_taken_out_of_a_core_contract_is_missed() {
    let ground = Ground::new();
    core(&ground);
    let mut told = String::new();
    for id in CORE {
        let file = format!("core/tasks/{id}/contract.toml");
        let whole = ground.read(&file);
        let entries: Vec<&str> = whole.split("\n[[name]]\n").collect();
        for out in 1..entries.len() {
            let name = entries[out].lines().next().unwrap();
            let rest: Vec<&str> =
                entries.iter().enumerate().filter(|(at, _)| *at != out).map(|(_, entry)| *entry).collect();
            ground.write(&file, &(rest.join("\n[[name]]\n") + "\n"));
            let said = lint(&ground, id);
            told += &format!("without {name}: exit {}\n", said.code);
            for line in said.out.lines().filter(|line| !line.starts_with(id)) {
                told += &format!("  {line}\n");
            }
        }
        ground.write(&file, &whole);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn what_gives_golden_away_is_found_with_its_line() {
    let ground = Ground::new();
    core(&ground);
    let mut told = String::new();
    for (id, leak) in [
        (
            "expert-dispatch",
            "Sort with `by_weight = probs.detach().flatten().argsort(descending=True, stable=True)`.",
        ),
        ("expert-dispatch", "Then over = places >= capacity says which go."),
        ("expert-dispatch", "Keep what is needed for the way back in `_by_expert`."),
        ("prefix-cache", "A `PrefixNode` for each block, with an epoch."),
        ("prefix-cache", "Call on_evict when a block goes."),
        ("weight-sync", "Use -(-end // _ALIGNMENT) * _ALIGNMENT."),
        ("weight-sync", "It says: weights are synchronised between two ranks or more"),
        // The same in other spellings.
        ("expert-dispatch", "- `over=(places>=capacity)`"),
        ("expert-dispatch", "Each begins at\n\n    n.cumsum(dim=0)\n      - n"),
        (
            "expert-dispatch",
            "They come sorted by rank, then expert; *experts* want them by\nexpert, then rank.",
        ),
        ("prefix-cache", "Go over `range(0, len(prompt)-self.block_size+1, self.block_size)`."),
    ] {
        let file = format!("core/tasks/{id}/spec.md");
        let whole = ground.read(&file);
        ground.write(&file, &format!("{whole}\n{leak}\n"));
        told += &format!("{leak}\n");
        for line in lint(&ground, id).exits(1).out.lines().filter(|line| !line.starts_with(id)) {
            told += &format!("  {line}\n");
        }
        ground.write(&file, &whole);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_leak_that_the_contract_allows_passes_and_an_allowance_of_nothing_is_told() {
    let ground = Ground::new();
    core(&ground);
    let (spec, contract) = ("core/tasks/expert-dispatch/spec.md", "core/tasks/expert-dispatch/contract.toml");
    ground.write(spec, &(ground.read(spec) + "\nIt is over = places >= capacity then.\n"));
    let whole = ground.read(contract);
    let allow = |rule: &str, text: &str, why: &str| {
        format!("{whole}\n[[allow]]\nrule = \"{rule}\"\ntext = \"{text}\"\nwhy = \"{why}\"\n")
    };
    let mut told = String::new();
    for (rule, text, why) in [
        ("body-line", "over=places>=capacity", "the comparison is the promise"),
        ("body-line", "under = places < capacity", "the comparison is the promise"),
        ("body-line", "over=places>=capacity", "so it is"),
        ("missing", "over=places>=capacity", "the comparison is the promise"),
    ] {
        ground.write(contract, &allow(rule, text, why));
        let said = lint(&ground, "expert-dispatch");
        told += &format!("# {rule} {text}, {why}: exit {}\n{}{}\n", said.code, said.out, said.err);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_contract_that_says_more_than_golden_has_or_tests_touch_is_told() {
    let ground = Ground::new();
    core(&ground);
    let file = "core/tasks/weight-sync/contract.toml";
    let whole = ground.read(file);
    let mut told = String::new();
    for (what, entry) in [
        ("a name that is not there", "name = \"ministack.rl.sync.Barrier\"\nkind = \"class\"\n"),
        (
            "untouched",
            "name = \"ministack.inference.Engine.weights_changed\"\nkind = \"method\"\nsignature = \"(version: int) -> None\"\n",
        ),
        (
            "marked",
            "name = \"ministack.inference.Engine.weights_changed\"\nkind = \"method\"\nuntested = \"others call it\"\n",
        ),
        (
            "another signature",
            "name = \"ministack.inference.Engine.weights_changed\"\nkind = \"method\"\nsignature = \"(number)\"\nuntested = \"others call it\"\n",
        ),
        (
            "no signature",
            "name = \"ministack.inference.Engine.weights_changed\"\nkind = \"method\"\nsignature = \"(version\"\nuntested = \"x\"\n",
        ),
        ("twice", "name = \"ministack.rl.sync.plan_buckets\"\nkind = \"function\"\n"),
        ("no name", "name = \"two words\"\nkind = \"function\"\n"),
    ] {
        ground.write(file, &format!("{whole}\n[[name]]\n{entry}"));
        let said = lint(&ground, "weight-sync");
        told += &format!("# {what}: exit {}\n{}{}\n", said.code, said.out, said.err);
    }
    ground.write(
        file,
        &whole.replace("about = \"A tensor as it travels.\"", "untested = \"nobody makes one\""),
    );
    let said = lint(&ground, "weight-sync");
    told += &format!("# touched all the same: exit {}\n{}\n", said.code, said.out);
    insta::assert_snapshot!(told);
}

#[test]
fn a_drafted_contract_is_in_order_once_it_is_written() {
    let ground = Ground::new();
    core(&ground);
    let mut told = String::new();
    for id in CORE {
        let task = format!("core/tasks/{id}");
        let text = ground.infradev(&["contract", "draft", &task]).exits(0).out;
        told += &format!("# {id}\n{text}\n");
        ground.infradev(&["contract", "draft", &task, "--write"]).exits(2);
        ground.write(&format!("{task}/contract.toml"), "schema = 1\n");
        ground.infradev(&["contract", "draft", &task, "--write"]).exits(0);
        assert_eq!(ground.read(&format!("{task}/contract.toml")), text);
        lint(&ground, id).exits(0);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn an_official_test_that_is_no_python_is_a_finding_and_nothing_is_said_of_what_it_touches() {
    let ground = Ground::new();
    ground.edit("pack/tasks/triple/official.patch", "assert triple(2) == 6", "assert triple(2) ==");
    ground.write("pack/tasks/triple/contract.toml", "schema = 1\n");
    for probe in ["observe_model.py", "judge_model.py"] {
        ground.write(&format!("pack/tasks/triple/probes/{probe}"), "X = 1\n");
    }
    let said = ground.infradev(&["contract", "lint", "pack/tasks/triple"]).exits(1);
    let drafted = ground.infradev(&["contract", "draft", "pack/tasks/triple"]).exits(0);
    insta::assert_snapshot!(format!("{}{}\n# draft\n{}{}", said.out, said.err, drafted.out, drafted.err));
    let prompt = ground.infradev(&["prompt", "pack/tasks/triple"]).exits(0).out;
    assert!(!prompt.contains("The tests use"), "{prompt}");
    // A probe is one, too.
    ground.edit("pack/tasks/triple/official.patch", "assert triple(2) ==", "assert triple(2) == 6");
    ground.write("pack/tasks/triple/probes/judge_model.py", "X =\n");
    let said = ground.infradev(&["contract", "lint", "pack/tasks/triple"]).exits(1);
    assert!(said.out.starts_with("probes/judge_model.py:"), "{}", said.out);
}
