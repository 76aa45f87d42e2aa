//! A text as a reader has it: without the comments between authors, and each character as it is meant. What is found there
//! stands somewhere in the text itself.

use std::ops::Range;

use infradev_model::shown_parts;

use super::encoded;
use super::signs::{self, Sign};

/// A text read in one way, and where in the text each byte of that comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) text: String,
    places: Vec<Range<usize>>,
}

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

/// The ways to read a text: as it stands there, then as it is shown, as that is meant, and without emphasis; and what its words hold
/// in another coding.
pub(super) fn readings(text: &str) -> Vec<Reading> {
    let as_it_is: Vec<Sign> = signs_of(text, 0..text.len()).collect();
    let shown: Vec<Sign> = shown_parts(text).into_iter().flat_map(|part| signs_of(text, part)).collect();
    let meant = signs::meant(&shown);
    let bare = signs::without_emphasis(&meant);
    let mut readings = vec![
        Reading::of(&as_it_is),
        Reading::of(&shown),
        Reading::of(&signs::numbers(&meant)),
        Reading::of(&signs::numbers(&bare)),
    ];
    readings.extend(encoded::held(text).into_iter().map(|(place, held)| {
        let signs: Vec<Sign> = held.chars().map(|c| (c, place.clone())).collect();
        Reading::of(&signs)
    }));
    readings.dedup_by(|one, other| one.text == other.text);
    readings
}

fn signs_of(text: &str, part: Range<usize>) -> impl Iterator<Item = Sign> {
    let from = part.start;
    text[part].char_indices().map(move |(at, c)| (c, from + at..from + at + c.len_utf8()))
}
