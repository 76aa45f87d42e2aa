//! What `infradev probe-gaps` says of a mutant is what plain pytest says of the file with the mutant in it, in whatever ways a
//! module holds on to what it did when it was imported: mutants run in forks of a process that has imported it. And in whatever
//! ways tests lean on those before them: mutants run on a part of them.

mod branch;
mod ground;

use branch::Branch;

/// Runs every mutant of a module of its own by hand, too; how many of them pytest lets pass.
fn survivors_of(module: &str, tests: &str) -> usize {
    survivors_under(&[], module, &[("test_lately.py", tests)])
}

/// The same with options, and with test files by name.
fn survivors_under(options: &[&str], module: &str, tests: &[(&str, &str)]) -> usize {
    let branch = Branch::of(&[]);
    branch.write("src/shop/lately.py", module);
    for (name, text) in tests {
        branch.write(&format!("tests/{name}"), text);
    }
    let options: Vec<&str> = ["--json"].iter().chain(options).copied().collect();
    let document = branch.gaps(&options).exits(0).json();
    let mutants = document["change"]["mutants"].as_array().unwrap();
    let mut survivors = 0;
    for record in mutants {
        let mutant = &record["mutant"];
        let Some(replacement) = mutant["replacement"].as_str() else { continue };
        let at = |key: &str| mutant[key].as_u64().unwrap() as usize;
        branch.write(
            "src/shop/lately.py",
            &format!("{}{replacement}{}", &module[..at("start")], &module[at("end")..]),
        );
        let by_hand = plain_pytest(&branch, tests);
        survivors += usize::from(by_hand);
        assert_eq!(record["fate"] != "official", by_hand, "{record:#}");
    }
    assert!(mutants.len() > 1, "{mutants:#?}");
    survivors
}

/// Whether all tests pass, in a process of their own.
fn plain_pytest(branch: &Branch, tests: &[(&str, &str)]) -> bool {
    let source = branch.ground.path().join("shop/src");
    let variables = [("PYTHONPATH", source.to_str().unwrap()), ("PYTHONDONTWRITEBYTECODE", "1")];
    let files = tests.iter().filter(|(name, _)| *name != "conftest.py");
    let files: Vec<String> = files.map(|(name, _)| format!("shop/tests/{name}")).collect();
    let words = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"];
    let words: Vec<&str> = words.into_iter().chain(files.iter().map(String::as_str)).collect();
    let said = branch.ground.tool_with(&variables, branch.python.to_str().unwrap(), &words);
    // Passed, failed, not collected.
    assert!((0..=2).contains(&said.code), "{}{}", said.out, said.err);
    said.code == 0
}

/// A guard that no test asks for, so that each module has a survivor.
const HALF: &str = "

def half(x):
    if x < 0:
        raise ValueError('negative')
    return x / 2
";

fn with_half(module: &str, tests: &str) -> usize {
    let tests =
        format!("from shop.lately import half\n{tests}\n\ndef test_half():\n    assert half(4) == 2\n");
    survivors_of(&format!("{module}{HALF}"), &tests)
}

#[test]
fn of_a_seed_that_a_test_module_sets() {
    let module = "import random\n\n\ndef noisy(x):\n    return x + random.random()\n";
    let tests = "\
import random
from shop.lately import noisy

random.seed(1234)
WANTED = 1 + random.Random(1234).random()


def test_noisy():
    assert noisy(1) == WANTED
";
    assert!(with_half(module, tests) > 0);
}

#[test]
fn of_a_generator_that_began_when_its_module_was_imported() {
    let module = "\
def _counter():
    n = 1
    while True:
        yield n
        n += 1


_ids = _counter()


def fresh():
    return next(_ids)
";
    let tests = "\
from shop.lately import fresh


def test_fresh():
    assert [fresh(), fresh(), fresh()] == [1, 2, 3]
";
    assert!(with_half(module, tests) > 0);
}

#[test]
fn of_memory_that_forked_processes_share() {
    let module = "\
import mmap

_seen = mmap.mmap(-1, 8)


def count():
    if _seen[0] > 100:
        return 0
    _seen[0] = _seen[0] + 1
    return _seen[0]
";
    let tests = "\
from shop.lately import count


def test_count():
    assert count() == 1
";
    assert!(with_half(module, tests) > 1);
}

#[test]
fn of_what_another_process_said_while_tests_were_collected() {
    let module = "def area(a, b):\n    return a * b\n";
    let tests = "\
import os
import subprocess
import sys
from shop.lately import area

ASK = [sys.executable, '-c', 'from shop.lately import area; print(area(3, 4))']
WANTED = int(subprocess.check_output(ASK, env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}))


def test_area():
    assert area(3, 4) == WANTED
";
    assert!(with_half(module, tests) > 1);
}

const ACT: &str = "def act(x: int) -> int:\n    return x + 21\n";

#[test]
fn of_source_that_another_module_compiles_when_it_is_imported() {
    let tests = "\
import inspect
from shop import lately

NAMES = {}
exec(inspect.getsource(lately.act), NAMES)


def test_act():
    assert lately.act(0) is not None


def test_compiled():
    assert NAMES['act'](2) == 23
";
    assert!(with_half(ACT, tests) > 0);
}

#[test]
fn of_source_that_is_read_as_a_file() {
    let tests = "\
from pathlib import Path
from shop import lately

NAMES = {}
exec(Path(lately.__file__).read_text(), NAMES)


def test_act():
    assert lately.act(0) is not None


def test_compiled():
    assert NAMES['act'](2) == 23
";
    assert!(with_half(ACT, tests) > 0);
}

#[test]
fn of_source_that_a_module_compiles_again_when_it_is_imported() {
    let module = format!(
        "import inspect\nimport linecache\n\n\n{ACT}\n\nlinecache.getlines(__file__)\nNAMES = {{}}\n\
         exec(inspect.getsource(act), NAMES)\n"
    );
    let tests = "\
from shop import lately


def test_act():
    assert lately.act(0) is not None


def test_compiled():
    assert lately.NAMES['act'](2) == 23
";
    assert!(with_half(&module, tests) > 0);
}

#[test]
fn of_a_function_that_is_made_of_changed_code() {
    let module = format!(
        "import types\n\n\n{ACT}\n\ndef clone(f):\n    \
         return types.FunctionType(f.__code__.replace(co_name='z'), f.__globals__)\n"
    );
    let tests = "\
from shop import lately

CLONE = lately.clone(lately.act)


def test_act():
    assert lately.act(0) is not None


def test_clone():
    assert CLONE(2) == 23
";
    assert!(with_half(&module, tests) > 0);
}

#[test]
fn of_constants_that_tests_are_made_of() {
    let tests = "\
import inspect
import pytest
from shop import lately

SIGNATURE = inspect.signature(lately.act)


@pytest.mark.parametrize('constant', lately.act.__code__.co_consts)
def test_constant(constant):
    assert lately.act(0) is not None
    assert constant in (None, 21)


def test_signature():
    assert list(SIGNATURE.parameters) == ['x']
";
    assert!(with_half(ACT, tests) > 0);
}

/// An engine that tests of a file share. Those that do not reach it are so many that a mutant is run without them first.
const ENGINE: &str = "\
class Engine:
    def __init__(self):
        self.done = []

    def submit(self, x):
        self.done.append(x)

    def count(self, least=0):
        if least < 0:
            least = 0
        return len([x for x in self.done if x >= least])
";

const ENGINE_TESTS: &str = "\
import pytest
from shop.lately import Engine


@pytest.fixture(scope='module')
def engine():
    return Engine()


@pytest.mark.parametrize('n', range(40))
def test_other(n):
    pass


def test_submit(engine):
    engine.submit(3)


def test_count(engine):
    assert engine.count() == 1


@pytest.mark.xfail(reason='known')
def test_known():
    assert False
";

#[test]
fn of_tests_that_share_a_fixture_with_state() {
    assert!(survivors_under(&[], ENGINE, &[("test_lately.py", ENGINE_TESTS)]) > 0);
}

#[test]
fn of_tests_that_share_a_fixture_with_state_on_two_ranks() {
    assert!(survivors_under(&["--world", "2"], ENGINE, &[("test_lately.py", ENGINE_TESTS)]) > 0);
}

#[test]
fn of_tests_that_share_a_fixture_with_state_in_ranks_that_start_from_nothing() {
    // What decides collection by the rank allows no template.
    let tests = format!("import os\nRANK = os.environ.get('RANK')\n{ENGINE_TESTS}");
    assert!(survivors_under(&[], ENGINE, &[("test_lately.py", &tests)]) > 0);
}

#[test]
fn of_a_fixture_that_looks_at_its_state_when_it_is_torn_down() {
    let tests = ENGINE_TESTS.replace(
        "    return Engine()",
        "    shared = Engine()\n    yield shared\n    assert shared.count(2) == shared.count(3) == 1",
    );
    assert!(survivors_under(&[], ENGINE, &[("test_lately.py", &tests)]) > 0);
}

const STORE: &str = "\
STORE = {}


def put(key, value):
    STORE[key] = value


def get(key, scale=1):
    if scale > 5:
        scale = 5
    return STORE[key] * scale


def wipe():
    STORE.clear()
";

#[test]
fn of_tests_that_leave_something_in_a_module() {
    let tests = "\
import pytest
from shop import lately


@pytest.mark.parametrize('n', range(40))
def test_other(n):
    pass


def test_put():
    lately.put('a', 2)


def test_get():
    assert lately.get('a') == 2


def test_get_thrice():
    assert lately.get('a', 3) == 6


def test_wipe():
    lately.wipe()


def test_wiped():
    assert lately.STORE == {}
";
    assert!(survivors_of(STORE, tests) > 0);
}

#[test]
fn of_tests_that_need_those_of_a_file_before() {
    let early = "\
from shop import lately


def test_put():
    lately.put('a', 2)
    assert lately.STORE == {'a': 2}
";
    let late = "\
from shop import lately


def test_get():
    assert lately.get('a', 3) == 6


def test_wipe():
    lately.wipe()
    assert lately.STORE == {}
";
    assert!(survivors_under(&[], STORE, &[("test_early.py", early), ("test_lately.py", late)]) > 0);
}

#[test]
fn tests_that_are_expected_to_fail_are_told_with_those_that_are_skipped() {
    let branch = Branch::of(&[]);
    branch.write("src/shop/lately.py", ENGINE);
    branch.write("tests/test_lately.py", ENGINE_TESTS);
    let document = branch.gaps(&["--json"]).exits(0).json();
    let golden = &document["change"]["golden"][0];
    assert_eq!(golden["left_out"], serde_json::json!(["tests/test_lately.py::test_known"]), "{golden:#}");
}

#[test]
fn of_code_that_tests_import_by_a_path_of_their_own() {
    let module = format!("def double(x):\n    return 2 * x\n{HALF}");
    let tests = "\
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'src'))
from shop.lately import double, half


def test_double():
    assert double(3) == 6


def test_half():
    assert half(4) == 2
";
    assert!(survivors_of(&module, tests) > 0);
}

#[test]
fn of_code_that_runs_in_processes_that_are_spawned() {
    let module = format!("def double(x):\n    return 2 * x\n{HALF}");
    let tests = "\
import multiprocessing
from shop.lately import double, half


def test_double():
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        assert pool.map(double, [3]) == [6]


def test_half():
    assert half(4) == 2
";
    assert!(survivors_of(&module, tests) > 0);
}

#[test]
fn of_tests_that_a_mutant_makes_skip_or_go_by_other_names() {
    let module =
        format!("def sizes(k):\n    return [0, k, 2 * k]\n\n\ndef ready(k):\n    return k > 1\n{HALF}");
    let tests = "\
import pytest
from shop import lately


@pytest.mark.parametrize('size', lately.sizes(3))
def test_sizes(size):
    assert 0 <= size < 7


def test_ready():
    if not lately.ready(3):
        pytest.skip('not yet')


def test_half():
    assert lately.half(4) == 2
";
    assert!(survivors_of(&module, tests) > 2);
}

#[test]
fn of_a_hook_at_the_end_of_the_session() {
    let module = "\
OPEN = []


def take(x):
    OPEN.append(x)
    return x


def give(x):
    if x in OPEN:
        OPEN.remove(x)
    return len(OPEN)
";
    let conftest = "\
def pytest_sessionfinish(session, exitstatus):
    from shop.lately import OPEN

    if OPEN:
        session.exitstatus = 1
";
    let tests = "\
from shop.lately import give, take


def test_take_and_give():
    assert take(1) == 1
    give(1)
";
    let files = [("conftest.py", conftest), ("test_lately.py", tests)];
    assert!(survivors_under(&[], module, &files) > 0);
}

#[test]
fn of_a_child_that_comes_out_of_its_case() {
    let module = "\
import os


def apart(n):
    pid = os.fork()
    if pid == 0:
        os._exit(1)
    os.waitpid(pid, 0)
    return n + 1
";
    let tests = "\
from shop.lately import apart


def test_apart():
    assert apart(2) == 3


def test_after():
    assert apart(3) == 4
";
    assert!(survivors_of(module, tests) > 1);
}
