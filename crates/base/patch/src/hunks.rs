//! Reads the hunks of a text change.

use crate::diff::{Hunk, Line, Tag};
use crate::error::PatchError;
use crate::parse::Reader;

impl Reader<'_> {
    pub(crate) fn hunks(&mut self) -> Result<Vec<Hunk>, PatchError> {
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| line.starts_with(b"@@ -")) {
            hunks.push(self.hunk()?);
        }
        if hunks.is_empty() {
            return Err(
                self.syntax("a hunk header, `@@ -line,count +line,count @@`, must follow the `+++` line")
            );
        }
        Ok(hunks)
    }

    fn hunk(&mut self) -> Result<Hunk, PatchError> {
        let mut hunk = self
            .peek()
            .and_then(hunk_header)
            .ok_or_else(|| self.syntax("a hunk header is `@@ -line,count +line,count @@`"))?;
        hunk.line = self.at + 1;
        self.at += 1;
        let (mut old, mut new) = (0, 0);
        while old < hunk.old_lines || new < hunk.new_lines {
            let Some(&full) = self.lines.get(self.at) else { return Err(counts(&hunk, old, new, true)) };
            let (tag, body) = match full.split_first() {
                Some((b' ', body)) => (Tag::Context, body),
                // An editor may have taken the space of an empty context line.
                Some((b'\n', _)) => (Tag::Context, full),
                Some((b'-', body)) => (Tag::Removed, body),
                Some((b'+', body)) => (Tag::Added, body),
                Some((b'\\', _)) if !hunk.lines.is_empty() => {
                    self.no_newline(&mut hunk);
                    continue;
                }
                _ => return Err(counts(&hunk, old, new, false)),
            };
            old += usize::from(tag != Tag::Added);
            new += usize::from(tag != Tag::Removed);
            if old > hunk.old_lines || new > hunk.new_lines {
                return Err(counts(&hunk, old, new, false));
            }
            hunk.lines.push(Line { tag, body: body.to_vec() });
            self.at += 1;
        }
        if self.peek().is_some_and(|line| line.starts_with(b"\\")) && !hunk.lines.is_empty() {
            self.no_newline(&mut hunk);
        }
        self.hunk_ends_here(&hunk, old, new)?;
        check_final_newlines(&hunk)?;
        Ok(hunk)
    }

    fn no_newline(&mut self, hunk: &mut Hunk) {
        if let Some(line) = hunk.lines.last_mut()
            && line.body.ends_with(b"\n")
        {
            line.body.pop();
        }
        self.at += 1;
    }

    /// More lines of a hunk after its stated count: the header is wrong. (`-- ` is a mail's signature.)
    fn hunk_ends_here(&self, hunk: &Hunk, mut old: usize, mut new: usize) -> Result<(), PatchError> {
        if self.peek() == Some(b"-- ") || self.peek() == Some(b"--") || self.at_plain_header() {
            return Ok(());
        }
        let mut more = 0;
        while let Some(line) = self.line_after(more) {
            match line.first() {
                Some(b' ') => (old, new) = (old + 1, new + 1),
                Some(b'-') => old += 1,
                Some(b'+') => new += 1,
                _ => break,
            }
            more += 1;
        }
        if more > 0 { Err(counts(hunk, old, new, false)) } else { Ok(()) }
    }
}

fn counts(hunk: &Hunk, old_found: usize, new_found: usize, at_end: bool) -> PatchError {
    PatchError::HunkCounts {
        line: hunk.line,
        old_said: hunk.old_lines,
        new_said: hunk.new_lines,
        old_found,
        new_found,
        at_end,
    }
}

/// Only the last line of a side may lack its newline.
fn check_final_newlines(hunk: &Hunk) -> Result<(), PatchError> {
    for side in [Line::is_old, Line::is_new] {
        let lines: Vec<&Line> = hunk.lines.iter().filter(|line| side(line)).collect();
        let early = lines.iter().rev().skip(1).any(|line| !line.body.ends_with(b"\n"));
        if early {
            let what = "this hunk has a line without newline before the last line of a side".into();
            return Err(PatchError::Syntax { line: hunk.line, what });
        }
    }
    Ok(())
}

pub(crate) fn number(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 12 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads `@@ -12,3 +14,4 @@ section`; a count left out is 1.
pub(crate) fn hunk_header(line: &[u8]) -> Option<Hunk> {
    let rest = line.strip_prefix(b"@@ -")?;
    let end = rest.windows(3).position(|w| w == b" @@")?;
    let (ranges, section) = (&rest[..end], &rest[end + 3..]);
    let middle = ranges.windows(2).position(|w| w == b" +")?;
    let range = |text: &[u8]| match text.iter().position(|&b| b == b',') {
        Some(at) => Some((number(&text[..at])?, number(&text[at + 1..])?)),
        None => Some((number(text)?, 1)),
    };
    let (old_start, old_lines) = range(&ranges[..middle])?;
    let (new_start, new_lines) = range(&ranges[middle + 2..])?;
    let section = section.to_vec();
    Some(Hunk { line: 0, old_start, old_lines, new_start, new_lines, section, lines: Vec::new() })
}
