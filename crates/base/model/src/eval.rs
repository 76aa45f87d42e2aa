//! What `infradev eval` says: attempts, their grades, and both put together by arm.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::submission::{AttemptDocument, Ending, SubmissionRecord, Tokens};
use crate::verdict::{Grade, GradeDocument, Verdict};

/// The schema version of what `infradev eval --json` prints.
pub const EVAL_SCHEMA: u32 = 1;

/// One arm over all tasks and attempts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvalArm {
    /// The arm's name: that of its submissions without the number of the attempt.
    pub arm: String,
    /// Attempts.
    pub attempts: u32,
    /// Attempts that count: those that reached their model and whose grading ended in no fault.
    pub scored: u32,
    /// Of those that count, the resolved ones.
    pub resolved: u32,
    /// Attempts whose model was not reached; in no rate.
    pub unreached: u32,
    /// Attempts whose grading ended in a harness fault; in no rate.
    pub faults: u32,
    /// Tokens of all its attempts.
    pub tokens: Tokens,
    /// US dollars of all its attempts; left out where the cost of one is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Seconds that its agents worked.
    pub agent_s: f64,
}

/// What `infradev eval --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvalDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The arms, in the order of the attempts.
    pub arms: Vec<EvalArm>,
    /// The attempts.
    pub attempt: AttemptDocument,
    /// Their grades.
    pub grade: GradeDocument,
}

impl EvalDocument {
    /// Puts attempts and grades together.
    pub fn of(attempt: AttemptDocument, grade: GradeDocument) -> EvalDocument {
        let mut arms: Vec<EvalArm> = Vec::new();
        for record in &attempt.submissions {
            let name = arm_of(record);
            let at = arms.iter().position(|arm| arm.arm == name).unwrap_or_else(|| {
                arms.push(EvalArm { arm: name.to_owned(), usd: Some(0.0), ..EvalArm::default() });
                arms.len() - 1
            });
            let of = |grade: &&Grade| grade.task == record.task && grade.submission == record.submission;
            arms[at].count(record, grade.submissions.iter().find(of));
        }
        EvalDocument { schema: EVAL_SCHEMA, arms, attempt, grade }
    }
}

impl EvalArm {
    fn count(&mut self, record: &SubmissionRecord, grade: Option<&Grade>) {
        self.attempts += 1;
        self.tokens += record.metered.tokens;
        self.agent_s += record.agent_s;
        // What uses no tokens costs nothing.
        let free = record.metered.requests == 0;
        let usd = if free { Some(0.0) } else { record.cost.as_ref().map(|cost| cost.usd) };
        self.usd = self.usd.zip(usd).map(|(sum, more)| sum + more);
        match grade.map(|grade| grade.verdict) {
            _ if record.ending == Ending::EndpointUnreachable => self.unreached += 1,
            None | Some(Verdict::Fault) => self.faults += 1,
            Some(verdict) => {
                self.scored += 1;
                self.resolved += u32::from(verdict == Verdict::Resolved);
            }
        }
    }
}

/// The arm of a submission, by its name.
fn arm_of(record: &SubmissionRecord) -> &str {
    record.submission.strip_suffix(&format!("#{}", record.attempt)).unwrap_or(&record.submission)
}
