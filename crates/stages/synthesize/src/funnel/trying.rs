//! One mutant through the funnel: official tests first, then, if none of them rejects it, the probes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use infradev_model::{CaseResult, Fate, Mutant, MutantRecord, RejectedBy, SealedTask, Suite, Timeouts, Word};
use infradev_trial::{Ask, Line, Session, TrialError, Tried};

use super::control::{Control, SuiteControl, run};
use super::leaning::{Believed, SESSION_ENDS, Scope, sequence};
use super::rejecting::{Rule, by_end, judge_failed, late, missing, note, rejection, word};

/// What a mutant is tried with.
pub struct Trying<'a> {
    /// The task.
    pub task: &'a SealedTask,
    /// Golden's control.
    pub control: &'a Control,
    /// What golden gave on parts of its suites.
    pub believed: &'a Believed,
    /// Seed of the probes' inputs: the same for all mutants, as for golden's control.
    pub seed: u64,
    /// When an official case is passed.
    pub rule: Rule,
}

/// A mutant with what it takes to try it.
pub struct Candidate {
    /// The mutant.
    pub mutant: Mutant,
    /// Golden's text of its file.
    pub golden: String,
    /// The lines that must run for it to matter; none known means any may.
    pub lines: Option<BTreeSet<Line>>,
    /// Whether the task says that it is equivalent to golden.
    pub listed: bool,
}

impl Candidate {
    fn lay(&self, session: &mut Session) -> Result<(), TrialError> {
        let text = self.mutant.text(&self.golden).map(String::into_bytes);
        session.lay(&[(self.mutant.file.clone(), text)])
    }
}

/// Whose times a mutant's deadlines come from.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// Golden's own, with some slack.
    Golden,
    /// What the task allows.
    Task,
}

impl Trying<'_> {
    /// Tries one mutant. What it does ends with its ranks. One that is listed as equivalent and misses a deadline set by golden's
    /// times is tried again with the task's own: a busy machine refutes no listing.
    pub async fn mutant(
        &self,
        session: &mut Session,
        candidate: &Candidate,
    ) -> Result<MutantRecord, TrialError> {
        let begin = Instant::now();
        let mutant = &candidate.mutant;
        let (was, becomes) = super::shown(mutant, &candidate.golden);
        let mut record = MutantRecord {
            mutant: mutant.clone(),
            fate: Fate::Unreached,
            was,
            becomes,
            promise: mutant.promise().to_string(),
            equivalent: None,
            by: None,
            official_reach: 0,
            probe_reach: 0,
            probes: BTreeMap::new(),
            wall_s: 0.0,
        };
        candidate.lay(session)?;
        let mut outcome = self.suites(session, candidate, Pace::Golden, &mut record).await;
        if outcome.is_ok() && candidate.listed && late(&record) {
            (record.by, record.official_reach, record.probe_reach) = (None, 0, 0);
            record.probes.clear();
            outcome = self.suites(session, candidate, Pace::Task, &mut record).await;
        }
        session.put_back()?;
        outcome?;
        record.fate = match &record.by {
            Some(by) if by.suite == Suite::Official => Fate::Official,
            Some(_) => Fate::Probe,
            None if record.official_reach + record.probe_reach > 0 => Fate::Survived,
            None => Fate::Unreached,
        };
        record.wall_s = begin.elapsed().as_secs_f64();
        Ok(record)
    }

    /// Has golden's own cases run in ranks of each template, twice. Where one does not pass as it does in ranks that start from
    /// nothing, what a module did when it was imported does not outlive a fork (an open file, a seed), or outlives the rank
    /// (memory that processes share): mutants then start from nothing, too.
    pub async fn vouch(&self, session: &mut Session) -> Result<(), TrialError> {
        for control in self.control.suites.iter().filter(|control| control.suite == Suite::Official) {
            let cases: BTreeSet<String> = control.cases.keys().cloned().collect();
            let (timeouts, deadlines) = control.timeouts(&self.task.public.spec.timeouts, &cases);
            let rejects = |case: &CaseResult| word(control, case) != Word::Passed;
            let ask = Ask {
                cases: Some(&cases),
                stop: Some(&rejects),
                eager: true,
                ends: self.ends(control),
                resumes: true,
                ..Ask::all(control.world, &timeouts, &deadlines, self.seed)
            };
            for _ in 0..2 {
                if cases.is_empty() || !session.has_template(control.world) {
                    break;
                }
                let tried = run(session, Suite::Official, &ask).await?;
                let ends_badly = control.ends() && tried.end.failed.is_some();
                if tried.cases.iter().any(rejects) || missing(&tried, &cases).is_some() || ends_badly {
                    session.give_up_template(control.world).await;
                } else {
                    let mut all = sequence(control, &cases, &tried, None);
                    all.extend(ask.ends.then_some(SESSION_ENDS));
                    self.believed.keep(control.world, tried.resumed, all, true);
                }
            }
        }
        Ok(())
    }

    async fn suites(
        &self,
        session: &mut Session,
        candidate: &Candidate,
        pace: Pace,
        record: &mut MutantRecord,
    ) -> Result<(), TrialError> {
        for suite in [Suite::Official, Suite::Probe] {
            for control in self.control.suites.iter().filter(|control| control.suite == suite) {
                let cases = control.reaching(candidate.lines.as_ref());
                match suite {
                    Suite::Official => record.official_reach += cases.len() as u32,
                    Suite::Probe => record.probe_reach += cases.len() as u32,
                }
                if !cases.is_empty() {
                    self.suite(session, control, candidate, &cases, pace, record).await?;
                }
                if suite == Suite::Official && record.by.is_some() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Runs the cases of one suite at one world size: official ones up to the first that rejects, probes all of them, since
    /// which of them reject is what is asked.
    async fn suite(
        &self,
        session: &mut Session,
        control: &SuiteControl,
        candidate: &Candidate,
        cases: &BTreeSet<String>,
        pace: Pace,
        record: &mut MutantRecord,
    ) -> Result<(), TrialError> {
        if control.suite == Suite::Official {
            if let Some(by) = self.official(session, control, candidate, cases, pace).await? {
                record.by.get_or_insert(by);
            }
            return Ok(());
        }
        let (timeouts, deadlines) = self.times(control, cases, pace);
        let ask = Ask { cases: Some(cases), ..Ask::all(control.world, &timeouts, &deadlines, self.seed) };
        let tried = run(session, Suite::Probe, &ask).await?;
        if let Some(by) = rejection(control, &tried, cases, &|case| Rule::LikeGolden.rejects(control, case)) {
            record.by.get_or_insert(by);
        }
        for case in tried.cases.iter().filter(|case| !judge_failed(case)) {
            note(&mut record.probes, &case.case.id, word(control, case));
        }
        Ok(())
    }

    /// Runs official cases in as much of their suite as the verdict needs: a case may lean on those before it, and what a mutant
    /// leaves behind may be noticed by one that does not reach it. What survives whole files survives. What is rejected is, unless
    /// the whole suite was run, where golden answers as ever in the very same cases.
    async fn official(
        &self,
        session: &mut Session,
        control: &SuiteControl,
        candidate: &Candidate,
        reached: &BTreeSet<String>,
        pace: Pace,
    ) -> Result<Option<RejectedBy>, TrialError> {
        let mut scopes = control.scopes(reached).into_iter().peekable();
        let rule = self.rule;
        while let Some(Scope { asked, whole }) = scopes.next() {
            let (timeouts, deadlines) = self.times(control, &asked, pace);
            let rejects = |case: &CaseResult| rule.rejects(control, case);
            let ask = Ask {
                cases: Some(&asked),
                stop: Some(&rejects),
                eager: answers_alike(control, &asked),
                ends: self.ends(control),
                resumes: resumes(candidate, control),
                ..Ask::all(control.world, &timeouts, &deadlines, self.seed)
            };
            let tried = run(session, Suite::Official, &ask).await?;
            let found = rejection(control, &tried, &asked, &rejects);
            let found = found.or_else(|| by_end(control, &tried).filter(|_| ask.ends));
            if rule.asks_for_other_ids(found.as_ref(), &tried) {
                if whole {
                    return self.by_other_ids(session, control, pace).await;
                }
                continue;
            }
            match found {
                None if whole => return Ok(None),
                None => {}
                Some(by) if scopes.peek().is_none() => return Ok(Some(by)),
                Some(by) if self.golden_agrees(session, control, candidate, &ask, &tried).await? => {
                    return Ok(Some(by));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// Runs all that is collected, by whatever ids: parameters may be made of what a mutant changes.
    async fn by_other_ids(
        &self,
        session: &mut Session,
        control: &SuiteControl,
        pace: Pace,
    ) -> Result<Option<RejectedBy>, TrialError> {
        let all: BTreeSet<String> = control.order.iter().map(|(id, _)| id.clone()).collect();
        let (timeouts, deadlines) = self.times(control, &all, pace);
        let rule = self.rule;
        let rejects = |case: &CaseResult| rule.rejects_by_any_id(control, &all, case);
        let ends = self.ends(control);
        let all_cases = Ask::all(control.world, &timeouts, &deadlines, self.seed);
        let ask = Ask { stop: Some(&rejects), ends, ..all_cases };
        let tried = run(session, Suite::Official, &ask).await?;
        // What could not be collected now could before.
        let asked = if tried.notes.is_empty() { BTreeSet::new() } else { all.clone() };
        let found = rejection(control, &tried, &asked, &rejects);
        Ok(found.or_else(|| by_end(control, &tried).filter(|_| ends)))
    }

    /// Whether the end of pytest's session decides: a task's verdict is of cases alone.
    fn ends(&self, control: &SuiteControl) -> bool {
        self.rule == Rule::NothingFails && control.ends()
    }

    /// Whether golden answers as ever in the cases that a mutant was run on, up to the one that rejects it.
    async fn golden_agrees(
        &self,
        session: &mut Session,
        control: &SuiteControl,
        candidate: &Candidate,
        ask: &Ask<'_>,
        tried: &Tried,
    ) -> Result<bool, TrialError> {
        let Some(asked) = ask.cases else { return Ok(true) };
        if tried.cases.is_empty() {
            // It could not be collected: no case had a part in that.
            return Ok(true);
        }
        let last = tried.cases.iter().find(|case| self.rule.rejects(control, case));
        let by_end = last.is_none() && ask.ends && tried.end.failed.is_some();
        let mut sequence = sequence(control, asked, tried, last);
        sequence.extend(by_end.then_some(SESSION_ENDS));
        if let Some(agrees) = self.believed.known(control.world, tried.resumed, &sequence) {
            return Ok(agrees);
        }
        let rejects = |case: &CaseResult| Rule::LikeGolden.rejects(control, case);
        let ends = |case: &CaseResult| rejects(case) || last.is_some_and(|last| last.case.id == case.case.id);
        let ask = Ask { stop: Some(&ends), resumes: tried.resumed, ..*ask };
        session.put_back()?;
        let golden = run(session, Suite::Official, &ask).await?;
        candidate.lay(session)?;
        let agrees = match last {
            Some(last) => {
                golden.cases.iter().any(|case| case.case.id == last.case.id)
                    && !golden.cases.iter().any(rejects)
            }
            None => {
                let ends_well = !by_end || golden.end.failed.is_none();
                ends_well && rejection(control, &golden, asked, &rejects).is_none()
            }
        };
        self.believed.keep(control.world, tried.resumed, sequence, agrees);
        Ok(agrees)
    }

    fn times(
        &self,
        control: &SuiteControl,
        cases: &BTreeSet<String>,
        pace: Pace,
    ) -> (Timeouts, BTreeMap<String, f64>) {
        let allowed = &self.task.public.spec.timeouts;
        match pace {
            Pace::Golden => control.timeouts(allowed, cases),
            Pace::Task => (allowed.clone(), BTreeMap::new()),
        }
    }
}

/// Whether golden passes all of these cases: where one may fail and end nothing, what it leaves behind is what all its ranks
/// leave, and none may be cut short.
fn answers_alike(control: &SuiteControl, asked: &BTreeSet<String>) -> bool {
    asked.iter().all(|id| control.cases.contains_key(id))
}

/// Whether a mutant changes what runs in cases alone: what ran while modules were imported, or for fixtures that cases share,
/// has left golden's values behind in a template.
fn resumes(candidate: &Candidate, control: &SuiteControl) -> bool {
    let lines = candidate.lines.as_ref();
    // Where every case may reach anything, a module may have asked another process what golden does.
    candidate.mutant.replacement.is_some()
        && lines.is_some_and(|lines| lines.is_disjoint(&control.shared))
        && control.cases.values().any(|case| !case.wide)
}
