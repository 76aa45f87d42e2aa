//! `infradev label`: an agent labels failing cases that rules left open.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use infradev_analyse::{PeoplesLabels, Settings, analyse, public_name};
use infradev_label::{LabelPlan, OpenCase, OpenCases};
use infradev_model::{
    Analysis, Answered, CaseError, DigestBuilder, GivenLabel, LabelFile, LabellingDocument, Suite,
};
use infradev_report::{Material, Site};
use infradev_sandbox::Kind;
use infradev_store::{Plan, RunView};
use serde::Serialize;

use crate::cli::{Global, LabelArgs};
use crate::commands::report::{references, views};
use crate::files::write_whole;
use crate::progress::counted;
use crate::report::{self, Failure, visible};
use crate::session::{self, Session};
use crate::tables::{Table, middle};

/// Asks, and keeps the answers.
pub async fn run(global: &Global, args: LabelArgs) -> Result<ExitCode, Failure> {
    let before = read(&args.labels)?;
    let name = args.labels.display().to_string();
    let given = match &before {
        Some(text) => Some(PeoplesLabels::parse(&name, text.as_bytes())?),
        None => None,
    };
    let found = views(global, &args.runs)?;
    let session = Session::new(global, Kind::Namespaces, 1)?;
    let (agent, endpoint) = session.agent(&args.agent, &args.asked, args.model.as_slice())?;
    let references = references(args.pack.as_deref())?;
    let settings = Settings { labels: given.as_ref(), sealed: args.sealed, references: &references };
    let analysis = analyse(found.clone(), settings)?;
    let plan = LabelPlan {
        agent,
        model: args.model.clone(),
        endpoint,
        command: args.asked.command.clone(),
        program: session::own_program()?,
        step: Duration::from_secs(args.step_timeout),
        time: Duration::from_secs(args.minutes * 60),
        tokens: args.token_budget,
        open: open(&analysis, &found)?,
    };
    let untold = untold(&analysis);
    if plan.open.is_empty() && !args.json {
        session.progress.clear();
        report::print(format!("rules left no case open that the agent may see{untold}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let executor = session.executor()?;
    let run = session.start(&run_plan(&plan, &analysis))?;
    let progress = Arc::clone(&session.progress);
    let told = |answered: &Answered| {
        let Answered { task, submission, labels, cases, .. } = answered;
        progress.line(&format!("{task} · {submission}: {} of {cases} labelled", labels.len()));
    };
    let labelled = infradev_label::run(&executor, &run, &plan, &told).await;
    let document = session.concluded(&run, labelled)?;
    keep(&args.labels, before, &document)?;
    run.write_document("label.json", &document)?;
    let folder = run.path().to_path_buf();
    run.finish()?;
    session.progress.clear();
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(text(&document, &name, &folder, &untold))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::bad_input(format!("cannot read {}: {error}", path.display()))
    };
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| failed(&error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// What an agent is told of a case.
#[derive(Serialize)]
struct Told<'a> {
    suite: String,
    case: String,
    world_size: u32,
    outcome: &'static str,
    base_fails_it_too: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assertion: &'a Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    exception: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: &'a Option<String>,
    rules_left_it_open: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    traits: &'a Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<String>,
}

/// Cases that rules left open, by submission. In a public reading those of probes are left out: all that it says of them is sealed.
fn open(analysis: &Analysis, views: &[RunView]) -> Result<Vec<OpenCases>, Failure> {
    let site = Site::new(analysis.clone(), views, Vec::new())?;
    let mut failing: BTreeMap<(&str, &str, &str), Vec<&CaseError>> = BTreeMap::new();
    for case in &analysis.cases {
        failing.entry((&case.run, &case.task, &case.submission)).or_default().push(case);
    }
    let mut all: Vec<OpenCases> = Vec::new();
    for submission in &analysis.submissions {
        let key = (submission.run.as_str(), submission.task.as_str(), submission.submission.as_str());
        let Some(cases) = failing.remove(&key) else { continue };
        if !cases.iter().any(|case| asked(case, analysis.sealed)) {
            continue;
        }
        let Material { patch, texts } = site.material(submission);
        let (task, submission) = (submission.task.clone(), submission.submission.clone());
        let mut open = BTreeMap::new();
        for (case, texts) in cases.into_iter().zip(texts).filter(|(case, _)| asked(case, analysis.sealed)) {
            open.entry((public_name(case), case.world)).or_insert(one(case, texts)?);
        }
        let cases = open.into_values().collect();
        // A file of labels knows no runs: where two share a submission, the first of them speaks.
        if !all.iter().any(|known| (&known.task, &known.submission) == (&task, &submission)) {
            all.push(OpenCases { task, submission, patch, cases });
        }
    }
    Ok(all)
}

fn asked(case: &CaseError, sealed: bool) -> bool {
    case.label.is_open() && (sealed || case.suite == Suite::Official)
}

fn one(case: &CaseError, texts: Vec<String>) -> Result<OpenCase, Failure> {
    let told = Told {
        suite: case.suite.to_string(),
        case: case.case.clone(),
        world_size: case.world,
        outcome: case.word.word(),
        base_fails_it_too: case.fail_to_pass,
        checks: &case.checks,
        assertion: &case.assertion,
        exception: &case.exception,
        message: &case.message,
        at: &case.at,
        rules_left_it_open: &case.label.evidence,
        traits: &case.traits,
        texts,
    };
    let told = toml::to_string(&told)
        .map_err(|error| Failure::fault(format!("cannot write the case {}: {error}", case.case)))?;
    Ok(OpenCase { case: public_name(case), world: case.world, told, ruled: case.label.clone() })
}

/// A run is gone on with where the same agent is asked of the same cases.
fn run_plan(plan: &LabelPlan, analysis: &Analysis) -> Plan {
    let mut digest = DigestBuilder::new("infradev label plan v1");
    let asked = (&plan.agent.spec, &plan.model, &plan.command);
    digest.part("agent", &serde_json::to_vec(&asked).unwrap_or_default());
    digest.part("content", format!("{:?}", plan.agent.content).as_bytes());
    for open in &plan.open {
        digest.part("submission", format!("{}\0{}", open.task, open.submission).as_bytes());
        for case in &open.cases {
            digest.part("case", case.told.as_bytes());
        }
    }
    let packs: std::collections::BTreeSet<&str> = analysis.runs.iter().map(|run| run.pack.as_str()).collect();
    Plan {
        verb: "label".to_owned(),
        pack: Vec::from_iter(packs).join(", "),
        command: std::env::args().collect(),
        digest: digest.finish(),
    }
}

/// Appends the answers to the file as it is now: a person may have written into it meanwhile.
fn keep(path: &Path, before: Option<String>, document: &LabellingDocument) -> Result<(), Failure> {
    let labels: Vec<GivenLabel> = document.labels().cloned().collect();
    if labels.is_empty() && before.is_some() {
        return Ok(());
    }
    let name = path.display().to_string();
    let now = read(path)?.unwrap_or_default();
    let known = match now.trim().is_empty() {
        true => Vec::new(),
        false => LabelFile::parse(&name, now.as_bytes())?.labels,
    };
    // Of a command that was ended between writing and its own end.
    let fresh: Vec<GivenLabel> = labels.into_iter().filter(|label| !known.contains(label)).collect();
    let text = LabelFile::appended(&now, &fresh)
        .map_err(|error| Failure::fault(format!("cannot write {name}: {error}")))?;
    LabelFile::parse(&name, text.as_bytes())?;
    write_whole(path, text.as_bytes())
}

/// Open cases of probes, which a public reading keeps from the agent.
fn untold(analysis: &Analysis) -> String {
    let probes = analysis.cases.iter().filter(|case| case.label.is_open() && !asked(case, analysis.sealed));
    match u32::try_from(probes.count()).unwrap_or(u32::MAX) {
        0 => String::new(),
        some => format!("; {} of probes more with --sealed", counted(some, "open case")),
    }
}

/// Characters of a submission's name.
const NAME: usize = 48;

fn text(document: &LabellingDocument, labels: &str, folder: &Path, untold: &str) -> String {
    let header = ["task", "submission", "open", "labelled", "ending", "tokens", "agent"];
    let mut table = Table::new(&header, &[2, 3, 5, 6]);
    for answered in &document.answered {
        table.row(vec![
            visible(&answered.task).into_owned().into(),
            middle(&visible(&answered.submission), NAME).into(),
            answered.cases.to_string().into(),
            answered.labels.len().to_string().into(),
            answered.ending.word().into(),
            answered.metered.tokens.all().to_string().into(),
            format!("{:.1} s", answered.agent_s).into(),
        ]);
    }
    let mut text = table.text();
    for answered in &document.answered {
        for ignored in &answered.ignored {
            let (path, why) = (visible(&ignored.path), visible(&ignored.why));
            let _ = writeln!(text, "{} · {}: {path} {why}", answered.task, answered.submission);
        }
        if let Some(detail) = &answered.detail {
            let _ = writeln!(text, "{} · {}: {}", answered.task, answered.submission, visible(detail));
        }
    }
    if let Some(left) = &document.left {
        let _ = writeln!(text, "{left}");
    }
    let given = document.labels().count();
    let _ = writeln!(
        text,
        "\n{given} of {} labelled{untold}; {} tokens, {:.0} s of the agent\nlabels {labels}: `infradev report … --labels {labels}` takes \
         them\nrun {} ({})",
        counted(document.open, "open case"),
        document.tokens,
        document.agent_s,
        document.run,
        folder.display()
    );
    text
}
