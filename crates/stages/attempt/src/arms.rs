//! Arms: what is varied between attempts of the same task.

use infradev_agent::Skill;
use infradev_model::{Arm, Digest, DigestBuilder, Ending};

use crate::attempting::AttemptPlan;

/// One arm: a model, what stands for the specification, a skill or none.
#[derive(Debug, Clone, Default)]
pub struct AttemptArm {
    /// The model.
    pub model: Option<String>,
    /// What stands for the specification.
    pub prompt: Arm,
    /// The skill.
    pub skill: Option<Skill>,
}

impl AttemptArm {
    /// Its name without the number of an attempt: agent, model, and what differs from the plain arm.
    pub fn name(&self, agent: &str) -> String {
        let mut name = agent.to_owned();
        if let Some(model) = &self.model {
            name = format!("{name}+{model}");
        }
        if self.prompt == Arm::PrDescription {
            name.push_str("+prompt=pr-description");
        }
        if let Some(skill) = &self.skill {
            name = format!("{name}+skill={}", skill.text.name);
        }
        name
    }

    /// All that decides an attempt but task and number.
    pub(crate) fn digest(&self, plan: &AttemptPlan) -> Digest {
        let mut digest = DigestBuilder::new("infradev attempt v3");
        let agent = &plan.agent;
        digest.part("agent", &serde_json::to_vec(&agent.spec).unwrap_or_default());
        // An installation follows from the agent's file; a folder of the user's may be any.
        let own = agent.folder.as_ref().filter(|_| agent.own).map(|folder| folder.to_string_lossy());
        let endpoint = plan.endpoint.as_ref().map(infradev_agent::Endpoint::shown);
        let limits = (plan.timeout.as_secs_f64(), plan.token_budget, plan.disk_bytes);
        let asked = (&self.model, self.prompt, &endpoint, &plan.command, &own, limits);
        digest.part("asked", &serde_json::to_vec(&asked).unwrap_or_default());
        if let Some(content) = &agent.content {
            digest.part("content", content.as_str().as_bytes());
        }
        if let Some(skill) = &self.skill {
            digest.part("skill", skill.digest.as_str().as_bytes());
        }
        digest.finish()
    }
}

/// Whether an attempt that ended so stands, or is made again. One whose model was not reached never stands.
pub(crate) fn stands(ending: Ending, retry: &[Ending]) -> bool {
    ending != Ending::EndpointUnreachable && !retry.contains(&ending)
}
