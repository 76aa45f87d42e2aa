//! `infradev prompt`.

use std::process::ExitCode;

use infradev_executor::Progress;
use infradev_model::{Arm, BaseSource, Prompt, PromptSettings, PublicTask};
use infradev_store::{Home, load_public};

use crate::cli::{Global, PromptArgs};
use crate::progress::Shown;
use crate::report::{self, Failure};
use crate::session;

/// Renders a task's prompt.
pub fn run(global: &Global, args: PromptArgs) -> Result<ExitCode, Failure> {
    let mut task = session::one(&args.task, load_public(&args.task)?, |task| task.spec.id.clone())?;
    let settings = PromptSettings { arm: args.arm.into(), minutes: args.minutes };
    if settings.arm == Arm::PrDescription {
        let home = session::home(global)?;
        let _scratch = session::room(&home)?;
        describe(&home, &Shown::new(global.quiet), &mut task)?;
    }
    let prompt = Prompt::render(&task, settings)?;
    if args.json {
        report::print_json(&prompt)?;
    } else {
        report::print(&prompt.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives a task that has no description of its pull request the message of the change's commit, where it names commits: a squash
/// commit's is the description.
pub fn describe(home: &Home, progress: &dyn Progress, task: &mut PublicTask) -> Result<(), Failure> {
    let BaseSource::Commit { repository, head, .. } = &task.base else { return Ok(()) };
    if task.pull_request.is_none() {
        let (repo, head) = infradev_executor::resolve(home, repository, head, progress)?;
        task.pull_request = Some(crate::draft::description(&repo.info(&head)?, None));
    }
    Ok(())
}
