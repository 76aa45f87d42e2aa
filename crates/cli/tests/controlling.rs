//! A node that spoils trials is told from a patch that does: golden is run on it right after.

mod ground;

use ground::{GOLDEN, Ground};
use serde_json::Value;

/// A pack whose tests abort while a file of the host is there, as they would on a node gone bad. Without a sandbox they see it.
fn ground() -> Ground {
    let ground = Ground::new();
    let sick = ground.path().join("sick");
    let conftest = format!(
        "import os\n\nimport pytest\n\n\n@pytest.fixture(autouse=True)\ndef node():\n    if os.path.exists({:?}):\n        os.abort()\n",
        sick.display().to_string()
    );
    ground.write("pack/repo/tests/conftest.py", &conftest);
    ground.write("patches/triple.patch", GOLDEN);
    ground
}

fn graded(ground: &Ground, patches: &str) -> Value {
    let said =
        ground.infradev(&["grade", "pack", "--patches", patches, "--sandbox", "none", "--json"]).exits(0);
    said.json()["submissions"][0].clone()
}

#[test]
fn what_golden_fails_the_same_way_right_after_is_the_nodes_fault_and_unscored() {
    let ground = ground();
    assert_eq!(graded(&ground, "golden")["verdict"], "resolved");
    ground.write("sick", "");
    let grade = graded(&ground, "patches");
    assert_eq!(grade["verdict"], "fault", "{grade}");
    assert_eq!(grade["fault"]["kind"], "control_run");
    assert!(grade["fault"]["evidence"].as_str().unwrap().contains("test_double crashed"), "{grade}");
}

#[test]
fn a_crash_that_golden_does_not_share_is_the_patchs_own() {
    let ground = ground();
    assert_eq!(graded(&ground, "golden")["verdict"], "resolved");
    ground.write("patches/triple.patch", &GOLDEN.replace("    return 3 * x", "    __import__('os').abort()"));
    let grade = graded(&ground, "patches");
    assert_eq!((grade["verdict"].as_str(), &grade["fault"]), (Some("unresolved"), &Value::Null), "{grade}");
    assert!(grade["reasons"][0].as_str().unwrap().contains("crashed"), "{grade}");
}
