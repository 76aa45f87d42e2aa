//! Submissions as other tools know them: SWE-bench's fields.

use infradev_model::SubmissionRecord;
use serde::Serialize;

#[derive(Serialize)]
struct Prediction<'a> {
    instance_id: &'a str,
    model_name_or_path: &'a str,
    model_patch: &'a str,
}

/// The name under which a submission is graded: the arm's, and which attempt of several.
pub fn submission_name(arm: &str, attempt: u32, of: u32) -> String {
    if of > 1 { format!("{arm}#{attempt}") } else { arm.to_owned() }
}

/// A submission's name as a folder's.
pub fn folder_name(submission: &str) -> String {
    submission.replace(['/', '\0'], "_")
}

/// One line of a predictions file; none where the patch is no UTF-8, which such a line cannot hold.
pub fn prediction(record: &SubmissionRecord, patch: &[u8]) -> Option<String> {
    let line = Prediction {
        instance_id: &record.task,
        model_name_or_path: &record.submission,
        model_patch: std::str::from_utf8(patch).ok()?,
    };
    Some(serde_json::to_string(&line).ok()? + "\n")
}

#[cfg(test)]
mod tests {
    use infradev_model::Arm;

    use super::*;
    use crate::arms::AttemptArm;

    #[test]
    fn a_submissions_name_says_agent_model_arm_and_which_attempt_of_several() {
        let mut arm = AttemptArm { model: Some("a/b".into()), ..AttemptArm::default() };
        assert_eq!(submission_name(&arm.name("codex"), 1, 1), "codex+a/b");
        arm.prompt = Arm::PrDescription;
        let name = submission_name(&arm.name("codex"), 2, 3);
        assert_eq!(name, "codex+a/b+prompt=pr-description#2");
        assert_eq!(folder_name(&name), "codex+a_b+prompt=pr-description#2");
        assert_eq!(submission_name(&AttemptArm::default().name("command"), 1, 1), "command");
    }
}
