//! A warm session: golden's tree laid once, the framework imported once, and then many *variants* of the tree, one after
//! another, each with fresh ranks.
//!
//! A variant is golden with some files replaced. It is written into the session's own workspace, tried, and put back; what
//! it does (hang, crash, fill its memory, leave files) ends with its ranks. A launcher that is lost is started again. No
//! canaries and no twins are laid: the harness made the variants itself, nobody gains by forging.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_model::{CaseResult, Tampering, Timeouts};
use infradev_sandbox::Kind;
use tokio::time::Instant;

use crate::building::{self, BuildError};
use crate::events::Silent;
use crate::inside::{self, Inside, JudgeProcess, JudgeStartError, StartError};
use crate::judge::JudgeError;
use crate::launcher::LauncherError;
use crate::messages::JudgeCase;
use crate::meters::SandboxMeters;
use crate::official::{self, OfficialOutcome, OfficialSuite, SessionEnd};
use crate::probes::{self, ProbeSuite, ProbesError};
use crate::reach::ReachLog;
use crate::resuming::Template;
use crate::trial::{TrialError, TrialSpec};
use crate::workspace::{Ingredients, PrepareError, TwinChoice, Workspace};

/// Variants after which the sandbox is started anew: what their ranks left in its private folders goes with it.
const FRESH_AFTER: u32 = 250;

/// A file of a variant: its path in the tree, and its text; no text where it is removed.
pub type Changed = (String, Option<Vec<u8>>);

/// Says of a case whether it ends what is run.
pub type Stop<'a> = Option<&'a (dyn Fn(&CaseResult) -> bool + Send + Sync)>;

/// Which cases of a suite are run, and how.
pub struct Ask<'a> {
    /// Ranks.
    pub world: u32,
    /// Ids of the cases; all of the suite where none is given.
    pub cases: Option<&'a BTreeSet<String>>,
    /// Ends after the first case for which it says so.
    pub stop: Stop<'a>,
    /// Whether a case is decided by the first rank that fails.
    pub eager: bool,
    /// Whether the end of pytest's sessions is waited for, where no case ended them before.
    pub ends: bool,
    /// Whether official cases may run in ranks of a template: what is laid changes functions that run in cases alone.
    pub resumes: bool,
    /// Deadlines in seconds.
    pub timeouts: &'a Timeouts,
    /// Deadlines of single cases, where they are shorter.
    pub deadlines: &'a BTreeMap<String, f64>,
    /// Files of the tree whose lines are followed; what was seen is in the outcome's reach, by their index.
    pub reach: &'a [String],
    /// Seed of the inputs of probes.
    pub seed: u64,
}

impl<'a> Ask<'a> {
    /// All of a suite, from its first case to its last, in ranks that start from nothing; no line is followed.
    pub fn all(
        world: u32,
        timeouts: &'a Timeouts,
        deadlines: &'a BTreeMap<String, f64>,
        seed: u64,
    ) -> Ask<'a> {
        let (eager, ends, resumes) = (false, false, false);
        Ask { world, cases: None, stop: None, eager, ends, resumes, timeouts, deadlines, reach: &[], seed }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Tried {
    /// Cases in the order in which they ended.
    pub cases: Vec<CaseResult>,
    /// Files that could not be collected, and the like.
    pub notes: Vec<String>,
    /// Lines that were seen to run.
    pub reach: ReachLog,
    /// Top-level names that resolve outside of the tree; where base has them, something else was tested.
    pub outside: BTreeSet<String>,
    /// The variant took the launcher or the judge with it.
    pub lost: bool,
    /// Its ranks were forked of a template.
    pub resumed: bool,
    /// How pytest's sessions ended, of official cases.
    pub end: SessionEnd,
    /// Seconds until the first case began: ranks forked, tests collected.
    pub set_up_s: f64,
    /// Seconds in all.
    pub wall_s: f64,
}

impl Tried {
    pub(crate) fn of_official(outcome: OfficialOutcome, begin: Instant) -> Tried {
        let first = outcome.first_case;
        Tried {
            set_up_s: first.map_or(0.0, |first| first.duration_since(begin).as_secs_f64()),
            cases: outcome.cases,
            notes: notes(outcome.notes, outcome.tampering),
            reach: outcome.reach,
            outside: outcome.outside,
            lost: outcome.lost,
            end: outcome.end,
            ..Tried::default()
        }
    }
}

/// What a variant's run noted, evidence of forgery with it: nobody gains by it here, but it says what happened.
fn notes(notes: Vec<String>, tampering: Vec<Tampering>) -> Vec<String> {
    notes.into_iter().chain(tampering.into_iter().map(|found| found.evidence)).collect()
}

/// A warm session.
pub struct Session {
    pub(crate) spec: TrialSpec,
    pub(crate) workspace: Workspace,
    pub(crate) inside: Option<Inside>,
    /// By world size.
    pub(crate) templates: BTreeMap<u32, Template>,
    /// World sizes at which golden's tests allow none.
    pub(crate) without_template: BTreeSet<u32>,
    judges: BTreeMap<u32, JudgeProcess>,
    /// What stands in the workspace in place of golden's files: golden's own text of each, if it has one.
    pub(crate) laid: BTreeMap<String, Option<Vec<u8>>>,
    /// Host folder of the bytecode that ranks read, with the workspace's path inside it.
    bytecode: PathBuf,
    /// The folders in which ranks of the last variant could write, by the template that forked them: each has a uid of its own.
    scratch: BTreeMap<Option<u32>, String>,
    variants: u32,
}

impl Session {
    /// Lays golden's tree and starts the sandbox. `spec` is a trial of golden; its suites are run on request only.
    pub async fn open(mut spec: TrialSpec) -> Result<Session, TrialError> {
        let workspace = lay(&spec).await?;
        let failed = |path: &Path, error: io::Error| machine(&format!("{}: {error}", path.display()));
        let own = spec.scratch.join("pycache");
        let bytecode = match spec.sandbox {
            Kind::Namespaces => {
                match &spec.bytecode {
                    Some(base) => copy_folder(base, &own),
                    None => writable_folder(&own),
                }
                .map_err(|error| failed(&own, error))?;
                spec.bytecode = Some(own.clone());
                own.join("workspace")
            }
            Kind::None => {
                let place = spec.scratch.join("tmp/pycache");
                let below = workspace.path.strip_prefix("/").unwrap_or(&workspace.path);
                place.join(below)
            }
        };
        let mut session = Session {
            spec,
            workspace,
            inside: None,
            templates: BTreeMap::new(),
            without_template: BTreeSet::new(),
            judges: BTreeMap::new(),
            laid: BTreeMap::new(),
            bytecode,
            scratch: BTreeMap::new(),
            variants: 0,
        };
        session.inside().await?;
        Ok(session)
    }

    /// Where golden's tree lies, with the official tests in it.
    pub fn tree(&self) -> &Path {
        &self.workspace.path
    }

    /// Official test files.
    pub fn files(&self) -> &[String] {
        &self.workspace.files
    }

    /// Seconds that the framework's import took.
    pub fn import_s(&self) -> f64 {
        self.inside.as_ref().map_or(0.0, |inside| inside.launcher.import_s)
    }

    /// Lets ranks compile and keep golden's modules and tests, so that those of variants read them. Runs no case.
    pub async fn prime(&mut self, world: u32, timeouts: &Timeouts) -> Result<Tried, TrialError> {
        let none = BTreeSet::new();
        let nothing = BTreeMap::new();
        let ask = Ask { cases: Some(&none), ..Ask::all(world, timeouts, &nothing, 0) };
        let files = self.workspace.files.clone();
        self.run_official(&ask, files, true).await
    }

    /// Puts a variant's files in place of golden's.
    ///
    /// # Errors
    /// The disk.
    pub fn lay(&mut self, changed: &[Changed]) -> Result<(), TrialError> {
        for (path, text) in changed {
            if !self.laid.contains_key(path) {
                let golden = match fs::read(self.workspace.path.join(path)) {
                    Ok(bytes) => Some(bytes),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => return Err(machine(&format!("{path}: {error}"))),
                };
                self.laid.insert(path.clone(), golden);
            }
            self.write(path, text.as_deref()).map_err(|error| machine(&format!("{path}: {error}")))?;
        }
        self.variants += 1;
        Ok(())
    }

    /// Puts golden's files back.
    ///
    /// # Errors
    /// The disk.
    pub fn put_back(&mut self) -> Result<(), TrialError> {
        for (path, golden) in std::mem::take(&mut self.laid) {
            self.write(&path, golden.as_deref()).map_err(|error| machine(&format!("{path}: {error}")))?;
        }
        Ok(())
    }

    /// A new inode under the old name: the old one may be shared with the base tree, and a rank that lives may have it open.
    fn write(&self, path: &str, text: Option<&[u8]>) -> io::Result<()> {
        let target = self.workspace.path.join(path);
        self.forget_bytecode(path)?;
        let Some(text) = text else {
            return match fs::remove_file(&target) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        let fresh = self.spec.scratch.join("laying");
        fs::write(&fresh, text)?;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o644))?;
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&fresh, &target)
    }

    /// Removes what was compiled of a file: by time and size, a variant laid within the second in which golden was, at the
    /// same length, would be taken for golden.
    fn forget_bytecode(&self, path: &str) -> io::Result<()> {
        let place = Path::new(path);
        let Some(stem) = place.file_stem().and_then(|stem| stem.to_str()) else { return Ok(()) };
        let folder = self.bytecode.join(place.parent().unwrap_or(Path::new("")));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let compiled = name.to_string_lossy();
            if compiled.strip_prefix(stem).is_some_and(|rest| rest.starts_with('.')) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Runs official cases on the tree as it is laid now.
    pub async fn official(&mut self, ask: &Ask<'_>) -> Result<Tried, TrialError> {
        let files: Vec<String> = match ask.cases {
            None => self.workspace.files.clone(),
            Some(wanted) => {
                let of: BTreeSet<&str> = wanted.iter().filter_map(|id| id.split("::").next()).collect();
                self.workspace.files.iter().filter(|file| of.contains(file.as_str())).cloned().collect()
            }
        };
        self.run_official(ask, files, false).await
    }

    async fn run_official(
        &mut self,
        ask: &Ask<'_>,
        files: Vec<String>,
        keeps_bytecode: bool,
    ) -> Result<Tried, TrialError> {
        let begin = Instant::now();
        let mut again = false;
        loop {
            match self.try_official(ask, files.clone(), keeps_bytecode, begin).await {
                Ok(mut tried) => {
                    self.refuse_outside(&tried)?;
                    tried.wall_s = begin.elapsed().as_secs_f64();
                    return Ok(tried);
                }
                // Nothing of this variant ran yet: what ended the launcher was not it.
                Err(error) if !again => {
                    tracing::warn!(%error, "a session's launcher is started again");
                    again = true;
                    self.restart().await?;
                }
                Err(error) => return Err(machine(&error.to_string())),
            }
        }
    }

    async fn try_official(
        &mut self,
        ask: &Ask<'_>,
        files: Vec<String>,
        keeps_bytecode: bool,
        begin: Instant,
    ) -> Result<Tried, LauncherError> {
        if let Some(tried) = self.resumed(ask, &files, begin).await? {
            return Ok(tried);
        }
        let top_level: Vec<String> = self.workspace.top_level.iter().map(|(name, _)| name.clone()).collect();
        let plugins = self.spec.task.public.spec.tests.plugins.clone();
        let over = begin + Duration::from_secs_f64(ask.timeouts.trial);
        self.begin_variant(ask.reach, keeps_bytecode, None).await?;
        let inside = self.started()?;
        let suite = OfficialSuite {
            world: ask.world,
            files,
            plugins: &plugins,
            top_level: &top_level,
            wanted: &|id| ask.cases.is_none_or(|wanted| wanted.contains(id)),
            timeouts: ask.timeouts,
            shuffle: None,
            stop: ask.stop,
            over,
            eager: ask.eager,
            ends: ask.ends,
            deadlines: ask.deadlines,
            replaced: None,
        };
        let mut meters = SandboxMeters::new(&inside.sandbox);
        let outcome =
            official::run(&mut inside.launcher, &inside.setup, &suite, &Silent, &mut meters).await?;
        let tried = Tried::of_official(outcome, begin);
        if tried.lost {
            self.stop().await;
        }
        Ok(tried)
    }

    /// What is installed in the environment under a name of the tree would be tested in its place.
    fn refuse_outside(&self, tried: &Tried) -> Result<(), TrialError> {
        let decides = |(name, decides): &&(String, bool)| *decides && tried.outside.contains(name);
        match self.workspace.top_level.iter().find(decides) {
            None => Ok(()),
            Some((name, _)) => Err(self.mistaken(format!(
                "`import {name}` finds an installed package, not the tree under test: take that package out of the \
                 environment, or install it in editable mode"
            ))),
        }
    }

    /// Runs probe cases on the tree as it is laid now.
    pub async fn probes(&mut self, ask: &Ask<'_>) -> Result<Tried, TrialError> {
        let begin = Instant::now();
        let mut again = false;
        loop {
            match self.try_probes(ask, begin).await {
                Ok(mut tried) => {
                    tried.wall_s = begin.elapsed().as_secs_f64();
                    return Ok(tried);
                }
                Err(ProbesError::Judge(error @ JudgeError::Author { .. })) => {
                    return Err(self.mistaken(error.to_string()));
                }
                Err(error) if !again => {
                    tracing::warn!(%error, "a session's launcher and judge are started again");
                    again = true;
                    self.restart().await?;
                }
                Err(error) => return Err(machine(&error.to_string())),
            }
        }
    }

    /// The probe cases at a world size.
    pub async fn probe_cases(&mut self, world: u32) -> Result<Vec<String>, TrialError> {
        match self.judge(world).await {
            Ok(judge) => Ok(judge.judge.cases.iter().map(|case| case.id.clone()).collect()),
            Err(ProbesError::Judge(error @ JudgeError::Author { .. })) => {
                Err(self.mistaken(error.to_string()))
            }
            Err(error) => Err(machine(&error.to_string())),
        }
    }

    async fn try_probes(&mut self, ask: &Ask<'_>, begin: Instant) -> Result<Tried, ProbesError> {
        let over = begin + Duration::from_secs_f64(ask.timeouts.trial);
        self.begin_variant(ask.reach, false, None).await?;
        self.judge(ask.world).await?;
        let Session { inside, judges, .. } = self;
        let (Some(inside), Some(judge)) = (inside.as_mut(), judges.get_mut(&ask.world)) else {
            return Err(LauncherError::Gone("it was not started".into()).into());
        };
        let wanted = |case: &&JudgeCase| ask.cases.is_none_or(|wanted| wanted.contains(&case.id));
        let cases: Vec<JudgeCase> = judge.judge.cases.iter().filter(wanted).cloned().collect();
        let suite = ProbeSuite {
            world: ask.world,
            cases,
            timeouts: ask.timeouts,
            seed: ask.seed,
            case_seed: None,
            stop: ask.stop,
            over,
            golden: false,
        };
        let mut meters = SandboxMeters::new(&inside.sandbox);
        let run =
            probes::run(&mut inside.launcher, &mut judge.judge, &inside.setup, &suite, &Silent, &mut meters);
        let outcome = run.await?;
        let tried = Tried {
            cases: outcome.cases,
            notes: notes(outcome.notes, outcome.tampering),
            reach: outcome.reach,
            outside: outcome.outside,
            lost: outcome.lost,
            ..Tried::default()
        };
        if tried.lost {
            self.stop().await;
        }
        Ok(tried)
    }

    /// Whether the sandbox has to be started anew.
    pub(crate) fn is_stale(&self) -> bool {
        self.variants >= FRESH_AFTER
    }

    /// Gives the next ranks, those of a template or of none, a folder of their own to write in, and the last ones' to remove.
    pub(crate) async fn begin_variant(
        &mut self,
        reach: &[String],
        keeps_bytecode: bool,
        template: Option<u32>,
    ) -> Result<(), LauncherError> {
        if self.is_stale() {
            self.stop().await;
        }
        if self.inside.is_none() {
            self.inside().await.map_err(|error| LauncherError::Gone(error.to_string()))?;
        }
        let leavings = self.scratch.remove(&template);
        let inside = self.started()?;
        let root = inside.root.clone();
        let scratch = inside.launcher.shared_folder(&root, "variant").await?;
        inside.setup.paths.scratch.clone_from(&scratch);
        inside.setup.leavings = leavings.into_iter().collect();
        inside.setup.reach = reach.to_vec();
        inside.setup.keeps_bytecode = keeps_bytecode;
        self.scratch.insert(template, scratch);
        Ok(())
    }

    pub(crate) fn started(&mut self) -> Result<&mut Inside, LauncherError> {
        self.inside.as_mut().ok_or_else(|| LauncherError::Gone("it was not started".into()))
    }

    async fn inside(&mut self) -> Result<&mut Inside, TrialError> {
        if self.inside.is_none() {
            let with_probes = !self.spec.task.probes.is_empty();
            let started = inside::start(&self.spec, &self.workspace, with_probes).await;
            self.inside = Some(started.map_err(|error| match error {
                StartError::Launcher(LauncherError::Framework(what)) => TrialError::Framework { what },
                error => machine(&error.to_string()),
            })?);
            self.variants = 0;
            self.scratch.clear();
        }
        self.inside.as_mut().ok_or_else(|| machine("the sandbox was not started"))
    }

    async fn judge(&mut self, world: u32) -> Result<&mut JudgeProcess, ProbesError> {
        if !self.judges.contains_key(&world) {
            let judge = inside::start_judge_at(&self.spec, world).await.map_err(|error| match error {
                JudgeStartError::Sandbox(why) => JudgeError::Gone(format!("was not started: {why}")),
                JudgeStartError::Judge(error) => error,
            })?;
            self.judges.insert(world, judge);
        }
        let judge = self.judges.get_mut(&world);
        judge.ok_or_else(|| JudgeError::Gone("was not started".into()).into())
    }

    async fn restart(&mut self) -> Result<(), TrialError> {
        self.stop().await;
        self.inside().await.map(|_| ())
    }

    /// Ends the sandboxes; the next suite starts them again.
    pub(crate) async fn stop(&mut self) {
        for (_, template) in std::mem::take(&mut self.templates) {
            template.launcher.shutdown().await;
        }
        for (_, judge) in std::mem::take(&mut self.judges) {
            judge.end().await;
        }
        if let Some(inside) = self.inside.take() {
            inside.end().await;
        }
    }

    fn mistaken(&self, what: String) -> TrialError {
        TrialError::Task { task: self.spec.task.id().to_string(), what }
    }

    /// Ends it and removes what it laid.
    pub async fn close(mut self) {
        self.stop().await;
        let _ = fs::remove_dir_all(&self.spec.scratch);
    }
}

fn machine(what: &str) -> TrialError {
    TrialError::Machine { what: what.to_string() }
}

/// Golden's tree with the official tests, without anything that must fail.
async fn lay(spec: &TrialSpec) -> Result<Workspace, TrialError> {
    let task = &spec.task;
    let layer = building::layer_of(spec).await.map_err(|error| match error {
        BuildError::Failed(failure) => TrialError::Task { task: task.id().to_string(), what: failure.why },
        BuildError::Fault(_, evidence) => machine(&evidence),
    })?;
    let parts = Ingredients {
        trees: &spec.trees,
        tree: &spec.tree,
        sharing: spec.sharing(),
        patch: &spec.patch,
        official: Some(task.official.as_slice()),
        golden: &task.golden,
        tests: &task.public.spec.tests,
        build: task.public.spec.build.as_ref(),
        layer: layer.as_ref(),
        scratch: &spec.scratch,
        twins: TwinChoice::Nothing,
        seed: spec.seed,
    };
    fs::create_dir_all(&spec.scratch)
        .map_err(|error| machine(&format!("{}: {error}", spec.scratch.display())))?;
    Workspace::prepare(&parts).map_err(|error| {
        let task = task.id().to_string();
        match error {
            PrepareError::NotApplied(why) => {
                TrialError::Task { task, what: format!("golden.patch does not apply to base: {why}") }
            }
            PrepareError::Task { what } => TrialError::Task { task, what },
            error => machine(&error.to_string()),
        }
    })
}

/// A folder that ranks of any uid may write in.
fn writable_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))
}

/// Copies a folder of bytecode so that ranks can add to it; links stay links.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    writable_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
