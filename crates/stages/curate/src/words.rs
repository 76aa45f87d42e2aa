//! Words of titles, paths and descriptions, and what they speak for.

use infradev_model::Evidence;

/// Words of a text in small letters: `CamelCase` stays one, `snake_case` is several.
pub fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A word and where it stands.
pub fn evidence(what: impl Into<String>, place: &str) -> Evidence {
    Evidence { what: what.into(), place: place.to_owned() }
}

/// Most evidence that is shown: enough to see why.
const SHOWN: usize = 4;

/// Weights for several answers to one question, each with what speaks for it.
pub struct Votes<T> {
    all: Vec<Vote<T>>,
}

struct Vote<T> {
    answer: T,
    sum: f64,
    why: Vec<(f64, Evidence)>,
}

impl<T: Copy + PartialEq> Votes<T> {
    /// No votes yet. Of equal sums the answer that stands first is taken.
    pub fn among(answers: &[T]) -> Votes<T> {
        let vote = |answer: &T| Vote { answer: *answer, sum: 0.0, why: Vec::new() };
        Votes { all: answers.iter().map(vote).collect() }
    }

    /// Adds weight to an answer.
    pub fn add(&mut self, answer: T, weight: f64, evidence: Evidence) {
        if let Some(vote) = self.all.iter_mut().find(|vote| vote.answer == answer) {
            vote.sum += weight;
            vote.why.push((weight, evidence));
        }
    }

    /// The sum of an answer.
    pub fn of(&self, answer: T) -> f64 {
        self.all.iter().find(|vote| vote.answer == answer).map_or(0.0, |vote| vote.sum)
    }

    /// The answer with the largest sum, and what speaks for it, the weightiest first.
    pub fn best(self) -> Option<(T, Vec<Evidence>)> {
        let mut best: Option<Vote<T>> = None;
        for vote in self.all {
            if best.as_ref().is_none_or(|best| vote.sum > best.sum) {
                best = Some(vote);
            }
        }
        let Vote { answer, mut why, .. } = best?;
        why.sort_by(|(one, _), (two, _)| two.total_cmp(one));
        let mut shown: Vec<Evidence> = Vec::new();
        for (_, evidence) in why {
            if shown.len() < SHOWN && !shown.contains(&evidence) {
                shown.push(evidence);
            }
        }
        Some((answer, shown))
    }
}
