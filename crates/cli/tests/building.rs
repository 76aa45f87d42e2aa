//! Tasks whose trees are compiled: what is built once, what a patch rebuilds, and whose failure it is when it does not build.

mod ground;

use std::fs;
use std::path::Path;

use ground::{Ground, repository};
use serde_json::{Value, json};

/// Compiles each file by itself, in view of its inputs alone and of no network.
const BUILD: &str = r#"set -e
python -c 'import os, socket; assert [name for _, name in socket.if_nameindex()] == ["lo"]; assert sorted(os.listdir(".")) == ["native", "toy"]'
test -z "$(ls toy)"
for file in native/*.c; do cc -c -fPIC -o "${file%.c}.o" "$file"; done
cc -shared -o toy/_native.so native/*.o
"#;

const MODEL: &str = r#"import ctypes
import pathlib

_native = ctypes.CDLL(str(pathlib.Path(__file__).with_name("_native.so")))


def double(x):
    return _native.twice(x)
"#;

const NATIVE: &str = "\
diff --git a/native/thrice.c b/native/thrice.c
new file mode 100644
--- /dev/null
+++ b/native/thrice.c
@@ -0,0 +1,3 @@
+int thrice(int x) {
+    return 3 * x;
+}
";

const PYTHON: &str = "\
diff --git a/toy/model.py b/toy/model.py
--- a/toy/model.py
+++ b/toy/model.py
@@ -6,3 +6,7 @@ _native = ctypes.CDLL(str(pathlib.Path(__file__).with_name(\"_native.so\")))
 
 def double(x):
     return _native.twice(x)
+
+
+def triple(x):
+    return _native.thrice(x)
";

const TASK_BUILD: &str = r#"
[build]
command = ["sh", "native/build.sh"]
inputs = ["native"]
outputs = ["toy/_native.so"]
"#;

/// The toy pack with its numbers in C: `golden` adds a file of C and the Python that calls it.
fn compiled() -> Ground {
    let ground = Ground::new();
    for (path, text) in [
        ("pack/repo/native/build.sh", BUILD),
        ("pack/repo/native/twice.c", "int twice(int x) {\n    return 2 * x;\n}\n"),
        ("pack/repo/toy/model.py", MODEL),
        ("pack/tasks/triple/golden.patch", &[NATIVE, PYTHON].concat()),
    ] {
        ground.write(path, text);
    }
    fs::remove_dir_all(ground.path().join("pack/tasks/triple/adversarial")).unwrap();
    let task = ground.read("pack/tasks/triple/task.toml");
    ground.write("pack/tasks/triple/task.toml", &[&task, TASK_BUILD].concat());
    ground
}

/// Grades these patches, by name and text.
fn grade(ground: &Ground, pack: &str, patches: &[(&str, &str)]) -> Vec<Value> {
    let id =
        fs::read_dir(ground.path().join(pack).join("tasks")).unwrap().next().unwrap().unwrap().file_name();
    let lines = patches.iter().map(|(name, patch)| {
        json!({"instance_id": id.to_str(), "model_name_or_path": name, "model_patch": patch}).to_string()
            + "\n"
    });
    ground.write("predictions.jsonl", &lines.collect::<String>());
    let said = ground.infradev(&["grade", pack, "--patches", "predictions.jsonl", "--json"]).exits(0);
    said.json()["submissions"].as_array().unwrap().clone()
}

/// What the store says of each layer, the one built last at the end.
fn layers(ground: &Ground) -> Vec<Value> {
    let entries = fs::read_dir(ground.path().join("home/builds/layers")).unwrap().flatten();
    let markers = entries.map(|entry| entry.path().join("infradev-layer.json")).filter(|path| path.is_file());
    let mut markers: Vec<_> =
        markers.map(|path| (fs::metadata(&path).unwrap().modified().unwrap(), path)).collect();
    markers.sort();
    markers.iter().map(|(_, path)| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

fn has_ccache() -> bool {
    ["/usr/bin/ccache", "/usr/local/bin/ccache"].iter().any(|path| Path::new(path).is_file())
}

#[test]
fn patches_that_leave_the_inputs_alone_share_a_build_and_one_that_touches_them_rebuilds_just_that() {
    let ground = compiled();
    let right = [NATIVE, PYTHON].concat();
    let in_python = PYTHON.replace("_native.thrice(x)", "3 * x");
    let grades = grade(&ground, "pack", &[("right", &right), ("in-python", &in_python)]);
    let verdicts: Vec<&Value> = grades.iter().map(|grade| &grade["verdict"]).collect();
    assert_eq!(verdicts, ["resolved", "resolved"], "{grades:#?}");
    assert_eq!(layers(&ground).len(), 2, "golden's and base's serve both");
    let wrong = right.replace("3 * x;", "4 * x;");
    let grades = grade(&ground, "pack", &[("wrong", &wrong)]);
    assert_eq!(grades[0]["verdict"], "unresolved", "{grades:#?}");
    assert!(grades[0]["reasons"].to_string().contains("assert 8 == 6"), "{grades:#?}");
    let layers = layers(&ground);
    assert_eq!(layers.len(), 3);
    if has_ccache() {
        assert_eq!((&layers[2]["with"]["compiled"], &layers[2]["with"]["reused"]), (&json!(1), &json!(1)));
    }
}

#[test]
fn a_patch_that_does_not_compile_is_its_own_failure_with_the_compilers_words() {
    let ground = compiled();
    let broken = [NATIVE, PYTHON].concat().replace("return 3 * x;", "return 3 * y;");
    let grades = grade(&ground, "pack", &[("broken", &broken), ("right", &[NATIVE, PYTHON].concat())]);
    let broken = &grades[0];
    assert_eq!(
        (&broken["verdict"], &broken["passed"], &broken["fault"]),
        (&json!("unresolved"), &json!(0), &Value::Null)
    );
    let reasons = broken["reasons"].to_string();
    assert!(reasons.contains("the build failed: `sh native/build.sh` ended with"), "{reasons}");
    assert!(reasons.contains("native/thrice.c:2") && reasons.contains("error:"), "{reasons}");
    assert_eq!(grades[1]["verdict"], "resolved");
    assert_eq!(layers(&ground).len(), 2, "what failed is no layer");
}

#[test]
fn a_patch_that_brings_its_own_binary_is_tested_with_the_one_that_was_built() {
    let ground = compiled();
    let binary = "\
diff --git a/toy/_native.so b/toy/_native.so
new file mode 100644
--- /dev/null
+++ b/toy/_native.so
@@ -0,0 +1 @@
+not a library
";
    let grades = grade(&ground, "pack", &[("with-binary", &[NATIVE, PYTHON, binary].concat())]);
    assert_eq!(grades[0]["verdict"], "resolved", "{grades:#?}");
    let trials = fs::read_dir(ground.path().join("home/runs"))
        .unwrap()
        .flatten()
        .flat_map(|run| fs::read_dir(run.path().join("trials")).into_iter().flatten().flatten());
    let told = trials.filter_map(|trial| fs::read_to_string(trial.path().join("result.json")).ok());
    assert!(told.into_iter().any(|text| text.contains("toy/_native.so") && text.contains("purged")));
}

#[test]
fn a_task_whose_own_trees_do_not_build_is_refused_by_key_before_anything_runs() {
    let refused = |find: &str, with: &str| {
        let ground = compiled();
        ground.edit("pack/tasks/triple/task.toml", find, with);
        ground.infradev(&["grade", "pack", "--patches", "golden"]).exits(4).err
    };
    let said = refused("native/build.sh", "native/nothing.sh");
    assert!(
        said.contains("task.toml:26: key `build.command`: golden does not build: the build failed"),
        "{said}"
    );
    assert!(said.contains("hint: the build sees the paths of build.inputs"), "{said}");
    let said = refused("inputs = [\"native\"]", "inputs = [\"nativ\"]");
    assert!(said.contains("key `build.inputs`: the tree has nothing of it"), "{said}");
    let said = refused("toy/_native.so", "toy");
    assert!(said.contains("key `build.outputs`: `toy/__init__.py` is a file of the tree"), "{said}");
    let said = refused("toy/_native.so", "toy/_other.so");
    assert!(said.contains("made no toy/_other.so (build.outputs)"), "{said}");
    let said = refused("toy/_native.so", "../toy");
    assert!(said.contains("key `build.outputs[0]`: `../toy` is not a path inside the tree"), "{said}");
    let said =
        refused("command = [\"sh\", \"native/build.sh\"]", "command = [\"sleep\", \"60\"]\ntimeout = 0.5");
    assert!(said.contains("`sleep 60` did not end within 0.5 s (build.timeout)"), "{said}");
}

#[test]
fn a_torch_extension_is_built_in_place_and_a_patch_of_one_file_compiles_that_file_alone() {
    let ground = Ground::new();
    let from = repository();
    let copied = ground.tool("cp", &["-r", from.join("fixtures/native").to_str().unwrap(), "native"]);
    copied.exits(0);
    ground.write("native/envs/cpu.lock", &fs::read_to_string(from.join("packs/core/envs/cpu.lock")).unwrap());
    let golden = ground.read("native/tasks/clamped-scale/golden.patch");
    let wrong = golden.replace(".clamp(-most, most)", ".clamp(-most, 2 * most)");
    let broken = golden.replace(".clamp(-most, most)", ".clamped(-most, most)");
    let grades = grade(&ground, "native", &[("right", &golden), ("wrong", &wrong), ("broken", &broken)]);
    let verdicts: Vec<&Value> = grades.iter().map(|grade| &grade["verdict"]).collect();
    assert_eq!(verdicts, ["resolved", "unresolved", "unresolved"], "{grades:#?}");
    assert_eq!((&grades[1]["passed"], &grades[2]["passed"]), (&json!(1), &json!(0)), "{grades:#?}");
    assert!(grades[2]["reasons"].to_string().contains("has no member named"), "{grades:#?}");
    let layers = layers(&ground);
    assert_eq!(layers.len(), 3);
    if has_ccache() {
        let of_wrong = &layers[2]["with"];
        assert_eq!((&of_wrong["compiled"], &of_wrong["reused"]), (&json!(1), &json!(2)), "{layers:#?}");
    }
}
