//! Calibrations: made once for each key, from golden's runs and base's two.

use std::sync::Arc;

use infradev_model::{Calibration, FaultKind, Selection, Suite, TrialResult};
use infradev_store::RunFolder;
use infradev_trial::{Twins, calibrate};

use crate::executor::{Ask, Executor, ExecutorError};
use crate::foreseen::{at_key, refuse_framework};
use crate::progress::Happening;
use crate::ready::ReadyTask;

/// A calibration, and golden's runs where they were made just now.
#[derive(Debug, Clone)]
pub struct Calibrated {
    /// What counts.
    pub calibration: Calibration,
    /// Golden's runs.
    pub golden: Vec<TrialResult>,
    /// Base under golden's tests.
    pub base: TrialResult,
}

impl Executor {
    /// The calibration of this task at this world size: the store's, where it rests on `runs` golden runs or more, or a new
    /// one.
    pub async fn calibration(
        &self,
        run: &RunFolder,
        ready: &ReadyTask,
        world: u32,
        runs: u32,
    ) -> Result<Calibration, ExecutorError> {
        let key = ready.calibration_key(self, world);
        let enough = |found: &Calibration| found.golden_runs >= runs;
        if let Some(found) = self.calibrations.get(&key)?.filter(enough) {
            return refuse_unusable(found);
        }
        let waiting = format!("another process calibrates {} at world size {world}", key.task);
        let _held =
            self.calibrations.lock(&key, &|| self.progress.emit(Happening::Environment(waiting.clone())))?;
        if let Some(found) = self.calibrations.get(&key)?.filter(enough) {
            return refuse_unusable(found);
        }
        Ok(self.calibrate(run, ready, world, runs, false).await?.calibration)
    }

    /// Makes a calibration afresh and stores it.
    pub async fn calibrate(
        &self,
        run: &RunFolder,
        ready: &ReadyTask,
        world: u32,
        runs: u32,
        shuffled: bool,
    ) -> Result<Calibrated, ExecutorError> {
        let task = ready.task.id().to_string();
        self.progress.emit(Happening::Calibrating { task: task.clone(), world, runs });
        let golden_patch = Arc::new(ready.task.golden.clone());
        let mut golden = Vec::new();
        for k in 0..runs {
            let what = format!("golden {}/{runs}", k + 1);
            let mut ask = Ask::new(what, Arc::clone(&golden_patch), world, Twins::Candidates);
            ask.repeat = k;
            ask.shuffled = shuffled;
            let result = self.trial(run, ready, ask).await?;
            self.refuse_golden(ready, world, &result)?;
            golden.push(result);
            refuse_uncollected(ready, world, &golden)?;
        }
        let mut ask = Ask::new("base", Arc::new(Vec::new()), world, Twins::Nothing);
        let base = self.trial(run, ready, ask.clone()).await?;
        self.refuse_faulty(ready, world, &base)?;
        ask.what = "base, its own tests".into();
        ask.selection = Selection::BaseTests;
        let base_own = self.trial(run, ready, ask).await?;
        self.refuse_faulty(ready, world, &base_own)?;
        let key = ready.calibration_key(self, world);
        let calibration = calibrate(key, &golden, &base, &base_own);
        let calibration = refuse_unusable(calibration).map_err(|error| because(error, ready, &golden))?;
        // One that rests on more runs says more: it stays.
        let stronger = self.calibrations.get(&calibration.key)?.is_some_and(|found| found.golden_runs > runs);
        if !stronger {
            self.calibrations.put(&calibration)?;
        }
        Ok(Calibrated { calibration, golden, base })
    }

    fn refuse_golden(
        &self,
        ready: &ReadyTask,
        world: u32,
        result: &TrialResult,
    ) -> Result<(), ExecutorError> {
        let task = ready.task.id();
        if let Some(why) = &result.not_applied {
            let path = ready.task.folder.join("golden.patch");
            return Err(ExecutorError::GoldenNotApplied { path, why: why.clone() });
        }
        if let Some(found) = result.tampering.first() {
            let evidence = found.evidence.clone();
            return Err(ExecutorError::GoldenTampers { task: task.to_string(), evidence });
        }
        self.refuse_faulty(ready, world, result)
    }

    fn refuse_faulty(
        &self,
        ready: &ReadyTask,
        world: u32,
        result: &TrialResult,
    ) -> Result<(), ExecutorError> {
        let task = &ready.task;
        match &result.fault {
            Some(fault) if fault.kind == FaultKind::Framework => {
                Err(refuse_framework(task, fault.evidence.clone()).into())
            }
            Some(fault) => {
                Err(ExecutorError::GoldenFault { task: task.id().to_string(), world, fault: fault.clone() })
            }
            None => Ok(()),
        }
    }
}

/// Without an official test in one run of golden no further run makes a calibration.
fn refuse_uncollected(ready: &ReadyTask, world: u32, golden: &[TrialResult]) -> Result<(), ExecutorError> {
    let collected = |run: &TrialResult| run.cases.iter().any(|case| case.case.suite == Suite::Official);
    if golden.iter().all(collected) {
        return Ok(());
    }
    let why = format!("no official test was collected on golden at world size {world}");
    let error = ExecutorError::Uncalibrated { task: ready.task.id().to_string(), why, hint: None };
    Err(because(error, ready, golden))
}

fn refuse_unusable(calibration: Calibration) -> Result<Calibration, ExecutorError> {
    match calibration.refusal() {
        Some(why) => Err(ExecutorError::Uncalibrated { task: calibration.key.task.clone(), why, hint: None }),
        None => Ok(calibration),
    }
}

/// Adds what golden's first run noted of the official files, such as a failure to collect one.
fn because(error: ExecutorError, ready: &ReadyTask, golden: &[TrialResult]) -> ExecutorError {
    let ExecutorError::Uncalibrated { task, why, .. } = error else { return error };
    let tests = &ready.task.public.spec.tests;
    let official = &tests.official;
    let notes = golden.first().map(|run| run.notes.as_slice()).unwrap_or_default();
    let said = |note: &&String| official.iter().any(|file| note.contains(file.as_str()));
    let note = notes.iter().find(said).or(notes.first());
    let why = note.map_or(why.clone(), |note| format!("{why}: {note}"));
    let hint = (!tests.plugins.is_empty()).then(|| {
        let task_toml = ready.task.folder.join("task.toml");
        let asked = at_key(&task_toml, "tests.plugins", tests.plugins.join(", "));
        format!("see that each plugin can be imported: {asked}")
    });
    ExecutorError::Uncalibrated { task, why, hint }
}
