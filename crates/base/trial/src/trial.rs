//! A trial from a patch to its record: tree, sandbox, official suite, probes, teardown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use infradev_model::{
    CalibratedTwin, CaseResult, Fault, FaultKind, Outcome, SealedTask, Selection, TRIAL_SCHEMA, Tampering,
    TamperingKind, Timing, TrialInputs, TrialResult, TwinResult,
};
use infradev_pyenv::{Environment, Layer};
use infradev_sandbox::Kind;
use infradev_store::{Sharing, StoreError, Tree, Trees};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use tokio::time::Instant;

use crate::building::{self, BuildError, Building};
use crate::devices::{self, Moment};
use crate::events::{Events, Silent};
use crate::inside::{self, Inside, JudgeProcess};
use crate::judge::JudgeError;
use crate::launcher::{LauncherError, WorldLogs};
use crate::meters::SandboxMeters;
use crate::official::{self, OfficialSuite};
use crate::probes::{self, ProbeSuite, ProbesError};
use crate::workspace::{Ingredients, MustFail, PrepareError, Suspect, TwinChoice, Workspace};

/// What a trial needs. All of it is decided before; nothing is looked up.
pub struct TrialSpec {
    /// The task.
    pub task: Arc<SealedTask>,
    /// The submission's bytes: a diff against base.
    pub patch: Arc<Vec<u8>>,
    /// All base trees.
    pub trees: Trees,
    /// The task's base tree.
    pub tree: Tree,
    /// What the task builds of the patched tree, where it builds anything.
    pub building: Option<Building>,
    /// Bytecode of the base tree, where there is any; used in namespaces alone.
    pub bytecode: Option<PathBuf>,
    /// The task's environment.
    pub environment: Environment,
    /// The judge's.
    pub judge: Environment,
    /// The kit's folder, which holds `infradev_probe`.
    pub kit: PathBuf,
    /// Namespaces, or none where asked for by name.
    pub sandbox: Kind,
    /// Framework modules imported once.
    pub framework: Vec<String>,
    /// GPUs of this trial by index; empty on the CPU.
    pub gpus: Vec<u32>,
    /// A folder of this trial's own, for trees; removed afterwards.
    pub scratch: PathBuf,
    /// Where the ranks' logs go.
    pub logs: PathBuf,
    /// What the result depends on.
    pub inputs: TrialInputs,
    /// Seed of names, places, order and inputs.
    pub seed: u64,
    /// Whether cases run in shuffled order.
    pub shuffled: bool,
    /// Which twins are laid.
    pub twins: Twins,
    /// Ends the trial after the first case for which it says so.
    pub stop: Option<StopRule>,
    /// A seed for the probe case, where one is replayed.
    pub case_seed: Option<u64>,
}

impl TrialSpec {
    /// How workspaces may get their files. Without namespaces ranks could write in what they share.
    pub(crate) fn sharing(&self) -> Sharing {
        if self.sandbox == Kind::None { Sharing::Private } else { Sharing::Links }
    }
}

/// Whether this case ends the trial.
pub type StopRule = Arc<dyn Fn(&CaseResult) -> bool + Send + Sync>;

/// Which twins are laid.
#[derive(Debug, Clone)]
pub enum Twins {
    /// Candidates, when golden is calibrated.
    Candidates,
    /// Those that fail on golden.
    Calibrated(Vec<CalibratedTwin>),
    /// None, and no canaries.
    Nothing,
}

/// Why there is no result: the task's author has something to mend, or the run was stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A patch, test or probe of the task is wrong.
    #[error("task {task}: {what}")]
    Task {
        /// The task's id.
        task: String,
        /// What is wrong, naming file and line.
        what: String,
    },
    /// A module of the framework does not import, in a process that holds nothing of a patch.
    #[error("{what}")]
    Framework {
        /// What the import said, naming the module.
        what: String,
    },
    /// Something of the machine, where no record of a trial could say so.
    #[error("{what}")]
    Machine {
        /// What failed.
        what: String,
    },
    /// The run was stopped.
    #[error("stopped")]
    Cancelled,
}

impl infradev_model::Classified for TrialError {
    fn class(&self) -> infradev_model::Class {
        match self {
            TrialError::Task { .. } | TrialError::Framework { .. } => infradev_model::Class::BadInput,
            TrialError::Machine { .. } => infradev_model::Class::Fault,
            TrialError::Cancelled => infradev_model::Class::Interrupted,
        }
    }
}

/// Runs a trial. Harness faults are part of the result; an error is the author's, or a stop.
pub async fn run(spec: &TrialSpec, events: &dyn Events) -> Result<TrialResult, TrialError> {
    let mut running = Running::new(spec);
    let outcome = tokio::select! {
        biased;
        () = infradev_supervise::cancel_requested() => Err(Halt::Error(TrialError::Cancelled)),
        outcome = running.go(events) => outcome,
    };
    // A patch may have made folders that only their owner enters; as root that does not matter.
    let _ = std::fs::remove_dir_all(&spec.scratch);
    match outcome {
        Ok(()) | Err(Halt::Over) => {}
        Err(Halt::Fault(fault)) => running.result.fault = Some(fault),
        Err(Halt::Error(error)) => return Err(error),
    }
    running.result.timing.wall_s = running.begin.elapsed().as_secs_f64();
    running.result.timing.harness_cpu_s = own_cpu() - running.cpu;
    Ok(running.result)
}

/// Why a trial ends before its end.
enum Halt {
    /// Nothing more is to be learnt; the result stands.
    Over,
    Fault(Fault),
    Error(TrialError),
}

fn fault(kind: FaultKind, evidence: impl ToString) -> Halt {
    Halt::Fault(Fault { kind, evidence: evidence.to_string() })
}

impl From<LauncherError> for Halt {
    fn from(error: LauncherError) -> Halt {
        match error {
            LauncherError::Framework(_) => fault(FaultKind::Framework, error),
            LauncherError::Fault(_) | LauncherError::Gone(_) => fault(FaultKind::Launcher, error),
            LauncherError::Refused(_) => fault(FaultKind::Sandbox, error),
        }
    }
}

struct Running<'a> {
    spec: &'a TrialSpec,
    result: TrialResult,
    begin: Instant,
    cpu: f64,
}

impl<'a> Running<'a> {
    fn new(spec: &'a TrialSpec) -> Running<'a> {
        Running {
            spec,
            result: TrialResult {
                schema: TRIAL_SCHEMA,
                inputs: spec.inputs.clone(),
                sandbox: Default::default(),
                not_applied: None,
                mended: Vec::new(),
                overlaid: Vec::new(),
                cases: Vec::new(),
                canaries: Default::default(),
                tampering: Vec::new(),
                fault: None,
                notes: Vec::new(),
                launches: 0,
                timing: Timing::default(),
            },
            begin: Instant::now(),
            cpu: own_cpu(),
        }
    }

    fn wants_official(&self) -> bool {
        matches!(self.spec.inputs.selection, Selection::Both | Selection::Official | Selection::BaseTests)
    }

    fn wants_probes(&self) -> bool {
        let selected =
            matches!(self.spec.inputs.selection, Selection::Both | Selection::Probes | Selection::Case(_));
        selected && !self.spec.task.probes.is_empty()
    }

    async fn go(&mut self, events: &dyn Events) -> Result<(), Halt> {
        if let Some(fault) = devices::foreign_memory(&self.spec.gpus) {
            return Err(Halt::Fault(fault));
        }
        let before = Moment::now();
        let outcome = self.work(events).await;
        match devices::xid_since(before, &self.spec.gpus) {
            Some(fault) => Err(Halt::Fault(fault)),
            None => outcome,
        }
    }

    async fn work(&mut self, events: &dyn Events) -> Result<(), Halt> {
        let layer = self.layer().await?;
        let workspace = self.prepare(layer.as_ref())?;
        self.result.timing.workspace_s = self.begin.elapsed().as_secs_f64();
        if workspace.files.is_empty() && !self.wants_probes() {
            // Base's own tests, where the change's test files are all new.
            return Ok(());
        }
        let (inside, judge) = self.start(&workspace).await?;
        let mut inside = inside;
        let outcome = self.suites(&workspace, &mut inside, judge, events).await;
        self.result.launches = inside.launcher.launches;
        let teardown = Instant::now();
        inside.end().await;
        self.result.timing.teardown_s = teardown.elapsed().as_secs_f64();
        outcome
    }

    /// What is built of the patched tree. One that does not build is the patch's own failure: no case of it runs.
    async fn layer(&mut self) -> Result<Option<Layer>, Halt> {
        building::layer_of(self.spec).await.map_err(|error| match error {
            BuildError::Failed(failure) => {
                self.result.notes.push(failure.why);
                Halt::Over
            }
            BuildError::Fault(kind, evidence) => fault(kind, evidence),
        })
    }

    fn prepare(&mut self, layer: Option<&Layer>) -> Result<Workspace, Halt> {
        let spec = self.spec;
        let task = &spec.task;
        let own_tests = spec.inputs.selection == Selection::BaseTests;
        let mistaken = |what| Halt::Error(TrialError::Task { task: task.id().to_string(), what });
        let twins = match &spec.twins {
            _ if own_tests || !self.wants_official() => TwinChoice::Nothing,
            Twins::Candidates => TwinChoice::Candidates,
            Twins::Calibrated(twins) => TwinChoice::Calibrated(twins),
            Twins::Nothing => TwinChoice::Nothing,
        };
        let parts = Ingredients {
            trees: &spec.trees,
            tree: &spec.tree,
            sharing: spec.sharing(),
            patch: &spec.patch,
            official: (!own_tests).then_some(task.official.as_slice()),
            golden: &task.golden,
            tests: &task.public.spec.tests,
            build: task.public.spec.build.as_ref(),
            layer,
            scratch: &spec.scratch,
            twins,
            seed: spec.seed,
        };
        let workspace = Workspace::prepare(&parts).map_err(|error| match error {
            PrepareError::NotApplied(why) => {
                self.result.not_applied = Some(why);
                Halt::Over
            }
            PrepareError::Task { what } => mistaken(what),
            PrepareError::Io { ref source, .. } if source.raw_os_error() == Some(nix::libc::ENOSPC) => {
                fault(FaultKind::DiskFull, &error)
            }
            PrepareError::Store(StoreError::DiskFull { .. }) => fault(FaultKind::DiskFull, &error),
            PrepareError::Io { .. } | PrepareError::Store(_) => fault(FaultKind::Sandbox, &error),
        })?;
        self.result.mended = workspace.mended.clone();
        self.result.overlaid = workspace.overlaid.clone();
        Ok(workspace)
    }

    /// Starts the launcher and, beside it, the judge.
    async fn start(&mut self, workspace: &Workspace) -> Result<(Inside, Option<JudgeProcess>), Halt> {
        let begin = Instant::now();
        let with_probes = self.wants_probes();
        let launching = inside::start(self.spec, workspace, with_probes);
        let judging =
            async { if with_probes { inside::start_judge(self.spec).await.map(Some) } else { Ok(None) } };
        let (inside, judge) = tokio::join!(launching, judging);
        let inside = inside.map_err(|error| match error {
            inside::StartError::Sandbox(error) => fault(FaultKind::Sandbox, error),
            inside::StartError::Launcher(error) => error.into(),
        })?;
        self.result.sandbox = inside.report.clone();
        self.result.timing.sandbox_s = begin.elapsed().as_secs_f64() - inside.launcher.import_s;
        self.result.timing.framework_s = inside.launcher.import_s;
        let judge = judge.map_err(|error| self.judge_halt(error))?;
        Ok((inside, judge))
    }

    fn judge_halt(&self, error: inside::JudgeStartError) -> Halt {
        match error {
            inside::JudgeStartError::Sandbox(error) => fault(FaultKind::Sandbox, error),
            inside::JudgeStartError::Judge(error @ JudgeError::Author { .. }) => {
                self.mistaken(error.to_string())
            }
            inside::JudgeStartError::Judge(error) => fault(FaultKind::Judge, error),
        }
    }

    fn mistaken(&self, what: String) -> Halt {
        Halt::Error(TrialError::Task { task: self.spec.task.id().to_string(), what })
    }

    async fn suites(
        &mut self,
        workspace: &Workspace,
        inside: &mut Inside,
        judge: Option<JudgeProcess>,
        events: &dyn Events,
    ) -> Result<(), Halt> {
        let ready = Instant::now();
        let over = self.begin + Duration::from_secs_f64(self.spec.task.public.spec.timeouts.trial);
        if self.wants_official() {
            self.official(workspace, inside, over, ready, events).await?;
            if self.is_over() {
                return Err(Halt::Over);
            }
        }
        if let Some(judge) = judge {
            self.probes(workspace, inside, judge, over, events).await?;
        }
        match &workspace.suspect {
            Some(suspect) if !self.is_over() => self.suspect(suspect, inside, over).await,
            _ => Ok(()),
        }
    }

    /// Runs cases that must fail under the patch's own conftest and runner configuration, last of all: one that does not fail
    /// there shows what they are for.
    async fn suspect(&mut self, suspect: &Suspect, inside: &mut Inside, over: Instant) -> Result<(), Halt> {
        let task = &self.spec.task.public.spec;
        let mut setup = inside.setup.clone();
        setup.paths.workspace = setup.paths.suspect.clone();
        let suite = OfficialSuite {
            world: self.spec.inputs.world,
            files: suspect.files.clone(),
            plugins: &task.tests.plugins,
            top_level: &[],
            wanted: &|_| true,
            timeouts: &task.timeouts,
            shuffle: None,
            stop: None,
            over,
            eager: false,
            ends: false,
            deadlines: &BTreeMap::new(),
            replaced: None,
        };
        let mut meters = SandboxMeters::new(&inside.sandbox);
        let outcome = official::run(&mut inside.launcher, &setup, &suite, &Silent, &mut meters).await?;
        let brought = suspect.brought.join(", ");
        let laid: Vec<&String> = suspect.files.iter().collect();
        let hooked =
            outcome.tampering.iter().map(|found| (found.rank, said_of(&laid, found.evidence.clone())));
        let passed = outcome.cases.iter().filter_map(|case| {
            let rank = case.outcomes().iter().position(passes)?;
            let word = case.vector[rank].outcome.word();
            Some((Some(rank as u32), format!("a case that must fail was reported as {word} on rank {rank}")))
        });
        if let Some((rank, what)) = hooked.chain(passed).next() {
            self.result.tampering.push(Tampering {
                kind: TamperingKind::RunnerConfiguration,
                rank,
                evidence: format!("under the patch's own {brought}: {what}"),
            });
        }
        self.keep_logs("suspect", &outcome.logs);
        Ok(())
    }

    fn is_over(&self) -> bool {
        let stops = |case: &CaseResult| self.spec.stop.as_ref().is_some_and(|stop| stop(case));
        !self.result.tampering.is_empty() || self.result.cases.iter().any(stops)
    }

    async fn official(
        &mut self,
        workspace: &Workspace,
        inside: &mut Inside,
        over: Instant,
        ready: Instant,
        events: &dyn Events,
    ) -> Result<(), Halt> {
        let spec = self.spec;
        let task = &spec.task.public.spec;
        let begin = Instant::now();
        let wanted = wanted_ids(workspace);
        let top_level: Vec<String> = workspace.top_level.iter().map(|(name, _)| name.clone()).collect();
        let is_twin = |file: &str| matches!(workspace.must_fail.get(file), Some(MustFail::Twin { .. }));
        let of_a_twin = |id: &str| is_twin(id.split("::").next().unwrap_or_default()) && wanted(id);
        let suite = OfficialSuite {
            world: spec.inputs.world,
            files: workspace.files.iter().filter(|file| !is_twin(file)).cloned().collect(),
            plugins: &task.tests.plugins,
            top_level: &top_level,
            wanted: &wanted,
            timeouts: &task.timeouts,
            shuffle: spec.shuffled.then_some(spec.seed),
            stop: spec.stop.as_deref(),
            over,
            eager: false,
            ends: false,
            deadlines: &BTreeMap::new(),
            replaced: None,
        };
        let mut meters = SandboxMeters::new(&inside.sandbox);
        let mut outcome =
            official::run(&mut inside.launcher, &inside.setup, &suite, events, &mut meters).await?;
        let stops = |case: &CaseResult| spec.stop.as_ref().is_some_and(|stop| stop(case));
        let ended = outcome.lost || !outcome.tampering.is_empty() || outcome.cases.iter().any(stops);
        if !ended && workspace.files.iter().any(|file| is_twin(file)) {
            // In ranks of their own: what a twin leaves behind when it fails half-way, or registers when it is imported, must
            // cost no real case. Collected like the real ones, with them, so that nothing inside tells the two launches apart.
            let suite =
                OfficialSuite { files: workspace.files.clone(), wanted: &of_a_twin, stop: None, ..suite };
            let twins =
                official::run(&mut inside.launcher, &inside.setup, &suite, &Silent, &mut meters).await?;
            outcome.append(twins);
        }
        if let Some(first) = outcome.first_case {
            self.result.timing.first_case_s = first.duration_since(ready).as_secs_f64();
        }
        let laid: Vec<&String> = workspace.must_fail.keys().collect();
        self.result.tampering.extend(outcome.tampering.into_iter().map(|mut found| {
            found.evidence = said_of(&laid, found.evidence);
            found
        }));
        self.result.notes.extend(outcome.notes.into_iter().map(|note| said_of(&laid, note)));
        self.keep_logs("official", &outcome.logs);
        self.refuse_outside(workspace, &outcome.outside)?;
        self.sort_out(workspace, outcome.cases);
        if outcome.lost {
            return Err(self.lost());
        }
        self.result.timing.official_s = begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// Tells real cases from those that must fail, and takes one of those that did not for tampering.
    fn sort_out(&mut self, workspace: &Workspace, mut cases: Vec<CaseResult>) {
        let must_fail = |case: &CaseResult| {
            let file = case.case.id.split("::").next().unwrap_or_default();
            workspace.must_fail.get(file)
        };
        let laid: Vec<CaseResult> = cases.extract_if(.., |case| must_fail(case).is_some()).collect();
        self.result.cases = cases;
        for case in laid {
            let Some(must_fail) = must_fail(&case) else { continue };
            let outcomes = case.outcomes();
            let (kind, what) = match must_fail {
                MustFail::Canary { .. } => {
                    self.result.canaries.canaries += 1;
                    (TamperingKind::CanaryPassed, "a case that must fail".to_string())
                }
                MustFail::Twin { of, .. } => {
                    let twin = format!("{}::{}", of.file, of.function);
                    let outcomes = outcomes.clone();
                    self.result.canaries.twins.push(TwinResult { of: twin.clone(), line: of.line, outcomes });
                    let perturbed = format!(
                        "{twin} with the expectation of line {} perturbed, which must fail,",
                        of.line
                    );
                    (TamperingKind::TwinPassed, perturbed)
                }
            };
            let trusted =
                !matches!((must_fail, &self.spec.twins), (MustFail::Twin { .. }, Twins::Candidates));
            let passed = outcomes.iter().position(passes);
            if let Some(rank) = passed.filter(|_| trusted) {
                self.result.tampering.push(Tampering {
                    kind,
                    rank: Some(rank as u32),
                    evidence: format!("{what} was reported as {} on rank {rank}", outcomes[rank].word()),
                });
            }
        }
    }

    fn refuse_outside(&mut self, workspace: &Workspace, outside: &BTreeSet<String>) -> Result<(), Halt> {
        for (name, decides) in workspace.top_level.iter().filter(|(name, _)| outside.contains(name)) {
            let what = format!("`import {name}` finds an installed package, not the tree under test");
            if *decides {
                let advice =
                    "take that package out of the environment, or the name out of tests.import_roots";
                return Err(self.mistaken(format!("{what}: {advice}")));
            }
            if !self.result.notes.iter().any(|note| note.starts_with(&what)) {
                self.result.notes.push(what);
            }
        }
        Ok(())
    }

    async fn probes(
        &mut self,
        workspace: &Workspace,
        inside: &mut Inside,
        mut judge: JudgeProcess,
        over: Instant,
        events: &dyn Events,
    ) -> Result<(), Halt> {
        let spec = self.spec;
        let begin = Instant::now();
        let mut cases = judge.judge.cases.clone();
        if let Selection::Case(wanted) = &spec.inputs.selection {
            cases.retain(|case| case.id == *wanted);
        }
        if spec.shuffled {
            cases.shuffle(&mut StdRng::seed_from_u64(spec.seed));
        }
        let suite = ProbeSuite {
            world: spec.inputs.world,
            cases,
            timeouts: &spec.task.public.spec.timeouts,
            seed: spec.seed,
            case_seed: spec.case_seed,
            stop: spec.stop.as_deref(),
            over,
            golden: self.is_golden(),
        };
        let mut meters = SandboxMeters::new(&inside.sandbox);
        let outcome =
            probes::run(&mut inside.launcher, &mut judge.judge, &inside.setup, &suite, events, &mut meters)
                .await;
        let log = judge.log();
        let outcome = outcome.map_err(|error| match error {
            ProbesError::Launcher(error) => error.into(),
            ProbesError::Judge(error) => fault(FaultKind::Judge, format!("{error}\n{log}")),
        })?;
        self.result.tampering.extend(outcome.tampering);
        self.result.notes.extend(outcome.notes);
        self.keep_logs("probe", &outcome.logs);
        self.refuse_outside(workspace, &outcome.outside)?;
        self.result.cases.extend(outcome.cases);
        judge.end().await;
        if outcome.lost {
            return Err(self.lost());
        }
        self.result.timing.probes_s = begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// Golden is calibrated here: what cannot be its fault is the machine's.
    fn is_golden(&self) -> bool {
        matches!(self.spec.twins, Twins::Candidates)
    }

    /// The launcher went while a suite ran, and took the cases left with it. A patch answers for that; where golden is
    /// calibrated, cases that never ran would be quarantined and count no more.
    fn lost(&self) -> Halt {
        match self.result.notes.last() {
            Some(note) if self.is_golden() => fault(FaultKind::Launcher, note),
            _ => Halt::Over,
        }
    }

    fn keep_logs(&mut self, suite: &str, logs: &[WorldLogs]) {
        for world in logs {
            for (rank, bytes) in world.ranks.iter().enumerate() {
                if bytes.is_empty() {
                    continue;
                }
                let path = self.spec.logs.join(format!("{suite}-{}-rank{rank}.log", world.launch));
                if let Err(error) = write_log(&path, bytes) {
                    self.result.notes.push(format!("{}: {error}", path.display()));
                }
            }
        }
    }
}

/// Whether an outcome is none that a case which must fail can have by honest means. A skip or an expected failure can be: a
/// test skips where a feature is not there, a conftest skips all that needs a GPU; and neither makes a case pass.
fn passes(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Passed | Outcome::Xpassed)
}

fn write_log(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes)
}

/// Which of the collected ids run: all of the official files and canaries, and of a twin's file the twin alone, with its first
/// parameters.
fn wanted_ids(workspace: &Workspace) -> impl Fn(&str) -> bool + Send + Sync + 'static {
    let must_fail = workspace.must_fail.clone();
    // Of a test with 100,000 parameters one twin is enough; which one is settled by the first that is asked about.
    let chosen: Mutex<BTreeMap<String, String>> = Mutex::default();
    move |id: &str| {
        let file = id.split("::").next().unwrap_or_default();
        match must_fail.get(file) {
            None | Some(MustFail::Canary { .. }) => true,
            Some(MustFail::Twin { id: twin, .. }) => {
                let is_twin = |rest: &str| rest.is_empty() || rest.starts_with('[');
                if !id.strip_prefix(twin.as_str()).is_some_and(is_twin) {
                    return false;
                }
                let mut chosen = chosen.lock().unwrap_or_else(PoisonError::into_inner);
                chosen.entry(file.to_string()).or_insert_with(|| id.to_string()) == id
            }
        }
    }
}

/// A sentence about a test file, marked where no reader knows the file: the harness laid it.
fn said_of(laid: &[&String], sentence: String) -> String {
    if laid.iter().any(|file| sentence.starts_with(file.as_str())) {
        return format!("the harness's own {sentence}");
    }
    sentence
}

/// CPU seconds of this process so far.
fn own_cpu() -> f64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
    usage.map_or(0.0, |usage| {
        let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    })
}
