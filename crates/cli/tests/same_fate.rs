//! What `infradev probe-gaps` says of a mutant is what plain pytest says of the file with the mutant in it, in whatever ways a
//! module holds on to what it did when it was imported: mutants run in forks of a process that has imported it.

mod branch;
mod ground;

use branch::Branch;

/// Runs every mutant of a module of its own by hand, too; how many of them pytest lets pass.
fn survivors_of(module: &str, tests: &str) -> usize {
    let branch = Branch::of(&[]);
    branch.write("src/shop/lately.py", module);
    branch.write("tests/test_lately.py", tests);
    let document = branch.gaps(&["--json"]).exits(0).json();
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
        let by_hand = plain_pytest(&branch);
        survivors += usize::from(by_hand);
        assert_eq!(record["fate"] != "official", by_hand, "{record:#}");
    }
    assert!(mutants.len() > 1, "{mutants:#?}");
    survivors
}

/// Whether all tests pass, in a process of their own.
fn plain_pytest(branch: &Branch) -> bool {
    let source = branch.ground.path().join("shop/src");
    let variables = [("PYTHONPATH", source.to_str().unwrap()), ("PYTHONDONTWRITEBYTECODE", "1")];
    let words = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "shop/tests/test_lately.py"];
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
