//! A parsed file: its text, its tree, and where an offset lies.

use std::ops::Range;

use infradev_model::{Class, Classified};
use ruff_python_ast::token::Tokens;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal};
use ruff_python_ast::{AnyNodeRef, ModModule, Stmt};
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
        let parsed = parse_bounded(path, source)?;
        Ok(Module { path: path.to_owned(), source: source.to_owned(), parsed })
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

/// How deep a tree may nest, in nodes. Code that people write stays below 100; Python's own compiler gives up at some
/// thousands. What walks, copies, compares and drops trees recurses, and a test thread's stack is 2 MiB.
const MAX_DEPTH: usize = 500;

/// Parses, and refuses trees that would overflow the stack of those who walk them.
pub(crate) fn parse_bounded(path: &str, source: &str) -> Result<Parsed<ModModule>, ParseError> {
    let at = |offset: usize, what: String| {
        let (line, column) = line_column(source, offset);
        ParseError { file: path.to_owned(), line, column, what }
    };
    let parsed = parse_module(source)
        .map_err(|error| at(error.location.start().to_usize(), error.error.to_string()))?;
    let mut depth = Depth { now: 0, too_deep: None };
    depth.visit_body(&parsed.syntax().body);
    match depth.too_deep {
        None => Ok(parsed),
        Some(offset) => {
            // Dropping recurses too: a tree of a hundred thousand levels would overflow right here, so it is leaked.
            std::mem::forget(parsed);
            Err(at(offset, format!("nested more than {MAX_DEPTH} levels deep")))
        }
    }
}

/// Finds where a tree gets too deep, without going deeper itself.
struct Depth {
    now: usize,
    too_deep: Option<usize>,
}

impl<'a> SourceOrderVisitor<'a> for Depth {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        self.now += 1;
        if self.now > MAX_DEPTH {
            self.too_deep.get_or_insert(node.start().to_usize());
        }
        if self.too_deep.is_some() { TraversalSignal::Skip } else { TraversalSignal::Traverse }
    }

    fn leave_node(&mut self, _: AnyNodeRef<'a>) {
        self.now -= 1;
    }
}

fn line_column(source: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &source[..offset];
    let line_start = before.rfind(['\r', '\n']).map_or(0, |at| at + 1);
    let newlines =
        before.matches('\n').count() + before.matches('\r').count() - before.matches("\r\n").count();
    (newlines + 1, before[line_start..].chars().count() + 1)
}
