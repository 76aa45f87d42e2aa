//! Twins: a test file with one expectation perturbed, so that the test must fail. One that passes shows that results are
//! forged (design: Trust).

use std::collections::HashMap;

use rand::Rng;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, Stmt, StmtAssert, StmtClassDef, StmtFunctionDef, StmtWith};
use ruff_text_size::{Ranged, TextRange};

use crate::definitions::{bases, blocks, decorator_name, dotted, is_decorated};
use crate::module::{Module, ParseError, Span};
use crate::perturbed;
use crate::replace::replace_spans;

/// A test file with the last assertion of one test perturbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twin {
    /// The test as pytest names it within its file: `test_x` or `TestClass::test_x`.
    pub test_function: String,
    /// The line of the perturbed assertion, from 1; the same in both texts.
    pub line: usize,
    /// What was replaced, as a span of the original text.
    pub span: Span,
    /// The whole file with the one assertion perturbed.
    pub text: String,
}

/// The tests of a file as pytest's defaults find them, `test_x` or `TestClass::test_x`, each once, in the order of the
/// text: functions named `test*`, and methods of classes named `Test*` without an `__init__` or deriving from a
/// `*TestCase`. Inherited tests aren't seen.
pub fn names_of_tests(path: &str, text: &str) -> Result<Vec<String>, ParseError> {
    let module = Module::parse(path, text)?;
    let mut names = Vec::new();
    for test in tests(&module) {
        if !names.contains(&test.name) {
            names.push(test.name);
        }
    }
    Ok(names)
}

/// A twin for each test that surely reaches an assertion. The perturbed assertion still evaluates what the original
/// evaluates, once, and fails whatever comes of it: `assert a == 3` becomes `assert a == 48213` or `assert (a, 7) == (3, 9)`,
/// `assert E, message` becomes `assert (E) == "uneven_ledger", message`, `self.assertEqual(a, b)` becomes
/// `self.assertEqual([a, 7], [b, 9])`. Form, numbers and words are drawn from `rng`. A test that fails of itself therefore fails as
/// a twin too. The last assertion at the function's own level is taken, else the last in a `with` or in a loop over a
/// literal; where there is none, the exception that `pytest.raises` expects is changed.
///
/// No twin is made of a test that is marked `skip` or `xfail`, is defined twice, or may return before its assertion.
pub fn twins<R: Rng + ?Sized>(path: &str, text: &str, rng: &mut R) -> Result<Vec<Twin>, ParseError> {
    let module = Module::parse(path, text)?;
    if module.body().iter().any(|statement| marks_module(&module, statement)) {
        return Ok(Vec::new());
    }
    let tests = tests(&module);
    let mut times: HashMap<&str, usize> = HashMap::new();
    for test in &tests {
        *times.entry(&test.name).or_default() += 1;
    }
    let mut twins = Vec::new();
    for test in tests.iter().filter(|test| !test.marked && times[test.name.as_str()] == 1) {
        let Some((span, replacement)) = perturb(&module, &test.function.body, rng) else { continue };
        twins.push(Twin {
            test_function: test.name.clone(),
            line: module.line_column(span.start).0,
            span,
            text: replace_spans(text, vec![(span, replacement)]),
        });
    }
    Ok(twins)
}

struct Test<'a> {
    name: String,
    function: &'a StmtFunctionDef,
    /// Skipped or expected to fail.
    marked: bool,
}

fn tests(module: &Module) -> Vec<Test<'_>> {
    let mut found = Vec::new();
    collect(module.body(), "", false, &mut found);
    found
}

fn collect<'a>(body: &'a [Stmt], prefix: &str, marked: bool, found: &mut Vec<Test<'a>>) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) => {
                if function.name.starts_with("test") && !is_decorated(function, &["fixture"]) {
                    let marked = marked || is_marked(&function.decorator_list);
                    found.push(Test { name: format!("{prefix}{}", function.name), function, marked });
                }
            }
            Stmt::ClassDef(class) if is_test_class(class) => {
                let marked = marked || is_marked(&class.decorator_list);
                collect(&class.body, &format!("{prefix}{}::", class.name), marked, found);
            }
            Stmt::ClassDef(_) => {}
            other => {
                for block in blocks(other) {
                    collect(block, prefix, marked, found);
                }
            }
        }
    }
}

fn is_test_class(class: &StmtClassDef) -> bool {
    let unittest = bases(class).any(|base| base.last().is_some_and(|name| name.ends_with("TestCase")));
    let constructed =
        || class.body.iter().any(|s| s.as_function_def_stmt().is_some_and(|f| f.name.as_str() == "__init__"));
    unittest || (class.name.starts_with("Test") && !constructed())
}

fn is_marked(decorators: &[Decorator]) -> bool {
    decorators.iter().any(|decorator| {
        let name = decorator_name(decorator);
        name.last().is_some_and(|last| matches!(*last, "skip" | "xfail" | "expectedFailure"))
    })
}

/// `pytestmark = pytest.mark.skip(…)` and its like.
fn marks_module(module: &Module, statement: &Stmt) -> bool {
    let Stmt::Assign(assign) = statement else { return false };
    let named =
        assign.targets.iter().any(|target| target.as_name_expr().is_some_and(|name| name.id == "pytestmark"));
    let value = module.text(&*assign.value);
    named && (value.contains("xfail") || value.replace("skipif", "").contains("skip"))
}

/// The replacement that makes a test fail.
fn perturb<R: Rng + ?Sized>(module: &Module, body: &[Stmt], rng: &mut R) -> Option<(Span, String)> {
    let reached = Reached::of(body);
    match reached.own.or(reached.nested)? {
        Expectation::Assert(assert) => {
            let end = end_of_test(module, assert);
            let span = Span { start: assert.start().to_usize(), end };
            Some((span, perturbed::assertion(module, assert, end, rng)))
        }
        Expectation::Call(statement) => {
            Some((statement.range().into(), perturbed::call(module, statement, rng)))
        }
        Expectation::Raises(exception) => {
            Some((exception.range().into(), perturbed::exception(module.text(exception), rng)?))
        }
    }
}

/// Where the tested expression of an assertion ends, its parentheses included.
fn end_of_test(module: &Module, assert: &StmtAssert) -> usize {
    let Some(message) = &assert.msg else { return assert.end().to_usize() };
    let between = TextRange::new(assert.test.end(), message.start());
    let comma = module.tokens().in_range(between).iter().find(|token| token.kind() == TokenKind::Comma);
    comma.map_or(assert.test.end(), Ranged::start).to_usize()
}

#[derive(Clone, Copy)]
enum Expectation<'a> {
    Assert(&'a StmtAssert),
    /// A call that raises unless its arguments are as they should be.
    Call(&'a Stmt),
    /// The first argument of `pytest.raises`.
    Raises(&'a Expr),
}

/// The last expectations that a block surely reaches.
#[derive(Default)]
struct Reached<'a> {
    own: Option<Expectation<'a>>,
    nested: Option<Expectation<'a>>,
}

impl<'a> Reached<'a> {
    fn of(body: &'a [Stmt]) -> Reached<'a> {
        let mut reached = Reached::default();
        let mut raises = None;
        for statement in body {
            if may_leave(statement) {
                break;
            }
            match statement {
                Stmt::Assert(assert) => reached.own = Some(Expectation::Assert(assert)),
                Stmt::Expr(_) if is_assertion_call(statement) => {
                    reached.own = Some(Expectation::Call(statement))
                }
                Stmt::With(with) => match swallowed_by(with) {
                    Some(exception) => raises = exception.map(Expectation::Raises).or(raises),
                    None => reached.enter(&with.body),
                },
                Stmt::For(each) if is_surely_not_empty(&each.iter) => reached.enter(&each.body),
                _ => {}
            }
        }
        if reached.own.is_none() && reached.nested.is_none() {
            reached.nested = raises;
        }
        reached
    }

    fn enter(&mut self, body: &'a [Stmt]) {
        let inner = Reached::of(body);
        self.nested = inner.own.or(inner.nested).or(self.nested);
    }
}

/// Whether running a statement may end its block early: a return, a raise, a jump out of a loop.
fn may_leave(statement: &Stmt) -> bool {
    struct Leaves(bool);
    impl<'a> Visitor<'a> for Leaves {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::Return(_) | Stmt::Break(_) | Stmt::Continue(_) => self.0 = true,
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
                _ => visitor::walk_stmt(self, statement),
            }
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut leaves = Leaves(matches!(statement, Stmt::Raise(_)));
    leaves.visit_stmt(statement);
    leaves.0
}

/// Whether a statement calls something named `assert…`, awaited or not.
fn is_assertion_call(statement: &Stmt) -> bool {
    let Some(mut expr) = crate::stub::call_of(statement) else { return false };
    if let Expr::Await(awaited) = expr {
        expr = &awaited.value;
    }
    let Expr::Call(call) = expr else { return false };
    let name = match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    name.trim_start_matches('_').starts_with("assert")
}

/// `None` where a failure inside the block gets out. Where the block expects or swallows exceptions: the exception that
/// it expects, if it is named in place.
fn swallowed_by(with: &StmtWith) -> Option<Option<&Expr>> {
    with.items.iter().find_map(|item| {
        let Expr::Call(call) = &item.context_expr else { return None };
        match dotted(&call.func).last().copied()? {
            "raises" | "assertRaises" | "assertRaisesRegex" => Some(call.arguments.args.first()),
            "suppress" | "subTest" | "subtest" => Some(None),
            _ => None,
        }
    })
}

/// Whether a loop over this surely runs its body: a literal with elements, `range(3)`, `enumerate` and `zip` of such.
fn is_surely_not_empty(iterable: &Expr) -> bool {
    let has_element = |elements: &[Expr]| elements.iter().any(|element| !element.is_starred_expr());
    match iterable {
        Expr::List(list) => has_element(&list.elts),
        Expr::Tuple(tuple) => has_element(&tuple.elts),
        Expr::Set(set) => has_element(&set.elts),
        Expr::Call(call) => match (dotted(&call.func).as_slice(), call.arguments.args.as_ref()) {
            (["range"], [Expr::NumberLiteral(stop)]) => {
                stop.value.as_int().and_then(|stop| stop.as_u64()).is_some_and(|stop| stop > 0)
            }
            (["enumerate"], [inner, ..]) => is_surely_not_empty(inner),
            (["zip"], inner) => !inner.is_empty() && inner.iter().all(is_surely_not_empty),
            _ => false,
        },
        _ => false,
    }
}
