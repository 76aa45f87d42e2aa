//! The agent way: rounds of adversary, prober, prompter and acceptance (the paper, appendix A).
//!
//! Each step is a run of a coding agent in a sandbox, in a folder that holds the task's draft, base's and golden's trees
//! and the failure report of the round before. A role writes its own files of the draft and no others. A round ends with
//! an acceptance of the draft. After the round that is accepted the draft is written into the task's folder; after the
//! last one, or when the budget is spent, the folder stays as it was and the record says why. Finished steps are in the
//! run's journal and are not repeated.

mod checking;
mod desk;
mod draft;
mod instructions;
mod looping;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use infradev_agent::{AgentError, Endpoint, Installed};
use infradev_executor::{DeriveError, Executor, ExecutorError, ReadyTask};
use infradev_git::GitError;
use infradev_model::{
    Acceptance, AgentRole, AgentUsed, Class, Classified, Ending, ROUNDS_SCHEMA, Round, RoundsDocument,
    SealedTask, Step,
};
use infradev_store::{RunFolder, StoreError, save_acceptance};

use desk::Desk;
pub use draft::Draft;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct RoundsPlan {
    /// Who writes.
    pub agent: Installed,
    /// Its model.
    pub model: Option<String>,
    /// The model's endpoint.
    pub endpoint: Option<Endpoint>,
    /// What `{command}` of the agent's file stands for.
    pub command: Option<String>,
    /// This program, which relays inside the sandbox.
    pub program: PathBuf,
    /// Rounds at most.
    pub rounds: u32,
    /// How long one step may take.
    pub step: Duration,
    /// How long all steps together may take.
    pub time: Duration,
    /// Input and output tokens of all steps together.
    pub tokens: Option<u64>,
}

/// Why the rounds stopped without an answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum RoundsError {
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error("task {task}: golden.patch and official.patch do not apply to base: {why}")]
    Golden { task: String, why: String },
    #[error("the {role} of round {round} could not work: {why}", role = role.word())]
    Unreachable { role: AgentRole, round: u32, why: String },
    #[error("{what}")]
    Acceptance { what: String, class: Class, hint: Option<String> },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
}

impl RoundsError {
    fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> RoundsError {
        let path = path.into();
        move |source| RoundsError::Io { path, source }
    }
}

impl Classified for RoundsError {
    fn class(&self) -> Class {
        match self {
            RoundsError::Executor(error) => error.class(),
            RoundsError::Agent(error) => error.class(),
            RoundsError::Store(error) => error.class(),
            RoundsError::Git(error) => error.class(),
            RoundsError::Derive(error) => error.class(),
            RoundsError::Golden { .. } => Class::BadInput,
            RoundsError::Unreachable { .. } | RoundsError::Io { .. } => Class::Fault,
            RoundsError::Acceptance { class, .. } => *class,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RoundsError::Executor(error) => error.hint(),
            RoundsError::Agent(error) => error.hint(),
            RoundsError::Store(error) => error.hint(),
            RoundsError::Git(error) => error.hint(),
            RoundsError::Derive(error) => error.hint(),
            RoundsError::Unreachable { .. } => {
                Some("check --base-url and the key; the same command goes on with this step".to_string())
            }
            RoundsError::Acceptance { hint, .. } => hint.clone(),
            RoundsError::Golden { .. } | RoundsError::Io { .. } => None,
        }
    }
}

/// Told as the rounds go on.
#[derive(Debug)]
pub enum Told<'a> {
    /// A step has ended, now or in an earlier process.
    Step {
        /// The round.
        round: u32,
        /// The step.
        step: &'a Step,
    },
    /// A round has ended.
    Round(&'a Round),
}

/// What is left of the budget.
struct Budget {
    time: Duration,
    tokens: Option<u64>,
}

impl Budget {
    fn spend(&mut self, step: &Step) {
        self.time = self.time.saturating_sub(Duration::from_secs_f64(step.agent_s));
        let used = step.metered.charged();
        self.tokens = self.tokens.map(|tokens| tokens.saturating_sub(used));
    }

    fn spent(&self) -> Option<&'static str> {
        match self {
            Budget { time: Duration::ZERO, .. } => Some("the time of all steps is over"),
            Budget { tokens: Some(0), .. } => Some("the tokens of all steps are used up"),
            _ => None,
        }
    }
}

/// Goes through the rounds. `accept` is given the task as it stands after each.
pub async fn run<A>(
    executor: &Executor,
    folder: &RunFolder,
    task: &Arc<SealedTask>,
    plan: &RoundsPlan,
    accept: A,
    told: &(dyn Fn(Told<'_>) + Send + Sync),
) -> Result<RoundsDocument, RoundsError>
where
    A: AsyncFn(Arc<SealedTask>) -> Result<Acceptance, Box<dyn Classified + Send + Sync>>,
{
    let ready = executor.ready(Arc::clone(task)).await?;
    let mut document = RoundsDocument {
        schema: ROUNDS_SCHEMA,
        run: folder.id().to_string(),
        task: task.id().to_string(),
        agent: AgentUsed { name: plan.agent.spec.name.clone(), version: plan.agent.spec.version.clone() },
        model: plan.model.clone(),
        accepted: false,
        reasons: Vec::new(),
        rounds: Vec::new(),
        tokens: 0,
        agent_s: 0.0,
    };
    let mut budget = Budget { time: plan.time, tokens: plan.tokens };
    let mut draft = Draft::of(task)?;
    let mut report = report::first(&draft);
    let mut record = None;
    for number in 1..=plan.rounds {
        let mut round = Round { number, steps: Vec::new(), accepted: false, report: String::new() };
        for role in AgentRole::ALL {
            if let Some(spent) = budget.spent() {
                document.reasons.push(format!("{spent}, before the {} of round {number}", role.word()));
                break;
            }
            let desk = Desk { executor, run: folder, ready: &ready, plan, round: number, role };
            let step = desk.step(&draft, &report, &budget).await?;
            if step.ending == Ending::EndpointUnreachable {
                let why = step.detail.clone().unwrap_or_default();
                return Err(RoundsError::Unreachable { role, round: number, why });
            }
            budget.spend(&step);
            draft.take(&step);
            told(Told::Step { round: number, step: &step });
            round.steps.push(step);
        }
        // The first step may be all that the budget gave: what it wrote is judged all the same.
        if !round.steps.is_empty() {
            let said = judged(folder, &ready, &draft, number, &accept).await?;
            round.accepted = said.as_ref().is_ok_and(|record| record.accepted);
            report = report::after(&round, said.as_ref());
            record = said.ok();
            round.report.clone_from(&report);
            told(Told::Round(&round));
            document.rounds.push(round);
        }
        if document.rounds.last().is_some_and(|round| round.accepted) || !document.reasons.is_empty() {
            break;
        }
    }
    document.accepted = document.rounds.last().is_some_and(|round| round.accepted);
    let steps = || document.rounds.iter().flat_map(|round| &round.steps);
    document.tokens = steps().map(|step| step.metered.tokens.all()).fold(0, u64::saturating_add);
    document.agent_s = steps().map(|step| step.agent_s).sum();
    if document.accepted {
        document.reasons.clear();
        draft.write_into(&task.folder)?;
        if let Some(record) = &record {
            save_acceptance(task, record)?;
        }
    } else {
        document.reasons.insert(0, format!("not accepted after {}", counted(document.rounds.len())));
    }
    Ok(document)
}

fn counted(rounds: usize) -> String {
    if rounds == 1 { "1 round".to_string() } else { format!("{rounds} rounds") }
}

/// Accepts a draft; what the draft itself makes impossible is a failure to report, not the end.
async fn judged<A>(
    folder: &RunFolder,
    ready: &ReadyTask,
    draft: &Draft,
    round: u32,
    accept: &A,
) -> Result<Result<Acceptance, String>, RoundsError>
where
    A: AsyncFn(Arc<SealedTask>) -> Result<Acceptance, Box<dyn Classified + Send + Sync>>,
{
    let place =
        folder.path().join("drafts").join(format!("round-{round}")).join("tasks").join(ready.task.id());
    let drafted = match draft.task(&ready.task, &place) {
        Ok(drafted) => drafted,
        Err(RoundsError::Store(error)) if error.class() == Class::BadInput => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error),
    };
    if drafted.probes.is_empty() {
        return Ok(Err("the task has no probes yet".to_string()));
    }
    match accept(Arc::new(drafted)).await {
        Ok(record) => Ok(Ok(record)),
        Err(error) if error.class() == Class::BadInput => Ok(Err(error.to_string())),
        Err(error) => {
            let (class, hint) = (error.class(), error.hint());
            Err(RoundsError::Acceptance { what: error.to_string(), class, hint })
        }
    }
}
