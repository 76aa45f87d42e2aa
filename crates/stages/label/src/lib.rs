//! Labelling by an agent: failing cases that rules left open are given to a coding agent, one file a case, one folder a
//! submission, and its answers come back as labels that say who gave them.
//!
//! The agent runs as in an attempt: in a sandbox, its model behind the proxy, its tokens metered. What it is told is what the report
//! shows of a case. Each submission's cases are asked in a run of the agent of their own, so that what one patch says can sway no
//! label of another. Finished ones are in the run's journal and are not asked again.

mod answers;
mod asking;
mod error;
mod instructions;

use std::path::PathBuf;
use std::time::Duration;

use infradev_agent::{Endpoint, Installed};
use infradev_executor::Executor;
use infradev_model::{AgentUsed, Answered, Ending, LABELLING_SCHEMA, Labelled, LabellingDocument};
use infradev_store::RunFolder;

use asking::Asking;
pub use error::LabelError;

/// A failing case that rules left open.
#[derive(Debug, Clone)]
pub struct OpenCase {
    /// The case, by the name that a public report gives it.
    pub case: String,
    /// World size.
    pub world: u32,
    /// What the agent is told of it: a TOML document.
    pub told: String,
    /// What rules said.
    pub ruled: Labelled,
}

/// The open cases of one submission.
#[derive(Debug, Clone)]
pub struct OpenCases {
    /// The task's id.
    pub task: String,
    /// The submission's name, which the agent is not told.
    pub submission: String,
    /// Its patch, where it may be shown.
    pub patch: Option<Vec<u8>>,
    /// The cases.
    pub cases: Vec<OpenCase>,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct LabelPlan {
    /// Who labels.
    pub agent: Installed,
    /// Its model.
    pub model: Option<String>,
    /// The model's endpoint.
    pub endpoint: Option<Endpoint>,
    /// What `{command}` of the agent's file stands for.
    pub command: Option<String>,
    /// This program, which relays inside the sandbox.
    pub program: PathBuf,
    /// How long the cases of one submission may take.
    pub step: Duration,
    /// How long all may take together.
    pub time: Duration,
    /// Input and output tokens of all together.
    pub tokens: Option<u64>,
    /// The cases.
    pub open: Vec<OpenCases>,
}

impl LabelPlan {
    /// Who says so, in a file of labels: `claude-code 2.0.1, claude-sonnet-4-5`.
    pub fn who(&self) -> String {
        let spec = &self.agent.spec;
        let model = self.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
        format!("{} {}{model}", spec.name, spec.version)
    }
}

/// What is left of the budget.
struct Budget {
    time: Duration,
    tokens: Option<u64>,
}

impl Budget {
    fn spend(&mut self, answered: &Answered) {
        self.time = self.time.saturating_sub(Duration::from_secs_f64(answered.agent_s));
        let used = answered.metered.charged();
        self.tokens = self.tokens.map(|tokens| tokens.saturating_sub(used));
    }

    fn spent(&self) -> Option<&'static str> {
        match self {
            Budget { time: Duration::ZERO, .. } => Some("the agent's time is over"),
            Budget { tokens: Some(0), .. } => Some("the agent's tokens are used up"),
            _ => None,
        }
    }
}

/// Asks the agent of each submission's cases, within the budget.
///
/// # Errors
/// The machine, the person's wish to stop, a model that could not be reached. Whatever else the agent does is told of it.
pub async fn run(
    executor: &Executor,
    folder: &RunFolder,
    plan: &LabelPlan,
    told: &(dyn Fn(&Answered) + Send + Sync),
) -> Result<LabellingDocument, LabelError> {
    let cases: usize = plan.open.iter().map(|open| open.cases.len()).sum();
    let spec = &plan.agent.spec;
    let mut document = LabellingDocument {
        schema: LABELLING_SCHEMA,
        run: folder.id().to_owned(),
        agent: AgentUsed { name: spec.name.clone(), version: spec.version.clone() },
        model: plan.model.clone(),
        open: u32::try_from(cases).unwrap_or(u32::MAX),
        answered: Vec::new(),
        left: None,
        tokens: 0,
        agent_s: 0.0,
    };
    let mut budget = Budget { time: plan.time, tokens: plan.tokens };
    for (at, open) in plan.open.iter().enumerate() {
        if let Some(spent) = budget.spent() {
            let left = plan.open.len() - at;
            document.left = Some(format!("{spent}: {left} of {} submissions are left open", plan.open.len()));
            break;
        }
        let answered = Asking { executor, run: folder, plan, open }.asked(&budget).await?;
        if answered.ending == Ending::EndpointUnreachable {
            let why = answered.detail.clone().unwrap_or_default();
            return Err(LabelError::Unreachable { submission: open.submission.clone(), why });
        }
        budget.spend(&answered);
        told(&answered);
        document.answered.push(answered);
    }
    document.tokens =
        document.answered.iter().map(|one| one.metered.tokens.all()).fold(0, u64::saturating_add);
    document.agent_s = document.answered.iter().map(|one| one.agent_s).sum();
    Ok(document)
}
