//! Real agents, as installed from their registries, on a scripted model: each makes golden's change by calls of its own tools, is
//! metered on both sides, and leaves a trajectory that Harbor takes.

mod ground;
mod harbor;
mod harm;
mod scripted;

use infradev_model::atif::{StepSource, Trajectory};
use scripted::{KEY, Model, RIGHT, attempt_with, ground, kept, verdict};
use serde_json::{Value, json};

struct Agent {
    name: &'static str,
    /// Path of the endpoint.
    base: &'static str,
    /// Where its requests bear the key.
    header: &'static str,
    /// Tokens of reasoning, of the 20 of answers: as the endpoint tells them, as the agent does.
    reasoning: [u64; 2],
    /// Hosts that it asks at each start, whatever its settings.
    asks: &'static [&'static str],
}

fn makes_the_change(agent: &Agent) {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"shell": RIGHT}, {"done": "Added triple."}]));
    let url = format!("{}{}", model.url(), agent.base);
    let args = ["--agent", agent.name, "--model", "scripted", "--base-url", &url, "--timeout", "240"];
    let (record, document) = attempt_with(&ground, &[("PATH", &harbor::path())], &args, 0);
    assert_eq!(record["ending"], "finished", "{record:#}");
    let lookups = record["lookups"].as_array().unwrap();
    let asks = |lookup: &Value| agent.asks.iter().any(|host| lookup["target"] == *host);
    assert!(lookups.iter().all(asks), "what else it asks for by itself is switched off: {record:#}");
    assert_eq!(record["left_running"], json!([]));
    assert_eq!(record["metered"]["requests"], 2, "{record:#}");
    assert_eq!(record["metered"]["unmetered"], 0);
    let [metered, own] = agent
        .reasoning
        .map(|reasoning| json!({"input": 200, "cached": 80, "output": 20, "reasoning": reasoning}));
    assert_eq!(record["metered"]["tokens"], metered);
    assert_eq!(record["own_tokens"], own, "by the agent's own count");
    let asked = model.asked();
    let answered: Vec<&Value> = asked.iter().filter(|request| !request["body"].is_null()).collect();
    assert_eq!(answered.len(), 2);
    for request in answered {
        assert_eq!(request["headers"][agent.header].as_str().unwrap().trim_start_matches("Bearer "), KEY);
        assert!(request.to_string().contains("Make this change in the source tree"), "the prompt is in it");
    }
    for name in ["agent.log", "agent.err", "requests.jsonl", "trajectory.json"] {
        assert!(!kept(&ground, &document, name).contains(KEY), "the key stays outside: {name}");
    }
    let text = kept(&ground, &document, "trajectory.json");
    tells_what_it_did(agent, &record, &Trajectory::parse("trajectory.json", text.as_bytes()).unwrap());
    ground.write("trajectory.json", &text);
    match harbor::faults(&ground.path().join("trajectory.json")) {
        Ok(faults) => assert_eq!(faults, "", "by Harbor's own validator"),
        Err(why) => skipped(&format!("Harbor's validator, which cannot be installed here: {why}")),
    }
    assert_eq!(verdict(&ground, &document), "resolved");
}

/// Said among the test's words, which `--nocapture` shows.
#[allow(clippy::disallowed_macros, reason = "a test that leaves something out says so")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

fn tells_what_it_did(agent: &Agent, record: &Value, trajectory: &Trajectory) {
    let shown = &record["trajectory"];
    assert_eq!(shown["steps"], trajectory.steps.len(), "{shown:#}");
    for fault in ["malformed", "too_long", "cut_off", "error"] {
        assert_eq!(shown.get(fault), None, "{shown:#}");
    }
    assert_eq!(trajectory.agent.name, agent.name);
    assert_eq!(trajectory.agent.version, record["agent"]["version"]);
    assert_eq!(trajectory.agent.model_name.as_deref(), Some("scripted"));
    let mut steps = trajectory.steps.iter();
    let prompt = steps.find(|step| step.source == StepSource::User).unwrap();
    assert!(prompt.message.contains("Make this change in the source tree"));
    let called = steps.find(|step| step.tool_calls.is_some()).unwrap();
    let call = &called.tool_calls.as_ref().unwrap()[0];
    assert!(json!(call.arguments).to_string().contains("return 3 * x"), "{call:?}");
    let gave = called.observation.as_ref().unwrap().results[0].content.as_deref().unwrap();
    assert!(gave.contains("passed"), "what pytest said: {gave}");
    // How mini-swe-agent ends is a call.
    if agent.name != "mini-swe-agent" {
        assert!(steps.any(|step| step.source == StepSource::Agent && step.message == "Added triple."));
    }
    let sums = trajectory.final_metrics.as_ref().unwrap();
    let counted = (sums.total_prompt_tokens, sums.total_cached_tokens, sums.total_completion_tokens);
    assert_eq!(counted, (Some(200), Some(80), Some(20)));
    assert_eq!(sums.extra.as_ref().unwrap()["proxy"]["requests"], 2);
}

#[test]
fn claude_code_makes_the_change_on_a_scripted_model_and_is_resolved() {
    makes_the_change(&Agent {
        name: "claude-code",
        base: "",
        header: "x-api-key",
        reasoning: [0, 0],
        asks: &[],
    });
}

#[test]
fn codex_makes_the_change_on_a_scripted_model_and_is_resolved() {
    makes_the_change(&Agent {
        name: "codex",
        base: "/v1",
        header: "authorization",
        reasoning: [6, 6],
        asks: &[],
    });
}

#[test]
fn mini_swe_agent_makes_the_change_on_a_scripted_model_and_is_resolved() {
    makes_the_change(&Agent {
        name: "mini-swe-agent",
        base: "/v1",
        header: "authorization",
        reasoning: [6, 6],
        asks: &[],
    });
}

#[test]
fn gemini_cli_makes_the_change_on_a_scripted_model_and_is_resolved() {
    makes_the_change(&Agent {
        name: "gemini-cli",
        base: "",
        header: "x-goog-api-key",
        reasoning: [6, 6],
        asks: &[],
    });
}

#[test]
fn qwen_code_makes_the_change_on_a_scripted_model_and_is_resolved() {
    makes_the_change(&Agent {
        name: "qwen-code",
        base: "/v1",
        header: "authorization",
        reasoning: [6, 0],
        asks: &[],
    });
}

/// By `make agents`: it takes 0.6 GB and needs a Python of version 3.12.
#[test]
fn openhands_makes_the_change_on_a_scripted_model_and_is_resolved() {
    if std::env::var_os("INFRADEV_OPENHANDS").is_none() {
        skipped("INFRADEV_OPENHANDS is not set: `make agents` runs it");
        return;
    }
    let asks = &["github.com:443", "pypi.org:443"];
    let name = "openhands";
    makes_the_change(&Agent { name, base: "/v1", header: "authorization", reasoning: [6, 6], asks });
}
