//! An agent's file that is not as it should be is refused before anything is made.

mod ground;

use ground::{Ground, Said};

fn attempt(ground: &Ground, more: &[&str], code: i32) -> Said {
    ground.infradev(&[&["attempt", "pack", "--agent"], more].concat()).exits(code)
}

#[test]
fn an_agents_file_that_is_not_there_or_lays_files_where_it_cannot_is_bad_input() {
    let ground = Ground::new();
    let said = attempt(&ground, &["/nope.toml"], 4).err;
    assert!(said.contains("/nope.toml: cannot be read: No such file"), "{said}");
    let text = "schema = 1\nname = \"x\"\nversion = \"1\"\n[run]\ncommand = [\"true\"]\n[run.files]\n";
    ground.write("x.toml", &format!("{text}\"/workspace/toy/x.py\" = \"\"\n"));
    let said = attempt(&ground, &["x.toml"], 4).err;
    assert!(said.contains("x.toml:6: key `run.files`: `/workspace/toy/x.py` lies in /workspace"), "{said}");
    assert!(!ground.path().join("home/runs").exists(), "no run was begun");
}

#[test]
fn an_agent_of_ones_own_that_is_of_another_version_than_its_file_says_is_refused() {
    let ground = Ground::new();
    let file = |probe: &str| {
        let head = "schema = 1\nname = \"x\"\nversion = \"9.9\"\n";
        ground.write("x.toml", &format!("{head}probe = {probe}\n[run]\ncommand = [\"true\"]\n"));
        attempt(&ground, &["x.toml"], 4).err
    };
    let said = file("[\"echo\", \"x 3.11\"]");
    assert!(said.contains("agent x is not of version 9.9: `echo x 3.11` answers: x 3.11"), "{said}");
    let said = file("[\"no-such-program\", \"--version\"]");
    assert!(said.contains("`no-such-program` not found"), "{said}");
}

#[test]
fn a_model_without_a_name_is_refused_as_it_is_typed() {
    let ground = Ground::new();
    for name in ["", " "] {
        let said = attempt(&ground, &["codex", "--model", name], 2).err;
        assert!(said.contains("a name that the endpoint knows"), "{said}");
    }
    let help = ground.infradev(&["attempt", "--help"]).exits(0).out;
    for agent in ["claude-code", "codex", "mini-swe-agent", "qwen-code", "openhands", "gemini-cli"] {
        assert!(help.contains(agent), "{agent}: {help}");
    }
}

#[test]
fn a_key_that_no_header_can_hold_is_bad_input_before_anything_starts() {
    let ground = Ground::new();
    let key = [("OPENAI_API_KEY", "sk-abc\n")];
    for more in [&["--plan"][..], &["--base-url", "http://127.0.0.1:1/v1"], &[]] {
        let args = [&["attempt", "pack", "--agent", "codex", "--model", "m"], more].concat();
        let said = ground.tool_with(&key, env!("CARGO_BIN_EXE_infradev"), &args).exits(4).err;
        let what =
            "error: OPENAI_API_KEY holds a key that no header can hold: character 7 of 7 is a line's end";
        assert!(said.starts_with(what), "{said}");
        assert!(said.contains("hint: set it to the key alone, such as by $(cat FILE)"), "{said}");
        assert!(!said.contains("sk-abc"), "{said}");
    }
    assert!(!ground.path().join("home/runs").exists(), "no run was begun");
    assert!(!ground.path().join("home/agents").exists(), "and nothing installed");
}

#[test]
fn a_word_that_an_agents_program_takes_for_a_model_of_its_choice_is_refused_with_full_ids() {
    let ground = Ground::new();
    for (agent, word, id) in [("gemini-cli", "pro", "gemini-"), ("claude-code", "sonnet", "claude-sonnet-")] {
        let said = attempt(&ground, &[agent, "--model", "m", "--model", word], 2).err;
        assert!(said.contains(&format!("`{word}` is no model to agent {agent}")), "{said}");
        assert!(said.contains(&format!("give its full id, such as --model {id}")), "{said}");
    }
    assert!(!ground.path().join("home/agents").exists(), "nothing was installed");
}
