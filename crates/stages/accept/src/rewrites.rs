//! Golden written anew: a probe that fails a rewrite judges how golden is written, not what it does.

use std::collections::BTreeMap;

use infradev_executor::{DeriveError, GoldenChange};
use infradev_model::{CaseId, OverFitted, RewriteCount, Suite, TrialResult, Word};

use crate::evidence::WorldEvidence;

/// The rewrites of a task that are tried: name and submission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rewrites {
    pub tried: Vec<(String, Vec<u8>)>,
    /// All that golden allows.
    pub of: usize,
}

impl Rewrites {
    /// Chooses `limit` of them.
    pub(crate) fn of(change: &GoldenChange<'_>, limit: usize) -> Result<Rewrites, DeriveError> {
        if limit == 0 {
            return Ok(Rewrites::default());
        }
        let all = change.rewrites()?;
        let chosen = all.chosen(limit);
        let tried = chosen.into_iter().map(|rewrite| Ok((rewrite.name(), change.rewritten(rewrite)?)));
        Ok(Rewrites { tried: tried.collect::<Result<_, DeriveError>>()?, of: all.rewritten.len() })
    }

    /// How many.
    pub(crate) fn count(&self) -> RewriteCount {
        RewriteCount { tried: self.tried.len() as u32, of: self.of as u32 }
    }
}

/// One rewrite's trials: a second one where a case failed the first.
pub(crate) struct RewriteTrials {
    pub name: String,
    pub trials: Vec<TrialResult>,
}

/// What the rewrites say of a task's tests.
#[derive(Debug, Default)]
pub(crate) struct Fit {
    pub over_fitted: Vec<OverFitted>,
    /// Why the task is not accepted: a line for each probe case.
    pub reasons: Vec<String>,
    /// Official tests that fail a rewrite, and cases that fail only once.
    pub remarks: Vec<String>,
}

impl Fit {
    /// From the trials at all world sizes.
    pub(crate) fn of(worlds: &[WorldEvidence]) -> Fit {
        let mut fit = Fit::default();
        let mut official: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for world in worlds {
            for case in world.calibration.cases.iter().map(|case| &case.case) {
                for rewrite in &world.rewrites {
                    let words: Vec<Word> =
                        rewrite.trials.iter().map(|trial| world.word(trial, case)).collect();
                    let passed = words.iter().filter(|word| **word == Word::Passed).count();
                    match (words.first(), case.suite) {
                        (None | Some(Word::Passed), _) => {}
                        _ if passed > 0 => fit.remarks.push(format!(
                            "{} passes golden written anew ({}) in one of two runs: it is flaky",
                            case.id, rewrite.name
                        )),
                        (Some(word), Suite::Probe) => fit.over_fitted.push(OverFitted {
                            case: case.id.clone(),
                            world: world.world,
                            rewrite: rewrite.name.clone(),
                            word: *word,
                            said: said(&rewrite.trials, case),
                        }),
                        (Some(_), Suite::Official) => {
                            official.entry(case.id.clone()).or_default().push(rewrite.name.clone());
                        }
                    }
                }
            }
        }
        fit.reasons = reasons(&fit.over_fitted);
        fit.remarks.extend(official.into_iter().map(|(case, mut rewrites)| {
            rewrites.dedup();
            format!("official test {case} fails golden written anew: {}", rewrites.join("; "))
        }));
        fit
    }
}

fn reasons(over_fitted: &[OverFitted]) -> Vec<String> {
    let mut by_case: BTreeMap<&str, Vec<&OverFitted>> = BTreeMap::new();
    for found in over_fitted {
        by_case.entry(&found.case).or_default().push(found);
    }
    let line = |(case, found): (&str, Vec<&OverFitted>)| {
        let mut rewrites: Vec<String> = Vec::new();
        for one in found {
            let why = if one.said.is_empty() { one.word.word() } else { &one.said };
            let text = format!("{} ({why})", one.rewrite);
            if !rewrites.contains(&text) {
                rewrites.push(text);
            }
        }
        format!("probe {case} is over-fitted: it fails golden written anew: {}", rewrites.join("; "))
    };
    by_case.into_iter().map(line).collect()
}

/// What the case said of the first run.
fn said(trials: &[TrialResult], case: &CaseId) -> String {
    let found = trials.first().and_then(|trial| trial.cases.iter().find(|found| found.case == *case));
    found.map(|found| found.said()).unwrap_or_default()
}
