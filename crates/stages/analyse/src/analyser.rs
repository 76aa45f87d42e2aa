//! An analysis of runs, and again as they go on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use infradev_model::{
    ANALYSIS_SCHEMA, AnalysedSubmission, Analysis, CaseError, Digest, Ending, Figures, Grade, Standing,
    SubmissionRecord, SuiteScores, Verdict,
};
use infradev_store::RunView;

use crate::cases::Judgements;
use crate::error::AnalyseError;
use crate::figures::{self, Counted};
use crate::reading::{self, Entry, Read, Records};
use crate::references::{Reference, References};
use crate::{Settings, gates, readings, shown};

/// Analyses runs again and again: what the records of a submission hold is read once, so that a run that goes on costs what is new.
#[derive(Default)]
pub struct Analyser {
    /// None where nothing is kept for a next time.
    known: Option<HashMap<Key, Known>>,
    records: Records,
    /// Traits of each task's probes.
    traits: BTreeMap<String, BTreeSet<String>>,
    /// The base tree of each task.
    trees: BTreeMap<String, Digest>,
}

/// What a submission's records depend on: its run, task and name, when its agent ended, its verdict and its trials.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    run: String,
    task: String,
    submission: String,
    agent_s: Option<u64>,
    verdict: Option<Verdict>,
    trials: Vec<String>,
}

impl Key {
    fn of(entry: &Entry) -> Key {
        let grade = entry.grade.as_ref();
        Key {
            run: entry.run.clone(),
            task: entry.task().to_owned(),
            submission: entry.submission().to_owned(),
            agent_s: entry.attempt.as_ref().map(|record| record.agent_s.to_bits()),
            verdict: grade.map(|grade| grade.verdict),
            trials: grade.map(|grade| grade.trials.clone()).unwrap_or_default(),
        }
    }
}

/// A submission as it was read.
#[derive(Clone)]
struct Known {
    shown: AnalysedSubmission,
    cases: Vec<CaseError>,
}

impl Analyser {
    /// One that keeps what it reads.
    pub fn keeping() -> Analyser {
        Analyser { known: Some(HashMap::new()), ..Analyser::default() }
    }

    /// One for a single analysis.
    pub(crate) fn once() -> Analyser {
        Analyser::default()
    }

    /// Analyses runs together. The settings are to be those of the last time.
    ///
    /// # Errors
    /// As of [`crate::analyse`].
    pub fn analyse(&mut self, views: Vec<RunView>, settings: Settings<'_>) -> Result<Analysis, AnalyseError> {
        let read = Read::of(views, &mut self.records)?;
        let apart = shared(&read.entries);
        let mut analysis = Analysis {
            schema: ANALYSIS_SCHEMA,
            sealed: true,
            runs: Vec::new(),
            tasks: Vec::new(),
            submissions: Vec::new(),
            cases: Vec::new(),
            groups: Vec::new(),
            figures: Figures::default(),
            notes: Vec::new(),
        };
        let mut missing: Vec<String> = Vec::new();
        let mut references = References::new(settings.references);
        for entry in &read.entries {
            let before = missing.len();
            let key = self.known.is_some().then(|| Key::of(entry));
            let known = key.as_ref().and_then(|key| self.known.as_ref()?.get(key).cloned());
            let fresh = known.is_none();
            let mut found = match known {
                Some(known) => known,
                None => self.read(&read, entry, &mut references, &mut missing)?,
            };
            if let (Some(all), Some(key), true) = (&mut self.known, key, fresh && missing.len() == before) {
                all.insert(key, found.clone());
            }
            found.shown.arm = arm_of(entry, apart);
            analysis.submissions.push(found.shown);
            analysis.cases.extend(found.cases);
        }
        if let Some(labels) = settings.labels {
            labels.apply(&mut analysis.cases)?;
        }
        let counted = Counted {
            submissions: &analysis.submissions,
            cases: &analysis.cases,
            tasks: &read.tasks,
            traits: &self.traits,
        };
        analysis.figures = counted.figures();
        analysis.groups = figures::groups(&analysis.cases);
        (analysis.runs, analysis.tasks, analysis.notes) = (read.runs, read.tasks, read.notes);
        analysis.notes.extend(without_facts(&analysis));
        analysis.notes.extend(missing_records(missing));
        Ok(if settings.sealed { analysis } else { shown::public(analysis) })
    }

    /// Reads what the records of a submission hold.
    fn read(
        &mut self,
        read: &Read,
        entry: &Entry,
        references: &mut References<'_>,
        missing: &mut Vec<String>,
    ) -> Result<Known, AnalyseError> {
        let grader = entry.grader.and_then(|at| read.graders.get(at));
        let reference = references.of(entry.task(), entry.grader, grader)?;
        let mut judgements = self.judgements(entry, grader);
        if let Some(tree) = judgements.tree.take() {
            self.trees.insert(entry.task().to_owned(), tree);
        }
        let cases = failing(entry, &judgements, reference);
        let mut shown = submission(entry, u32::try_from(cases.len()).unwrap_or(u32::MAX));
        shown.gates = entry.grade.as_ref().and_then(|grade| gates::gates(grade, &judgements.worlds));
        readings::read(&mut shown, entry, grader, reference, self.trees.get(entry.task()));
        missing.extend(judgements.missing);
        Ok(Known { shown, cases })
    }

    /// What trials recorded of probes, where it is needed: for what fails, and once a task for its traits.
    fn judgements(&mut self, entry: &Entry, grader: Option<&RunView>) -> Judgements {
        let Some(grade) = &entry.grade else { return Judgements::default() };
        let needed = match grade.verdict {
            Verdict::Unresolved => true,
            Verdict::Resolved => !self.traits.contains_key(&grade.task),
            _ => false,
        };
        if !needed {
            return Judgements::default();
        }
        let judgements = Judgements::of(grade, grader);
        self.traits.entry(grade.task.clone()).or_default().extend(judgements.traits());
        judgements
    }
}

/// The failing cases of a submission. One that was not run as it stands (it does not apply, is empty, was tampered with, ended in a
/// fault) has none: what fails there says nothing of its code.
fn failing(entry: &Entry, judgements: &Judgements, reference: Option<&Reference>) -> Vec<CaseError> {
    let Some(grade) = entry.grade.as_ref().filter(|grade| grade.verdict == Verdict::Unresolved) else {
        return Vec::new();
    };
    let case = |failing| crate::cases::case(&entry.run, grade, failing, judgements, reference);
    grade.failing.iter().map(case).collect()
}

/// Whether a task has two submissions of one name: arms are then told apart by run.
fn shared(entries: &[Entry]) -> bool {
    let mut seen = BTreeSet::new();
    !entries.iter().all(|entry| seen.insert((entry.task(), entry.submission())))
}

/// Its name without the number of its attempt, and the run where that tells arms apart.
fn arm_of(entry: &Entry, apart: bool) -> String {
    let (arm, _) = reading::arm(entry.submission());
    if apart { format!("{arm} @ {}", entry.run) } else { arm.to_owned() }
}

fn submission(entry: &Entry, failing: u32) -> AnalysedSubmission {
    let (_, numbered) = reading::arm(entry.submission());
    let record = entry.attempt.as_ref();
    let grade = entry.grade.as_ref();
    let suites = grade.map_or(SuiteScores::default(), |grade| grade.suites);
    AnalysedSubmission {
        task: entry.task().to_owned(),
        submission: entry.submission().to_owned(),
        arm: String::new(),
        attempt: record.map_or(numbered, |record| record.attempt),
        standing: standing(record, grade),
        verdict: grade.map(|grade| grade.verdict),
        suites,
        official: grade.is_some_and(passes_official),
        gates: None,
        failing,
        graded_s: grade.map_or(0.0, |grade| grade.wall_s),
        agent: record.map(|record| record.agent.clone()),
        model: record.and_then(|record| record.model.clone()),
        requests: record.map(|record| record.metered.requests),
        ending: record.map(|record| record.ending),
        tokens: record.map(|record| record.metered.tokens),
        agent_s: record.map(|record| record.agent_s),
        usd: record.and_then(|record| record.cost.as_ref()).map(|cost| cost.usd),
        lookups: record.map(|record| record.lookups.iter().map(|lookup| lookup.times).sum()),
        skill_opened: record.and_then(|record| record.skill.as_ref()?.opened),
        likeness: None,
        own_tests: None,
        tried: None,
        attempted: entry.attempted.clone(),
        run: entry.run.clone(),
    }
}

fn standing(record: Option<&SubmissionRecord>, grade: Option<&Grade>) -> Standing {
    match grade.map(|grade| grade.verdict) {
        _ if record.is_some_and(|record| record.ending == Ending::EndpointUnreachable) => Standing::Unreached,
        None => Standing::Ungraded,
        Some(Verdict::Fault) => Standing::Fault,
        Some(_) => Standing::Scored,
    }
}

fn passes_official(grade: &Grade) -> bool {
    let official = grade.suites.official;
    let run = matches!(grade.verdict, Verdict::Resolved | Verdict::Unresolved);
    run && official.of > 0 && official.passed == official.of
}

/// Tasks whose area, kind and repository no run says.
fn without_facts(analysis: &Analysis) -> Option<String> {
    let known: BTreeSet<&str> = analysis.tasks.iter().map(|facts| facts.task.as_str()).collect();
    let tasks: BTreeSet<&str> =
        analysis.submissions.iter().map(|submission| submission.task.as_str()).collect();
    let unknown: Vec<&str> = tasks.difference(&known).copied().collect();
    (!unknown.is_empty()).then(|| {
        let tasks = unknown.join(", ");
        format!("area, kind and repository are unknown of {tasks}: not graded yet, or by an older infradev")
    })
}

/// Trials named in notes; the rest are counted.
const NAMED: usize = 3;

fn missing_records(missing: Vec<String>) -> Vec<String> {
    let more = missing.len().saturating_sub(NAMED);
    let mut notes: Vec<String> = missing.into_iter().take(NAMED).collect();
    if more > 0 {
        notes.push(format!("and {more} more records that cannot be read"));
    }
    notes
}
