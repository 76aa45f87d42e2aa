//! What a probe's report comes to: the case's outcome, and how it rejected.

use infradev_model::{Detail, Judgement, Outcome, RankOutcome, Rejection};

use crate::messages::{JudgeCase, JudgeReport};

/// A case's outcome and what is kept of it. `ranks` are those that went wrong while it ran.
pub fn judgement(
    case: &JudgeCase,
    seed: u64,
    report: JudgeReport,
    ranks: Vec<RankOutcome>,
) -> (RankOutcome, Judgement) {
    let said = Outcome::parse(&report.outcome).unwrap_or(Outcome::Error);
    let by_world = report.cause.as_deref() == Some("world");
    let has = |outcome| ranks.iter().any(|entry| entry.outcome == outcome);
    let outcome = match said {
        Outcome::Passed => Outcome::Passed,
        _ if by_world && has(Outcome::Crashed) => Outcome::Crashed,
        _ if by_world && has(Outcome::Timeout) => Outcome::Timeout,
        _ if by_world => Outcome::Error,
        other => other,
    };
    let rejection = match (said, report.cause.as_deref()) {
        (Outcome::Passed, _) => None,
        (_, Some("expectation")) => Some(Rejection::Substantive),
        (_, Some("world")) if report.kinds().iter().all(|kind| kind == "missing" || kind == "hollow") => {
            Some(Rejection::Trivial)
        }
        _ => Some(Rejection::Broken),
    };
    let detail = (said != Outcome::Passed).then(|| {
        Box::new(Detail {
            exception: report.exception.clone().unwrap_or_default(),
            message: report.message.clone().unwrap_or_default(),
            file: report.file.clone(),
            line: report.line,
        })
    });
    let judgement = Judgement {
        seed,
        checks: case.checks.clone(),
        traits: case.traits.clone(),
        rejection,
        expectations: report.expectations,
        ranks,
        text: report.longrepr.unwrap_or_default(),
    };
    (RankOutcome { outcome, detail }, judgement)
}

impl JudgeReport {
    /// Kinds of the failures on the ranks of the failing world; never empty.
    fn kinds(&self) -> Vec<String> {
        let entries = self.ranks.iter().flatten();
        let kinds: Vec<String> = entries
            .filter(|entry| !matches!(entry["status"].as_str(), Some("returned" | "peer_abort" | "gone")))
            .map(|entry| entry["kind"].as_str().unwrap_or("other").to_string())
            .collect();
        if kinds.is_empty() { vec!["other".to_string()] } else { kinds }
    }
}
