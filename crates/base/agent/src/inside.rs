//! What an agent's sandbox holds: mounts, files, variables, the command line.

use std::ffi::OsString;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use infradev_model::{AgentSpec, PromptBy, SkillBy};
use infradev_sandbox::{HOME, Mode, Mount, SandboxSpec};
use infradev_supervise::Sink;

use crate::error::AgentError;
use crate::proxy::{Endpoint, PLACEHOLDER_KEY, PORT, Proxy};
use crate::relay::RELAY;
use crate::run::RunSpec;
use crate::skill::{Skill, place};
use crate::streams::{self, Kept, keeper};

const AGENT: &str = "/opt/agent";
const WORKSPACE: &str = "/workspace";
const OUT: &str = "/out";
const PROGRAM: &str = "/infradev/infradev";
const SOCKET: &str = "/infradev/model.sock";
const PROMPT: &str = "/infradev/prompt.md";
/// Skills of agents whose programs know none.
const SKILLS: &str = "/opt/skills";

/// How an agent is given a skill.
pub(crate) fn skill_by(agent: &AgentSpec) -> SkillBy {
    if agent.skills.is_some() { SkillBy::Mounted } else { SkillBy::Appended }
}

/// Bytes that Linux takes as one argument of a program, the ending zero apart (MAX_ARG_STRLEN, execve(2)).
const LONGEST_ARGUMENT: usize = 32 * 4096 - 1;

/// Refuses a prompt, as the agent would be given it, that no program can be started with.
///
/// # Errors
/// It is an argument of the agent's, and too long for one.
pub fn check_prompt(agent: &AgentSpec, prompt: &str) -> Result<(), AgentError> {
    match agent.run.prompt {
        PromptBy::Argument if prompt.len() > LONGEST_ARGUMENT => Err(AgentError::LongPrompt {
            agent: agent.name.clone(),
            bytes: prompt.len(),
            most: LONGEST_ARGUMENT,
        }),
        _ => Ok(()),
    }
}

/// A prompt as the agent is given it: with the skill's text, where its program knows no skills.
pub fn whole_prompt(prompt: &str, skill: Option<&Skill>, agent: &AgentSpec) -> String {
    match skill.filter(|_| skill_by(agent) == SkillBy::Appended) {
        Some(skill) => {
            let folder = place(SKILLS, &skill.text.name);
            format!("{}\n\n{}", prompt.trim_end(), skill.as_prompt(&folder.to_string_lossy()))
        }
        None => prompt.to_owned(),
    }
}

/// What keeps its two output streams.
pub(crate) type Streams = [Kept; 2];

/// The sandbox of a run, not yet started.
///
/// # Errors
/// A file or a folder of it could not be written.
pub(crate) fn sandbox(
    spec: &RunSpec<'_>,
    proxy: &Proxy,
    uid: Option<u32>,
) -> Result<(SandboxSpec, Streams), AgentError> {
    let agent = &spec.agent.spec;
    let out = spec.kept.join("out");
    let prompt = whole_prompt(spec.prompt, spec.skill, agent);
    let keep = |name: &str| spec.kept.join(name);
    std::fs::create_dir_all(&out)
        .and_then(|()| std::fs::write(keep("prompt.md"), &prompt))
        .map_err(AgentError::io(format!("write in {}", spec.kept.display())))?;
    if let Some(uid) = uid {
        give(spec.workspace, uid)
            .and_then(|()| give(&out, uid))
            .map_err(AgentError::io(format!("give {} to user {uid}", spec.workspace.display())))?;
    }
    let mut mounts = vec![
        Mount { source: spec.workspace.to_owned(), target: WORKSPACE.into(), mode: Mode::ReadWrite },
        Mount { source: out, target: OUT.into(), mode: Mode::ReadWrite },
        Mount { source: spec.program.to_owned(), target: PROGRAM.into(), mode: Mode::ReadOnly },
        Mount { source: proxy.socket.clone(), target: SOCKET.into(), mode: Mode::ReadOnly },
    ];
    if let Some(folder) = &spec.agent.folder {
        mounts.push(Mount { source: folder.clone(), target: AGENT.into(), mode: Mode::ReadOnly });
    }
    if let Some(skill) = spec.skill {
        let source = spec.scratch.join("skill");
        skill.lay(&source).map_err(AgentError::io("lay the skill"))?;
        let folder = agent.skills.as_ref().map_or_else(|| SKILLS.to_owned(), |at| fill(&at.folder, spec));
        let target = place(&folder, &skill.text.name);
        mounts.push(Mount { source, target, mode: Mode::ReadOnly });
    }
    let mut seen = spec.mounts.clone();
    seen.extend(spec.agent.mounts.iter().cloned());
    seen.sort();
    seen.dedup();
    mounts.extend(seen.into_iter().map(Mount::read_only));
    let fill = |text: &str| fill(text, spec);
    let mut sandbox = SandboxSpec::new(PROGRAM);
    sandbox.mounts = mounts;
    sandbox.files = vec![(PROMPT.into(), prompt.as_bytes().to_vec())];
    sandbox.files.extend(spec.files.iter().cloned());
    let own = agent.run.files.iter().map(|(path, text)| (PathBuf::from(fill(path)), fill(text).into_bytes()));
    sandbox.files.extend(own);
    sandbox.tmp_bytes = spec.tmp_bytes;
    sandbox.gpus = spec.gpus.clone();
    sandbox.limits = spec.limits;
    sandbox.env = variables(spec);
    sandbox.cwd = WORKSPACE.into();
    let uid = uid.map_or_else(|| "-".to_owned(), |uid| uid.to_string());
    sandbox.args = [RELAY, SOCKET, &uid, "--"].map(Into::into).to_vec();
    sandbox.args.extend(agent.run.command.iter().map(|part| fill(part).into()));
    match agent.run.prompt {
        PromptBy::Stdin => {
            let held = streams::prompt(&prompt).map_err(AgentError::io("hold the prompt in memory"))?;
            sandbox.stdin = Some(held);
        }
        PromptBy::Argument => sandbox.args.push(prompt.into()),
        PromptBy::File => {}
    }
    let (out_thread, stdout) = keeper(&keep("agent.log"))?;
    let (err_thread, stderr) = keeper(&keep("agent.err"))?;
    sandbox.stdout = Sink::Fd(stdout);
    sandbox.stderr = Sink::Fd(stderr);
    Ok((sandbox, [out_thread, err_thread]))
}

/// Makes a user the owner of a tree.
fn give(path: &Path, uid: u32) -> std::io::Result<()> {
    lchown(path, Some(uid), Some(uid))?;
    if std::fs::symlink_metadata(path)?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give(&entry?.path(), uid)?;
        }
    }
    Ok(())
}

fn fill(text: &str, spec: &RunSpec<'_>) -> String {
    let base_url = spec.endpoint.as_ref().map(Endpoint::inside).unwrap_or_default();
    // The command comes first: it may hold placeholders of its own.
    let pairs = [
        ("{command}", spec.command.unwrap_or_default()),
        ("{agent}", AGENT),
        ("{base_url}", &base_url),
        ("{home}", HOME),
        ("{key}", PLACEHOLDER_KEY),
        ("{model}", spec.model.unwrap_or_default()),
        ("{out}", OUT),
        ("{prompt_file}", PROMPT),
    ];
    pairs.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

fn variables(spec: &RunSpec<'_>) -> Vec<(OsString, OsString)> {
    let folders =
        spec.path.iter().chain(&spec.agent.path).map(|folder| folder.to_string_lossy().into_owned());
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(str::to_owned);
    let path: Vec<String> = folders.chain(system).collect();
    let proxy = format!("http://127.0.0.1:{PORT}");
    let mut all: Vec<(String, String)> = vec![
        ("PATH".into(), path.join(":")),
        ("LANG".into(), "C.UTF-8".into()),
        ("TERM".into(), "dumb".into()),
        ("INFRADEV_PROMPT".into(), PROMPT.into()),
        // A name for commits, by variables: its own configuration is the agent's to write.
        ("GIT_CONFIG_COUNT".into(), "2".into()),
        ("GIT_CONFIG_KEY_0".into(), "user.name".into()),
        ("GIT_CONFIG_VALUE_0".into(), "agent".into()),
        ("GIT_CONFIG_KEY_1".into(), "user.email".into()),
        ("GIT_CONFIG_VALUE_1".into(), "agent@localhost".into()),
        // What the agent asks of other hosts comes to the proxy, which refuses it and writes it down.
        ("NO_PROXY".into(), "127.0.0.1,localhost,::1".into()),
        ("no_proxy".into(), "127.0.0.1,localhost,::1".into()),
    ];
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        all.push((name.into(), proxy.clone()));
    }
    all.extend(spec.env.iter().cloned());
    for (name, value) in &spec.agent.spec.run.env {
        all.retain(|(known, _)| known != name);
        all.push((name.clone(), fill(value, spec)));
    }
    all.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}
