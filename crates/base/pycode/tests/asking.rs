//! What tests say about where they run, and what differs between two versions of a file.

use std::collections::HashSet;

use infradev_pycode::{Ask, Module};

fn asks(text: &str, changed: &[&str]) -> Vec<Ask> {
    let changed: HashSet<String> = changed.iter().map(|name| (*name).to_owned()).collect();
    let module = Module::parse("test_x.py", text).unwrap();
    let mut found: Vec<Ask> = module.asks(&changed).into_iter().map(|asked| asked.ask).collect();
    found.dedup();
    found
}

#[test]
fn layouts_guards_and_spawned_worlds_name_the_ranks() {
    for (text, ask) in [
        ("def test_a():\n    Utils.initialize_model_parallel(2, 4)\n", Ask::Ranks(8)),
        ("def test_a():\n    initialize_model_parallel(tensor_model_parallel_size=2)\n", Ask::Ranks(2)),
        (
            "@pytest.mark.parametrize('tp, pp', [(1, 1), (2, 2)])\ndef test_a(tp, pp):\n    Utils.initialize_model_parallel(tp, pp)\n",
            Ask::Ranks(4),
        ),
        (
            "@pytest.mark.parametrize('tp_size', [1, 4])\ndef test_a(tp_size):\n    Box(tp_size=tp_size)\n",
            Ask::Ranks(4),
        ),
        ("def test_a():\n    if Utils.world_size != 8:\n        pytest.skip('x')\n", Ask::Ranks(8)),
        ("def test_a():\n    assert dist.get_world_size() >= 2\n", Ask::Ranks(2)),
        (
            "@pytest.mark.skipif(torch.cuda.device_count() < 4, reason='x')\ndef test_a():\n    pass\n",
            Ask::Gpus(4),
        ),
        (
            "pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 8, reason='x')\ndef test_a():\n    pass\n",
            Ask::Gpus(8),
        ),
        (
            "@pytest.mark.parametrize('world_size', (2, 4))\ndef test_a(world_size):\n    mp.spawn(f, nprocs=world_size)\n",
            Ask::Ranks(4),
        ),
    ] {
        assert!(asks(text, &[]).contains(&ask), "{text}: {:?}", asks(text, &[]));
    }
    let faked = "@pytest.mark.parametrize('pp', [2])\ndef test_a(pp):\n    Utils.fake_initialize_model_parallel(pp)\n";
    assert!(!asks(faked, &[]).iter().any(|ask| matches!(ask, Ask::Ranks(_))));
}

#[test]
fn only_what_a_changed_test_reaches_counts() {
    let text = "\
def helper():
    Utils.initialize_model_parallel(2, 1)


def test_old():
    Utils.initialize_model_parallel(8, 1)


def test_new():
    helper()


class TestBox:
    def setup_method(self):
        Utils.initialize_model_parallel(4, 1)

    def test_in_box(self):
        pass
";
    let ranks = |changed: &[&str]| {
        asks(text, changed).into_iter().filter(|ask| matches!(ask, Ask::Ranks(_))).collect::<Vec<_>>()
    };
    assert_eq!(ranks(&["test_new"]), [Ask::Ranks(2)]);
    assert_eq!(ranks(&["TestBox.test_in_box"]), [Ask::Ranks(4)]);
    assert_eq!(ranks(&[]).len(), 3);
}

#[test]
fn numbers_meters_and_devices_are_seen() {
    let found = |line: &str| asks(&format!("def test_a():\n    {line}\n"), &[]);
    assert!(found("torch.testing.assert_close(a, b)").contains(&Ask::Numbers));
    assert!(found("assert torch.equal(a, b)").contains(&Ask::Numbers));
    assert!(found("assert torch.cuda.max_memory_allocated() < 5").contains(&Ask::Resources));
    assert!(found("x = x.cuda()").contains(&Ask::Cuda));
    assert!(found("x = x.to('cuda')").contains(&Ask::Cuda));
    assert!(!found("d = 'cuda' if torch.cuda.is_available() else 'cpu'").contains(&Ask::Cuda));
}

#[test]
fn comments_docstrings_and_layout_leave_digests_alone() {
    let shapes = |text: &str| Module::parse("a.py", text).unwrap().shapes();
    let base =
        shapes("\"\"\"Doc.\"\"\"\nX = 1\nclass A(B):\n    y = 2\n    def f(self, a=1):\n        return a\n");
    let same = shapes(
        "X = 1  # one\n\nclass A( B ):\n    '''Doc.'''\n    y = 2\n    def f(self, a = 1):\n        '''D.'''\n        return (a)\n",
    );
    assert_eq!((base.module, &base.definitions), (same.module, &same.definitions));
    let other = shapes("X = 1\nclass A(B):\n    y = 2\n    def f(self, a=1):\n        return a + 1\n");
    let differ: Vec<&str> = base
        .definitions
        .iter()
        .zip(&other.definitions)
        .filter(|(one, two)| one.digest != two.digest)
        .map(|(one, _)| one.qualified_name.as_str())
        .collect();
    assert_eq!((differ, base.module == other.module), (vec!["A.f"], true));
}

#[test]
fn lines_of_code_leave_out_comments_docstrings_blanks_and_indents() {
    let lines = |text: &str| Module::parse("a.py", text).unwrap().shapes().lines;
    let bare = lines("X = 1\ndef f(a):\n  return a\n");
    let told = lines(
        "\"\"\"Doc.\n\nMore.\"\"\"\n# one\nX = 1  # one\n\n\ndef f(a):\n    '''D.'''\n    # two\n    return a\n\"after\"\n",
    );
    assert_eq!((bare.len(), bare), (3, told));
    assert_eq!(lines("T = '''one\n\ntwo'''\nU = (\n    1,  # one\n\n)\n").len(), 5);
    assert_eq!(lines("# nothing\n").len(), 0);
}

#[test]
fn what_callers_can_set_is_counted() {
    let text =
        "class C:\n    a: int = 1\n    b = 2\n    def f(self, x, *, y=1):\n        p.add_argument('--z')\n";
    let shapes = Module::parse("a.py", text).unwrap().shapes();
    let counts: Vec<u32> = shapes.definitions.iter().map(|shape| shape.settable).collect();
    assert_eq!((counts, shapes.options), (vec![2, 3], 1));
}
