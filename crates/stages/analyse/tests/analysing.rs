//! Runs as the store writes them, read back: whole ones, half-finished ones, ones with parts missing.

mod ground;

use ground::{PROBE, SECRET, Store, document, grade, keep, record};
use infradev_analyse::{PeoplesLabels, Settings};
use infradev_model::{Analysis, Classified, Grouping, LabelledBy, Rate, RunState, Standing};
use serde_json::json;

fn all(analysis: &Analysis) -> &Rate {
    analysis.figures.rates.iter().find(|rate| rate.by == Grouping::All).unwrap()
}

fn shares(rate: &Rate) -> [(u32, u32); 3] {
    [rate.resolved, rate.official, rate.rejected].map(|share| (share.count, share.of))
}

#[test]
fn verdicts_are_counted_with_and_without_probes_and_faults_apart() {
    let store = Store::new();
    let run = store.graded(&[
        grade("codex#1", "resolved", 2, 2),
        grade("codex#2", "unresolved", 2, 1),
        grade("claude#1", "unresolved", 1, 1),
        grade("claude#2", "fault", 0, 0),
        grade("other", "tampered", 2, 2),
    ]);
    let analysis = store.public(&[&run]);
    assert_eq!(shares(all(&analysis)), [(1, 4), (2, 4), (1, 2)]);
    assert_eq!(all(&analysis).faults, 1);
    let of = |by, group: &str| {
        analysis.figures.rates.iter().find(|rate| rate.by == by && rate.group == group).map(shares).unwrap()
    };
    assert_eq!(of(Grouping::Arm, "codex"), [(1, 2), (2, 2), (1, 2)]);
    assert_eq!(of(Grouping::Arm, "claude"), [(0, 1), (0, 1), (0, 0)]);
    assert_eq!(of(Grouping::Repository, "ada/toy")[0], (1, 4));
    assert_eq!(of(Grouping::Area, "training")[0], (1, 4));
    let gates: Vec<(&str, [u32; 6])> = analysis
        .figures
        .gates
        .iter()
        .map(|row| {
            let counts =
                [row.scored, row.applies, row.collects, row.smallest_world, row.official, row.resolved];
            (row.arm.as_str(), counts)
        })
        .collect();
    // What was tampered with applies, and no more is said of it.
    assert_eq!(
        gates,
        [("codex", [2, 2, 2, 2, 2, 1]), ("claude", [1, 1, 1, 0, 0, 0]), ("other", [1, 1, 0, 0, 0, 0])]
    );
    let pass: Vec<(&str, u32, f64)> =
        analysis.figures.pass_at_k.iter().map(|row| (row.arm.as_str(), row.k, row.estimate.value)).collect();
    assert_eq!(pass, [("codex", 1, 0.5), ("codex", 2, 1.0), ("claude", 1, 0.0), ("other", 1, 0.0)]);
    let errors: Vec<(&str, u32, [u32; 3])> = analysis
        .figures
        .errors
        .iter()
        .map(|row| {
            let label = row.label.map_or("none", |label| label.word());
            (label, row.submissions.count, [row.official_only, row.probe_only, row.both])
        })
        .collect();
    assert_eq!(errors, [("behavioural/boundary", 2, [0, 2, 0]), ("numerical/wrong_algorithm", 1, [1, 0, 0])]);
}

#[test]
fn a_public_report_holds_nothing_of_a_probe_and_a_sealed_one_all() {
    let store = Store::new();
    let run = store.graded(&[grade("codex", "unresolved", 1, 1)]);
    let public = store.public(&[&run]);
    let text = serde_json::to_string(&public).unwrap();
    assert!(!text.contains(SECRET) && !text.contains("judge_x"), "{text}");
    assert!(text.contains("tests/test_model.py::test_triple") && text.contains("\"sealed\":false"), "{text}");
    let sealed = store.analysis(&[&run], Settings { sealed: true, ..Settings::default() }).unwrap();
    let probe = sealed.cases.iter().find(|case| case.case == PROBE).unwrap();
    assert_eq!(probe.message, "zanzibar: got 1, expected 2");
    assert_eq!(probe.signature, "ExpectationFailed: zanzibar: got <n>, expected <n> @ probes/judge_x.py");
    assert_eq!(sealed.figures.traits[0].name, "zanzibar-boundary");
    // The same digest each time: two public reports can be laid side by side.
    let name =
        |analysis: &Analysis| analysis.cases.iter().find(|case| case.case.starts_with("probe-")).cloned();
    assert_eq!(name(&public), name(&store.public(&[&run])));
}

#[test]
fn an_evaluation_joins_attempts_with_grades_and_tells_what_is_left() {
    let store = Store::new();
    let graded = store.graded(&[grade("codex#1", "resolved", 2, 2)]);
    let run = store.begin("attempt");
    let records = [
        record("codex#1", 1, "finished"),
        record("codex#2", 2, "timed_out"),
        record("codex#3", 3, "endpoint_unreachable"),
    ];
    let attempts = json!({"schema": 1, "run": run.id(), "predictions": "p", "submissions": records});
    run.write_document("attempt.json", &attempts).unwrap();
    let id = run.id().to_owned();
    drop(run);

    let half = store.public(&[&id]);
    assert_eq!(half.runs[0].state, RunState::Unfinished);
    assert!(half.notes[0].contains("is unfinished: what it holds so far is counted"), "{:?}", half.notes);
    assert_eq!(shares(all(&half))[0], (0, 0));
    assert_eq!((all(&half).ungraded, all(&half).unreached), (2, 1));

    let eval = json!({
        "schema": 1, "arms": [], "attempt": attempts,
        "grade": document(&graded, &[grade("codex#1", "resolved", 2, 2)]),
    });
    let run = store.runs().open(&id).unwrap();
    run.write_document("eval.json", &eval).unwrap();
    run.finish().unwrap();
    // With the run that graded it too: nothing is counted twice.
    for given in [vec![id.as_str()], vec![graded.as_str(), id.as_str()]] {
        let analysis = store.public(&given);
        assert_eq!(shares(all(&analysis))[0], (1, 1), "{given:?}");
        assert_eq!(analysis.submissions.len(), 3);
        let first = &analysis.submissions[0];
        assert_eq!((first.tokens.unwrap().input, first.lookups, first.agent_s), (100, Some(3), Some(12.0)));
        assert_eq!(analysis.submissions[2].standing, Standing::Unreached);
    }
}

#[test]
fn attempts_and_a_run_that_graded_them_are_joined_by_name() {
    let store = Store::new();
    let run = store.begin("attempt");
    let attempts = json!({"schema": 1, "run": run.id(), "predictions": "p", "submissions": [record("codex#1", 1, "finished")]});
    run.write_document("attempt.json", &attempts).unwrap();
    let id = run.id().to_owned();
    run.finish().unwrap();
    let graded = store.graded(&[grade("codex#1", "unresolved", 2, 1)]);
    let analysis = store.public(&[&graded, &id]);
    assert_eq!(analysis.submissions.len(), 1);
    assert_eq!(analysis.submissions[0].agent_s, Some(12.0));
    assert_eq!(shares(all(&analysis)), [(0, 1), (1, 1), (1, 1)]);
}

#[test]
fn two_runs_of_the_same_names_are_compared_as_arms() {
    let store = Store::new();
    let one = store.graded(&[grade("codex", "unresolved", 2, 1)]);
    let other = store.graded(&[grade("codex", "resolved", 2, 2)]);
    let analysis = store.public(&[&one, &other]);
    let pair = &analysis.figures.paired[0];
    assert_eq!([pair.pairs, pair.both, pair.one_only, pair.other_only], [1, 0, 0, 1]);
    assert_eq!(pair.one, format!("codex @ {one}"));
    assert!((pair.p - 1.0).abs() < 1e-9 && (pair.difference.value - 1.0).abs() < 1e-9, "{pair:?}");
}

#[test]
fn what_is_missing_is_told_and_the_rest_is_counted() {
    let store = Store::new();
    let run = store.graded(&[grade("codex", "unresolved", 2, 1)]);
    std::fs::remove_dir_all(store.path(&run).join("trials")).unwrap();
    let analysis = store.public(&[&run]);
    assert!(
        analysis.notes[0].starts_with("trial ") && analysis.notes[0].ends_with("is gone"),
        "{:?}",
        analysis.notes
    );
    assert_eq!(analysis.cases[0].label.label, None);
    assert_eq!(shares(all(&analysis))[0], (0, 1));

    let begun = store.begin("grade");
    keep(&begun, &grade("x", "resolved", 2, 2));
    let id = begun.id().to_owned();
    drop(begun);
    let analysis = store.public(&[&id]);
    assert_eq!((analysis.runs[0].begun, analysis.runs[0].finished, analysis.runs[0].submissions), (1, 1, 0));
    assert!(analysis.notes[0].ends_with("none of its submissions has a grade yet"), "{:?}", analysis.notes);
}

#[test]
fn what_cannot_be_analysed_is_refused_by_name() {
    let store = Store::new();
    let run = store.graded(&[grade("codex", "resolved", 2, 2)]);
    let path = store.path(&run).join("grade.json");
    let said = |ids: &[&str]| {
        let error = store.analysis(ids, Settings::default()).unwrap_err();
        let text = format!("{error} [{}]", error.hint().unwrap_or_default());
        text.replace(&store.runs_folder().display().to_string(), "RUNS").replace(&run, "RUN")
    };
    let accepted = store.begin("accept");
    let (id, twice) = (accepted.id().to_owned(), said(&[&run, &run]));
    let verb = said(&[&id]).replace(&id, "ACCEPT");
    // A newer or older document has other keys: its version is what is told.
    std::fs::write(&path, r#"{"schema": 0, "grades": []}"#).unwrap();
    let older = said(&[&run]);
    std::fs::write(&path, r#"{"schema": 1, "run"#).unwrap();
    insta::assert_snapshot!([twice, verb, older, said(&[&run])].join("\n"));
}

#[test]
fn people_overrule_and_a_label_of_a_case_that_is_gone_is_refused() {
    let store = Store::new();
    let run = store.graded(&[grade("codex", "unresolved", 1, 1)]);
    let entry = |case: &str, label: &str| {
        format!(
            "[[label]]\ntask = 'triple'\nsubmission = 'codex'\ncase = '{case}'\nlabel = '{label}'\nwhy = 'read it'\nby = 'ada'\n"
        )
    };
    let name =
        store.public(&[&run]).cases.iter().find(|case| case.case.starts_with("probe-")).unwrap().case.clone();
    let text = format!(
        "schema = 1\n{}{}",
        entry("tests/test_model.py::test_triple", "structural/state"),
        entry(&name, "behavioural/boundary")
    );
    let labels = PeoplesLabels::parse("labels.toml", text.as_bytes()).unwrap();
    let analysis =
        store.analysis(&[&run], Settings { labels: Some(&labels), ..Settings::default() }).unwrap();
    let of = |at: usize| (analysis.cases[at].label.label.unwrap().word(), analysis.cases[at].label.by);
    assert_eq!(of(0), ("structural/state", LabelledBy::Person));
    assert_eq!(of(1), ("behavioural/boundary", LabelledBy::Person));
    let agreement = analysis.figures.agreement.clone().unwrap();
    assert_eq!((agreement.cases, agreement.same), (2, 1));

    let gone = format!(
        "schema = 1\n{}\n{}",
        entry(&name, "behavioural/boundary"),
        entry("tests/test_model.py::test_gone", "structural/state")
    );
    let labels = PeoplesLabels::parse("labels.toml", gone.as_bytes()).unwrap();
    let error =
        store.analysis(&[&run], Settings { labels: Some(&labels), ..Settings::default() }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "labels.toml:10: key `label.case`: `tests/test_model.py::test_gone` of codex on triple is no failing case of these runs"
    );
}
