//! A guess of the kind, from what is said of a change and what it is made of.
//!
//! Words of the title weigh most: the type of a conventional commit, the first verb, phrases such as “reduce … latency”. The
//! description, labels and the shape of the change decide where the title says little or two things.

mod lists;
mod shape;
mod title;

use infradev_model::{Definitions, Facts, Guess, Kind, Lines};

use crate::told::{Told, headings, prose};
use crate::words::{Votes, evidence, words};
use lists::{BODY, COSTS, HEADINGS, LABELS, LESSENING, List, MOST_OF_BODY, SPARING, VERBS, WORK};

/// What a change is made of, as far as its kind shows in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Made {
    /// Definitions added, changed, moved.
    pub definitions: Definitions,
    /// Source lines that hold code.
    pub substance: Lines,
    /// Test functions added.
    pub tests_added: u32,
    /// Its tests look at memory, time or bytes.
    pub measured: bool,
}

impl Made {
    /// What is known of a change.
    pub fn of(facts: &Facts) -> Made {
        Made {
            definitions: facts.definitions,
            substance: facts.substance,
            tests_added: facts.tests_added,
            measured: !facts.checks.resources.is_empty(),
        }
    }
}

/// Of equal weights the kind that stands first.
const KINDS: [Kind; 4] = [Kind::Feature, Kind::Fix, Kind::Refactor, Kind::Performance];

/// A guess of the kind, with what speaks for it.
pub fn kind(told: &Told<'_>, made: Option<&Made>) -> Guess<Kind> {
    let mut votes = Votes::among(&KINDS);
    let typed = title::title(told.title, &mut votes);
    for label in told.labels {
        for word in words(label) {
            if let Some((kind, weight)) = listed(LABELS, &word) {
                votes.add(kind, weight, evidence(label.clone(), "label"));
            }
        }
    }
    description(&prose(told.body), &mut votes);
    let mut headed: Vec<Kind> = Vec::new();
    for word in headings(told.body).iter().flat_map(|heading| words(heading)) {
        if let Some((kind, weight)) = listed(HEADINGS, &word).filter(|(kind, _)| !headed.contains(kind)) {
            votes.add(kind, weight, evidence(word, "body"));
            headed.push(kind);
        }
    }
    figures(told.body, &mut votes);
    if let Some(made) = made {
        shape::shape(made, typed.contains(&Kind::Refactor), &mut votes);
    }
    let spoken = KINDS.iter().any(|kind| votes.of(*kind) > 0.0);
    match votes.best().filter(|_| spoken) {
        Some((is, evidence)) => Guess { is, evidence },
        None => Guess { is: Kind::Feature, evidence: Vec::new() },
    }
}

fn listed(list: List, word: &str) -> Option<(Kind, f64)> {
    list.iter().find(|(_, _, known)| known.contains(&word)).map(|(kind, weight, _)| (*kind, *weight))
}

/// The first of the verbs that has one of the objects within so many words after it: its place, and the object.
fn phrase<'a>(
    said: &'a [String],
    verbs: &[&str],
    objects: &[&str],
    within: usize,
) -> Option<(usize, &'a str)> {
    let places = said.iter().enumerate().filter(|(_, word)| verbs.contains(&word.as_str()));
    places.map(|(at, _)| at).find_map(|at| {
        let after = said[at + 1..].iter().take(within);
        after.map(String::as_str).find(|word| objects.contains(word)).map(|object| (at, object))
    })
}

/// `2x`, `20x`.
fn is_times(word: &str) -> bool {
    word.strip_suffix('x')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// A description that compares what it measured, in its tables too, is of a change that is to be faster: what so many figures weigh.
const FIGURES: usize = 2;
const OF_FIGURES: f64 = 1.5;

fn figures(body: &str, votes: &mut Votes<Kind>) {
    let compares =
        |word: &String| matches!(word.as_str(), "speedup" | "speedups" | "faster") || is_times(word);
    let count = words(body).iter().filter(|word| compares(word)).count();
    if count >= FIGURES {
        votes.add(Kind::Performance, OF_FIGURES, evidence(format!("speedups, {count} times"), "body"));
    }
}

/// Adds weight for a kind, up to a bound over all of one text.
fn add_bounded(
    votes: &mut Votes<Kind>,
    sums: &mut [f64; KINDS.len()],
    most: f64,
    kind: Kind,
    weight: f64,
    what: &str,
    place: &str,
) {
    let sum = &mut sums[KINDS.iter().position(|known| *known == kind).unwrap_or_default()];
    let weight = weight.min(most - *sum);
    if weight > 0.0 {
        *sum += weight;
        votes.add(kind, weight, evidence(what, place));
    }
}

/// What the verb of “This PR adds …” weighs, against the same as the first of a title.
const OF_THIS: f64 = 0.5;

/// What a phrase of the description weighs, and how many words it may span.
const OF_PHRASE: f64 = 1.5;
const NEAR: usize = 5;

/// Words of a description that say what the change is for; later ones are details.
const LEAD: usize = 80;

fn description(prose: &str, votes: &mut Votes<Kind>) {
    let said = words(prose);
    let is_this = |at: usize| {
        matches!(said[at].as_str(), "this" | "the")
            && matches!(
                said.get(at + 1).map(String::as_str),
                Some("pr" | "mr" | "change" | "commit" | "patch")
            )
    };
    let this = (0..said.len()).find(|at| is_this(*at)).map(|at| at + 2);
    // An adverb or two may stand between: “This PR also fixes …”; not so “no longer overlaps”.
    let denied = |word: &&String| matches!(word.as_str(), "no" | "not" | "never" | "doesn" | "does");
    let verbs = this
        .or((!said.is_empty()).then_some(0))
        .map(|at| said[at..].iter().take(3).take_while(|word| !denied(word)));
    if let Some((word, (kind, weight))) = verbs
        .and_then(|mut verbs| verbs.find_map(|word| listed(VERBS, stem(word)).map(|found| (word, found))))
    {
        votes.add(kind, weight * OF_THIS, evidence(word, "body"));
    }
    let lead = &said[..said.len().min(LEAD)];
    for (verbs, objects) in [(LESSENING, COSTS), (SPARING, WORK)] {
        if let Some((at, object)) = phrase(lead, verbs, objects, NEAR) {
            votes.add(Kind::Performance, OF_PHRASE, evidence(format!("{} … {object}", said[at]), "body"));
            break;
        }
    }
    let text = format!(" {} ", said.join(" "));
    let mut sums = [0.0; KINDS.len()];
    for (kind, weight, phrases) in BODY {
        for phrase in phrases.iter().filter(|phrase| text.contains(&format!(" {phrase} "))) {
            add_bounded(votes, &mut sums, MOST_OF_BODY, *kind, *weight, phrase, "body");
        }
    }
}

/// `replaces` as `replace`, where only that is listed.
fn stem(word: &str) -> &str {
    if listed(VERBS, word).is_some() {
        return word;
    }
    word.strip_suffix('s').or_else(|| word.strip_suffix('d')).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(title: &str) -> Kind {
        kind(&Told { title, body: "", labels: &[] }, None).is
    }

    #[test]
    fn kinds_are_told_by_types_first_words_and_phrases() {
        for (title, is) in [
            ("Fix a race", Kind::Fix),
            ("[rollout] fix: add the missing field", Kind::Fix),
            ("perf(moe): add a kernel", Kind::Performance),
            ("Overlap all-gather", Kind::Performance),
            ("Add a scheduler", Kind::Feature),
            ("Add a fix for the scheduler", Kind::Fix),
            ("dist: add --stream to fix a crash", Kind::Feature),
            ("[moe] Move the router", Kind::Refactor),
            ("[moe] feat: deprecate the old router", Kind::Refactor),
            ("Hidden state mixing", Kind::Feature),
            ("Attention bug on long inputs", Kind::Fix),
            ("Fix slowdown of serialization", Kind::Performance),
            ("Add options to improve loading time", Kind::Performance),
            ("[Core] Remove extra device copies", Kind::Performance),
            ("[Core] Remove an extra argument", Kind::Refactor),
            ("Pkg-FSDP: Enable hybrid sharding", Kind::Feature),
            ("BREAKING: move it", Kind::Refactor),
            ("Don't drop the last batch", Kind::Fix),
            ("Improve the scheduler's readability", Kind::Refactor),
            ("Separate streams for backward overlap", Kind::Performance),
            ("Memory efficiency improvement to attention", Kind::Performance),
            ("fix(moe): avoid an intermediate allocation", Kind::Performance),
            ("[ray] refactor: Accelerate serialization", Kind::Performance),
            ("[perf] feat: count operations of attention", Kind::Feature),
            ("Avoid a circular dependency of core and export", Kind::Refactor),
            ("Improve the scheduler by 15%", Kind::Performance),
            ("Set the seed of each rank", Kind::Fix),
        ] {
            assert_eq!(of(title), is, "{title}: {:?}", kind(&Told { title, body: "", labels: &[] }, None));
        }
    }

    #[test]
    fn the_shape_of_a_change_decides_where_its_title_names_no_kind() {
        let title = "Layer norm with residuals";
        let told = Told { title, body: "", labels: &[] };
        let of = |definitions: Definitions, lines: (u32, u32)| {
            let substance = Lines { files: 1, added: lines.0, deleted: lines.1 };
            kind(&told, Some(&Made { definitions, substance, tests_added: 1, measured: false }))
        };
        let body = of(Definitions { functions_changed: 1, ..Definitions::default() }, (2, 1));
        assert_eq!((body.is, body.evidence[0].place.as_str()), (Kind::Fix, "source"));
        let public =
            Definitions { public_added: 2, settings: 1, functions_added: 2, ..Definitions::default() };
        assert_eq!(of(public, (50, 0)).is, Kind::Feature);
        let many = Definitions { functions_changed: 9, ..Definitions::default() };
        let untested = Made {
            definitions: many,
            substance: Lines { files: 3, added: 60, deleted: 40 },
            ..Made::default()
        };
        assert_eq!(kind(&told, Some(&untested)).is, Kind::Refactor);
        let moved = Definitions { moved: 4, functions_added: 4, removed: 1, ..Definitions::default() };
        assert_eq!(of(moved, (50, 60)).is, Kind::Refactor);
    }

    #[test]
    fn new_names_of_what_its_author_calls_a_refactoring_say_less() {
        let made = Made {
            definitions: Definitions {
                public_added: 9,
                settings: 2,
                functions_changed: 9,
                ..Definitions::default()
            },
            substance: Lines { files: 9, added: 100, deleted: 40 },
            ..Made::default()
        };
        let of = |title| kind(&Told { title, body: "", labels: &[] }, Some(&made)).is;
        assert_eq!(of("[cfg] refactor: add classes of settings"), Kind::Refactor);
        assert_eq!(of("[cfg] feat: add classes of settings"), Kind::Feature);
    }

    #[test]
    fn tests_that_are_added_are_no_feature() {
        let made = Made {
            definitions: Definitions { functions_changed: 5, ..Definitions::default() },
            substance: Lines { files: 1, added: 45, deleted: 40 },
            tests_added: 0,
            measured: false,
        };
        let told = |title| Told { title, body: "", labels: &[] };
        assert_eq!(kind(&told("Add tests for the tracer"), Some(&made)).is, Kind::Refactor);
        assert_eq!(kind(&told("Add a tracer"), Some(&made)).is, Kind::Feature);
    }

    #[test]
    fn figures_of_a_description_speak_in_its_tables_too() {
        let body = "| a | 1.10x |\n| b | 1.25x |\n";
        let guess = kind(&Told { title: "Rotary kernel", body, labels: &[] }, None);
        assert_eq!(
            (guess.is, guess.evidence),
            (Kind::Performance, vec![evidence("speedups, 2 times", "body")])
        );
        let once = kind(&Told { title: "Rotary kernel", body: "Once 2x.", labels: &[] }, None);
        assert_eq!(once.is, Kind::Feature);
    }

    #[test]
    fn a_description_and_labels_speak_where_the_title_does_not() {
        let title = "Serialization of tensors";
        let told = Told { title, body: "This PR reduces latency, it is 3x faster.", labels: &[] };
        assert_eq!(kind(&told, None).is, Kind::Performance);
        let denied =
            Told { title, body: "## Problem\nThis change no longer overlaps with the other.", labels: &[] };
        assert_eq!(kind(&denied, None).is, Kind::Fix);
        let labels = ["bug".to_owned()];
        let guess = kind(&Told { title, body: "", labels: &labels }, None);
        assert_eq!((guess.is, guess.evidence), (Kind::Fix, vec![evidence("bug", "label")]));
    }
}
