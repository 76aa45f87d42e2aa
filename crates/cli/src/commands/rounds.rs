//! `infradev synthesize --agent`: an agent writes what a task needs, in rounds that acceptance ends.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use infradev_accept::AcceptPlan;
use infradev_model::{Acceptance, Classified, RoundsDocument, SealedTask};
use infradev_synthesize::rounds::{self, RoundsPlan, Told};

use crate::cli::{Global, SynthesizeArgs};
use crate::progress::counted;
use crate::report::{self, Failure, visible};
use crate::session::{self, Session};
use crate::tables::{Cell, Table};

type Refused = Box<dyn Classified + Send + Sync>;

/// Goes through the rounds of one task. Exits 1 where the last one is not accepted.
pub async fn run(
    global: &Global,
    args: &SynthesizeArgs,
    path: &Path,
    agent: &str,
) -> Result<ExitCode, Failure> {
    let session = Session::new(global, args.sandbox.into(), super::synthesize::jobs(args.jobs))?;
    let pack = session.load(path)?;
    if pack.tasks.len() != 1 {
        let ids: Vec<&str> = pack.tasks.iter().map(|task| task.task.id()).collect();
        let what =
            format!("an agent writes for one task at a time, and {} holds {}", path.display(), ids.len());
        return Err(Failure::usage(what).hint(format!("give the folder of one: {}", ids.join(", "))));
    }
    let asked = &args.asked;
    let (agent, endpoint) = session.agent(agent, asked, args.model.as_slice())?;
    let limits = &args.limits;
    let plan = RoundsPlan {
        agent,
        model: args.model.clone(),
        endpoint,
        command: asked.command.clone(),
        program: session::own_program()?,
        rounds: limits.rounds,
        step: Duration::from_secs(limits.step_timeout),
        time: Duration::from_secs(limits.minutes * 60),
        tokens: limits.token_budget,
    };
    let more = [
        ("agent", serde_json::to_vec(&plan.agent.spec).unwrap_or_default()),
        ("asked", format!("{:?} {:?} {}", plan.model, plan.command, plan.rounds).into_bytes()),
        ("content", format!("{:?}", plan.agent.content).into_bytes()),
        ("rewrites", args.rewrites.to_string().into_bytes()),
    ];
    let run_plan = session.plan("synthesize", &pack, &more);
    let executor = session.executor()?;
    let run = session.start(&run_plan)?;
    let Some(task) = session::tasks(pack).into_iter().next() else { return Ok(ExitCode::SUCCESS) };
    let accept = async |task: Arc<SealedTask>| -> Result<Acceptance, Refused> {
        let rewrites = args.rewrites;
        let plan = AcceptPlan { tasks: vec![task], runs: None, shuffled: false, rewrites, write: false };
        let told = infradev_accept::run(&executor, &run, &plan, &|_: &Acceptance| ()).await;
        let mut document = told.map_err(|error| -> Refused { Box::new(error) })?;
        Ok(document.tasks.remove(0))
    };
    let progress = Arc::clone(&session.progress);
    let told = |told: Told<'_>| {
        if let Told::Round(round) = told {
            let word = if round.accepted { "accepted" } else { "not accepted" };
            progress.line(&format!("{} · round {}: {word}", task.id(), round.number));
        }
    };
    let made = rounds::run(&executor, &run, &task, &plan, accept, &told).await;
    let document = session.concluded(&run, made)?;
    run.write_document("rounds.json", &document)?;
    let folder = run.path().to_path_buf();
    run.finish()?;
    session.progress.clear();
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(text(&document, &folder))?;
    }
    Ok(ExitCode::from(u8::from(!document.accepted)))
}

fn text(document: &RoundsDocument, folder: &Path) -> String {
    let mut table =
        Table::new(&["round", "role", "ending", "wrote", "dropped", "tokens", "agent"], &[0, 3, 4, 5, 6]);
    for round in &document.rounds {
        for step in &round.steps {
            let tokens = step.metered.tokens;
            table.row(vec![
                round.number.to_string().into(),
                step.role.word().into(),
                step.ending.word().into(),
                step.written.len().to_string().into(),
                step.ignored.len().to_string().into(),
                tokens.all().to_string().into(),
                format!("{:.1} s", step.agent_s).into(),
            ]);
        }
        let word = Cell::either(round.accepted, "accepted", "not accepted");
        let row = [round.number.to_string().into(), "acceptance".into(), word];
        table.row(row.into_iter().chain((0..4).map(|_| "".into())).collect());
    }
    let mut text = table.text();
    let last = document.rounds.last();
    if document.accepted {
        let _ = writeln!(text, "\n{}: accepted, and written into its folder", document.task);
    } else {
        let _ =
            writeln!(text, "\n{}: {}; its folder is as it was", document.task, document.reasons.join("; "));
        for line in last.map(|round| round.report.as_str()).unwrap_or_default().lines().skip(2) {
            let _ = writeln!(text, "  {}", visible(line));
        }
    }
    let rounds = counted(document.rounds.len() as u32, "round");
    let _ = writeln!(
        text,
        "\n{rounds}, {} tokens, {:.0} s of the agent\nrun {} ({})",
        document.tokens,
        document.agent_s,
        document.run,
        folder.display()
    );
    text
}
