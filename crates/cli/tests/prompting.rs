//! `infradev prompt`: the core tasks' prompts whole, and the arm of the pull request's description.

mod ground;

use ground::{Ground, repository};

const CORE: [&str; 3] = ["expert-dispatch", "prefix-cache", "weight-sync"];

#[test]
fn the_core_tasks_prompts_have_the_four_parts() {
    let ground = Ground::new();
    for id in CORE {
        let task = repository().join("packs/core/tasks").join(id).display().to_string();
        let text = ground.infradev(&["prompt", &task]).exits(0).out;
        insta::assert_snapshot!(id, text);
        let document = ground.infradev(&["prompt", &task, "--json"]).exits(0).json();
        assert_eq!(document["text"], text);
        let parts: Vec<&str> =
            document["parts"].as_array().unwrap().iter().map(|part| part["part"].as_str().unwrap()).collect();
        assert_eq!(parts, ["specification", "autonomy", "contract", "execution"]);
    }
}

#[test]
fn gpus_one_rank_a_time_limit_and_an_empty_contract_are_told() {
    let ground = Ground::new();
    ground.edit("pack/tasks/triple/task.toml", "worlds = [1]", "worlds = [8]\ngpus = 8");
    ground.write("pack/tasks/triple/contract.toml", "schema = 1\n");
    let text = ground.infradev(&["prompt", "pack", "--minutes", "150"]).exits(0).out;
    for words in [
        "You have 150 minutes",
        "on 8 GPUs at a world size of 8",
        "torchrun --nproc-per-node 8",
        "no name that is not in the tree already",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    ground.edit("pack/tasks/triple/task.toml", "worlds = [8]\ngpus = 8", "worlds = [1]");
    let text = ground.infradev(&["prompt", "pack/tasks/triple"]).exits(0).out;
    assert!(text.contains("in one process (a world size of 1) on the CPU"), "{text}");
    assert!(!text.contains("torchrun"), "{text}");
}

#[test]
fn the_arm_of_the_description_has_it_in_place_of_specification_and_contract() {
    let ground = Ground::new();
    ground.write("pack/tasks/triple/spec.md", "# Add triple\n\nSPECIFIED\n");
    ground.write("pack/tasks/triple/description.md", "# Triple (#7)\n\nTwo are not enough.\n");
    let said = ground.infradev(&["prompt", "pack", "--arm", "pr-description", "--json"]).exits(0).json();
    let text = said["text"].as_str().unwrap();
    assert!(text.starts_with("# Triple (#7)\n\nTwo are not enough.\n\n## How to work\n"), "{text}");
    assert!(text.contains("## How it is run"), "{text}");
    assert!(!text.contains("SPECIFIED") && !text.contains("Interface contract"), "{text}");
    assert_eq!(said["arm"], "pr-description");
}

#[test]
fn what_can_not_be_rendered_is_told_with_what_to_do() {
    let ground = Ground::new();
    let mut told = String::new();
    for (what, args) in [
        ("no description", &["prompt", "pack", "--arm", "pr-description"][..]),
        ("no such arm", &["prompt", "pack", "--arm", "description"]),
        ("no task", &["prompt", "pack/repo"]),
        ("no minutes", &["prompt", "pack", "--minutes", "0"]),
    ] {
        let said = ground.infradev(args);
        told += &format!("# {what}: exit {}\n{}\n", said.code, said.err);
    }
    ground.write("pack/tasks/triple/description.md", " \n");
    let said = ground.infradev(&["prompt", "pack", "--arm", "pr-description"]);
    told += &format!("# an empty description: exit {}\n{}\n", said.code, said.err);
    let core = repository().join("packs/core").display().to_string();
    let said = ground.infradev(&["prompt", &core]);
    let err = said.err.replace(&repository().display().to_string(), "REPOSITORY");
    told += &format!("# a pack of several tasks: exit {}\n{err}\n", said.code);
    insta::assert_snapshot!(told);
}

#[test]
fn a_prompt_is_made_of_public_files_alone() {
    let ground = Ground::new();
    let whole = ground.infradev(&["prompt", "pack"]).exits(0).out;
    for sealed in ["golden.patch", "official.patch", "probes", "adversarial"] {
        let path = ground.path().join("pack/tasks/triple").join(sealed);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(ground.infradev(&["prompt", "pack"]).exits(0).out, whole);
}
