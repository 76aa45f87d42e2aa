//! Making the attempts of a plan.

use std::path::PathBuf;
use std::time::Duration;

use infradev_agent::{Endpoint, Installed, check_prompt, until_reachable, whole_prompt};
use infradev_executor::{Executor, Happening, ReadyBase};
use infradev_model::{
    Arm, Classified, Cost, Digest, DigestBuilder, Ending, Metered, Price, PriceTable, Prompt, PromptSettings,
    PublicTask, SubmissionRecord, TaskSpec,
};
use infradev_store::RunFolder;

use crate::apart::all;
use crate::arms::{AttemptArm, stands};
use crate::error::AttemptError;
use crate::predictions::submission_name;
use crate::recording::{shown_fault, summary};
use crate::trying::Try;

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

    /// What the endpoint asks for a model, where that is known.
    pub(crate) fn price(&self, model: Option<&str>) -> Option<&Price> {
        let host = self.endpoint.as_ref().and_then(Endpoint::host);
        self.prices.iter().find_map(|table| table.price(model?, host))
    }

    /// What an attempt of an arm cost.
    pub(crate) fn cost(&self, arm: &AttemptArm, metered: &Metered) -> Option<Cost> {
        let model = arm.model.as_deref()?;
        let own = self.price(Some(model))?;
        let mut cost = own.cost(metered);
        // A helper has its own price; whatever else was asked is the arm's model, as its provider or its program names it.
        let helpers = self.agent.spec.model.iter().flat_map(|model| &model.helpers);
        let helpers: Vec<&String> = helpers.filter(|helper| *helper != model).collect();
        for asked in metered.models.iter().filter(|asked| helpers.contains(&&asked.model)) {
            cost.usd += self.price(Some(&asked.model))?.usd(&asked.tokens) - own.usd(&asked.tokens);
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
    pub ready: ReadyBase,
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
    let mut used = before.as_ref().map(|record| record.used().clone());
    if let Some(record) = before.filter(|record| stands(record.ending, &plan.retry)) {
        ended(&record, true);
        return Ok(record);
    }
    let mut tried = 1;
    loop {
        let (number, used_before) = (earlier + tried, used.as_ref());
        let this = Try { executor, run, turn, key: &key, label: &label, number, used: used_before };
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
        used = Some(record.used().clone());
        tried += 1;
    }
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
