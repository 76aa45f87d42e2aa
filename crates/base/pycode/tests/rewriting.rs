//! Rewrites of added functions: what each rule does, what it refuses, and that the program does the same, in CPython.

use infradev_pycode::{Rewrite, RewriteKind, RewriteSource, rewrites};
use infradev_supervise::{Exit, Invocation};
use proptest::prelude::*;

fn of(golden: &str) -> Vec<Rewrite> {
    rewrites(&RewriteSource { file: "m.py", base: None, golden }).expect("golden parses")
}

fn one(kind: RewriteKind, golden: &str) -> Option<String> {
    of(golden).into_iter().find(|rewrite| rewrite.kind == kind).map(|rewrite| rewrite.text)
}

/// Runs texts in CPython, each with a log that its functions may write to, and gives what `run(log, n)` returned or
/// raised and what was logged, for some numbers. All in one process.
fn run(texts: &[&str]) -> Vec<String> {
    const DRIVER: &str = "
import json, reprlib, sys
short = reprlib.Repr()  # what grows by itself in a loop is not written out whole
short.maxlevel, short.maxlist, short.maxtuple, short.maxstring = 5, 7, 7, 200
shown = []
for text in json.load(sys.stdin):
    module = {'__name__': 'm'}
    exec(compile(text, 'm.py', 'exec'), module)
    told = []
    for n in (0, 1, 2, 4):
        log = []
        try:
            result = short.repr(module['run'](log.append, n))
        except Exception as error:
            result = type(error).__name__
        told.append([result, short.repr(log)])
    shown.append(json.dumps(told))
json.dump(shown, sys.stdout)
";
    let output = Invocation::new("python3")
        .args(["-c", DRIVER])
        .inherit_env("PATH")
        .stdin(serde_json::to_vec(texts).expect("texts"))
        .run()
        .expect("python3 runs");
    assert_eq!(output.status, Exit::Code(0), "{}", output.stderr_text());
    serde_json::from_slice(&output.stdout).expect("what each text did")
}

const PROGRAM: &str = "\
from __future__ import annotations

LIMIT = 3


def _scaled(x: int, by: int) -> int:
    return x * by + LIMIT


def run(log, n):
    \"\"\"Say total, held and count.\"\"\"
    count = 0
    held = []
    for item in range(n):
        held.append(log(item) or item)
    total = sum(held) - count
    factor = total + n  # as it was
    log(factor)
    rows = [(a, b) for a, b in enumerate(held) if a != 1 if b < LIMIT + 1]
    if factor > 4:
        small, base = n, 2
        again = _scaled(small, base)
        return again + len(rows)
    return [log(row) for row in rows]
";

#[test]
fn each_rule_writes_a_program_anew_and_it_does_the_same() {
    let all = of(PROGRAM);
    let mut kinds: Vec<RewriteKind> = all.iter().map(|rewrite| rewrite.kind).collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds.len(), 7, "{kinds:?}");
    let mut told = String::new();
    for rewrite in &all {
        told += &format!("# {} of {}\n{}\n", rewrite.kind, rewrite.function, rewrite.text);
    }
    insta::assert_snapshot!(told);
    let mut texts = vec![PROGRAM];
    texts.extend(all.iter().map(|rewrite| rewrite.text.as_str()));
    let shown = run(&texts);
    for (rewrite, shown_by) in all.iter().zip(&shown[1..]) {
        assert_eq!(*shown_by, shown[0], "{} of {}\n{}", rewrite.kind, rewrite.function, rewrite.text);
    }
}

#[test]
fn what_looks_at_names_is_not_renamed() {
    for (what, body) in [
        ("a closure", "x = 1\n    def g(): return x\n    return g"),
        ("a lambda", "x = 1\n    return lambda: x"),
        ("locals", "x = 1\n    return locals()"),
        ("eval", "x = 1\n    return eval('x')"),
        ("a name in a string", "x = 1\n    return '{x}'.format_map({'x': x})"),
        ("a debugged f-string", "x = 1\n    return f'{x=}'"),
        ("global", "global x\n    x = 1\n    return x"),
        ("an exception's name", "try:\n        f()\n    except E as x:\n        return x"),
        ("an import's name", "import x\n    return x"),
        ("a comprehension's name", "x = 1\n    return [x for x in y], x"),
        ("a parameter", "n = 1\n    return n"),
        ("a frame", "x = 1\n    return sys._getframe().f_back"),
        ("a class", "x = 1\n    class C: y = x\n    return C"),
        ("a match", "match n:\n        case x: return x"),
    ] {
        let golden = format!("def f(n):\n    {body}\n");
        assert_eq!(one(RewriteKind::RenamedLocals, &golden), None, "{what}");
    }
}

#[test]
fn statements_that_may_know_of_each_other_keep_their_order() {
    for (what, body) in [
        ("one reads the other", "a = 1\n    b = f(a)"),
        ("both call", "a = f()\n    b = g()"),
        ("both bind", "a = 1\n    a = f()"),
        ("one reads what the other binds", "a = n\n    n = f()"),
        ("a value that may be unbound", "a = m\n    b = f()"),
        ("in a try", "try:\n        a = 1\n        b = f()\n    except E:\n        return a"),
        ("in a with", "with f():\n        a = 1\n        b = g()\n    return a"),
        ("a target that runs code", "a = 1\n    n.x = f()"),
        ("an attribute", "a = n.x\n    b = f()"),
        ("a name in the loop's else", "for i in n:\n        pass\n    else:\n        a = i\n        b = f()"),
        ("a name that is deleted", "a = n\n    b = f()\n    del n"),
        ("one line", "a = 1; b = f()"),
    ] {
        let golden = format!("def f(n):\n    {body}\n");
        assert_eq!(one(RewriteKind::ReorderedStatements, &golden), None, "{what}");
    }
    let swapped =
        one(RewriteKind::ReorderedStatements, "def f(n):\n    a = f(n)\n    b = [n, -1]\n    return a, b\n");
    assert_eq!(swapped.as_deref(), Some("def f(n):\n    b = [n, -1]\n    a = f(n)\n    return a, b\n"));
}

#[test]
fn an_expression_that_can_not_move_is_neither_extracted_nor_inlined() {
    for (what, golden) in [
        ("yield", "def f(n):\n    x = yield n\n"),
        ("super", "class C:\n    def f(self):\n        return super().f()\n"),
        ("a mangled name", "class C:\n    def f(self):\n        return self.__x + 1\n"),
        ("perhaps unbound", "def f(n):\n    if n:\n        m = 1\n    return n and m + n\n"),
        ("a walrus", "def f(n):\n    return (m := n + 1)\n"),
        ("a warning's place", "def f(n):\n    return warnings.warn(n, stacklevel=2)\n"),
        ("nothing computed", "def f(n):\n    return n.x\n"),
        ("under an if", "if X:\n    def f(n):\n        return n + 1\n"),
    ] {
        assert_eq!(one(RewriteKind::ExtractedHelper, golden), None, "{what}");
    }
    let helper = |helper: &str, call: &str| {
        let golden = format!("{helper}\n\ndef f(n, m):\n    x = n\n    return {call}\n");
        one(RewriteKind::InlinedHelper, &golden)
    };
    for (what, h, call) in [
        ("a public one", "def h(a):\n    return a + 1", "h(x)"),
        ("a decorated one", "@cache\ndef _h(a):\n    return a + 1", "_h(x)"),
        ("one bound twice", "def _h(a):\n    return a + 1\n_h = g", "_h(x)"),
        ("a default", "def _h(a=1):\n    return a + 1", "_h(x)"),
        ("a keyword", "def _h(a):\n    return a + 1", "_h(a=x)"),
        ("an argument that computes", "def _h(a):\n    return a + a", "_h(g(x))"),
        ("a global that the caller hides", "def _h(a):\n    return a + x", "_h(n)"),
        ("in an f-string", "def _h(a):\n    return a + 1", "f'{_h(\"\")}'"),
        ("two statements", "def _h(a):\n    a += 1\n    return a", "_h(x)"),
    ] {
        assert_eq!(helper(h, call), None, "{what}");
    }
    let found = helper("def _h(a, b):\n    return a * b.c", "1 + _h(m, x)").expect("inlined");
    assert!(found.contains("return 1 + ((m) * (x).c)"), "{found}");
}

#[test]
fn loops_that_do_more_than_fill_a_list_stay() {
    for (what, body) in [
        ("the list is read", "xs = []\n    for i in n:\n        xs.append(len(xs))"),
        ("the name is used later", "xs = []\n    for i in n:\n        xs.append(i)\n    return i"),
        ("an else", "xs = []\n    for i in n:\n        xs.append(i)\n    else:\n        f()"),
        ("two statements", "xs = []\n    for i in n:\n        f()\n        xs.append(i)"),
        ("not empty", "xs = [1]\n    for i in n:\n        xs.append(i)"),
        ("a parameter", "xs = []\n    for n in n:\n        xs.append(n)"),
        ("another list", "xs = []\n    for i in n:\n        ys.append(i)"),
        (
            "in a try",
            "try:\n        xs = []\n        for i in n:\n            xs.append(f(i))\n    except E:\n        return xs",
        ),
        ("an await", "xs = []\n    for i in n:\n        xs.append(await i)"),
    ] {
        let golden = format!("async def f(n, ys):\n    {body}\n    return xs\n");
        assert_eq!(one(RewriteKind::ComprehensionForLoop, &golden), None, "{what}");
    }
    for (what, body) in [
        ("two loops", "return [a for b in n for a in b]"),
        ("a comprehension inside", "return [[a for a in b] for b in n]"),
        ("a set", "return {a for a in n}"),
        ("part of an expression", "return f([a for a in n])"),
        ("in parentheses", "return ([a for a in n])"),
        ("several lines", "return [\n        a\n        for a in f(\n            n)]"),
        ("an attribute's item", "return [x.y for x.y in n]"),
    ] {
        let golden = format!("def f(n):\n    {body}\n");
        assert_eq!(one(RewriteKind::LoopForComprehension, &golden), None, "{what}");
    }
}

#[test]
fn a_function_that_something_needs_on_import_is_not_moved() {
    for (what, golden) in [
        ("called by a statement", "def _h():\n    return 1\n\ndef f():\n    return 2\n\nX = _h()\n"),
        ("a default of another", "def _h():\n    return 1\n\ndef f(x=_h):\n    return x\n"),
        ("called by a class body", "def _h():\n    return 1\n\nclass C:\n    x = _h()\n"),
        ("decorated", "@register\ndef _h():\n    return 1\n\ndef f():\n    return 2\n"),
        ("annotated at once", "def _h(x: T):\n    return 1\n\ndef f():\n    return 2\n"),
        ("a default that is computed", "def _h(x=g()):\n    return 1\n\ndef f():\n    return 2\n"),
        ("public", "def h():\n    return 1\n\ndef f():\n    return 2\n"),
        ("alone", "def _h():\n    return 1\n"),
    ] {
        assert_eq!(one(RewriteKind::MovedFunction, golden), None, "{what}");
    }
    assert_eq!(
        one(RewriteKind::MovedFunction, "X = 1\n\ndef f():\n    return _h()\n\ndef _h():\n    return X")
            .as_deref(),
        Some("X = 1\n\ndef _h():\n    return X\n\n\ndef f():\n    return _h()\n\n")
    );
}

#[test]
fn functions_of_base_are_left_alone() {
    let base = "def run(n):\n    x = n + 1\n    return x\n";
    let source = RewriteSource { file: "m.py", base: Some(base), golden: &base.replace("n + 1", "n + 2") };
    assert_eq!(rewrites(&source).expect("parses"), []);
    let broken = RewriteSource { file: "m.py", base: None, golden: "def f(:\n" };
    assert_eq!(rewrites(&broken).expect_err("does not parse").line, 1);
}

/// A statement of a made-up function: it may bind, call, loop, branch and fail.
fn statement() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "b", "c", "n", "item"]);
    let value = || {
        prop_oneof![
            name().prop_map(str::to_owned),
            (0..9i32).prop_map(|number| number.to_string()),
            (name(), name()).prop_map(|(x, y)| format!("{x} + {y}")),
            (name(), name()).prop_map(|(x, y)| format!("_helper({x}, {y})")),
            (name(), name()).prop_map(|(x, y)| format!("log(({x}, {y})) or {x}")),
            name().prop_map(|x| format!("[{x}, 1]")),
            name().prop_map(|x| format!("len(f'{{{x}}}') // (n - 1)")),
        ]
    };
    prop_oneof![
        4 => (name(), value()).prop_map(|(x, v)| format!("{x} = {v}\n")),
        1 => (name(), name(), value(), value()).prop_map(|(x, y, v, w)| format!("{x}, {y} = {v}, {w}\n")),
        1 => (name(), value()).prop_map(|(x, v)| format!("{x}: object = {v}\n")),
        1 => value().prop_map(|v| format!("log({v})\n")),
        1 => (name(), name(), value()).prop_map(|(t, x, v)| format!("{t} = [{v} for {x} in range(n) if {x}]\n")),
        2 => (name(), name(), value()).prop_map(|(t, x, v)| format!("{t} = []\nfor {x} in range(n):\n    {t}.append({v})\n")),
        1 => (name(), name(), value(), value())
            .prop_map(|(x, y, v, w)| format!("if {x}:\n    {y} = {v}\n    {x} = {w}\n")),
        1 => (name(), name(), value(), value())
            .prop_map(|(x, y, v, w)| format!("try:\n    {x} = {v}\n    {y} = {w}\nexcept Exception:\n    log('failed')\n")),
        1 => name().prop_map(|x| format!("del {x}\n")),
        1 => value().prop_map(|v| format!("if n > 1:\n    return {v}\n")),
    ]
}

fn program() -> impl Strategy<Value = String> {
    prop::collection::vec(statement(), 1..9).prop_map(|statements| {
        let body: String =
            statements.concat().lines().map(|line| format!("    {line}\n")).collect();
        format!(
            "def _helper(x, y):\n    return (x, y) if x else y\n\n\ndef run(log, n):\n    a = 1\n{body}    return [str(a), n]\n\n\ndef \
             other(log):\n    return run(log, 1)\n"
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_program_does_the_same_however_it_is_rewritten(golden in program()) {
        let all = of(&golden);
        let mut texts = vec![golden.as_str()];
        texts.extend(all.iter().map(|rewrite| rewrite.text.as_str()));
        let shown = run(&texts);
        for (rewrite, shown_by) in all.iter().zip(&shown[1..]) {
            prop_assert_eq!(shown_by, &shown[0], "{} of {}\n{}", rewrite.kind, &rewrite.function, &rewrite.text);
        }
    }
}
