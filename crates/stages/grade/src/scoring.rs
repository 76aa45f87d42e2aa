//! From calibrations and trials to a grade. Pure: the same records give the same verdict.

use std::collections::BTreeMap;

use infradev_model::{
    CalibratedCase, Calibration, CaseId, CaseResult, FailingCase, Grade, Score, Suite, SuiteScores,
    TrialResult, Verdict, Word, merge,
};

/// Cases named in the reasons; the rest are counted.
const NAMED: usize = 3;

/// Grades one submission on one task from its trials, one for each world size, each beside its calibration.
pub fn grade(task: &str, submission: &str, trials: &[(&Calibration, &TrialResult)]) -> Grade {
    let mut grade = Grade {
        task: task.to_string(),
        submission: submission.to_string(),
        verdict: Verdict::Unresolved,
        passed: 0,
        of: 0,
        suites: SuiteScores::default(),
        without_probes: false,
        fail_to_pass: Score::default(),
        pass_to_pass: Score::default(),
        // An empty sum of floats is -0.0.
        wall_s: trials.iter().map(|(_, trial)| trial.timing.wall_s).sum::<f64>() + 0.0,
        fault: None,
        reasons: Vec::new(),
        failing: Vec::new(),
        tampering: Vec::new(),
        sandbox: trials.first().map(|(_, trial)| trial.sandbox.clone()).unwrap_or_default(),
        trials: trials.iter().map(|(_, trial)| trial.inputs.key().to_string()).collect(),
    };
    for (calibration, trial) in trials {
        count(&mut grade, calibration, trial);
        grade.tampering.extend(trial.tampering.iter().cloned());
        grade.reasons.extend(trial.mended.iter().map(|mending| format!("mended: {mending}")));
    }
    grade.reasons.dedup();
    grade.without_probes = grade.suites.probe.of == 0;
    decide(&mut grade, trials);
    grade
}

/// A grade for a submission that no trial is needed for.
pub fn without_trial(
    task: &str,
    submission: &str,
    verdict: Verdict,
    reason: &str,
    of: &[&Calibration],
) -> Grade {
    let mut grade = grade(task, submission, &[]);
    for calibration in of {
        for case in &calibration.cases {
            add(&mut grade, case, false);
        }
    }
    grade.without_probes = grade.suites.probe.of == 0;
    grade.verdict = verdict;
    grade.reasons.push(reason.to_string());
    grade
}

fn add(grade: &mut Grade, case: &CalibratedCase, passes: bool) {
    let suite = match case.case.suite {
        Suite::Official => &mut grade.suites.official,
        Suite::Probe => &mut grade.suites.probe,
    };
    let kind = if case.fail_to_pass() { &mut grade.fail_to_pass } else { &mut grade.pass_to_pass };
    for score in [suite, kind] {
        score.of += 1;
        score.passed += u32::from(passes);
    }
    grade.of += 1;
    grade.passed += u32::from(passes);
}

fn count(grade: &mut Grade, calibration: &Calibration, trial: &TrialResult) {
    let results: BTreeMap<&CaseId, &CaseResult> = trial.cases.iter().map(|case| (&case.case, case)).collect();
    for case in &calibration.cases {
        let result = results.get(&case.case);
        let word = result.map_or(Word::Missing, |result| merge(&result.outcomes(), &case.vector));
        add(grade, case, word == Word::Passed);
        if word != Word::Passed {
            grade.failing.push(FailingCase {
                case: case.case.clone(),
                world: calibration.key.world,
                word,
                vector: result.map(|result| result.vector.clone()).unwrap_or_default(),
                fail_to_pass: case.fail_to_pass(),
            });
        }
    }
}

fn decide(grade: &mut Grade, trials: &[(&Calibration, &TrialResult)]) {
    let unapplied = trials.iter().find_map(|(_, trial)| trial.not_applied.as_ref());
    let fault = trials.iter().find_map(|(_, trial)| trial.fault.as_ref());
    if !grade.tampering.is_empty() {
        grade.verdict = Verdict::Tampered;
        let evidence: Vec<String> =
            grade.tampering.iter().take(NAMED).map(|found| found.evidence.clone()).collect();
        grade.reasons.splice(0..0, evidence);
        grade.passed = 0;
    } else if let Some(why) = unapplied {
        grade.verdict = Verdict::NotApplied;
        grade.reasons.insert(0, format!("the patch does not apply: {why}"));
        grade.passed = 0;
    } else if let Some(fault) = fault {
        grade.verdict = Verdict::Fault;
        grade.reasons.insert(0, fault.evidence.clone());
        grade.fault = Some(fault.clone());
    } else if grade.of > 0 && grade.passed == grade.of {
        grade.verdict = Verdict::Resolved;
    } else {
        grade.verdict = Verdict::Unresolved;
        let named = grade.failing.iter().take(NAMED).map(say);
        let mut reasons: Vec<String> = named.collect();
        if grade.failing.len() > NAMED {
            let more = grade.failing.len() - NAMED;
            reasons.push(format!("and {more} more case{}", if more == 1 { "" } else { "s" }));
        }
        for (_, trial) in trials {
            reasons.extend(trial.notes.iter().filter(|note| !grade.reasons.contains(note)).cloned());
        }
        reasons.dedup();
        grade.reasons.splice(0..0, reasons);
    }
    for (_, trial) in trials {
        let laid = trial.overlaid.len();
        if laid > 0 {
            let word = if laid == 1 { "path" } else { "paths" };
            let first = trial.overlaid.first().map(|path| path.path.clone()).unwrap_or_default();
            let said = format!(
                "the patch changed {laid} {word} of the task's tests, which were laid over ({first} …)"
            );
            if !grade.reasons.contains(&said) {
                grade.reasons.push(said);
            }
        }
    }
}

/// One sentence on a failing case: its id, its word, and the rank at fault with its exception.
fn say(case: &FailingCase) -> String {
    let culprit = case.vector.iter().enumerate().find(|(_, entry)| {
        use infradev_model::Outcome::{Passed, PeerAbort, Skipped};
        !matches!(entry.outcome, Passed | Skipped | PeerAbort)
    });
    let mut said = format!("{} {} at world size {}", case.case.id, case.word.word(), case.world);
    if let Some((rank, entry)) = culprit {
        if case.vector.len() > 1 {
            said.push_str(&format!(", rank {rank}"));
        }
        if let Some(detail) = &entry.detail {
            let message = detail.message.lines().next().unwrap_or_default();
            said.push_str(&format!(": {}: {message}", detail.exception));
        }
    }
    said
}
