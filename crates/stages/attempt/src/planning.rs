//! What a run would be, before anything is spent.

use infradev_model::{
    ATTEMPT_PLAN_SCHEMA, AttemptPlanDocument, Foreseen, PlannedAttempts, Price, Prompt, SubmissionRecord,
};
use infradev_store::{RunView, Runs, StoreError};

use crate::arms::{AttemptArm, stands};
use crate::attempting::{AttemptPlan, Given, settings, shown_prompt, too_long};
use crate::error::AttemptError;

/// The verb of runs that hold attempts.
pub const VERB: &str = "attempt";

/// Says what of the plan is left and what it may use. `before` is the run that would be gone on with; what is likely comes from
/// all attempts that `runs` hold.
///
/// # Errors
/// A prompt that cannot be rendered, a store that cannot be read.
pub fn planned(
    plan: &AttemptPlan,
    before: Option<&RunView>,
    runs: &Runs,
) -> Result<AttemptPlanDocument, AttemptError> {
    let done: Vec<SubmissionRecord> = before.map(RunView::records).unwrap_or_default();
    let earlier = earlier(runs)?;
    let mut document = AttemptPlanDocument {
        schema: ATTEMPT_PLAN_SCHEMA,
        run: before.map(|view| view.run.id.clone()),
        planned: Vec::new(),
        attempts: 0,
        foreseen: Foreseen { tokens_at_most: Some(0), tokens_likely: Some(0), ..Foreseen::default() },
    };
    for given in &plan.tasks {
        for arm in &plan.arms {
            let row = row(plan, given, arm, &done, &earlier)?;
            let sum = &mut document.foreseen;
            document.attempts = document.attempts.saturating_add(row.attempts - row.done);
            sum.hours += row.foreseen.hours;
            sum.gpu_hours += row.foreseen.gpu_hours;
            let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
            sum.tokens_at_most = add(sum.tokens_at_most, row.foreseen.tokens_at_most);
            sum.tokens_likely = add(sum.tokens_likely, row.foreseen.tokens_likely);
            document.planned.push(row);
        }
    }
    Ok(document)
}

fn row(
    plan: &AttemptPlan,
    given: &Given,
    arm: &AttemptArm,
    done: &[SubmissionRecord],
    earlier: &[SubmissionRecord],
) -> Result<PlannedAttempts, AttemptError> {
    let spec = &given.task.spec;
    let text = Prompt::render(&given.task, settings(plan, arm))?.text;
    let refused = too_long(plan, arm, &text);
    let prompt = shown_prompt(plan, arm, &text);
    let name = arm.name(&plan.agent.spec.name);
    let is_done = |number: u32| {
        let name = plan.submission(arm, number);
        let of = |record: &&SubmissionRecord| record.task == spec.id && record.submission == name;
        let found = done.iter().filter(of).find(|record| record.prompt == prompt);
        found.is_some_and(|record| stands(record.ending, &plan.retry))
    };
    let made = (1..=plan.attempts).filter(|number| is_done(*number)).count();
    let made = u32::try_from(made).unwrap_or(plan.attempts);
    let times = if refused.is_some() { 0 } else { plan.attempts - made };
    let (median, counted) = likely(plan, arm, &spec.id, earlier);
    let hours = plan.timeout.as_secs_f64() / 3600.0 * f64::from(times);
    let times = u64::from(times);
    // An agent without a model uses none.
    let none = plan.agent.spec.model.is_none().then_some(0);
    Ok(PlannedAttempts {
        task: spec.id.clone(),
        submission: name,
        model: arm.model.clone(),
        arm: arm.prompt,
        skill: arm.skill.as_ref().map(|skill| skill.text.name.clone()),
        attempts: plan.attempts,
        done: made,
        earlier: counted,
        refused,
        prices: plan.price(arm.model.as_deref()).map(Price::origin),
        foreseen: Foreseen {
            hours,
            gpu_hours: hours * f64::from(spec.gpus),
            tokens_at_most: none.or(plan.token_budget.map(|budget| budget.saturating_mul(times))),
            tokens_likely: none.or(median.map(|median| median.saturating_mul(times))),
        },
    })
}

/// The median of what earlier attempts of the agent and the model used on this task, else on any; and of how many.
fn likely(
    plan: &AttemptPlan,
    arm: &AttemptArm,
    task: &str,
    earlier: &[SubmissionRecord],
) -> (Option<u64>, u32) {
    let alike = |record: &&SubmissionRecord| {
        record.agent.name == plan.agent.spec.name && record.model == arm.model && stands(record.ending, &[])
    };
    let alike: Vec<&SubmissionRecord> = earlier.iter().filter(alike).collect();
    let here: Vec<&SubmissionRecord> = alike.iter().filter(|record| record.task == task).copied().collect();
    let chosen = if here.is_empty() { alike } else { here };
    let used = chosen.iter().map(|record| record.metered.tokens.all());
    let mut used: Vec<u64> = used.collect();
    used.sort_unstable();
    (used.get(used.len() / 2).copied(), u32::try_from(used.len()).unwrap_or(u32::MAX))
}

/// Records of all attempts in the store. A run that cannot be read tells nothing.
fn earlier(runs: &Runs) -> Result<Vec<SubmissionRecord>, StoreError> {
    let mut found = Vec::new();
    for id in runs.list()? {
        match runs.view(&id) {
            Ok(view) if view.run.verb == VERB => found.extend(view.records::<SubmissionRecord>()),
            _ => {}
        }
    }
    Ok(found)
}
