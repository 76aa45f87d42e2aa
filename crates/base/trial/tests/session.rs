//! A warm session: many variants of golden's tree one after another, none of which is touched by what the last one did.

mod ground;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use ground::{Ground, new_files};
use infradev_model::{CaseResult, Outcome, Outcome::*, Timeouts};
use infradev_sandbox::Kind;
use infradev_trial::{Ask, Session, Tried};

const OFFICIAL: &str = "\
import os
import tempfile

import pytest

from lib import value

# Asked for the first time, it writes a file there to see whether it can: on the other rank, too.
TEMPORARY = tempfile.gettempdir()


def test_value():
    assert value.VALUE == 1


def test_acts():
    value.act()


def test_nothing_was_left():
    assert os.listdir(TEMPORARY) == []
    assert not os.path.exists(os.path.expanduser('~/left'))
";

const GOLDEN: &str = "VALUE = 1\n\n\ndef act():\n    pass\n";

fn here<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn ground(world: u32) -> Ground {
    let base = [("lib/__init__.py", ""), ("lib/value.py", GOLDEN)];
    Ground::new(world, &base, &[("tests/test_x.py", OFFICIAL)], &[])
}

fn timeouts(case: f64) -> Timeouts {
    Timeouts { collect: 30.0, case, grace: 0.5, trial: 120.0 }
}

async fn official(session: &mut Session, world: u32, timeouts: &Timeouts) -> Tried {
    let deadlines = BTreeMap::new();
    let ask = Ask {
        world,
        cases: None,
        stop: None,
        eager: true,
        ends: false,
        resumes: false,
        timeouts,
        deadlines: &deadlines,
        reach: &[],
        seed: 0,
    };
    session.official(&ask).await.unwrap()
}

fn first_rank(tried: &Tried) -> Vec<Outcome> {
    tried.cases.iter().map(|case| case.outcomes()[0]).collect()
}

async fn variant(session: &mut Session, world: u32, text: &str, timeouts: &Timeouts) -> Tried {
    session.lay(&[("lib/value.py".into(), Some(text.into()))]).unwrap();
    let tried = official(session, world, timeouts).await;
    session.put_back().unwrap();
    tried
}

async fn open(ground: &Ground) -> Session {
    open_with(ground, "").await
}

async fn open_with(ground: &Ground, golden: &str) -> Session {
    let mut session = Session::open(ground.spec(golden)).await.unwrap();
    session.prime(ground.world, &timeouts(10.0)).await.unwrap();
    session
}

/// All of them within the second in which golden was laid, at golden's own length: bytecode by time and size would do.
#[test]
fn each_variant_is_itself_whatever_bytecode_the_one_before_left() {
    for kind in [Kind::Namespaces, Kind::None] {
        // A file that golden adds: base has no bytecode of it, ranks of golden compile it by time and size.
        let mut ground = Ground::new(1, &[("lib/__init__.py", "")], &[("tests/test_x.py", OFFICIAL)], &[]);
        ground.sandbox = kind;
        here(async {
            let mut session = open_with(&ground, &new_files(&[("lib/value.py", GOLDEN)])).await;
            let patient = timeouts(10.0);
            assert_eq!(first_rank(&official(&mut session, 1, &patient).await), [Passed; 3]);
            for round in 2..6 {
                let text = GOLDEN.replace("= 1", &format!("= {round}"));
                let tried = variant(&mut session, 1, &text, &patient).await;
                assert_eq!(first_rank(&tried), [Failed, Passed, Passed], "{round}: {:?}", tried.cases);
                assert!(format!("{:?}", tried.cases[0]).contains(&format!("assert {round} == 1")));
                assert_eq!(first_rank(&official(&mut session, 1, &patient).await), [Passed; 3], "{round}");
            }
            session.close().await;
        });
        let left = ground.folder.path().join("scratch");
        assert!(!left.exists(), "{kind:?}");
    }
}

#[test]
fn what_a_variant_does_ends_with_it() {
    let ground = ground(2);
    here(async {
        let mut session = open(&ground).await;
        let patient = timeouts(10.0);
        let hasty = timeouts(1.5);
        let does = |act: &str| GOLDEN.replace("    pass", &format!("    {act}"));
        for (act, expected) in [
            ("import os; os.kill(os.getpid(), 11)", Crashed),
            ("import os; os._exit(0)", Crashed),
            ("import time; time.sleep(1000)", Timeout),
            ("import signal, os; signal.pthread_sigmask(0, range(1, 65)); os.read(os.pipe()[0], 1)", Timeout),
            ("x = [bytearray(1 << 26) for _ in range(64)]", Crashed),
            ("import os; [os.fork() for _ in range(4)]; __import__('time').sleep(1000)", Timeout),
        ] {
            // Only what hangs is cut short: a busy machine takes its time over the rest.
            let limits = if expected == Timeout { &hasty } else { &patient };
            let tried = variant(&mut session, 2, &does(act), limits).await;
            let acted = &tried.cases[1];
            let also = [expected, Failed, Error, PeerAbort, Crashed];
            assert!(!acted.outcomes().contains(&Passed), "{act}: {acted:?}");
            assert!(acted.outcomes().iter().any(|outcome| also.contains(outcome)), "{act}: {acted:?}");
            let after = official(&mut session, 2, &patient).await;
            assert_eq!(first_rank(&after), [Passed; 3], "after {act}: {:?}", after.cases);
        }
        let leaves = "import os, tempfile; tempfile.mkdtemp(); os.makedirs(os.path.expanduser('~/left'))";
        variant(&mut session, 2, &does(leaves), &patient).await;
        assert_eq!(first_rank(&official(&mut session, 2, &patient).await), [Passed; 3]);
        session.close().await;
    });
}

#[test]
fn a_file_that_a_variant_takes_away_is_back_afterwards() {
    let ground = ground(1);
    here(async {
        let mut session = open(&ground).await;
        let patient = timeouts(10.0);
        session
            .lay(&[("lib/value.py".into(), None), ("lib/new.py".into(), Some(b"x = 1\n".to_vec()))])
            .unwrap();
        let without = official(&mut session, 1, &patient).await;
        assert!(without.cases.is_empty(), "{:?}", without.cases);
        assert!(without.notes[0].contains("could not be collected"), "{:?}", without.notes);
        session.put_back().unwrap();
        assert!(!session.tree().join("lib/new.py").exists());
        assert_eq!(first_rank(&official(&mut session, 1, &patient).await), [Passed; 3]);
        session.close().await;
    });
    // The base tree shares its files with the workspace.
    let base = std::fs::read_to_string(ground.folder.path().join("repo/lib/value.py")).unwrap();
    assert_eq!(base, GOLDEN);
}

#[test]
fn only_the_cases_asked_for_run_and_the_first_rejection_ends_them() {
    let ground = ground(2);
    here(async {
        let mut session = open(&ground).await;
        let (patient, deadlines) = (timeouts(10.0), BTreeMap::new());
        let wanted: BTreeSet<String> =
            ["test_value", "test_acts"].map(|name| format!("tests/test_x.py::{name}")).into();
        let rejects = |case: &CaseResult| case.outcomes() != [Passed, Passed];
        session.lay(&[("lib/value.py".into(), Some(GOLDEN.replace("= 1", "= 2").into()))]).unwrap();
        let mut ask = Ask {
            world: 2,
            cases: Some(&wanted),
            stop: Some(&rejects),
            eager: true,
            ends: false,
            resumes: false,
            timeouts: &patient,
            deadlines: &deadlines,
            reach: &[],
            seed: 0,
        };
        let tried = session.official(&ask).await.unwrap();
        assert_eq!(tried.cases.len(), 1, "{:?}", tried.cases);
        session.put_back().unwrap();
        ask.stop = None;
        let tried = session.official(&ask).await.unwrap();
        assert_eq!(first_rank(&tried), [Passed, Passed]);
        session.close().await;
    });
}

const LIBRARY: &str = "\
import functools
import threading

LIMIT = 3


def direct(x):
    if x > LIMIT:
        return x
    return 0


def in_thread():
    return threaded()


def threaded():
    return 5


@functools.cache
def table():
    return 7


def late():
    import lib.later
    return lib.later.ANSWER


def unused():
    return 9
";

const CALLERS: &str = "\
import os
import threading

import pytest

from lib import value


@pytest.fixture(scope='module')
def made():
    return value.table()


def test_small():
    assert value.direct(1) == 0


def test_large():
    assert value.direct(9) == 9


def test_thread():
    worker = threading.Thread(target=value.in_thread)
    worker.start()
    worker.join()


def test_made(made):
    assert made == 7


def test_late():
    assert value.late() == 4


def test_process():
    if os.fork() == 0:
        value.unused()
        os._exit(0)
    os.wait()
";

#[test]
fn the_lines_that_each_case_reaches_are_told_for_the_files_asked_about() {
    let base = [("lib/__init__.py", ""), ("lib/value.py", LIBRARY), ("lib/later.py", "ANSWER = 4\n")];
    let ground = Ground::new(2, &base, &[("tests/test_x.py", CALLERS)], &[]);
    here(async {
        let mut session = open(&ground).await;
        let (patient, deadlines) = (timeouts(10.0), BTreeMap::new());
        let files = ["lib/value.py".to_string(), "lib/later.py".to_string()];
        let ask = Ask {
            world: 2,
            cases: None,
            stop: None,
            eager: false,
            ends: false,
            resumes: false,
            timeouts: &patient,
            deadlines: &deadlines,
            reach: &files,
            seed: 0,
        };
        let tried = session.official(&ask).await.unwrap();
        assert_eq!(first_rank(&tried), [Passed; 6], "{:?}", tried.cases);
        let line = |text: &str| {
            let at = LIBRARY.find(text).unwrap();
            (0, LIBRARY[..at].matches('\n').count() as u32 + 1)
        };
        let reach = &tried.reach;
        let case = |name: &str| reach.cases[&format!("tests/test_x.py::{name}")].clone();
        assert!(case("test_small").lines.contains(&line("if x > LIMIT")));
        assert!(!case("test_small").lines.contains(&line("return x")));
        assert!(case("test_large").lines.contains(&line("return x")));
        assert!(!case("test_large").lines.contains(&line("return 0")));
        assert!(case("test_thread").lines.contains(&line("return 5")));
        // What a fixture of the module runs, and what a module runs when it is imported, belongs to every case.
        assert!(reach.shared.contains(&line("return 7")) && reach.shared.contains(&line("LIMIT = 3")));
        assert!(reach.shared.contains(&(1, 1)), "{reach:?}");
        assert!(!reach.shared.contains(&line("return 5")));
        // What a process of its own runs is not seen: the case may reach anything.
        assert!(case("test_process").wide && !case("test_small").wide);
        assert!(reach.cases.values().all(|case| !case.lines.contains(&line("return 9"))));
        session.close().await;
    });
}
