//! What a test touches by starred imports, by syntax, by sub-commands, and what only a module's `__getattr__` gives.

use super::names::{drafted, found};

const POOL: &str = "\
class Pool:
    def __init__(self): self.rows = []
    def __enter__(self): return self
    def __exit__(self, *exc): pass
    async def __aenter__(self): return self
    async def __aexit__(self, *exc): pass
    def __call__(self, row): return row
    def __len__(self): return 0
    def __iter__(self): return iter(self.rows)
    def __aiter__(self): return self
    async def __anext__(self): return 1
    def __getitem__(self, at): return 1
    def __setitem__(self, at, row): pass
    def __contains__(self, row): return True
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    def __await__(self): return iter([])
    def __add__(self, other): return self
    def __repr__(self): return ''
    def __init_subclass__(cls): pass
class Other:
    def __len__(self): return 0
    def __enter__(self): return self
    def __exit__(self, *exc): pass
";

/// The special methods that a test touches, in order.
fn special(test: &str) -> String {
    let drafted = drafted(POOL, test);
    let names = drafted.lines().filter_map(|line| line.split(' ').nth(1)?.strip_prefix("m."));
    names.filter(|name| name.contains(".__")).collect::<Vec<_>>().join(" ")
}

#[test]
fn syntax_touches_the_special_method_of_the_class_that_it_calls() {
    for (test, touched) in [
        ("with m.Pool() as p: pass", "Pool.__enter__ Pool.__exit__"),
        ("p = m.Pool()\nwith p: pass", "Pool.__enter__ Pool.__exit__"),
        ("with m.Pool() as p:\n    p(3)", "Pool.__call__ Pool.__enter__ Pool.__exit__"),
        ("async def f():\n    async with m.Pool(): pass", "Pool.__aenter__ Pool.__aexit__"),
        ("async def f():\n    async for row in m.Pool(): pass", "Pool.__aiter__ Pool.__anext__"),
        ("async def f():\n    await m.Pool()", "Pool.__await__"),
        ("p = m.Pool()\np(3)", "Pool.__call__"),
        ("p = m.Pool()\nassert len(p) == 3", "Pool.__len__"),
        ("p = m.Pool()\nfor row in p: pass", "Pool.__iter__"),
        ("p = m.Pool()\nrows = [row for row in p]", "Pool.__iter__"),
        ("p = m.Pool()\nrows = sorted(p)", "Pool.__iter__"),
        ("p = m.Pool()\np[3]", "Pool.__getitem__"),
        ("p = m.Pool()\np[3] = 1", "Pool.__setitem__"),
        ("p = m.Pool()\nassert 3 in p", "Pool.__contains__"),
        ("p = m.Pool()\nassert 3 == p", "Pool.__eq__"),
        ("p = m.Pool()\nassert p != 3", "Pool.__eq__"),
        ("p = m.Pool()\nassert p < 3", "Pool.__lt__"),
        ("p = m.Pool()\nassert 3 > p", "Pool.__lt__"),
        ("p = m.Pool()\np + 1", "Pool.__add__"),
        (
            "import pytest\n@pytest.fixture\ndef pool():\n    with m.Pool() as p:\n        yield p\ndef test_it(pool):\n    assert len(pool)",
            "Pool.__enter__ Pool.__exit__ Pool.__len__",
        ),
        (
            "class TestIt:\n    made = m.Pool\n    def test_it(self):\n        with self.made() as p:\n            p(3)",
            "Pool.__call__ Pool.__enter__ Pool.__exit__",
        ),
        // Of another class, of what the object gives, and of nobody knows what.
        ("p = m.Other()\nassert len(p) == 3", "Other.__len__"),
        ("p = m.Pool()\nassert len(p.rows) == 3", ""),
        ("def test_it(p):\n    assert len(p) == 3 and p[3] and 3 in p", ""),
        ("p = m.Pool()\np = []\nassert len(p) == 0", ""),
        ("p = m.Pool", ""),
    ] {
        assert_eq!(special(test), touched, "{test}");
    }
}

#[test]
fn a_special_method_is_stated_by_its_own_entry_or_in_that_of_its_class() {
    let test = "p = m.Pool()\nassert len(p) == 3";
    let entry = |about: &str| format!("[[name]]\nname = \"m.Pool\"\nkind = \"class\"\nabout = \"{about}\"\n");
    let missing = found(POOL, test, &entry("Holds rows."));
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("the method `m.Pool.__len__` is touched here"), "{missing:?}");
    assert!(found(POOL, test, &entry("`__len__` counts its rows.")).is_empty());
    let own = entry("Holds rows.") + "[[name]]\nname = \"m.Pool.__len__\"\nkind = \"method\"\nabout = \"\"\n";
    assert!(found(POOL, test, &own).is_empty());
}

#[test]
fn a_name_that_is_bound_nowhere_may_be_one_of_a_starred_import() {
    let code = "class Tier:\n    DEVICE = 1\nclass Mover:\n    def move(self, item): pass\ndef plan(items, *, budget=48): return items\nBYTES = 3";
    let shown = |test: &str| {
        let drafted = drafted(code, &format!("from m import *\nfrom math import *\n{test}"));
        let names = drafted.lines().filter_map(|line| line.split(' ').nth(1)?.strip_prefix("m."));
        names.collect::<Vec<_>>().join(" ")
    };
    for (test, touched) in [
        ("assert Tier['DEVICE']", "Tier Tier.DEVICE"),
        ("mover = Mover()\nmover.move(3)", "Mover Mover.move"),
        ("def test_it():\n    plan([], budget=5)", "plan"),
        ("assert BYTES", "BYTES"),
        ("def test_it(plan):\n    assert plan", ""),
        ("class Tier: pass\nTier()", ""),
        ("from other import plan\nplan()", ""),
        ("floor(3)", ""),
    ] {
        assert_eq!(shown(test), touched, "{test}");
    }
}

#[test]
fn sub_commands_and_where_they_are_found_are_names() {
    let code = "def commands(p):\n    sub = p.add_subparsers(dest='command')\n    sub.add_parser('drain-now', aliases=['dn'])\n    sub.add_parser('items')";
    let test = "a = m.parser().parse_args(['drain-now'])\nassert a.command == 'drain-now'\nm.parser().parse_args(['dn', 'items'])";
    insta::assert_snapshot!(drafted(code, test));
    let missing = found(code, test, "");
    assert!(
        missing.iter().any(|found| found.contains("the sub-command \"drain-now\" of `m.commands`")),
        "{missing:?}"
    );
    let stated = "[[name]]\nname = \"m.commands\"\nkind = \"function\"\nabout = \"Adds drain-now, dn for short; says which as `command`.\"\nuntested = \"by its commands\"\n";
    let left = found(code, test, stated);
    assert!(!left.iter().any(|found| found.contains("contract.toml does not state it")), "{left:?}");
}

#[test]
fn what_only_a_module_s_getattr_gives_is_a_name_of_the_module() {
    for (body, names) in [
        ("    if name == 'Lazy': return Opt", "Lazy"),
        ("    if name in ('Lazy', 'Slow'): return Opt", "Lazy Slow"),
        ("    if name in _LAZY: return _LAZY[name]", "Late"),
        ("    return _LAZY.get(name)", "Late"),
        ("    match name:\n        case 'Lazy' | 'Slow': return Opt", "Lazy Slow"),
        ("    if other == 'Lazy': return Opt", ""),
    ] {
        let code = format!(
            "_LAZY = {{'Late': Opt}}\ndef __getattr__(name):\n{body}\n    raise AttributeError(name)"
        );
        let drafted = drafted(&code, "m.Lazy, m.Slow, m.Late");
        let lines = drafted.lines();
        let found: Vec<&str> =
            lines.filter_map(|line| line.strip_prefix("attribute m.")?.split(' ').next()).collect();
        assert_eq!(found.join(" "), names, "{body}\n{drafted}");
    }
}
