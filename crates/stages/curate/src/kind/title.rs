//! What the title says of the kind: the type before it, its first verb, phrases, other words.

use infradev_model::Kind;

use super::lists::{
    COSTS, LEGIBILITY, LESSENED, LESSENING, MOST_OF_TITLE, SLOW, SPARING, TAGS, TANGLES, TESTS, TITLE, VERBS,
    WORK,
};
use super::{KINDS, NEAR, add_bounded, is_times, listed, phrase};
use crate::message::without_tags;
use crate::words::{Votes, evidence, words};

/// Longest piece before a colon or bar that is a subject (`Megatron-FSDP:`, `Inference |`) rather than a sentence.
const SUBJECT_WORDS: usize = 3;

/// The words of the tags and subjects before the sentence, and the sentence.
fn parted(title: &str) -> (Vec<String>, &str) {
    let mut rest = without_tags(title);
    let mut tags = words(&title[..title.len() - rest.len()]);
    for between in [": ", " | ", " - "] {
        if let Some((before, after)) = rest.split_once(between) {
            let said = words(before);
            let sentence =
                said.first().is_some_and(|word| listed(VERBS, word).is_some_and(|(_, w)| w >= 3.0));
            if said.len() <= SUBJECT_WORDS && !(sentence && said.len() > 1) {
                tags.extend(said);
                rest = after.trim_start();
            }
        }
    }
    (tags, rest)
}

/// What the last word weighs in a title without a verb, and the least that such a word weighs as a verb.
const AS_VERB: f64 = 3.5;
const NAMING: f64 = 2.0;

/// A verb or phrase of this weight says what the change does, whatever type stands before it.
const PLAIN: f64 = 5.0;

/// What a figure such as `20x` or `15%` weighs.
const FIGURE: f64 = 3.0;

/// Reads a title. The kind that the author calls it, where a type stands before it.
pub fn title(title: &str, votes: &mut Votes<Kind>) -> Vec<Kind> {
    let (tags, sentence) = parted(title);
    let said = words(&sentence.replace("n't", "nt"));
    let verb = said.split_first().map(|(first, rest)| verb_of(first, rest));
    // “Avoid copies” says more than “avoid” does.
    let phrase = cheaper(&said);
    let verb_says = verb.and_then(|verb| listed(VERBS, verb));
    let by_verb = verb_says.filter(|_| phrase.as_ref().is_none_or(|phrase| phrase.at != 0));
    let plainly = [phrase.as_ref().map(|phrase| (phrase.kind, phrase.weight)), by_verb].into_iter().flatten();
    // “fix: avoid a copy” saves a copy.
    let faster = plainly.into_iter().any(|(kind, weight)| kind == Kind::Performance && weight >= PLAIN);
    let typed = types(title, &tags, faster, votes);
    if let (Some(verb), Some((kind, weight))) = (verb, by_verb) {
        // “Add tests for x” says nothing of x.
        let tests = said.iter().skip(1).take(3).any(|word| TESTS.contains(&word.as_str()));
        let weight = if kind == Kind::Feature && tests { 1.0 } else { weight };
        votes.add(kind, weight, evidence(verb, "subject"));
    }
    if let Some(Phrase { kind, weight, what, .. }) = phrase {
        votes.add(kind, weight, evidence(what, "subject"));
    }
    if let Some(figure) = figure(sentence, &said) {
        votes.add(Kind::Performance, FIGURE, evidence(figure, "subject"));
    }
    others(&said, verb, verb_says.is_some(), votes);
    typed
}

/// The types of conventional commits, and tags that are such words. Those that the sentence contradicts weigh half,
/// brackets before a type less: they name what is changed (`[perf] feat: count operations`).
fn types(title: &str, tags: &[String], faster: bool, votes: &mut Votes<Kind>) -> Vec<Kind> {
    let brackets = title.trim_start().strip_prefix('[').and_then(|rest| rest.rsplit_once(']'));
    let subjects = brackets
        .filter(|(_, after)| {
            let of_type = after.split_once(':').map(|(of_type, _)| words(of_type));
            of_type.is_some_and(|said| said.first().is_some_and(|word| listed(TAGS, word).is_some()))
        })
        .map(|(subjects, _)| words(subjects))
        .unwrap_or_default();
    let mut tagged: Vec<Kind> = Vec::new();
    let mut typed = Vec::new();
    for tag in tags {
        if let Some((kind, weight)) = listed(TAGS, tag).filter(|(kind, _)| !tagged.contains(kind)) {
            let contradicted = faster && matches!(kind, Kind::Fix | Kind::Refactor);
            let share = if subjects.contains(tag) {
                0.3
            } else if contradicted {
                0.5
            } else {
                1.0
            };
            votes.add(kind, weight * share, evidence(tag, "subject"));
            tagged.push(kind);
            if weight >= PLAIN && !subjects.contains(tag) {
                typed.push(kind);
            }
        }
    }
    typed
}

/// “Add a fix for …”, and “Make … faster”, do what they name next; “add x to fix y” adds x.
fn verb_of<'a>(first: &'a str, rest: &'a [String]) -> &'a str {
    let article = |word: &str| matches!(word, "a" | "an" | "the" | "some" | "more");
    let next = rest.iter().map(String::as_str).find(|word| !article(word));
    let adding = matches!(listed(VERBS, first), Some((Kind::Feature, _)));
    let named =
        next.filter(|next| adding && listed(TAGS, next).is_some_and(|(kind, _)| kind != Kind::Feature));
    named.unwrap_or(first)
}

/// Words of the sentence other than its verb.
fn others(said: &[String], verb: Option<&str>, is_verb: bool, votes: &mut Votes<Kind>) {
    let mut sums = [0.0; KINDS.len()];
    for (at, word) in said.iter().enumerate().filter(|(at, word)| *at > 0 && Some(word.as_str()) != verb) {
        let found = match (word.as_str(), said.get(at - 1).map(String::as_str)) {
            ("fix" | "fixes" | "fixing" | "prevent" | "avoid" | "ensure", Some("to")) => {
                Some((Kind::Fix, 1.0))
            }
            ("fix" | "fixes" | "fixed" | "fixing", _) => Some((Kind::Fix, 3.0)),
            ("of", Some("instead")) | ("than", Some("rather")) => Some((Kind::Refactor, 2.0)),
            (word, _) => listed(TITLE, word),
        };
        // The last word is what a title without a verb is about, and what others are for: “all-gather overlap”, “split groups for
        // overlap”.
        let last = at + 1 == said.len();
        let for_it = || said.iter().rev().skip(1).take(6).any(|word| word == "for");
        let found = match found {
            found if !is_verb && last => {
                let known = listed(VERBS, word).filter(|(_, weight)| *weight >= NAMING);
                found.or(known).map(|(kind, weight)| (kind, weight.max(AS_VERB)))
            }
            Some((Kind::Performance, weight)) if last && for_it() => {
                Some((Kind::Performance, weight.max(AS_VERB)))
            }
            found => found,
        };
        if let Some((kind, weight)) = found {
            add_bounded(votes, &mut sums, MOST_OF_TITLE, kind, weight, word, "subject");
        }
    }
}

/// A verb and what it is done to.
struct Phrase {
    at: usize,
    kind: Kind,
    weight: f64,
    what: String,
}

/// “Reduce peak memory”, “avoid extra copies”, “fix slowdown”: the same for less.
fn cheaper(said: &[String]) -> Option<Phrase> {
    let fixing = ["fix", "fixes", "fixed", "fixing"];
    let found = |at: usize, object: &str, kind, weight| Phrase {
        at,
        kind,
        weight,
        what: format!("{} … {object}", said[at]),
    };
    for (verbs, objects, kind, weight) in [
        (LESSENING, COSTS, Kind::Performance, 6.0),
        (SPARING, WORK, Kind::Performance, 5.5),
        (&fixing[..], SLOW, Kind::Performance, 6.0),
        (LESSENING, LEGIBILITY, Kind::Refactor, 5.0),
        (SPARING, TANGLES, Kind::Refactor, 5.0),
    ] {
        if let Some((at, object)) = phrase(said, verbs, objects, said.len()) {
            return Some(found(at, object, kind, weight));
        }
    }
    // “Memory efficiency improvement” says it the other way round.
    let (at, lessened) = phrase(said, COSTS, LESSENED, NEAR)?;
    Some(found(at, lessened, Kind::Performance, 5.0))
}

/// `20x` or `15%`: what was measured.
fn figure(sentence: &str, said: &[String]) -> Option<String> {
    let share = sentence.match_indices('%').find_map(|(at, _)| {
        let number = sentence[..at].trim_end();
        let digits = number.len() - number.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        (digits > 0).then(|| format!("{}%", &number[number.len() - digits..]))
    });
    share.or_else(|| said.iter().find(|word| is_times(word)).cloned())
}
