//! Local slots: what a trial needs is fetched, the trial is run once for each key, its record kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use infradev_git::GitError;
use infradev_model::{Class, Classified, Fault, FaultKind, FormatError, Selection, TrialInputs, TrialResult};
use infradev_patch::PatchError;
use infradev_pyenv::{Definition, Environment, Environments, Layers, PyenvError};
use infradev_sandbox::{GpuLease, Kind, LockFolder, SandboxError};
use infradev_store::{Calibrations, Home, RunEvent, RunFolder, Shares, StoreError, Trees, shares};
use infradev_trial::{Events, Failures, StopRule, TrialError, TrialEvent, TrialSpec, Twins};
use tokio::sync::Semaphore;

use crate::environment_words::Words;
use crate::kit::{JUDGE_LOCK, Kit};
use crate::looking::scratch;
use crate::progress::{Happening, Progress};
use crate::ready::ReadyTask;

/// How often a faulty trial is tried again. A *failure* is never retried.
const RETRIES: u32 = 2;

/// Why a trial could not be run to a record.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ExecutorError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Pyenv(#[from] PyenvError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error("task {task}: its environment names neither a lock nor an interpreter")]
    NoEnvironment { task: String },
    /// A file of the task or the pack: names file, line and key.
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("{path}: {source}")]
    NoPatch { path: PathBuf, source: PatchError },
    #[error("task {task}: golden could not be run at world size {world}: {}", fault.evidence)]
    GoldenFault { task: String, world: u32, fault: Fault },
    #[error("{path}: does not apply to base: {why}")]
    GoldenNotApplied { path: PathBuf, why: String },
    #[error("task {task}: golden is reported as tampering with its own tests: {evidence}")]
    GoldenTampers { task: String, evidence: String },
    #[error("task {task}: {why}")]
    Uncalibrated { task: String, why: String, hint: Option<String> },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
}

impl Classified for ExecutorError {
    fn class(&self) -> Class {
        match self {
            ExecutorError::Store(error) => error.class(),
            ExecutorError::Git(error) => error.class(),
            ExecutorError::Pyenv(error) => error.class(),
            ExecutorError::Sandbox(error) => error.class(),
            ExecutorError::Trial(error) => error.class(),
            ExecutorError::Format(error) => error.class(),
            ExecutorError::GoldenFault { .. } | ExecutorError::Io { .. } => Class::Fault,
            _ => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ExecutorError::Store(error) => error.hint(),
            ExecutorError::Git(error) => error.hint(),
            ExecutorError::Pyenv(error) => error.hint(),
            ExecutorError::Sandbox(error) => error.hint(),
            ExecutorError::GoldenFault { .. } => {
                Some("run `infradev doctor`; the trial's logs are in the run's folder".to_string())
            }
            ExecutorError::Format(error) => error.hint(),
            ExecutorError::NoPatch { source, .. } => source.hint(),
            ExecutorError::Uncalibrated { hint, .. } => hint.clone(),
            ExecutorError::GoldenTampers { .. } => Some(
                "a test of the task passes although it must fail: do its fixtures catch assertions?"
                    .to_string(),
            ),
            _ => None,
        }
    }
}

/// Where trials run.
pub struct Executor {
    pub(crate) home: Home,
    pub(crate) trees: Trees,
    pub(crate) calibrations: Calibrations,
    environments: Environments,
    pub(crate) layers: Layers,
    pub(crate) failures: Failures,
    pub(crate) judge: Environment,
    pub(crate) kit: Kit,
    pub(crate) sandbox: Kind,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) slots_in_all: usize,
    seed: Option<u64>,
    told_copying: AtomicBool,
    pub(crate) progress: Arc<dyn Progress>,
}

/// How an executor is set up.
pub struct Settings {
    /// The store.
    pub home: Home,
    /// Namespaces, or none where asked for by name.
    pub sandbox: Kind,
    /// Trials at once.
    pub slots: usize,
    /// What each trial's own seed is drawn from, together with its inputs; a fresh one for each otherwise.
    pub seed: Option<u64>,
    /// Who is told.
    pub progress: Arc<dyn Progress>,
    /// An interpreter for the judge in place of the locked environment, on machines that reach no index.
    pub judge_python: Option<PathBuf>,
}

/// One trial of a task that is ready.
#[derive(Clone)]
pub struct Ask {
    /// What it is called, for people: `golden 1/3`.
    pub what: String,
    /// The submission's bytes.
    pub patch: Arc<Vec<u8>>,
    /// Ranks.
    pub world: u32,
    /// Suites.
    pub selection: Selection,
    /// The repetition.
    pub repeat: u32,
    /// Twins.
    pub twins: Twins,
    /// A fixed seed; a fresh one otherwise.
    pub seed: Option<u64>,
    /// Whether cases run in shuffled order.
    pub shuffled: bool,
    /// Ends it early.
    pub stop: Option<StopRule>,
    /// A seed for a replayed probe case.
    pub case_seed: Option<u64>,
    /// Cases that a calibration counts.
    pub expected: Option<u64>,
}

impl Ask {
    /// Both suites, once, with nothing fixed.
    pub fn new(what: impl Into<String>, patch: Arc<Vec<u8>>, world: u32, twins: Twins) -> Ask {
        Ask {
            what: what.into(),
            patch,
            world,
            selection: Selection::Both,
            repeat: 0,
            twins,
            seed: None,
            shuffled: false,
            stop: None,
            case_seed: None,
            expected: None,
        }
    }
}

impl Executor {
    /// Sets up: kit laid out, judge's environment built.
    pub fn new(settings: Settings) -> Result<Executor, ExecutorError> {
        let Settings { home, sandbox, slots, seed, progress, judge_python } = settings;
        infradev_sandbox::sweep();
        let builds = home.builds();
        let kit = Kit::lay(&home)?;
        let environments = Environments::new(home.envs());
        let definition = match judge_python {
            Some(path) => Definition::Interpreter { path },
            None => Definition::Lock {
                lock: JUDGE_LOCK.to_vec(),
                lock_path: PathBuf::from("python/judge.lock"),
                python: "3.11".to_string(),
            },
        };
        let judge = environments.ensure(&definition, &Words::new(progress.as_ref()))?;
        Ok(Executor {
            trees: Trees::new(builds.join("trees")),
            layers: Layers::new(home.layers()),
            failures: Failures::default(),
            calibrations: Calibrations::new(home.calibrations()),
            home,
            environments,
            judge,
            kit,
            sandbox,
            slots: Arc::new(Semaphore::new(slots.max(1))),
            slots_in_all: slots.max(1),
            seed,
            told_copying: AtomicBool::new(false),
            progress,
        })
    }

    /// Says once where workspaces of trials are copies.
    pub(crate) fn tell_copying(&self) {
        let (trees, runs) = (self.home.builds().join("trees"), self.home.runs());
        let copies = self.sandbox == Kind::Namespaces && !self.told_copying.swap(true, Ordering::Relaxed);
        // A store that cannot be written says so where something is to be written.
        if copies && matches!(shares(&trees, &runs), Ok(Shares::Copies)) {
            let (trees, runs) = (trees.display(), runs.display());
            let words = format!(
                "neither reflinks nor hard links from {trees} into {runs}: each trial gets a copy of its tree"
            );
            self.progress.emit(Happening::Environment(words));
        }
    }

    /// The judge's environment.
    pub fn judge(&self) -> &Environment {
        &self.judge
    }

    /// `namespaces` or `none`.
    pub fn sandbox_word(&self) -> &'static str {
        match self.sandbox {
            Kind::Namespaces => "namespaces",
            Kind::None => "none",
        }
    }

    pub(crate) fn environment(&self, definition: &Definition) -> Result<Environment, ExecutorError> {
        Ok(self.environments.ensure(definition, &Words::new(self.progress.as_ref()))?)
    }

    /// Runs a trial, or serves its record where the run has one. A fault is tried again within a cap; what stays one is in the
    /// result.
    pub async fn trial(
        &self,
        run: &RunFolder,
        ready: &ReadyTask,
        ask: Ask,
    ) -> Result<TrialResult, ExecutorError> {
        let mut attempt = 0;
        loop {
            let mut this = ask.clone();
            this.repeat = ask.repeat + attempt * 1000;
            let result = self.once(run, ready, this).await?;
            // An import that fails in the trusted launcher, before any patch is near, fails again.
            let again = |fault: &&Fault| attempt < RETRIES && fault.kind != FaultKind::Framework;
            let Some(fault) = result.fault.as_ref().filter(again) else { return Ok(result) };
            let label = label(ready, &ask);
            self.progress.emit(Happening::Retried { label, evidence: fault.evidence.clone() });
            attempt += 1;
        }
    }

    async fn once(&self, run: &RunFolder, ready: &ReadyTask, ask: Ask) -> Result<TrialResult, ExecutorError> {
        let task = &ready.task;
        let room = ready.built.as_ref().map(|_| scratch()).transpose()?;
        let building = match &room {
            Some(room) => self.building(ready, &ask.patch, room.path())?,
            None => None,
        };
        let mut inputs = TrialInputs {
            layer: building
                .as_ref()
                .and_then(|building| building.inputs.as_ref())
                .map(|inputs| inputs.key.clone()),
            patch: infradev_model::Digest::of(&ask.patch),
            tree: ready.tree.digest.clone(),
            suites: ready.suites.clone(),
            environment: ready.environment.key.clone(),
            kit: self.kit.digest.clone(),
            device_class: ready.device_class.clone(),
            world: ask.world,
            sandbox: self.sandbox_word().to_string(),
            selection: ask.selection.clone(),
            repeat: ask.repeat,
            seed: ask.seed.or(ask.case_seed),
            shuffled: ask.shuffled,
            early_stop: ask.stop.is_some(),
            candidates: matches!(ask.twins, Twins::Candidates),
        };
        let drawn = self.seed.map(|seed| inputs.drawn(seed));
        inputs.seed = inputs.seed.or(drawn);
        let key = inputs.key();
        let label = label(ready, &ask);
        if let Some(result) = run.finished::<TrialResult>(&key)? {
            let summary = summary(&result);
            self.progress.emit(Happening::TrialEnded {
                label,
                wall_s: result.timing.wall_s,
                cached: true,
                summary,
            });
            return Ok(result);
        }
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(TrialError::Cancelled.into());
        };
        if infradev_supervise::cancelled() {
            return Err(TrialError::Cancelled.into());
        }
        let gpus = self.gpus(task.public.spec.gpus).await?;
        self.progress.emit(Happening::TrialStarted { label: label.clone(), expected: ask.expected });
        run.record(&RunEvent::TrialStarted {
            trial: key.clone(),
            task: task.id().to_string(),
            what: ask.what.clone(),
            world: ask.world,
        })?;
        let staging = run.stage(&key)?;
        let spec = TrialSpec {
            task: Arc::clone(task),
            patch: ask.patch,
            trees: self.trees.clone(),
            tree: ready.tree.clone(),
            building,
            bytecode: ready.bytecode.clone(),
            environment: ready.environment.clone(),
            judge: self.judge.clone(),
            kit: self.kit.path.clone(),
            sandbox: self.sandbox,
            framework: task.public.environment.framework.clone(),
            gpus: gpus.as_ref().map(|lease| lease.indices.clone()).unwrap_or_default(),
            scratch: staging.scratch().join("work"),
            logs: staging.kept().join("logs"),
            inputs,
            seed: ask.seed.or(drawn).unwrap_or_else(rand::random),
            shuffled: ask.shuffled,
            twins: ask.twins,
            stop: ask.stop,
            case_seed: ask.case_seed,
        };
        let events = Forward { label: label.clone(), progress: self.progress.as_ref() };
        let result = infradev_trial::run(&spec, &events).await?;
        if let Some(fault) = &result.fault {
            // What fails for want of room would fail again, and the run could not be finished: it stops here and resumes.
            run.check_room()?;
            run.record(&RunEvent::TrialFault { trial: key.clone(), evidence: fault.evidence.clone() })?;
        } else {
            let patch = staging.kept().join("patch.diff");
            std::fs::create_dir_all(staging.kept())
                .and_then(|()| std::fs::write(&patch, spec.patch.as_slice()))
                .map_err(|error| StoreError::io("write", &patch, error))?;
            staging.finish(&result)?;
            run.record(&RunEvent::TrialFinished { trial: key, wall_s: result.timing.wall_s })?;
        }
        let summary = summary(&result);
        self.progress.emit(Happening::TrialEnded {
            label,
            wall_s: result.timing.wall_s,
            cached: false,
            summary,
        });
        Ok(result)
    }

    pub(crate) async fn gpus(&self, count: u32) -> Result<Option<GpuLease>, ExecutorError> {
        if count == 0 {
            return Ok(None);
        }
        let locks = LockFolder::machine()?;
        let all: Vec<u32> = infradev_sandbox::list_gpus()?.iter().map(|gpu| gpu.index).collect();
        let on_wait =
            |holder: &str| self.progress.emit(Happening::Environment(format!("waiting for GPUs: {holder}")));
        Ok(Some(GpuLease::acquire(&locks, &all, count as usize, &on_wait).await?))
    }
}

fn label(ready: &ReadyTask, ask: &Ask) -> String {
    let ranks = if ask.world == 1 { "1 rank".to_string() } else { format!("{} ranks", ask.world) };
    format!("{} · {} · {ranks}", ready.task.id(), ask.what)
}

fn summary(result: &TrialResult) -> String {
    if let Some(fault) = &result.fault {
        return format!("fault: {}", fault.evidence.lines().next().unwrap_or_default());
    }
    if result.not_applied.is_some() {
        return "the patch does not apply".to_string();
    }
    if let Some(found) = result.tampering.first() {
        return format!("tampered: {}", found.evidence);
    }
    let passed = result.cases.iter().filter(|case| infradev_model::countable(&case.outcomes())).count();
    format!("{passed} of {} cases passed", result.cases.len())
}

struct Forward<'a> {
    label: String,
    progress: &'a dyn Progress,
}

impl Events for Forward<'_> {
    fn emit(&self, event: TrialEvent) {
        self.progress.emit(Happening::Trial { label: self.label.clone(), event });
    }
}
