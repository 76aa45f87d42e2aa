//! Ranks of a template: what a variant is found to do does not depend on whether its ranks started from nothing or from where
//! golden's tests were collected.

mod ground;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use ground::Ground;
use infradev_model::{Outcome, Timeouts};
use infradev_trial::{Ask, Session, Tried};

const GOLDEN: &str = "\
import contextlib
import functools

LIMIT = 3


class Opaque:
    def __init__(self, function):
        self.source = function.__code__.co_code

    def __call__(self):
        return len(self.source) > 0


def once(function):
    @functools.wraps(function)
    def wrapped(*args):
        return function(*args) + 0

    return wrapped


@once
def double(x):
    return 2 * x


@Opaque
def read():
    return 1


def power(x, to=2):
    return x**to


class Pool:
    size = 4

    def __init__(self):
        self.free = list(range(self.size))

    @property
    def left(self):
        return len(self.free)

    @property
    def most(self):
        return self.size

    @contextlib.contextmanager
    def taken(self):
        block = self.free.pop()
        yield block
        self.free.append(block)


def adder(by):
    def add(x):
        return x + by

    return add


PLUS_TWO = adder(2)


def table():
    return {'a': 1}


TABLE = table()


def act():
    pass
";

const OFFICIAL: &str = "\
import os

import pytest

from lib import value
from lib.value import PLUS_TWO, Pool, double, power


@pytest.fixture(scope='module')
def pool():
    return Pool()


def test_double():
    assert double(3) == 6


def test_read():
    assert value.read()


def test_power():
    assert power(3) == 9 and value.LIMIT == 3


def test_pool(pool):
    with pool.taken():
        assert pool.left == pool.most - 1
    assert pool.left == 4


def test_closures():
    assert PLUS_TWO(1) == 3 and value.adder(5)(1) == 6


def test_table():
    assert value.TABLE == {'a': 1}


def test_acts():
    value.act()


def test_nothing_was_left():
    assert 'left' not in os.listdir(os.environ['TMPDIR'])
    assert os.environ['RANK'] in '01' and os.environ['WORLD_SIZE'] == '2'
";

fn here<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn timeouts() -> Timeouts {
    Timeouts { collect: 30.0, case: 3.0, grace: 3.0, trial: 120.0 }
}

async fn opened(ground: &Ground) -> Session {
    let mut session = Session::open(ground.spec("")).await.unwrap();
    session.prime(2, &timeouts()).await.unwrap();
    session
}

async fn tried(session: &mut Session, text: &str, resumes: bool) -> Tried {
    let deadlines = BTreeMap::new();
    let timeouts = timeouts();
    session.warm(&[2], &["lib/value.py".to_string()], &timeouts).await.unwrap();
    let ask = Ask {
        world: 2,
        cases: None,
        stop: None,
        eager: false,
        ends: false,
        resumes,
        timeouts: &timeouts,
        deadlines: &deadlines,
        reach: &[],
        seed: 0,
    };
    session.lay(&[("lib/value.py".into(), Some(text.into()))]).unwrap();
    let tried = session.official(&ask).await.unwrap();
    session.put_back().unwrap();
    tried
}

fn outcomes(tried: &Tried) -> BTreeMap<String, Vec<Outcome>> {
    tried.cases.iter().map(|case| (case.case.id.clone(), case.outcomes())).collect()
}

/// Cases that pass on every rank: which of two ranks dies first of what either does is chance.
fn passing(tried: &Tried) -> BTreeSet<String> {
    let passes = |(_, vector): &(String, Vec<Outcome>)| vector.iter().all(|one| *one == Outcome::Passed);
    outcomes(tried).into_iter().filter(passes).map(|(id, _)| id).collect()
}

/// Exceptions and the lines that they came from, by case.
fn said(tried: &Tried) -> Vec<String> {
    let details = |case: &infradev_model::CaseResult| {
        let first = case.vector[0].detail.as_ref();
        first.map(|detail| {
            format!("{} {} {:?} {:?}", case.case.id, detail.exception, detail.file, detail.line)
        })
    };
    tried.cases.iter().filter_map(details).collect()
}

#[test]
fn a_variant_does_the_same_in_ranks_of_a_template_as_in_ranks_that_start_from_nothing() {
    let base = [("lib/__init__.py", ""), ("lib/value.py", GOLDEN)];
    let ground = Ground::new(2, &base, &[("tests/test_x.py", OFFICIAL)], &[]);
    // (what stands there, what becomes of it, whether that can be put in golden's place)
    let variants = [
        ("pass\n", "pass  # the same\n", true),
        ("return 2 * x", "return 3 * x", false),
        ("return x**to", "return str(x)", true),
        ("return function(*args) + 0", "return function(*args) + 1", true),
        ("return len(self.free)", "return 0", true),
        ("return self.size", "return 5", true),
        ("self.free.append(block)", "pass", true),
        ("list(range(self.size))", "[]", true),
        ("return x + by", "return x - by", true),
        (
            "    def add(x):\n        return x + by\n",
            "    def add(x):\n        y = x\n        return y * by\n",
            true,
        ),
        ("return x**to", "return [0 for _ in range(to)]", true),
        ("    return x**to", "    # on another line\n    return x**to\n    return 7", true),
        ("to=2", "to=3", false),
        ("size = 4", "size = 3", false),
        ("LIMIT = 3", "LIMIT = 4", false),
        ("    return 1\n\n\ndef power", "    return 2\n\n\ndef power", false),
        ("@once\n", "", false),
        ("    def add(x):\n        return x + by\n\n    return add", "    return lambda x: x", false),
        ("import functools", "import functools\nimport nothing_of_this_name", false),
        ("return {'a': 1}", "return {'a': 2", false),
    ];
    here(async {
        let mut session = opened(&ground).await;
        for (was, becomes, fits) in variants {
            assert!(GOLDEN.contains(was), "{was}");
            let text = GOLDEN.replacen(was, becomes, 1);
            let resumed = tried(&mut session, &text, true).await;
            let fresh = tried(&mut session, &text, false).await;
            assert_eq!(resumed.resumed, fits, "{was} → {becomes}: {:?}", resumed.notes);
            assert!(!fresh.resumed);
            assert_eq!(outcomes(&resumed), outcomes(&fresh), "{was} → {becomes}");
            assert_eq!(said(&resumed), said(&fresh), "{was} → {becomes}");
        }
        session.close().await;
    });
}

#[test]
fn what_a_variant_does_to_its_template_ends_with_it() {
    let base = [("lib/__init__.py", ""), ("lib/value.py", GOLDEN)];
    let ground = Ground::new(2, &base, &[("tests/test_x.py", OFFICIAL)], &[]);
    here(async {
        let mut session = opened(&ground).await;
        let does = |act: &str| GOLDEN.replace("    pass", &format!("    {act}"));
        for act in [
            "import os; os._exit(3)",
            "import os; os.kill(os.getpid(), 9)",
            "import os; os.kill(os.getppid(), 9)",
            "import os; os.kill(-1, 9)",
            "import time; time.sleep(60)",
            "import os, time\n    if os.fork() == 0:\n        os.setsid(); time.sleep(60)",
            "import os; open(os.environ['TMPDIR'] + '/left', 'w').close()",
            "import os; os.environ['RANK'] = 'x'; os.chdir('/')",
        ] {
            let resumed = tried(&mut session, &does(act), true).await;
            let fresh = tried(&mut session, &does(act), false).await;
            assert_eq!(passing(&resumed), passing(&fresh), "{act}: {:?}", said(&resumed));
            let golden = tried(&mut session, GOLDEN, true).await;
            assert!(golden.resumed, "after {act}");
            let all = golden.cases.iter().flat_map(|case| case.outcomes());
            assert!(
                all.clone().count() == 16 && all.into_iter().all(|one| one == Outcome::Passed),
                "after {act}"
            );
        }
        session.close().await;
    });
}

#[test]
fn tests_that_are_not_the_same_on_every_rank_get_no_template() {
    let of = |read: &str| {
        format!("{OFFICIAL}\n\n@pytest.mark.skipif({read}, reason='one rank')\ndef test_one():\n    pass\n")
    };
    for (read, allowed) in [
        ("os.environ.get('RANK') == '1'", false),
        ("dict(os.environ)['LOCAL_RANK'] == '1'", false),
        ("os.getenv('WORLD_SIZE') == '1'", true),
    ] {
        let base = [("lib/__init__.py", ""), ("lib/value.py", GOLDEN)];
        let ground = Ground::new(2, &base, &[("tests/test_x.py", &of(read))], &[]);
        here(async {
            let mut session = opened(&ground).await;
            let resumed = tried(&mut session, GOLDEN, true).await;
            assert_eq!(resumed.resumed, allowed, "{read}");
            session.close().await;
        });
    }
}

#[test]
fn what_conftest_puts_into_the_environment_is_there_in_ranks_of_a_template() {
    let conftest = "import os\nos.environ['OF_CONFTEST'] = '1'\nos.environ.pop('TZ', None)\n";
    let test = "import os\n\nfrom lib import value\n\n\ndef test_x():\n    value.act()\n    assert os.environ['OF_CONFTEST'] == '1'\n    assert 'TZ' not in os.environ\n";
    let base = [("lib/__init__.py", ""), ("lib/value.py", GOLDEN), ("tests/conftest.py", conftest)];
    let ground = Ground::new(2, &base, &[("tests/test_x.py", test)], &[]);
    here(async {
        let mut session = opened(&ground).await;
        let resumed = tried(&mut session, GOLDEN, true).await;
        assert!(resumed.resumed);
        assert_eq!(resumed.cases[0].outcomes(), [Outcome::Passed; 2], "{:?}", resumed.cases);
        session.close().await;
    });
}
