//! What the verbs that run trials share: the store, the pack, the executor, the run that is begun or resumed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use infradev_agent::{AgentError, Endpoint, GivenKey, Installed};
use infradev_executor::{Commits, Executor, Settings};
use infradev_model::{Digest, DigestBuilder, PublicTask, SealedTask};
use infradev_sandbox::Kind;
use infradev_store::{Home, LoadedPack, Plan, RunEvent, RunFolder, Runs, Scratch, load_pack};

use crate::cli::{AgentArgs, Global};
use crate::commands::prompt::describe;
use crate::progress::{Shown, counted};
use crate::report::{self, Failure};

/// The store that a command uses.
pub fn home(global: &Global) -> Result<Home, Failure> {
    Ok(match &global.home {
        Some(folder) => Home::at(folder)?,
        None => Home::locate()?,
    })
}

/// Room in the store for all temporary files of this process, in place of the system's temporary folder: what a kill leaves is
/// removed by the next command on this store.
pub fn scratch(home: &Home) -> Result<Scratch, Failure> {
    let scratch = home.scratch()?;
    // Another setting could only come from here, where it would lie in the same folder.
    let _ = tempfile::env::override_temp_dir(scratch.path());
    Ok(scratch)
}

/// The same for a verb that only reads: in a store that cannot be written, the system's temporary folder serves.
pub fn room(home: &Home) -> Result<Option<Scratch>, Failure> {
    match home.scratch() {
        Err(error) if error.is_read_only() => Ok(None),
        Err(error) => Err(error.into()),
        Ok(scratch) => {
            let _ = tempfile::env::override_temp_dir(scratch.path());
            Ok(Some(scratch))
        }
    }
}

/// One invocation of a verb that runs trials.
pub struct Session {
    /// The store.
    pub home: Home,
    /// Who is told.
    pub progress: Arc<Shown>,
    kind: Kind,
    jobs: usize,
    judge_python: Option<PathBuf>,
    quiet: bool,
    _scratch: Option<Scratch>,
}

impl Session {
    /// Sets up.
    pub fn new(global: &Global, kind: Kind, jobs: u16) -> Result<Session, Failure> {
        let home = home(global)?;
        let scratch = Some(scratch(&home)?);
        Ok(Session::with(global, home, scratch, kind, jobs))
    }

    /// The same for a verb that only reads, which does without a store that can be written where all it needs is there.
    pub fn reading(global: &Global, kind: Kind) -> Result<Session, Failure> {
        let home = home(global)?;
        let scratch = room(&home)?;
        Ok(Session::with(global, home, scratch, kind, 1))
    }

    fn with(global: &Global, home: Home, scratch: Option<Scratch>, kind: Kind, jobs: u16) -> Session {
        Session {
            _scratch: scratch,
            home,
            progress: Arc::new(Shown::new(global.quiet)),
            kind,
            jobs: usize::from(jobs),
            judge_python: global.judge_python.clone(),
            quiet: global.quiet,
        }
    }

    /// Reads a pack, or one task of it.
    pub fn load(&self, path: &Path) -> Result<LoadedPack, Failure> {
        let history = Commits { home: &self.home, progress: self.progress.as_ref() };
        Ok(load_pack(path, &history)?)
    }

    /// Sets up where trials run, each from a seed of its own.
    pub fn executor(&self) -> Result<Executor, Failure> {
        self.executor_from(None)
    }

    /// The same; all seeds are drawn from this one.
    pub fn executor_from(&self, seed: Option<u64>) -> Result<Executor, Failure> {
        Ok(Executor::new(Settings {
            seed,
            home: self.home.clone(),
            sandbox: self.kind,
            slots: self.jobs,
            progress: self.progress.clone(),
            judge_python: self.judge_python.clone(),
        })?)
    }

    /// Begins a run, or resumes the unfinished one of the same plan.
    pub fn start(&self, plan: &Plan) -> Result<RunFolder, Failure> {
        let (run, resumed) = Runs::new(self.home.runs()).start(plan)?;
        if let Some(torn) = run.torn() {
            report::warn(format!(
                "{}:{}: {}; the line was cut off",
                run.path().join("journal.jsonl").display(),
                torn.line,
                torn.what
            ));
        }
        if resumed && !self.quiet {
            report::note(format!("resuming run {} ({})", run.id(), done(run.path(), &plan.verb)));
        }
        Ok(run)
    }

    /// What a stage made of the run; where the input was refused, the run says so from then on.
    pub fn concluded<T, E: Into<Failure>>(
        &self,
        run: &RunFolder,
        outcome: Result<T, E>,
    ) -> Result<T, Failure> {
        outcome.map_err(|error| {
            let failure = error.into();
            if let Some(what) = failure.refusal() {
                // The error itself is what the person needs to read.
                let _ = run.record(&RunEvent::Refused { what: what.to_string() });
            }
            failure
        })
    }

    /// An agent by its name, installed, and the endpoint of its models.
    pub fn agent(
        &self,
        name: &str,
        args: &AgentArgs,
        models: &[String],
    ) -> Result<(Installed, Option<Endpoint>), Failure> {
        let (known, endpoint) = asked(name, args, models, true)?;
        let say = |text: &str| self.progress.line(text);
        Ok((infradev_agent::install(&self.home, &known, args.folder.as_deref(), &say)?, endpoint))
    }

    /// The same for a plan: nothing is installed, and no key is asked for.
    pub fn planned_agent(
        &self,
        name: &str,
        args: &AgentArgs,
        models: &[String],
    ) -> Result<(Installed, Option<Endpoint>), Failure> {
        let (known, endpoint) = asked(name, args, models, false)?;
        Ok((Installed::before(&known, args.folder.as_deref())?, endpoint))
    }

    /// Gives a task the description of its pull request, where it has none of its own.
    pub fn describe(&self, task: &mut PublicTask) -> Result<(), Failure> {
        describe(&self.home, self.progress.as_ref(), task)
    }

    /// All runs of the store.
    pub fn runs(&self) -> Runs {
        Runs::new(self.home.runs())
    }

    /// The plan of a verb over tasks of a pack; `more` is whatever else decides what is asked.
    pub fn plan(&self, verb: &str, pack: &LoadedPack, more: &[(&str, Vec<u8>)]) -> Plan {
        let mut digest = DigestBuilder::new("infradev plan v1");
        digest.part("verb", verb.as_bytes()).part("pack", pack.pack.name.as_bytes());
        digest.part("sandbox", format!("{:?}", self.kind).as_bytes());
        for task in &pack.tasks {
            digest.part(task.task.id(), task.digest.as_str().as_bytes());
        }
        for (name, bytes) in more {
            digest.part(name, bytes);
        }
        let command = std::env::args().collect();
        Plan { verb: verb.into(), pack: pack.pack.name.clone(), command, digest: digest.finish() }
    }
}

/// What a run has finished: `3 trials are done`, or mutants where the verb tries those.
fn done(run: &Path, verb: &str) -> String {
    let trials = std::fs::read_dir(run.join("trials")).map_or(0, Iterator::count);
    let of_mutants = |name: &str| name.starts_with("mutants-") && name.ends_with(".jsonl");
    let files = std::fs::read_dir(run).into_iter().flatten().flatten();
    let journals = files.filter(|file| file.file_name().to_str().is_some_and(of_mutants));
    let lines = |bytes: Vec<u8>| bytes.iter().filter(|byte| **byte == b'\n').count();
    let mutants: usize = journals.filter_map(|file| std::fs::read(file.path()).ok()).map(lines).sum();
    let tries_mutants = ["synthesize", "probe-gaps"].contains(&verb);
    let (count, what) =
        if mutants > 0 || (tries_mutants && trials == 0) { (mutants, "mutant") } else { (trials, "trial") };
    let are = if count == 1 { "is" } else { "are" };
    format!("{} {are} done", counted(u32::try_from(count).unwrap_or(u32::MAX), what))
}

/// Those of a pack's tasks that are asked for by id; all of them where none is.
pub fn select(pack: &mut LoadedPack, wanted: &[String]) -> Result<(), Failure> {
    let known: Vec<String> = pack.tasks.iter().map(|task| task.task.id().to_string()).collect();
    check_ids(&pack.pack.name, wanted, &known)?;
    if !wanted.is_empty() {
        pack.tasks.retain(|task| wanted.iter().any(|wanted| wanted == task.task.id()));
    }
    Ok(())
}

/// Refuses an id that a pack has no task of.
pub fn check_ids(pack: &str, wanted: &[String], known: &[String]) -> Result<(), Failure> {
    let Some(unknown) = wanted.iter().find(|wanted| !known.contains(wanted)) else { return Ok(()) };
    let hint = nearest(unknown, known).map_or_else(
        || format!("its tasks are {}", known.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Err(Failure::usage(format!("pack {pack} has no task `{unknown}`")).hint(hint))
}

/// The known word that is closest to an unknown one, if any is close.
pub fn nearest<'a>(word: &str, known: &'a [String]) -> Option<&'a str> {
    let scored = known.iter().map(|known| (strsim::jaro_winkler(word, known), known.as_str()));
    scored.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// The tasks themselves.
pub fn tasks(pack: LoadedPack) -> Vec<Arc<SealedTask>> {
    pack.tasks.into_iter().map(|task| Arc::new(task.task)).collect()
}

/// Bytes of a text's digest, for plans.
pub fn digest_bytes(bytes: &[u8]) -> Vec<u8> {
    Digest::of(bytes).as_str().as_bytes().to_vec()
}

/// The one task that a folder holds.
pub fn one<T>(folder: &Path, mut tasks: Vec<T>, id: impl Fn(&T) -> String) -> Result<T, Failure> {
    if tasks.len() > 1 {
        let message = format!("{} is a pack of {} tasks", folder.display(), tasks.len());
        let folders = tasks.iter().map(|task| format!("{}/tasks/{}", folder.display(), id(task)));
        let hint = format!("give the folder of one: {}", folders.collect::<Vec<_>>().join(", "));
        return Err(Failure::usage(message).hint(hint));
    }
    Ok(tasks.remove(0))
}

/// An agent by its name, and the endpoint of its models; whether a key is asked for is the caller's to say.
fn asked(
    name: &str,
    args: &AgentArgs,
    models: &[String],
    keyed: bool,
) -> Result<(infradev_agent::KnownAgent, Option<Endpoint>), Failure> {
    let known = infradev_agent::find(name, args.agents.as_deref())?;
    let endpoint = endpoint(&known.spec, args, models, keyed)?;
    Ok((known, endpoint))
}

/// The models' endpoint with its key; none for an agent that needs no model.
fn endpoint(
    spec: &infradev_model::AgentSpec,
    args: &AgentArgs,
    models: &[String],
    needs_key: bool,
) -> Result<Option<Endpoint>, Failure> {
    let each = models.iter().map(|model| Some(model.as_str()));
    for model in each.chain(models.is_empty().then_some(None)) {
        infradev_agent::check(spec, model, args.command.as_deref())?;
    }
    let Some(model) = &spec.model else {
        return match args.base_url {
            Some(_) => Err(AgentError::ModelUnasked { agent: spec.name.clone() }.into()),
            None => Ok(None),
        };
    };
    let set = |name: &String| {
        let text = std::env::var_os(name).filter(|text| !text.is_empty())?;
        Some(GivenKey { variable: name.clone(), text })
    };
    let key = model.key_env.iter().find_map(set);
    if needs_key && key.is_none() && args.base_url.is_none() && !model.key_env.is_empty() {
        let (endpoint, variables) = (model.base_url.clone(), model.key_env.clone());
        return Err(AgentError::NoKey { endpoint, variables }.into());
    }
    Ok(Some(Endpoint::new(args.base_url.as_deref().unwrap_or(&model.base_url), key)?))
}

/// Where this program is, for sandboxes in which a part of it runs.
pub fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::fault(format!("cannot tell where this program is: {error}")))
}
