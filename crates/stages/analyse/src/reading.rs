//! What run folders hold of submissions: attempts and grades, joined by task and name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::SystemTime;

use infradev_model::{
    AttemptDocument, EVAL_SCHEMA, EvalDocument, GRADE_SCHEMA, Grade, GradeDocument, RunRead, RunState,
    SUBMISSION_SCHEMA, SubmissionRecord, TaskFacts,
};
use infradev_store::{RunEvent, RunView, Runs};

use crate::error::AnalyseError;

/// A submission as its runs have it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub attempt: Option<SubmissionRecord>,
    pub grade: Option<Grade>,
    /// The run that graded it, in [`Read::graders`].
    pub grader: Option<usize>,
    /// The run that it is shown under.
    pub run: String,
    /// Where patch and trajectory of its attempt lie.
    pub folder: Option<PathBuf>,
    /// The same below the folder of runs.
    pub attempted: Option<String>,
}

impl Entry {
    pub fn task(&self) -> &str {
        let attempt = self.attempt.as_ref().map(|record| record.task.as_str());
        attempt.or_else(|| Some(self.grade.as_ref()?.task.as_str())).unwrap_or_default()
    }

    pub fn submission(&self) -> &str {
        let attempt = self.attempt.as_ref().map(|record| record.submission.as_str());
        attempt.or_else(|| Some(self.grade.as_ref()?.submission.as_str())).unwrap_or_default()
    }
}

/// Records of attempts of unfinished runs, each read once for as long as its file stays as it is.
#[derive(Debug, Default)]
pub(crate) struct Records(HashMap<PathBuf, (Option<SystemTime>, Option<SubmissionRecord>)>);

impl Records {
    fn of(&mut self, view: &RunView) -> Vec<SubmissionRecord> {
        let mut records = Vec::new();
        for path in view.record_files() {
            let modified = std::fs::metadata(&path).and_then(|found| found.modified()).ok();
            let known = self.0.get(&path).filter(|(of, _)| *of == modified && of.is_some());
            let record = match known {
                Some((_, record)) => record.clone(),
                None => {
                    let bytes = std::fs::read(&path).ok();
                    bytes.and_then(|bytes| serde_json::from_slice::<SubmissionRecord>(&bytes).ok())
                }
            };
            self.0.insert(path, (modified, record.clone()));
            records.extend(record);
        }
        records
    }
}

/// What was read of all runs.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub runs: Vec<RunRead>,
    pub tasks: Vec<TaskFacts>,
    pub entries: Vec<Entry>,
    /// Runs whose trial folders hold what grades leave out.
    pub graders: Vec<RunView>,
    pub notes: Vec<String>,
    graded: BTreeSet<String>,
    /// Attempts without a grade, by task and name, the first one last.
    waiting: BTreeMap<(String, String), Vec<usize>>,
}

impl Read {
    /// Reads runs: those that attempted first, so that grades find their attempts in whichever order they are given.
    pub fn of(views: Vec<RunView>, records: &mut Records) -> Result<Read, AnalyseError> {
        let mut given = BTreeSet::new();
        for view in &views {
            if !given.insert(view.run.id.clone()) {
                return Err(AnalyseError::Twice { run: view.run.id.clone() });
            }
        }
        let mut read = Read::default();
        let (attempts, grades): (Vec<RunView>, Vec<RunView>) =
            views.into_iter().partition(|view| view.run.verb == "attempt");
        for view in attempts {
            read.attempts(&view, records)?;
        }
        for view in grades {
            match view.run.verb.as_str() {
                "grade" => read.grades(view)?,
                verb => {
                    return Err(AnalyseError::Verb { run: view.run.id.clone(), verb: verb.to_owned() });
                }
            }
        }
        Ok(read)
    }

    fn attempts(&mut self, view: &RunView, known: &mut Records) -> Result<(), AnalyseError> {
        let document: Option<AttemptDocument> = view.document("attempt.json", SUBMISSION_SCHEMA)?;
        let records = match document {
            Some(document) => document.submissions,
            None => known.of(view),
        };
        self.seen(view, records.len());
        let run = view.run.id.clone();
        for record in records {
            let key = (record.task.clone(), record.submission.clone());
            self.waiting.entry(key).or_default().insert(0, self.entries.len());
            let folder = Some(view.folder.join(&record.folder));
            let attempted = Some(format!("{run}/{}", record.folder));
            let (attempt, run) = (Some(record), run.clone());
            self.entries.push(Entry { attempt, grade: None, grader: None, run, folder, attempted });
        }
        if let Some(eval) = view.document::<EvalDocument>("eval.json", EVAL_SCHEMA)? {
            self.graded_by(view, eval.grade)?;
        }
        Ok(())
    }

    /// The grades of an evaluation, whose trials lie in a run beside it.
    fn graded_by(&mut self, view: &RunView, document: GradeDocument) -> Result<(), AnalyseError> {
        let beside = view.folder.parent().map(Runs::new);
        let grader = beside.and_then(|runs| runs.view(&document.run).ok());
        let place = grader.map(|grader| {
            self.seen(&grader, document.submissions.len());
            self.graders.push(grader);
            self.graders.len() - 1
        });
        if place.is_none() {
            self.notes.push(format!(
                "the run {} that graded {} is not beside it: what its trials recorded of probes is missing, so that most of \
                 their failing cases have no label",
                document.run, view.run.id
            ));
        }
        self.take(document, place, &view.run.id);
        Ok(())
    }

    fn grades(&mut self, view: RunView) -> Result<(), AnalyseError> {
        let id = view.run.id.clone();
        let document: Option<GradeDocument> = view.document("grade.json", GRADE_SCHEMA)?;
        let document = document.or_else(|| view.graded_so_far());
        if self.graded.contains(&id) {
            // It was read with the evaluation that it belongs to.
            return Ok(());
        }
        self.seen(&view, document.as_ref().map_or(0, |document| document.submissions.len()));
        let Some(document) = document else { return Ok(()) };
        self.graders.push(view);
        let place = self.graders.len() - 1;
        self.take(document, Some(place), &id);
        Ok(())
    }

    fn take(&mut self, document: GradeDocument, grader: Option<usize>, run: &str) {
        self.graded.insert(document.run.clone());
        for facts in document.tasks {
            if !self.tasks.iter().any(|known| known.task == facts.task) {
                self.tasks.push(facts);
            }
        }
        for grade in document.submissions {
            let run = run.to_owned();
            let key = (grade.task.clone(), grade.submission.clone());
            let waiting = self.waiting.get_mut(&key).and_then(Vec::pop);
            match waiting.and_then(|at| self.entries.get_mut(at)) {
                Some(entry) => (entry.grade, entry.grader, entry.run) = (Some(grade), grader, run),
                None => {
                    let (folder, attempted) = (None, None);
                    let grade = Some(grade);
                    self.entries.push(Entry { attempt: None, grade, grader, run, folder, attempted });
                }
            }
        }
    }

    fn seen(&mut self, view: &RunView, submissions: usize) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (mut begun, mut finished) = (BTreeSet::new(), BTreeSet::new());
        for (_, event) in &view.journal.events {
            match event {
                RunEvent::TrialStarted { trial, .. } => drop(begun.insert(trial.to_string())),
                RunEvent::TrialFinished { trial, .. } => drop(finished.insert(trial.to_string())),
                _ => {}
            }
        }
        let state = match (view.finished, view.in_use) {
            (true, _) => RunState::Finished,
            (false, true) => RunState::Running,
            (false, false) => RunState::Unfinished,
        };
        let id = &view.run.id;
        if state != RunState::Finished {
            let kept = match (view.run.verb.as_str(), submissions) {
                ("grade", 0) => "none of its submissions has a grade yet",
                _ => "what it holds so far is counted",
            };
            self.notes.push(format!("the run {id} is {}: {kept}", state.word()));
        }
        for damage in &view.journal.damaged {
            self.notes.push(format!("{id}/journal.jsonl:{}: {}", damage.line, damage.what));
        }
        self.runs.push(RunRead {
            run: id.clone(),
            verb: view.run.verb.clone(),
            pack: view.run.pack.clone(),
            started: view.run.started,
            state,
            begun: number(begun.len()),
            finished: number(finished.len()),
            submissions: number(submissions),
        });
    }
}

/// The arm of a submission and the number of its attempt, by its name: `codex#2` is the second of `codex`.
pub(crate) fn arm(name: &str) -> (&str, u32) {
    let numbered = name.rsplit_once('#').and_then(|(arm, number)| Some((arm, number.parse().ok()?)));
    numbered.filter(|(_, number)| *number > 0).unwrap_or((name, 1))
}

#[cfg(test)]
mod tests {
    use super::arm;

    #[test]
    fn a_submissions_name_tells_its_arm_and_attempt() {
        assert_eq!(arm("codex+skill=x#2"), ("codex+skill=x", 2));
        assert_eq!(arm("golden"), ("golden", 1));
        assert_eq!(arm("issue#nine"), ("issue#nine", 1));
        assert_eq!(arm("x#0"), ("x#0", 1));
    }
}
