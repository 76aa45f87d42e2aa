//! A twin that fails half-way, or a file that can be imported once only, costs no real case.

mod ground;

use ground::{Ground, outcomes};
use infradev_model::{Outcome, Selection};
use infradev_trial::Twins;

const LIB: &str = "Y = 2\ngroup = None\nops = set()\n";

const LEAVES_A_GROUP: &str = "\
import lib


def opened():
    if lib.group:
        raise ValueError('trying to initialize the default process group twice!')
    lib.group = object()


def test_one():
    opened()
    assert lib.Y == 2
    lib.group = None


def test_two():
    opened()
    assert lib.Y + 1 == 3
    lib.group = None
";

const REGISTERS_AT_IMPORT: &str = "\
import lib

if 'test::op' in lib.ops:
    raise RuntimeError('test::op is registered already')
lib.ops.add('test::op')


def test_one():
    assert lib.Y == 2


def test_two():
    assert lib.Y + 1 == 3
";

#[test]
fn what_a_twin_leaves_behind_costs_no_real_case_whatever_its_place() {
    for test in [LEAVES_A_GROUP, REGISTERS_AT_IMPORT] {
        for seed in 0..8 {
            let mut ground = Ground::new(2, &[("lib/__init__.py", LIB)], &[("tests/test_lib.py", test)], &[]);
            ground.selection = Selection::Official;
            ground.twins = Twins::Candidates;
            let mut spec = ground.spec("");
            spec.seed = seed;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let result = runtime.block_on(infradev_trial::run(&spec, &infradev_trial::Silent)).unwrap();
            let found = outcomes(&result);
            assert_eq!(found.len(), 2, "{seed}: {found:?} {:?}", result.notes);
            let all = found.iter().flat_map(|(_, vector)| vector);
            assert!(all.clone().all(|one| *one == Outcome::Passed), "{seed}: {found:?} {:?}", result.notes);
            assert_eq!(result.tampering, []);
        }
    }
}
