//! An agent's log of events, a line each, read in bounded memory whatever the agent wrote.

use std::io::{self, BufRead, Read};

use serde_json::Value;

/// Longest event that is read; a longer one is passed over.
pub(crate) const LONGEST: usize = 64 << 20;
/// Memory that is kept from one line to the next.
const KEPT: usize = 4 << 20;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A whole one, without its end.
    Whole(&'a [u8]),
    /// The last one, which has no end.
    Unended(&'a [u8]),
    /// One that was passed over for its length.
    TooLong,
}

/// The lines of a log.
pub(crate) struct Lines<R> {
    reader: R,
    held: Vec<u8>,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    /// Lines of `longest` bytes at most.
    pub(crate) fn new(reader: R, longest: usize) -> Lines<R> {
        Lines { reader, held: Vec::new(), longest }
    }

    /// The next line; none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.held.capacity() > KEPT {
            self.held = Vec::new();
        }
        self.held.clear();
        self.reader.by_ref().take(self.longest as u64 + 1).read_until(b'\n', &mut self.held)?;
        Ok(match self.held.split_last() {
            None => None,
            Some((b'\n', line)) => Some(Line::Whole(line)),
            Some(_) if self.held.len() > self.longest => {
                self.reader.skip_until(b'\n')?;
                Some(Line::TooLong)
            }
            Some(_) => Some(Line::Unended(&self.held)),
        })
    }
}

/// An event; none where the line is none. Halves of surrogate pairs, which JavaScript writes as escapes and JSON's readers refuse,
/// are U+FFFD.
pub(crate) fn event(line: &[u8]) -> Option<Value> {
    let whole = |line: &[u8]| serde_json::from_slice(line).ok().filter(Value::is_object);
    // What is no object is not looked into a second time.
    whole(line).or_else(|| {
        let looks = line.trim_ascii_start().first() == Some(&b'{') && line.trim_ascii_end().ends_with(b"}");
        looks.then(|| without_halves(line)).flatten().and_then(|line| whole(&line))
    })
}

/// The line with `\ufffd` for each half of a surrogate pair that stands alone; none where there is none.
pub(crate) fn without_halves(line: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut mended = line.to_vec();
    let (mut at, mut found) = (0, false);
    while at < line.len() {
        if line[at] != b'\\' {
            at += 1;
            continue;
        }
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended[at..at + 6].copy_from_slice(b"\\ufffd");
                found = true;
                6
            }
            (Some(_), _) => 6,
            // What a backslash stands before, a backslash too.
            (None, _) => 2,
        };
    }
    found.then_some(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], longest: usize) -> Vec<String> {
        let mut lines = Lines::new(text, longest);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(format!("{line:?}"));
        }
        found
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_whole_and_the_last_may_have_no_end() {
        let found = lines(b"ab\n123456789\n\ncd", 4);
        let whole = |text: &[u8]| format!("{:?}", Line::Whole(text));
        assert_eq!(
            found,
            [whole(b"ab"), "TooLong".into(), whole(b""), format!("{:?}", Line::Unended(b"cd"))]
        );
        assert_eq!(lines(b"12345", 4), ["TooLong"]);
        assert_eq!(lines(b"1234\n", 4), [whole(b"1234")]);
        assert!(lines(b"", 4).is_empty());
    }

    #[test]
    fn half_a_surrogate_pair_costs_a_character_and_not_the_event() {
        let text = |line: &str| event(line.as_bytes()).map(|event| event["a"].as_str().unwrap().to_owned());
        assert_eq!(text(r#"{"a": "x\ud83dy"}"#).unwrap(), "x\u{fffd}y");
        assert_eq!(text(r#"{"a": "\ud83d\ude00\udc00"}"#).unwrap(), "😀\u{fffd}");
        assert_eq!(text(r#"{"a": "\\ud83d \ud83d\n"}"#).unwrap(), "\\ud83d \u{fffd}\n");
        assert_eq!(text(r#"{"a": "half"#), None);
        assert_eq!(text("{\"a\": \"half\\ud83"), None);
        assert_eq!(event(b"[1]"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_lines_of_bounded_length(text in proptest::collection::vec(0u8..=255, 0..200), longest in 1usize..20) {
            let mut lines = Lines::new(&text[..], longest);
            while let Some(line) = lines.next().unwrap() {
                if let Line::Whole(line) | Line::Unended(line) = line {
                    proptest::prop_assert!(line.len() <= longest);
                    event(line);
                    without_halves(line);
                }
            }
        }
    }
}
