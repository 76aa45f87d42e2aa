//! One run of an agent in its sandbox: start, limits, end.

use std::fs::File;
use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use infradev_model::atif::TrajectoryAgent;
use infradev_model::{
    AgentSpec, Ending, Lookup, Metered, SandboxReport, SkillBy, SkillUsed, Tokens, TrajectoryReport,
};
use infradev_sandbox::{Limits, LockFolder, Sandbox, SandboxEnd, UidLease};

use crate::disk::{DiskWatch, Passed};
use crate::ending::{judge, timed_out, trouble};
use crate::endpoint::client;
use crate::error::AgentError;
use crate::inside::{sandbox, skill_by};
use crate::install::Installed;
use crate::models::Models;
use crate::output::Said;
use crate::proxy::{Endpoint, Proxy};
use crate::relay::Told;
use crate::skill::{Sign, Skill};
use crate::streams::cut;
use crate::tally::{Last, Tally};
use crate::trajectory::{Log, read};
use crate::waiting::Again;

/// How long an endpoint has to answer a look at the end.
const LOOK: Duration = Duration::from_secs(10);
/// Number of the descriptor on which the relay reports.
const REPORT: i32 = 3;

/// A run to be made.
pub struct RunSpec<'a> {
    /// The agent.
    pub agent: &'a Installed,
    /// The model's name, as the agent is told it.
    pub model: Option<&'a str>,
    /// Its endpoint; without one all is refused.
    pub endpoint: Option<Endpoint>,
    /// What `{command}` stands for.
    pub command: Option<&'a str>,
    /// The prompt's text, without the skill's.
    pub prompt: &'a str,
    /// The skill that it is given.
    pub skill: Option<&'a Skill>,
    /// The folder that it edits; on the file system of `kept`.
    pub workspace: &'a Path,
    /// Folders of the host that are seen read-only at the same place: the environment.
    pub mounts: Vec<PathBuf>,
    /// Folders of programs that come first on PATH: the environment's.
    pub path: Vec<PathBuf>,
    /// Further variables; paths in them are those inside.
    pub env: Vec<(String, String)>,
    /// Read-only files at absolute paths.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Bounds of memory and processes.
    pub limits: Limits,
    /// Bound of `/tmp` and of the home folder, bytes each.
    pub tmp_bytes: u64,
    /// Bytes that it may put on the host's disk: in the workspace, in `{out}`, on its output streams.
    pub disk_bytes: u64,
    /// GPUs, leased.
    pub gpus: Vec<u32>,
    /// How long it may take.
    pub timeout: Duration,
    /// Input and output tokens that it may use.
    pub token_budget: Option<u64>,
    /// A folder for the socket and the skill; gone after the run.
    pub scratch: &'a Path,
    /// An empty folder for what is kept: logs, requests, what the agent puts in `{out}`.
    pub kept: &'a Path,
    /// This program, which is mounted into the sandbox as the relay.
    pub program: &'a Path,
}

/// How a run ended. By then every process of it is dead.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// How.
    pub ending: Ending,
    /// What showed it.
    pub detail: Option<String>,
    /// Whether waiting may mend what kept it from its model.
    pub again: Again,
    /// Seconds from the agent's start to its end.
    pub agent_s: f64,
    /// What the proxy counted.
    pub metered: Metered,
    /// Tokens by the agent's own count, where its output tells them.
    pub own_tokens: Option<Tokens>,
    /// What its trajectory shows, which lies beside its log; none where its output is text alone.
    pub trajectory: Option<TrajectoryReport>,
    /// What it asked for and did not get.
    pub lookups: Vec<Lookup>,
    /// Command lines of processes that it had left running; none where that is not known, since it was killed.
    pub left_running: Option<Vec<String>>,
    /// How it was held apart.
    pub sandbox: SandboxReport,
    /// The skill, and whether it was opened.
    pub skill: Option<SkillUsed>,
}

enum Stop {
    Ended(SandboxEnd),
    TimedOut,
    Spent,
    Hopeless,
    Disk(Passed),
    Cancelled,
}

/// Refuses what an agent cannot be started with.
///
/// # Errors
/// A model or a command that it needs is missing, a model is given to one that needs none, or only a word for a model.
pub fn check(agent: &AgentSpec, model: Option<&str>, command: Option<&str>) -> Result<(), AgentError> {
    let name = || agent.name.clone();
    match (&agent.model, model) {
        (Some(_), None) => return Err(AgentError::NoModel { agent: name() }),
        (None, Some(_)) => return Err(AgentError::ModelUnasked { agent: name() }),
        (Some(spec), Some(model)) => {
            if let Some(meant) = spec.aliases.get(model) {
                let (model, meant) = (model.to_owned(), meant.clone());
                return Err(AgentError::Alias { agent: name(), model, meant });
            }
        }
        (None, None) => {}
    }
    let asks = agent.run.command.iter().any(|part| part.contains("{command}"));
    if asks && command.is_none() { Err(AgentError::NoCommand { agent: name() }) } else { Ok(()) }
}

/// Runs an agent to its end, or until its time or its tokens are over.
///
/// # Errors
/// The sandbox could not be set up, the host's disk is full, or the person asked for an end. Whatever the agent does is a [`RunEnd`].
pub async fn run(spec: RunSpec<'_>) -> Result<RunEnd, AgentError> {
    let agent = &spec.agent.spec;
    check(agent, spec.model, spec.command)?;
    let log = spec.kept.join("requests.jsonl");
    let log = File::create(&log).map_err(AgentError::io(format!("write {}", log.display())))?;
    let sign = spec.skill.filter(|_| skill_by(agent) == SkillBy::Mounted);
    let sign = sign.and_then(|skill| Sign::of(&skill.text, spec.prompt));
    let knows = sign.is_some() && spec.endpoint.is_some();
    let tally = Arc::new(Tally::new(log, spec.token_budget, sign));
    let models = Models::of(agent, spec.model);
    let proxy = Proxy::start(spec.endpoint.clone(), models, spec.scratch, Arc::clone(&tally))?;
    // A host uid of its own, where the machine grants one: what it leaves on the disk is then not root's.
    let uids = match infradev_sandbox::uid_separation_granted() {
        true => Some(UidLease::acquire(&LockFolder::machine()?)?),
        false => None,
    };
    let uid = uids.as_ref().map(|lease| lease.uids.ranks_base);
    let (mut sandbox_spec, streams) = sandbox(&spec, &proxy, uid)?;
    sandbox_spec.uids = uids.as_ref().map(|lease| lease.uids);
    let (told, told_write) = std::io::pipe().map_err(AgentError::io("open a pipe"))?;
    sandbox_spec.fds = vec![(OwnedFd::from(told_write), REPORT)];
    let mut disk = DiskWatch::new(vec![spec.workspace.to_owned(), spec.kept.to_owned()], spec.disk_bytes)?;
    let mut sandbox = Sandbox::start(sandbox_spec).await?;
    let init = sandbox.pid();
    let begun = Instant::now();
    let report = report(&sandbox);
    let stop = tokio::select! {
        end = sandbox.wait() => Stop::Ended(end?),
        () = tokio::time::sleep(spec.timeout) => Stop::TimedOut,
        () = proxy.tally.spent.notified() => Stop::Spent,
        () = proxy.tally.hopeless.notified() => Stop::Hopeless,
        passed = disk.passed(init) => Stop::Disk(passed?),
        () = infradev_supervise::cancel_requested() => Stop::Cancelled,
    };
    let agent_s = begun.elapsed().as_secs_f64();
    // All of it is dead from here on.
    sandbox.kill().await?;
    let cut = cut(streams.map(|stream| stream.join().unwrap_or(0)));
    let told = read_told(told);
    let stop = match stop {
        // One that took more than it may and ended before that was seen is told like any other.
        Stop::Ended(end) => match disk.at_the_end().await? {
            // One that ended well was not hindered by what others filled.
            Some(Passed::Reserve(_)) if end.exit.success() => Stop::Ended(end),
            passed => passed.map_or(Stop::Ended(end), Stop::Disk),
        },
        stop => stop,
    };
    // Requests that broke off are counted when their connections end.
    drop(proxy);
    let (metered, lookups, last) = tally.result();
    let (said, trajectory) = tells(&spec, &metered).await;
    let last = looked_again(last, &metered, spec.endpoint.as_ref()).await?;
    let again = Again::after(&last, tally.retry_after());
    let (ending, detail) = match stop {
        Stop::Cancelled => return Err(AgentError::Cancelled),
        Stop::Disk(Passed::Reserve(free)) => return Err(disk.host_full(free)),
        Stop::Disk(Passed::Bound(taken)) => (Ending::DiskBudget, Some(disk.detail(taken))),
        Stop::TimedOut => timed_out(spec.timeout, &metered, &last),
        Stop::Hopeless => (Ending::EndpointUnreachable, trouble(&last, false)),
        Stop::Spent => (Ending::Budget, Some(spent(&metered, spec.token_budget.unwrap_or(0)))),
        Stop::Ended(end) => judge(&end, &told, said.word, last, &metered, agent.model.is_some()),
    };
    let detail = match (detail, cut) {
        (Some(detail), Some(cut)) => Some(format!("{detail}; {cut}")),
        (detail, cut) => detail.or(cut),
    };
    let (left_running, own_tokens) = (told.left_running, said.tokens);
    let skill = spec.skill.map(|skill| SkillUsed {
        name: skill.text.name.clone(),
        digest: skill.digest.clone(),
        by: skill_by(agent),
        opened: knows.then(|| tally.opened_s().is_some()),
        opened_s: tally.opened_s(),
    });
    let sandbox = report;
    Ok(RunEnd {
        ending,
        detail,
        again,
        agent_s,
        metered,
        own_tokens,
        trajectory,
        lookups,
        left_running,
        sandbox,
        skill,
    })
}

/// An answer that broke off is the endpoint's fault only where that is away: by a request that is too large, or malformed, an agent
/// can bring it to close the connection. One that never answered this run is taken at its word.
async fn looked_again(
    last: Last,
    metered: &Metered,
    endpoint: Option<&Endpoint>,
) -> Result<Last, AgentError> {
    let answered = metered.requests > metered.failed;
    let Some(endpoint) = endpoint.filter(|_| answered && matches!(last, Last::Unreachable(_))) else {
        return Ok(last);
    };
    let client = client(Some(endpoint))?;
    let there = tokio::time::timeout(LOOK, endpoint.answers(&client)).await.unwrap_or(false);
    Ok(if there { Last::None } else { last })
}

/// What a run used of its budget.
fn spent(metered: &Metered, budget: u64) -> String {
    let used = format!("{} tokens of {budget}", metered.charged());
    match metered.estimated {
        0 => used,
        estimated => format!("{used}, {estimated} of them estimated: not all answers told theirs"),
    }
}

/// What the log tells, read beside whatever else this process follows: it may be long.
async fn tells(spec: &RunSpec<'_>, metered: &Metered) -> (Said, Option<TrajectoryReport>) {
    let agent = &spec.agent.spec;
    let log = Log {
        kept: spec.kept.to_owned(),
        format: agent.run.output,
        agent: TrajectoryAgent {
            name: agent.name.clone(),
            version: agent.version.clone(),
            model_name: spec.model.map(str::to_owned),
        },
        metered: metered.clone(),
    };
    tokio::task::spawn_blocking(move || read(&log)).await.unwrap_or_else(|error| {
        let error = Some(format!("the log could not be read: {error}"));
        (Said::default(), Some(TrajectoryReport { error, ..TrajectoryReport::default() }))
    })
}

fn read_told(mut pipe: PipeReader) -> Told {
    let mut text = Vec::new();
    // Every writer is dead.
    let _ = pipe.read_to_end(&mut text);
    serde_json::from_slice(&text).unwrap_or_default()
}

fn report(sandbox: &Sandbox) -> SandboxReport {
    let report = sandbox.report();
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let of = |value: &dyn Fn() -> serde_json::Result<serde_json::Value>| word(value().unwrap_or_default());
    SandboxReport {
        kind: of(&|| serde_json::to_value(report.kind)),
        uid_separation: report.uid_separation,
        memory_limit: of(&|| serde_json::to_value(report.memory_limit)),
        network: of(&|| serde_json::to_value(report.network)),
        version: report.bubblewrap.clone().unwrap_or_default(),
    }
}
