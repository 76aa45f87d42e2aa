//! `infradev report` on a run of the real program.

mod ground;

use ground::Ground;

const RIGHT: &str = "def triple(x):\n+    return 3 * x\n";

/// Three attempts: a right one, one that is wrong for large numbers (which probes alone notice), one that raises.
fn graded() -> (Ground, String) {
    let ground = Ground::new();
    let bodies = [
        RIGHT,
        "def triple(x):\n+    return 3 * x if x < 10 else 4 * x\n",
        "def triple(x):\n+    raise ValueError(f\"\\x1b[2J<b>{x}</b> | at {id(x)}\")\n",
    ];
    for (at, body) in bodies.iter().enumerate() {
        let path = format!("patches/codex#{}/triple.patch", at + 1);
        ground.write(&path, &ground::GOLDEN.replace(RIGHT, body));
    }
    let document = ground.infradev(&["grade", "pack", "--patches", "patches", "--json"]).exits(0).json();
    let run = document["run"].as_str().unwrap().to_owned();
    (ground, run)
}

#[test]
fn a_run_is_reported_in_tables_markdown_csv_and_json() {
    let (ground, run) = graded();
    let plain = |text: &str| text.replace(&run, "RUN");
    let told = ground.infradev(&["report", "last"]).exits(0);
    insta::assert_snapshot!("tables", plain(&told.out));
    assert!(!told.out.contains('\u{1b}') && !told.out.contains("any_number"), "{}", told.out);

    let markdown = ground.infradev(&["report", &run, "--markdown", "--csv", "tables"]).exits(0).out;
    assert!(markdown.contains("&lt;b&gt;") && !markdown.contains("<b>"), "{markdown}");
    let cases = ground.read("tables/cases.csv");
    assert_eq!(cases.lines().count(), 5, "{cases}");
    assert!(cases.lines().all(|line| !line.contains('\u{1b}') && !line.contains("judge_model")), "{cases}");

    let document = ground.infradev(&["report", &format!("home/runs/{run}"), "--json"]).exits(0).json();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["figures"]["rates"][0]["rejected"]["count"], 1);
    assert_eq!(document["tasks"][0]["repository"], "repo");
    let sealed = ground.infradev(&["report", &run, "--sealed", "--json"]).exits(0).json();
    let labels: Vec<(&str, &str)> = sealed["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| (case["case"].as_str().unwrap(), case["label"]["label"].as_str().unwrap()))
        .collect();
    assert_eq!(
        labels,
        [
            ("probes/judge_model.py::any_number_is_tripled[world=1]", "numerical/wrong_algorithm"),
            ("tests/test_model.py::test_triple", "structural/execution"),
            ("probes/judge_model.py::any_number_is_tripled[world=1]", "structural/execution"),
            ("probes/judge_model.py::zero_stays_zero[world=1]", "structural/execution"),
        ]
    );
}

#[test]
fn what_is_no_run_and_labels_of_nothing_are_refused_with_what_to_do() {
    let ground = Ground::new();
    ground.write("labels.toml", "schema = 1\n[[label]]\ntask = 'triple'\nwho = 'ada'\n");
    ground.write("home/runs/grade-20200101-000000-0000/run.json", "{\"schema\": 0}");
    let mut said = String::new();
    for args in [
        vec!["report", "nothing"],
        vec!["report", "pack/tasks"],
        vec!["report", "./nowhere"],
        vec!["report", "./home/runs/grade-20200101-000000-0000"],
        vec!["report", "last", "--labels", "labels.toml"],
        vec!["report", "last", "--labels", "none.toml"],
        vec!["report", "last"],
    ] {
        let told = ground.infradev(&args);
        said.push_str(&format!("$ infradev {}\n{}[exit {}]\n\n", args.join(" "), told.err, told.code));
    }
    insta::assert_snapshot!(said);
}
