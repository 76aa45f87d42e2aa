//! `infradev attempt`.

use std::fmt::Write;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use infradev_agent::{Endpoint, Installed, Skill};
use infradev_attempt::{AttemptPlan, Given, folder_name, prediction};
use infradev_model::{AttemptDocument, Ending, SUBMISSION_SCHEMA, SkillBy, SubmissionRecord};
use infradev_sandbox::Kind;
use infradev_store::{Plan, PublicPack, RunFolder, load_public_pack};

use crate::cli::{AttemptArgs, Global};
use crate::commands::attempt_built_in::{self, BuiltIn};
use crate::progress::counted;
use crate::report::{self, Failure, visible};
use crate::session::{self, Session};
use crate::tables::{Cell, Table};

/// Has an agent attempt tasks.
pub async fn run(global: &Global, args: AttemptArgs) -> Result<ExitCode, Failure> {
    let session = Session::new(global, Kind::Namespaces, args.jobs)?;
    let skill = args.skill.as_deref().map(Skill::read).transpose()?;
    let (run, records) = match BuiltIn::of(&args.agent) {
        Some(agent) => attempt_built_in::run(&session, &args, &agent).await?,
        None => of_an_agent(&session, &args, skill).await?,
    };
    let document = kept(&run, records)?;
    run.write_document("attempt.json", &document)?;
    let unreached = document.submissions.iter().filter(|record| record.ending == Ending::EndpointUnreachable);
    let unreached = unreached.count();
    let folder = run.path().to_path_buf();
    if unreached == 0 {
        run.finish()?;
    }
    session.progress.clear();
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(table(&document) + &details(&document) + &summary(&document, &args.path, &folder))?;
    }
    if unreached > 0 {
        let ends = counted(unreached as u32, "attempt");
        report::warn(format!("{ends} did not reach the model; the same command makes them again"));
        return Ok(ExitCode::from(infradev_model::Class::Fault.exit_code()));
    }
    Ok(ExitCode::SUCCESS)
}

async fn of_an_agent(
    session: &Session,
    args: &AttemptArgs,
    skill: Option<Skill>,
) -> Result<(RunFolder, Vec<SubmissionRecord>), Failure> {
    let mut pack = load_public_pack(&args.path)?;
    select(&mut pack, &args.tasks)?;
    let (agent, endpoint) = session.agent(&args.agent, &args.asked)?;
    let plan = AttemptPlan { skill, ..plan(args, &pack, agent, endpoint)? };
    let executor = session.executor()?;
    let run = session.start(&run_plan(&pack, &plan))?;
    let made = infradev_attempt::run(&executor, &run, &plan).await;
    let records = session.concluded(&run, made)?;
    Ok((run, records))
}

fn plan(
    args: &AttemptArgs,
    pack: &PublicPack,
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
        model: args.asked.model.clone(),
        endpoint,
        command: args.asked.command.clone(),
        skill: None,
        attempts: args.attempts,
        timeout: Duration::from_secs(args.timeout),
        token_budget: args.token_budget,
        program: session::own_program()?,
    })
}

/// An unfinished run of the same plan is resumed; each attempt in it is told apart by its own key, which knows the task's content.
fn run_plan(pack: &PublicPack, plan: &AttemptPlan) -> Plan {
    let mut digest = infradev_model::DigestBuilder::new("infradev attempt run v1");
    digest.part("pack", pack.pack.name.as_bytes()).part("plan", plan.digest().as_str().as_bytes());
    digest.part("attempts", &plan.attempts.to_le_bytes());
    for task in &pack.tasks {
        digest.part("task", task.spec.id.as_bytes());
    }
    let command = std::env::args().collect();
    Plan { verb: "attempt".into(), pack: pack.pack.name.clone(), command, digest: digest.finish() }
}

fn select(pack: &mut PublicPack, wanted: &[String]) -> Result<(), Failure> {
    let known: Vec<String> = pack.tasks.iter().map(|task| task.spec.id.clone()).collect();
    session::check_ids(&pack.pack.name, wanted, &known)?;
    if !wanted.is_empty() {
        pack.tasks.retain(|task| wanted.contains(&task.spec.id));
    }
    Ok(())
}

/// Writes predictions and patches, in the forms that `infradev grade --patches` takes. An attempt whose model was not reached is in
/// neither: it is made again.
fn kept(run: &RunFolder, records: Vec<SubmissionRecord>) -> Result<AttemptDocument, Failure> {
    let mut lines = String::new();
    for record in records.iter().filter(|record| record.ending != Ending::EndpointUnreachable) {
        let path = run.path().join(&record.folder).join("patch.diff");
        let patch = std::fs::read(&path)
            .map_err(|error| Failure::fault(format!("cannot read {}: {error}", path.display())))?;
        run.write_file(
            &format!("patches/{}/{}.patch", folder_name(&record.submission), record.task),
            &patch,
        )?;
        match prediction(record, &patch) {
            Some(line) => lines.push_str(&line),
            None => report::warn(format!(
                "{} · {}: the patch is no UTF-8 and stands in no line of predictions.jsonl; grade the folder `patches` instead",
                record.task, record.submission
            )),
        }
    }
    let predictions = run.write_file("predictions.jsonl", lines.as_bytes())?;
    Ok(AttemptDocument {
        schema: SUBMISSION_SCHEMA,
        run: run.id().to_string(),
        predictions: predictions.display().to_string(),
        submissions: records,
    })
}

fn word(ending: Ending) -> Cell {
    match ending {
        Ending::Finished => Cell::good(ending.word()),
        Ending::EndpointUnreachable => Cell::odd(ending.word()),
        _ => Cell::bad(ending.word()),
    }
}

/// The table.
pub fn table(document: &AttemptDocument) -> String {
    let header = ["task", "submission", "ending", "agent", "requests", "tokens", "lookups", "patch"];
    let mut table = Table::new(&header, &[3, 4, 5, 6, 7]);
    for record in &document.submissions {
        let tokens = record.metered.tokens;
        let lookups: u64 = record.lookups.iter().map(|lookup| lookup.times).sum();
        table.row(vec![
            record.task.as_str().into(),
            record.submission.as_str().into(),
            word(record.ending),
            format!("{:.1} s", record.agent_s).into(),
            record.metered.requests.to_string().into(),
            format!("{}+{}", tokens.input, tokens.output).into(),
            lookups.to_string().into(),
            format!("{} B", record.patch_bytes).into(),
        ]);
    }
    table.text()
}

/// What is worth knowing beyond the table.
pub fn details(document: &AttemptDocument) -> String {
    let mut text = String::new();
    for record in &document.submissions {
        let mut said: Vec<String> = record.detail.iter().cloned().collect();
        let lookups = record.lookups.iter().take(5);
        said.extend(
            lookups.map(|lookup| format!("refused: {} {} ({}×)", lookup.method, lookup.target, lookup.times)),
        );
        if !record.left_running.is_empty() {
            said.push(format!("left running, and killed: {}", record.left_running.join(", ")));
        }
        said.extend(
            record
                .skipped
                .iter()
                .take(5)
                .map(|file| format!("not in the patch: {} ({})", file.path, file.reason)),
        );
        if !record.test_edits.is_empty() {
            said.push(format!("edits tests, which grading lays over: {}", record.test_edits.join(", ")));
        }
        let counted = record.metered.tokens;
        if let Some(own) =
            record.own_tokens.filter(|own| (own.input, own.output) != (counted.input, counted.output))
        {
            said.push(format!(
                "the agent counts {}+{} tokens, the proxy {}+{}",
                own.input, own.output, counted.input, counted.output
            ));
        }
        if let Some(skill) = &record.skill {
            said.push(match (skill.by, skill.opened) {
                (SkillBy::Appended, _) => format!("skill {}: part of the prompt", skill.name),
                (SkillBy::Mounted, Some(true)) => {
                    format!("skill {}: opened after {:.1} s", skill.name, skill.opened_s.unwrap_or(0.0))
                }
                (SkillBy::Mounted, Some(false)) => format!("skill {}: not opened", skill.name),
                (SkillBy::Mounted, None) => format!("skill {}: not known whether it was opened", skill.name),
            });
        }
        if record.metered.unmetered > 0 {
            said.push(format!("{} answers told no tokens", record.metered.unmetered));
        }
        if !said.is_empty() {
            let _ = write!(text, "\n{} · {}: {}\n", record.task, record.submission, record.ending.word());
            for line in said {
                let _ = writeln!(text, "  {}", visible(&line).replace('\n', "\n    "));
            }
        }
    }
    text
}

fn summary(document: &AttemptDocument, pack: &Path, folder: &Path) -> String {
    format!(
        "\ngrade them: infradev grade {} --patches {}\nrun {} ({})\n",
        pack.display(),
        document.predictions,
        document.run,
        folder.display()
    )
}

/// The part of this program that runs inside an agent's sandbox: `infradev agent-relay SOCKET UID -- PROGRAM …`, with a
/// descriptor to report on.
pub fn relay() -> ExitCode {
    let mut words = std::env::args_os().skip(2);
    let socket = words.next().unwrap_or_default();
    let uid = words.next().and_then(|uid| uid.to_str()?.parse().ok());
    let command = words.skip(1).collect();
    // SAFETY: descriptor 3 is handed over for this alone, and nothing else in this process knows of it. It is checked to be open.
    let report = match std::fs::metadata("/proc/self/fd/3") {
        Ok(_) => unsafe { OwnedFd::from_raw_fd(3) },
        Err(_) => match File::open("/dev/null") {
            Ok(file) => file.into(),
            Err(_) => return ExitCode::from(3),
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        runtime
            .block_on(infradev_agent::relay(socket.into(), uid, report, command))
            .map_err(|error| error.to_string())
    });
    match ended {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => report::fail(Failure::fault(error), false),
    }
}
