//! How objects of a class are made that has no constructor of its own.

use infradev_model::{Contract, ContractFinding};
use infradev_pycode::Module;
use infradev_pycode::contract::{Interface, SourceTree, Touched, added};

const MOVER: &str = "\
from dataclasses import dataclass
class Mover:
    def __init__(self, cfg, *, sink: int | None = None) -> None:
        self.cfg = cfg
class Paired:
    def __new__(cls, left, right=1):
        return super().__new__(cls)
class Plain:
    pass
@dataclass
class Report:
    moved: int
    tiers: tuple = ()
";

/// Asks of a change that adds two modules, of which a test imports the second.
fn asked<T>(code: &str, ask: impl FnOnce(&Interface<'_>) -> T) -> T {
    let code = format!(
        "from .mover import Mover, Paired, Plain, Report\nfrom . import mover\nfrom torch.nn import Module\n{code}\n"
    );
    let none = |_: &str| None;
    let read = |path: &str| match path {
        "eng/__init__.py" => Some(String::new()),
        "eng/mover.py" => Some(MOVER.to_owned()),
        "eng/host.py" => Some(code.clone()),
        _ => None,
    };
    let roots = [".".to_owned()];
    let (base, golden) = (SourceTree::new(&none, &roots), SourceTree::new(&read, &roots));
    let files = ["eng/__init__.py", "eng/mover.py", "eng/host.py"].map(str::to_owned);
    let test = Module::parse("tests/test_it.py", "from eng.host import Host\nHost()\n").expect("a test");
    ask(&Interface {
        base: &base,
        golden: &golden,
        added: added(&base, &golden, &files),
        tests: vec![Touched::of(&test)],
        judges: Vec::new(),
        base_has_word: &|_| false,
        base_has_attribute: &|_| false,
        golden_has_word: &|_| true,
    })
}

/// The drafted signature of the class `Host`.
fn signature(code: &str) -> Option<String> {
    let drafted = asked(code, |interface| interface.draft());
    let host = drafted.into_iter().find(|drafted| drafted.listed.name == "eng.host.Host");
    host.expect("the class is drafted").listed.signature
}

#[test]
fn a_class_without_a_constructor_is_made_by_the_nearest_one_that_it_inherits() {
    for (code, expected) in [
        ("class Host(Mover):\n    def move(self): pass", "(cfg, *, sink: int | None = None)"),
        ("class Host(mover.Mover): pass", "(cfg, *, sink: int | None = None)"),
        ("class Between(Mover): pass\nclass Host(Between): pass", "(cfg, *, sink: int | None = None)"),
        ("class Host(Plain, Paired): pass", "(left, right=1)"),
        ("class Host(Paired):\n    def __init__(self, a): pass", "(a)"),
        ("class Host(Report): pass", "(moved: int, tiers: tuple = ())"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass Host(Report):\n    tiers: list = ()\n    held: int = 3",
            "(moved: int, tiers: list = (), held: int = 3)",
        ),
        // The second base comes before what both come from.
        (
            "class One(Mover): pass\nclass Two(Mover):\n    def __init__(self, two): pass\nclass Host(One, Two): pass",
            "(two)",
        ),
        ("from typing import Generic, TypeVar\nT = TypeVar('T')\nclass Host(Generic[T]): pass", "()"),
        ("class Host(Plain): pass", "()"),
        ("class Host: pass", "()"),
        ("class Host:\n    def __init__(self, a, *rows: int, **more): pass", "(a, *rows: int, **more)"),
    ] {
        assert_eq!(signature(code).as_deref(), Some(expected), "{code}");
    }
}

#[test]
fn what_a_base_outside_of_the_tree_takes_is_not_stated() {
    for code in [
        "class Host(Module): pass",
        "class Host(Plain, Module): pass",
        "class Host(RuntimeError): pass",
        "class Host(elsewhere()): pass",
        "class Host(Mover):\n    __init__ = other",
        // In a circle.
        "class Host(Other): pass\nclass Other(Host, Module): pass",
    ] {
        assert_eq!(signature(code), None, "{code}");
    }
    assert_eq!(
        signature("class Host(Mover, Module): pass").as_deref(),
        Some("(cfg, *, sink: int | None = None)")
    );
}

#[test]
fn a_listed_signature_is_compared_with_the_inherited_constructor() {
    let found = |code: &str, signature: &str| {
        let text = format!(
            "schema = 1\n[[name]]\nname = \"eng.host.Host\"\nkind = \"class\"\nsignature = \"{signature}\"\nabout = \"\"\n"
        );
        let contract = Contract::parse("contract.toml", text.as_bytes()).expect("a contract");
        let found = asked(code, |interface| interface.lint(&contract, &text));
        found.iter().map(ContractFinding::to_string).collect::<Vec<_>>().join("\n")
    };
    let host = "class Host(Mover): pass";
    assert_eq!(found(host, "(cfg, *, sink=None)"), "");
    assert!(
        found(host, "()").contains("its parameters are (), golden's are (cfg, sink)"),
        "{}",
        found(host, "()")
    );
    assert!(found(host, "(cfg, *, sink)").contains("golden's parameter `sink` has a default"));
    assert_eq!(found("class Host(Module): pass", "(whatever)"), "");
}
