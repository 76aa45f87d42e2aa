//! Which lines golden added or changed, and the hunks they stand in.

use imara_diff::{Algorithm, Diff, InternedInput};

use crate::module::Span;

/// A run of lines that differ: base's and golden's, either of them possibly empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) base: Span,
    pub(super) golden: Span,
}

/// The lines of golden that a line diff against base calls added.
#[derive(Debug)]
pub(super) struct AddedLines {
    hunks: Vec<Hunk>,
    /// Golden adds the file.
    is_whole: bool,
    /// Spans of golden's lines that are kept and not blank.
    kept: Vec<Span>,
}

impl AddedLines {
    /// The hunks are those of `git diff -U0`: Myers' algorithm, then git's rule for hunks that could slide.
    pub(super) fn between(base: Option<&str>, golden: &str) -> AddedLines {
        let Some(base) = base else {
            return AddedLines { hunks: Vec::new(), is_whole: true, kept: Vec::new() };
        };
        let input = InternedInput::new(base, golden);
        let mut diff = Diff::compute(Algorithm::Myers, &input);
        diff.postprocess_lines(&input);
        let (base_lines, golden_lines) = (line_starts(base), line_starts(golden));
        let mut kept = Vec::new();
        let mut next = 0;
        let mut hunks = Vec::new();
        for hunk in diff.hunks() {
            kept.extend(next..hunk.after.start as usize);
            next = hunk.after.end as usize;
            let span = |lines: &[usize], range: std::ops::Range<u32>| Span {
                start: lines[range.start as usize],
                end: lines[range.end as usize],
            };
            hunks
                .push(Hunk { base: span(&base_lines, hunk.before), golden: span(&golden_lines, hunk.after) });
        }
        kept.extend(next..golden_lines.len() - 1);
        let kept = kept
            .into_iter()
            .map(|line| Span { start: golden_lines[line], end: golden_lines[line + 1] })
            .filter(|line| !golden[line.range()].trim().is_empty())
            .collect();
        AddedLines { hunks, is_whole: false, kept }
    }

    /// In the order of the text; none where golden adds the file.
    pub(super) fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }

    /// Whether a span touches some line that golden added.
    pub(super) fn touch(&self, span: Span) -> bool {
        let first = self.hunks.partition_point(|hunk| hunk.golden.end <= span.start);
        self.is_whole || self.hunks.get(first).is_some_and(|hunk| hunk.golden.start < span.end)
    }

    /// Whether a span touches no line that golden kept; blank lines don't count.
    pub(super) fn hold(&self, span: Span) -> bool {
        let first = self.kept.partition_point(|line| line.end <= span.start);
        self.kept.get(first).is_none_or(|line| line.start >= span.end.max(span.start + 1))
    }
}

/// Where each line starts, and where the text ends.
fn line_starts(text: &str) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    if starts.last() != Some(&text.len()) {
        starts.push(text.len());
    }
    starts
}
