//! `infradev`: reads the command line, runs a stage, shows what came of it. The only crate that prints.

mod cli;
mod cli_agents;
mod cli_curate;
mod cli_env;
mod cli_gaps;
mod cli_report;
mod commands;
mod draft;
mod files;
mod gap_forms;
mod progress;
mod report;
mod session;
mod tables;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::{Cli, Command, ContractCommand, ProbeCommand, RunCommand};
use crate::report::Failure;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == infradev_agent::RELAY) {
        return commands::attempt::relay();
    }
    let Cli { global, command } = Cli::parse();
    if let Err(error) = watch_signals() {
        return report::fail(Failure::fault(format!("cannot watch for signals: {error}")), false);
    }
    // One thread: a trial's processes are waited for, nothing here computes.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report::fail(Failure::fault(format!("cannot start: {error}")), false),
    };
    let resumable = matches!(
        command,
        Command::Accept(_)
            | Command::Grade(_)
            | Command::Attempt(_)
            | Command::Eval(_)
            | Command::Synthesize(_)
            | Command::ProbeGaps(_)
            | Command::Label(_)
    );
    let outcome = runtime.block_on(async {
        match command {
            Command::Accept(args) => commands::accept::run(&global, args).await,
            Command::Grade(args) => commands::grade::run(&global, args).await,
            Command::Synthesize(args) => commands::synthesize::run(&global, args).await,
            Command::ProbeGaps(args) => commands::probe_gaps::run(&global, args).await,
            Command::Attempt(args) => commands::attempt::run(&global, args).await,
            Command::Eval(args) => commands::eval::run(&global, args).await,
            Command::Report(args) => commands::report::run(&global, args),
            Command::Serve(args) => commands::serve::run(&global, args).await,
            Command::Label(args) => commands::label::run(&global, args).await,
            Command::Probe(ProbeCommand::Try(args)) => commands::probe::run(&global, args).await,
            Command::Probe(ProbeCommand::List(args)) => commands::probe::list(&global, args).await,
            Command::Curate(args) => commands::curate::run(&global, args),
            Command::New(args) => commands::new::run(&global, args).await,
            Command::Canary(args) => commands::canary::run(args),
            Command::Contract(ContractCommand::Draft(args)) => commands::contract::draft(&global, args),
            Command::Contract(ContractCommand::Lint(args)) => commands::contract::lint(&global, args),
            Command::Prompt(args) => commands::prompt::run(&global, args),
            Command::Run(RunCommand::List(args)) => commands::run::list(&global, args),
            Command::Run(RunCommand::Show(args)) => commands::run::show(&global, args),
            Command::Env(command) => commands::env::run(&global, command),
            Command::Doctor(args) => commands::doctor::run(&global, args).await,
            Command::Schema(args) => commands::schema::run(args),
        }
    });
    match outcome {
        Ok(code) => code,
        Err(failure) => report::fail(failure, resumable),
    }
}

/// The first SIGINT or SIGTERM asks everything under way to end, the second ends this process at once; its children die with
/// it. On a thread of its own, because the main one may be waiting for git or uv.
fn watch_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async move {
            either(&mut interrupt, &mut terminate).await;
            infradev_supervise::cancel();
            either(&mut interrupt, &mut terminate).await;
            std::process::exit(i32::from(infradev_model::Class::Interrupted.exit_code()));
        });
    })?;
    Ok(())
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
