//! What a judge's report says of a patch: the case's outcome, and why it was rejected.

use infradev_model::{Detail, Judgement, Outcome, RankOutcome, Rejection};

use crate::messages::{JudgeCase, JudgeReport, MESSAGE, TRACE, within};

impl JudgeReport {
    /// The case's entry and what is kept beside it; `ranks` is what went wrong on each rank of the world that failed.
    pub fn judged(self, case: &JudgeCase, seed: u64, ranks: Vec<RankOutcome>) -> (RankOutcome, Judgement) {
        let said = Outcome::parse(&self.outcome).unwrap_or(Outcome::Error);
        let by_world = self.cause.as_deref() == Some("world");
        let has = |outcome| ranks.iter().any(|entry| entry.outcome == outcome);
        let outcome = match said {
            Outcome::Passed => Outcome::Passed,
            _ if by_world && has(Outcome::Crashed) => Outcome::Crashed,
            _ if by_world && has(Outcome::Timeout) => Outcome::Timeout,
            _ if by_world => Outcome::Error,
            other => other,
        };
        let rejection = match (said, self.cause.as_deref()) {
            (Outcome::Passed, _) => None,
            (_, Some("expectation")) => Some(Rejection::Substantive),
            (_, Some("world")) if self.kinds().iter().all(|kind| kind == "missing" || kind == "hollow") => {
                Some(Rejection::Trivial)
            }
            (_, Some("world")) => Some(Rejection::Broken),
            // The judge failed by itself.
            _ => None,
        };
        let detail = (said != Outcome::Passed).then(|| {
            Box::new(Detail {
                // The judge repeats what ranks said.
                exception: within(self.exception.clone().unwrap_or_default(), MESSAGE),
                message: within(self.message.clone().unwrap_or_default(), MESSAGE),
                file: self.file.clone(),
                line: self.line,
            })
        });
        let mut expectations = self.expectations;
        for made in &mut expectations {
            for text in [&mut made.expected, &mut made.got, &mut made.detail] {
                *text = within(std::mem::take(text), MESSAGE);
            }
        }
        let judgement = Judgement {
            seed,
            checks: case.checks.clone(),
            traits: case.traits.clone(),
            exact: case.exact.clone(),
            rejection,
            expectations,
            ranks,
            text: within(self.longrepr.unwrap_or_default(), TRACE),
        };
        (RankOutcome { outcome, detail }, judgement)
    }

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
