//! Rewrites of golden's added functions that keep what they do: a probe that fails one judges how golden is
//! written, not what it does.
//!
//! Each rewrite is refused where it is not plainly safe: nested functions, `global`, `nonlocal`, `locals()`,
//! `eval`, `{x=}` in f-strings, names that stand in strings, frames, and whatever a rule does not know.

mod block;
mod comprehension;
mod extract;
mod inline;
mod relocate;
mod rename;
mod reorder;
mod scope;

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use ruff_python_ast::StmtFunctionDef;

use crate::contract::words_of;
use crate::definitions::{Accessor, Scope, is_jit_kernel, is_overload, walk};
use crate::equality::ast_equal;
use crate::import_time::runs_on_import;
use crate::module::{Module, ParseError, Span};
use crate::replace::replace_spans;
use crate::stub;

/// How a function is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RewriteKind {
    /// Local variables have other names.
    RenamedLocals,
    /// Neighbouring assignments that know nothing of each other stand in the other order.
    ReorderedStatements,
    /// An expression is computed by a new function.
    ExtractedHelper,
    /// The expression that a private function returns stands in place of its call.
    InlinedHelper,
    /// A list is filled by a loop in place of a comprehension.
    LoopForComprehension,
    /// A list is made by a comprehension in place of a loop.
    ComprehensionForLoop,
    /// A private function stands elsewhere in its module.
    MovedFunction,
}

impl fmt::Display for RewriteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RewriteKind::RenamedLocals => "renamed-locals",
            RewriteKind::ReorderedStatements => "reordered-statements",
            RewriteKind::ExtractedHelper => "extracted-helper",
            RewriteKind::InlinedHelper => "inlined-helper",
            RewriteKind::LoopForComprehension => "loop-for-comprehension",
            RewriteKind::ComprehensionForLoop => "comprehension-for-loop",
            RewriteKind::MovedFunction => "moved-function",
        })
    }
}

/// One file of the change.
#[derive(Debug, Clone, Copy)]
pub struct RewriteSource<'a> {
    /// Its path; only names the file.
    pub file: &'a str,
    /// Base's text of it, where base has it.
    pub base: Option<&'a str>,
    /// Golden's text of it.
    pub golden: &'a str,
}

/// Golden's file with one function written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// How.
    pub kind: RewriteKind,
    /// The file.
    pub file: String,
    /// The function, as `__qualname__` has it.
    pub function: String,
    /// The whole file's text.
    pub text: String,
}

/// A function that golden adds, with what a rule asks about it.
pub(crate) struct Candidate<'a> {
    pub(crate) module: &'a Module,
    pub(crate) function: &'a StmtFunctionDef,
    pub(crate) name: String,
    pub(crate) scope: scope::FunctionScope<'a>,
    /// Every word of the file.
    words: &'a BTreeSet<&'a str>,
}

/// Spans of golden's text with what stands there instead.
pub(crate) type Edits = Vec<(Span, String)>;

/// Every rewrite of the functions that golden adds to a file, in the order of the text: at most one of each kind
/// for a function. Each parses, and its syntax tree differs from golden's.
///
/// # Errors
/// Where a version of the file does not parse.
pub fn rewrites(source: &RewriteSource<'_>) -> Result<Vec<Rewrite>, ParseError> {
    let modules = [Module::parse(source.file, source.golden)?];
    let [golden] = &modules;
    let known: HashSet<(String, Option<Accessor>)> = match source.base {
        Some(base) => names(&Module::parse(source.file, base)?),
        None => HashSet::new(),
    };
    let words = words_of(source.golden);
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    walk(golden.body(), &Scope::module(), &mut |site| {
        let Some(function) = site.function() else { return true };
        let added = !known.contains(&(site.qualified_name.clone(), site.accessor()));
        let plain = !is_jit_kernel(function) && !is_overload(function) && !stub::is_stub(&function.body);
        if added
            && plain
            && let Some(scope) = scope::FunctionScope::of(function)
        {
            let name = site.qualified_name.clone();
            candidates.push(Candidate { module: golden, function, name, scope, words: &words });
        }
        false
    });
    let on_import = runs_on_import(&modules);
    let on_import: HashSet<&str> = on_import.iter().map(|name| name.name.as_str()).collect();
    let mut found = Vec::new();
    for candidate in &candidates {
        let edited = [
            (RewriteKind::RenamedLocals, rename::renamed_locals(candidate)),
            (RewriteKind::ReorderedStatements, reorder::reordered(candidate)),
            (RewriteKind::ExtractedHelper, extract::extracted(candidate)),
            (RewriteKind::InlinedHelper, inline::inlined(candidate, &candidates)),
            (RewriteKind::LoopForComprehension, comprehension::to_loop(candidate)),
            (RewriteKind::ComprehensionForLoop, comprehension::from_loop(candidate)),
            (RewriteKind::MovedFunction, relocate::moved(candidate, &on_import)),
        ];
        for (kind, edits) in edited {
            let Some(edits) = edits else { continue };
            let text = replace_spans(source.golden, edits);
            // What does not parse or changes nothing is no rewrite.
            if ast_equal(source.golden, &text) == Ok(false) {
                let (file, function) = (source.file.to_owned(), candidate.name.clone());
                found.push(Rewrite { kind, file, function, text });
            }
        }
    }
    Ok(found)
}

fn names(module: &Module) -> HashSet<(String, Option<Accessor>)> {
    let mut names = HashSet::new();
    walk(module.body(), &Scope::module(), &mut |site| {
        names.insert((site.qualified_name.clone(), site.accessor()));
        true
    });
    names
}

impl Candidate<'_> {
    /// A name that stands nowhere in the file.
    pub(crate) fn fresh(&self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut number = 1;
        // What is wished for ends in a word of ours: no keyword does.
        while self.words.contains(name.as_str()) {
            number += 1;
            name = format!("{wish}_{number}");
        }
        name
    }
}
