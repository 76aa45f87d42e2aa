//! One try at an attempt: a slot, a workspace, an agent, a patch, a record.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use infradev_agent::{Again, RunEnd, RunSpec, whole_prompt};
use infradev_executor::{Executor, Happening};
use infradev_git::{Captured, commit_folder};
use infradev_model::{AllTries, Digest, Ending, Metered, SubmissionRecord};
use infradev_sandbox::Limits;
use infradev_store::{RunEvent, RunFolder, Staging};

use crate::apart::not_captured;
use crate::attempting::{Turn, too_long};
use crate::capturing::taken;
use crate::error::AttemptError;
use crate::recording;

/// Memory that an agent itself may use, beside what the task's code may.
const OWN_MEMORY: u64 = 6 << 30;
/// Processes and threads that an agent itself may have.
const OWN_PIDS: u64 = 1024;
/// Least bound of `/tmp`, bytes.
const TMP: u64 = 2 << 30;
/// The workspace inside.
const WORKSPACE: &str = "/workspace";

/// One try at an attempt.
pub(crate) struct Try<'a> {
    pub executor: &'a Executor,
    pub run: &'a RunFolder,
    pub turn: Turn<'a>,
    pub key: &'a Digest,
    pub label: &'a str,
    /// From 1, over all commands.
    pub number: u32,
    /// What the tries before it used together; none where there was none.
    pub used: Option<&'a Metered>,
}

impl Try<'_> {
    /// Makes it, in a slot and a workspace of its own. Besides: whether another may fare better.
    pub(crate) async fn once(&self) -> Result<(SubmissionRecord, Again), AttemptError> {
        let Try { executor, run, turn, key, .. } = *self;
        if let Some(why) = too_long(turn.plan, turn.arm, turn.prompt) {
            return Ok((self.refused(why).await?, Again::InVain));
        }
        let slot = executor.slot(turn.desk.spec.gpus).await?;
        self.begins()?;
        let staging = run.stage(key)?;
        let made = self.within(slot.gpus(), &staging).await;
        // An agent may have made so many files that their removal takes its time.
        let ended = move || match made {
            Ok((record, again)) => staging.finish(&record).map(|_| (record, again)).map_err(Into::into),
            Err(error) => {
                drop(staging);
                Err(error)
            }
        };
        let (record, again) = aside(ended).await??;
        self.ends(&record)?;
        Ok((record, again))
    }

    /// One that the agent cannot be started for: that is its end, and the others are made.
    async fn refused(&self, why: String) -> Result<SubmissionRecord, AttemptError> {
        self.begins()?;
        let staging = self.run.stage(self.key)?;
        let (kept, end) = (staging.kept(), recording::not_started(why));
        let Turn { plan, arm, prompt, .. } = self.turn;
        let whole = whole_prompt(prompt, arm.skill.as_ref(), &plan.agent.spec);
        let file = kept.join("prompt.md");
        fs::write(&file, whole).map_err(AttemptError::io(&file))?;
        let record = self.recorded(&kept, end, &Captured::default(), 0.0)?;
        let ended = record.clone();
        aside(move || staging.finish(&ended).map(|_| ())).await??;
        self.ends(&record)?;
        Ok(record)
    }

    fn begins(&self) -> Result<(), AttemptError> {
        let Try { executor, run, turn, key, label, .. } = *self;
        executor.tell(Happening::TrialStarted { label: label.to_owned(), expected: None });
        run.record(&RunEvent::TrialStarted {
            trial: key.clone(),
            task: turn.desk.spec.id.clone(),
            what: turn.plan.submission(turn.arm, turn.number),
            world: 0,
        })?;
        Ok(())
    }

    fn ends(&self, record: &SubmissionRecord) -> Result<(), AttemptError> {
        let trial = self.key.clone();
        self.run.record(&match record.ending {
            Ending::EndpointUnreachable => {
                RunEvent::TrialFault { trial, evidence: record.detail.clone().unwrap_or_default() }
            }
            _ => RunEvent::TrialFinished { trial, wall_s: record.wall_s },
        })?;
        Ok(())
    }

    /// The same within folders that are there and on GPUs that are leased.
    async fn within(
        &self,
        gpus: Vec<u32>,
        staging: &Staging,
    ) -> Result<(SubmissionRecord, Again), AttemptError> {
        let Try { executor, run, key, label, turn, .. } = *self;
        let begun = Instant::now();
        let folders = Folders::of(staging);
        executor.workspace(&turn.desk.ready.tree, &folders.workspace)?;
        let folder = folders.workspace.clone();
        aside(move || commit_folder(&folder, "Base")).await??;
        let end = infradev_agent::run(run_spec(&turn, &folders, gpus)).await?;
        let (base, folder) = (turn.desk.ready.tree.path.clone(), folders.workspace.clone());
        let captured = aside(move || taken(&base, &folder)).await?;
        let captured = captured.map_err(|error| not_captured(run, key, label, error))?;
        let again = end.again;
        let record = self.recorded(&folders.kept, end, &captured, begun.elapsed().as_secs_f64())?;
        Ok((record, again))
    }

    /// Keeps the patch, and makes the record.
    fn recorded(
        &self,
        kept: &Path,
        end: RunEnd,
        captured: &Captured,
        wall_s: f64,
    ) -> Result<SubmissionRecord, AttemptError> {
        let patch = kept.join("patch.diff");
        fs::write(&patch, &captured.patch).map_err(AttemptError::io(&patch))?;
        let mut record = recording::record(&self.turn, end, captured);
        record.tries = self.number;
        record.all_tries = self.used.map(|before| {
            let mut metered = before.clone();
            metered += &record.metered;
            AllTries { cost: self.turn.plan.cost(self.turn.arm, &metered), metered }
        });
        record.wall_s = wall_s;
        record.folder = format!("trials/{}", self.key);
        Ok(record)
    }
}

/// Folders of one attempt.
struct Folders {
    workspace: PathBuf,
    scratch: PathBuf,
    kept: PathBuf,
}

impl Folders {
    fn of(staging: &Staging) -> Folders {
        let scratch = staging.scratch().to_owned();
        Folders { workspace: scratch.join("workspace"), scratch, kept: staging.kept() }
    }
}

/// Work that blocks, beside whatever else this process follows.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, AttemptError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| AttemptError::Cancelled)
}

fn run_spec<'a>(turn: &Turn<'a>, folders: &'a Folders, gpus: Vec<u32>) -> RunSpec<'a> {
    let Turn { plan, desk, arm, prompt, .. } = *turn;
    let tests = &desk.spec.tests;
    let root = |root: &String| {
        if root == "." { WORKSPACE.to_owned() } else { format!("{WORKSPACE}/{root}") }
    };
    let python_path: Vec<String> = tests.import_roots.iter().map(root).collect();
    let mut env = vec![
        ("PYTHONPATH".to_owned(), python_path.join(":")),
        // What Python and pytest leave behind is no part of a change.
        ("PYTHONPYCACHEPREFIX".to_owned(), "/tmp/pycache".to_owned()),
        ("PYTEST_ADDOPTS".to_owned(), "-p no:cacheprovider".to_owned()),
    ];
    env.extend(tests.env.clone());
    let environment = &desk.ready.environment;
    let limits = &desk.spec.limits;
    RunSpec {
        agent: &plan.agent,
        model: arm.model.as_deref(),
        endpoint: plan.endpoint.clone(),
        command: plan.command.as_deref(),
        prompt,
        skill: arm.skill.as_ref(),
        workspace: &folders.workspace,
        mounts: environment.mounts.clone(),
        path: environment.python.parent().map(Path::to_owned).into_iter().collect(),
        env,
        files: tests.files.iter().map(|(path, text)| (path.into(), text.clone().into_bytes())).collect(),
        limits: Limits { memory_bytes: (limits.memory_mib << 20) + OWN_MEMORY, pids: limits.pids + OWN_PIDS },
        disk_bytes: plan.disk_bytes,
        tmp_bytes: TMP.max(limits.tmp_mib << 20),
        gpus,
        timeout: plan.timeout,
        token_budget: plan.token_budget,
        scratch: &folders.scratch,
        kept: &folders.kept,
        program: &plan.program,
    }
}
