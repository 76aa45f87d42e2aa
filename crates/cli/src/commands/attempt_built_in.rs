//! Attempts that need no model: the tasks' own patches as submissions. They are read from the sealed tasks, so they are made here and
//! not by the stage, which is given nothing of those.

use infradev_attempt::{folder_name, submission_name};
use infradev_executor::ReadyTask;
use infradev_model::{
    AgentUsed, Arm, Digest, Ending, Metered, Prompt, PromptSettings, SUBMISSION_SCHEMA, SandboxReport,
    SealedTask, SubmissionRecord,
};
use infradev_store::RunFolder;
use infradev_synthesize::funnel;
use std::sync::Arc;

use crate::cli::AttemptArgs;
use crate::report::Failure;
use crate::session::{self, Session};

/// An agent that is a patch of the task's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuiltIn {
    /// Golden.
    Golden,
    /// Nothing.
    Nop,
    /// Golden's interfaces, each function of which raises.
    Hollow,
    /// An adversarial patch, or a mutant of golden, by its name.
    Mutant(String),
}

impl BuiltIn {
    /// By the agent's name.
    pub fn of(agent: &str) -> Option<BuiltIn> {
        match agent {
            "golden" => Some(BuiltIn::Golden),
            "nop" => Some(BuiltIn::Nop),
            "hollow" => Some(BuiltIn::Hollow),
            _ => agent.strip_prefix("mutant:").map(|name| BuiltIn::Mutant(name.to_owned())),
        }
    }

    fn patch(&self, ready: &ReadyTask) -> Result<Vec<u8>, Failure> {
        let id = ready.task.id();
        match self {
            BuiltIn::Golden => Ok(ready.task.golden.clone()),
            BuiltIn::Nop => Ok(Vec::new()),
            BuiltIn::Hollow => ready.patch_named("hollow")?.ok_or_else(|| {
                Failure::bad_input(format!("task {id} has no hollow patch: golden adds no function"))
            }),
            BuiltIn::Mutant(name) => {
                let known: Vec<String> =
                    ready.task.adversarial.iter().map(|found| found.name.clone()).collect();
                let patch = match known.contains(name) {
                    true => ready.patch_named(name)?,
                    false => funnel::mutant_named(ready, name)?,
                };
                patch.ok_or_else(|| {
                    let message = format!("task {id} has no adversarial patch and golden no mutant `{name}`");
                    let hint = session::nearest(name, &known).map_or_else(
                        || "a mutant is named by its digest in `infradev synthesize --json`; --task names one task".to_owned(),
                        |near| format!("did you mean `mutant:{near}`?"),
                    );
                    Failure::usage(message).hint(hint)
                })
            }
        }
    }
}

/// Makes a submission of each task and attempt.
pub async fn run(
    session: &Session,
    args: &AttemptArgs,
    agent: &BuiltIn,
) -> Result<(RunFolder, Vec<SubmissionRecord>), Failure> {
    refuse(args)?;
    let mut pack = session.load(&args.path)?;
    session::select(&mut pack, &args.tasks)?;
    let executor = session.executor()?;
    let plan = session.plan("attempt", &pack, &[("agent", args.agent.clone().into_bytes())]);
    let mut patches = Vec::new();
    for task in session::tasks(pack) {
        let ready = executor.ready(Arc::clone(&task)).await?;
        patches.push((task, agent.patch(&ready)?));
    }
    let run = session.start(&plan)?;
    let mut records = Vec::new();
    for (task, patch) in patches {
        for attempt in 1..=args.attempts {
            let record = record(&task, args, attempt, &patch)?;
            run.write_file(&format!("{}/patch.diff", record.folder), &patch)?;
            records.push(record);
        }
    }
    Ok((run, records))
}

/// What is given to agents that read nothing.
fn refuse(args: &AttemptArgs) -> Result<(), Failure> {
    let asked = &args.asked;
    let given = [
        ("--model", !args.arms.models.is_empty()),
        ("--prompt", !args.arms.prompts.is_empty()),
        ("--base-url", asked.base_url.is_some()),
        ("--command", asked.command.is_some()),
        ("--folder", asked.folder.is_some()),
        ("--skill", !args.arms.skills.is_empty()),
        ("--plan", args.plan),
        ("--retry", !args.retry.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            let message = format!("agent {} is a patch of the task's own, and {flag} was given", args.agent);
            Err(Failure::usage(message).hint(format!("leave {flag} out")))
        }
        None => Ok(()),
    }
}

fn record(
    task: &SealedTask,
    args: &AttemptArgs,
    attempt: u32,
    patch: &[u8],
) -> Result<SubmissionRecord, Failure> {
    let submission = submission_name(&args.agent, attempt, args.attempts);
    Ok(SubmissionRecord {
        schema: SUBMISSION_SCHEMA,
        task: task.id().to_string(),
        attempt,
        agent: AgentUsed { name: args.agent.clone(), version: env!("CARGO_PKG_VERSION").to_string() },
        model: None,
        endpoint: None,
        arm: Arm::default(),
        prompt: Digest::of(Prompt::render(&task.public, PromptSettings::default())?.text.as_bytes()),
        skill: None,
        tries: 1,
        ending: Ending::Finished,
        detail: None,
        agent_s: 0.0,
        wall_s: 0.0,
        metered: Metered::default(),
        own_tokens: None,
        own_tokens_off: None,
        trajectory: None,
        cost: None,
        all_tries: None,
        lookups: Vec::new(),
        left_running: Some(Vec::new()),
        patch: Digest::of(patch),
        patch_bytes: patch.len() as u64,
        test_edits: Vec::new(),
        skipped: Vec::new(),
        sandbox: SandboxReport::default(),
        folder: format!("trials/{}-{}", task.id(), folder_name(&submission)),
        submission,
    })
}
