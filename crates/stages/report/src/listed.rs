//! Every submission and every failing case, a row each.

use infradev_model::{AnalysedSubmission, Analysis, CaseError, Likeness, Tokens};

use crate::table::Table;
use crate::tables::{label, word};

pub(crate) fn submissions(analysis: &Analysis) -> Table {
    let columns = [
        "task",
        "submission",
        "arm",
        ">attempt",
        "verdict",
        ">official passed",
        ">official of",
        ">probes passed",
        ">probes of",
        ">failing",
        "ending",
        ">input tokens",
        ">output tokens",
        ">agent s",
        ">usd",
        ">refused look-ups",
        "skill opened",
        ">golden's lines shared",
        ">golden's lines",
        ">shingles shared",
        ">golden's files shared",
        ">golden's files",
        ">own files",
        ">own assertions",
        ">own resource assertions",
        "gates tried",
        ">graded s",
        "run",
    ];
    let mut table = Table::new("submissions", "Submissions", &columns);
    for submission in &analysis.submissions {
        let (official, probe) = (submission.suites.official, submission.suites.probe);
        let tokens = |of: fn(&Tokens) -> u64| {
            submission.tokens.as_ref().map(|tokens| of(tokens).to_string()).unwrap_or_default()
        };
        let like = |of: fn(&Likeness) -> u32| {
            submission.likeness.as_ref().map(|like| of(like).to_string()).unwrap_or_default()
        };
        let own = |of: fn((u64, u64)) -> u64| {
            submission.own_tests.as_ref().map(|tests| of(tests.resources()).to_string()).unwrap_or_default()
        };
        table.rows.push(vec![
            submission.task.clone(),
            submission.submission.clone(),
            submission.arm.clone(),
            submission.attempt.to_string(),
            word(submission).to_owned(),
            official.passed.to_string(),
            official.of.to_string(),
            probe.passed.to_string(),
            probe.of.to_string(),
            submission.failing.to_string(),
            submission.ending.map(|ending| ending.word().to_owned()).unwrap_or_default(),
            tokens(|tokens| tokens.input),
            tokens(|tokens| tokens.output),
            submission.agent_s.map(|seconds| format!("{seconds:.1}")).unwrap_or_default(),
            submission.usd.map(|usd| format!("{usd:.4}")).unwrap_or_default(),
            submission.lookups.map(|times| times.to_string()).unwrap_or_default(),
            submission.skill_opened.map(|opened| opened.to_string()).unwrap_or_default(),
            like(|like| like.shared_lines),
            like(|like| like.lines),
            submission.likeness.map(|like| format!("{:.3}", like.shingles)).unwrap_or_default(),
            like(|like| like.shared_files),
            like(|like| like.files),
            like(|like| like.own_files),
            own(|(all, _)| all),
            own(|(_, resources)| resources),
            gates_tried(submission),
            format!("{:.1}", submission.graded_s),
            submission.run.clone(),
        ]);
    }
    table
}

/// The gates that an agent passed by its own trial, in their order.
pub(crate) fn gates_tried(submission: &AnalysedSubmission) -> String {
    let gates = submission.tried.iter().flatten().map(|reached| reached.gate.word());
    gates.collect::<Vec<_>>().join(", ")
}

pub(crate) fn cases(analysis: &Analysis) -> Table {
    let columns = [
        "task",
        "submission",
        "suite",
        "case",
        ">world",
        "word",
        "label",
        "by",
        "rule",
        "evidence",
        "checks",
        "assertion",
        "exception",
        "message",
        "at",
        "signature",
        "run",
    ];
    let mut table = Table::new("cases", "Failing cases", &columns);
    table.rows.extend(analysis.cases.iter().map(case));
    table
}

fn case(case: &CaseError) -> Vec<String> {
    vec![
        case.task.clone(),
        case.submission.clone(),
        case.suite.to_string(),
        case.case.clone(),
        case.world.to_string(),
        case.word.word().to_owned(),
        label(case.label.label),
        case.label.by.word().to_owned(),
        case.label.rule.clone(),
        case.label.evidence.clone(),
        case.checks.clone().unwrap_or_default(),
        case.assertion.clone().unwrap_or_default(),
        case.exception.clone(),
        case.message.clone(),
        case.at.clone().unwrap_or_default(),
        case.signature.clone(),
        case.run.clone(),
    ]
}
