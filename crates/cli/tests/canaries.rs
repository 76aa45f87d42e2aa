//! The contamination canary: in every sealed file of a pack, in no public one, and in nothing that a trial is keyed by.

mod ground;

use ground::Ground;

const GUID: &str = "0b6e2f0a-5d3c-4a1e-9f57-2c8d1e4b7a90";

fn with_canary() -> Ground {
    let ground = Ground::new();
    ground.write(
        "pack/tasks/triple/adversarial/small.toml",
        "schema = 1\npromise = \"zero stays zero\"\npatch = \"small.patch\"\n",
    );
    ground.write(
        "pack/tasks/triple/adversarial/small.patch",
        "--- a/toy/model.py\n+++ b/toy/model.py\n@@ -3,4 +3,4 @@\n \n \n def triple(x):\n-    return 3 * x\n+    return 3 * x or 1\n",
    );
    ground.write("pack/tasks/triple/equivalent.toml", "schema = 1\n");
    ground.edit("pack/pack.toml", "license =", &format!("canary = \"{GUID}\"\nlicense ="));
    ground
}

#[test]
fn files_that_lack_it_or_have_it_and_should_not_are_told_and_mended() {
    let ground = with_canary();
    ground.write("pack/repo/toy/data.py", &format!("# {GUID}\n"));
    let mut told = String::new();
    let mut tell = |args: &[&str]| {
        let said = ground.infradev(args);
        told += &format!("$ infradev {}: exit {}\n{}{}\n", args.join(" "), said.code, said.out, said.err);
    };
    tell(&["canary", "pack"]);
    tell(&["canary", "pack/tasks/triple", "--write"]);
    std::fs::remove_file(ground.path().join("pack/repo/toy/data.py")).unwrap();
    tell(&["canary", "pack"]);
    tell(&["canary", "pack", "--write", "--json"]);
    insta::assert_snapshot!(told);
    assert!(ground.read("pack/tasks/triple/golden.patch").lines().next().unwrap().ends_with(GUID));
    assert!(ground.read("pack/tasks/triple/probes/judge_model.py").trim_end().ends_with(GUID));
    assert!(ground.read("pack/tasks/triple/equivalent.toml").trim_end().ends_with(GUID));
    for public in ["task.toml", "spec.md", "contract.toml"] {
        assert!(!ground.read(&format!("pack/tasks/triple/{public}")).contains(GUID));
    }
    assert!(!ground.infradev(&["prompt", "pack"]).exits(0).out.contains(GUID));
}

#[test]
fn a_file_that_holds_no_comment_is_told_and_stays_as_it_was() {
    let ground = with_canary();
    ground.write("pack/tasks/triple/probes/table.json", "{}\n");
    let said = ground.infradev(&["canary", "pack", "--write"]).exits(1);
    assert_eq!(ground.read("pack/tasks/triple/probes/table.json"), "{}\n");
    assert!(said.out.contains("probes/table.json") || said.err.contains("probes/table.json"), "{}", said.out);
}

#[test]
fn an_acceptance_that_misses_it_says_what_puts_it_in() {
    let ground = with_canary();
    let said = ground.infradev(&["accept", "pack", "--rewrites", "0", "--no-write", "--quiet"]).exits(1);
    assert!(said.out.contains("golden.patch: is sealed and lacks the pack's canary"), "{}", said.out);
    assert_eq!(said.err, "hint: infradev canary pack --write\n");
    ground.infradev(&["canary", "pack", "--write"]).exits(0);
    let said = ground.infradev(&["accept", "pack", "--rewrites", "0", "--no-write", "--quiet"]);
    assert!(!said.out.contains("canary") && said.err.is_empty(), "{}\n{}", said.out, said.err);
}

#[test]
fn a_pack_without_a_canary_gets_one_of_its_own_and_a_wrong_one_is_refused() {
    let ground = Ground::new();
    let said = ground.infradev(&["canary", "pack"]).exits(4);
    assert!(
        said.err.contains("pack/pack.toml: the pack has no canary") && said.err.contains("--write"),
        "{}",
        said.err
    );
    ground.infradev(&["canary", "pack", "--write"]).exits(0);
    let text = ground.read("pack/pack.toml");
    let guid = text.split("canary = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_string();
    assert_eq!(guid.len(), 36);
    assert!(text.find("canary").unwrap() < text.find("[source]").unwrap(), "{text}");
    ground.infradev(&["canary", "pack"]).exits(0);
    ground.edit("pack/pack.toml", &guid, "no-guid");
    let said = ground.infradev(&["canary", "pack"]).exits(4);
    assert!(said.err.contains("key `canary`"), "{}", said.err);
}

#[test]
fn a_canary_costs_no_trial_and_acceptance_asks_for_it() {
    let ground = with_canary();
    let trials = |said: &ground::Said| {
        let run = said.json()["run"].as_str().unwrap().to_string();
        let mut keys: Vec<String> = std::fs::read_dir(ground.path().join(format!("home/runs/{run}/trials")))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        keys.sort();
        keys
    };
    let before = ground.infradev(&["accept", "pack", "--json", "--no-write"]).exits(1);
    let record = before.json()["tasks"][0].clone();
    let reasons = record["reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 8, "{reasons:?}");
    assert_eq!(
        reasons[0],
        "tasks/triple/adversarial/large-numbers.toml: is sealed and lacks the pack's canary"
    );

    ground.infradev(&["canary", "pack", "--write"]).exits(0);
    let after = ground.infradev(&["accept", "pack", "--json"]).exits(0);
    let record_after = after.json()["tasks"][0].clone();
    assert_eq!(record_after["canary"], GUID);
    assert_eq!(record_after["suites"], record["suites"]);
    assert_eq!(trials(&after), trials(&before), "the same trials by the same keys");
    assert!(ground.read("pack/tasks/triple/acceptance.json").contains(GUID));
    ground.infradev(&["canary", "pack"]).exits(0);
    // A patch with the canary in it is a patch still.
    let golden = ["grade", "pack", "--patches", "pack/tasks/triple/golden.patch", "--require", "resolved"];
    ground.infradev(&golden).exits(0);
}

#[test]
fn the_core_pack_s_sealed_files_have_its_canary_and_its_public_ones_have_not() {
    let ground = Ground::new();
    let core = ground::repository().join("packs/core").display().to_string();
    let said = ground.infradev(&["canary", &core]).exits(0);
    assert!(said.out.ends_with("0 files out of order\n"), "{}", said.out);
}
