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
