//! A parsed file: its text, its tree, and where an offset lies.

use std::ops::Range;

use infradev_model::{Class, Classified};
use ruff_python_ast::token::Tokens;
use ruff_python_ast::{ModModule, Stmt};
use ruff_python_parser::{Parsed, parse_module};
use ruff_text_size::{Ranged, TextRange};

/// A half-open range of byte offsets into a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The span as a range that slices a `str`.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl From<TextRange> for Span {
    fn from(range: TextRange) -> Span {
        Span { start: range.start().to_usize(), end: range.end().to_usize() }
    }
}

/// A text that is not Python, with the first place where the parser gave up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: not valid Python: {what}")]
pub struct ParseError {
    /// The file as the caller named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What the parser expected or met.
    pub what: String,
}

impl Classified for ParseError {
    fn class(&self) -> Class {
        Class::BadInput
    }

    fn hint(&self) -> Option<String> {
        Some(format!("see line {} of {}; the newest Python grammar is understood", self.line, self.file))
    }
}

/// A Python file that parsed.
#[derive(Debug)]
pub struct Module {
    path: String,
    source: String,
    parsed: Parsed<ModModule>,
}

impl Module {
    /// Parses `source` with the newest Python grammar; `path` only names the file in errors and results.
    pub fn parse(path: &str, source: &str) -> Result<Module, ParseError> {
        match parse_module(source) {
            Ok(parsed) => Ok(Module { path: path.to_owned(), source: source.to_owned(), parsed }),
            Err(error) => {
                let (line, column) = line_column(source, error.location.start().to_usize());
                Err(ParseError { file: path.to_owned(), line, column, what: error.error.to_string() })
            }
        }
    }

    /// The path that the caller gave.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The line and column (both from 1, the column in characters) of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        line_column(&self.source, offset)
    }

    pub(crate) fn body(&self) -> &[Stmt] {
        &self.parsed.syntax().body
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        self.parsed.tokens()
    }

    pub(crate) fn text(&self, ranged: &impl Ranged) -> &str {
        &self.source[Span::from(ranged.range()).range()]
    }

    /// The line ending that the file uses: that of its first line, `\n` where it has only one.
    pub(crate) fn newline(&self) -> &'static str {
        match self.source.find(['\r', '\n']) {
            Some(at) if self.source[at..].starts_with("\r\n") => "\r\n",
            Some(at) if self.source[at..].starts_with('\r') => "\r",
            _ => "\n",
        }
    }

    /// What stands on the line of `offset` before it.
    pub(crate) fn line_prefix(&self, offset: usize) -> &str {
        let start = self.source[..offset].rfind(['\r', '\n']).map_or(0, |at| at + 1);
        self.source[start..offset].trim_start_matches('\u{feff}')
    }

    /// Where the line of `offset` ends, its line ending left out.
    pub(crate) fn line_end(&self, offset: usize) -> usize {
        self.source[offset..].find(['\r', '\n']).map_or(self.source.len(), |at| offset + at)
    }

    /// The indent of a statement at `offset` that has its line to itself, `None` where it shares a logical line with
    /// what stands before it (`def f(): return 1`, also when continued by a backslash).
    pub(crate) fn own_indent(&self, offset: usize) -> Option<&str> {
        let prefix = self.line_prefix(offset);
        if !prefix.chars().all(char::is_whitespace) {
            return None;
        }
        let before = &self.source[..offset - prefix.len()];
        let continued = before.trim_end_matches(['\r', '\n']).ends_with('\\') && !before.ends_with("\n\n");
        (!continued).then_some(prefix)
    }
}

fn line_column(source: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &source[..offset];
    let line_start = before.rfind(['\r', '\n']).map_or(0, |at| at + 1);
    let newlines = before.matches('\n').count() + before.matches('\r').count() - before.matches("\r\n").count();
    (newlines + 1, before[line_start..].chars().count() + 1)
}
