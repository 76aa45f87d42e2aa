//! Running what an acceptance needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use infradev_executor::{
    Ask, ContractReading, DeriveError, Executor, ExecutorError, GoldenChange, ReadyTask, TakenBack, Variant,
};
use infradev_model::{
    ACCEPTANCE_SCHEMA, AcceptDocument, Acceptance, CalibratedCase, Calibration, CaseResult, Class,
    Classified, SealedTask, Suite, TrialResult, Word, merge,
};
use infradev_store::{RunFolder, StoreError, canary_breaches, save_acceptance};
use infradev_trial::{StopRule, Twins};

use crate::evidence::{Evidence, WorldEvidence};
use crate::rewrites::{RewriteTrials, Rewrites};

/// Runs of each adversarial patch, where N allows: what differs between them is unstable.
const ADVERSARIAL_RUNS: u32 = 3;

/// What `infradev accept` was asked for.
#[derive(Debug, Clone)]
pub struct AcceptPlan {
    /// Tasks.
    pub tasks: Vec<Arc<SealedTask>>,
    /// N in place of the task's own.
    pub runs: Option<u32>,
    /// Whether cases run in shuffled order.
    pub shuffled: bool,
    /// Behaviour-preserving rewrites of golden that are tried at most, a task.
    pub rewrites: usize,
    /// Whether `acceptance.json` is written into the task's folder.
    pub write: bool,
}

/// Why acceptance stopped.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AcceptError {
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("task {task}: the trial of {what} could not be run: {evidence}")]
    Fault { task: String, what: String, evidence: String },
    #[error("task {task}: {what} does not apply to base: {why}")]
    NotApplied { task: String, what: String, why: String },
}

impl Classified for AcceptError {
    fn class(&self) -> Class {
        match self {
            AcceptError::Executor(error) => error.class(),
            AcceptError::Derive(error) => error.class(),
            AcceptError::Store(error) => error.class(),
            AcceptError::Fault { .. } => Class::Fault,
            AcceptError::NotApplied { .. } => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AcceptError::Executor(error) => error.hint(),
            AcceptError::Derive(error) => error.hint(),
            AcceptError::Store(error) => error.hint(),
            AcceptError::Fault { .. } => {
                Some("run `infradev doctor`, then the same command again".to_string())
            }
            AcceptError::NotApplied { .. } => None,
        }
    }
}

/// Told after each task.
pub type OnAccept<'a> = &'a (dyn Fn(&Acceptance) + Send + Sync);

/// Accepts every task of a plan, or says why not.
pub async fn run(
    executor: &Executor,
    run: &RunFolder,
    plan: &AcceptPlan,
    on_accept: OnAccept<'_>,
) -> Result<AcceptDocument, AcceptError> {
    let mut tasks = Vec::new();
    for task in &plan.tasks {
        let record = accept(executor, run, plan, Arc::clone(task)).await?;
        if plan.write {
            save_acceptance(task, &record)?;
        }
        on_accept(&record);
        tasks.push(record);
    }
    Ok(AcceptDocument { schema: ACCEPTANCE_SCHEMA, run: run.id().to_string(), tasks })
}

async fn accept(
    executor: &Executor,
    run: &RunFolder,
    plan: &AcceptPlan,
    task: Arc<SealedTask>,
) -> Result<Acceptance, AcceptError> {
    let ready = executor.ready(task).await?;
    let runs = plan.runs.unwrap_or(ready.task.public.spec.acceptance.runs).max(1);
    let patches = Patches::of(&ready, plan.rewrites)?;
    let contract = ContractReading::of(&ready.task, &ready.tree.path)?.document().findings;
    let canary = canary_breaches(&ready.task)?;
    let accepting = Accepting { executor, run, ready: &ready, runs, shuffled: plan.shuffled };
    let mut worlds = Vec::new();
    // A hunk that some test notices at one world size need not be tried at the next.
    let mut hunks = patches.hunks.clone();
    for world in &ready.task.public.spec.worlds {
        let evidence = accepting.world(*world, &patches, &hunks).await?;
        hunks.retain(|taken| {
            evidence.hunks.iter().any(|(at, trial)| *at == taken.at && !evidence.notices(trial))
        });
        worlds.push(evidence);
    }
    let evidence = Evidence {
        task: &ready.task,
        tree: ready.tree.digest.clone(),
        environment: ready.environment.key.clone(),
        suites: ready.suites.clone(),
        device_class: ready.device_class.clone(),
        runs,
        shuffled: plan.shuffled,
        worlds,
        rewrites: patches.rewrites.count(),
        contract,
        canary,
    };
    Ok(evidence.record())
}

/// All submissions that acceptance tries.
struct Patches {
    hollow: Option<Vec<u8>>,
    keep_init: Option<Vec<u8>>,
    adversarial: BTreeMap<String, Vec<u8>>,
    hunks: Vec<TakenBack>,
    rewrites: Rewrites,
}

impl Patches {
    fn of(ready: &ReadyTask, rewrites: usize) -> Result<Patches, DeriveError> {
        let change = GoldenChange::of(ready)?;
        let hollow = change.hollow(Variant::Full)?;
        let keep_init = change.hollow(Variant::KeepInit)?.filter(|patch| Some(patch) != hollow.as_ref());
        let mut adversarial = BTreeMap::new();
        for spec in &ready.task.adversarial {
            adversarial.insert(spec.name.clone(), change.adversarial(spec)?);
        }
        // Without probes there is nothing to be over-fitted.
        let rewrites = if ready.task.probes.is_empty() { 0 } else { rewrites };
        let rewrites = Rewrites::of(&change, rewrites)?;
        Ok(Patches { hollow, keep_init, adversarial, hunks: change.hunks()?, rewrites })
    }
}

struct Accepting<'a> {
    executor: &'a Executor,
    run: &'a RunFolder,
    ready: &'a ReadyTask,
    runs: u32,
    shuffled: bool,
}

impl Accepting<'_> {
    async fn world(
        &self,
        world: u32,
        patches: &Patches,
        hunks: &[TakenBack],
    ) -> Result<WorldEvidence, AcceptError> {
        let calibrated =
            self.executor.calibrate(self.run, self.ready, world, self.runs, self.shuffled).await?;
        let calibration = calibrated.calibration;
        let hollow = self.optional("hollow", patches.hollow.as_ref(), world, &calibration).await?;
        let keep_init = self
            .optional("hollow, constructors kept", patches.keep_init.as_ref(), world, &calibration)
            .await?;
        let (mut adversarial, mut late) = (BTreeMap::new(), Vec::new());
        for (name, patch) in &patches.adversarial {
            let count = self.runs.min(ADVERSARIAL_RUNS);
            let trials = (0..count).map(|repeat| {
                let what = format!("{name} {}/{count}", repeat + 1);
                self.adversarial(what, patch, world, &calibration, (repeat, count))
            });
            let (trials, was_late): (Vec<_>, Vec<bool>) = try_join_all(trials).await?.into_iter().unzip();
            if was_late.contains(&true) {
                late.push(name.clone());
            }
            adversarial.insert(name.clone(), trials);
        }
        let trials = hunks.iter().map(|taken| async {
            let what = format!("golden without {}:{}", taken.at.file, taken.at.line);
            let stop = Some(rejects(&calibration));
            let result = self.trial(what, &taken.patch, world, &calibration, 0, stop).await?;
            Ok::<_, AcceptError>((taken.at.clone(), result))
        });
        let hunks = try_join_all(trials).await?;
        let rewrites = patches.rewrites.tried.iter();
        let trials = rewrites.map(|(name, patch)| self.rewrite(name, patch, world, &calibration));
        let rewrites = try_join_all(trials).await?;
        Ok(WorldEvidence {
            world,
            golden: calibrated.golden,
            base: calibrated.base,
            hollow,
            keep_init,
            adversarial,
            late,
            hunks,
            rewrites,
            calibration,
        })
    }

    /// Tries an adversarial patch; once more where nothing but a deadline keeps it from passing the official tests, and whether
    /// that was so. A machine that stood still for a moment refutes no patch; one that hangs misses its deadline again.
    async fn adversarial(
        &self,
        what: String,
        patch: &[u8],
        world: u32,
        calibration: &Calibration,
        (repeat, of): (u32, u32),
    ) -> Result<(TrialResult, bool), AcceptError> {
        let first = self.trial(what.clone(), patch, world, calibration, repeat, None).await?;
        if !late(&first, calibration) {
            return Ok((first, false));
        }
        let again = format!("{what}, again");
        Ok((self.trial(again, patch, world, calibration, repeat + of, None).await?, true))
    }

    /// Tries a rewrite once; once more where a case does not pass it, so that a flaky case is not taken for an over-fitted one.
    async fn rewrite(
        &self,
        name: &str,
        patch: &[u8],
        world: u32,
        calibration: &Calibration,
    ) -> Result<RewriteTrials, AcceptError> {
        let rejects = rejects(calibration);
        let mut trials = Vec::new();
        for repeat in 0..2 {
            // It never ends early: which cases fail is what is asked.
            let whole: StopRule = Arc::new(|_: &CaseResult| false);
            let trial = self.trial(name.to_string(), patch, world, calibration, repeat, Some(whole)).await?;
            let passes = calibration
                .cases
                .iter()
                .all(|known| trial.cases.iter().any(|case| case.case == known.case && !rejects(case)));
            trials.push(trial);
            if passes {
                break;
            }
        }
        Ok(RewriteTrials { name: name.to_string(), trials })
    }

    async fn optional(
        &self,
        what: &str,
        patch: Option<&Vec<u8>>,
        world: u32,
        calibration: &Calibration,
    ) -> Result<Option<TrialResult>, AcceptError> {
        match patch {
            Some(patch) => Ok(Some(self.trial(what.to_string(), patch, world, calibration, 0, None).await?)),
            None => Ok(None),
        }
    }

    async fn trial(
        &self,
        what: String,
        patch: &[u8],
        world: u32,
        calibration: &Calibration,
        repeat: u32,
        stop: Option<StopRule>,
    ) -> Result<TrialResult, AcceptError> {
        let twins = match stop {
            None => Twins::Calibrated(calibration.twins.clone()),
            Some(_) => Twins::Nothing,
        };
        let mut ask = Ask::new(what.clone(), Arc::new(patch.to_vec()), world, twins);
        ask.repeat = repeat;
        ask.stop = stop;
        ask.shuffled = self.shuffled;
        ask.expected = Some(calibration.cases.len() as u64);
        let result = self.executor.trial(self.run, self.ready, ask).await?;
        let task = self.ready.task.id().to_string();
        if let Some(fault) = &result.fault {
            return Err(AcceptError::Fault { task, what, evidence: fault.evidence.clone() });
        }
        if let Some(why) = &result.not_applied {
            return Err(AcceptError::NotApplied { task, what, why: why.clone() });
        }
        Ok(result)
    }
}

/// Whether nothing but deadlines kept a patch from passing the official cases; what a deadline cut off is missing.
fn late(trial: &TrialResult, calibration: &Calibration) -> bool {
    let word = |known: &CalibratedCase| {
        let found = trial.cases.iter().find(|found| found.case == known.case);
        found.map_or(Word::Missing, |found| merge(&found.outcomes(), &known.vector))
    };
    let words: BTreeSet<Word> = calibration.of(Suite::Official).map(word).collect();
    let late = [Word::Passed, Word::Timeout, Word::Missing];
    trial.tampering.is_empty()
        && words.contains(&Word::Timeout)
        && words.iter().all(|word| late.contains(word))
}

/// Ends a trial at the first case that golden passes and this patch does not.
fn rejects(calibration: &Calibration) -> StopRule {
    let vectors: BTreeMap<_, _> =
        calibration.cases.iter().map(|case| (case.case.clone(), case.vector.clone())).collect();
    Arc::new(move |case: &CaseResult| {
        vectors.get(&case.case).is_some_and(|vector| merge(&case.outcomes(), vector) != Word::Passed)
    })
}
