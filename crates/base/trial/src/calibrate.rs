//! From golden's and base's trials to a calibration, and from a calibration and a trial to what counts. Pure.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{
    CALIBRATION_SCHEMA, CalibratedCase, CalibratedTwin, Calibration, CalibrationKey, CaseId, Outcome,
    Quarantined, TrialResult, countable,
};

/// Makes a calibration from golden's runs, base's run under golden's tests, and base's run with its own test files.
pub fn calibrate(
    key: CalibrationKey,
    golden: &[TrialResult],
    base: &TrialResult,
    base_own: &TrialResult,
) -> Calibration {
    let mut order: Vec<CaseId> = Vec::new();
    let mut vectors: BTreeMap<CaseId, Vec<Vec<Outcome>>> = BTreeMap::new();
    let mut durations: BTreeMap<CaseId, f64> = BTreeMap::new();
    for (run, result) in golden.iter().enumerate() {
        for case in &result.cases {
            let seen = vectors.entry(case.case.clone()).or_insert_with(|| {
                order.push(case.case.clone());
                vec![Vec::new(); run]
            });
            seen.resize(run, Vec::new());
            seen.push(case.outcomes());
            let longest = durations.entry(case.case.clone()).or_default();
            *longest = longest.max(case.duration_s);
        }
    }
    let outcomes = |result: &TrialResult| -> BTreeMap<CaseId, Vec<Outcome>> {
        result.cases.iter().map(|case| (case.case.clone(), case.outcomes())).collect()
    };
    let (base, base_own) = (outcomes(base), outcomes(base_own));
    let mut cases = Vec::new();
    let mut quarantined = Vec::new();
    for case in order {
        let mut seen = vectors.remove(&case).unwrap_or_default();
        seen.resize(golden.len(), Vec::new());
        match reason_against(&seen) {
            None => cases.push(CalibratedCase {
                base: base.get(&case).cloned().unwrap_or_default(),
                base_own: base_own.get(&case).is_some_and(|outcomes| *outcomes == seen[0]),
                duration_s: durations.get(&case).copied().unwrap_or_default(),
                vector: seen.swap_remove(0),
                case,
            }),
            Some(reason) => quarantined.push(Quarantined { case, reason, vectors: seen }),
        }
    }
    let mut walls: Vec<f64> = golden.iter().map(|result| result.timing.wall_s).collect();
    walls.sort_by(f64::total_cmp);
    Calibration {
        schema: CALIBRATION_SCHEMA,
        key,
        golden_runs: golden.len() as u32,
        cases,
        quarantined,
        twins: valid_twins(golden),
        wall_s: walls.get(walls.len() / 2).copied().unwrap_or_default(),
    }
}

/// Why a case does not count, where it does not.
fn reason_against(vectors: &[Vec<Outcome>]) -> Option<String> {
    let first = vectors.first()?;
    if vectors.iter().any(|vector| vector != first) {
        return Some("differs between runs of golden".to_string());
    }
    if countable(first) {
        return None;
    }
    if first.iter().all(|outcome| *outcome == Outcome::Skipped) {
        return Some("golden skips it on every rank".to_string());
    }
    let word = first.iter().find(|outcome| !matches!(outcome, Outcome::Passed | Outcome::Skipped));
    Some(format!("golden does not pass it ({})", word.map_or("skipped", |outcome| outcome.word())))
}

/// Twins that fail on golden alike on every rank, in every run.
fn valid_twins(golden: &[TrialResult]) -> Vec<CalibratedTwin> {
    let failing = |result: &TrialResult| -> BTreeSet<CalibratedTwin> {
        result
            .canaries
            .twins
            .iter()
            .filter(|twin| !twin.outcomes.is_empty())
            .filter(|twin| twin.outcomes.iter().all(|outcome| *outcome == Outcome::Failed))
            .filter_map(|twin| {
                let (file, function) = twin.of.split_once("::")?;
                Some(CalibratedTwin {
                    file: file.to_string(),
                    function: function.to_string(),
                    line: twin.line,
                })
            })
            .collect()
    };
    let mut runs = golden.iter().map(failing);
    let first = runs.next().unwrap_or_default();
    runs.fold(first, |valid, run| valid.intersection(&run).cloned().collect()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::Outcome::{Failed, Passed, Skipped};
    use super::*;

    #[test]
    fn only_what_golden_passes_in_every_run_with_one_vector_counts() {
        let counted: [&[Vec<Outcome>]; 2] =
            [&[vec![Passed, Passed], vec![Passed, Passed]], &[vec![Passed, Skipped], vec![Passed, Skipped]]];
        for vectors in counted {
            assert_eq!(reason_against(vectors), None);
        }
        let refused: [(&[Vec<Outcome>], &str); 4] = [
            (&[vec![Passed, Passed], vec![Passed, Skipped]], "differs between runs"),
            (&[vec![Passed], vec![]], "differs between runs"),
            (&[vec![Skipped, Skipped]], "skips it on every rank"),
            (&[vec![Passed, Failed]], "does not pass it (failed)"),
        ];
        for (vectors, words) in refused {
            let reason = reason_against(vectors).unwrap();
            assert!(reason.contains(words), "{reason}");
        }
    }
}
