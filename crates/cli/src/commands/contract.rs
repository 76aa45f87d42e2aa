//! `infradev contract draft` and `infradev contract lint`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use infradev_executor::{Commits, ContractReading, base_tree};
use infradev_model::{ContractRule, SealedTask};
use infradev_store::{Home, Scratch, Tree, load_pack};

use crate::cli::{DraftContractArgs, Global, LintContractArgs};
use crate::files::write_whole;
use crate::progress::{Shown, counted};
use crate::report::{self, Failure, visible};
use crate::session;

/// A task with its base tree.
struct Opened {
    task: Arc<SealedTask>,
    tree: Tree,
    _scratch: Option<Scratch>,
}

fn open(global: &Global, folder: &Path) -> Result<Opened, Failure> {
    let home: Home = session::home(global)?;
    let scratch = session::room(&home)?;
    let progress = Shown::new(global.quiet);
    let history = Commits { home: &home, progress: &progress };
    let task =
        session::one(folder, session::tasks(load_pack(folder, &history)?), |task| task.id().to_owned())?;
    let tree = base_tree(&home, &task.public.base, &progress)?;
    progress.clear();
    Ok(Opened { task, tree, _scratch: scratch })
}

/// Drafts a contract.
pub fn draft(global: &Global, args: DraftContractArgs) -> Result<ExitCode, Failure> {
    let opened = open(global, &args.task)?;
    let reading = ContractReading::of(&opened.task, &opened.tree.path)?;
    let unread = reading.unread_tests();
    for finding in &unread {
        report::warn(finding);
    }
    let text = infradev_synthesize::contract::draft(&reading.draft(), &unread);
    if !args.write {
        report::print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = opened.task.folder.join("contract.toml");
    let listed = opened.task.public.contract.names.len();
    if listed > 0 {
        let message = format!("{} lists {} already", path.display(), counted(listed as u32, "name"));
        return Err(
            Failure::usage(message).hint("print the draft without --write, and take from it what is missing")
        );
    }
    write_whole(&path, text.as_bytes())?;
    report::print(format!("{}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Looks for what is wrong.
pub fn lint(global: &Global, args: LintContractArgs) -> Result<ExitCode, Failure> {
    let opened = open(global, &args.task)?;
    let document = ContractReading::of(&opened.task, &opened.tree.path)?.document();
    let code = if document.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    if args.json {
        report::print_json(&document)?;
        return Ok(code);
    }
    let found = || document.findings.iter().filter(|finding| finding.rule == ContractRule::Unread);
    for why in &document.unread {
        if !found().any(|finding| why.starts_with(&format!("{}:", finding.file))) {
            report::warn(why);
        }
    }
    let mut text = String::new();
    for finding in &document.findings {
        text += &format!("{}\n", visible(&finding.to_string()));
        if let Some(hint) = &finding.hint {
            text += &format!("  hint: {}\n", visible(hint));
        }
    }
    for allowed in &document.allowed {
        text += &format!("{}\n", visible(&allowed.to_string()));
    }
    let touched = counted(document.touched.len() as u32, "name");
    let found = counted(document.findings.len() as u32, "finding");
    text += &format!("{}: {touched} of golden's touched, {found}\n", document.task);
    report::print(text)?;
    Ok(code)
}
