//! Real agents on a scripted model.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ground::{Ground, repository};
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
