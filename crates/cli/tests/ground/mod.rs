//! Packs made of texts, and the real program run on them. The environments are real too (pytest and numpy, no torch), built
//! once for all tests of this checkout.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_supervise::{Exit, Invocation};

/// What a run of the program left.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| {
            panic!("stdout is no JSON document ({error}):\n{}\nstderr:\n{}", self.out, self.err)
        })
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Said {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

/// A folder with a store and a pack.
pub struct Ground {
    folder: tempfile::TempDir,
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub const MODEL: &str = "def double(x):\n    return 2 * x\n";

/// The change of the pack's one task: adds `triple`.
pub const GOLDEN: &str = "\
diff --git a/toy/model.py b/toy/model.py
--- a/toy/model.py
+++ b/toy/model.py
@@ -1,2 +1,6 @@
 def double(x):
     return 2 * x
+
+
+def triple(x):
+    return 3 * x
";

const OFFICIAL: &str = "\
diff --git a/tests/test_model.py b/tests/test_model.py
--- a/tests/test_model.py
+++ b/tests/test_model.py
@@ -3,3 +3,9 @@ from toy import model
 
 def test_double():
     assert model.double(2) == 4
+
+
+def test_triple():
+    from toy.model import triple
+
+    assert triple(2) == 6
";

const BASE_TEST: &str = "from toy import model\n\n\ndef test_double():\n    assert model.double(2) == 4\n";

const TASK: &str = r#"schema = 1
id = "triple"
title = "Add triple"
area = "training"
kind = "feature"
environment = "cpu"
worlds = [1]

[tests]
official = ["tests/test_model.py"]

[timeouts]
collect = 30.0
case = 10.0
grace = 1.0
trial = 120.0

[limits]
memory_mib = 1024
tmp_mib = 64

[acceptance]
runs = 1
"#;

const CONTRACT: &str = r#"schema = 1

[[name]]
name = "toy.model.triple"
kind = "function"
signature = "(x)"
about = "Three times x."
"#;

const PACK: &str = r#"schema = 1
name = "toy"
version = "0.1.0"
license = "Apache-2.0"

[source]
tree = "repo"

[environments.cpu]
python = "3.11"
lock = "envs/cpu.lock"
"#;

const OBSERVER: &str = "\
from infradev_probe import observer


@observer
def triple_of(x):
    from toy.model import triple

    return {\"y\": triple(x)}
";

const JUDGE: &str = "\
from infradev_probe import case, expect


@case(worlds=[1], checks=\"numbers\")
def any_number_is_tripled(worlds, rng):
    x = int(rng.integers(10, 1000))
    w = worlds.open()
    expect.equal(w.observe(\"observe_model.triple_of\", x=x)[0][\"y\"], 3 * x)


@case(worlds=[1], checks=\"condition\")
def zero_stays_zero(worlds, rng):
    w = worlds.open()
    expect.equal(w.observe(\"observe_model.triple_of\", x=0)[0][\"y\"], 0)
";

const ADVERSARIAL: &str = r#"schema = 1
promise = "any number is tripled"

[[replace]]
file = "toy/model.py"
find = "return 3 * x"
with = "return 3 * x if x < 10 else 4 * x"
"#;

impl Ground {
    /// The pack `toy` with its task `triple`, whole and right.
    pub fn new() -> Ground {
        let ground = Ground { folder: tempfile::tempdir().unwrap() };
        let lock = std::fs::read_to_string(repository().join("python/judge.lock")).unwrap();
        for (path, text) in [
            ("pack/pack.toml", PACK),
            ("pack/envs/cpu.lock", lock.as_str()),
            ("pack/repo/toy/__init__.py", ""),
            ("pack/repo/toy/model.py", MODEL),
            ("pack/repo/tests/test_model.py", BASE_TEST),
            ("pack/tasks/triple/task.toml", TASK),
            ("pack/tasks/triple/spec.md", "# Add triple\n"),
            ("pack/tasks/triple/contract.toml", CONTRACT),
            ("pack/tasks/triple/golden.patch", GOLDEN),
            ("pack/tasks/triple/official.patch", OFFICIAL),
            ("pack/tasks/triple/probes/observe_model.py", OBSERVER),
            ("pack/tasks/triple/probes/judge_model.py", JUDGE),
            ("pack/tasks/triple/adversarial/large-numbers.toml", ADVERSARIAL),
        ] {
            ground.write(path, text);
        }
        let environments = repository().join("target/test-environments");
        std::fs::create_dir_all(&environments).unwrap();
        std::fs::create_dir_all(ground.path().join("home")).unwrap();
        std::os::unix::fs::symlink(environments, ground.path().join("home/envs")).unwrap();
        ground
    }

    /// All of it lies here; the program runs here.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).unwrap()
    }

    /// Replaces a text that stands in a file once.
    pub fn edit(&self, path: &str, find: &str, with: &str) {
        let text = self.read(path);
        assert_eq!(text.matches(find).count(), 1, "{find} in {path}");
        self.write(path, &text.replace(find, with));
    }

    /// A program of this machine, run here.
    pub fn tool(&self, program: &str, args: &[&str]) -> Said {
        self.tool_with(&[], program, args)
    }

    /// The same for what takes longer.
    pub fn tool_within(&self, deadline: Duration, program: &str, args: &[&str]) -> Said {
        self.run(deadline, &[], program, args)
    }

    /// The same under other variables.
    pub fn tool_with(&self, variables: &[(&str, &str)], program: &str, args: &[&str]) -> Said {
        self.run(Duration::from_secs(300), variables, program, args)
    }

    fn run(&self, deadline: Duration, variables: &[(&str, &str)], program: &str, args: &[&str]) -> Said {
        let mut invocation = Invocation::new(program).cwd(self.path()).args(args).deadline(deadline);
        for (name, value) in self.variables() {
            invocation = invocation.env(name, value);
        }
        for (name, value) in variables {
            invocation = invocation.env(*name, *value);
        }
        let output = invocation.run().unwrap();
        let code = match output.status {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::TimedOut => panic!("{program} did not end in time"),
        };
        Said { code, out: self.plain(&output.stdout), err: self.plain(&output.stderr) }
    }

    /// This process's variables, with the ground's own store. How an index is reached is the machine's affair.
    pub fn variables(&self) -> Vec<(String, String)> {
        let ours = |name: &str| {
            ["INFRADEV", "PYTHON", "GITHUB_"].iter().any(|start| name.starts_with(start))
                || name == "NO_COLOR"
        };
        let mut variables: Vec<(String, String)> = std::env::vars().filter(|(name, _)| !ours(name)).collect();
        variables.push(("INFRADEV_HOME".into(), self.path().join("home").display().to_string()));
        variables
    }

    /// A text without the name of the temporary folder.
    pub fn plain(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.replace(&self.path().canonicalize().unwrap().display().to_string(), "HERE")
            .replace(&self.path().display().to_string(), "HERE")
    }

    /// The program itself.
    pub fn infradev(&self, args: &[&str]) -> Said {
        self.tool(env!("CARGO_BIN_EXE_infradev"), args)
    }

    pub fn git(&self, args: &[&str]) -> String {
        let own = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"];
        let all: Vec<&str> = own.iter().chain(args).copied().collect();
        self.tool("git", &all).exits(0).out
    }
}
