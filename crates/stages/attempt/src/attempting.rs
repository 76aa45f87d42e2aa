//! Making the attempts of a plan.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use infradev_agent::{
    Again, Endpoint, Installed, RunEnd, RunSpec, check_prompt, until_reachable, whole_prompt,
};
use infradev_executor::{Executor, Happening, ReadyBase};
use infradev_git::{Captured, commit_folder};
use infradev_model::{
    Arm, Classified, Cost, Digest, DigestBuilder, Ending, Metered, PriceTable, Prompt, PromptSettings,
    PublicTask, SubmissionRecord, TaskSpec,
};
use infradev_sandbox::Limits;
use infradev_store::{RunEvent, RunFolder, Staging};

use crate::apart::{all, not_captured};
use crate::arms::{AttemptArm, stands};
use crate::capturing::taken;
use crate::error::AttemptError;
use crate::predictions::submission_name;
use crate::recording::{self, shown_fault, summary};

/// Memory that an agent itself may use, beside what the task's code may.
const OWN_MEMORY: u64 = 6 << 30;
/// Processes and threads that an agent itself may have.
const OWN_PIDS: u64 = 1024;
/// Least bound of `/tmp`, bytes.
const TMP: u64 = 2 << 30;
/// The workspace inside.
const WORKSPACE: &str = "/workspace";

/// A task as attempts are given it.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its public part.
    pub task: PublicTask,
    /// The bytes of its environment's lock, where it has one.
    pub lock: Option<Vec<u8>>,
}

/// What is to be attempted.
#[derive(Debug, Clone)]
pub struct AttemptPlan {
    /// The pack's folder.
    pub pack: PathBuf,
    /// Tasks.
    pub tasks: Vec<Given>,
    /// Who attempts.
    pub agent: Installed,
    /// The arms, of different names: each attempts each task.
    pub arms: Vec<AttemptArm>,
    /// The models' endpoint.
    pub endpoint: Option<Endpoint>,
    /// What `{command}` of the agent's file stands for.
    pub command: Option<String>,
    /// What models cost; the first table that knows one counts.
    pub prices: Vec<PriceTable>,
    /// Attempts a task and arm.
    pub attempts: u32,
    /// Attempts on record that ended so are made again.
    pub retry: Vec<Ending>,
    /// How often at most one is made in this run whose model could not be reached; 1 or more.
    pub tries: u32,
    /// How long each may take, from the agent's start.
    pub timeout: Duration,
    /// Input and output tokens of each.
    pub token_budget: Option<u64>,
    /// Bytes that each may put on the disk.
    pub disk_bytes: u64,
    /// This program, which relays inside the sandbox.
    pub program: PathBuf,
}

impl AttemptPlan {
    /// All that decides attempts but their tasks and numbers: an unfinished run of the same digest is resumed.
    pub fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::new("infradev attempt plan v3");
        for arm in &self.arms {
            digest.part("arm", arm.digest(self).as_str().as_bytes());
        }
        digest.finish()
    }

    /// What an attempt of an arm cost.
    pub(crate) fn cost(&self, arm: &AttemptArm, metered: &Metered) -> Option<Cost> {
        let model = arm.model.as_deref()?;
        let host = self.endpoint.as_ref().and_then(Endpoint::host);
        let price = |model: &str| self.prices.iter().find_map(|table| table.price(model, host));
        let own = price(model)?;
        let mut cost = own.cost(metered);
        // A helper has its own price; whatever else was asked is the arm's model, as its provider or its program names it.
        let helpers = self.agent.spec.model.iter().flat_map(|model| &model.helpers);
        let helpers: Vec<&String> = helpers.filter(|helper| *helper != model).collect();
        for asked in metered.models.iter().filter(|asked| helpers.contains(&&asked.model)) {
            cost.usd += price(&asked.model)?.usd(&asked.tokens) - own.usd(&asked.tokens);
        }
        Some(cost)
    }

    /// The name under which an attempt is graded.
    pub(crate) fn submission(&self, arm: &AttemptArm, number: u32) -> String {
        submission_name(&arm.name(&self.agent.spec.name), number, self.attempts)
    }
}

/// What an arm's prompt says beside the task.
pub(crate) fn settings(plan: &AttemptPlan, arm: &AttemptArm) -> PromptSettings {
    let minutes = u32::try_from(plan.timeout.as_secs() / 60).ok().filter(|minutes| *minutes > 0);
    PromptSettings { arm: arm.prompt, minutes }
}

/// Digest of a prompt as the agent is given it, its skill's text included.
pub(crate) fn shown_prompt(plan: &AttemptPlan, arm: &AttemptArm, text: &str) -> Digest {
    Digest::of(whole_prompt(text, arm.skill.as_ref(), &plan.agent.spec).as_bytes())
}

/// Why an agent cannot be started with a prompt, its skill's text included; none where it can.
pub(crate) fn too_long(plan: &AttemptPlan, arm: &AttemptArm, text: &str) -> Option<String> {
    let whole = whole_prompt(text, arm.skill.as_ref(), &plan.agent.spec);
    let error = check_prompt(&plan.agent.spec, &whole).err()?;
    let hint = error.hint().map_or_else(String::new, |hint| format!(": {hint}"));
    Some(format!("{error}{hint}"))
}

/// One task made ready for attempts.
pub(crate) struct Desk {
    pub spec: TaskSpec,
    ready: ReadyBase,
    prompts: Vec<(Arm, String)>,
}

/// One attempt to be made.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub plan: &'a AttemptPlan,
    pub desk: &'a Desk,
    pub arm: &'a AttemptArm,
    pub prompt: &'a str,
    pub number: u32,
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

/// Makes every attempt of the plan that the run has not on record, as many at once as the executor has slots. One whose model could
/// not be reached is made again, as often as the plan allows; what still was not reached then is among the records, and the next
/// command makes it again.
///
/// # Errors
/// The machine, the pack, or the person's wish to stop: at once. That one could not be captured: once the others are made.
pub async fn run(
    executor: &Executor,
    run: &RunFolder,
    plan: &AttemptPlan,
) -> Result<Vec<SubmissionRecord>, AttemptError> {
    let mut desks = Vec::new();
    for given in &plan.tasks {
        let mut prompts: Vec<(Arm, String)> = Vec::new();
        for arm in &plan.arms {
            if prompts.iter().all(|(known, _)| *known != arm.prompt) {
                prompts.push((arm.prompt, Prompt::render(&given.task, settings(plan, arm))?.text));
            }
        }
        let ready = executor.base(&given.task, &plan.pack, given.lock.as_deref())?;
        desks.push(Desk { spec: given.task.spec.clone(), ready, prompts });
    }
    let mut turns = Vec::new();
    for desk in &desks {
        for arm in &plan.arms {
            let prompt = desk.prompts.iter().find(|(known, _)| *known == arm.prompt);
            let prompt = prompt.map(|(_, text)| text.as_str()).unwrap_or_default();
            turns.extend((1..=plan.attempts).map(|number| Turn { plan, desk, arm, prompt, number }));
        }
    }
    all(turns.into_iter().map(|turn| attempt(executor, run, turn))).await
}

async fn attempt(
    executor: &Executor,
    run: &RunFolder,
    turn: Turn<'_>,
) -> Result<SubmissionRecord, AttemptError> {
    let Turn { plan, desk, arm, number, .. } = turn;
    let key = key(&turn);
    let label = format!("{} · {}", desk.spec.id, plan.submission(arm, number));
    let ended = |record: &SubmissionRecord, cached: bool| {
        let (label, wall_s) = (label.clone(), record.wall_s);
        executor.tell(Happening::TrialEnded { label, wall_s, cached, summary: summary(record) });
    };
    let before = run.finished::<SubmissionRecord>(&key)?;
    let earlier = before.as_ref().map_or(0, |record| record.tries);
    if let Some(record) = before.filter(|record| stands(record.ending, &plan.retry)) {
        ended(&record, true);
        return Ok(record);
    }
    let mut tried = 1;
    loop {
        let this = Try { executor, run, turn, key: &key, label: &label, number: earlier + tried };
        let (record, again) = this.once().await?;
        let unreached = record.ending == Ending::EndpointUnreachable && tried < plan.tries;
        let Some(wait) = again.wait().filter(|_| unreached) else {
            ended(&record, false);
            return Ok(record);
        };
        executor.tell(Happening::Retried { label: label.clone(), evidence: shown_fault(&record) });
        // Nobody is kept from working meanwhile: the slot is given back.
        if let Some(endpoint) = &plan.endpoint {
            until_reachable(endpoint, wait).await?;
        }
        tried += 1;
    }
}

/// One try at an attempt.
struct Try<'a> {
    executor: &'a Executor,
    run: &'a RunFolder,
    turn: Turn<'a>,
    key: &'a Digest,
    label: &'a str,
    /// From 1, over all commands.
    number: u32,
}

impl Try<'_> {
    /// Makes it, in a slot and a workspace of its own. Besides: whether another may fare better.
    async fn once(&self) -> Result<(SubmissionRecord, Again), AttemptError> {
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
        record.wall_s = wall_s;
        record.folder = format!("trials/{}", self.key);
        Ok(record)
    }
}

/// Work that blocks, beside whatever else this process follows.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, AttemptError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| AttemptError::Cancelled)
}

fn key(turn: &Turn<'_>) -> Digest {
    let Turn { plan, desk, arm, prompt, number } = turn;
    let mut digest = DigestBuilder::new("infradev attempt of a task v1");
    digest.part("arm", arm.digest(plan).as_str().as_bytes());
    digest.part("task", desk.spec.id.as_bytes());
    digest.part("tree", desk.ready.tree.digest.as_str().as_bytes());
    digest.part("environment", desk.ready.environment.key.as_str().as_bytes());
    digest.part("prompt", prompt.as_bytes());
    digest.part("number", &number.to_le_bytes());
    digest.finish()
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
