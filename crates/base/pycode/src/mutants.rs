//! Mutants of golden: golden with one small mistake in a line that it added or changed (design: synthesize).
//!
//! Each group of operators has a file. They propose edits freely; what does not parse, changes no behaviour, leaves the
//! added lines or says the same as another is sorted out here.

mod caches;
mod collectives;
mod constants;
mod drops;
mod flags;
mod groups;
mod imports;
mod inert;
mod lines;
mod pending;
mod quiet;
mod ranks;
mod swaps;
mod take_back;
mod tensors;
mod walk;

use std::collections::HashSet;

use infradev_model::{Mutant, Operator};

use crate::definitions::Definition;
use crate::module::{Module, ParseError, Span};
use lines::AddedLines;

/// One Python file before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MutationSource<'a> {
    /// Path in golden's tree, with `/`; that in base's tree where golden deletes the file.
    pub path: &'a str,
    /// Base's text; `None` where golden adds the file.
    pub base: Option<&'a str>,
    /// Golden's text; `None` where golden deletes the file.
    pub golden: Option<&'a str>,
}

/// The mutants of one file, in the order of the text.
///
/// Each parses, and its syntax tree differs from golden's and from that of every other mutant, where docstrings,
/// comments, annotations, text for people (logging, messages of exceptions and assertions, help), `__all__`, unused
/// imports and imports for type checkers don't count; but for the ones that take back, from base's too. Every line that a
/// mutant touches is one that the line diff of base and golden added or changed; taking back a hunk that only removes lines
/// touches none, its span is empty. A file whose change is of no consequence in this sense has no mutants, nor has a new one without
/// a statement.
///
/// The error is that golden (of a deleted file: base) is not Python.
pub fn mutants(source: &MutationSource<'_>) -> Result<Vec<Mutant>, ParseError> {
    mutants_unless(source, &|| false)
}

/// [`mutants`] of a file that may be long: those made by the time that `ended` holds. Each takes a parse of the whole file.
pub fn mutants_unless(
    source: &MutationSource<'_>,
    ended: &dyn Fn() -> bool,
) -> Result<Vec<Mutant>, ParseError> {
    let path = source.path;
    let Some(golden) = source.golden else {
        let Some(base) = source.base else { return Ok(Vec::new()) };
        inert::key(path, base)?;
        return Ok(vec![Mutant {
            file: path.to_owned(),
            start: 0,
            end: 0,
            line: 1,
            replacement: Some(base.to_owned()),
            operator: Operator::TakeBackFile,
            function: None,
            digest: Mutant::digest_of(path, Some(base)),
        }]);
    };
    let module = Module::parse(path, golden)?;
    if source.base.is_none() && module.body().is_empty() {
        return Ok(Vec::new());
    }
    let golden_key = inert::key(path, golden)?;
    let base_key = source.base.and_then(|base| inert::key(path, base).ok());
    if base_key == Some(golden_key) {
        return Ok(Vec::new());
    }
    let base = source.base.and_then(|base| Module::parse(path, base).ok());
    let added = AddedLines::between(source.base, golden);
    let definitions = module.definitions();

    let mut edits = take_back::edits(&module, source.base, &added);
    edits.extend(walk::edits(&module, base.as_ref(), &added));
    edits.sort_by(|a, b| (a.operator, a.span, &a.text).cmp(&(b.operator, b.span, &b.text)));
    edits.dedup();

    let mut seen = HashSet::from([golden_key]);
    let mut seen_texts = HashSet::new();
    let mut found = Vec::new();
    for edit in edits {
        if ended() {
            break;
        }
        let mutated = edit.text.as_ref().map(|text| edit.apply(golden, text));
        let digest = Mutant::digest_of(path, mutated.as_deref());
        if !seen_texts.insert(digest.clone()) {
            continue;
        }
        if let Some(mutated) = &mutated {
            let Ok(key) = inert::key(path, mutated) else { continue };
            let is_base = base_key == Some(key) && !edit.takes_back();
            if is_base || !seen.insert(key) {
                continue;
            }
        }
        found.push(Mutant {
            file: path.to_owned(),
            start: edit.span.start,
            end: edit.span.end,
            line: u32::try_from(module.line_column(edit.span.start).0).unwrap_or(u32::MAX),
            function: innermost(&definitions, edit.span),
            replacement: edit.text,
            operator: edit.operator,
            digest,
        });
    }
    found.sort_by(|a, b| {
        let order = |m: &Mutant| (m.start, m.end, m.operator);
        order(a).cmp(&order(b)).then_with(|| a.replacement.cmp(&b.replacement))
    });
    Ok(found)
}

/// A proposed change of golden's text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    span: Span,
    /// `None` where the file is removed.
    text: Option<String>,
    operator: Operator,
}

impl Edit {
    fn apply(&self, golden: &str, text: &str) -> String {
        format!("{}{text}{}", &golden[..self.span.start], &golden[self.span.end..])
    }

    fn takes_back(&self) -> bool {
        matches!(self.operator, Operator::TakeBackHunk | Operator::TakeBackFile)
    }
}

fn innermost(definitions: &[Definition], span: Span) -> Option<String> {
    let holds = |d: &&Definition| d.span.start <= span.start && span.end <= d.span.end;
    definitions
        .iter()
        .filter(holds)
        .min_by_key(|d| d.span.end - d.span.start)
        .map(|d| d.qualified_name.clone())
}
