//! Running what a plan asks for.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;
use infradev_executor::{Ask, DeriveError, Executor, ExecutorError, GoldenChange, ReadyTask};
use infradev_model::{
    Calibration, CaseId, CaseResult, Class, Classified, Digest, Fault, FaultKind, GRADE_SCHEMA, Grade,
    GradeDocument, GradedSoFar, Selection, Suite, TrialResult, Verdict, Word, merge,
};
use infradev_patch::Patch;
use infradev_store::RunFolder;
use infradev_trial::Twins;

use crate::plan::{Content, GradePlan, Submission};
use crate::scoring::{grade, without_trial};

/// Why grading stopped.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum GradeError {
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error(
        "task {task}: base fails no case that golden passes: nothing could tell a patch that does the change"
    )]
    NothingToGrade { task: String },
    #[error("task {task} has no hollow patch: golden adds no function")]
    NoHollow { task: String },
}

impl Classified for GradeError {
    fn class(&self) -> Class {
        match self {
            GradeError::Executor(error) => error.class(),
            GradeError::Derive(error) => error.class(),
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            GradeError::Executor(error) => error.hint(),
            GradeError::Derive(error) => error.hint(),
            GradeError::NoHollow { .. } => {
                Some("grade `base` and the adversarial patches instead".to_string())
            }
            GradeError::NothingToGrade { .. } => {
                Some("check tests.official, and that official.patch holds the change's own tests".to_string())
            }
        }
    }
}

/// How often a trial is tried again whose fault a control run showed.
const CONTROL_RETRIES: u32 = 1;

/// Told after each grade.
pub type OnGrade<'a> = &'a (dyn Fn(&Grade) + Send + Sync);

/// Grades every submission of a plan.
pub async fn run(
    executor: &Executor,
    run: &RunFolder,
    plan: &GradePlan,
    on_grade: OnGrade<'_>,
) -> Result<GradeDocument, GradeError> {
    let mut grades: Vec<Option<Grade>> = vec![None; plan.submissions.len()];
    // Whoever looks on sees each verdict as soon as it is given.
    let so_far = Mutex::new(run.grades().map_err(ExecutorError::from)?);
    for task in &plan.tasks {
        let mine: Vec<(usize, &Submission)> = plan
            .submissions
            .iter()
            .enumerate()
            .filter(|(_, submission)| submission.task == task.id())
            .collect();
        if mine.is_empty() {
            continue;
        }
        let grading = TaskGrading::of(executor, run, Arc::clone(task)).await?;
        // The executor's slots bound how many run at once.
        let facts = task.public.facts();
        let graded = mine.into_iter().map(|(index, submission)| {
            let (grading, so_far, facts) = (&grading, &so_far, facts.clone());
            async move {
                let graded = grading.submission(submission).await?;
                let line = GradedSoFar { facts, grade: graded.clone() };
                let mut journal = so_far.lock().unwrap_or_else(PoisonError::into_inner);
                journal.append(&line).map_err(ExecutorError::from)?;
                drop(journal);
                on_grade(&graded);
                Ok::<_, GradeError>((index, graded))
            }
        });
        for (index, graded) in try_join_all(graded).await? {
            grades[index] = Some(graded);
        }
    }
    let submissions = grades.into_iter().flatten().collect();
    let tasks = plan.tasks.iter().map(|task| task.public.facts()).collect();
    Ok(GradeDocument { schema: GRADE_SCHEMA, run: run.id().to_string(), tasks, submissions })
}

struct TaskGrading<'a> {
    executor: &'a Executor,
    run: &'a RunFolder,
    ready: ReadyTask,
    calibrations: BTreeMap<u32, Calibration>,
}

impl<'a> TaskGrading<'a> {
    async fn of(
        executor: &'a Executor,
        run: &'a RunFolder,
        task: Arc<infradev_model::SealedTask>,
    ) -> Result<TaskGrading<'a>, GradeError> {
        let ready = executor.ready(task).await?;
        let kept = infradev_executor::reference(&ready.task, &ready.tree.path)?;
        run.write_document(&format!("sealed/{}.json", ready.task.id()), &kept)
            .map_err(ExecutorError::from)?;
        let spec = &ready.task.public.spec;
        let mut calibrations = BTreeMap::new();
        for world in &spec.worlds {
            let calibration = executor.calibration(run, &ready, *world, spec.acceptance.runs).await?;
            calibrations.insert(*world, calibration);
        }
        if !calibrations.values().flat_map(|calibration| &calibration.cases).any(|case| case.fail_to_pass()) {
            return Err(GradeError::NothingToGrade { task: ready.task.id().to_string() });
        }
        Ok(TaskGrading { executor, run, ready, calibrations })
    }

    async fn submission(&self, submission: &Submission) -> Result<Grade, GradeError> {
        let id = self.ready.task.id();
        let name = &submission.name;
        let all: Vec<&Calibration> = self.calibrations.values().collect();
        let empty = |why: &str| Ok(without_trial(id, name, Verdict::Empty, why, &all));
        let bytes = match &submission.content {
            Content::Golden => self.ready.task.golden.clone(),
            Content::Base => Vec::new(),
            Content::Hollow => GoldenChange::of(&self.ready)?
                .hollow(infradev_executor::Variant::Full)?
                .ok_or_else(|| GradeError::NoHollow { task: id.to_string() })?,
            Content::Adversarial(wanted) => {
                let found =
                    self.ready.task.adversarial.iter().find(|adversarial| adversarial.name == *wanted);
                let Some(found) = found else { return empty("there is no adversarial patch of that name") };
                GoldenChange::of(&self.ready)?.adversarial(found)?
            }
            Content::Missing => return empty("no patch was submitted"),
            Content::Patch(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {
                return empty("the patch is empty");
            }
            Content::Patch(bytes) => match Patch::parse(bytes) {
                Ok(patch) if patch.is_empty() => return empty("the patch changes nothing"),
                Ok(_) => bytes.clone(),
                Err(error) => {
                    let why = format!("the patch does not apply: {error}");
                    return Ok(without_trial(id, name, Verdict::NotApplied, &why, &all));
                }
            },
        };
        let bytes = Arc::new(bytes);
        let mut trials: Vec<(&Calibration, TrialResult)> = Vec::new();
        for (world, calibration) in &self.calibrations {
            let result = self.trial(name, &bytes, *world, calibration).await?;
            trials.push((calibration, result));
        }
        let pairs: Vec<(&Calibration, &TrialResult)> =
            trials.iter().map(|(calibration, result)| (*calibration, result)).collect();
        Ok(grade(id, name, &pairs))
    }

    async fn trial(
        &self,
        name: &str,
        patch: &Arc<Vec<u8>>,
        world: u32,
        calibration: &Calibration,
    ) -> Result<TrialResult, GradeError> {
        let twins = Twins::Calibrated(calibration.twins.clone());
        let mut ask = Ask::new(name, Arc::clone(patch), world, twins);
        ask.expected = Some(calibration.cases.len() as u64);
        // A fault that a control run shows is tried again within a cap, like any fault. A failure never is.
        let mut attempt = 0;
        loop {
            ask.repeat = attempt;
            let mut result = self.executor.trial(self.run, &self.ready, ask.clone()).await?;
            let Some(suspicion) = suspicion(&result, calibration) else { return Ok(result) };
            let of = result.inputs.key();
            let Some(fault) = self.control(world, calibration, &suspicion, &of).await? else {
                return Ok(result);
            };
            if attempt == CONTROL_RETRIES {
                result.fault = Some(fault);
                return Ok(result);
            }
            attempt += 1;
        }
    }

    /// Runs golden on this node right after a trial that a sick node could have spoilt. If golden fails the same cases the
    /// same way, it was the node.
    async fn control(
        &self,
        world: u32,
        calibration: &Calibration,
        suspicion: &[(String, Word)],
        trial: &Digest,
    ) -> Result<Option<Fault>, GradeError> {
        let golden = Arc::new(self.ready.task.golden.clone());
        let mut ask =
            Ask::new("control run of golden", golden, world, Twins::Calibrated(calibration.twins.clone()));
        // A control is for this trial alone: its record serves a run that is resumed, and no other trial.
        ask.seed = u64::from_str_radix(&trial.as_str()[..16], 16).ok();
        ask.selection = Selection::Both;
        let result = self.executor.trial(self.run, &self.ready, ask).await?;
        if let Some(fault) = result.fault {
            return Ok(Some(fault));
        }
        let same = failing(&result, calibration);
        let shared: Vec<&(String, Word)> = suspicion.iter().filter(|case| same.contains(case)).collect();
        if shared.is_empty() {
            return Ok(None);
        }
        let named: Vec<String> =
            shared.iter().take(3).map(|(id, word)| format!("{id} {}", word.word())).collect();
        let evidence =
            format!("golden, run on the same node right after, fails the same way: {}", named.join("; "));
        Ok(Some(Fault { kind: FaultKind::ControlRun, evidence }))
    }
}

fn failing(result: &TrialResult, calibration: &Calibration) -> Vec<(String, Word)> {
    let results: HashMap<&CaseId, &CaseResult> = result.cases.iter().map(|case| (&case.case, case)).collect();
    let word = |case: &infradev_model::CalibratedCase| {
        let found = results.get(&case.case);
        found.map_or(Word::Missing, |found| merge(&found.outcomes(), &case.vector))
    };
    let words = calibration.cases.iter().map(|case| (case, word(case)));
    let not_passed = words.filter(|(_, word)| *word != Word::Passed);
    not_passed.map(|(case, word)| (case.case.id.clone(), word)).collect()
}

/// Cases that a sick node could have spoilt: crashes and timeouts with what they kept from running, where they are most of what
/// failed.
fn suspicion(result: &TrialResult, calibration: &Calibration) -> Option<Vec<(String, Word)>> {
    if result.fault.is_some() || result.not_applied.is_some() || !result.tampering.is_empty() {
        return None;
    }
    let failing = failing(result, calibration);
    if !failing.iter().any(|(_, word)| matches!(word, Word::Crashed | Word::Timeout)) {
        return None;
    }
    let could_be = |word: &Word| matches!(word, Word::Crashed | Word::Timeout | Word::Missing);
    let sick: Vec<(String, Word)> = failing.iter().filter(|(_, word)| could_be(word)).cloned().collect();
    let official = calibration.of(Suite::Official).count();
    (!sick.is_empty() && (sick.len() * 2 > failing.len() || sick.len() >= official.max(1))).then_some(sick)
}
