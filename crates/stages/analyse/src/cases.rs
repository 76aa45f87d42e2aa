//! Failing cases of a grade, each with what its trial's record holds of it.

use std::collections::{HashMap, HashSet};

use infradev_model::{
    CaseError, CaseId, CaseResult, Detail, Digest, FailingCase, Grade, Judgement, Outcome, RankOutcome,
    Rejection, Suite, TRIAL_SCHEMA, Word,
};
use infradev_store::RunView;
use serde::Deserialize;

use crate::labelling::Seen;
use crate::messages::first_line;
use crate::references::Reference;
use crate::signature::{normal, signature};

/// What of a trial's record is read.
#[derive(Deserialize)]
struct Record {
    inputs: Inputs,
    cases: Vec<CaseResult>,
}

#[derive(Deserialize)]
struct Inputs {
    world: u32,
    #[serde(default)]
    tree: Option<Digest>,
}

/// Judgements of a grade's trials, by case and world size.
#[derive(Default)]
pub(crate) struct Judgements {
    found: HashMap<(CaseId, u32), Judgement>,
    /// Probe cases that passed.
    passed: HashSet<(CaseId, u32)>,
    /// World sizes of the trials that were read.
    pub worlds: Vec<u32>,
    /// The base tree of the task.
    pub tree: Option<Digest>,
    /// Trials without a record that can be read, with what is wrong.
    pub missing: Vec<String>,
}

impl Judgements {
    /// Traits of all probe cases.
    pub fn traits(&self) -> impl Iterator<Item = String> {
        self.found.values().flat_map(|judgement| judgement.traits.iter().cloned())
    }

    pub fn of(grade: &Grade, grader: Option<&RunView>) -> Judgements {
        let mut judgements = Judgements::default();
        for key in &grade.trials {
            let Some(grader) = grader else { continue };
            match grader.trial::<Record>(key, TRIAL_SCHEMA) {
                Ok(Some(record)) => judgements.keep(record),
                Ok(None) => judgements.missing.push(format!("trial {key} of {} is gone", grader.run.id)),
                Err(error) => judgements.missing.push(error.to_string()),
            }
        }
        judgements
    }

    fn keep(&mut self, record: Record) {
        let world = record.inputs.world;
        self.worlds.push(world);
        self.tree = self.tree.take().or(record.inputs.tree);
        for case in record.cases {
            if let Some(judgement) = case.judgement {
                if case.vector.iter().all(|entry| entry.outcome == Outcome::Passed) {
                    self.passed.insert((case.case.clone(), world));
                }
                self.found.insert((case.case, world), *judgement);
            }
        }
    }

    /// Whether the case that a probe names for its exact inputs passed at this world size. None where it names none, where that was not
    /// run, and where what failed was not its comparison: a crash tells nothing of numbers.
    fn exact_passes(&self, judgement: &Judgement, world: u32) -> Option<bool> {
        let id = CaseId { suite: Suite::Probe, id: judgement.exact.clone()? };
        let key = (id, world);
        if self.passed.contains(&key) {
            return Some(true);
        }
        let substantive = self.found.get(&key)?.rejection == Some(Rejection::Substantive);
        substantive.then_some(false)
    }
}

/// One failing case with its signature and label.
pub(crate) fn case(
    run: &str,
    grade: &Grade,
    failing: &FailingCase,
    judgements: &Judgements,
    reference: Option<&Reference>,
) -> CaseError {
    let judgement = judgements.found.get(&(failing.case.clone(), failing.world));
    let culprit = culprit_of(failing, judgement);
    let detail = culprit.and_then(|entry| entry.detail.as_deref());
    let frame = detail.and_then(|detail| Some((detail.file.as_deref()?, detail.line?)));
    let official = reference.filter(|_| failing.case.suite == Suite::Official);
    let asserted = frame.and_then(|(file, line)| official?.asserted(file, line));
    let seen = Seen {
        case: &failing.case.id,
        word: failing.word,
        culprit,
        judgement,
        asserted: asserted.map(|one| one.property),
        exact_passes: judgement.and_then(|judgement| judgements.exact_passes(judgement, failing.world)),
    };
    let label = seen.label();
    let empty = Detail::default();
    let told = detail.unwrap_or(&empty);
    CaseError {
        run: run.to_owned(),
        task: grade.task.clone(),
        submission: grade.submission.clone(),
        suite: failing.case.suite,
        case: failing.case.id.clone(),
        world: failing.world,
        word: failing.word,
        fail_to_pass: failing.fail_to_pass,
        checks: match (judgement, asserted.filter(|_| seen.stopped_by_assertion())) {
            (Some(judgement), _) => Some(judgement.checks.clone()),
            (None, asserted) => asserted.map(|one| one.property.word().to_owned()),
        },
        assertion: asserted.filter(|_| seen.stopped_by_assertion()).map(|one| one.text.clone()),
        traits: judgement.map(|judgement| judgement.traits.clone()).unwrap_or_default(),
        exception: told.exception.clone(),
        message: first_line(&told.message).to_owned(),
        at: told.file.as_ref().map(|file| match told.line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        }),
        signature: signed(failing.word, culprit, told),
        label,
    }
}

fn signed(word: Word, culprit: Option<&RankOutcome>, told: &Detail) -> String {
    let exception = match culprit.map(|entry| entry.outcome) {
        _ if !told.exception.is_empty() => told.exception.as_str(),
        Some(outcome) => outcome.word(),
        None => word.word(),
    };
    signature(exception, &told.message, told.file.as_deref())
}

/// The rank at fault: of a probe, one of the world that failed where the code under test raised, else the judge's own entry.
fn culprit_of<'a>(failing: &'a FailingCase, judgement: Option<&'a Judgement>) -> Option<&'a RankOutcome> {
    let ranks = judgement.filter(|judgement| {
        !matches!(judgement.rejection, Some(infradev_model::Rejection::Substantive) | None)
    });
    ranks.and_then(|judgement| worst(&judgement.ranks)).or_else(|| worst(&failing.vector))
}

/// The entry that decides: the worst outcome; of several the one that says most, in an order that no rank's number changes.
fn worst(vector: &[RankOutcome]) -> Option<&RankOutcome> {
    let gravity = |outcome: Outcome| match outcome {
        Outcome::Crashed => 0,
        Outcome::Timeout => 1,
        Outcome::Error => 2,
        Outcome::Failed => 3,
        Outcome::Xfailed | Outcome::Xpassed => 4,
        Outcome::NotCollected => 5,
        Outcome::PeerAbort => 6,
        Outcome::Skipped | Outcome::Passed => 7,
    };
    let bad = vector.iter().filter(|entry| gravity(entry.outcome) < 7);
    bad.min_by_key(|entry| {
        let told = entry.detail.as_deref();
        let said = told.map(|told| (told.exception.clone(), normal(&told.message), told.file.clone()));
        (gravity(entry.outcome), told.is_none(), said)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(outcome: Outcome, exception: &str) -> RankOutcome {
        let detail = Detail { exception: exception.into(), ..Detail::default() };
        RankOutcome::with(outcome, detail)
    }

    proptest! {
        #[test]
        fn which_rank_was_at_fault_does_not_change_what_is_said_of_it(turn in 0usize..4) {
            let mut vector = vec![
                entry(Outcome::PeerAbort, ""),
                entry(Outcome::Failed, "AssertionError"),
                entry(Outcome::Error, "ValueError"),
                entry(Outcome::Error, "KeyError"),
            ];
            vector.rotate_left(turn);
            prop_assert_eq!(worst(&vector), Some(&entry(Outcome::Error, "KeyError")));
        }
    }

    #[test]
    fn ranks_that_pass_or_skip_are_at_fault_for_nothing() {
        let plain = RankOutcome::plain;
        assert_eq!(worst(&[plain(Outcome::Passed), plain(Outcome::Skipped)]), None);
        assert_eq!(worst(&[plain(Outcome::Passed), plain(Outcome::Crashed)]), Some(&plain(Outcome::Crashed)));
    }
}
