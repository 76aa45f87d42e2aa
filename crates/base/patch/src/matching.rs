//! Finds the place of each hunk in a file, by the rules of `git apply` without fuzz.
//!
//! Source: git's `apply.c` (`apply_one_fragment`, `find_pos`): the stated line first, then one line further away at a
//! time, after before before; a hunk stated at line 1 matches at the start only, one without trailing context at the end
//! only; no line that a hunk of the same patch has written is matched again. An old line stated to lack its newline also
//! matches the file's last line with one. (git takes it for the start of any line, and so joins lines in the middle of a
//! file; that we refuse.)

use std::borrow::Cow;

use crate::apply::Ending;
use crate::diff::{Hunk, Line, Tag};

/// Line comparisons spent on one file before the search is given up.
const MAX_COMPARISONS: u64 = 200_000_000;

#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) bytes: Vec<u8>,
    /// Hunks found elsewhere: index, stated line, line found (from 1, in the file as patched so far).
    pub(crate) moved: Vec<(usize, usize, usize)>,
    /// The file's convention, where the patch had the other.
    pub(crate) ending: Option<Ending>,
    /// The patch states that the file lacks its final newline, but it has it.
    pub(crate) final_newline: bool,
}

#[derive(Debug)]
pub(crate) enum Misfit {
    NoMatch { hunk: usize, stated: usize, at: usize, expected: String, found: String },
    TooMuchWork,
}

/// Applies the hunks to the file's bytes.
pub(crate) fn place(image: &[u8], hunks: &[Hunk]) -> Result<Placed, Misfit> {
    let mut work = 0;
    let misfit = match attempt(image, hunks, None, &mut work) {
        Err(misfit @ Misfit::NoMatch { .. }) => misfit,
        done => return done,
    };
    let bodies = || hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.body.as_slice());
    let patch = endings(bodies());
    let file = endings(image.split_inclusive(|&b| b == b'\n'));
    // A patch with both conventions means its line ends: nothing is guessed then.
    let other_convention =
        (patch.crlf == 0) != (patch.lf == 0) && if patch.crlf == 0 { file.crlf > 0 } else { file.lf > 0 };
    if !other_convention {
        return Err(misfit);
    }
    let ending = if file.crlf > file.lf { Ending::Crlf } else { Ending::Lf };
    attempt(image, hunks, Some(ending), &mut work).map_err(|second| match second {
        Misfit::TooMuchWork => second,
        Misfit::NoMatch { .. } => misfit,
    })
}

struct Endings {
    crlf: usize,
    lf: usize,
}

fn endings<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Endings {
    let mut count = Endings { crlf: 0, lf: 0 };
    for line in lines {
        if line.ends_with(b"\r\n") {
            count.crlf += 1;
        } else if line.ends_with(b"\n") {
            count.lf += 1;
        }
    }
    count
}

struct ImageLine<'a> {
    bytes: Cow<'a, [u8]>,
    patched: bool,
}

fn attempt(image: &[u8], hunks: &[Hunk], ending: Option<Ending>, work: &mut u64) -> Result<Placed, Misfit> {
    let mut lines: Vec<ImageLine> = image
        .split_inclusive(|&b| b == b'\n')
        .map(|bytes| ImageLine { bytes: Cow::Borrowed(bytes), patched: false })
        .collect();
    let mut moved = Vec::new();
    let mut final_newline = false;
    for (index, hunk) in hunks.iter().enumerate() {
        let old: Vec<&Line> = hunk.lines.iter().filter(|line| line.is_old()).collect();
        let stated = hunk.new_start.saturating_sub(1);
        let search = Search {
            lines: &lines,
            old: &old,
            modulo_cr: ending.is_some(),
            at_start: hunk.old_start <= 1,
            at_end: hunk.lines.last().is_none_or(|line| line.tag != Tag::Context),
        };
        let Some(found) = search.find(stated, work)? else {
            return Err(search.explain(index, stated));
        };
        if found != stated {
            moved.push((index, stated + 1, found + 1));
        }
        let unended = old.last().is_some_and(|line| !line.body.ends_with(b"\n"));
        final_newline |= unended && lines[found + old.len() - 1].bytes.ends_with(b"\n");
        let mut kept = found;
        let mut new = Vec::with_capacity(hunk.new_lines);
        for line in &hunk.lines {
            if line.tag == Tag::Added {
                new.push(ImageLine { bytes: Cow::Owned(with_ending(&line.body, ending)), patched: true });
                continue;
            }
            if line.tag == Tag::Context {
                let ended = line.body.ends_with(b"\n");
                let bytes = if ended { lines[kept].bytes.clone() } else { Cow::Owned(line.body.clone()) };
                new.push(ImageLine { bytes, patched: true });
            }
            kept += 1;
        }
        // Moving the lines behind the hunk costs too, though each far less than a comparison.
        *work += (lines.len() / 64) as u64;
        lines.splice(found..found + old.len(), new);
    }
    let bytes = lines.iter().flat_map(|line| line.bytes.iter().copied()).collect();
    Ok(Placed { bytes, moved, ending, final_newline })
}

fn with_ending(body: &[u8], ending: Option<Ending>) -> Vec<u8> {
    let bare = without_cr(body);
    match ending {
        Some(Ending::Crlf) if bare.1 => [bare.0, b"\r\n"].concat(),
        Some(Ending::Lf) if bare.1 => [bare.0, b"\n"].concat(),
        _ => body.to_vec(),
    }
}

/// A line without its end, and whether it had one.
fn without_cr(line: &[u8]) -> (&[u8], bool) {
    match line.strip_suffix(b"\n") {
        Some(bare) => (bare.strip_suffix(b"\r").unwrap_or(bare), true),
        None => (line, false),
    }
}

struct Search<'a> {
    lines: &'a [ImageLine<'a>],
    old: &'a [&'a Line],
    modulo_cr: bool,
    at_start: bool,
    at_end: bool,
}

impl Search<'_> {
    fn find(&self, stated: usize, work: &mut u64) -> Result<Option<usize>, Misfit> {
        let Some(last) = self.lines.len().checked_sub(self.old.len()) else { return Ok(None) };
        let mut try_at = |at: usize| {
            *work += 1;
            if *work > MAX_COMPARISONS {
                return Err(Misfit::TooMuchWork);
            }
            Ok(self.matches(at, work))
        };
        if self.at_start {
            return Ok((try_at(0)? && (!self.at_end || last == 0)).then_some(0));
        }
        if self.at_end {
            return Ok(try_at(last)?.then_some(last));
        }
        let start = stated.min(self.lines.len());
        for distance in 0..=self.lines.len() {
            if let Some(after) = Some(start + distance).filter(|&at| at <= last)
                && try_at(after)?
            {
                return Ok(Some(after));
            }
            if distance > 0
                && let Some(before) = start.checked_sub(distance).filter(|&at| at <= last)
                && try_at(before)?
            {
                return Ok(Some(before));
            }
        }
        Ok(None)
    }

    fn matches(&self, at: usize, work: &mut u64) -> bool {
        self.old.iter().zip(&self.lines[at..]).all(|(old, line)| {
            *work += 1;
            !line.patched && self.same(&old.body, line)
        })
    }

    fn same(&self, old: &[u8], line: &ImageLine) -> bool {
        let bytes = line.bytes.as_ref();
        let at_end = || self.lines.last().is_some_and(|last| std::ptr::eq(last, line));
        if self.modulo_cr {
            let ((old, ended), (line, line_ended)) = (without_cr(old), without_cr(bytes));
            old == line && (ended == line_ended || !ended && at_end())
        } else {
            old == bytes || !old.ends_with(b"\n") && bytes.strip_suffix(b"\n") == Some(old) && at_end()
        }
    }

    /// The first difference at the stated place, for the person who reads it.
    fn explain(&self, hunk: usize, stated: usize) -> Misfit {
        let start = if self.at_start { 0 } else { stated };
        let mut at = start;
        for old in self.old {
            let found = match self.lines.get(at) {
                Some(line) if self.same(&old.body, line) => {
                    at += 1;
                    continue;
                }
                Some(line) => quoted(&line.bytes),
                None => "no such line".into(),
            };
            return Misfit::NoMatch {
                hunk,
                stated: stated + 1,
                at: at + 1,
                expected: quoted(&old.body),
                found,
            };
        }
        let found = self.lines.get(at).map_or("no such line".into(), |line| quoted(&line.bytes));
        Misfit::NoMatch {
            hunk,
            stated: stated + 1,
            at: at + 1,
            expected: "the end of the file".into(),
            found,
        }
    }
}

fn quoted(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let short: String = text.chars().take(80).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}
