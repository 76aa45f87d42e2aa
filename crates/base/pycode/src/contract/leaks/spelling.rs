//! Tokens of code that stay the same however it is spaced, quoted, bracketed, wrapped or marked up.

use std::collections::HashSet;
use std::ops::Range;

use super::{calls, number};

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// Python, or a part of it.
    Code,
    /// Prose with code in it: Markdown, or TOML.
    Prose,
}

/// A token of a text: a word, a number by its value, or one other character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// Where it stands.
    pub(super) range: Range<usize>,
    /// How many tokens it is together with what is dropped behind it: brackets, quotes.
    pub(super) weight: usize,
    pub(super) role: Role,
}

/// Whether a token has to be the same in two spellings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    /// `dim=` of an argument, which may as well stand in its place.
    Keyword,
    /// What Markdown, a diff or a prompt begins a line with: `-`, `>`, `+`, `>>>`.
    Marker,
}

impl Token {
    pub(super) fn is_word(&self) -> bool {
        is_word(&self.text)
    }
}

/// Whether a token is a word: a name or a keyword.
pub(super) fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Between two paragraphs.
const BREAK: &str = "\n\n";
/// A full stop, which is no point before an attribute.
const STOP: &str = ". ";

/// The tokens of a text, and which there are at all.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    pub(super) tokens: Vec<Token>,
    present: HashSet<String>,
}

impl Stream {
    pub(super) fn of(text: &str, kind: Text) -> Stream {
        let tokens = tokens(text, kind);
        let present = tokens.iter().map(|token| token.text.clone()).collect();
        Stream { tokens, present }
    }

    pub(super) fn has(&self, token: &str) -> bool {
        self.present.contains(token)
    }
}

/// The tokens of a text.
pub(super) fn tokens(text: &str, kind: Text) -> Vec<Token> {
    let mut lexer = Lexer { text, kind, at: 0, tokens: Vec::new(), brackets: 0, last: None };
    while lexer.at < text.len() {
        lexer.step();
    }
    lexer.tokens
}

struct Lexer<'t> {
    text: &'t str,
    kind: Text,
    at: usize,
    tokens: Vec<Token>,
    /// How many round brackets are open.
    brackets: usize,
    /// The last character that is neither space nor markup.
    last: Option<char>,
}

impl Lexer<'_> {
    fn step(&mut self) {
        let text = self.text;
        let rest = &text[self.at..];
        let Some(c) = rest.chars().next() else { return };
        let length = c.len_utf8();
        if self.at == 0 && self.kind == Text::Prose {
            self.markers();
            if self.at > 0 {
                return;
            }
        }
        match c {
            '\n' => self.line_end(),
            _ if c.is_whitespace() || c == '`' => self.at += length,
            '\'' | '"' | '\\' | '“' | '”' | '‘' | '’' => self.drop(c),
            '(' => {
                self.brackets += 1;
                self.drop(c);
            }
            ')' => {
                self.brackets = self.brackets.saturating_sub(1);
                self.drop(c);
            }
            ',' if rest[1..].trim_start().starts_with([')', ']', '}']) => self.drop(c),
            '.' if !self.is_number() => {
                self.push(if self.is_point() { "." } else { STOP }, length, Role::Plain);
            }
            _ if self.is_number() => match number::folded(self.text, self.at) {
                Some((end, value)) => self.push(&value.to_string(), end - self.at, Role::Plain),
                None => self.word(),
            },
            _ if c.is_alphanumeric() || c == '_' => self.word(),
            '≥' | '≤' | '≠' => {
                let first = match c {
                    '≥' => ">",
                    '≤' => "<",
                    _ => "!",
                };
                self.push(first, length, Role::Plain);
                self.at -= length;
                self.push("=", length, Role::Plain);
            }
            '−' => self.push("-", length, Role::Plain),
            // Of other languages.
            '&' if rest.starts_with("&&") => self.push("and", 2, Role::Plain),
            '|' if rest.starts_with("||") => self.push("or", 2, Role::Plain),
            '!' | '=' if rest[1..].starts_with("==") && !rest[1..].starts_with("===") => {
                self.push(&rest[..1], 1, Role::Plain);
                self.push("=", 2, Role::Plain);
            }
            '×' | '·' => self.push("*", length, Role::Plain),
            _ => self.push(c.encode_utf8(&mut [0; 4]), length, Role::Plain),
        }
    }

    fn push(&mut self, text: &str, length: usize, role: Role) {
        let range = self.at..self.at + length;
        self.last = self.text[range.clone()].chars().next_back();
        self.tokens.push(Token { text: text.to_owned(), range, weight: 1, role });
        self.at += length;
    }

    /// Leaves a character out, as part of the token before it.
    fn drop(&mut self, c: char) {
        if let Some(token) = self.tokens.last_mut() {
            token.weight += 1;
        }
        self.last = Some(c);
        self.at += c.len_utf8();
    }

    fn is_number(&self) -> bool {
        let rest = &self.text[self.at..];
        let digits = rest.strip_prefix('.').unwrap_or(rest);
        let is_point = digits.len() < rest.len();
        digits.starts_with(|c: char| c.is_ascii_digit())
            && !(is_point && self.last.is_some_and(|c| c.is_alphanumeric() || "_)]".contains(c)))
    }

    /// Whether the dot here is one before an attribute: Python takes space around it. In prose a sentence may begin behind it, with a
    /// capital letter; a name that is called, indexed or has an attribute begins none.
    fn is_point(&self) -> bool {
        let (before, rest) = (&self.text[..self.at], &self.text[self.at + 1..]);
        let name = rest.trim_start();
        let gap = &rest[..rest.len() - name.len()];
        if !is_word(name) || gap.matches('\n').count() > 1 {
            return false;
        }
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        let after = &name[end..];
        let goes_on = after.starts_with(['(', '[']) || after.strip_prefix('.').is_some_and(is_word);
        gap.is_empty()
            || self.kind == Text::Code
            || before.ends_with([' ', '\t'])
            || !name.starts_with(char::is_uppercase)
            || goes_on
    }

    fn word(&mut self) {
        let text = self.text;
        let rest = &text[self.at..];
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()).max(1);
        let (word, after) = rest.split_at(length);
        // `f"…"`, `r'…'`.
        let is_prefix = length <= 2 && word.chars().all(|c| "fFrRbBuU".contains(c));
        if is_prefix && after.starts_with(['"', '\'']) {
            self.at += length;
            return;
        }
        let follows = after.trim_start();
        let is_keyword = self.brackets > 0
            && matches!(self.last, Some('(' | ','))
            && follows.starts_with('=')
            && !follows.starts_with("==")
            && is_word(word);
        if !is_keyword {
            // `np.cumsum` and `torch.cumsum` are one.
            let attribute = follows.strip_prefix('.');
            let library = attribute.filter(|name| is_word(name)).and_then(|_| calls::library(word));
            self.push(library.unwrap_or(word), length, Role::Plain);
            return;
        }
        self.push(word, length, Role::Keyword);
        self.at += after.len() - follows.len();
        self.push("=", 1, Role::Keyword);
    }

    /// The end of a line, and of a paragraph where the next one is blank.
    fn line_end(&mut self) {
        self.at += 1;
        if self.kind == Text::Code {
            return;
        }
        let rest = &self.text[self.at..];
        let blank = rest.len() - rest.trim_start().len();
        if rest[..blank].contains('\n') {
            self.brackets = 0;
            self.push(BREAK, 0, Role::Plain);
        }
        self.markers();
    }

    /// What a line begins with.
    fn markers(&mut self) {
        let text = self.text;
        loop {
            let rest = &text[self.at..];
            let marked = rest.trim_start_matches([' ', '\t', '`']);
            let marker =
                ["...", "-", ">", "+", "*", "•"].into_iter().find(|marker| marked.starts_with(marker));
            let Some(marker) = marker else { return };
            self.at += rest.len() - marked.len();
            self.push(marker, marker.len(), Role::Marker);
        }
    }
}

/// The lines of a text.
#[derive(Debug)]
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The line, from 1, of a byte.
    pub(super) fn at(&self, byte: usize) -> u32 {
        self.0.partition_point(|end| *end < byte) as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, kind: Text) -> String {
        let kept = tokens(text, kind).into_iter().filter(|token| token.role == Role::Plain);
        kept.map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn code_has_the_same_tokens_however_it_is_spelled() {
        let golden = plain("offsets = torch.cumsum(counts, dim=0) - counts", Text::Code);
        assert_eq!(golden, "offsets = torch . cumsum counts , 0 - counts");
        for other in [
            "offsets=torch.cumsum(counts,0)-counts",
            "offsets = (torch.cumsum(counts, dim = 0)) − counts",
            "offsets = torch.cumsum(\n    counts,\n    dim=0,\n) - counts",
            "`offsets` = `torch.cumsum(counts, 0) - counts`",
            "- offsets = torch.cumsum(counts, 0x0) \\\n  - counts",
            "> > offsets = torch.cumsum(counts, axis=0)\n> - counts",
            ">>> offsets = torch.cumsum(counts, 0)\n... - counts",
            "```\n+offsets = torch.cumsum(counts, 0) - counts\n```",
        ] {
            // What a marker may be, `-` before `counts`, is left to who compares.
            let other = plain(other, Text::Prose);
            assert!(golden == other || golden.replace(" - ", " ") == other, "{other}");
        }
    }

    #[test]
    fn quotes_and_their_prefixes_are_no_tokens() {
        assert_eq!(
            plain("raise ValueError(f'{n} of them')", Text::Code),
            plain("raise ValueError(\"{n} of them\")", Text::Code)
        );
    }

    #[test]
    fn a_point_may_have_space_around_it_and_a_sentence_s_end_is_none() {
        let golden = plain("starts = counts.cumsum(0) - self.cache.Block[0]", Text::Code);
        for other in [
            "starts = counts. cumsum(0) - self. cache. Block[0]",
            "starts = counts . cumsum ( 0 ) - self . cache . Block [0]",
            "starts = counts.\n    cumsum(0) - self .cache\n    .Block[0]",
        ] {
            assert_eq!(plain(other, Text::Prose), golden, "{other}");
            assert_eq!(plain(other, Text::Code), golden, "{other}");
        }
        assert_eq!(plain("It counts. Blocks are freed.", Text::Prose), "It counts .  Blocks are freed . ");
    }

    #[test]
    fn a_full_stop_is_no_point_and_paragraphs_are_apart() {
        assert_eq!(
            plain("of counts. It has\n\ncounts.it", Text::Prose),
            "of counts .  It has \n\n counts . it"
        );
    }

    #[test]
    fn a_token_weighs_what_is_dropped_behind_it() {
        let weights: Vec<usize> =
            tokens("x.detach().y", Text::Code).iter().map(|token| token.weight).collect();
        assert_eq!(weights, [1, 1, 3, 1, 1]);
    }

    #[test]
    fn a_byte_s_line_is_counted_from_one() {
        let lines = Lines::of("a\nbc\n\nd");
        assert_eq!([0, 1, 2, 4, 5, 6].map(|byte| lines.at(byte)), [1, 1, 2, 2, 3, 4]);
    }
}
