//! What rejects a mutant: which answer of a case does, by which rule, and what a run of cases comes to.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{CaseResult, MutantRecord, Outcome, RejectedBy, Word, merge};
use infradev_trial::Tried;

use super::control::SuiteControl;

/// Stands for a case's id where no case rejects.
const SESSION_END: &str = "the end of pytest's session";

/// When a mutant passes an official case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Where it answers as golden does, by the case's id: a task's verdict has it so.
    LikeGolden,
    /// Where nothing fails, as pytest's exit code has it: also a case that it makes skip or go by another id.
    NothingFails,
}

impl Rule {
    /// Whether a case rejects what it was run on: one that golden passes, and that does not.
    pub(super) fn rejects(self, control: &SuiteControl, case: &CaseResult) -> bool {
        let is_golden_s = control.cases.contains_key(&case.case.id);
        let rejected = is_golden_s && word(control, case) != Word::Passed && !judge_failed(case);
        rejected && (self == Rule::LikeGolden || fails(case))
    }

    /// Whether what a run came to is to be asked again by whatever ids are collected: a case is gone, others ran.
    pub(super) fn asks_for_other_ids(self, found: Option<&RejectedBy>, tried: &Tried) -> bool {
        let gone = found.is_some_and(|by| by.word == Word::Missing);
        self == Rule::NothingFails && gone && tried.notes.is_empty() && !tried.cases.is_empty()
    }

    /// The same as [`Rule::rejects`] where all that is collected is run: one that golden does not know by its id rejects where it
    /// fails.
    pub(super) fn rejects_by_any_id(
        self,
        control: &SuiteControl,
        known: &BTreeSet<String>,
        case: &CaseResult,
    ) -> bool {
        self.rejects(control, case) || !known.contains(&case.case.id) && fails(case)
    }
}

/// What rejects a mutant after its last case, if the session's end is asked for at all: a hook of a conftest or a plugin that lets
/// pytest end otherwise than with 0.
pub(super) fn by_end(control: &SuiteControl, tried: &Tried) -> Option<RejectedBy> {
    let (rank, how) = tried.end.failed.as_ref().filter(|_| control.ends())?;
    Some(RejectedBy {
        suite: control.suite,
        case: SESSION_END.to_string(),
        world: control.world,
        word: Word::Error,
        said: format!("{how} on rank {rank}, after all cases passed"),
    })
}

fn fails(case: &CaseResult) -> bool {
    case.outcomes().iter().any(|outcome| outcome.fails())
}

/// What rejects a mutant in a run, if anything: a case that does by `rejects`, or one that is missing.
pub(super) fn rejection(
    control: &SuiteControl,
    tried: &Tried,
    asked: &BTreeSet<String>,
    rejects: &dyn Fn(&CaseResult) -> bool,
) -> Option<RejectedBy> {
    let by = |case: String, word: Word, said: String| RejectedBy {
        suite: control.suite,
        case,
        world: control.world,
        word,
        said,
    };
    if let Some(case) = tried.cases.iter().find(|case| rejects(case)) {
        return Some(by(case.case.id.clone(), word(control, case), case.said()));
    }
    let judged: BTreeSet<String> =
        asked.iter().filter(|id| control.cases.contains_key(*id)).cloned().collect();
    let missing = missing(tried, &judged)?;
    Some(by(missing, Word::Missing, tried.notes.first().cloned().unwrap_or_default()))
}

/// What a case made of the mutant, against golden's vector.
pub(super) fn word(control: &SuiteControl, case: &CaseResult) -> Word {
    let golden: &[Outcome] =
        control.cases.get(&case.case.id).map(|golden| golden.vector.as_slice()).unwrap_or_default();
    merge(&case.outcomes(), golden)
}

/// Whether a judge failed by itself, which says nothing of the mutant.
pub(super) fn judge_failed(case: &CaseResult) -> bool {
    let passed = case.outcomes().iter().all(|outcome| *outcome == Outcome::Passed);
    !passed && case.judgement.as_ref().is_some_and(|judgement| judgement.rejection.is_none())
}

/// A case that was asked for and that no rank collected.
pub(super) fn missing(tried: &Tried, cases: &BTreeSet<String>) -> Option<String> {
    let ran: BTreeSet<&str> = tried.cases.iter().map(|case| case.case.id.as_str()).collect();
    cases.iter().find(|id| !ran.contains(id.as_str())).cloned()
}

/// Adds what a probe answered at a world size: one that rejects at some rejects, whatever it answers at another.
pub(super) fn note(probes: &mut BTreeMap<String, Word>, id: &str, word: Word) {
    let told = probes.entry(id.to_string()).or_insert(Word::Passed);
    if *told == Word::Passed {
        *told = word;
    }
}

/// Whether nothing but a deadline rejected a mutant: what the deadline cut is not counted as answered.
pub(super) fn late(record: &MutantRecord) -> bool {
    let in_time = |word: &Word| !matches!(word, Word::Passed | Word::Timeout | Word::Missing);
    record.by.as_ref().is_some_and(|by| !in_time(&by.word)) && !record.probes.values().any(in_time)
}

#[cfg(test)]
mod tests {
    use infradev_model::{Fate, Mutant, Suite};

    use super::*;

    fn record(by: Word, probes: &[(&str, Word)]) -> MutantRecord {
        MutantRecord {
            mutant: Mutant {
                file: "m.py".to_string(),
                start: 0,
                end: 1,
                replacement: None,
                operator: infradev_model::Operator::TakeBackFile,
                function: None,
                line: 1,
                digest: infradev_model::Digest::of(b"m"),
            },
            fate: Fate::Official,
            was: String::new(),
            becomes: String::new(),
            promise: String::new(),
            equivalent: None,
            by: Some(RejectedBy {
                suite: Suite::Probe,
                case: "c".to_string(),
                world: 1,
                word: by,
                said: String::new(),
            }),
            official_reach: 1,
            probe_reach: 1,
            probes: probes.iter().map(|(id, word)| ((*id).to_string(), *word)).collect(),
            wall_s: 0.0,
        }
    }

    #[test]
    fn a_probe_that_rejects_at_one_world_size_is_not_shown_as_passed_for_another() {
        for told in [[Word::Failed, Word::Passed], [Word::Passed, Word::Failed]] {
            let mut probes = BTreeMap::new();
            for word in told {
                note(&mut probes, "c", word);
            }
            assert_eq!(probes["c"], Word::Failed);
        }
    }

    #[test]
    fn a_mutant_is_late_where_deadlines_alone_rejected_it() {
        assert!(late(&record(Word::Timeout, &[("c", Word::Timeout), ("d", Word::Passed)])));
        assert!(late(&record(Word::Missing, &[])));
        assert!(!late(&record(Word::Timeout, &[("c", Word::Timeout), ("d", Word::Failed)])));
        assert!(!late(&record(Word::Failed, &[("c", Word::Failed)])));
    }
}
