//! Looking at a task without a trial: which probe cases it has, and a shell where its code under test runs.

use std::io;
use std::os::fd::OwnedFd;

use infradev_sandbox::{Sandbox, SandboxEnd};
use infradev_supervise::Sink;
use nix::unistd::dup;

use crate::building::{self, BuildError};
use crate::inside::{self, JudgeStartError, View};
use crate::judge::JudgeError;
use crate::trial::{TrialError, TrialSpec};
use crate::workspace::{Ingredients, PrepareError, TwinChoice, Workspace};

/// One probe case, as the judge collected it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCase {
    /// `probes/judge_x.py::name[world=2]`.
    pub id: String,
    /// The property that it checks.
    pub checks: String,
    /// Free words.
    pub traits: Vec<String>,
}

/// The probe cases of the spec's task at its world size, in collection order. No code under test runs.
pub async fn probe_cases(spec: &TrialSpec) -> Result<Vec<FoundCase>, TrialError> {
    if spec.task.probes.is_empty() {
        return Ok(Vec::new());
    }
    let task = spec.task.id().to_string();
    let judge = tokio::select! {
        () = infradev_supervise::cancel_requested() => return Err(TrialError::Cancelled),
        judge = inside::start_judge(spec) => judge,
    };
    let judge = judge.map_err(|error| match error {
        JudgeStartError::Judge(error @ JudgeError::Author { .. }) => {
            TrialError::Task { task, what: error.to_string() }
        }
        error => TrialError::Machine { what: error.to_string() },
    })?;
    let cases = judge.judge.cases.iter().map(|case| FoundCase {
        id: case.id.clone(),
        checks: case.checks.clone(),
        traits: case.traits.clone(),
    });
    let cases = cases.collect();
    judge.end().await;
    let _ = std::fs::remove_dir_all(&spec.scratch);
    Ok(cases)
}

/// Streams of the shell: ends of pipes, or of a terminal.
#[derive(Debug)]
pub struct Streams {
    /// What is typed.
    pub input: OwnedFd,
    /// What is shown.
    pub output: OwnedFd,
}

/// Opens a shell in the sandbox of a trial: the patched tree with the official tests laid over, the environment first on
/// PATH, a rank's uid, no network. Returns when the shell ends.
pub async fn shell(spec: &TrialSpec, streams: Streams) -> Result<SandboxEnd, TrialError> {
    let task = spec.task.id().to_string();
    let machine = |error: &dyn std::fmt::Display| TrialError::Machine { what: error.to_string() };
    let layer = building::layer_of(spec).await.map_err(|error| match error {
        BuildError::Failed(failure) => TrialError::Task { task: task.clone(), what: failure.why },
        BuildError::Fault(_, evidence) => machine(&evidence),
    })?;
    let ingredients = Ingredients {
        trees: &spec.trees,
        tree: &spec.tree,
        sharing: infradev_store::Sharing::Private,
        patch: &spec.patch,
        official: Some(spec.task.official.as_slice()),
        golden: &spec.task.golden,
        tests: &spec.task.public.spec.tests,
        build: spec.task.public.spec.build.as_ref(),
        layer: layer.as_ref(),
        scratch: &spec.scratch,
        twins: TwinChoice::Nothing,
        seed: spec.seed,
    };
    let workspace = Workspace::prepare(&ingredients).map_err(|error| match error {
        PrepareError::NotApplied(why) => {
            TrialError::Task { task: task.clone(), what: format!("the patch does not apply: {why}") }
        }
        PrepareError::Task { what } => TrialError::Task { task: task.clone(), what },
        error => machine(&error),
    })?;
    let (mut sandbox, view) = inside::view(spec, &workspace, true).map_err(|error| machine(&error))?;
    let View { paths, uids } = view;
    let copy = || -> io::Result<OwnedFd> { Ok(dup(&streams.output)?) };
    sandbox.stdout = Sink::Fd(copy().map_err(|error| machine(&error))?);
    sandbox.stderr = Sink::Fd(copy().map_err(|error| machine(&error))?);
    sandbox.stdin = Some(streams.input);
    sandbox.cwd = paths.workspace.clone().into();
    let roots = spec.task.public.spec.tests.import_roots.iter().map(|root| match root.as_str() {
        "." => paths.workspace.clone(),
        root => format!("{}/{root}", paths.workspace),
    });
    let path: Vec<String> = [paths.kit.clone()].into_iter().chain(roots).collect();
    let bin = spec.environment.python.parent().map(|bin| bin.to_string_lossy().into_owned());
    let set = [
        ("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.unwrap_or_default())),
        ("PYTHONPATH", path.join(":")),
        ("WORLD_SIZE", spec.inputs.world.to_string()),
        ("TERM", std::env::var("TERM").unwrap_or_else(|_| "dumb".into())),
        ("PS1", format!("{} \\w $ ", spec.task.id())),
    ];
    sandbox.env.retain(|(name, _)| !set.iter().any(|(known, _)| name == known));
    sandbox.env.extend(set.map(|(name, value)| (name.into(), value.into())));
    let own = &spec.task.public.spec.tests.env;
    sandbox.env.extend(own.iter().map(|(name, value)| (name.into(), value.into())));
    let rank = uids.as_ref().filter(|_| infradev_sandbox::uid_separation_granted());
    let rank = rank.map(|lease| lease.uids.ranks_base).map_or("None".to_string(), |uid| uid.to_string());
    sandbox.args = vec!["-c".into(), SHELL.replace("RANK", &rank).into()];
    let mut sandbox = Sandbox::start(sandbox).await.map_err(|error| machine(&error))?;
    let end = sandbox.wait().await.map_err(|error| machine(&error))?;
    let _ = std::fs::remove_dir_all(&spec.scratch);
    Ok(end)
}

/// Takes the terminal, if it is one, and a rank's uid; then becomes a shell.
const SHELL: &str = r#"
import fcntl, os, termios
if os.isatty(0):
    try:
        os.setsid()
    except OSError:
        pass
    try:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    except OSError:
        pass
uid = RANK
if uid is not None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
os.environ.pop("INFRADEV_CONTROL_FD", None)
shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
flags = ["--norc"] if shell.endswith("bash") else []
os.execv(shell, [shell, *flags] + (["-i"] if os.isatty(0) else []))
"#;
