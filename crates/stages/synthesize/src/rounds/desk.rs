//! One step: the folder that an agent works in, its run, and what is taken of what it wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use infradev_agent::RunSpec;
use infradev_executor::{Executor, Happening, ReadyTask};
use infradev_git::commit_folder;
use infradev_model::{AgentRole, Digest, DigestBuilder, Ending, Ignored, Step};
use infradev_patch::{Patch, apply};
use infradev_sandbox::Limits;
use infradev_store::{RunEvent, RunFolder};

use super::checking::{drop_malformed, drop_underivable, misnamed, shown};
use super::looping::repeated;
use super::{Budget, Draft, RoundsError, RoundsPlan, instructions};

/// Bytes of one file that an agent may write.
const FILE: u64 = 1 << 20;
/// Files that a draft may have.
const FILES: usize = 256;
/// Without these there is no task to try.
const NEEDED: [&str; 2] = ["spec.md", "contract.toml"];
/// Folders below `task` that are looked into, one in another: a task's own are one deep.
const DEPTH: usize = 8;
/// What an agent is given, in its folder.
const LAID: [&str; 5] = ["base", "golden", "task", "PROBES.md", "REPORT.md"];
/// How many files beside them are told by name.
const BESIDE: usize = 8;
/// Memory and processes that an agent itself may have, beside what the task's code may.
const OWN: Limits = Limits { memory_bytes: 6 << 30, pids: 1024 };
/// Least bound of `/tmp`, bytes.
const TMP: u64 = 2 << 30;
/// Bytes that an agent may put on the disk.
const DISK: u64 = 20 << 30;

/// What a step needs.
pub(super) struct Desk<'a> {
    pub executor: &'a Executor,
    pub run: &'a RunFolder,
    pub ready: &'a ReadyTask,
    pub plan: &'a RoundsPlan,
    pub round: u32,
    pub role: AgentRole,
}

impl Desk<'_> {
    /// Makes the step, or gives the record of an earlier process.
    pub async fn step(&self, draft: &Draft, report: &str, budget: &Budget) -> Result<Step, RoundsError> {
        let spec = &self.ready.task.public.spec;
        let prompt = instructions::prompt(self.role, spec, self.round, self.plan.rounds);
        let key = self.key(draft, report, &prompt);
        let before = self.run.finished::<Step>(&key)?;
        if let Some(step) = before.filter(|step| step.ending != Ending::EndpointUnreachable) {
            return Ok(step);
        }
        let label = format!("{} · round {} · {}", spec.id, self.round, self.role.word());
        let slot = self.executor.slot(spec.gpus).await?;
        self.executor.tell(Happening::TrialStarted { label: label.clone(), expected: None });
        let what = format!("round {}: {}", self.round, self.role.word());
        self.run.record(&RunEvent::TrialStarted {
            trial: key.clone(),
            task: spec.id.clone(),
            what,
            world: 0,
        })?;
        let staging = self.run.stage(&key)?;
        let (workspace, scratch, kept) =
            (staging.scratch().join("workspace"), staging.scratch().to_owned(), staging.kept());
        self.lay(&workspace, draft, report)?;
        let end =
            infradev_agent::run(self.run_spec(&prompt, &workspace, &scratch, &kept, slot.gpus(), budget))
                .await?;
        let (mut written, mut ignored) = taken(self.role, draft, &workspace.join("task"));
        let (task, tree) = (&self.ready.task, &self.ready.tree.path);
        ignored.extend(drop_underivable(draft, &mut written, task, tree)?);
        ignored.extend(beside(&workspace));
        let step = Step {
            role: self.role,
            ending: end.ending,
            detail: end.detail,
            repeated: repeated(&kept.join("trajectory.json")),
            written,
            ignored,
            metered: end.metered,
            lookups: end.lookups,
            agent_s: end.agent_s,
            folder: format!("trials/{key}"),
        };
        staging.finish(&step)?;
        let (wall_s, cached) = (step.agent_s, false);
        self.run.record(&match step.ending {
            Ending::EndpointUnreachable => {
                RunEvent::TrialFault { trial: key, evidence: step.detail.clone().unwrap_or_default() }
            }
            _ => RunEvent::TrialFinished { trial: key, wall_s },
        })?;
        self.executor.tell(Happening::TrialEnded { label, wall_s, cached, summary: summary(&step) });
        Ok(step)
    }

    /// All that decides a step.
    fn key(&self, draft: &Draft, report: &str, prompt: &str) -> Digest {
        let mut digest = DigestBuilder::new("infradev step v1");
        let spec = &self.plan.agent.spec;
        digest.part("agent", &serde_json::to_vec(spec).unwrap_or_default());
        let asked = (&self.plan.model, &self.plan.command, self.round, self.role);
        digest.part("asked", &serde_json::to_vec(&asked).unwrap_or_default());
        if let Some(content) = &self.plan.agent.content {
            digest.part("content", content.as_str().as_bytes());
        }
        digest.part("prompt", prompt.as_bytes()).part("report", report.as_bytes());
        digest.part("tree", self.ready.tree.digest.as_str().as_bytes());
        digest.part("golden", &self.ready.task.golden).part("official", &self.ready.task.official);
        for (path, text) in draft.files() {
            digest.part(path, text.as_bytes());
        }
        digest.finish()
    }

    /// Lays the folder.
    fn lay(&self, workspace: &Path, draft: &Draft, report: &str) -> Result<(), RoundsError> {
        let task = &self.ready.task;
        let golden_tree = workspace.join("golden");
        fs::create_dir_all(workspace).map_err(RoundsError::io(workspace))?;
        self.executor.workspace(&self.ready.tree, &workspace.join("base"))?;
        self.executor.workspace(&self.ready.tree, &golden_tree)?;
        for bytes in [&task.golden, &task.official] {
            let wrong = |why: String| RoundsError::Golden { task: task.id().to_string(), why };
            let patch = Patch::parse(bytes).map_err(|error| wrong(error.to_string()))?;
            apply(&patch, &golden_tree).map_err(|error| wrong(error.to_string()))?;
        }
        let place = workspace.join("task");
        fs::create_dir_all(&place).map_err(RoundsError::io(&place))?;
        draft.write_into(&place)?;
        let files = [
            ("task/golden.patch", task.golden.as_slice()),
            ("task/official.patch", task.official.as_slice()),
            ("PROBES.md", instructions::PROBES.as_bytes()),
            ("REPORT.md", report.as_bytes()),
        ];
        for (name, bytes) in files {
            let path = workspace.join(name);
            fs::write(&path, bytes).map_err(RoundsError::io(&path))?;
        }
        // Agents ask git what they changed.
        commit_folder(workspace, "Task")?;
        Ok(())
    }

    fn run_spec<'a>(
        &'a self,
        prompt: &'a str,
        workspace: &'a Path,
        scratch: &'a Path,
        kept: &'a Path,
        gpus: Vec<u32>,
        budget: &Budget,
    ) -> RunSpec<'a> {
        let spec = &self.ready.task.public.spec;
        let root = |root: &String| match root.as_str() {
            "." => "/workspace/golden".to_owned(),
            root => format!("/workspace/golden/{root}"),
        };
        let roots: Vec<String> = spec.tests.import_roots.iter().map(root).collect();
        let mut env = vec![
            ("PYTHONPATH".to_owned(), roots.join(":")),
            ("PYTHONPYCACHEPREFIX".to_owned(), "/tmp/pycache".to_owned()),
            ("PYTEST_ADDOPTS".to_owned(), "-p no:cacheprovider".to_owned()),
        ];
        env.extend(spec.tests.env.clone());
        let environment = &self.ready.environment;
        RunSpec {
            agent: &self.plan.agent,
            model: self.plan.model.as_deref(),
            endpoint: self.plan.endpoint.clone(),
            command: self.plan.command.as_deref(),
            prompt,
            skill: None,
            workspace,
            mounts: environment.mounts.clone(),
            path: environment.python.parent().map(Path::to_owned).into_iter().collect(),
            env,
            files: spec
                .tests
                .files
                .iter()
                .map(|(path, text)| (path.into(), text.clone().into_bytes()))
                .collect(),
            limits: Limits {
                memory_bytes: (spec.limits.memory_mib << 20) + OWN.memory_bytes,
                pids: spec.limits.pids + OWN.pids,
            },
            disk_bytes: DISK,
            tmp_bytes: TMP.max(spec.limits.tmp_mib << 20),
            gpus,
            timeout: self.plan.step.min(budget.time),
            token_budget: budget.tokens,
            scratch,
            kept,
            program: &self.plan.program,
        }
    }
}

type Taken = (BTreeMap<String, Option<String>>, Vec<Ignored>);

/// What of the folder `task` differs from the draft, as far as it is the role's to write.
fn taken(role: AgentRole, draft: &Draft, folder: &Path) -> Taken {
    let mut written = BTreeMap::new();
    let Below { files: found, mut ignored } = match below(folder) {
        Ok(found) => found,
        Err(ignored) => return (written, vec![ignored]),
    };
    for (name, path) in &found {
        let mut ignore =
            |why: &str| ignored.push(Ignored { path: shown(&format!("task/{name}")), why: why.to_owned() });
        if matches!(name.as_str(), "golden.patch" | "official.patch") {
            continue;
        }
        let text = match fs::symlink_metadata(path) {
            Ok(data) if !data.is_file() => Err("is no plain file"),
            Ok(data) if data.len() > FILE => Err("is larger than 1 MiB"),
            _ => match fs::read(path).map(String::from_utf8) {
                Ok(Ok(text)) => Ok(text),
                Ok(Err(_)) => Err("is not UTF-8"),
                Err(_) => Err("cannot be read"),
            },
        };
        let text = match text {
            Ok(text) if draft.files().get(name) == Some(&text) => continue,
            other => other,
        };
        match text {
            _ if !role.may_write(name) => ignore("is not this role's to write"),
            _ if misnamed(name) => {
                ignore("its name is not lower-case letters, digits, dashes and underscores")
            }
            Err(why) => ignore(why),
            Ok(_) if written.len() >= FILES => ignore("is one file too many"),
            Ok(text) => {
                written.insert(name.clone(), Some(text));
            }
        }
    }
    for name in draft.files().keys().filter(|name| !found.contains_key(*name)) {
        if NEEDED.contains(&name.as_str()) && role.may_write(name) {
            let why = "was removed, and a task needs it: it stays as it was".into();
            ignored.push(Ignored { path: format!("task/{name}"), why });
        } else if role.may_write(name) {
            written.insert(name.clone(), None);
        } else {
            ignored.push(Ignored {
                path: format!("task/{name}"),
                why: "was removed, which is not this role's to do".into(),
            });
        }
    }
    ignored.extend(drop_malformed(draft, &mut written));
    (written, ignored)
}

/// What the agent put beside the folders that it was given; hidden files are its tools' own.
fn beside(workspace: &Path) -> Vec<Ignored> {
    let entries = fs::read_dir(workspace).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter(|name| !LAID.contains(&name.as_str()) && !name.starts_with(['.', '_'])).collect();
    names.sort();
    let more = names.len().saturating_sub(BESIDE);
    names.truncate(BESIDE);
    let why = "lies beside `task/`: only what stands below that counts";
    let mut beside: Vec<Ignored> =
        names.into_iter().map(|path| Ignored { path: shown(&path), why: why.to_owned() }).collect();
    if let Some(last) = beside.last_mut().filter(|_| more > 0) {
        last.why = format!("{why}; so do {more} others");
    }
    beside
}

/// What lies below a folder.
struct Below {
    /// Files and what is none by relative path; links are not followed.
    files: BTreeMap<String, PathBuf>,
    /// What was not looked into.
    ignored: Vec<Ignored>,
}

/// Looks below the folder `task` as the agent left it. One that is no folder any more, a link above all, is not entered: it would
/// lead where the agent itself could not look. One that was
/// removed holds nothing.
fn below(folder: &Path) -> Result<Below, Ignored> {
    let of = |path: &Path, why: &str| {
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        let path = if name.is_empty() { "task".to_owned() } else { shown(&format!("task/{name}")) };
        Ignored { path, why: why.to_owned() }
    };
    let mut found = Below { files: BTreeMap::new(), ignored: Vec::new() };
    match fs::symlink_metadata(folder) {
        Ok(data) if data.is_dir() => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Ok(_) | Err(_) => return Err(of(folder, "is no folder any more: nothing of it is taken")),
    }
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((next, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            found.ignored.push(of(&next, "cannot be read"));
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match is_folder {
                // Python's own leavings say nothing.
                true if name.ends_with("__pycache__") => {}
                true if depth == DEPTH => found.ignored.push(of(&path, "is nested too deep")),
                true if found.files.len() < 16 * FILES => folders.push((path, depth + 1)),
                true => {}
                false => {
                    found.files.insert(name, path);
                }
            }
        }
    }
    Ok(found)
}

/// One sentence on how it went.
fn summary(step: &Step) -> String {
    let mut said = step.ending.word().replace('_', " ");
    if let Some(detail) = &step.detail {
        said = format!("{said}: {}", detail.lines().next().unwrap_or_default());
    }
    if let Some(repeated) = &step.repeated {
        said = format!("{said}; it made the same call {} times in a row", repeated.times);
    }
    match step.written.len() {
        0 => format!("{said}; wrote nothing"),
        1 => format!("{said}; wrote 1 file"),
        files => format!("{said}; wrote {files} files"),
    }
}
