//! One run of the agent: the folder that it is given, and what is taken of what it wrote.

use std::fs;
use std::path::Path;

use infradev_agent::RunSpec;
use infradev_executor::{Executor, Happening};
use infradev_git::commit_folder;
use infradev_model::{Answered, Digest, DigestBuilder, Ending};
use infradev_sandbox::Limits;
use infradev_store::{RunEvent, RunFolder};

use crate::{Budget, LabelError, LabelPlan, OpenCases, answers, instructions};

/// Memory and processes that the agent may have.
const OWN: Limits = Limits { memory_bytes: 6 << 30, pids: 1024 };
/// Bound of `/tmp`, bytes.
const TMP: u64 = 2 << 30;
/// Bytes that it may put on the disk.
const DISK: u64 = 2 << 30;

/// What is needed to ask.
pub(crate) struct Asking<'a> {
    pub executor: &'a Executor,
    pub run: &'a RunFolder,
    pub plan: &'a LabelPlan,
    pub open: &'a OpenCases,
}

impl Asking<'_> {
    /// Asks, or gives the record of an earlier process.
    pub async fn asked(&self, budget: &Budget) -> Result<Answered, LabelError> {
        let OpenCases { task, submission, patch, cases } = self.open;
        let prompt = instructions::prompt(task, cases.len(), patch.is_some());
        let key = self.key(&prompt);
        let before = self.run.finished::<Answered>(&key)?;
        if let Some(answered) = before.filter(|answered| answered.ending != Ending::EndpointUnreachable) {
            return Ok(answered);
        }
        let label = format!("{task} · {submission}");
        let slot = self.executor.slot(0).await?;
        self.executor.tell(Happening::TrialStarted { label: label.clone(), expected: None });
        let what = format!("labels of {submission}");
        let (trial, task) = (key.clone(), task.clone());
        self.run.record(&RunEvent::TrialStarted { trial, task, what, world: 0 })?;
        let staging = self.run.stage(&key)?;
        let workspace = staging.scratch().join("workspace");
        self.lay(&workspace)?;
        let (scratch, kept) = (staging.scratch().to_owned(), staging.kept());
        let spec = self.run_spec(&prompt, &workspace, &scratch, &kept, budget);
        let end = infradev_agent::run(spec).await?;
        drop(slot);
        let (labels, ignored) = answers::read(self.open, &workspace.join("answers"), &self.plan.who());
        let answered = Answered {
            task: self.open.task.clone(),
            submission: submission.clone(),
            cases: u32::try_from(cases.len()).unwrap_or(u32::MAX),
            ending: end.ending,
            detail: end.detail,
            labels,
            ignored,
            metered: end.metered,
            lookups: end.lookups,
            agent_s: end.agent_s,
            folder: format!("trials/{key}"),
        };
        staging.finish(&answered)?;
        let (wall_s, cached) = (answered.agent_s, false);
        self.run.record(&match answered.ending {
            Ending::EndpointUnreachable => {
                let evidence = answered.detail.clone().unwrap_or_default();
                RunEvent::TrialFault { trial: key, evidence }
            }
            _ => RunEvent::TrialFinished { trial: key, wall_s },
        })?;
        let said = answered.ending.word().replace('_', " ");
        let summary = format!("{said}; {} of {} labelled", answered.labels.len(), answered.cases);
        self.executor.tell(Happening::TrialEnded { label, wall_s, cached, summary });
        Ok(answered)
    }

    /// All that decides an answer.
    fn key(&self, prompt: &str) -> Digest {
        let mut digest = DigestBuilder::new("infradev label v1");
        let agent = &self.plan.agent;
        digest.part("agent", &serde_json::to_vec(&agent.spec).unwrap_or_default());
        let asked = (&self.plan.model, &self.plan.command, &self.open.task, &self.open.submission);
        digest.part("asked", &serde_json::to_vec(&asked).unwrap_or_default());
        if let Some(content) = &agent.content {
            digest.part("content", content.as_str().as_bytes());
        }
        digest.part("prompt", prompt.as_bytes());
        digest.part("patch", self.open.patch.as_deref().unwrap_or_default());
        for case in &self.open.cases {
            digest.part("case", case.case.as_bytes()).part("told", case.told.as_bytes());
        }
        digest.finish()
    }

    fn lay(&self, workspace: &Path) -> Result<(), LabelError> {
        for name in ["cases", "answers"] {
            let folder = workspace.join(name);
            fs::create_dir_all(&folder).map_err(LabelError::io(folder))?;
        }
        let write = |name: &str, bytes: &[u8]| {
            let path = workspace.join(name);
            fs::write(&path, bytes).map_err(LabelError::io(path))
        };
        write("TAXONOMY.md", instructions::taxonomy().as_bytes())?;
        if let Some(patch) = &self.open.patch {
            write("patch.diff", patch)?;
        }
        for (at, case) in self.open.cases.iter().enumerate() {
            write(&format!("cases/{}", answers::file(at)), case.told.as_bytes())?;
        }
        // Some agents work in a repository alone.
        commit_folder(workspace, "Cases")?;
        Ok(())
    }

    fn run_spec<'a>(
        &'a self,
        prompt: &'a str,
        workspace: &'a Path,
        scratch: &'a Path,
        kept: &'a Path,
        budget: &Budget,
    ) -> RunSpec<'a> {
        RunSpec {
            agent: &self.plan.agent,
            model: self.plan.model.as_deref(),
            endpoint: self.plan.endpoint.clone(),
            command: self.plan.command.as_deref(),
            prompt,
            skill: None,
            workspace,
            mounts: Vec::new(),
            path: Vec::new(),
            env: Vec::new(),
            files: Vec::new(),
            limits: OWN,
            disk_bytes: DISK,
            tmp_bytes: TMP,
            gpus: Vec::new(),
            timeout: self.plan.step.min(budget.time),
            token_budget: budget.tokens,
            scratch,
            kept,
            program: &self.plan.program,
        }
    }
}
