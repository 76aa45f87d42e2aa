//! How far a submission comes.

use infradev_model::{FailingCase, Gates, Grade, Suite, Verdict, Word};

/// The gates that a graded submission passes; `worlds` are the sizes that its trials were read of. What was tampered with passes none
/// after the first: its results are not to be trusted.
pub(crate) fn gates(grade: &Grade, worlds: &[u32]) -> Option<Gates> {
    let nothing = Gates::default();
    let applies = Gates { applies: true, ..nothing };
    match grade.verdict {
        Verdict::Fault => None,
        Verdict::Empty | Verdict::NotApplied => Some(nothing),
        Verdict::Tampered => Some(applies),
        Verdict::Resolved => Some(Gates {
            applies: true,
            imports: true,
            collects: true,
            smallest_world: Some(true),
            official: true,
            resolved: true,
        }),
        Verdict::Unresolved => {
            let official: Vec<&FailingCase> =
                grade.failing.iter().filter(|failing| failing.case.suite == Suite::Official).collect();
            let missing = official.iter().filter(|failing| failing.word == Word::Missing).count();
            let all = usize::try_from(grade.suites.official.of).unwrap_or(usize::MAX);
            let whole = !worlds.is_empty() && worlds.len() == grade.trials.len();
            let smallest = worlds.iter().min().filter(|_| whole);
            Some(Gates {
                imports: missing < all,
                collects: missing == 0,
                smallest_world: smallest.map(|size| official.iter().all(|failing| failing.world != *size)),
                official: official.is_empty() && all > 0,
                ..applies
            })
        }
    }
}
