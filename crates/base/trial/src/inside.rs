//! What runs inside: the launcher's sandbox with the trees in view, and the judge's, where no repository is mounted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_model::SandboxReport;
use infradev_sandbox::{Kind, Limits, LockFolder, Mode, Mount, Network, Sandbox, SandboxSpec, UidLease};
use infradev_supervise::{LogBounds, LogSink, Sink};
use tokio::net::UnixStream;

use crate::judge::{Judge, JudgeError};
use crate::launcher::{Launcher, LauncherError};
use crate::layering::base_of;
use crate::messages::LauncherUids;
use crate::ranks::{InsidePaths, WorldSetup};
use crate::trial::TrialSpec;
use crate::workspace::Workspace;

/// Number of the control channel inside.
const CONTROL: i32 = 3;
/// Where the base tree's bytecode is seen.
const BYTECODE: &str = "/infradev/bytecode";
/// How long the framework's import may take.
const IMPORT: Duration = Duration::from_secs(300);
/// How long the judge may take to collect.
const COLLECT: Duration = Duration::from_secs(120);

/// Why the launcher did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The sandbox.
    #[error("{0}")]
    Sandbox(String),
    /// The launcher in it.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
}

/// Why the judge did not come up.
#[derive(Debug, thiserror::Error)]
pub enum JudgeStartError {
    /// Its sandbox.
    #[error("{0}")]
    Sandbox(String),
    /// The judge in it, or a probe's author.
    #[error(transparent)]
    Judge(#[from] JudgeError),
}

/// The launcher in its sandbox.
pub struct Inside {
    /// The launcher.
    pub launcher: Launcher,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// What worlds have in common.
    pub setup: WorldSetup,
    /// How the sandbox was built.
    pub report: SandboxReport,
    /// The private folder inside, below which each world may be given one of its own.
    pub root: String,
    _log: LogSink,
    _uids: Option<UidLease>,
}

impl Inside {
    /// Ends launcher and sandbox; the whole tree is dead afterwards.
    pub async fn end(mut self) {
        self.launcher.shutdown().await;
        if let Err(error) = self.sandbox.kill().await {
            tracing::warn!(%error, "the sandbox did not end as it should");
        }
    }
}

/// What a launcher's sandbox has beside its specification.
pub struct View {
    /// Where things are inside.
    pub paths: InsidePaths,
    /// Its host uids.
    pub uids: Option<UidLease>,
}

/// The sandbox of a launcher, without program and streams: trees, environment, files and limits of the task.
pub fn view(
    spec: &TrialSpec,
    workspace: &Workspace,
    with_probes: bool,
) -> Result<(SandboxSpec, View), StartError> {
    let failed = |error: &dyn std::fmt::Display| StartError::Sandbox(error.to_string());
    let task = &spec.task.public.spec;
    let observers = spec.scratch.join("observers");
    lay_probes(&observers, spec, "observe_").map_err(|error| failed(&error))?;
    let paths = inside_paths(spec, workspace, &observers).map_err(|error| failed(&error))?;
    let uids = match spec.sandbox {
        Kind::Namespaces => {
            let locks = LockFolder::machine().map_err(|error| failed(&error))?;
            Some(UidLease::acquire(&locks).map_err(|error| failed(&error))?)
        }
        Kind::None => None,
    };
    let mut mounts = vec![mount(&workspace.path, &paths.workspace), mount(&spec.kit, &paths.kit)];
    if let Some(suspect) = &workspace.suspect {
        mounts.push(mount(&suspect.path, &paths.suspect));
    }
    if with_probes {
        let base = base_of(spec).map_err(|error| failed(&error))?;
        mounts.push(mount(&base, &paths.base));
        mounts.push(mount(&observers, &paths.probes));
    }
    if let Some(bytecode) = spec.bytecode.as_ref().filter(|_| spec.sandbox == Kind::Namespaces) {
        // A trial's own is written by its ranks, the tree's by nobody.
        let mode = if bytecode.starts_with(&spec.scratch) { Mode::ReadWrite } else { Mode::ReadOnly };
        mounts.push(Mount { mode, ..mount(bytecode, BYTECODE) });
    }
    mounts.extend(spec.environment.mounts.iter().cloned().map(Mount::read_only));
    let files = task.tests.files.iter().map(|(path, text)| (PathBuf::from(path), text.clone().into_bytes()));
    let mut sandbox = SandboxSpec::new(&spec.environment.python);
    sandbox.kind = spec.sandbox;
    sandbox.mounts = mounts;
    sandbox.files = files.collect();
    sandbox.tmp_bytes = task.limits.tmp_mib << 20;
    sandbox.gpus = spec.gpus.clone();
    sandbox.network = network(spec.sandbox);
    sandbox.limits = Limits { memory_bytes: task.limits.memory_mib << 20, pids: task.limits.pids };
    sandbox.env = python_env();
    sandbox.env.extend(driver_path(spec).map(|path| (LIBRARIES.into(), path.into())));
    sandbox.uids = uids.as_ref().map(|lease| lease.uids);
    Ok((sandbox, View { paths, uids }))
}

/// Starts the launcher's sandbox and waits for the framework.
pub async fn start(spec: &TrialSpec, workspace: &Workspace, with_probes: bool) -> Result<Inside, StartError> {
    let failed = |error: &dyn std::fmt::Display| StartError::Sandbox(error.to_string());
    let task = &spec.task.public.spec;
    let (ours, theirs) = pair().map_err(|error| failed(&error))?;
    let (log, sink) = LogSink::open(LogBounds::default()).map_err(|error| failed(&error))?;
    let second = sink.try_clone().map_err(|error| failed(&error))?;
    let (mut sandbox, View { paths, uids }) = view(spec, workspace, with_probes)?;
    sandbox.args = python_args(&paths.kit, "launcher");
    sandbox.fds = vec![(theirs, CONTROL)];
    sandbox.stdout = Sink::Fd(sink);
    sandbox.stderr = Sink::Fd(second);
    sandbox.enters_networks = with_probes && spec.task.probes.values().any(|text| mentions(text, b"traffic"));
    let sandbox = Sandbox::start(sandbox).await.map_err(|error| failed(&error))?;
    let report = report(&sandbox);
    let uids_inside = uids
        .as_ref()
        .filter(|_| report.uid_separation)
        .map(|lease| LauncherUids { launcher: lease.uids.launcher, ranks: lease.uids.ranks_base });
    let gid = uids_inside.map(|uids| uids.ranks);
    let launcher = match Launcher::greet(ours, &spec.framework, uids_inside, gid, IMPORT).await {
        Ok(launcher) => launcher,
        Err(error) => {
            log.catch_up();
            let said = log.last(2000);
            return Err(match error {
                LauncherError::Gone(why) => LauncherError::Gone(format!("{why}; it wrote: {}", said.trim())),
                other => other,
            }
            .into());
        }
    };
    let setup = WorldSetup {
        paths,
        import_roots: task.tests.import_roots.clone(),
        env: rank_variables(spec),
        device: if spec.gpus.is_empty() { "cpu" } else { "cuda" },
        own_network: spec.sandbox == Kind::Namespaces,
        reach: Vec::new(),
        keeps_bytecode: true,
        leavings: Vec::new(),
    };
    let root = setup.paths.scratch.clone();
    Ok(Inside { launcher, sandbox, setup, report, root, _log: log, _uids: uids })
}

/// The judge in its own sandbox.
pub struct JudgeProcess {
    /// The judge.
    pub judge: Judge,
    sandbox: Sandbox,
    log: LogSink,
}

impl JudgeProcess {
    /// The last of what it wrote.
    pub fn log(&self) -> String {
        self.log.catch_up();
        self.log.last(4000)
    }

    /// Ends it.
    pub async fn end(mut self) {
        self.judge.finish().await;
        if let Err(error) = self.sandbox.kill().await {
            tracing::warn!(%error, "the judge's sandbox did not end as it should");
        }
    }
}

/// Starts the judge and waits until it has collected.
pub async fn start_judge(spec: &TrialSpec) -> Result<JudgeProcess, JudgeStartError> {
    start_judge_at(spec, spec.inputs.world).await
}

/// The same at another world size than the spec's.
pub async fn start_judge_at(spec: &TrialSpec, world: u32) -> Result<JudgeProcess, JudgeStartError> {
    let failed = |error: &dyn std::fmt::Display| JudgeStartError::Sandbox(error.to_string());
    let folder = spec.scratch.join("judge");
    lay_probes(&folder.join("probes"), spec, "judge_").map_err(|error| failed(&error))?;
    let (ours, theirs) = pair().map_err(|error| failed(&error))?;
    let (log, sink) = LogSink::open(LogBounds::default()).map_err(|error| failed(&error))?;
    let second = sink.try_clone().map_err(|error| failed(&error))?;
    let (kit, inside) = match spec.sandbox {
        Kind::Namespaces => ("/infradev/python".to_string(), "/infradev/judge".to_string()),
        Kind::None => (text(&spec.kit), text(&folder)),
    };
    let mut mounts = vec![mount(&spec.kit, &kit), mount(&folder, &inside)];
    mounts.extend(spec.judge.mounts.iter().cloned().map(Mount::read_only));
    let mut sandbox = SandboxSpec::new(&spec.judge.python);
    sandbox.kind = spec.sandbox;
    sandbox.mounts = mounts;
    sandbox.network = network(spec.sandbox);
    sandbox.limits = Limits { memory_bytes: 8 << 30, pids: 256 };
    sandbox.env = python_env();
    sandbox.args = python_args(&kit, "judge");
    sandbox.fds = vec![(theirs, CONTROL)];
    sandbox.stdout = Sink::Fd(sink);
    sandbox.stderr = Sink::Fd(second);
    let sandbox = Sandbox::start(sandbox).await.map_err(|error| failed(&error))?;
    let device = if spec.gpus.is_empty() { "cpu" } else { "cuda" };
    let probes = format!("{inside}/probes");
    let judge = Judge::greet(ours, &probes, world, device, COLLECT).await.map_err(|error| match error {
        JudgeError::Gone(why) => {
            log.catch_up();
            JudgeError::Gone(format!("{why}; it wrote: {}", log.last(2000).trim()))
        }
        author => author,
    })?;
    Ok(JudgeProcess { judge, sandbox, log })
}

fn inside_paths(spec: &TrialSpec, workspace: &Workspace, observers: &Path) -> io::Result<InsidePaths> {
    Ok(match spec.sandbox {
        Kind::Namespaces => InsidePaths {
            workspace: "/workspace".into(),
            suspect: "/suspect".into(),
            base: "/base".into(),
            probes: "/infradev/probes".into(),
            kit: "/infradev/python".into(),
            scratch: "/tmp".into(),
            pycache: if spec.bytecode.is_some() { BYTECODE } else { "/tmp/pycache" }.into(),
        },
        Kind::None => {
            let scratch = spec.scratch.join("tmp");
            std::fs::create_dir_all(&scratch)?;
            std::fs::set_permissions(&scratch, std::fs::Permissions::from_mode(0o1777))?;
            InsidePaths {
                workspace: text(&workspace.path),
                suspect: text(&spec.scratch.join("suspect")),
                base: text(&base_of(spec)?),
                probes: text(observers),
                kit: text(&spec.kit),
                pycache: text(&scratch.join("pycache")),
                scratch: text(&scratch),
            }
        }
    })
}

const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Where this host keeps its GPU driver's libraries, if not where the linker looks of itself.
fn driver_path(spec: &TrialSpec) -> Option<String> {
    std::env::var(LIBRARIES).ok().filter(|path| !spec.gpus.is_empty() && !path.is_empty())
}

/// The task's variables, and which of the sandbox's devices are seen: its own are numbered from 0.
fn rank_variables(spec: &TrialSpec) -> BTreeMap<String, String> {
    let mut env = spec.task.public.spec.tests.env.clone();
    if !spec.gpus.is_empty() {
        let visible: Vec<String> = (0..spec.gpus.len()).map(|index| index.to_string()).collect();
        env.entry("CUDA_VISIBLE_DEVICES".to_string()).or_insert(visible.join(","));
    }
    if let Some(path) = driver_path(spec) {
        env.entry(LIBRARIES.to_string()).or_insert(path);
    }
    env
}

fn lay_probes(folder: &Path, spec: &TrialSpec, prefix: &str) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, bytes) in spec.task.probes.iter().filter(|(name, _)| name.starts_with(prefix)) {
        let path = folder.join(name);
        std::fs::write(&path, bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

fn python_env() -> Vec<(OsString, OsString)> {
    [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("OMP_NUM_THREADS", "1"),
        ("OPENBLAS_NUM_THREADS", "1"),
        ("MKL_NUM_THREADS", "1"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONNOUSERSITE", "1"),
        ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),
        ("INFRADEV_CONTROL_FD", "3"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into()
}

fn python_args(kit: &str, module: &str) -> Vec<OsString> {
    let kit = serde_json::Value::from(kit);
    // Without the working directory on the path: nothing but kit, library and environment is importable.
    let code = format!(
        "import sys; sys.path[:] = [{kit}] + [p for p in sys.path if p]; from infradev_probe.{module} import main; main()"
    );
    vec!["-c".into(), code.into()]
}

fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

fn mount(source: &Path, target: &str) -> Mount {
    Mount { source: source.to_path_buf(), target: target.into(), mode: Mode::ReadOnly }
}

fn network(kind: Kind) -> Network {
    match kind {
        Kind::Namespaces => Network::Isolated,
        Kind::None => Network::Host,
    }
}

fn mentions(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn report(sandbox: &Sandbox) -> SandboxReport {
    let ours = sandbox.report();
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_string)).unwrap_or_default()
    };
    SandboxReport {
        kind: word(serde_json::to_value(ours.kind)),
        uid_separation: ours.uid_separation,
        memory_limit: word(serde_json::to_value(ours.memory_limit)),
        network: word(serde_json::to_value(ours.network)),
        version: ours.bubblewrap.clone().unwrap_or_default(),
    }
}
