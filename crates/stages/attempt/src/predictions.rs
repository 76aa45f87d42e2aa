//! Submissions as other tools know them: SWE-bench's fields.

use infradev_model::SubmissionRecord;
use serde::Serialize;

#[derive(Serialize)]
struct Prediction<'a> {
    instance_id: &'a str,
    model_name_or_path: &'a str,
    model_patch: &'a str,
}

/// The name under which a submission is graded: agent, model, skill, and which attempt of several.
pub fn submission_name(
    agent: &str,
    model: Option<&str>,
    skill: Option<&str>,
    attempt: u32,
    of: u32,
) -> String {
    let mut name = agent.to_owned();
    if let Some(model) = model {
        name = format!("{name}+{model}");
    }
    if let Some(skill) = skill {
        name = format!("{name}+skill={skill}");
    }
    if of > 1 {
        name = format!("{name}#{attempt}");
    }
    name
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
    use super::*;

    #[test]
    fn a_submissions_name_says_agent_model_skill_and_which_attempt_of_several() {
        assert_eq!(submission_name("codex", Some("a/b"), None, 1, 1), "codex+a/b");
        assert_eq!(submission_name("codex", Some("a/b"), Some("c"), 2, 3), "codex+a/b+skill=c#2");
        assert_eq!(submission_name("command", None, None, 1, 1), "command");
        assert_eq!(folder_name("codex+a/b#2"), "codex+a_b#2");
    }
}
