//! Real agents on a scripted model.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ground::{Ground, Said, repository};
use crate::harm;

/// A scripted model, as long as it is held.
pub struct Model {
    process: harm::Served,
    log: PathBuf,
}

impl Model {
    pub fn playing(ground: &Ground, script: &Value) -> Model {
        ground.write("script.json", &script.to_string());
        let log = ground.path().join("asked.jsonl");
        let server = repository().join("fixtures/model-server/model_server.py");
        let args = [server.as_path(), &ground.path().join("script.json"), Path::new("--log"), &log];
        Model { process: harm::Served::start("python3", &args), log }
    }

    pub fn url(&self) -> &str {
        &self.process.address
    }

    /// What it was asked, a request a line.
    pub fn asked(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A pack and the agents, which are installed once for all tests of this checkout.
pub fn ground() -> Ground {
    let ground = Ground::new();
    let agents = repository().join("target/test-agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::os::unix::fs::symlink(agents, ground.path().join("home/agents")).unwrap();
    ground
}

/// What an agent does that is right.
pub const RIGHT: &str =
    "printf '\\n\\ndef triple(x):\\n    return 3 * x\\n' >> toy/model.py && python -m pytest -q";

pub const KEY: &str = "the-real-key";

/// Has an agent attempt the task; gives the one submission.
pub fn attempt(ground: &Ground, args: &[&str], code: i32) -> (Value, Value) {
    attempt_with(ground, &[], args, code)
}

/// The same under other variables.
pub fn attempt_with(ground: &Ground, variables: &[(&str, &str)], args: &[&str], code: i32) -> (Value, Value) {
    let all: Vec<&str> = ["attempt", "pack", "--json"].iter().chain(args).copied().collect();
    let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "DASHSCOPE_API_KEY"];
    let variables = [&names.map(|name| (name, KEY))[..], variables].concat();
    let said: Said = ground.tool_with(&variables, env!("CARGO_BIN_EXE_infradev"), &all).exits(code);
    let document = said.json();
    (document["submissions"][0].clone(), document)
}

/// Verdict of what an attempt's run left for grading.
pub fn verdict(ground: &Ground, document: &Value) -> String {
    let predictions = document["predictions"].as_str().unwrap();
    let predictions = predictions.replace("HERE", ground.path().to_str().unwrap());
    let graded = ground.infradev(&["grade", "pack", "--patches", &predictions, "--json"]).exits(0).json();
    graded["submissions"][0]["verdict"].as_str().unwrap().to_string()
}

pub fn kept(ground: &Ground, document: &Value, name: &str) -> String {
    let folder = document["submissions"][0]["folder"].as_str().unwrap();
    ground.read(&format!("home/runs/{}/{folder}/{name}", document["run"].as_str().unwrap()))
}

/// Has a program of ours in Python attempt the task; gives its record, with what it wrote on standard error.
pub fn attempt_by(ground: &Ground, program: &str, more: &[&str]) -> Value {
    ground.write("mine/mine.py", program);
    let args = ["--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine"];
    let (mut record, document) = attempt(ground, &[&args, more].concat(), 0);
    // Shown where an assertion on the record fails.
    record["its words"] = kept(ground, &document, "agent.err").into();
    record
}
