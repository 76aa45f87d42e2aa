//! Comments and docstrings of golden's, compared word by word.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use infradev_model::GoldenLine;

use super::spelling::Lines;

/// How many words in a row are too many.
pub const PROSE: usize = 8;
/// How many of them, each another, are more than `the` and `of`.
const TELLING: usize = 4;
/// The shortest such word, in characters.
const LONG: usize = 4;

/// A comment or a docstring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    pub(super) text: String,
    /// Where it begins.
    pub(super) golden: GoldenLine,
}

/// A word of a text, in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// The words of a text, whatever stands between them.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut begin = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_alphanumeric() || c == '_', begin) {
            (true, None) => begin = Some(at),
            (false, Some(from)) => {
                words.push(Word { text: text[from..at].to_lowercase(), range: from..at });
                begin = None;
            }
            _ => {}
        }
    }
    words
}

/// What golden's comments and docstrings say that is said nowhere else.
#[derive(Debug, Clone, Default)]
pub(super) struct Prose {
    runs: HashMap<Vec<String>, GoldenLine>,
}

impl Prose {
    /// Reads it off passages; what stands in one of the `known` texts too is left out.
    pub(super) fn of(passages: &[Passage], known: &[&str]) -> Prose {
        let known: Vec<Vec<String>> = known.iter().map(|text| plain(&words(text))).collect();
        let known: HashSet<&[String]> = known.iter().flat_map(|words| words.windows(PROSE)).collect();
        let mut runs = HashMap::new();
        for passage in passages {
            let words = words(&passage.text);
            let lines = Lines::of(&passage.text);
            for (at, run) in plain(&words).windows(PROSE).enumerate() {
                if tells(run) && !known.contains(run) {
                    let line = passage.golden.line + lines.at(words[at].range.start) - 1;
                    let golden = GoldenLine { line, ..passage.golden.clone() };
                    runs.entry(run.to_vec()).or_insert(golden);
                }
            }
        }
        Prose { runs }
    }

    /// Where a text says the same, and how many words of it.
    pub(super) fn find(&self, text: &str) -> Vec<(Range<usize>, usize, &GoldenLine)> {
        let words = words(text);
        let plain = plain(&words);
        let run = |at: usize| plain.get(at..at + PROSE).and_then(|run| self.runs.get(run));
        let mut found = Vec::new();
        let mut at = 0;
        while at < plain.len() {
            let Some(golden) = run(at) else {
                at += 1;
                continue;
            };
            let mut end = at + PROSE;
            while run(end + 1 - PROSE).is_some() {
                end += 1;
            }
            found.push((words[at].range.start..words[end - 1].range.end, end - at, golden));
            at = end;
        }
        found
    }
}

fn plain(words: &[Word]) -> Vec<String> {
    words.iter().map(|word| word.text.clone()).collect()
}

/// Whether words say something.
fn tells(run: &[String]) -> bool {
    let long: HashSet<&String> = run.iter().filter(|word| word.chars().count() >= LONG).collect();
    long.len() >= TELLING
}
