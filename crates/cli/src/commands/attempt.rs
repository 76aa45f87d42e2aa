//! `infradev attempt`.

use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;

use infradev_attempt::{folder_name, prediction};
use infradev_model::{AttemptDocument, Class, Ending, SUBMISSION_SCHEMA, SubmissionRecord};
use infradev_sandbox::Kind;
use infradev_store::RunFolder;

use crate::cli::{AttemptArgs, Global};
use crate::commands::attempt_built_in::{self, BuiltIn};
use crate::commands::{attempt_arms, attempt_shown};
use crate::progress::counted;
use crate::report::{self, Failure};
use crate::session::Session;

/// Has an agent attempt tasks.
pub async fn run(global: &Global, args: AttemptArgs) -> Result<ExitCode, Failure> {
    let session = Session::new(global, Kind::Namespaces, args.jobs)?;
    let built_in = BuiltIn::of(&args.agent);
    if args.plan && built_in.is_none() {
        let document = attempt_arms::planned(&session, &args)?;
        session.progress.clear();
        match args.json {
            true => report::print_json(&document)?,
            false => report::print(attempt_shown::plan(&document))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let made = make(&session, &args, built_in.as_ref()).await?;
    session.progress.clear();
    let document = &made.document;
    if args.json {
        report::print_json(document)?;
    } else {
        let (table, details) = (attempt_shown::table(document), attempt_shown::details(document));
        let chosen = !args.tasks.is_empty();
        let summary = attempt_shown::summary(document, &args.path, chosen, made.run.path());
        report::print(table + &details + &summary)?;
    }
    made.tell_unreached();
    let unreached = made.unreached;
    made.finish()?;
    Ok(if unreached > 0 { ExitCode::from(Class::Fault.exit_code()) } else { ExitCode::SUCCESS })
}

/// Attempts that were made.
pub struct Made {
    /// What there is of them.
    pub document: AttemptDocument,
    /// The run, which is not finished yet: what still uses it finishes it.
    pub run: RunFolder,
    /// Attempts whose model could not be reached.
    pub unreached: u32,
}

impl Made {
    /// The run is done, where each attempt reached its model; else the same command goes on with it.
    pub fn finish(self) -> Result<(), Failure> {
        if self.unreached == 0 {
            self.run.finish()?;
        }
        Ok(())
    }

    /// Says on standard error that some are left.
    pub fn tell_unreached(&self) {
        if self.unreached > 0 {
            let ends = counted(self.unreached, "attempt");
            report::warn(format!("{ends} did not reach the model; the same command makes them again"));
        }
    }
}

/// Makes the attempts that are asked for.
pub async fn make(
    session: &Session,
    args: &AttemptArgs,
    built_in: Option<&BuiltIn>,
) -> Result<Made, Failure> {
    let (run, records) = match built_in {
        Some(agent) => attempt_built_in::run(session, args, agent).await?,
        None => of_an_agent(session, args).await?,
    };
    let document = kept(&run, records)?;
    run.write_document("attempt.json", &document)?;
    let unreached = document.submissions.iter().filter(|record| record.ending == Ending::EndpointUnreachable);
    let unreached = u32::try_from(unreached.count()).unwrap_or(u32::MAX);
    Ok(Made { document, run, unreached })
}

async fn of_an_agent(
    session: &Session,
    args: &AttemptArgs,
) -> Result<(RunFolder, Vec<SubmissionRecord>), Failure> {
    let (plan, run) = attempt_arms::asked(session, args)?;
    let executor = session.executor()?;
    let run = if plan.retry.is_empty() {
        session.start(&run)?
    } else {
        session.runs().reopen(&run.digest)?.ok_or_else(attempt_arms::nothing_to_retry)?
    };
    let made = infradev_attempt::run(&executor, &run, &plan).await;
    let records = session.concluded(&run, made)?;
    Ok((run, records))
}

/// Writes predictions and patches, in the forms that `infradev grade --patches` takes. An attempt whose model was not reached is in
/// neither: it is made again.
fn kept(run: &RunFolder, records: Vec<SubmissionRecord>) -> Result<AttemptDocument, Failure> {
    let mut lines = String::new();
    for record in &records {
        let name = format!("patches/{}/{}.patch", folder_name(&record.submission), record.task);
        if record.ending == Ending::EndpointUnreachable {
            // Of an earlier attempt, which this one replaced.
            let _ = std::fs::remove_file(run.path().join(&name));
            continue;
        }
        let path = run.path().join(&record.folder).join("patch.diff");
        let patch = std::fs::read(&path)
            .map_err(|error| Failure::fault(format!("cannot read {}: {error}", path.display())))?;
        run.write_file(&name, &patch)?;
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
