//! A text as a reader has it: without the comments between authors, and each character as it is meant. What is found there
//! stands somewhere in the text itself.

use std::ops::Range;

use infradev_model::shown_parts;

/// A text read in one way, and where in the text each byte of that comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) text: String,
    places: Vec<Range<usize>>,
}

/// A character, and where it comes from.
type Sign = (char, Range<usize>);

impl Reading {
    fn of(signs: &[Sign]) -> Reading {
        let (mut text, mut places) = (String::new(), Vec::new());
        for (c, place) in signs {
            text.push(*c);
            places.extend(std::iter::repeat_n(place.clone(), c.len_utf8()));
        }
        Reading { text, places }
    }

    /// Where in the text it stands.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        match (self.places.get(range.start), self.places.get(range.end.saturating_sub(1))) {
            (Some(first), Some(last)) => first.start..last.end.max(first.end),
            _ => 0..0,
        }
    }
}

/// The ways to read a text: as it stands there, then as it is shown.
pub(super) fn readings(text: &str) -> Vec<Reading> {
    let as_it_is: Vec<Sign> = signs(text, 0..text.len()).collect();
    let shown: Vec<Sign> = shown_parts(text).into_iter().flat_map(|part| signs(text, part)).collect();
    let meant = unescaped(shown.clone());
    let mut readings = vec![Reading::of(&as_it_is), Reading::of(&shown), Reading::of(&meant)];
    readings.dedup_by(|one, other| one.text == other.text);
    readings
}

fn signs(text: &str, part: Range<usize>) -> impl Iterator<Item = Sign> {
    let from = part.start;
    text[part].char_indices().map(move |(at, c)| (c, from + at..from + at + c.len_utf8()))
}

/// Without the backslashes that Markdown needs before a sign: `by\_weight`.
fn unescaped(signs: Vec<Sign>) -> Vec<Sign> {
    let mut kept: Vec<Sign> = Vec::with_capacity(signs.len());
    let mut rest = signs.into_iter().peekable();
    while let Some((c, place)) = rest.next() {
        match rest.next_if(|(next, _)| c == '\\' && next.is_ascii_punctuation()) {
            Some((next, last)) => kept.push((next, place.start..last.end)),
            None => kept.push((c, place)),
        }
    }
    kept
}
