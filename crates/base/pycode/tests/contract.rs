//! What a change adds and what tests touch of it, on trees of a few lines.

#[path = "contract/making.rs"]
mod making;
#[path = "contract/names.rs"]
mod names;
#[path = "contract/reached.rs"]
mod reached;

use std::collections::BTreeMap;

use infradev_model::{Contract, ContractFinding};
use infradev_pycode::Module;
use infradev_pycode::contract::{AddedKind, Interface, SourceTree, Touched, added, attribute_names};
use proptest::prelude::*;

type Files = BTreeMap<&'static str, &'static str>;

/// A package whose change adds one of each kind.
fn before() -> Files {
    BTreeMap::from([
        ("src/pkg/__init__.py", "from .config import Config\nfrom . import run\n"),
        (
            "src/pkg/config.py",
            "from dataclasses import dataclass\n@dataclass\nclass Config:\n    size: int = 1\n",
        ),
        (
            "src/pkg/run.py",
            "import os\ndef start(size):\n    return {'size': size, 'home': os.environ['HOME']}\nWAYS = {'home': start}\n",
        ),
        ("src/pkg/args.py", "def parser(p):\n    p.add_argument('--size', type=int)\n    gone = p\n"),
    ])
}

fn after() -> Files {
    let mut files = before();
    files.extend([
        ("src/pkg/__init__.py", "from .config import Config\nfrom . import run\nfrom .extra import *\n"),
        (
            "src/pkg/config.py",
            "from dataclasses import dataclass\n@dataclass\nclass Config:\n    size: int = 1\n    fast: bool = False\n",
        ),
        (
            "src/pkg/run.py",
            "import os\ndef start(size, *, patience: float = 1.5):\n    if os.getenv('PKG_FAST'):\n        size = 2\n    return \
             {'size': size, 'home': os.environ['HOME'], 'waited': patience}\nWAYS = {'home': start, 'quick': start}\nWAYS['slow'] = start\nstart({'odd': 1})\n",
        ),
        (
            "src/pkg/args.py",
            "def parser(p):\n    p.add_argument('--size', type=int)\n    p.add_argument('--be-fast', action='store_true')\n    gone = p\n",
        ),
        (
            "src/pkg/extra.py",
            "LIMIT: int = 3\nclass Base:\n    def go(self, a, b=1) -> int:\n        self.gone = a\n        return a\n\nclass \
             Extra(Base):\n    @property\n    def deep(self) -> int:\n        return 1\n\ndef helper(x: int) -> int:\n    return x\n\nclass Mode(Enum):\n    SLOW = 1\n",
        ),
    ]);
    files
}

fn with_trees<T>(ask: impl FnOnce(&SourceTree<'_>, &SourceTree<'_>) -> T) -> T {
    let (old, new) = (before(), after());
    let read_old = |path: &str| old.get(path).map(|text| (*text).to_owned());
    let read_new = |path: &str| new.get(path).map(|text| (*text).to_owned());
    let roots = ["src".to_owned()];
    ask(&SourceTree::new(&read_old, &roots), &SourceTree::new(&read_new, &roots))
}

fn files() -> Vec<String> {
    after().keys().map(|path| (*path).to_owned()).collect()
}

fn with_interface<T>(test: &str, ask: impl FnOnce(&Interface<'_>) -> T) -> T {
    with_trees(|base, golden| {
        let module = Module::parse("tests/test_it.py", test).expect("a test");
        let old: Vec<&str> = before().into_values().collect();
        let new: Vec<&str> = after().into_values().collect();
        let has = |texts: &[&str], word: &str| {
            texts.iter().any(|t| t.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word))
        };
        ask(&Interface {
            base,
            golden,
            added: added(base, golden, &files()),
            tests: vec![Touched::of(&module)],
            judges: Vec::new(),
            base_has_word: &|word| has(&old, word),
            base_has_attribute: &|word| old.iter().any(|text| attribute_names(text).any(|name| name == word)),
            golden_has_word: &|word| has(&new, word),
        })
    })
}

fn lint(test: &str, contract: &str) -> Vec<String> {
    let contract_text = format!("schema = 1\n{contract}");
    let contract = Contract::parse("contract.toml", contract_text.as_bytes()).expect("a contract");
    let shown = |finding: &ContractFinding| format!("{:?} {finding}", finding.rule);
    with_interface(test, |interface| interface.lint(&contract, &contract_text).iter().map(shown).collect())
}

#[test]
fn a_change_adds_names_of_every_kind() {
    let names: Vec<String> = with_trees(|base, golden| {
        added(base, golden, &files())
            .into_iter()
            .map(|name| {
                let kind = match name.kind {
                    AddedKind::Name(kind) => kind.to_string(),
                    AddedKind::Parameter => "parameter".to_owned(),
                    AddedKind::Key => "key".to_owned(),
                    AddedKind::Command => "sub-command".to_owned(),
                    AddedKind::Mark => "mark".to_owned(),
                    AddedKind::Argument => "argument".to_owned(),
                };
                format!("{kind} {} {}", name.name, name.signature.unwrap_or_default())
            })
            .collect()
    });
    insta::assert_snapshot!(names.join("\n"));
}

#[test]
fn names_are_followed_through_what_packages_offer_again() {
    with_trees(|base, golden| {
        let place =
            |name: &str| golden.resolve(name).map(|object| format!("{}:{}", object.file, object.name));
        for (name, found) in [
            ("pkg.Config.fast", Some("src/pkg/config.py:Config.fast")),
            ("pkg.run.start", Some("src/pkg/run.py:start")),
            ("pkg.helper", Some("src/pkg/extra.py:helper")),
            ("pkg.Extra.go", Some("src/pkg/extra.py:Base.go")),
            ("pkg.Extra.gone", Some("src/pkg/extra.py:Base.gone")),
            ("pkg.extra", Some("src/pkg/extra.py:")),
            ("pkg.nothing", None),
            ("torch.nn", None),
        ] {
            assert_eq!(place(name).as_deref(), found, "{name}");
        }
        assert!(base.resolve("pkg.Extra").is_none());
    });
}

#[test]
fn packages_that_import_each_other_in_a_circle_end() {
    let files =
        BTreeMap::from([("a.py", "from b import x\n"), ("b.py", "from a import x\nfrom a import *\n")]);
    let read = |path: &str| files.get(path).map(|text: &&str| (*text).to_owned());
    assert_eq!(SourceTree::new(&read, &[".".to_owned()]).resolve("a.x"), None);
}

#[test]
fn what_a_test_touches_and_the_contract_leaves_out_is_missing() {
    let mut told = String::new();
    for test in [
        "from pkg import Config\nConfig(fast=True)\n",
        "import pkg\nc = pkg.Config()\nassert c.fast\n",
        "from pkg.run import start\nstart(1, patience=2.0)\n",
        "from pkg.run import start\nassert start(1)['waited'] == 0\n",
        "from pkg.extra import Extra as E\ndef test(): E()\n",
        "import pkg.extra\npkg.extra.helper(1)\n",
        "import pkg.extra as extra\nassert extra.LIMIT\n",
        "def test(monkeypatch): monkeypatch.setenv('PKG_FAST', '1')\n",
        "run(['--be-fast=1'])\n",
        "from pkg import Extra\ndef test():\n    e = Extra().to('cpu')\n    assert e.deep\n    e.go(1)\n",
        // Nothing of the change: base has the word, or the file has it of its own.
        "from pkg.run import start\nassert start(1)['size'] == 1\n",
        "state.gone = 1\nassert state.gone\n",
    ] {
        told += &format!("{test}{}\n\n", lint(test, "").join("\n"));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn an_object_bound_to_two_things_is_neither() {
    let test = "from pkg import Config\ndef test(x):\n    c = Config()\n    c = x\n    c.size_of()\n";
    let module = Module::parse("t.py", test).expect("a test");
    assert!(Touched::of(&module).typed.is_empty());
    let clear =
        "from pkg import Config\n@fixture\ndef c():\n    return Config()\ndef test(c):\n    c.size_of()\n";
    let module = Module::parse("t.py", clear).expect("a test");
    let typed = Touched::of(&module).typed;
    assert_eq!(typed.keys().next(), Some(&("pkg.Config".to_owned(), "size_of".to_owned())));
}

#[test]
fn what_is_reached_from_an_object_of_the_tree_is_touched_by_a_name_that_is_new_to_it() {
    let missing = |test: &str| -> bool {
        let found = lint(test, "");
        found.iter().any(|finding| finding.contains("`pkg.extra.Base.gone`"))
    };
    // Base has a variable of that name; an attribute of it is golden's alone.
    for way in [
        "for block in start(1):\n    block.gone\n",
        "for i, block in enumerate(start(1)):\n    assert block.gone\n",
        "def test():\n    pool = start(1)\n    assert all(block.gone == 1 for block in pool.blocks)\n",
        "with start(1).lease() as block:\n    print(block.gone)\n",
        "first, *rest = start(1)\nprint(first.gone)\n",
        "pool = start(1)\nprint(pool.blocks[0].gone)\n",
        "@fixture\ndef pool():\n    return start(1)\ndef test(pool):\n    a, b = zip(pool.blocks, [1])\n    b.gone\n",
        "class TestPool:\n    def setup_method(self):\n        self.pool = start(1)\n    def test(self):\n        self.pool.blocks[0].gone\n",
        "class TestPool:\n    def test(self):\n        self.pool.first.gone\n    def setUp(self):\n        self.pool = start(1)\n",
    ] {
        let test = format!("from pkg.run import start\n{way}");
        assert!(missing(&test), "{test}");
    }
    // Another's, the test's own, bound to two things, or of a word that base's attributes know.
    for other in [
        "import torch\nfor block in torch.blocks(3):\n    block.gone\n",
        "from pkg.run import start\nfor block in start(1):\n    block.gone = 1\n    block.gone\n",
        "from pkg.run import start\nfor block in start(1):\n    block = other(block)\n    block.gone\n",
        "from pkg.run import start\ndef test(blocks):\n    for block in blocks:\n        block.gone\n",
        "from pkg.run import start\nfor block in start(1):\n    block.environ\n",
        "from pkg.run import start\nclass A:\n    def setUp(self):\n        self.pool = start(1)\nclass B:\n    def setUp(self):\n        self.pool = other()\n    def test(self):\n        self.pool.first.gone\n",
    ] {
        assert!(!missing(other), "{other}");
    }
}

#[test]
fn a_new_key_is_drafted_in_the_entry_of_what_holds_it() {
    for (touch, kind, name, about) in [
        ("run.ways('quick')", "attribute", "pkg.run.WAYS", "New key: quick."),
        ("run.WAYS['slow']()", "attribute", "pkg.run.WAYS", "New key: slow."),
        ("run.start(1)['waited']", "function", "pkg.run.start", "New key: waited."),
        ("run.start(1)['odd']", "module", "pkg.run", "New key: odd."),
    ] {
        let test = format!("from pkg import run\n{touch}\n");
        let drafted = with_interface(&test, |interface| interface.draft());
        let [entry] = &drafted[..] else { panic!("{test}{drafted:?}") };
        let listed = &entry.listed;
        assert_eq!((&*listed.kind.to_string(), &*listed.name, &*listed.about), (kind, name, about), "{test}");
        let written = format!("[[name]]\nname = \"{name}\"\nkind = \"{kind}\"\nabout = \"{about}\"\n");
        assert_eq!(lint(&test, &written), [""; 0], "what is drafted is in order");
    }
}

#[test]
fn names_that_are_given_as_strings_are_touched() {
    let missing = |test: &str, name: &str| -> bool {
        lint(test, "").iter().any(|finding| finding.contains(&format!("`{name}`")))
    };
    for (name, way) in [
        ("pkg.extra.LIMIT", "getattr(extra, 'LIMIT')"),
        ("pkg.extra.LIMIT", "getattr(extra, 'LIMIT')['waited']"),
        ("pkg.extra.LIMIT", "'LIMIT' in vars(extra)"),
        ("pkg.extra.Extra", "hasattr(extra, 'Extra')"),
        ("pkg.extra.Extra", "extra.__dict__['Extra']()"),
        ("pkg.extra.Extra", "vars(extra)['Extra']"),
        ("pkg.extra.Extra", "vars(extra).get('Extra')"),
        ("pkg.extra.Extra", "setattr(extra, 'Extra', None)"),
        ("pkg.extra.Extra", "delattr(extra, 'Extra')"),
        ("pkg.extra.Extra", "def test(monkeypatch): monkeypatch.setattr(extra, 'Extra', None)"),
        ("pkg.extra.Base.go", "def test(monkeypatch): monkeypatch.setattr('pkg.extra.Base.go', None)"),
        ("pkg.extra.Base", "def test(monkeypatch): monkeypatch.setattr('pkg.extra.Base.go', None)"),
        ("pkg.extra.Extra.go", "@mock.patch('pkg.extra.Extra.go')\ndef test(it): pass"),
        ("pkg.extra.Extra", "with mock.patch.object(extra, 'Extra'): pass"),
        ("pkg.extra.Extra", "@mock.patch.object(target=extra, attribute='Extra')\ndef test(it): pass"),
        ("pkg.extra.Extra", "mock.patch.multiple(extra, Extra=None)"),
        ("pkg.extra.Extra.deep", "operator.attrgetter('Extra.deep')(extra)"),
        ("pkg.extra.Extra", "operator.attrgetter('Extra.deep')(extra)"),
        ("pkg.extra.Extra", "importlib.import_module('pkg.extra').Extra"),
        ("pkg.extra.Extra", "m = importlib.import_module('pkg.extra')\ndef test(): m.Extra().go(1)"),
        ("pkg.extra.Base.go", "m = importlib.import_module('pkg.extra')\ndef test(): m.Extra().go(1)"),
        ("pkg.extra.Extra", "m = __import__('pkg.extra', fromlist=['x'])\nm.Extra"),
        ("pkg.extra.Extra", "__import__('pkg.extra').extra.Extra"),
        ("pkg.extra.Extra", "sys.modules['pkg.extra'].Extra"),
        (
            "pkg.extra.Extra",
            "@fixture\ndef m(): return pytest.importorskip('pkg.extra')\ndef test(m): m.Extra",
        ),
        ("pkg.extra.Extra", "m = extra\nm.Extra"),
        ("pkg.extra.Base.go", "it = getattr(extra, 'Extra')()\ngetattr(it, 'go')(1)"),
        ("pkg.extra.Mode.SLOW", "extra.Mode['SLOW']"),
        ("pkg.extra.Extra", "exec('from pkg.extra import Extra; Extra()')"),
        ("pkg.extra.Base.go", "exec('from pkg.extra import Extra; Extra().go(1)')"),
        ("pkg.extra.helper", "run([python, '-c', '''\n    from pkg import extra\n    extra.helper(1)\n'''])"),
        ("pkg.run.start.patience", "exec('from pkg.run import start; start(1, patience=2)')"),
        // Of an object that is not known: by a word that is new to the tree.
        ("pkg.extra.LIMIT", "def test(x): getattr(x, 'LIMIT')"),
        ("pkg.extra.helper", "def test(x): sorted(x, key=operator.methodcaller('helper', 1))"),
    ] {
        let test = format!("from pkg import extra\n{way}\n");
        let name = if name.ends_with("patience") { "patience" } else { name };
        assert!(missing(&test, name), "{test}{:?}", lint(&test, ""));
    }
    // Another's, the test's own, a word that base has, prose, and a path that leads to nothing.
    for (name, other) in [
        ("pkg.extra.Extra", "from pkg import extra"),
        ("pkg.extra.Extra", "import torch\ngetattr(torch, 'Extra')"),
        ("pkg.extra.LIMIT", "def test(x):\n    setattr(x, 'LIMIT', 1)\n    getattr(x, 'LIMIT')"),
        ("pkg.extra.Base.gone", "def test(x): getattr(x, 'gone')"),
        ("pkg.extra.Extra", "print('from pkg.extra import nothing but Extra')"),
        ("pkg.extra.Extra", "print('pkg.extra.Extra.nothing', 'pkg/extra.Extra')"),
        ("pkg.extra.LIMIT", "def test(x): print(x['LIMIT'], 'LIMIT')"),
    ] {
        assert!(!missing(other, name), "{other}");
    }
    let test = "import os\n\nCODE = '''\nimport os\nfrom pkg.extra import helper\n'''\n";
    assert!(lint(test, "").iter().any(|finding| finding.contains("test_it.py:5: the function")), "its line");
}

#[test]
fn an_entry_is_in_order_where_it_is_golden_s_and_touched() {
    let entry = |more: &str| format!("[[name]]\nname = \"pkg.Extra.go\"\nkind = \"method\"\n{more}");
    let class = "[[name]]\nname = \"pkg.Extra\"\nkind = \"class\"\n";
    let test = "from pkg import Extra\ndef test(): Extra().go(1)\n";
    assert_eq!(lint(test, &format!("{class}{}", entry("signature = \"(a, b: int = 1) -> int\"\n"))), [""; 0]);
    assert_eq!(
        lint(test, &format!("{class}{}", entry("signature = \"(a, b)\"\n"))),
        ["Signature contract.toml:6: `pkg.Extra.go`: golden's parameter `b` has a default"]
    );
    let found = lint("x = 1\n", &entry("untested = \"for others\"\n"));
    assert_eq!(found, [""; 0]);
}

proptest! {
    #[test]
    fn any_file_is_read_without_a_panic(code in "[a-z .()=\n:\"'é0-9]{0,80}") {
        if let Ok(module) = Module::parse("t.py", &code) {
            let touched = Touched::of(&module);
            prop_assert!(touched.typed.len() <= code.len());
        }
    }
}
