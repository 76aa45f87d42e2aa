//! From what was typed to the plan of a run of attempts: arms, tasks, limits.

use std::path::Path;
use std::time::Duration;

use infradev_agent::{Endpoint, Installed, Skill};
use infradev_attempt::{AttemptArm, AttemptPlan, Given, VERB};
use infradev_model::{Arm, AttemptPlanDocument, DigestBuilder, Ending, PriceTable, SHIPPED_PRICES};
use infradev_store::{Plan, PublicPack, load_public_pack};

use crate::cli::{ArmArgs, AttemptArgs};
use crate::report::Failure;
use crate::session::{self, Session};

/// What is asked for, with an agent that is ready to be started.
pub fn asked(session: &Session, args: &AttemptArgs) -> Result<(AttemptPlan, Plan), Failure> {
    read(session, args, true)
}

/// Says what would be run; nothing is installed or spent.
pub fn planned(session: &Session, args: &AttemptArgs) -> Result<AttemptPlanDocument, Failure> {
    let (plan, run) = read(session, args, false)?;
    let runs = session.runs();
    let before = match plan.retry.is_empty() {
        true => runs.unfinished(&run.digest)?,
        false => Some(runs.newest(&run.digest)?.ok_or_else(nothing_to_retry)?),
    };
    Ok(infradev_attempt::planned(&plan, before.as_ref(), &runs)?)
}

/// Refuses to make attempts again that were never made.
pub fn nothing_to_retry() -> Failure {
    let what = "there is no run of these arms, tasks and limits to make attempts of again";
    Failure::usage(what).hint("leave --retry out, or give the options of the run that is meant")
}

fn read(session: &Session, args: &AttemptArgs, ready: bool) -> Result<(AttemptPlan, Plan), Failure> {
    let arms = arms(&args.arms)?;
    let mut pack = load_public_pack(&args.path)?;
    select(&mut pack, &args.tasks)?;
    if arms.iter().any(|arm| arm.prompt == Arm::PrDescription) {
        for task in &mut pack.tasks {
            session.describe(task)?;
        }
    }
    let models = &args.arms.models;
    let (agent, endpoint) = match ready {
        true => session.agent(&args.agent, &args.asked, models)?,
        false => session.planned_agent(&args.agent, &args.asked, models)?,
    };
    let plan = plan(args, &pack, arms, agent, endpoint)?;
    let run = run_plan(&pack, &plan);
    Ok((plan, run))
}

/// Each model with each prompt and each skill.
fn arms(args: &ArmArgs) -> Result<Vec<AttemptArm>, Failure> {
    let mut models: Vec<Option<String>> = args.models.iter().cloned().map(Some).collect();
    let mut prompts: Vec<Arm> = args.prompts.iter().map(|word| Arm::from(*word)).collect();
    let mut skills = Vec::new();
    for folder in &args.skills {
        let none = folder == Path::new("none");
        skills.push(if none { None } else { Some(Skill::read(folder)?) });
    }
    if models.is_empty() {
        models.push(None);
    }
    if prompts.is_empty() {
        prompts.push(Arm::default());
    }
    if skills.is_empty() {
        skills.push(None);
    }
    let mut arms: Vec<AttemptArm> = Vec::new();
    for model in &models {
        for prompt in &prompts {
            for skill in &skills {
                let arm = AttemptArm { model: model.clone(), prompt: *prompt, skill: skill.clone() };
                let name = arm.name("agent");
                if arms.iter().any(|known| known.name("agent") == name) {
                    let message = format!("two arms are called {}", name.replacen("agent", "AGENT", 1));
                    let hint = "each --model, --prompt and --skill is given once; skills are told apart by their names";
                    return Err(Failure::usage(message).hint(hint));
                }
                arms.push(arm);
            }
        }
    }
    Ok(arms)
}

/// A table of one's own, and the shipped one.
fn prices(own: Option<&Path>) -> Result<Vec<PriceTable>, Failure> {
    let mut tables = Vec::new();
    if let Some(file) = own {
        let bytes = std::fs::read(file)
            .map_err(|error| Failure::bad_input(format!("cannot read {}: {error}", file.display())))?;
        tables.push(PriceTable::parse(&file.display().to_string(), &bytes)?);
    }
    tables.push(PriceTable::parse(SHIPPED_PRICES.0, SHIPPED_PRICES.1)?);
    Ok(tables)
}

fn plan(
    args: &AttemptArgs,
    pack: &PublicPack,
    arms: Vec<AttemptArm>,
    agent: Installed,
    endpoint: Option<Endpoint>,
) -> Result<AttemptPlan, Failure> {
    let mut tasks = Vec::new();
    for task in &pack.tasks {
        tasks.push(Given { task: task.clone(), lock: pack.lock_of(task)? });
    }
    Ok(AttemptPlan {
        pack: pack.root.clone(),
        tasks,
        agent,
        arms,
        endpoint,
        command: args.asked.command.clone(),
        prices: prices(args.prices.as_deref())?,
        attempts: args.attempts,
        retry: args.retry.iter().map(|word| Ending::from(*word)).collect(),
        tries: args.tries,
        timeout: Duration::from_secs(args.timeout),
        token_budget: args.token_budget,
        disk_bytes: args.disk,
        program: session::own_program()?,
    })
}

/// An unfinished run of the same plan is resumed; each attempt in it is told apart by its own key, which knows the task's content.
fn run_plan(pack: &PublicPack, plan: &AttemptPlan) -> Plan {
    let mut digest = DigestBuilder::new("infradev attempt run v1");
    digest.part("pack", pack.pack.name.as_bytes()).part("plan", plan.digest().as_str().as_bytes());
    digest.part("attempts", &plan.attempts.to_le_bytes());
    for task in &pack.tasks {
        digest.part("task", task.spec.id.as_bytes());
    }
    let command = std::env::args().collect();
    Plan { verb: VERB.into(), pack: pack.pack.name.clone(), command, digest: digest.finish() }
}

fn select(pack: &mut PublicPack, wanted: &[String]) -> Result<(), Failure> {
    let known: Vec<String> = pack.tasks.iter().map(|task| task.spec.id.clone()).collect();
    session::check_ids(&pack.pack.name, wanted, &known)?;
    if !wanted.is_empty() {
        pack.tasks.retain(|task| wanted.contains(&task.spec.id));
    }
    Ok(())
}
