//! `infradev attempt --skill`: real agents find the skill where they look, and the record says whether they opened it.

mod ground;
mod harm;
mod scripted;

use ground::Ground;
use scripted::{Model, ground};
use serde_json::{Value, json};

const SKILL: &str = "\
---
name: reading-meters
description: Where the meters of this machine are, and how to read each of them.
---

# Reading meters

Look at the loopback's bytes before the launch and after it.
Then take the peak of the control group's memory, by `scripts/peak.sh`.
";

/// The reading of a skill by its command line, then a change of the tree.
fn script(opens: Option<&str>) -> Value {
    let change = json!({"shell": "printf '\\n\\ndef triple(x):\\n    return 3 * x\\n' >> toy/model.py"});
    let opening = opens.map(|folder| json!({"shell": format!("cat {folder}/reading-meters/SKILL.md")}));
    let mut script: Vec<Value> = opening.into_iter().collect();
    script.extend([change, json!({"done": "Done."})]);
    script.into()
}

/// Has an agent attempt the task with the skill; gives its record, its patch and what its model was asked.
fn attempt(agent: &str, base: &str, opens: Option<&str>) -> (Value, String, Vec<Value>) {
    let ground = ground();
    ground.write("meters/SKILL.md", SKILL);
    ground.write("meters/scripts/peak.sh", "cat /sys/fs/cgroup/memory.peak\n");
    let model = Model::playing(&ground, &script(opens));
    let url = format!("{}{base}", model.url());
    let args = ["attempt", "pack", "--json", "--agent", agent, "--model", "scripted", "--base-url", &url];
    let said = ground.infradev(&[&args[..], &["--skill", "meters", "--timeout", "240"]].concat()).exits(0);
    let document = said.json();
    let record = document["submissions"][0].clone();
    let (run, folder) = (document["run"].as_str().unwrap(), record["folder"].as_str().unwrap());
    let patch = ground.read(&format!("home/runs/{run}/{folder}/patch.diff"));
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert_eq!(record["skill"]["name"], "reading-meters");
    assert_eq!(record["submission"], format!("{agent}+scripted+skill=reading-meters"));
    assert!(patch.contains("def triple") && !patch.contains("meters"), "no skill enters a patch: {patch}");
    (record, patch, model.asked())
}

/// The agent's program tells its model of the skill by itself; the model opens it, or does not.
fn finds_it(agent: &str, base: &str, folder: &str) {
    for opens in [Some(folder), None] {
        let (record, _, asked) = attempt(agent, base, opens);
        let first = asked[0].to_string();
        assert!(
            first.contains("Where the meters of this machine are"),
            "{agent} lists no such skill: {first}"
        );
        assert!(!first.contains("Look at the loopback's bytes"), "{agent} shows all of it unasked");
        assert_eq!(record["skill"]["by"], "mounted");
        assert_eq!(record["skill"]["opened"], opens.is_some(), "{record:#}");
        assert_eq!(record["skill"].get("opened_s").is_some(), opens.is_some());
    }
}

#[test]
fn claude_code_finds_a_skill_in_its_own_folder_and_the_record_says_whether_it_opened_it() {
    finds_it("claude-code", "", "~/.claude/skills");
}

#[test]
fn gemini_cli_finds_a_skill_in_its_own_folder_and_the_record_says_whether_it_opened_it() {
    finds_it("gemini-cli", "", "~/.gemini/skills");
}

#[test]
fn qwen_code_finds_a_skill_in_its_own_folder_and_the_record_says_whether_it_opened_it() {
    finds_it("qwen-code", "/v1", "~/.qwen/skills");
}

#[test]
fn codex_finds_a_skill_in_its_own_folder_and_the_record_says_whether_it_opened_it() {
    finds_it("codex", "/v1", "~/.codex/skills");
}

#[test]
fn an_agent_without_skills_is_given_the_text_in_its_prompt_and_the_files_beside() {
    let (record, _, asked) = attempt("mini-swe-agent", "/v1", Some("/opt/skills"));
    assert_eq!(record["skill"]["by"], "appended");
    assert_eq!(record["skill"].get("opened"), None, "nothing was left to open");
    let first = asked[0].to_string();
    assert!(first.contains("Look at the loopback's bytes"), "{first}");
    assert!(first.contains("Its other files are in `/opt/skills/reading-meters`"), "{first}");
    let read = asked[1].to_string();
    assert!(read.matches("name: reading-meters").count() > 0, "its folder is there: {read}");
}

#[test]
fn what_is_no_skill_is_refused_before_a_run_begins() {
    let ground = Ground::new();
    ground.write("empty/README.md", "");
    ground.write("bare/SKILL.md", "# No front matter\n");
    ground.write("nameless/SKILL.md", "---\ndescription: d\n---\n");
    ground.write("leading/SKILL.md", SKILL);
    std::os::unix::fs::symlink("/etc/passwd", ground.path().join("leading/passwd")).unwrap();
    let refused = |skill: &str, agent: &str, code: i32| {
        let args = ["attempt", "pack", "--agent", agent, "--command", "true", "--skill", skill];
        ground.infradev(&args).exits(code).err
    };
    let said = ["nowhere", "empty", "bare", "nameless", "leading"]
        .map(|skill| refused(skill, "command", if skill == "nowhere" { 2 } else { 4 }));
    let built_in =
        ground.infradev(&["attempt", "pack", "--agent", "golden", "--skill", "leading"]).exits(2).err;
    insta::assert_snapshot!(said.concat() + &built_in);
    assert!(!ground.path().join("home/runs").exists(), "no run was begun");
}
