//! Costs of attempts: by a table with a date; unknown, never 0, where the table does not know the model.

mod ground;
mod harm;
mod scripted;

use scripted::{Model, ground};
use serde_json::json;

const PRICES: &str = "\
schema = 1
[[price]]
models = [\"scripted\"]
date = \"2026-11-30\"
source = \"the test\"
input = 2.0
cached = 1.0
output = 10.0
";

#[test]
fn an_attempt_costs_what_a_table_of_ones_own_says_and_nothing_is_said_of_an_unknown_model() {
    let ground = ground();
    let model = Model::playing(&ground, &json!([{"shell": "echo 1 > one"}, {"done": "Done."}]));
    ground.write("mine.toml", PRICES);
    ground.write("bad.toml", &PRICES.replace("output", "ouput"));
    let url = format!("{}/v1", model.url());
    let plain = ["attempt", "pack", "--agent", "codex", "--model", "scripted", "--base-url", &url];
    let plan = ground.infradev(&[&plain[..], &["--prices", "mine.toml", "--plan"]].concat()).exits(0).out;
    assert!(plan.ends_with("\nscripted: prices of 2026-11-30 (the test)\n"), "{plan}");
    let known = ground.infradev(&[&plain[..], &["--prices", "mine.toml", "--json"]].concat()).exits(0).json();
    // 200 tokens of prompts, 80 of them cached, and 20 of answers.
    let cost = &known["submissions"][0]["cost"];
    assert!(
        (cost["usd"].as_f64().unwrap() - (120.0 * 2.0 + 80.0 + 20.0 * 10.0) / 1e6).abs() < 1e-12,
        "{cost}"
    );
    assert_eq!((&cost["prices"], &cost["source"]), (&json!("2026-11-30"), &json!("the test")));
    let unknown = ground.infradev(&plain).exits(0).out;
    assert!(unknown.contains("unknown"), "{unknown}");
    let document = ground.infradev(&["run", "show", "last", "--json"]).exits(0).json();
    assert_eq!(document["attempt"]["submissions"][0].get("cost"), None);
    let refused = ground.infradev(&[&plain[..], &["--prices", "bad.toml"]].concat()).exits(4).err;
    assert!(refused.contains("bad.toml:8: key `price[0].ouput`: is unknown"), "{refused}");
}
