//! What run folders hold of submissions beside an analysis: grades, records, patches, logs, trajectories.

use std::collections::BTreeMap;
use std::path::PathBuf;

use infradev_model::atif::Trajectory;
use infradev_model::{
    AnalysedSubmission, CaseId, CaseResult, EVAL_SCHEMA, EvalDocument, GRADE_SCHEMA, Grade, GradeDocument,
    Judgement, TRIAL_SCHEMA, is_tree_path,
};
use infradev_store::{RunView, Runs};
use serde::Deserialize;

use super::SiteError;
use super::excerpt::{bytes, log_end};

/// Names of submissions that are the task's own, beside `mutant:NAME`.
const OWN: [&str; 4] = ["golden", "base", "hollow", "adversarial"];

/// Whether an agent or a submission of this name is one of the task's own patches.
fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with("mutant:")
}

/// Where what is known of submissions lies.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// Grades by the run that they are shown under, task and submission.
    grades: BTreeMap<(String, String, String), Graded>,
    /// Folders of runs by id: what was attempted is read when its page is asked for.
    runs: BTreeMap<String, PathBuf>,
}

#[derive(Debug)]
struct Graded {
    grade: Grade,
    /// The run whose trials it names; none where that is gone.
    trials: Option<PathBuf>,
    /// Its patch is one of the pack's sealed files.
    own: bool,
}

/// What is known of one submission.
pub(crate) struct Known<'a> {
    pub grade: Option<&'a Grade>,
    /// Its patch is one of the pack's sealed files.
    pub own: bool,
    trials: Vec<PathBuf>,
    folder: Option<PathBuf>,
}

/// A log's end.
pub(crate) struct Log {
    pub name: String,
    pub text: String,
    /// Bytes before it that are left out.
    pub left: u64,
}

impl Evidence {
    pub fn of(views: &[RunView]) -> Result<Evidence, SiteError> {
        let mut evidence = Evidence::default();
        for view in views {
            evidence.runs.insert(view.run.id.clone(), view.folder.clone());
            match view.run.verb.as_str() {
                "attempt" => evidence.attempted(view)?,
                _ => {
                    let document: Option<GradeDocument> = view.document("grade.json", GRADE_SCHEMA)?;
                    let document = document.or_else(|| view.graded_so_far());
                    evidence.graded(&view.run.id, document, Some(view));
                }
            }
        }
        Ok(evidence)
    }

    fn attempted(&mut self, view: &RunView) -> Result<(), SiteError> {
        if let Some(eval) = view.document::<EvalDocument>("eval.json", EVAL_SCHEMA)? {
            let beside = view.folder.parent().and_then(|runs| Runs::new(runs).view(&eval.grade.run).ok());
            self.graded(&view.run.id, Some(eval.grade), beside.as_ref());
        }
        Ok(())
    }

    fn graded(&mut self, run: &str, document: Option<GradeDocument>, trials: Option<&RunView>) {
        let own = trials.is_some_and(|view| grades_own_patches(&view.run.command));
        for grade in document.into_iter().flat_map(|document| document.submissions) {
            let key = (run.to_owned(), grade.task.clone(), grade.submission.clone());
            let trials = trials.map(|view| view.folder.join("trials"));
            self.grades.insert(key, Graded { grade, trials, own });
        }
    }

    pub fn known(&self, submission: &AnalysedSubmission) -> Known<'_> {
        let key = (submission.run.clone(), submission.task.clone(), submission.submission.clone());
        let graded = self.grades.get(&key);
        let folder = submission.attempted.as_deref().and_then(|attempted| self.folder(attempted));
        let keys = graded.iter().flat_map(|graded| &graded.grade.trials);
        let root = graded.and_then(|graded| graded.trials.as_deref());
        let built_in = submission.agent.as_ref().is_some_and(|agent| is_own(&agent.name));
        let named = is_own(submission.submission.split(['#', '+']).next().unwrap_or_default());
        Known {
            grade: graded.map(|graded| &graded.grade),
            own: named
                || built_in
                || (submission.attempted.is_none() && graded.is_some_and(|graded| graded.own)),
            // A key is a digest: nothing else is looked for as a folder's name.
            trials: keys
                .filter(|key| key.chars().all(|c| c.is_ascii_hexdigit()))
                .filter_map(|key| Some(root?.join(key)))
                .collect(),
            folder,
        }
    }

    /// Where an attempt lies: `RUN/trials/…`.
    fn folder(&self, attempted: &str) -> Option<PathBuf> {
        let (run, below) = attempted.split_once('/')?;
        Some(self.runs.get(run)?.join(below)).filter(|_| is_tree_path(below))
    }
}

/// Whether a run graded patches of its task's own. Where the words do not tell, it did.
fn grades_own_patches(command: &[String]) -> bool {
    let named = command.iter().position(|word| word == "--patches").and_then(|at| command.get(at + 1));
    let joined = command.iter().find_map(|word| word.strip_prefix("--patches="));
    match joined.or(named.map(String::as_str)) {
        Some(patches) => OWN.contains(&patches),
        None => true,
    }
}

impl Known<'_> {
    /// The patch as it was written, or as it was graded.
    pub fn patch(&self) -> Option<Vec<u8>> {
        let written = self.folder.as_ref().map(|folder| folder.join("patch.diff"));
        let graded = self.trials.iter().map(|trial| trial.join("patch.diff"));
        written.into_iter().chain(graded).find_map(|path| bytes(&path))
    }

    /// What its agent did, or why that cannot be shown; none where no record was written.
    pub fn trajectory(&self) -> Option<Result<Trajectory, String>> {
        let path = self.folder.as_ref()?.join("trajectory.json");
        if !path.is_file() {
            return None;
        }
        let Some(bytes) = bytes(&path) else { return Some(Err("too large for a page".to_owned())) };
        Some(Trajectory::parse("trajectory.json", &bytes).map_err(|error| error.to_string()))
    }

    /// The ends of its trials' logs. None is for the public: those of official tests too hold the cases that catch tampering.
    pub fn logs(&self) -> Vec<Log> {
        let mut logs = Vec::new();
        for trial in &self.trials {
            let Ok(entries) = std::fs::read_dir(trial.join("logs")) else { continue };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            let key = trial.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            for path in paths {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if let Some((text, left)) = log_end(&path) {
                    let short = key.get(..8).unwrap_or(&key);
                    logs.push(Log { name: format!("{name} of trial {short}"), text, left });
                }
            }
        }
        logs
    }

    /// What its trials recorded of probe cases, by case and world size.
    pub fn judgements(&self) -> BTreeMap<(CaseId, u32), Judgement> {
        #[derive(Deserialize)]
        struct Inputs {
            world: u32,
        }
        #[derive(Deserialize)]
        struct Record {
            schema: u32,
            inputs: Inputs,
            cases: Vec<CaseResult>,
        }
        let read = |trial: &PathBuf| -> Option<Record> {
            let bytes = std::fs::read(trial.join("result.json")).ok()?;
            let record: Record = serde_json::from_slice(&bytes).ok()?;
            (record.schema == TRIAL_SCHEMA).then_some(record)
        };
        let records = self.trials.iter().filter_map(read);
        records
            .flat_map(|record| {
                let world = record.inputs.world;
                record.cases.into_iter().map(move |case| (world, case))
            })
            .filter_map(|(world, case)| Some(((case.case, world), *case.judgement?)))
            .collect()
    }
}
