//! Bad input: each refusal names file, line and key, says what to do, and has its exit code.

mod ground;

use ground::{GOLDEN, Ground};

const GRADE: [&str; 4] = ["grade", "pack", "--patches", "golden"];

struct Bad {
    what: &'static str,
    args: &'static [&'static str],
    spoil: fn(&Ground),
}

const fn bad(what: &'static str, args: &'static [&'static str], spoil: fn(&Ground)) -> Bad {
    Bad { what, args, spoil }
}

const ADVERSARIAL: [&str; 4] = ["grade", "pack", "--patches", "adversarial"];
const PREDICTIONS: &[&str] = &["grade", "pack", "--patches", "p.jsonl"];

const TABLE: &[Bad] = &[
    bad("no such pack", &["grade", "nowhere", "--patches", "golden"], |_| {}),
    bad("a folder that is no pack", &["grade", "pack/repo", "--patches", "golden"], |_| {}),
    bad("an unknown key", &GRADE, |g| {
        g.edit("pack/tasks/triple/task.toml", "grace = 1.0", "graze = 1.0");
    }),
    bad("a wrong type", &GRADE, |g| {
        g.edit("pack/tasks/triple/task.toml", "worlds = [1]", "worlds = \"two\"")
    }),
    bad("a key of a task twice", &GRADE, |g| {
        g.edit("pack/tasks/triple/task.toml", "grace = 1.0", "grace = 1.0\ncase = 5.0");
    }),
    bad("a key of a pack twice", &GRADE, |g| {
        g.edit("pack/pack.toml", "version =", "name = \"tea\"\nversion =");
    }),
    bad("a Python that is none", &GRADE, |g| g.edit("pack/pack.toml", "\"3.11\"", "\"three\"")),
    bad("an environment without pytest", &GRADE, |g| {
        let lock = g.read("pack/envs/cpu.lock");
        let (before, pytest) = lock.split_once("\npytest==").unwrap();
        let after = pytest.lines().skip_while(|line| !line.starts_with(char::is_alphabetic));
        let after: String = after.map(|line| format!("\n{line}")).collect();
        g.write("pack/envs/cpu.lock", &format!("{before}{after}\n"));
    }),
    bad("a plugin that is nowhere", &GRADE, |g| {
        let plugins = "[tests]\nplugins = [\n    \"pytester\",\n    \"nosuch\",\n]";
        g.edit("pack/tasks/triple/task.toml", "[tests]", plugins);
    }),
    bad("a plugin that does not import", &GRADE, |g| {
        g.write("pack/repo/toy/plugin.py", "import nosuch\n");
        g.edit("pack/tasks/triple/task.toml", "[tests]", "[tests]\nplugins = [\"toy.plugin\"]");
        g.edit("pack/tasks/triple/task.toml", "runs = 1", "runs = 9");
    }),
    bad("a file in the kit's folder", &GRADE, |g| {
        let files = "[tests.files]\n\"/infradev/python/x\" = \"\"\n\n[timeouts]";
        g.edit("pack/tasks/triple/task.toml", "[timeouts]", files);
    }),
    bad("a variable of the harness", &GRADE, |g| {
        let variables = "[tests.env]\nA = \"1\"\nRANK = \"0\"\n\n[timeouts]";
        g.edit("pack/tasks/triple/task.toml", "[timeouts]", variables);
    }),
    bad("a base tree that is a link to everything", &GRADE, |g| {
        std::fs::remove_dir_all(g.path().join("pack/repo")).unwrap();
        std::os::unix::fs::symlink("/", g.path().join("pack/repo")).unwrap();
    }),
    bad("a folder in place of equivalent.toml", &GRADE, |g| {
        std::fs::create_dir(g.path().join("pack/tasks/triple/equivalent.toml")).unwrap();
    }),
    bad("no world size", &GRADE, |g| g.edit("pack/tasks/triple/task.toml", "worlds = [1]", "worlds = []")),
    bad("a schema from the future", &GRADE, |g| {
        g.edit("pack/pack.toml", "schema = 1", "schema = 9");
    }),
    bad("a missing file", &GRADE, |g| {
        std::fs::remove_file(g.path().join("pack/tasks/triple/contract.toml")).unwrap();
    }),
    bad("a second task of the same id", &GRADE, |g| {
        for file in ["task.toml", "spec.md", "contract.toml", "golden.patch", "official.patch"] {
            g.write(&format!("pack/tasks/zweite/{file}"), &g.read(&format!("pack/tasks/triple/{file}")));
        }
    }),
    bad("a text that is not UTF-8", &GRADE, |g| {
        std::fs::write(g.path().join("pack/tasks/triple/spec.md"), b"fine\n\xff\xfe\n").unwrap();
    }),
    bad("an environment that the pack has not", &GRADE, |g| {
        g.edit("pack/tasks/triple/task.toml", "environment = \"cpu\"", "environment = \"gpu\"");
    }),
    bad("a lock without hashes", &GRADE, |g| g.write("pack/envs/cpu.lock", "numpy==2.0.0\n")),
    bad("a framework that the environment has not", &GRADE, |g| {
        g.edit("pack/pack.toml", "python = \"3.11\"", "python = \"3.11\"\nframework = [\"nosuch\"]");
    }),
    bad("golden that does not apply", &GRADE, |g| {
        g.edit("pack/tasks/triple/golden.patch", "     return 2 * x", "     return 22 * x");
    }),
    bad("golden that is no patch", &GRADE, |g| g.write("pack/tasks/triple/golden.patch", "hello\n")),
    bad("official tests that are no patch", &GRADE, |g| {
        g.write("pack/tasks/triple/official.patch", "hello\n");
    }),
    bad("an adversarial patch that is none", &GRADE, |g| {
        let text = "schema = 1\npromise = \"any number is tripled\"\npatch = \"flaw.patch\"\non = \"base\"\n";
        g.write("pack/tasks/triple/adversarial/flaw.toml", text);
        g.write("pack/tasks/triple/adversarial/flaw.patch", "hello\n");
    }),
    bad("an official file that is not there", &GRADE, |g| {
        g.edit("pack/tasks/triple/task.toml", "tests/test_model.py", "tests/test_modell.py");
    }),
    bad("an official file that cannot be collected", &GRADE, |g| {
        g.edit(
            "pack/tasks/triple/official.patch",
            "from toy.model import triple",
            "from toy.model import triple(",
        );
    }),
    bad("an adversarial text that stands nowhere", &ADVERSARIAL, |g| {
        g.edit(
            "pack/tasks/triple/adversarial/large-numbers.toml",
            "return 3 * x\"\nwith",
            "return 9 * x\"\nwith",
        );
    }),
    bad("an adversarial text that stands twice", &ADVERSARIAL, |g| {
        let more = "\n[[replace]]\nfile = \"toy/model.py\"\nfind = \"return\"\nwith = \"yield\"\n";
        let path = "pack/tasks/triple/adversarial/large-numbers.toml";
        g.write(path, &(g.read(path) + more));
    }),
    bad("an adversarial file that is not there", &ADVERSARIAL, |g| {
        g.edit("pack/tasks/triple/adversarial/large-numbers.toml", "toy/model.py", "toy/modell.py");
    }),
    bad("an adversarial file outside of the tree", &ADVERSARIAL, |g| {
        g.edit("pack/tasks/triple/adversarial/large-numbers.toml", "toy/model.py", "../toy/model.py");
    }),
    bad("an adversarial file taken back that golden leaves alone", &ADVERSARIAL, |g| {
        let text = "schema = 1\npromise = \"x\"\ntake_back = [\"toy/__init__.py\"]\n";
        g.write("pack/tasks/triple/adversarial/large-numbers.toml", text);
    }),
    bad("an unknown task", &["grade", "pack", "--patches", "golden", "--task", "tripple"], |_| {}),
    bad("patches of no known kind", &["grade", "pack", "--patches", "silver"], |_| {}),
    bad("an empty folder of patches", &["grade", "pack", "--patches", "empty"], |g| {
        std::fs::create_dir(g.path().join("empty")).unwrap();
    }),
    bad("a patch for a task that is not there", &["grade", "pack", "--patches", "folder"], |g| {
        g.write("folder/other.patch", GOLDEN);
    }),
    bad("two files for one submission", &["grade", "pack", "--patches", "folder"], |g| {
        g.write("folder/triple.diff", GOLDEN);
        g.write("folder/triple.patch", GOLDEN);
    }),
    bad("one patch for two tasks", &["grade", "pack", "--patches", "one.patch"], |g| {
        g.write("one.patch", GOLDEN);
        for file in ["task.toml", "spec.md", "contract.toml", "golden.patch", "official.patch"] {
            g.write(&format!("pack/tasks/zweite/{file}"), &g.read(&format!("pack/tasks/triple/{file}")));
        }
        g.edit("pack/tasks/zweite/task.toml", "id = \"triple\"", "id = \"zweite\"");
    }),
    bad("a prediction twice", PREDICTIONS, |g| {
        let line = r#"{"instance_id": "triple", "model_name_or_path": "m", "model_patch": ""}"#;
        g.write("p.jsonl", &format!("{line}\n\n{line}\n"));
    }),
    bad("a prediction without its patch's field", PREDICTIONS, |g| {
        g.write("p.jsonl", "{\"instance_id\": \"triple\", \"model_patch\": \"\"}\n");
    }),
    bad("a prediction that is no JSON", PREDICTIONS, |g| {
        let line = r#"{"instance_id": "triple", "model_name_or_path": "m", "model_patch": ""}"#;
        g.write("p.jsonl", &format!("{line}\n{{\"instance_id\": \n"));
    }),
    bad("a prediction that is no JSON after a mark of byte order", PREDICTIONS, |g| {
        let line = r#"{"instance_id": "triple", "model_name_or_path": "m", "model_patch": ""}"#;
        g.write("p.jsonl", &format!("\u{feff}{line}\n{{bad\n"));
    }),
    bad("a prediction that is a list of its values", PREDICTIONS, |g| {
        g.write("p.jsonl", "[\"triple\", \"m\", \"\"]\n");
    }),
    bad("a prediction for no task", PREDICTIONS, |g| {
        g.write("p.jsonl", r#"{"instance_id": "x", "model_name_or_path": "m", "model_patch": ""}"#);
    }),
    bad("a model's name that would rewrite the screen", PREDICTIONS, |g| {
        g.write(
            "p.jsonl",
            r#"{"instance_id": "triple", "model_name_or_path": "m\u001b[2J", "model_patch": ""}"#,
        );
    }),
    bad("no such run", &["run", "show", "grade-2026"], |_| {}),
    bad("no such schema", &["schema", "grades"], |_| {}),
    bad("a try in a pack of two tasks", &["probe", "try", "pack", "zero"], |g| {
        for file in ["task.toml", "spec.md", "contract.toml", "golden.patch", "official.patch"] {
            g.write(&format!("pack/tasks/zweite/{file}"), &g.read(&format!("pack/tasks/triple/{file}")));
        }
        g.edit("pack/tasks/zweite/task.toml", "id = \"triple\"", "id = \"zweite\"");
    }),
    bad(
        "a try at a world size that the task has not",
        &["probe", "try", "pack", "zero", "--world", "3"],
        |_| {},
    ),
    bad("a judge that is no Python", &["probe", "try", "pack", "zero"], |g| {
        g.write("pack/tasks/triple/probes/judge_model.py", "x = 1\ndef (\n");
    }),
    bad("no number of jobs", &["grade", "pack", "--patches", "golden", "--jobs", "0"], |_| {}),
];

#[test]
fn each_bad_input_is_told_with_its_place_and_what_to_do() {
    let mut told = String::new();
    for Bad { what, args, spoil } in TABLE {
        let ground = Ground::new();
        spoil(&ground);
        let said = ground.infradev(&[args, &["--quiet"][..]].concat());
        assert_eq!(said.out, "", "{what}: nothing on stdout");
        told += &format!("# {what}: exit {}\n{}\n", said.code, said.err);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn more_gpus_than_there_are_are_refused_where_they_are_asked_for() {
    let ground = Ground::new();
    ground.edit("pack/tasks/triple/task.toml", "worlds = [1]", "worlds = [1]\ngpus = 4000");
    let said = ground.infradev(&GRADE).exits(4);
    let told = "error: HERE/pack/tasks/triple/task.toml:8: key `gpus`: a trial takes 4000 GPUs and this machine has ";
    assert!(said.err.starts_with(told), "{}", said.err);
}

#[test]
fn a_missing_tool_is_a_fault_that_says_how_to_get_it() {
    let ground = Ground::new();
    let bin = ground.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let grade = |ground: &Ground| {
        let path = [("PATH", bin.to_str().unwrap())];
        ground.tool_with(&path, env!("CARGO_BIN_EXE_infradev"), &GRADE).exits(3).err
    };
    assert!(grade(&ground).contains("uv was not found on PATH\nhint: "), "{}", grade(&ground));
    let said = ground.tool_with(
        &[("PATH", bin.to_str().unwrap())],
        env!("CARGO_BIN_EXE_infradev"),
        &["doctor", "--json"],
    );
    let checks = said.exits(3).json();
    let missing: Vec<&str> = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["required"] == true && check["ok"] == false)
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(missing, ["uv", "git", "judge environment", "sandbox"]);
}

#[test]
fn a_store_that_cannot_be_written_is_a_fault_that_names_it() {
    let ground = Ground::new();
    ground.write("file", "");
    let said = ground.infradev(&["grade", "pack", "--patches", "golden", "--home", "file/home"]).exits(3);
    assert!(said.err.contains("HERE/file/home"), "{}", said.err);
}

#[test]
fn a_refused_run_says_so_and_goes_on_once_its_cause_is_mended() {
    let ground = Ground::new();
    ground.edit("pack/pack.toml", "python = \"3.11\"", "python = \"3.11\"\nframework = [\"nosuch\"]");
    let refused = ground.infradev(&GRADE).exits(4);
    let list = ground.infradev(&["run", "list"]).exits(0);
    assert!(list.out.contains(" refused "), "{}", list.out);
    let shown = ground.infradev(&["run", "show", "last"]).exits(0);
    let error = shown.out.lines().find_map(|line| line.strip_prefix("  error: ")).unwrap();
    assert!(refused.err.contains(error), "{error}\n{}", refused.err);
    ground.infradev(&GRADE).exits(4);
    let runs = ground.infradev(&["run", "list", "--json"]).exits(0).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "the same command goes on with the same run");
}

#[test]
fn a_run_whose_record_cannot_be_read_is_named_and_the_others_are_listed() {
    let ground = Ground::new();
    ground.infradev(&["grade", "pack", "--patches", "base", "--quiet"]).exits(0);
    ground.write("home/runs/grade-1970/run.json", "{\"schema\": ");
    let said = ground.infradev(&["run", "list"]).exits(0);
    assert!(said.out.contains("finished"), "{}", said.out);
    assert!(said.err.contains("warning: HERE/home/runs/grade-1970/run.json:1: "), "{}", said.err);
}
