//! `infradev attempt` where an agent cannot be started: nothing is begun, and what to do is said.

mod ground;
mod harm;
mod scripted;

use ground::Ground;
use scripted::ground;
use serde_json::json;

#[test]
fn a_prompt_that_no_program_can_be_started_with_is_refused_for_its_task_alone() {
    let ground = ground();
    for file in ["task.toml", "spec.md", "contract.toml", "golden.patch", "official.patch"] {
        ground.write(&format!("pack/tasks/long/{file}"), &ground.read(&format!("pack/tasks/triple/{file}")));
    }
    ground.edit("pack/tasks/long/task.toml", "id = \"triple\"", "id = \"long\"");
    let spec = ground.read("pack/tasks/long/spec.md");
    let long = format!("{spec}\n{}\n", "A line of the specification.\n".repeat(6000));
    ground.write("pack/tasks/long/spec.md", &long);
    ground.write("argument.toml", &AGENT_BY_ARGUMENT.replace("PROMPT", "argument"));
    let args = ["attempt", "pack", "--agent", "argument.toml", "--json"];
    let plan = ground.infradev(&[&args[..], &["--plan"]].concat()).exits(0).json();
    let refused = "agent argument is given its prompt as an argument, which has 131071 bytes at most";
    let rows = plan["planned"].as_array().unwrap();
    let row = |task: &str| rows.iter().find(|row| row["task"] == task).unwrap();
    assert!(row("long")["refused"].as_str().unwrap().starts_with(refused), "{plan:#}");
    assert_eq!((&row("long")["hours"], row("triple").get("refused")), (&json!(0.0), None), "{plan:#}");
    let document = ground.infradev(&args).exits(0).json();
    let records = document["submissions"].as_array().unwrap();
    let of = |task: &str| records.iter().find(|record| record["task"] == task).unwrap();
    assert_eq!(of("triple")["ending"], "finished", "{document:#}");
    let long = of("long");
    assert_eq!((&long["ending"], &long["patch_bytes"]), (&json!("refused"), &json!(0)), "{long:#}");
    let detail = long["detail"].as_str().unwrap();
    assert!(detail.starts_with(refused) && detail.contains("shorten spec.md"), "{detail}");
    let shown = ground.infradev(&args[..4]).exits(0);
    assert!(shown.out.contains("refused"), "{}", shown.out);
    ground.write("argument.toml", &AGENT_BY_ARGUMENT.replace("PROMPT", "stdin"));
    let document = ground.infradev(&args).exits(0).json();
    let endings = document["submissions"].as_array().unwrap().iter().map(|record| &record["ending"]);
    assert!(endings.into_iter().all(|ending| ending == "finished"), "{document:#}");
}

/// An agent that reads nothing.
const AGENT_BY_ARGUMENT: &str = "
schema = 1
name = \"argument\"
version = \"1\"
[run]
command = [\"true\"]
prompt = \"PROMPT\"
";

#[test]
fn an_agent_without_a_key_without_a_model_or_unknown_is_refused_with_what_to_do() {
    let ground = ground();
    let refused = |args: &[&str]| {
        let all: Vec<&str> = ["attempt", "pack"].iter().chain(args).copied().collect();
        ground
            .tool("env", &[&["-u", "ANTHROPIC_API_KEY", env!("CARGO_BIN_EXE_infradev")], &all[..]].concat())
            .err
    };
    ground.write("bad.toml", "schema = 1\nname = \"bad\"\nversion = \"1\"\n[run]\ncomand = [\"x\"]\n");
    insta::assert_snapshot!(
        [
            refused(&["--agent", "claude-kode"]),
            refused(&["--agent", "claude-code"]),
            refused(&["--agent", "claude-code", "--model", "m"]),
            refused(&["--agent", "claude-code", "--model", "m", "--base-url", "localhost"]),
            refused(&["--agent", "command"]),
            refused(&["--agent", "command", "--command", "x", "--folder", "nowhere"]),
            refused(&["--agent", "command", "--command", "x", "--model", "m"]),
            refused(&["--agent", "bad.toml"]),
        ]
        .concat()
    );
}

#[test]
fn an_agent_that_can_not_be_installed_is_a_fault_that_says_why_and_leaves_nothing_half_made() {
    // A store of its own, without the agents that are installed.
    let ground = Ground::new();
    let none = "http://127.0.0.1:1/";
    let variables = [("npm_config_registry", none), ("UV_DEFAULT_INDEX", none), ("UV_HTTP_RETRIES", "0")];
    let install = |agent: &str, variables: &[(&str, &str)]| {
        let args = ["attempt", "pack", "--agent", agent, "--model", "m", "--base-url", none];
        ground.tool_with(variables, env!("CARGO_BIN_EXE_infradev"), &args).exits(3).err
    };
    for (agent, hint) in
        [("codex", "see `npm config get registry`"), ("mini-swe-agent", "see UV_DEFAULT_INDEX")]
    {
        let said = install(agent, &variables);
        assert!(
            said.contains(&format!("agent {agent}")) && said.contains("could not be installed"),
            "{said}"
        );
        assert!(said.contains("not reachable") && said.contains(hint), "{said}");
    }
    let said = install("codex", &[("PATH", "/nonexistent")]);
    assert!(said.contains("needs `node`") && said.contains("apt-get install nodejs npm"), "{said}");
    let folder = ground.path().join("home/agents");
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".locks"]);
    assert!(!ground.path().join("home/runs").exists(), "no run was begun");
}
