//! JSON schemas of every file and document, generated from the types; `schemas/` holds them, checked in.

use schemars::schema_for;

/// Each schema's file name and text.
pub fn schemas() -> Vec<(&'static str, String)> {
    let text = |schema: schemars::Schema| {
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    };
    vec![
        ("pack.schema.json", text(schema_for!(crate::Pack))),
        ("task.schema.json", text(schema_for!(crate::TaskSpec))),
        ("contract.schema.json", text(schema_for!(crate::Contract))),
        ("adversarial.schema.json", text(schema_for!(crate::AdversarialSpec))),
        ("equivalent.schema.json", text(schema_for!(crate::EquivalentSpec))),
        ("acceptance.schema.json", text(schema_for!(crate::Acceptance))),
        ("accept.schema.json", text(schema_for!(crate::AcceptDocument))),
        ("calibration.schema.json", text(schema_for!(crate::Calibration))),
        ("trial.schema.json", text(schema_for!(crate::TrialResult))),
        ("grade.schema.json", text(schema_for!(crate::GradeDocument))),
        ("contract-lint.schema.json", text(schema_for!(crate::ContractDocument))),
        ("prompt.schema.json", text(schema_for!(crate::Prompt))),
        ("synthesize.schema.json", text(schema_for!(crate::SynthesisDocument))),
        ("probe-gaps.schema.json", text(schema_for!(crate::GapsDocument))),
        ("agent.schema.json", text(schema_for!(crate::AgentSpec))),
        ("submission.schema.json", text(schema_for!(crate::SubmissionRecord))),
        ("trajectory.schema.json", text(schema_for!(crate::atif::Trajectory))),
        ("attempt.schema.json", text(schema_for!(crate::AttemptDocument))),
        ("attempt-plan.schema.json", text(schema_for!(crate::AttemptPlanDocument))),
        ("prices.schema.json", text(schema_for!(crate::PriceTable))),
        ("eval.schema.json", text(schema_for!(crate::EvalDocument))),
        ("report.schema.json", text(schema_for!(crate::Analysis))),
        ("task-reference.schema.json", text(schema_for!(crate::TaskReference))),
        ("labels.schema.json", text(schema_for!(crate::LabelFile))),
        ("labelling.schema.json", text(schema_for!(crate::LabellingDocument))),
        ("rounds.schema.json", text(schema_for!(crate::RoundsDocument))),
        ("curate.schema.json", text(schema_for!(crate::CurationDocument))),
        ("run.schema.json", text(schema_for!(crate::Run))),
    ]
}
