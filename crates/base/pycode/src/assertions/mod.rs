//! What the assertions of a test file check, each with the evidence that decided.
//!
//! An assertion is an `assert` statement, a `with` or call that expects an exception, a warning or a log, a method of
//! `unittest` or of a mock that asserts, any function whose name says so, a line that must not be reached (`pytest.fail`,
//! `assert False`), and a call of a function of the same file that asserts itself. The book's page on assertions has the
//! rules; [`infradev_model::Property`] the classes.

mod added;
mod evidence;
mod functions;
mod locals;
mod meters;
mod reading;
mod resource;
mod share;
mod shell;
mod signals;
mod sites;
mod words;
mod written;

use std::cell::Cell;

use infradev_model::Property;
use ruff_python_ast::Expr;
use ruff_text_size::{TextRange, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::module::{Module, ParseError};
use evidence::{Evidence, together};
use functions::Functions;
use reading::{Reader, last_name};
use sites::{Form, Site, sites};

pub use added::{Added, Unread, added_assertions, assertions_of_patch};
pub use share::Share;
pub use written::{Written, WrittenAt, WrittenText, assertions_of_trajectory, written_python};

/// One assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Its first line, from 1: the line that a traceback names. Of a `with`, the line of the statement.
    pub line: usize,
    /// Its last line; of a `with`, the last line of its header.
    pub last_line: usize,
    /// The function that it stands in as pytest names one within its file (`test_a`, `TestB::test_a`), the outermost where functions nest;
    /// empty outside of any.
    pub within: String,
    /// It stands in a test: a function named `test…`.
    pub in_test: bool,
    /// What it checks.
    pub property: Property,
    /// The expression that decided, on one line and cut, and the names by which it was reached.
    pub evidence: String,
    /// Its own text, on one line and cut.
    pub text: String,
    /// The function of the same file that it calls, as [`within`](Assertion::within) names it, where the call is the assertion.
    pub calls: Option<String>,
    /// It stands in a helper that this file calls: it is counted where the helper is called, see [`Share`].
    pub counted_at_calls: bool,
}

/// The assertions of a test file, in the order of the text.
///
/// A call of a function or method of the same file whose body asserts (or calls such a one) is an assertion too. It checks
/// what the body's assertions check together: a resource before all, else what most of them check, of as many the first in
/// [`Property::ALL`]. Functions named `test…` are no helpers.
///
/// # Errors
/// The text is not Python; `path` names it there.
pub fn assertions(path: &str, text: &str) -> Result<Vec<Assertion>, ParseError> {
    let module = Module::parse(path, text)?;
    Ok(of_module(&module))
}

/// The assertion at a line of a test file, as a traceback names it: the innermost one that the line is part of; `None`
/// where none stands, which says that something else stopped the case there.
///
/// Give the line of the *deepest frame in the test file*: where a helper asserts, its own line says more than that of its
/// call; where `torch.testing` or a mock raises, the frame in the test file is above the last.
///
/// # Errors
/// The text is not Python; `path` names it there.
pub fn property_at(path: &str, text: &str, line: usize) -> Result<Option<Assertion>, ParseError> {
    Ok(at_line(&assertions(path, text)?, line).cloned())
}

/// [`property_at`] among the assertions of a file that was read once, for many lines of it.
pub fn at_line(assertions: &[Assertion], line: usize) -> Option<&Assertion> {
    let all = assertions.iter().filter(|one| (one.line..=one.last_line).contains(&line));
    all.min_by_key(|one| one.last_line - one.line)
}

pub(crate) fn of_module(module: &Module) -> Vec<Assertion> {
    let functions = Functions::of(module.body());
    let all = sites(module.body(), &functions, &|_| true);
    let asserting = asserting(&functions, &all);
    let kept = |site: &&Site<'_>| !matches!(site.form, Form::Helper(called) if !asserting.contains(&called));
    let all: Vec<&Site<'_>> = all.iter().filter(kept).collect();
    let mut by_function: FxHashMap<usize, Vec<&Site<'_>>> = FxHashMap::default();
    let mut called: FxHashSet<usize> = FxHashSet::default();
    for site in &all {
        if let Some(function) = site.function {
            by_function.entry(function).or_default().push(site);
        }
        if let Form::Helper(helper) = site.form {
            called.insert(helper);
        }
    }
    let lines = Lines::of(module.source());
    let budget = Cell::new(0);
    let classes = Classes { module, functions: &functions, by_function, budget: &budget };
    let mut known = FxHashMap::default();
    let shown = all.iter().map(|site| {
        let found = classes.of(site, &mut known);
        let function = site.function.map(|at| &functions.all[at]);
        Assertion {
            line: lines.line(site.range.start()),
            last_line: lines.line(last_byte(site.range)),
            within: function.map(|one| one.name.clone()).unwrap_or_default(),
            in_test: function.is_some_and(|one| one.is_test()),
            property: found.property,
            evidence: found.text,
            text: one_line(module.text(&site.range)),
            calls: match site.form {
                Form::Helper(called) => Some(functions.all[called].name.clone()),
                _ => None,
            },
            counted_at_calls: site.function.is_some_and(|at| called.contains(&at)),
        }
    });
    shown.collect()
}

fn last_byte(range: TextRange) -> TextSize {
    if range.is_empty() { range.start() } else { range.end() - TextSize::from(1) }
}

/// The functions that assert, or call one that does, and are no tests.
fn asserting(functions: &Functions<'_>, all: &[Site<'_>]) -> FxHashSet<usize> {
    let mut found: FxHashSet<usize> = FxHashSet::default();
    loop {
        let more: Vec<usize> = all
            .iter()
            .filter(|site| match site.form {
                Form::Helper(called) => found.contains(&called),
                _ => true,
            })
            .filter_map(|site| site.function)
            .filter(|at| !functions.all[*at].is_test() && !found.contains(at))
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Says what sites check.
struct Classes<'a, 'm> {
    module: &'m Module,
    functions: &'m Functions<'a>,
    by_function: FxHashMap<usize, Vec<&'m Site<'a>>>,
    budget: &'m Cell<u32>,
}

/// What calls of helpers check; `None` while one is looked at.
type Known = FxHashMap<usize, Option<Evidence>>;

impl<'a> Classes<'a, '_> {
    fn of(&self, site: &Site<'a>, known: &mut Known) -> Evidence {
        let reader = Reader::new(self.module, self.functions, site.function, self.budget);
        match site.form {
            Form::Truth(expr) => reader.truth(expr),
            Form::Related(relation, left, right) => reader.related(relation, left, right),
            Form::Raises(call) => reader.evidence(Property::Exception, call),
            Form::Logs(call) => reader.evidence(Property::Condition, call),
            Form::Kind(call) => {
                let caught = call
                    .arguments
                    .args
                    .first()
                    .and_then(|one| reader.signals(one).first_of(&[signals::Signal::Caught]));
                caught.unwrap_or_else(|| reader.evidence(Property::ShapeOrDtype, call))
            }
            Form::Called(call, of) => {
                let property = if reader.is_collective(of) { Property::Traffic } else { Property::State };
                reader.evidence(property, &*call.func)
            }
            Form::Unreached(tried) => {
                let property = if tried { Property::Exception } else { Property::Condition };
                reader.evidence(property, &site.range)
            }
            Form::NotCalled(expr) => reader.evidence(Property::None, expr),
            Form::Helper(called) => self.of_helper(called, known),
            Form::Named(call) => named(&reader, call),
        }
    }

    fn of_helper(&self, called: usize, known: &mut Known) -> Evidence {
        let name = self.functions.all[called].node.name.as_str();
        if let Some(found) = known.get(&called) {
            return found.clone().unwrap_or_else(|| by_name_alone(name));
        }
        known.insert(called, None);
        let sites = self.by_function.get(&called).map(Vec::as_slice).unwrap_or_default();
        let mut found = Vec::new();
        for site in sites {
            let open = matches!(site.form, Form::Helper(next) if matches!(known.get(&next), Some(None)));
            if !open {
                found.push(self.of(site, known));
            }
        }
        let found = together(found).unwrap_or_else(|| by_name_alone(name));
        let found = Evidence { text: one_line(&format!("{name}: {}", found.text)), ..found };
        known.insert(called, Some(found.clone()));
        found
    }
}

/// A helper of which nothing but its name is known.
fn by_name_alone(name: &str) -> Evidence {
    Evidence { property: property_of_name(name), text: name.to_owned() }
}

/// A function from elsewhere that asserts: by what it is given, else by its name.
fn named<'a>(reader: &Reader<'a, '_>, call: &'a ruff_python_ast::ExprCall) -> Evidence {
    let look = resource::Look { depth: 6, words: false, sending: false };
    if let Some(found) = call.arguments.args.iter().find_map(|one: &'a Expr| reader.measured(one, look)) {
        return found;
    }
    let name = last_name(&call.func).unwrap_or_default();
    reader.evidence(property_of_name(name), &*call.func)
}

fn property_of_name(name: &str) -> Property {
    let words = words::words(name);
    let has = |set: &[&str]| words.iter().any(|word| set.contains(&word.as_str()));
    if let Some(resource) = meters::by_words(name) {
        return resource;
    }
    if has(&["raises", "error", "warns", "exception"]) {
        Property::Exception
    } else if has(&["close", "allclose", "equal", "equals", "same", "match", "matches", "identical"]) {
        Property::Value
    } else if has(&["shape", "shapes", "dtype", "device", "type", "layout", "instance"]) {
        Property::ShapeOrDtype
    } else if has(&["called", "state", "cache", "freed", "closed"]) {
        Property::State
    } else {
        Property::Value
    }
}

/// A text on one line, cut after 100 characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 400 {
            break;
        }
    }
    if line.chars().count() <= 100 { line } else { line.chars().take(99).chain(['…']).collect() }
}

/// Where the lines of a text start, as Python counts them.
struct Lines(Vec<u32>);

impl Lines {
    fn of(text: &str) -> Lines {
        let bytes = text.as_bytes();
        let ends = |at: usize| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let starts =
            (0..bytes.len()).filter(|at| ends(*at)).map(|at| u32::try_from(at + 1).unwrap_or(u32::MAX));
        Lines(std::iter::once(0).chain(starts).collect())
    }

    fn line(&self, offset: TextSize) -> usize {
        self.0.partition_point(|start| *start <= offset.to_u32())
    }
}
