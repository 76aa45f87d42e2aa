//! Algorithms that golden uses and a text names: how a change is made, told in a word.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use infradev_model::GoldenLine;

use super::catalogue::{ALGORITHMS, Algorithm};
use super::prose::Passage;
use super::spelling::Lines;

/// Words behind which another is the name of an algorithm: `the Schulz iteration`, `a treap sort`.
const HEADS: [&str; 11] = [
    "algorithm",
    "trick",
    "summation",
    "heuristic",
    "recurrence",
    "decomposition",
    "factorisation",
    "sort",
    "tree",
    "sieve",
    "hashing",
];
/// Words that name nothing before one of these.
const PLAIN: [&str; 40] = [
    "the",
    "this",
    "that",
    "these",
    "its",
    "our",
    "own",
    "same",
    "each",
    "every",
    "such",
    "whole",
    "new",
    "old",
    "all",
    "any",
    "one",
    "two",
    "and",
    "for",
    "with",
    "not",
    "into",
    "from",
    "first",
    "last",
    "then",
    "must",
    "will",
    "can",
    "process",
    "syntax",
    "source",
    "work",
    "directory",
    "file",
    "module",
    "other",
    "their",
    "which",
];
/// The shortest name of one word that no catalogue has.
const NAME: usize = 4;

/// A word, as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    /// In small letters, without the plural's `s`, and of the two English spellings the one with `s`.
    text: String,
    range: Range<usize>,
    is_capital: bool,
    /// `Kahan` of `Kahan's`.
    is_possessive: bool,
    /// Whether it belongs to the one before it: no sentence ends between them.
    follows: bool,
    /// Whether only a hyphen or a dash is between them.
    is_hyphenated: bool,
}

/// The algorithms of golden's that base, the tests and the contract do not name.
#[derive(Debug, Clone, Default)]
pub(super) struct Algorithms {
    /// By its first word: the words, the name as people write it, and where golden has it.
    names: HashMap<String, Vec<Name>>,
}

#[derive(Debug, Clone)]
struct Name {
    words: Vec<String>,
    shown: String,
    /// Whether it is one only with a capital letter.
    is_proper: bool,
    golden: GoldenLine,
}

/// Where golden is read.
pub(super) struct Golden<'a> {
    /// `(path, text)` of base's files that golden changes.
    pub(super) base: &'a [(String, String)],
    /// The same as golden has them, and those that it adds.
    pub(super) golden: &'a [(String, String)],
    /// What its comments and docstrings say.
    pub(super) passages: &'a [Passage],
}

impl Algorithms {
    /// Reads them off golden's added lines. What one of the `known` texts names, or base's tree as a word, is no secret.
    pub(super) fn of(golden: &Golden<'_>, known: &[&str], has_word: &dyn Fn(&str) -> bool) -> Algorithms {
        let known = Known { phrases: known.iter().map(|text| Phrases::of(text)).collect(), has_word };
        let added: Vec<Added> = golden.golden.iter().map(|file| Added::of(golden.base, file)).collect();
        let mut algorithms = Algorithms::default();
        for algorithm in ALGORITHMS {
            let said: Vec<Vec<String>> = said(algorithm).map(words).collect();
            if said.iter().any(|words| known.has(words)) {
                continue;
            }
            let used = algorithm.used.iter().map(|name| words(name));
            let mut forms = said.iter().cloned().chain(used);
            if let Some(line) = forms.find_map(|words| added.iter().find_map(|file| file.place(&words))) {
                for words in said {
                    algorithms.add(Name {
                        words,
                        shown: algorithm.name.to_owned(),
                        is_proper: false,
                        golden: line.clone(),
                    });
                }
            }
        }
        for passage in golden.passages {
            for name in uncatalogued(passage) {
                if !known.has(&name.words) {
                    algorithms.add(name);
                }
            }
        }
        algorithms
    }

    fn add(&mut self, name: Name) {
        if let Some(first) = name.words.first() {
            let names = self.names.entry(first.clone()).or_default();
            if !names.iter().any(|other| other.words == name.words) {
                names.push(name);
            }
        }
    }

    /// Where a text names one, its common name and where golden has it; the longest name of those at a place.
    pub(super) fn find(&self, text: &str) -> Vec<(Range<usize>, &str, &GoldenLine)> {
        let terms = terms(text);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(term) = terms.get(at) {
            let here = self
                .names
                .get(&term.text)
                .into_iter()
                .flatten()
                .filter(|name| is_at(&terms, at, &name.words) && (!name.is_proper || term.is_capital));
            match here.max_by_key(|name| name.words.len()) {
                Some(name) => {
                    let last = at + name.words.len() - 1;
                    let range = term.range.start..terms[last].range.end;
                    found.push((range, name.shown.as_str(), &name.golden));
                    at = last + 1;
                }
                None => at += 1,
            }
        }
        found
    }
}

/// All that an algorithm is called.
fn said(algorithm: &Algorithm) -> impl Iterator<Item = &'static str> {
    std::iter::once(algorithm.name).chain(algorithm.said.iter().copied())
}

/// Names that golden's own words give: of a person, of two, or before a word such as `algorithm`.
fn uncatalogued(passage: &Passage) -> Vec<Name> {
    let terms = terms(&passage.text);
    let lines = Lines::of(&passage.text);
    let mut names = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        let mut name = |from: usize, to: usize, is_proper: bool| {
            let range = terms[from].range.start..terms[to].range.end;
            let line = passage.golden.line + lines.at(range.start) - 1;
            names.push(Name {
                words: terms[from..=to].iter().map(|term| term.text.clone()).collect(),
                shown: written(&passage.text[range]),
                is_proper,
                golden: GoldenLine { line, ..passage.golden.clone() },
            });
        };
        let is_name = |term: &Term| term.text.chars().count() >= NAME && !PLAIN.contains(&term.text.as_str());
        if term.is_capital && term.is_possessive && is_name(term) {
            name(at, at, true);
        }
        let Some(before) = at.checked_sub(1).map(|before| &terms[before]).filter(|_| term.follows) else {
            continue;
        };
        if term.is_hyphenated && term.is_capital && before.is_capital && is_name(term) && is_name(before) {
            name(at - 1, at, true);
        }
        if HEADS.contains(&term.text.as_str()) && is_name(before) {
            name(at - 1, at, false);
        }
    }
    names
}

/// A name as golden writes it, on one line and without the signs of a comment.
fn written(name: &str) -> String {
    name.split_whitespace().filter(|word| *word != "#").collect::<Vec<_>>().join(" ")
}

/// A file's words, and which of them stand on lines that golden adds.
struct Added<'a> {
    path: &'a str,
    terms: Vec<Term>,
    phrases: HashMap<String, Vec<usize>>,
    lines: Lines,
    is_added: Vec<bool>,
}

impl<'a> Added<'a> {
    fn of(base: &[(String, String)], (path, text): &'a (String, String)) -> Added<'a> {
        let before = base.iter().find(|(known, _)| known == path).map_or("", |(_, text)| text);
        let old: HashSet<&str> = before.lines().map(str::trim).collect();
        let terms = terms(text);
        let mut phrases: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, term) in terms.iter().enumerate() {
            phrases.entry(term.text.clone()).or_default().push(at);
        }
        let is_added = text.lines().map(|line| !old.contains(line.trim())).collect();
        Added { path, terms, phrases, lines: Lines::of(text), is_added }
    }

    /// The first added line that has these words in a row.
    fn place(&self, words: &[String]) -> Option<GoldenLine> {
        let line = |at: usize| self.lines.at(self.terms[at].range.start);
        let is_added = |at: usize| self.is_added.get(line(at) as usize - 1).copied().unwrap_or_default();
        let mut places = self.phrases.get(words.first()?)?.iter();
        let at =
            places.find(|at| is_at(&self.terms, **at, words) && (**at..**at + words.len()).all(is_added))?;
        Some(GoldenLine { file: self.path.to_owned(), line: line(*at) })
    }
}

/// A text's words and where each stands.
struct Phrases {
    terms: Vec<Term>,
    places: BTreeMap<String, Vec<usize>>,
}

impl Phrases {
    fn of(text: &str) -> Phrases {
        let terms = terms(text);
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, term) in terms.iter().enumerate() {
            places.entry(term.text.clone()).or_default().push(at);
        }
        Phrases { terms, places }
    }

    fn has(&self, words: &[String]) -> bool {
        let places = words.first().and_then(|word| self.places.get(word));
        places.is_some_and(|places| places.iter().any(|at| is_at(&self.terms, *at, words)))
    }
}

/// What anyone may read.
struct Known<'a> {
    phrases: Vec<Phrases>,
    has_word: &'a dyn Fn(&str) -> bool,
}

impl Known<'_> {
    fn has(&self, words: &[String]) -> bool {
        let is_word = match words {
            [word] => (self.has_word)(word) || (self.has_word)(&capital(word)),
            _ => false,
        };
        is_word || self.phrases.iter().any(|text| text.has(words))
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Whether words stand at a place, in a row and in one sentence.
fn is_at(terms: &[Term], at: usize, words: &[String]) -> bool {
    terms.get(at..at + words.len()).is_some_and(|here| {
        let alike = here.iter().zip(words).all(|(term, word)| term.text == *word);
        alike && here[1..].iter().all(|term| term.follows)
    })
}

fn words(text: &str) -> Vec<String> {
    terms(text).into_iter().map(|term| term.text).collect()
}

/// The words of a text, those that make up a name such as `lru_cache` or `LruCache` each by itself.
fn terms(text: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for range in pieces(text) {
        let written = &text[range.clone()];
        let between = terms.last().map(|last| &text[last.range.end..range.start]);
        if written == "s" && matches!(between, Some("'" | "’")) {
            if let Some(last) = terms.last_mut() {
                last.is_possessive = true;
                last.range.end = range.end;
            }
            continue;
        }
        terms.push(Term {
            text: stem(written),
            is_capital: written.starts_with(char::is_uppercase),
            is_possessive: false,
            follows: between.is_some_and(joins),
            is_hyphenated: matches!(between, Some("-" | "–" | "—" | "‑")),
            range,
        });
    }
    terms
}

/// Whether what is between two words leaves them in one phrase; a comment may go on in its next line.
fn joins(between: &str) -> bool {
    let is_joint = |c: char| c.is_whitespace() || "-–—‑_/'’\"`*#.".contains(c);
    let is_end = between.contains('.') && between.contains(char::is_whitespace);
    between.chars().all(is_joint) && between.matches('\n').count() < 2 && !is_end
}

/// Runs of letters and digits, divided where small letters go over into a capital one.
pub(super) fn pieces(text: &str) -> Vec<Range<usize>> {
    let letters: Vec<(usize, char)> = text.char_indices().chain([(text.len(), ' ')]).collect();
    let mut pieces = Vec::new();
    let mut begin: Option<usize> = None;
    for (index, (at, c)) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| letters[index].1);
        let after = |by: usize| letters.get(index + by).map_or(' ', |(_, next)| *next);
        // `LRUs` is one word.
        let is_small = after(1).is_lowercase() && (after(1) != 's' || after(2).is_alphanumeric());
        // `lruCache`, and `LRUCache` before its last capital.
        let is_hump = c.is_uppercase()
            && before.is_some_and(|before| before.is_lowercase() || before.is_uppercase() && is_small);
        if let Some(from) = begin.filter(|_| !c.is_alphanumeric() || is_hump) {
            pieces.push(from..*at);
            begin = None;
        }
        if begin.is_none() && c.is_alphanumeric() {
            begin = Some(*at);
        }
    }
    pieces
}

fn stem(written: &str) -> String {
    let word = written.to_lowercase().replace('z', "s");
    // `LRUs`, unlike `radius`.
    let is_acronym = written
        .strip_suffix('s')
        .is_some_and(|letters| letters.len() > 1 && letters.chars().all(char::is_uppercase));
    let is_plural = is_acronym
        || word.len() > 3 && word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if is_plural { word[..word.len() - 1].to_owned() } else { word }
}
