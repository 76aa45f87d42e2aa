//! What is only read: help, schemas, runs, the machine.

mod ground;

use ground::Ground;

#[test]
fn help_says_what_each_command_does_with_examples() {
    let ground = Ground::new();
    let mut told = String::new();
    for command in [
        &["--help"][..],
        &["accept", "--help"],
        &["grade", "--help"],
        &["synthesize", "--help"],
        &["probe-gaps", "--help"],
        &["probe", "try", "--help"],
        &["new", "--help"],
        &["contract", "draft", "--help"],
        &["contract", "lint", "--help"],
        &["label", "--help"],
        &["prompt", "--help"],
        &["canary", "--help"],
        &["run", "show", "--help"],
        &["env", "--help"],
        &["env", "gc", "--help"],
        &["doctor", "--help"],
        &["schema", "--help"],
    ] {
        let wide = [("COLUMNS", "100")];
        let said = ground.tool_with(&wide, env!("CARGO_BIN_EXE_infradev"), command).exits(0);
        told += &format!("$ infradev {}\n{}\n", command.join(" "), said.out);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn every_schema_is_valid_json_and_named_in_the_list() {
    let ground = Ground::new();
    let names = ground.infradev(&["schema"]).exits(0).out;
    assert!(names.lines().any(|name| name == "grade"), "{names}");
    for name in names.lines() {
        assert!(ground.infradev(&["schema", name]).exits(0).json()["$schema"].is_string());
    }
}

#[test]
fn a_run_is_shown_with_its_trials_verdicts_and_the_damaged_lines_of_its_journal() {
    let ground = Ground::new();
    ground.infradev(&["grade", "pack", "--patches", "base", "--quiet"]).exits(0);
    let shown = ground.infradev(&["run", "show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["state"], "finished");
    assert_eq!(shown["grade"]["submissions"][0]["verdict"], "unresolved");
    let trials = shown["trials"].as_array().unwrap();
    let states: Vec<&str> = trials.iter().map(|trial| trial["state"].as_str().unwrap()).collect();
    // The submission `base` is the trial that calibrated it.
    assert_eq!(states, ["finished"; 3], "golden, base, base with its own tests");

    let id = shown["run"]["id"].as_str().unwrap();
    let journal = format!("home/runs/{id}/journal.jsonl");
    let mut lines: Vec<String> = ground.read(&journal).lines().map(str::to_string).collect();
    lines[2].replace_range(5..9, "****");
    lines.push("{\"half".into());
    ground.write(&journal, &lines.join("\n"));
    let said = ground.infradev(&["run", "show", id]).exits(0);
    assert!(said.out.contains("finished"), "{}", said.out);
    assert!(said.err.contains(&format!("warning: HERE/{journal}:3: ")), "{}", said.err);
    assert!(said.err.contains(&format!("warning: HERE/{journal}:{}: ", lines.len())), "{}", said.err);
}

#[test]
fn what_is_only_read_is_read_from_a_store_that_cannot_be_written() {
    let ground = Ground::new();
    ground.infradev(&["grade", "pack", "--patches", "base", "--quiet"]).exits(0);
    let is_root = nix::unistd::geteuid().is_root();
    // A mount of its own: root, whom modes do not stop, could write otherwise.
    let program = env!("CARGO_BIN_EXE_infradev");
    let read_only = |command: &str| {
        let script = format!(
            "mount --bind home home && mount -o remount,ro,bind home && ! touch home/x 2>/dev/null && \"$0\" {command}"
        );
        let own: &[&str] = if is_root { &["--mount"] } else { &["--map-root-user", "--mount"] };
        ground.tool("unshare", &[own, &["bash", "-c", &script, program]].concat())
    };
    let listed = read_only("run list").exits(0);
    assert!(listed.out.contains(" finished "), "{}", listed.out);
    let shown = read_only("run show last").exits(0);
    assert!(shown.out.contains("3 trials finished of 3 begun"), "{}", shown.out);
    let prompt = read_only("prompt pack/tasks/triple").exits(0);
    assert!(prompt.out.contains("Add triple"), "{}", prompt.out);
    if is_root {
        // A sandbox in a user's namespace of its own is more than each machine grants.
        let probes = read_only("probe list pack/tasks/triple").exits(0);
        assert!(probes.out.contains("zero_stays_zero"), "{}", probes.out);
    }
    read_only("contract lint pack/tasks/triple").exits(0);
    let refused = read_only("grade pack --patches golden").exits(3);
    assert!(refused.err.contains("HERE/home/") && refused.err.contains("Read-only"), "{}", refused.err);
}

#[test]
fn no_runs_yet_is_no_error() {
    let ground = Ground::new();
    let said = ground.infradev(&["run", "list"]).exits(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", "no runs yet\n"));
    ground.infradev(&["run", "show", "last"]).exits(2);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let ground = Ground::new();
    let pipe =
        format!("{} schema grade | head -c 1; echo \"${{PIPESTATUS[0]}}\"", env!("CARGO_BIN_EXE_infradev"));
    let said = ground.tool("bash", &["-c", &pipe]).exits(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("{0\n", ""));
}
