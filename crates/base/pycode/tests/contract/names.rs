//! Names that no definition shows: set on other objects, made by calls, given to the command line or the environment.

use std::collections::BTreeMap;

use infradev_model::{Contract, ContractFinding, NameKind};
use infradev_pycode::Module;
use infradev_pycode::contract::{
    AddedKind, DraftedName, Interface, SourceTree, Touched, added, attribute_names,
};

const BASE: &str = "\
import argparse
class Param: pass
class Opt:
    def __init__(self):
        self.items = {}
def parser():
    p = argparse.ArgumentParser()
    p.add_argument('--old', type=int)
    return p
";

/// Asks of a change that adds `code` to a module, and of a test that imports it as `m`.
fn asked<T>(code: &str, test: &str, ask: impl FnOnce(&Interface<'_>) -> T) -> T {
    let golden = format!("{BASE}{code}\n");
    let (old, new) = (BTreeMap::from([("m.py", BASE)]), BTreeMap::from([("m.py", golden.as_str())]));
    let read_old = |path: &str| old.get(path).map(|text| (*text).to_owned());
    let read_new = |path: &str| new.get(path).map(|text| (*text).to_owned());
    let roots = [".".to_owned()];
    let (base, golden) = (SourceTree::new(&read_old, &roots), SourceTree::new(&read_new, &roots));
    let module = Module::parse("tests/test_m.py", &format!("import m\n{test}\n")).expect("a test");
    let has = |text: &str, word: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|known| known == word)
    };
    ask(&Interface {
        base: &base,
        golden: &golden,
        added: added(&base, &golden, &["m.py".to_owned()]),
        tests: vec![Touched::of(&module)],
        judges: Vec::new(),
        base_has_word: &|word| has(BASE, word),
        base_has_attribute: &|word| attribute_names(BASE).any(|name| name == word),
        golden_has_word: &|word| has(new["m.py"], word),
    })
}

pub(super) fn drafted(code: &str, test: &str) -> String {
    let shown = |DraftedName { listed, golden_says, .. }: &DraftedName| {
        let says = golden_says.as_ref().map_or(String::new(), |says| format!("  # {says}"));
        let (signature, about) = (listed.signature.as_deref().unwrap_or_default(), &listed.about);
        format!("{} {} | {signature} | {about}{says}", listed.kind, listed.name)
    };
    asked(code, test, |interface| interface.draft().iter().map(shown).collect::<Vec<_>>().join("\n"))
}

pub(super) fn found(code: &str, test: &str, contract: &str) -> Vec<String> {
    let text = format!("schema = 1\n{contract}");
    let contract = Contract::parse("contract.toml", text.as_bytes()).expect("a contract");
    asked(code, test, |interface| {
        interface.lint(&contract, &text).iter().map(ContractFinding::to_string).collect()
    })
}

/// A contract as the draft of it is written.
fn written(code: &str, test: &str) -> String {
    let mut text = String::new();
    for DraftedName { listed, .. } in asked(code, test, |interface| interface.draft()) {
        let kind = listed.kind.to_string();
        let kind = match kind.as_str() {
            "command-line flag" => "flag",
            "environment variable" => "variable",
            kind => kind,
        };
        text += &format!("[[name]]\nname = {:?}\nkind = {kind:?}\nabout = {:?}\n", listed.name, listed.about);
        if let Some(signature) = listed.signature {
            text += &format!("signature = {signature:?}\n");
        }
    }
    text
}

const NAMES: [(&str, &str, &str); 43] = [
    // Set on other objects.
    ("def mark(p):\n    p.sharded_dim = 0", "p.sharded_dim", "attribute sharded_dim"),
    ("def mark(p: Param):\n    p.sharded_dim = 0", "p.sharded_dim", "attribute m.Param.sharded_dim"),
    ("def mark(p: Param):\n    p.sharded_dim = 0", "m.Param().sharded_dim", "attribute m.Param.sharded_dim"),
    ("def mark(p):\n    setattr(p, 'is_expert', True)", "assert p.is_expert", "attribute is_expert"),
    ("def mark(p):\n    setattr(p, 'is_expert', True)", "getattr(p, 'is_expert')", "attribute is_expert"),
    ("def mark(p):\n    object.__setattr__(p, 'is_expert', True)", "p.is_expert", "attribute is_expert"),
    ("def mark(p):\n    p.__dict__.update(extra_mark=1)", "getattr(p, 'extra_mark')", "attribute extra_mark"),
    (
        "def mark(p: Param):\n    p.__dict__.update(extra_mark=1)",
        "p = m.mark(1)\ngetattr(p, 'extra_mark')",
        "attribute m.Param.extra_mark",
    ),
    ("def mark(p):\n    p.__dict__['extra_mark'] = 1", "p.extra_mark", "attribute extra_mark"),
    ("def mark(p):\n    vars(p).update({'extra_mark': 1})", "p.extra_mark", "attribute extra_mark"),
    (
        "def deco(f):\n    f.calls_made = 0\n    return f\n@deco\ndef used(): pass",
        "m.used.calls_made",
        "attribute m.used.calls_made",
    ),
    (
        "class Meta(type):\n    def __call__(cls):\n        o = super().__call__()\n        o.tag = 5\n        return o\nclass Thing(metaclass=Meta): pass",
        "m.Thing().tag",
        "attribute m.Thing.tag",
    ),
    (
        "class Meta(type):\n    def __new__(mcs, n, b, ns):\n        c = super().__new__(mcs, n, b, ns)\n        c.limit = 3\n        return c\nclass Thing(metaclass=Meta): pass",
        "m.Thing.limit",
        "attribute m.Thing.limit",
    ),
    (
        "class Fast:\n    def __init__(self):\n        setattr(self, 'speed', 3)",
        "m.Fast().speed",
        "attribute m.Fast.speed",
    ),
    (
        "class Fast:\n    def __init__(self):\n        self.register_buffer('speed', 3)",
        "m.Fast().speed",
        "attribute m.Fast.speed",
    ),
    ("globals()['hidden'] = 4", "m.hidden", "attribute m.hidden"),
    // Named in `__slots__`, and set by nobody here.
    ("class Slim:\n    __slots__ = ('level_of', 'b')", "m.Slim().level_of", "attribute m.Slim.level_of"),
    ("class Slim:\n    __slots__ = 'level_of'", "slim.level_of", "attribute m.Slim.level_of"),
    (
        "class Slim:\n    __slots__: tuple = Param.__slots__ + ('level_of',)",
        "m.Slim().level_of",
        "attribute m.Slim.level_of",
    ),
    // Made by calls.
    (
        "Pair = namedtuple('Pair', ['left_half', 'b'])",
        "m.Pair(left_half=1, b=2)",
        "attribute m.Pair.left_half",
    ),
    ("Pair = namedtuple('Pair', ['left_half', 'b'])", "p.left_half", "attribute m.Pair.left_half"),
    ("Pair = namedtuple('Pair', 'left_half b')", "m.Pair(1, 2)", "class m.Pair | (left_half, b)"),
    ("Pair = namedtuple('Pair', 'a, b', defaults=(1,))", "m.Pair(1)", "class m.Pair | (a, b=...)"),
    (
        "Row = typing.NamedTuple('Row', [('width_px', int)])",
        "m.Row(3).width_px",
        "attribute m.Row.width_px | int",
    ),
    ("class Row(namedtuple('Row', 'width_px')): pass", "m.Row(3).width_px", "attribute m.Row.width_px"),
    ("Kind = enum.Enum('Kind', 'FAST SLOW')", "m.Kind.FAST", "attribute m.Kind.FAST"),
    ("Kind = enum.IntEnum('Kind', {'FAST': 1})", "m.Kind['FAST']", "attribute m.Kind.FAST"),
    // Keys.
    (
        "def stats():\n    return dict(total_bytes=1)",
        "m.stats()['total_bytes']",
        "function m.stats | () | New key: total_bytes.",
    ),
    (
        "def stats():\n    d = {}\n    d.update(total_bytes=1)\n    return d",
        "m.stats()['total_bytes']",
        "New key: total_bytes.",
    ),
    (
        "class Stat(TypedDict):\n    total_bytes: int",
        "s['total_bytes']",
        "class m.Stat | (total_bytes: int) | New key: total_bytes.",
    ),
    // The environment and the command line.
    (
        "def env():\n    return 'MY_THIRD' in os.environ",
        "monkeypatch.setenv('MY_THIRD', '1')",
        "environment variable MY_THIRD",
    ),
    (
        "def env():\n    return os.getenv(key='MY_FOURTH')",
        "monkeypatch.setenv('MY_FOURTH', '1')",
        "environment variable MY_FOURTH",
    ),
    (
        "LEVEL = 'MY_LEVEL'\ndef env():\n    return os.environ[LEVEL]",
        "monkeypatch.setenv('MY_LEVEL', '1')",
        "environment variable MY_LEVEL",
    ),
    (
        "LEVEL: str = 'MY_LEVEL'\ndef env():\n    return LEVEL in os.environ",
        "monkeypatch.setenv('MY_LEVEL', '1')",
        "environment variable MY_LEVEL",
    ),
    (
        "class Names:\n    LEVEL = 'MY_LEVEL'\ndef env():\n    return os.getenv(Names.LEVEL)",
        "monkeypatch.setenv('MY_LEVEL', '1')",
        "environment variable MY_LEVEL",
    ),
    ("p.add_argument('-n', '--new-flag')", "'-n --old=3'.split()", "command-line flag -n"),
    ("p.add_argument('-n', '--new-flag')", "shlex.split('-n 3')", "command-line flag -n"),
    (
        "p.add_argument('-n', '--new-flag', dest='fresh')",
        "a.fresh",
        "setting fresh |  | Of the parsed arguments, by `--new-flag`.",
    ),
    (
        "p.add_argument('--no-overlap-it')",
        "a.no_overlap_it",
        "setting no_overlap_it |  | Of the parsed arguments, by `--no-overlap-it`.",
    ),
    ("p.add_argument('--no-overlap-it')", "a.no_overlap_it = True", "setting no_overlap_it"),
    ("p.add_argument('--no-overlap-it')", "Namespace(no_overlap_it=True)", "setting no_overlap_it"),
    (
        "p.add_argument('--mild', action=argparse.BooleanOptionalAction)",
        "run(['--no-mild'])",
        "command-line flag --no-mild",
    ),
    ("p.add_argument('where_to')", "a.where_to", "setting where_to"),
];

#[test]
fn names_that_no_definition_shows_are_missed_and_drafted_in_their_kind() {
    for (code, test, entry) in NAMES {
        let found_of = found(code, test, "");
        assert!(!found_of.is_empty(), "nothing is found of\n{code}\n{test}");
        let draft = drafted(code, test);
        assert!(draft.contains(entry), "no {entry} in\n{draft}\nof\n{code}\n{test}\n{found_of:?}");
        assert_eq!(found(code, test, &written(code, test)), [""; 0], "what is drafted is in order:\n{draft}");
    }
}

#[test]
fn names_that_base_has_or_that_are_the_test_s_own_are_not_missed() {
    for (code, test) in [
        ("def mark(p):\n    p.items = 0", "p.items"),
        ("def mark(p):\n    p.sharded_dim = 0", "p.sharded_dim = 1\nprint(p.sharded_dim)"),
        ("def mark(p):\n    p.sharded_dim = 0", "print('sharded_dim')"),
        (
            "import torch\ntorch.backends.cudnn.benchmark = True",
            "import torch\ntorch.backends.cudnn.benchmark",
        ),
        ("def stats():\n    return dict(total_bytes=1)", "total_bytes = 1"),
        ("p.add_argument('-n')", "print('give it -n or nothing')"),
        ("p.add_argument('--old', dest='items')", "a.items"),
        ("def f():\n    self.sharded_dim = Enum('sharded')", "print('sharded')"),
        ("class Slim:\n    __slots__ = ('a_b', '__dict__')", "print(p.__dict__)"),
        ("LEVEL = 'MY_LEVEL'\ndef env(key):\n    return os.environ[key]", "print('MY_LEVEL')"),
    ] {
        assert_eq!(found(code, test, ""), [""; 0], "{code}\n{test}");
    }
}

#[test]
fn an_environment_variable_is_followed_to_the_constant_of_another_module_and_one_that_only_moves_is_not_new()
{
    let names = "LEVEL = 'MY_LEVEL'\nHOME = 'MY_HOME'\n";
    let old = BTreeMap::from([("run.py", "import os\nHERE = os.environ['MY_HOME']\n")]);
    let run =
        "import os\nimport names\nfrom names import HOME\nHERE = os.environ[HOME], os.getenv(names.LEVEL)\n";
    let new = BTreeMap::from([("names.py", names), ("run.py", run)]);
    let read_old = |path: &str| old.get(path).map(|text| (*text).to_owned());
    let read_new = |path: &str| new.get(path).map(|text| (*text).to_owned());
    let roots = [".".to_owned()];
    let (base, golden) = (SourceTree::new(&read_old, &roots), SourceTree::new(&read_new, &roots));
    let files = ["names.py", "run.py"].map(str::to_owned);
    let found = added(&base, &golden, &files);
    let variables = found.iter().filter(|name| name.kind == AddedKind::Name(NameKind::Variable));
    let told: Vec<(&str, &str, usize)> =
        variables.map(|name| (name.name.as_str(), name.object.file.as_str(), name.line)).collect();
    assert_eq!(told, [("MY_LEVEL", "run.py", 4)]);
}

#[test]
fn where_an_attribute_is_set_is_told_to_the_author_alone() {
    let code = "def _mark(p):\n    p.sharded_dim = 0";
    let draft = drafted(code, "p.sharded_dim");
    assert_eq!(draft, "attribute sharded_dim |  |   # `_mark` sets it (m.py:11)");
}

#[test]
fn a_field_is_stated_once_where_code_sets_it_too() {
    let code = "@dataclass\nclass RunConfig:\n    fresh: bool = False\ndef late(c):\n    c.fresh = True\np.add_argument('--fresh')";
    let draft = drafted(code, "c = m.RunConfig(fresh=True)\nc.fresh");
    assert_eq!(
        draft,
        "class m.RunConfig | (fresh: bool = False) | \nsetting m.RunConfig.fresh | bool = False | "
    );
}

#[test]
fn a_drafted_signature_has_no_code_of_a_factory_and_no_private_name() {
    let code = "@dataclass\nclass Conf:\n    a: int = field(default_factory=lambda: _slow(1) + 1)\n    b: list = field(default_factory=list)\ndef go(x=_UNSET, *, n: int = 3): pass";
    let draft = drafted(code, "m.Conf(a=1)\nm.go()");
    for line in [
        "class m.Conf | (a: int = field(default_factory=...), b: list = field(default_factory=list)) | ",
        "attribute m.Conf.a | int = field(default_factory=...) | ",
        "function m.go | (x=..., *, n: int = 3) | ",
    ] {
        assert!(draft.lines().any(|drafted| drafted == line), "no {line} in\n{draft}");
    }
}
