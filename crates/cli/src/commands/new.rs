//! `infradev new`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use infradev_git::{CommitId, GitError, Renames, Repo};
use infradev_model::{Canary, Pack, TaskSpec, is_name};
use infradev_patch::Patch;
use infradev_store::Home;

use crate::cli::{Global, NewArgs};
use crate::draft::{self, TaskDraft, TestPart};
use crate::files::{failed, write_whole};
use crate::progress::{Shown, counted};
use crate::report::{self, Failure};
use crate::session::{self, nearest};

/// Makes a task of a merged change.
pub fn run(global: &Global, args: NewArgs) -> Result<ExitCode, Failure> {
    if let Some(twice) = args.worlds.iter().enumerate().find(|(at, world)| args.worlds[..*at].contains(world))
    {
        return Err(Failure::usage(format!("--worlds names {} twice", twice.1)));
    }
    let home = session::home(global)?;
    let _scratch = session::scratch(&home)?;
    let progress = Arc::new(Shown::new(global.quiet));
    let (repo, head) = change(&home, &args, &progress)?;
    let base = repo.parent(&head)?;
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
    let pack = PackPlan::of(&args)?;
    let folder = args.pack.join("tasks").join(&id);
    if folder.exists() && !args.force {
        let message = format!("there is a task {id} already: {}", folder.display());
        return Err(Failure::usage(message).hint("give another id with --id, or replace it with --force"));
    }
    let paths: Vec<String> =
        patch.files.iter().map(|file| String::from_utf8_lossy(&file.new_path).into_owned()).collect();
    let draft = TaskDraft {
        id: &id,
        title: &title,
        area: infradev_curate::area(&title, &paths).is,
        kind: infradev_curate::kind(&title, None).is,
        environment: &pack.environment,
        worlds: &args.worlds,
        base: base.as_str(),
        head: head.as_str(),
        tests: &tests,
        import_roots: &import_roots(&repo, &head)?,
    };
    let task_toml = draft.text();
    TaskSpec::parse("task.toml", task_toml.as_bytes())?;
    pack.write(&args.pack)?;
    let texts = [
        ("task.toml", task_toml.as_str()),
        ("spec.md", &draft::spec(&title, &info)),
        ("contract.toml", draft::CONTRACT),
        ("description.md", &draft::description(&info)),
    ];
    write_task(&folder, &texts)?;

    let count = |patch: &[u8]| Patch::parse(patch).map_or(0, |patch| patch.files.len() as u32);
    let (golden, official) = (count(&split.golden), count(&split.official));
    report::print(format!(
        "{}\n  base {base}\n  head {head}\n  golden changes {}, the tests {}; official: {}\n\
         Next: check task.toml, write spec.md and contract.toml, then\n  infradev grade {} --patches golden\n",
        folder.display(),
        counted(golden, "file"),
        counted(official, "file"),
        tests.official.join(", "),
        folder.display(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The repository and the change in it.
fn change(home: &Home, args: &NewArgs, progress: &Shown) -> Result<(Repo, CommitId), Failure> {
    if let Some(commit) = &args.commit {
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

/// `src` first where the tree keeps packages there.
fn import_roots(repo: &Repo, head: &CommitId) -> Result<Vec<String>, Failure> {
    let entries = repo.ls_tree(head)?;
    let has_src = entries.iter().any(|entry| {
        let path = String::from_utf8_lossy(&entry.path);
        path.starts_with("src/") && path.ends_with("/__init__.py") && path.split('/').count() == 3
    });
    Ok(if has_src { vec!["src".into(), ".".into()] } else { vec![".".into()] })
}

/// The pack that the task goes to: one that is there, or a new one.
struct PackPlan {
    environment: String,
    /// pack.toml and the lock, for a new pack.
    new: Option<(String, Option<Vec<u8>>)>,
}

impl PackPlan {
    fn of(args: &NewArgs) -> Result<PackPlan, Failure> {
        let path = args.pack.join("pack.toml");
        if path.is_file() { PackPlan::there(args, &path) } else { PackPlan::fresh(args) }
    }

    fn there(args: &NewArgs, path: &Path) -> Result<PackPlan, Failure> {
        let shown = path.display();
        let bytes = fs::read(path).map_err(|error| Failure::bad_input(format!("{shown}: {error}")))?;
        let pack = Pack::parse(&shown.to_string(), &bytes)?;
        if args.interpreter.is_some() || args.lock.is_some() {
            let message = format!("{shown} is there already, and so are its environments");
            return Err(Failure::usage(message)
                .hint("add another to pack.toml by hand, then name it with --environment"));
        }
        let Some(git) = &pack.source.git else {
            return Err(Failure::bad_input(format!(
                "{shown} bundles its base tree; a task from commits needs `source.git`"
            ))
            .hint("give another folder with --pack"));
        };
        let theirs = if Path::new(git).is_absolute() || is_url(git) {
            git.clone()
        } else {
            args.pack.join(git).to_string_lossy().into_owned()
        };
        if place(&theirs) != place(&args.repo) {
            return Err(Failure::bad_input(format!("{shown} is over {git}, not over {}", args.repo))
                .hint("give another folder with --pack"));
        }
        let known: Vec<String> = pack.environments.keys().cloned().collect();
        let environment = match (&args.environment, &known[..]) {
            (Some(name), _) if known.contains(name) => name.clone(),
            (Some(name), _) => {
                let hint = match nearest(name, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", known.join(", ")),
                };
                return Err(Failure::usage(format!("{shown} has no environment `{name}`")).hint(hint));
            }
            (None, [one]) => one.clone(),
            (None, _) => {
                return Err(Failure::usage(format!("{shown} has {} environments", known.len()))
                    .hint(format!("choose with --environment: {}", known.join(", "))));
            }
        };
        Ok(PackPlan { environment, new: None })
    }

    fn fresh(args: &NewArgs) -> Result<PackPlan, Failure> {
        let environment = args.environment.clone().unwrap_or_else(|| "cpu".into());
        if !is_name(&environment) {
            return Err(Failure::usage(format!("`{environment}` can't be an environment's name"))
                .hint("it is lower-case letters, digits and dashes"));
        }
        let absolute = std::path::absolute(&args.pack)
            .map_err(|error| Failure::bad_input(format!("{}: {error}", args.pack.display())))?;
        let name = absolute.file_name().map(|name| draft::id(&name.to_string_lossy())).unwrap_or_default();
        if !is_name(&name) {
            return Err(Failure::usage(format!("{} is no name for a pack", args.pack.display()))
                .hint("a pack is named after its folder: lower-case letters, digits and dashes"));
        }
        let git = place(&args.repo);
        let quoted = |text: &str| toml::Value::String(text.to_string()).to_string();
        let (entry, lock) = match (&args.interpreter, &args.lock) {
            (Some(interpreter), _) => (format!("interpreter = {}", quoted(&executable(interpreter)?)), None),
            (None, Some(file)) => {
                let bytes = fs::read(file)
                    .map_err(|error| Failure::bad_input(format!("{}: {error}", file.display())))?;
                infradev_pyenv::Lock::parse(&bytes, file)?;
                let python = args.python.clone().unwrap_or_default();
                let lock = quoted(&format!("envs/{environment}.lock"));
                (format!("python = {}\nlock = {lock}", quoted(&python)), Some(bytes))
            }
            (None, None) => {
                return Err(Failure::usage(format!(
                    "{} holds no pack yet, and a new one needs an environment",
                    args.pack.display()
                ))
                .hint("give --interpreter PATH, or --lock FILE with --python VERSION"));
            }
        };
        let text = format!(
            "schema = 1\nname = {}\nversion = \"0.1.0\"\n# In every sealed file of the pack, and in no public one.\ncanary = {}\n# Of the pack's own files: specs, contracts, probes.\nlicense = \
             \"Apache-2.0\"\n\n[source]\ngit = {}\n\n[environments.{environment}]\n{entry}\n# Imported once a trial, before the \
             ranks are forked, such as [\"torch\"].\nframework = []\n",
            quoted(&name),
            quoted(Canary::of_bits(rand::random()).guid()),
            quoted(&git),
        );
        Pack::parse("pack.toml", text.as_bytes())?;
        Ok(PackPlan { environment, new: Some((text, lock)) })
    }

    /// Writes a new pack: its lock, then pack.toml; each whole or not at all.
    fn write(&self, folder: &Path) -> Result<(), Failure> {
        let Some((text, lock)) = &self.new else { return Ok(()) };
        if let Some(lock) = lock {
            write_whole(&folder.join("envs").join(format!("{}.lock", self.environment)), lock)?;
        }
        write_whole(&folder.join("pack.toml"), text.as_bytes())
    }
}

/// An absolute path of a program.
fn executable(path: &Path) -> Result<String, Failure> {
    // Not resolved: a virtual environment's interpreter is a link, and what it is called by decides what it sees.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let runs =
        fs::metadata(&absolute).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if !runs {
        return Err(Failure::bad_input(format!("{}: there is no such program", path.display()))
            .hint("--interpreter is the path of a Python interpreter"));
    }
    Ok(absolute.to_string_lossy().into_owned())
}

fn is_url(repo: &str) -> bool {
    repo.split('/').next().is_some_and(|first| first.contains(':'))
}

/// A repository's path without links; a url as it is.
fn place(repo: &str) -> String {
    fs::canonicalize(repo).map_or_else(|_| repo.to_string(), |path| path.to_string_lossy().into_owned())
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
