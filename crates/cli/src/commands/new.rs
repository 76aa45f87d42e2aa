//! `infradev new`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use infradev_curate::Told;
use infradev_git::{CommitId, GitError, Renames, Repo};
use infradev_model::{Candidate, Device, TaskSpec, is_name};
use infradev_patch::Patch;
use infradev_pyenv::{Proposal, is_read_for_proposal, propose};
use infradev_store::Home;

use crate::cli::{Cli, Command, Global, NewArgs};
use crate::commands::new_candidate;
use crate::commands::new_pack::PackPlan;
use crate::draft::{self, TaskDraft, TestPart};
use crate::files::failed;
use crate::progress::{Shown, counted};
use crate::report::{self, Failure, visible};
use crate::session;

/// Makes a task of a merged change.
pub async fn run(global: &Global, args: NewArgs) -> Result<ExitCode, Failure> {
    let home = session::home(global)?;
    // Kept to the end: a process has one folder for what is temporary.
    let _scratch = session::scratch(&home)?;
    let (folder, without_lock) = make(global, &home, &args)?;
    if !args.calibrate {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(command) = without_lock {
        return Err(Failure::bad_input("golden can't be graded yet: the environment has no lock")
            .hint(format!("make it, then grade: {command}")));
    }
    let words =
        ["infradev".into(), "grade".into(), folder.into_os_string(), "--patches".into(), "golden".into()];
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Grade(grade)) => super::grade::run(global, grade).await,
        _ => Err(Failure::fault("golden can't be graded from here").hint("grade the task's folder yourself")),
    }
}

/// The task's folder, and the command that makes the environment's lock, where that is still to be done.
fn make(global: &Global, home: &Home, args: &NewArgs) -> Result<(PathBuf, Option<String>), Failure> {
    if let Some(twice) = args.worlds.iter().enumerate().find(|(at, world)| args.worlds[..*at].contains(world))
    {
        return Err(Failure::usage(format!("--worlds names {} twice", twice.1)));
    }
    let candidate = match &args.candidate {
        Some(file) => Some(new_candidate::read(file, args.commit.as_deref(), args.pr)?),
        None => None,
    };
    let progress = Arc::new(Shown::new(global.quiet));
    let (repo, head) = change(home, args, candidate.as_ref(), &progress)?;
    let base = repo.parent(&head)?;
    if let Some(candidate) = &candidate
        && candidate.base != base.as_str()
    {
        let message = format!("the candidate is a change of {}, but {head} is one of {base}", candidate.base);
        return Err(Failure::bad_input(message)
            .hint("the file was made from another history: curate this repository, and choose anew"));
    }
    let info = repo.info(&head)?;
    let diff = repo.diff(&base, &head, Renames::Off)?;
    let patch = Patch::parse(&diff).map_err(|error| Failure::bad_input(format!("commit {head}: {error}")))?;
    let tests = TestPart::of(&patch);
    if tests.official.is_empty() {
        let message = format!("commit {head} adds or changes no test file (test_*.py or *_test.py)");
        return Err(Failure::bad_input(message)
            .hint("a task needs official tests: choose a change that brings its own"));
    }
    let split = infradev_executor::split(&repo, &base, &head, &tests.roots, &tests.official)?;

    let title = draft::title(&info);
    let id = match &args.id {
        Some(id) => id.clone(),
        None => draft::id(&title),
    };
    if !is_name(&id) {
        let message = format!("`{id}` can't be a task's id: it is lower-case letters, digits and dashes");
        return Err(Failure::usage(message).hint("give another with --id"));
    }
    let from_base = || match &candidate {
        Some(_) => Ok(Some(proposed(&repo, &base)?)),
        None => Ok(None),
    };
    let (pack, proposal) = PackPlan::of(args, &from_base)?;
    let folder = args.pack.join("tasks").join(&id);
    if folder.exists() && !args.force {
        let message = format!("there is a task {id} already: {}", folder.display());
        return Err(Failure::usage(message).hint("give another id with --id, or replace it with --force"));
    }
    let paths: Vec<String> =
        patch.files.iter().map(|file| String::from_utf8_lossy(&file.new_path).into_owned()).collect();
    let told = Told { title: &title, body: &info.body, labels: &[] };
    let (area, kind) = match &candidate {
        Some(candidate) => (candidate.facts.area.clone(), candidate.facts.kind.clone()),
        None => (infradev_curate::area(&told, &paths), infradev_curate::kind(&told, None)),
    };
    let worlds = worlds(args, candidate.as_ref());
    let draft = TaskDraft {
        id: &id,
        title: &title,
        area: area.is,
        kind: kind.is,
        because: draft::because(&area.evidence, &kind.evidence, candidate.as_ref()),
        environment: &pack.environment,
        worlds: &worlds,
        gpus: gpus(candidate.as_ref(), &worlds),
        base: base.as_str(),
        head: head.as_str(),
        tests: &tests,
        import_roots: &import_roots(&repo, &head)?,
    };
    let task_toml = draft.text();
    TaskSpec::parse("task.toml", task_toml.as_bytes())?;
    pack.write(&args.pack)?;
    let pull = candidate.as_ref().and_then(|candidate| candidate.pull.as_ref());
    let texts = [
        ("task.toml", task_toml.as_str()),
        ("spec.md", &draft::spec(&title, pull.map_or(&info.body, |pull| &pull.body))),
        ("contract.toml", draft::CONTRACT),
        ("description.md", &draft::description(&info, pull)),
    ];
    write_task(&folder, &texts)?;

    let count = |patch: &[u8]| Patch::parse(patch).map_or(0, |patch| patch.files.len() as u32);
    let (golden, official) = (count(&split.golden), count(&split.official));
    let mut text = format!(
        "{}\n  base {base}\n  head {head}\n  golden changes {}, the tests {}; official: {}\n",
        folder.display(),
        counted(golden, "file"),
        counted(official, "file"),
        tests.official.join(", "),
    );
    if let Some(proposal) = &proposal {
        for said in &proposal.said {
            let _ = writeln!(text, "  proposed: {}", visible(said));
        }
        for left in &proposal.left {
            let _ = writeln!(text, "  not done: {}", visible(left));
        }
    }
    let command = pack.lock_command(&args.pack);
    let _ = write!(
        text,
        "Next: check task.toml, write spec.md and contract.toml, then\n{}  infradev grade {} --patches golden\n",
        command.as_ref().map(|command| format!("  {command}\n")).unwrap_or_default(),
        folder.display(),
    );
    report::print(text)?;
    Ok((folder, command))
}

/// The repository and the change in it.
fn change(
    home: &Home,
    args: &NewArgs,
    candidate: Option<&Candidate>,
    progress: &Shown,
) -> Result<(Repo, CommitId), Failure> {
    if let Some(commit) = candidate.map(|candidate| &candidate.commit).or(args.commit.as_ref()) {
        return Ok(infradev_executor::resolve(home, &args.repo, commit, progress)?);
    }
    let number = args.pr.unwrap_or_default();
    let repo = infradev_executor::repository(home, &args.repo, progress)?;
    let commit = match repo.find_pr(number) {
        Err(GitError::NoSuchPullRequest { .. }) if !Path::new(&args.repo).exists() => {
            repo.update()?;
            repo.find_pr(number)?
        }
        found => found?,
    };
    Ok((repo, commit))
}

/// The sizes that were asked for, else the one that a candidate's tests need.
fn worlds(args: &NewArgs, candidate: Option<&Candidate>) -> Vec<u32> {
    if !args.worlds.is_empty() {
        return args.worlds.clone();
    }
    vec![candidate.map_or(1, |candidate| candidate.facts.needs.world.clamp(1, 64))]
}

/// A GPU a rank, where a candidate's tests ask for CUDA.
fn gpus(candidate: Option<&Candidate>, worlds: &[u32]) -> u32 {
    let on_gpus = candidate.is_some_and(|candidate| candidate.facts.needs.device == Device::Cuda);
    if on_gpus { worlds.iter().copied().max().unwrap_or(1) } else { 0 }
}

/// An environment proposed from the base's own files.
fn proposed(repo: &Repo, base: &CommitId) -> Result<Proposal, Failure> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for entry in repo.ls_tree(base)? {
        let Ok(path) = std::str::from_utf8(&entry.path) else { continue };
        if is_read_for_proposal(path) {
            files.insert(path.to_owned(), repo.show(base, &entry.path)?);
        }
    }
    Ok(propose(&files))
}

/// `src` first where the tree keeps packages there.
fn import_roots(repo: &Repo, head: &CommitId) -> Result<Vec<String>, Failure> {
    let entries = repo.ls_tree(head)?;
    let has_src = entries.iter().any(|entry| {
        let path = String::from_utf8_lossy(&entry.path);
        path.starts_with("src/") && path.ends_with("/__init__.py") && path.split('/').count() == 3
    });
    Ok(if has_src { vec!["src".into(), ".".into()] } else { vec![".".into()] })
}

/// Makes the folder aside and gives it its name in one step. One that is replaced is there until the new one stands.
fn write_task(folder: &Path, texts: &[(&str, &str)]) -> Result<(), Failure> {
    let tasks: PathBuf = folder.parent().unwrap_or(Path::new(".")).to_path_buf();
    fs::create_dir_all(&tasks).map_err(failed(&tasks))?;
    // Hidden, so that a reader of the pack passes it over.
    let aside = tempfile::Builder::new().prefix(".new-").tempdir_in(&tasks).map_err(failed(&tasks))?;
    let new = aside.path().join("task");
    for part in ["probes", "adversarial"] {
        let path = new.join(part);
        fs::create_dir_all(&path).map_err(failed(&path))?;
    }
    for (name, text) in texts {
        let path = new.join(name);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    if folder.exists() {
        let old = aside.path().join("old");
        fs::rename(folder, &old).map_err(failed(folder))?;
        if let Err(error) = fs::rename(&new, folder) {
            let _ = fs::rename(&old, folder);
            return Err(failed(folder)(error));
        }
        return Ok(());
    }
    fs::rename(&new, folder).map_err(failed(folder))
}
