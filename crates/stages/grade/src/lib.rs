//! Grading: official tests and probes of a submission against golden's calibration, to a verdict. Knows patches by the name
//! under which they were submitted and nothing of who made them.

mod grading;
mod plan;
mod scoring;

pub use grading::{GradeError, OnGrade, run};
pub use plan::{Content, GradePlan, Submission, SubmissionError, submissions};
pub use scoring::{grade, without_trial};
