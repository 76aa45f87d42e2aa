//! The pack that a new task goes to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use infradev_model::{Canary, Pack, is_name};
use infradev_pyenv::Proposal;

use crate::cli::NewArgs;
use crate::draft;
use crate::files::write_whole;
use crate::report::Failure;
use crate::session::nearest;

/// The pack that the task goes to: one that is there, or a new one.
pub struct PackPlan {
    /// The environment that the task names.
    pub environment: String,
    new: Option<New>,
}

/// What a new pack is made of.
struct New {
    text: String,
    lock: Option<Vec<u8>>,
    /// What a lock is to be made from.
    requirements: Option<String>,
    python: String,
}

impl PackPlan {
    /// The plan; `propose` is asked for an environment where a new pack is given none.
    pub fn of(
        args: &NewArgs,
        propose: &dyn Fn() -> Result<Option<Proposal>, Failure>,
    ) -> Result<(PackPlan, Option<Proposal>), Failure> {
        let path = args.pack.join("pack.toml");
        if path.is_file() {
            return Ok((PackPlan::there(args, &path)?, None));
        }
        let proposal = if args.interpreter.is_none() && args.lock.is_none() { propose()? } else { None };
        Ok((PackPlan::fresh(args, proposal.as_ref())?, proposal))
    }

    /// The command that makes the lock, where there is none yet.
    pub fn lock_command(&self, folder: &Path) -> Option<String> {
        let new = self.new.as_ref().filter(|new| new.requirements.is_some())?;
        let file = folder.join("envs").join(&self.environment);
        Some(format!(
            "uv pip compile --generate-hashes --python-version {} {}.in -o {}.lock",
            new.python,
            file.display(),
            file.display()
        ))
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

    fn fresh(args: &NewArgs, proposal: Option<&Proposal>) -> Result<PackPlan, Failure> {
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
        let lock_entry = |python: &str| {
            let lock = quoted(&format!("envs/{environment}.lock"));
            format!("python = {}\nlock = {lock}", quoted(python))
        };
        let python = args.python.clone().unwrap_or_default();
        let mut requirements = None;
        let (entry, lock) = match (&args.interpreter, &args.lock, proposal) {
            (Some(interpreter), _, _) => {
                (format!("interpreter = {}", quoted(&executable(interpreter)?)), None)
            }
            (None, Some(file), _) => {
                let bytes = fs::read(file)
                    .map_err(|error| Failure::bad_input(format!("{}: {error}", file.display())))?;
                infradev_pyenv::Lock::parse(&bytes, file)?;
                (lock_entry(&python), Some(bytes))
            }
            (None, None, Some(proposal)) if proposal.lock.is_some() || proposal.requirements.is_some() => {
                requirements = proposal.requirements.clone();
                (lock_entry(&proposal.python), proposal.lock.clone().map(String::into_bytes))
            }
            (None, None, _) => {
                return Err(Failure::usage(format!(
                    "{} holds no pack yet, and a new one needs an environment",
                    args.pack.display()
                ))
                .hint(match proposal {
                    Some(proposal) => format!(
                        "none could be proposed ({}): give --interpreter PATH, or --lock FILE with --python VERSION",
                        proposal.left.join("; ")
                    ),
                    None => "give --interpreter PATH, or --lock FILE with --python VERSION".to_owned(),
                }));
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
        let python = proposal.map_or(python, |proposal| proposal.python.clone());
        Ok(PackPlan { environment, new: Some(New { text, lock, requirements, python }) })
    }

    /// Writes a new pack: its lock, then pack.toml; each whole or not at all.
    ///
    /// # Errors
    /// A folder that can't be written.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let Some(new) = &self.new else { return Ok(()) };
        let file = |extension: &str| folder.join("envs").join(format!("{}.{extension}", self.environment));
        if let Some(lock) = &new.lock {
            write_whole(&file("lock"), lock)?;
        }
        if let Some(requirements) = &new.requirements {
            write_whole(&file("in"), requirements.as_bytes())?;
        }
        write_whole(&folder.join("pack.toml"), new.text.as_bytes())
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
