//! What runs show: every submission, the cases that golden passes and it does not, each with a signature and a label of the
//! paper's taxonomy, and figures with their intervals. Reads run folders; starts no process.

mod cases;
mod error;
mod figures;
mod gates;
mod labelling;
mod messages;
mod people;
mod property;
mod reading;
mod shown;
pub mod signature;
pub mod statistics;

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{
    ANALYSIS_SCHEMA, AnalysedSubmission, Analysis, CaseError, Ending, Figures, Grade, Standing,
    SubmissionRecord, SuiteScores, Verdict,
};
use infradev_store::RunView;

pub use error::AnalyseError;
pub use labelling::Seen;
pub use people::PeoplesLabels;
pub use property::{Asserted, Property};

use cases::Judgements;
use figures::Counted;
use reading::{Entry, Read};

/// How runs are read.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// People's labels, which win over rules.
    pub labels: Option<&'a PeoplesLabels>,
    /// Keep names, messages and traits of probes.
    pub sealed: bool,
    /// What a failing official assertion checks, where that is known.
    pub asserted: Asserted<'a>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings { labels: None, sealed: false, asserted: &|_, _, _| None }
    }
}

/// Analyses runs together.
///
/// # Errors
/// A run of a verb without submissions, one that is given twice, a document of another schema version, a label whose case is gone.
pub fn analyse(views: Vec<RunView>, settings: Settings<'_>) -> Result<Analysis, AnalyseError> {
    let read = Read::of(views)?;
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
    let mut traits: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut missing: Vec<String> = Vec::new();
    for entry in &read.entries {
        let judgements = judgements(&read, entry, &mut traits);
        let cases = failing(entry, &judgements, &settings);
        missing.extend(judgements.missing);
        let failing = u32::try_from(cases.len()).unwrap_or(u32::MAX);
        let mut shown = submission(entry, failing, apart);
        shown.gates = entry.grade.as_ref().and_then(|grade| gates::gates(grade, &judgements.worlds));
        analysis.submissions.push(shown);
        analysis.cases.extend(cases);
    }
    if let Some(labels) = settings.labels {
        labels.apply(&mut analysis.cases)?;
    }
    let counted = Counted {
        submissions: &analysis.submissions,
        cases: &analysis.cases,
        tasks: &read.tasks,
        traits: &traits,
    };
    analysis.figures = counted.figures();
    analysis.groups = figures::groups(&analysis.cases);
    (analysis.runs, analysis.tasks, analysis.notes) = (read.runs, read.tasks, read.notes);
    analysis.notes.extend(without_facts(&analysis));
    analysis.notes.extend(missing_records(missing));
    Ok(if settings.sealed { analysis } else { shown::public(analysis) })
}

/// What trials recorded of probes, where it is needed: for what fails, and once a task for its traits.
fn judgements(read: &Read, entry: &Entry, traits: &mut BTreeMap<String, BTreeSet<String>>) -> Judgements {
    let Some(grade) = &entry.grade else { return Judgements::default() };
    let needed = match grade.verdict {
        Verdict::Unresolved => true,
        Verdict::Resolved => !traits.contains_key(&grade.task),
        _ => false,
    };
    if !needed {
        return Judgements::default();
    }
    let judgements = Judgements::of(grade, entry.grader.and_then(|at| read.graders.get(at)));
    traits.entry(grade.task.clone()).or_default().extend(judgements.traits());
    judgements
}

/// The failing cases of a submission. One that was not run as it stands (it does not apply, is empty, was tampered with, ended in a
/// fault) has none: what fails there says nothing of its code.
fn failing(entry: &Entry, judgements: &Judgements, settings: &Settings<'_>) -> Vec<CaseError> {
    let Some(grade) = entry.grade.as_ref().filter(|grade| grade.verdict == Verdict::Unresolved) else {
        return Vec::new();
    };
    let case = |failing| cases::case(&entry.run, grade, failing, judgements, settings.asserted);
    grade.failing.iter().map(case).collect()
}

/// Whether a task has two submissions of one name: arms are then told apart by run.
fn shared(entries: &[Entry]) -> bool {
    let mut seen = BTreeSet::new();
    !entries.iter().all(|entry| seen.insert((entry.task(), entry.submission())))
}

fn submission(entry: &Entry, failing: u32, apart: bool) -> AnalysedSubmission {
    let (arm, numbered) = reading::arm(entry.submission());
    let record = entry.attempt.as_ref();
    let grade = entry.grade.as_ref();
    let suites = grade.map_or(SuiteScores::default(), |grade| grade.suites);
    AnalysedSubmission {
        task: entry.task().to_owned(),
        submission: entry.submission().to_owned(),
        arm: if apart { format!("{arm} @ {}", entry.run) } else { arm.to_owned() },
        attempt: record.map_or(numbered, |record| record.attempt),
        standing: standing(record, grade),
        verdict: grade.map(|grade| grade.verdict),
        suites,
        official: grade.is_some_and(passes_official),
        gates: None,
        failing,
        graded_s: grade.map_or(0.0, |grade| grade.wall_s),
        ending: record.map(|record| record.ending),
        tokens: record.map(|record| record.metered.tokens),
        agent_s: record.map(|record| record.agent_s),
        usd: record.and_then(|record| record.cost.as_ref()).map(|cost| cost.usd),
        lookups: record.map(|record| record.lookups.iter().map(|lookup| lookup.times).sum()),
        skill_opened: record.and_then(|record| record.skill.as_ref()?.opened),
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
