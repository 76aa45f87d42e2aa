//! What is on record of an attempt, and what is said of it.

use infradev_agent::{Again, Endpoint, PATIENCE, RunEnd};
use infradev_git::Captured;
use infradev_model::{
    AgentUsed, Digest, Ending, Metered, SUBMISSION_SCHEMA, SandboxReport, SubmissionRecord,
};

use crate::attempting::{Turn, shown_prompt};
use crate::capturing::{skipped, test_edits};

/// The end of an agent that was not started.
pub(crate) fn not_started(why: String) -> RunEnd {
    RunEnd {
        ending: Ending::Refused,
        detail: Some(why),
        again: Again::InVain,
        agent_s: 0.0,
        metered: Metered::default(),
        own_tokens: None,
        trajectory: None,
        lookups: Vec::new(),
        left_running: Some(Vec::new()),
        sandbox: SandboxReport::default(),
        skill: None,
    }
}

/// The record of a run that ended, but for its seconds, its tries and its folder.
pub(crate) fn record(turn: &Turn<'_>, end: RunEnd, captured: &Captured) -> SubmissionRecord {
    let Turn { plan, desk, arm, prompt, number } = *turn;
    let own_tokens_off = end.own_tokens.and_then(|own| own.off(end.metered.tokens));
    SubmissionRecord {
        schema: SUBMISSION_SCHEMA,
        task: desk.spec.id.clone(),
        submission: plan.submission(arm, number),
        attempt: number,
        agent: AgentUsed { name: plan.agent.spec.name.clone(), version: plan.agent.spec.version.clone() },
        model: arm.model.clone(),
        endpoint: plan.endpoint.as_ref().map(Endpoint::shown),
        arm: arm.prompt,
        prompt: shown_prompt(plan, arm, prompt),
        skill: end.skill,
        tries: 1,
        ending: end.ending,
        detail: end.detail,
        agent_s: end.agent_s,
        wall_s: end.agent_s,
        cost: plan.cost(arm, &end.metered),
        all_tries: None,
        metered: end.metered,
        own_tokens: end.own_tokens,
        own_tokens_off,
        trajectory: end.trajectory,
        lookups: end.lookups,
        left_running: end.left_running,
        sandbox: end.sandbox,
        patch: Digest::of(&captured.patch),
        patch_bytes: captured.patch.len() as u64,
        test_edits: test_edits(&captured.patch, &desk.spec),
        skipped: skipped(captured),
        folder: String::new(),
    }
}

/// What kept an attempt from its model, on one line.
pub(crate) fn shown_fault(record: &SubmissionRecord) -> String {
    let why = record.detail.as_deref().and_then(|detail| detail.lines().next()).unwrap_or_default();
    format!("{why}; waiting for the endpoint, {} s at most", PATIENCE.as_secs())
}

/// One sentence on how it went.
pub(crate) fn summary(record: &SubmissionRecord) -> String {
    let mut said = record.ending.word().replace('_', " ");
    if let Some(detail) = &record.detail {
        said = format!("{said}: {}", detail.lines().next().unwrap_or_default());
    }
    let patch = match record.patch_bytes {
        0 => "no change".to_owned(),
        bytes => format!("a patch of {bytes} bytes"),
    };
    format!("{said}; {patch}")
}
