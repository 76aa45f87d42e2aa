//! Merged pull requests of Megatron-LM, made into tasks and graded. Runs where `INFRADEV_MEGATRON` names a clone
//! (`make upstream`), since it needs upstream's history and minutes; docs/src/upstream.md tells the same by hand.

#![allow(clippy::disallowed_macros, reason = "says what it did not run, and how long the rest took")]

mod ground;

use std::path::PathBuf;
use std::time::Duration;

use ground::{Ground, Said, repository};
use serde_json::{Value, json};

/// Building the environment counts here too.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Imported once a trial: torch, what Megatron-LM and its tests import of it, and of other packages. None starts a thread.
const FRAMEWORK: &str = r#"framework = [
    "torch", "torch._dynamo", "torch._inductor.compile_fx", "torch.distributed.checkpoint", "torch.distributed.tensor",
    "omegaconf", "pydantic.main", "requests", "yaml", "einops", "setuptools",
]"#;

/// What task.toml is told by hand. The tests' conftest downloads unless the folder holds something.
const BY_HAND: &str = r#"plugins = ["pytest_asyncio", "pytest_mock"]

[tests.files]
"/opt/data/present" = ""

[acceptance]
runs = 1
"#;

struct Upstream {
    ground: Ground,
    clone: String,
}

impl Upstream {
    /// `None`, and a line that says so, where no clone is named.
    fn found() -> Option<Upstream> {
        let Some(clone) = std::env::var_os("INFRADEV_MEGATRON").filter(|path| !path.is_empty()) else {
            println!("not run: INFRADEV_MEGATRON does not name a clone of Megatron-LM");
            return None;
        };
        let clone = PathBuf::from(clone).canonicalize().unwrap();
        Some(Upstream { ground: Ground::new(), clone: clone.to_str().unwrap().to_string() })
    }

    /// Makes the task `id` of a change, named by `--pr` or `--commit`.
    fn make(&self, id: &str, change: &[&str]) {
        let lock = repository().join("fixtures/upstream/cpu.lock");
        let lock = ["--lock", lock.to_str().unwrap(), "--python", "3.12"];
        let new = ["new", "--repo", &self.clone, "--pack", "megatron", "--id", id];
        let is_there = self.ground.path().join("megatron/pack.toml").exists();
        self.infradev(&[&new[..], change, if is_there { &[] } else { &lock[..] }].concat());
        if !is_there {
            self.ground.edit("megatron/pack.toml", "framework = []", FRAMEWORK);
        }
        let task = format!("megatron/tasks/{id}/task.toml");
        let text = self.ground.read(&task);
        let drafted = text.find("# plugins").unwrap();
        self.ground.write(&task, &format!("{}{BY_HAND}", &text[..drafted]));
    }

    fn infradev(&self, args: &[&str]) -> Said {
        self.ground.tool_within(PATIENCE, env!("CARGO_BIN_EXE_infradev"), args).exits(0)
    }

    /// Grades the one submission that `patches` names; the record of its trial.
    #[track_caller]
    fn grades(&self, id: &str, patches: &str, verdict: &str, counts: Value) -> Value {
        let task = format!("megatron/tasks/{id}");
        let document = self.infradev(&["grade", &task, "--patches", patches, "--json"]).json();
        let [grade] = &document["submissions"].as_array().unwrap()[..] else { panic!("{document:#}") };
        println!("{id}, {patches}: {} in {} s", grade["verdict"], grade["wall_s"]);
        let found = json!([grade["suites"]["official"], grade["fail_to_pass"], grade["pass_to_pass"]]);
        assert_eq!((&grade["verdict"], &found), (&verdict.into(), &counts), "{id}, {patches}: {grade:#}");
        let (run, trial) = (document["run"].as_str().unwrap(), grade["trials"][0].as_str().unwrap());
        let record = self.ground.read(&format!("home/runs/{run}/trials/{trial}/result.json"));
        serde_json::from_str(&record).unwrap()
    }
}

fn counts(official: [u32; 2], fail_to_pass: [u32; 2], pass_to_pass: [u32; 2]) -> Value {
    [official, fail_to_pass, pass_to_pass].map(|[passed, of]| json!({"passed": passed, "of": of})).into()
}

#[test]
fn of_4705_golden_is_resolved_base_is_not_and_half_of_it_passes_every_official_case() {
    let Some(upstream) = Upstream::found() else { return };
    upstream.make("by-number", &["--pr", "4705"]);
    upstream.make("by-commit", &["--commit", "27e312ca10a2dfdadabfdee4fe39a2172a6656d4"]);
    let by = |id: &str| upstream.ground.read(&format!("megatron/tasks/{id}/task.toml"));
    assert_eq!(by("by-number").replace("by-number", "by-commit"), by("by-commit"));
    upstream.ground.write(
        "megatron/tasks/by-commit/adversarial/optimizer-left-alone.toml",
        r#"schema = 1
promise = "groups with other learning-rate bounds stay apart when a checkpoint is loaded"
take_back = ["megatron/core/optimizer/distrib_optimizer.py"]
"#,
    );
    upstream.grades("by-commit", "golden", "resolved", counts([9, 9], [4, 4], [5, 5]));
    upstream.grades("by-commit", "base", "unresolved", counts([5, 9], [0, 4], [5, 5]));
    upstream.grades("by-commit", "adversarial", "resolved", counts([9, 9], [4, 4], [5, 5]));
}

#[test]
fn of_4835_at_four_ranks_twenty_cases_pass_and_one_is_skipped_on_each() {
    let Some(upstream) = Upstream::found() else { return };
    upstream.make("dbuffer", &["--pr", "4835", "--worlds", "4"]);
    let golden = upstream.grades("dbuffer", "golden", "resolved", counts([20, 20], [20, 20], [0, 0]));
    let cases = golden["cases"].as_array().unwrap().iter();
    let mut vectors: Vec<Vec<&str>> = cases
        .map(|case| {
            case["vector"].as_array().unwrap().iter().map(|rank| rank["outcome"].as_str().unwrap()).collect()
        })
        .collect();
    vectors.sort();
    assert_eq!(vectors, [vec![vec!["passed"; 4]; 20], vec![vec!["skipped"; 4]]].concat());
    upstream.grades("dbuffer", "base", "unresolved", counts([0, 20], [0, 20], [0, 0]));
}

/// The hunks that no official test notices. A crude script counted `__init__.py:222` of 3715 too: it took back the same two
/// lines at 210 in its place.
#[test]
fn of_4705_3715_and_5860_the_hunks_that_behave_and_that_no_test_notices_are_named_and_no_other() {
    let Some(upstream) = Upstream::found() else { return };
    for (id, commit, hunks) in [
        ("mup", "f58a3281fa80ca44efcd084f96880e55042be59f", &["megatron/core/optimizer/__init__.py:210"][..]),
        (
            "groups",
            "27e312ca10a2dfdadabfdee4fe39a2172a6656d4",
            &[
                "megatron/core/optimizer/distrib_optimizer.py:902",
                "megatron/core/optimizer/distrib_optimizer.py:904",
                "megatron/core/optimizer/distrib_optimizer.py:906",
                "megatron/training/training.py:990",
            ],
        ),
        (
            "prefix",
            "3fe15193cf95c1c552b6a288fa0cb07c6b5aca24",
            &[
                "megatron/core/inference/contexts/dynamic_context.py:642",
                "megatron/core/inference/contexts/dynamic_context.py:3329",
            ],
        ),
    ] {
        upstream.make(id, &["--commit", commit]);
        let task = format!("megatron/tasks/{id}");
        let document = upstream.infradev(&["synthesize", &task, "--json", "--rewrites", "0"]).json();
        let found = &document["tasks"][0];
        let unprobed: Vec<String> = found["unprobed_hunks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hunk| format!("{}:{}", hunk["file"].as_str().unwrap(), hunk["line"]))
            .collect();
        println!("{id}: {}", found["strength"]);
        assert_eq!(unprobed, hunks, "{id}");
        let files = found["mutants"].as_array().unwrap().iter().filter(|record| {
            record["mutant"]["operator"] == "take-back-file"
                && matches!(record["fate"].as_str(), Some("survived" | "unreached"))
        });
        let files: Vec<&str> = files.map(|record| record["mutant"]["file"].as_str().unwrap()).collect();
        // All that 4705 changes in training.py is one hunk: it stands above.
        let expected: &[&str] =
            if id == "groups" { &["megatron/core/optimizer/distrib_optimizer.py"] } else { &[] };
        assert_eq!(files, expected, "{id}");
    }
}
