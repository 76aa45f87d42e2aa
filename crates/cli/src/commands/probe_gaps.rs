//! `infradev probe-gaps`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use infradev_executor::GoldenChange;
use infradev_model::{DigestBuilder, GapsDocument, SYNTHESIS_SCHEMA, Timeouts};
use infradev_store::Plan;
use infradev_synthesize::funnel::{self, ChangeAsk, DraftedChange, FunnelPlan, Mutations, Rule, Told};

use crate::cli::{Global, ProbeGapsArgs};
use crate::cli_gaps::SUITE_SECONDS;
use crate::commands::synthesize::{jobs, line};
use crate::gap_forms;
use crate::report::{self, Failure};
use crate::session::Session;

/// Lists the lines of a change that no test notices.
pub async fn run(global: &Global, mut args: ProbeGapsArgs) -> Result<ExitCode, Failure> {
    let python = python(args.python.as_deref())?;
    let mut global = global.clone();
    // No judge is asked here: nothing is built for one.
    global.judge_python.get_or_insert_with(|| python.clone());
    let session = Session::new(&global, args.sandbox.into(), jobs(args.jobs))?;
    let folder = std::fs::canonicalize(&args.repo)
        .map_err(|error| Failure::bad_input(format!("{}: {error}", args.repo.display())))?;
    let repository = top(&folder).to_path_buf();
    let below = folder.strip_prefix(&repository).unwrap_or(Path::new("")).to_string_lossy();
    args.tests = args.tests.iter().map(|given| below_top(&below, given)).collect();
    let change = DraftedChange::draft(&ChangeAsk {
        repository,
        base: args.base.clone(),
        head: args.head.clone(),
        tests: args.tests.clone(),
        python,
        worlds: args.world.clone(),
        preload: (!args.preload.is_empty()).then(|| args.preload.clone()),
        plugins: (!args.plugin.is_empty()).then(|| args.plugin.clone()),
        timeouts: Timeouts { case: args.timeout, trial: SUITE_SECONDS, ..Timeouts::default() },
        memory_mib: args.memory,
    })?;
    let given = match &args.mutants {
        Some(path) => {
            let failed = |error| Failure::bad_input(format!("{}: {error}", path.display()));
            Some((path.display().to_string(), std::fs::read(path).map_err(failed)?))
        }
        None => None,
    };
    // Before anything is run for it.
    for path in args.sarif.iter().chain(&args.markdown) {
        writable(path)?;
    }
    let executor = session.executor()?;
    let ready = change.adapt(executor.ready(Arc::new(change.task.clone())).await?);
    let mutations = match &given {
        Some((path, bytes)) => {
            Mutations { mutants: funnel::given_mutants(&ready, path, bytes)?, ..Mutations::default() }
        }
        None => Mutations::of(&ready.task, &ready.tree.path)?.with_submodules(&change.submodules),
    };
    let given_bytes = given.as_ref().map_or(&[][..], |(_, bytes)| bytes.as_slice());
    let run = session.start(&plan(&args, &change, given_bytes))?;
    let plan = FunnelPlan {
        mutations,
        // A maintainer's tests may know how the code is written.
        rewrites: Vec::new(),
        shard: args.shard,
        skip_failing: args.skip_failing,
        rule: Rule::NothingFails,
        only: change.only.clone(),
    };
    let progress = Arc::clone(&session.progress);
    let told = |told: Told<'_>| {
        if let Some(line) = line("probe-gaps", "the change", &told) {
            progress.line(&line);
        }
    };
    let found = funnel::run(&executor, &run, &ready, &plan, &told).await;
    let found = session.concluded(&run, found)?;
    let mut gaps = found.gap_lines();
    let files = GoldenChange::of(&ready)?.files();
    for gap in &mut gaps {
        // What is taken back behind a file's last line stands on no line of it; an empty file has none.
        let file = files.iter().find(|file| file.path == gap.file).and_then(|file| file.golden.as_deref());
        let lines = file.map_or(1, |text| text.lines().count()) as u32;
        (gap.line, gap.end_line) = (gap.line.min(lines), gap.end_line.min(lines));
    }
    let document = GapsDocument {
        schema: SYNTHESIS_SCHEMA,
        run: run.id().to_string(),
        base: change.base.clone(),
        head: change.head.clone(),
        gaps,
        change: found,
    };
    run.write_document("probe-gaps.json", &document)?;
    run.finish()?;
    session.progress.clear();
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(gap_forms::text(&document))?;
    }
    if let Some(path) = &args.sarif {
        let text = serde_json::to_string_pretty(&gap_forms::sarif(&document)).unwrap_or_default() + "\n";
        write(path, &text)?;
    }
    if let Some(path) = &args.markdown {
        write(path, &gap_forms::markdown(&document))?;
    }
    let gap = args.fail_on_gap && !document.gaps.is_empty();
    Ok(if gap { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The top of the repository that a folder lies in; the folder itself where it lies in none.
fn top(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder)
}

/// A test as it is called from the repository's top: in a folder below it people name what they see there.
fn below_top(below: &str, given: &str) -> String {
    match given.trim_start_matches("./") {
        _ if below.is_empty() || given.starts_with('-') => given.to_owned(),
        "." | "" => below.to_owned(),
        path => format!("{below}/{path}"),
    }
}

fn plan(args: &ProbeGapsArgs, change: &DraftedChange, given: &[u8]) -> Plan {
    let mut digest = DigestBuilder::new("infradev plan v1");
    digest.part("verb", b"probe-gaps").part("task", change.task.suites_digest().as_str().as_bytes());
    let asked = (&args.world, &args.shard, args.skip_failing, &args.plugin, &args.preload, &args.tests);
    digest.part("asked", format!("{asked:?} {:?}", args.sandbox).as_bytes());
    digest.part("given", given);
    let command = std::env::args().collect();
    Plan { verb: "probe-gaps".into(), pack: "change".into(), command, digest: digest.finish() }
}

/// Refuses a place where no file can be written.
fn writable(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let why = match () {
        () if path.is_dir() => "it is a folder".to_owned(),
        () if folder.is_dir() => return Ok(()),
        () => format!("there is no folder {}", folder.display()),
    };
    Err(Failure::bad_input(format!("cannot write {}: {why}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::bad_input(format!("cannot write {}: {error}", path.display())))
}

/// The interpreter that was named, or the active environment's, or the first on PATH. Links are kept: what a virtual
/// environment's interpreter is called by decides what it sees.
fn python(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if let Some(path) = named {
        return if path.is_file() {
            Ok(absolute(path))
        } else {
            Err(Failure::bad_input(format!("{}: there is no such program", path.display()))
                .hint("--python is the path of the Python interpreter that runs your tests"))
        };
    }
    let active = std::env::var_os("VIRTUAL_ENV").map(|folder| PathBuf::from(folder).join("bin/python"));
    if let Some(path) = active.filter(|path| path.is_file()) {
        return Ok(absolute(&path));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders)
        .flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)));
    places.find(|path| path.is_file()).map(|path| absolute(&path)).ok_or_else(|| {
        Failure::bad_input("no Python is active and none is on PATH")
            .hint("give the interpreter that runs your tests with --python")
    })
}
