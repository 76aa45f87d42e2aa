//! `infradev synthesize`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use infradev_executor::base_tree;
use infradev_model::{
    Fate, MutantRecord, Operator, RejectedBy, SYNTHESIS_SCHEMA, Share, Suite, Synthesis, SynthesisDocument,
    Word,
};
use infradev_synthesize::funnel::{self, FunnelPlan, Mutations, Rule, Told};

use crate::cli::{Global, MergeArgs, MutantRequirement, SynthesizeArgs, SynthesizeCommand};
use crate::progress::counted;
use crate::report::{self, Failure, visible};
use crate::session::{self, Session};
use crate::tables::{Cell, Table, short};

/// Tries every mutant of each task.
pub async fn run(global: &Global, args: SynthesizeArgs) -> Result<ExitCode, Failure> {
    if let Some(SynthesizeCommand::Merge(asked)) = &args.command {
        return merge(asked);
    }
    let Some(path) = &args.path else { return Err(Failure::usage("name a pack or a task")) };
    if let Some(agent) = &args.agent {
        return super::rounds::run(global, &args, path, agent).await;
    }
    let session = Session::new(global, args.sandbox.into(), jobs(args.jobs))?;
    let pack = session.load(path)?;
    let more = [
        ("shard", format!("{:?}", args.shard).into_bytes()),
        ("skip failing", vec![u8::from(args.skip_failing)]),
        ("rewrites", args.rewrites.to_string().into_bytes()),
    ];
    let plan = session.plan("synthesize", &pack, &more);
    let mut tasks = Vec::new();
    // All of them first: a listing that is wrong on its face is told before anything runs.
    for task in session::tasks(pack) {
        let tree = base_tree(&session.home, &task.public.base, session.progress.as_ref())?;
        let mutations = Mutations::of(&task, &tree.path)?;
        tasks.push((task, mutations));
    }
    let executor = session.executor()?;
    let run = session.start(&plan)?;
    let mut found_of = Vec::new();
    for (task, mutations) in tasks {
        let id = task.id().to_string();
        let ready = executor.ready(task).await?;
        let plan = FunnelPlan {
            mutations,
            rewrites: funnel::rewrites_of(&ready, args.rewrites)?,
            shard: args.shard,
            skip_failing: args.skip_failing,
            rule: Rule::LikeGolden,
            only: Default::default(),
        };
        let progress = Arc::clone(&session.progress);
        let told = |told: Told<'_>| {
            if let Some(line) = line(&id, "golden", &told) {
                progress.line(&line);
            }
        };
        let found = funnel::run(&executor, &run, &ready, &plan, &told).await;
        let found = session.concluded(&run, found)?;
        if args.write {
            for name in funnel::write_candidates(&ready, &found)? {
                session.progress.line(&format!("{id}: wrote adversarial/{name}.toml"));
            }
        }
        found_of.push(found);
    }
    let document = SynthesisDocument { schema: SYNTHESIS_SCHEMA, run: run.id().to_string(), tasks: found_of };
    run.write_document("synthesize.json", &document)?;
    let folder = run.path().to_path_buf();
    run.finish()?;
    session.progress.clear();
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(text(&document) + &ending(&document, &folder))?;
    }
    Ok(match args.require {
        Some(MutantRequirement::Rejected) if !all_rejected(&document) => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

/// Whether each mutant is rejected by a test or listed as equivalent, and no test rejects one that is listed.
fn all_rejected(document: &SynthesisDocument) -> bool {
    document.tasks.iter().all(|task| task.gaps().next().is_none() && task.wrong_listings().next().is_none())
}

/// Puts the documents of shards together.
fn merge(args: &MergeArgs) -> Result<ExitCode, Failure> {
    let mut shards = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        let wrong = |error: &dyn std::fmt::Display| Failure::bad_input(format!("{name}: {error}"));
        let bytes = std::fs::read(file).map_err(|error| wrong(&error))?;
        let document: SynthesisDocument = serde_json::from_slice(&bytes).map_err(|error| {
            wrong(&format!("no document of `infradev synthesize --json`: {error}"))
                .hint("give what `infradev synthesize --shard K/N --json` printed")
        })?;
        shards.push((name, document));
    }
    let document = SynthesisDocument::merged(&shards)?;
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(
            text(&document) + &counts(&document) + &format!("\nruns {}\n", visible(&document.run)),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sessions at once: as many as asked for, else one a core.
pub fn jobs(asked: Option<u16>) -> u16 {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    asked.unwrap_or_else(|| u16::try_from(cores()).unwrap_or(u16::MAX))
}

/// One line of progress; `golden_name` is what the unmutated change is called.
pub fn line(id: &str, golden_name: &str, told: &Told<'_>) -> Option<String> {
    match told {
        Told::Golden(golden) => Some(format!(
            "{id} · {}: {golden_name} passes {} {} in {:.1} s",
            counted(golden.world, "rank"),
            golden.cases,
            match golden.suite {
                Suite::Official => "official tests",
                Suite::Probe => "probes",
            },
            golden.wall_s
        )),
        Told::Mutant { recorded: true, .. } => None,
        Told::Rewrite(record) => Some(format!(
            "{id} · {}: {} ({:.1} s)",
            record.rewrite,
            match record.failed.first() {
                Some(by) => format!("{} by {}", by.word.word(), by.case),
                None => "every test passes it".to_string(),
            },
            record.wall_s
        )),
        Told::Mutant { record, done, of, .. } => Some(format!(
            "{id} · {done}/{of} · {} {}: {} ({:.1} s)",
            place(record),
            record.mutant.operator.name(),
            outcome(record),
            record.wall_s
        )),
    }
}

fn place(record: &MutantRecord) -> String {
    format!("{}:{}", record.mutant.file, record.mutant.line)
}

fn outcome(record: &MutantRecord) -> String {
    match (&record.by, record.fate) {
        (Some(by), _) if record.equivalent.is_some() => {
            format!("listed as equivalent, but {} by {}", by.word.word(), by.case)
        }
        (None, Fate::Equivalent) => "listed as equivalent".to_string(),
        (Some(by), _) => format!("{} by {}", by.word.word(), by.case),
        (None, Fate::Unreached) => "no test runs it: not tried".to_string(),
        (None, _) => "no test rejects it".to_string(),
    }
}

/// All of a document, as a person reads it.
pub fn text(document: &SynthesisDocument) -> String {
    let mut text = strengths(document);
    for task in &document.tasks {
        text.push_str(&survivors(task));
    }
    text
}

fn strengths(document: &SynthesisDocument) -> String {
    let header = [
        "task",
        "mutants",
        "official reject",
        "probes add",
        "equivalent",
        "nothing rejects",
        "hunks",
        "unprobed hunks",
    ];
    let mut table = Table::new(&header, &[1, 2, 3, 4, 5, 6, 7]);
    for task in &document.tasks {
        let (mutants, hunks) = (task.strength.mutants, task.strength.hunks);
        table.row(vec![
            task.id.as_str().into(),
            mutants.of.to_string().into(),
            share(mutants.official, mutants).into(),
            share(mutants.probes, mutants).into(),
            share(mutants.equivalent, mutants).into(),
            if mutants.left() == 0 { Cell::good("0") } else { Cell::bad(share(mutants.left(), mutants)) },
            hunks.of.to_string().into(),
            match task.unprobed_hunks.len() {
                0 => Cell::good("0"),
                some => Cell::bad(some.to_string()),
            },
        ]);
    }
    table.text()
}

fn share(part: u32, share: Share) -> String {
    let percent = if share.of == 0 { 0.0 } else { 100.0 * f64::from(part) / f64::from(share.of) };
    format!("{part} ({percent:.0} %)")
}

/// A task's mutants: those that pass the official tests, those listed as equivalent, listings that a test refutes; and notes.
fn survivors(task: &Synthesis) -> String {
    let probed = task.golden.iter().any(|golden| golden.suite == Suite::Probe);
    let mut text = section(task, "mutants that pass the official tests", task.survivors(), |record| {
        format!("breaks: {}\n{}", record.promise, rejected_by(record, probed))
    });
    text += &section(task, "mutants listed as equivalent to golden", task.equivalent(), |record| {
        format!("because {}", record.equivalent.as_deref().unwrap_or_default())
    });
    text += &section(task, "listed as equivalent, but rejected", task.wrong_listings(), |record| {
        let by = record.by.as_ref().map_or("", |by| by.case.as_str());
        format!("listed because {}\nrejected by {by}", record.equivalent.as_deref().unwrap_or_default())
    });
    text + &notes(task)
}

/// Mutants under a heading, each with what is said of it; nothing where there is none.
fn section<'a>(
    task: &Synthesis,
    heading: &str,
    records: impl Iterator<Item = &'a MutantRecord>,
    said: impl Fn(&MutantRecord) -> String,
) -> String {
    let mut text = String::new();
    for record in records {
        let _ = writeln!(text, "  {} {}", place(record), record.mutant.operator.name());
        for (sign, lines) in [("-", &record.was), ("+", &record.becomes)] {
            let shown = short(lines.trim(), 100);
            if !shown.is_empty() && record.mutant.operator != Operator::TakeBackFile {
                let _ = writeln!(text, "    {sign} {}", visible(&shown));
            }
        }
        for line in said(record).lines() {
            let _ = writeln!(text, "    {}", visible(line));
        }
    }
    if text.is_empty() { text } else { format!("\n{}: {heading}\n{text}", task.id) }
}

fn rejected_by(record: &MutantRecord, probed: bool) -> String {
    let rejecting: Vec<&str> = record
        .probes
        .iter()
        .filter(|(_, word)| **word != Word::Passed)
        .map(|(case, _)| case.as_str())
        .collect();
    match (&rejecting[..], record.fate) {
        ([], Fate::Unreached) => "no test runs these lines".to_string(),
        ([], _) if !probed => format!("no test rejects it ({} run it)", record.official_reach),
        ([], _) if record.probe_reach == 0 => "no probe runs these lines".to_string(),
        ([], _) => format!("no probe rejects it ({} run it)", record.probe_reach),
        (cases, _) => format!("rejected by {}", cases.join(", ")),
    }
}

fn notes(task: &Synthesis) -> String {
    let mut text = String::new();
    text.push_str(&over_fitted(task));
    let mut notes: Vec<String> = Vec::new();
    if !task.unprobed_hunks.is_empty() {
        let hunks = task.unprobed_hunks.iter().map(|hunk| format!("{}:{}", hunk.file, hunk.line));
        notes.push(format!("unprobed hunks: {}", hunks.collect::<Vec<_>>().join(", ")));
    }
    notes
        .extend(task.passed_over.iter().map(|passed| format!("passed over {}: {}", passed.file, passed.why)));
    notes.extend(task.remarks.iter().map(|remark| format!("note: {remark}")));
    if !notes.is_empty() {
        let _ = writeln!(text, "\n{}", task.id);
        for note in notes {
            let _ = writeln!(text, "  {}", visible(&short(&note, 400)));
        }
    }
    text
}

/// Tests that judge how golden is written, by case.
fn over_fitted(task: &Synthesis) -> String {
    let mut by_case: BTreeMap<(Suite, &str), Vec<(&str, &RejectedBy)>> = BTreeMap::new();
    for record in &task.rewrites {
        for by in &record.failed {
            by_case.entry((by.suite, &by.case)).or_default().push((&record.rewrite, by));
        }
    }
    let mut text = String::new();
    if !by_case.is_empty() {
        let _ = writeln!(text, "\n{}: over-fitted tests, which fail golden written anew", task.id);
    }
    for ((suite, case), failed) in by_case {
        let _ = writeln!(text, "  {case} ({})", if suite == Suite::Probe { "probe" } else { "official" });
        for (rewrite, by) in failed {
            let said = if by.said.is_empty() { by.word.word() } else { &by.said };
            let line = format!("fails {rewrite} at world size {}: {said}", by.world);
            let _ = writeln!(text, "    {}", visible(&short(&line, 400)));
        }
    }
    let flaky: BTreeSet<&str> =
        task.rewrites.iter().flat_map(|record| &record.flaky).map(String::as_str).collect();
    for case in flaky {
        let _ = writeln!(text, "  {case} fails a rewrite of golden once and passes it once: it is flaky");
    }
    text
}

fn counts(document: &SynthesisDocument) -> String {
    let tried: usize = document.tasks.iter().map(|task| task.mutants.len()).sum();
    let seconds: f64 = document.tasks.iter().map(|task| task.trying_s).sum();
    let each = if tried == 0 { 0.0 } else { seconds / tried as f64 };
    let mut text = format!("\n{tried} mutants, {each:.2} s each in its session");
    let rewrites: Vec<_> = document.tasks.iter().flat_map(|task| &task.rewrites).collect();
    if !rewrites.is_empty() {
        let failed = rewrites.iter().filter(|record| !record.failed.is_empty()).count();
        let _ = write!(text, "; {} of golden, ", counted(rewrites.len() as u32, "rewrite"));
        let _ = match failed {
            0 => write!(text, "passed by every test"),
            some => write!(text, "{some} failed by a test"),
        };
    }
    text
}

fn ending(document: &SynthesisDocument, folder: &Path) -> String {
    format!("{}\nrun {} ({})\n", counts(document), document.run, folder.display())
}
