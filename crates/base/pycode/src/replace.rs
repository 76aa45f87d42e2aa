//! Edits of a text by span.

use crate::module::Span;

/// The text with each span replaced. Spans don't overlap; their order doesn't matter.
pub(crate) fn replace_spans(source: &str, mut edits: Vec<(Span, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let mut text = String::with_capacity(source.len());
    let mut at = 0;
    for (span, replacement) in edits {
        text.push_str(&source[at..span.start]);
        text.push_str(&replacement);
        at = span.end;
    }
    text.push_str(&source[at..]);
    text
}
