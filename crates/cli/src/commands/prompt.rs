//! `infradev prompt`.

use std::process::ExitCode;

use infradev_model::{Arm, BaseSource, Prompt, PromptSettings, PublicTask};
use infradev_store::load_public;

use crate::cli::{Global, PromptArgs};
use crate::progress::Shown;
use crate::report::{self, Failure};
use crate::session;

/// Renders a task's prompt.
pub fn run(global: &Global, args: PromptArgs) -> Result<ExitCode, Failure> {
    let mut task = session::one(&args.task, load_public(&args.task)?, |task| task.spec.id.clone())?;
    let settings = PromptSettings { arm: args.arm.into(), minutes: args.minutes };
    if settings.arm == Arm::PrDescription && task.pull_request.is_none() {
        task.pull_request = message(global, &task)?;
    }
    let prompt = Prompt::render(&task, settings)?;
    if args.json {
        report::print_json(&prompt)?;
    } else {
        report::print(&prompt.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The message of the change's commit, where the task names commits: a squash commit's is its pull request's description.
fn message(global: &Global, task: &PublicTask) -> Result<Option<String>, Failure> {
    let BaseSource::Commit { repository, head, .. } = &task.base else { return Ok(None) };
    let home = session::home(global)?;
    let _scratch = session::room(&home)?;
    let progress = Shown::new(global.quiet);
    let (repo, head) = infradev_executor::resolve(&home, repository, head, &progress)?;
    let info = repo.info(&head)?;
    Ok(Some(crate::draft::description(&info)))
}
