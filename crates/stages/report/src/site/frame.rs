//! What all pages have.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use infradev_model::AnalysedSubmission;
use sha2::{Digest, Sha256};

use crate::tables::word;
use crate::text::turns;

const STYLE: &str = include_str!("../../templates/site/site.css");

/// A page's head.
#[derive(Debug)]
pub(crate) struct Frame {
    pub title: String,
    pub site: String,
    /// From the page to the site's root.
    pub up: &'static str,
    pub compared: bool,
    pub live: bool,
    pub sealed: bool,
    pub refresh: bool,
}

impl Frame {
    pub fn style(&self) -> &'static str {
        STYLE
    }

    pub fn policy(&self) -> String {
        policy()
    }
}

/// The policy of all pages: nothing is loaded, and the one style sheet is let in by its digest.
pub(crate) fn policy() -> String {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
}

/// A verdict's word and the colour that it has beside it.
pub(crate) fn verdict(submission: &AnalysedSubmission) -> (&'static str, &'static str) {
    let word = word(submission);
    let tone = match word {
        "resolved" => "good",
        "fault" | "unreached" | "ungraded" => "apart",
        _ => "bad",
    };
    (word, tone)
}

/// A page with control characters and those that turn the direction of writing written out; lines and tabs stay.
pub(crate) fn visible(page: &str) -> String {
    let mut shown = String::with_capacity(page.len());
    for c in page.chars() {
        if matches!(c, '\n' | '\t') || !(c.is_control() || turns(c)) {
            shown.push(c);
        } else {
            let _ = write!(shown, "{}", c.escape_unicode());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Colours of one `:root` block, by name.
    fn colours(block: &str) -> BTreeMap<&str, [u8; 3]> {
        let named = block.split(';').filter_map(|part| part.split_once("--")?.1.split_once(": #"));
        named
            .map(|(name, hex)| {
                let at = |from: usize| u8::from_str_radix(&hex[from..from + 2], 16).unwrap();
                (name, [at(0), at(2), at(4)])
            })
            .collect()
    }

    /// WCAG 2.2's relative luminance.
    fn luminance(colour: [u8; 3]) -> f64 {
        let [r, g, b] = colour.map(|value| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn ratio(one: [u8; 3], other: [u8; 3]) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn contrast_is_computed_as_wcag_does() {
        assert!((ratio([0; 3], [255; 3]) - 21.0).abs() < 1e-9);
        assert!((ratio([0x77; 3], [255; 3]) - 4.48).abs() < 0.005);
    }

    #[test]
    fn every_colour_of_both_schemes_has_the_contrast_that_wcag_aa_asks_for() {
        let blocks: Vec<&str> =
            STYLE.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
        assert_eq!(blocks.len(), 2, "a light scheme and a dark one");
        let words = [
            ("text", "back"),
            ("text", "soft"),
            ("quiet", "back"),
            ("quiet", "soft"),
            ("mark", "back"),
            ("plus", "back"),
            ("plus", "soft"),
            ("plus", "plus-back"),
            ("minus", "back"),
            ("minus", "soft"),
            ("minus", "minus-back"),
        ];
        let drawn =
            [("one", "back"), ("two", "back"), ("three", "back"), ("range", "back"), ("mark", "soft")];
        for block in blocks {
            let colours = colours(block);
            let wanted = words.iter().map(|pair| (pair, 4.5)).chain(drawn.iter().map(|pair| (pair, 3.0)));
            for ((front, back), least) in wanted {
                let found = ratio(colours[front], colours[back]);
                assert!(found >= least, "{front} on {back}: {found:.2} of {least} in{block}");
            }
        }
        let rules = STYLE.split_once("* {").unwrap().1;
        assert!(!rules.contains('#'), "every colour is one of the two schemes'");
    }

    #[test]
    fn the_style_sheet_asks_for_nothing() {
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
    }

    #[test]
    fn what_turns_or_ends_a_line_unseen_is_written_out() {
        assert_eq!(visible("a\u{202e}b\u{1b}[2J\0\tc\nd"), "a\\u{202e}b\\u{1b}[2J\\u{0}\tc\nd");
    }
}
