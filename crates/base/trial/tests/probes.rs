//! Probes are observed inside and judged outside: what each rank did reaches the judge typed, and the verdict says how it
//! rejected.

mod ground;

use ground::Ground;
use infradev_model::Outcome::{self, *};
use infradev_model::{Rejection, Selection, TrialResult};

const LIBRARY: &str = "\
import socket
import numpy as np

def double(x):
    return x * 2

def exchange(rank, size, address, port, payload):
    peer = 1 - rank
    if rank == 0:
        server = socket.create_server((address, port))
        connection, _ = server.accept()
    else:
        while True:
            try:
                connection = socket.create_connection((address, port))
                break
            except ConnectionRefusedError:
                pass
    if rank == 0:
        connection.sendall(payload)
        connection.shutdown(socket.SHUT_WR)
        return 0
    got = 0
    while chunk := connection.recv(1 << 20):
        got += len(chunk)
    return got
";

const OBSERVER: &str = "\
import os, time
import numpy as np
from infradev_probe import observer, rank
import lib

@observer
def double(x):
    return {'y': lib.double(x), 'rank': rank.rank}

@observer
def misbehave(how):
    if how == 'missing':
        return lib.not_there(1)
    if how == 'hollow':
        raise NotImplementedError('hollow: lib.double')
    if how == 'value':
        raise ValueError('of no use')
    if how == 'crash' and rank.rank == 1:
        os.abort()
    if how == 'hang' and rank.rank == 1:
        time.sleep(1000)
    return 1

@observer
def text(count):
    return 'x' * count

@observer
def stop_soon(x):
    import signal, threading
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGSTOP)).start()

@observer
def nap(seconds):
    time.sleep(seconds)
    return 1

@observer
def stop_or_nap(seconds):
    import signal
    if rank.rank == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(seconds)
    return 1

@observer
def die_while_it_is_sent(mebibytes):
    import fcntl, signal, struct, termios, threading
    def die():
        while not any(waiting(fd) for fd in range(3, 10)):
            time.sleep(0.0002)
        os.kill(os.getpid(), signal.SIGKILL)
    def waiting(fd):
        try:
            return struct.unpack('i', fcntl.ioctl(fd, termios.TIOCOUTQ, b'0000'))[0]
        except OSError:
            return 0
    threading.Thread(target=die, daemon=True).start()
    return np.zeros(mebibytes << 20, dtype=np.uint8)

@observer
def hold(mebibytes):
    # Kept, so that the ranks' blocks are there at once however they take turns.
    rank.state.block = np.ones(mebibytes << 20, dtype=np.uint8)
    return mebibytes

@observer
def exchange(count):
    return lib.exchange(rank.rank, rank.size, os.environ['MASTER_ADDR'], 23456, b'x' * count)
";

const JUDGE_HEAD: &str = "\
import numpy as np
from infradev_probe import case, expect, per_rank
";

fn ground(judge: &str) -> Ground {
    let judge = format!("{JUDGE_HEAD}\n{judge}");
    let mut ground = Ground::new(
        2,
        &[("lib/__init__.py", LIBRARY)],
        &[("tests/test_x.py", "def test_x():\n    pass\n")],
        &[("judge_lib.py", &judge), ("observe_lib.py", OBSERVER)],
    );
    ground.selection = Selection::Probes;
    ground
}

fn one(judge: &str, patch: &str) -> (Outcome, Option<Rejection>, TrialResult) {
    let result = ground(judge).trial(patch);
    assert_eq!((&result.fault, &result.not_applied), (&None, &None));
    assert_eq!(result.cases.len(), 1, "{:?}", result.notes);
    let case = &result.cases[0];
    let rejection = case.judgement.as_ref().unwrap().rejection;
    (case.vector[0].outcome, rejection, result.clone())
}

fn words(result: &TrialResult) -> Vec<Outcome> {
    result.cases.iter().map(|case| case.vector[0].outcome).collect()
}

const NUMBERS: &str = "\
@case(worlds=[2], checks='numbers')
def doubles(worlds, rng):
    xs = [rng.standard_normal(5).astype(np.float32) for _ in range(2)]
    w = worlds.open()
    seen = w.observe('observe_lib.double', x=per_rank(xs))
    assert [s['rank'] for s in seen] == [0, 1]
    for s, x in zip(seen, xs):
        expect.close(s['y'], 2 * x, dtype='float32', reduction=1)
";

#[test]
fn a_probe_that_holds_passes_with_what_it_compared_on_record() {
    let (outcome, rejection, result) = one(NUMBERS, "");
    let judgement = result.cases[0].judgement.as_ref().unwrap();
    assert_eq!((outcome, rejection), (Passed, None), "{}", judgement.text);
    assert_eq!(result.cases[0].case.id, "probes/judge_lib.py::doubles[world=2]");
    assert!(judgement.expectations.iter().all(|expectation| expectation.ok));
    assert!(judgement.expectations.len() >= 2);
}

#[test]
fn wrong_numbers_are_a_substantive_rejection() {
    let patch = "--- a/lib/__init__.py\n+++ b/lib/__init__.py\n@@ -4,3 +4,3 @@\n def double(x):\n-    return x * 2\n+    return x * 3\n \n";
    let (outcome, rejection, result) = one(NUMBERS, patch);
    assert_eq!((outcome, rejection), (Failed, Some(Rejection::Substantive)));
    let judgement = result.cases[0].judgement.as_ref().unwrap();
    assert!(judgement.expectations.iter().any(|expectation| !expectation.ok));
}

#[test]
fn what_goes_wrong_on_a_rank_is_typed() {
    let table = [
        ("missing", Error, Rejection::Trivial, "AttributeError"),
        ("hollow", Error, Rejection::Trivial, "NotImplementedError"),
        ("value", Error, Rejection::Broken, "ValueError"),
        ("crash", Crashed, Rejection::Broken, "SIGABRT"),
        ("hang", Timeout, Rejection::Broken, "Timeout"),
    ];
    for (how, outcome, rejection, exception) in table {
        let judge = format!(
            "@case(worlds=[2], checks='error')\ndef misbehaves(worlds, rng):\n    w = worlds.open()\n    \
             w.observe('observe_lib.misbehave', how='{how}')\n    expect.true(True, 'reached')\n"
        );
        let (got, kind, result) = one(&judge, "");
        let judgement = result.cases[0].judgement.as_ref().unwrap();
        assert_eq!((got, kind), (outcome, Some(rejection)), "{how}: {}", judgement.text);
        let named = judgement.ranks.iter().filter_map(|entry| entry.detail.as_ref());
        let exceptions: Vec<&str> = named.map(|detail| detail.exception.as_str()).collect();
        assert!(exceptions.iter().any(|name| name.contains(exception)), "{how}: {exceptions:?}");
    }
}

#[test]
fn bytes_that_each_rank_receives_are_metered_from_outside() {
    let judge = "\
@case(worlds=[2], checks='traffic')
def only_rank_one_receives(worlds, rng):
    w = worlds.open()
    with w.meter.traffic(per_rank=True) as t:
        got = w.observe('observe_lib.exchange', count=4 << 20)
    expect.equal(got[1], 4 << 20)
    expect.between(t[1].received, 4 << 20, 1.1 * (4 << 20) + 32_768)
    expect.between(t[0].received, 0, 400_000)
";
    let (outcome, _, result) = one(judge, "");
    assert_eq!(outcome, Passed, "{}", result.cases[0].judgement.as_ref().unwrap().text);
}

#[test]
fn peak_memory_of_the_tree_is_metered_from_outside() {
    let judge = "\
@case(worlds=[2], checks='memory')
def holds_forty_mebibytes_a_rank(worlds, rng):
    w = worlds.open()
    w.observe('observe_lib.hold', mebibytes=1)
    with w.meter.memory() as m:
        w.observe('observe_lib.hold', mebibytes=40)
    expect.between(m.peak_bytes, 70 << 20, 100 << 20)
";
    let (outcome, _, result) = one(judge, "");
    assert_eq!(outcome, Passed, "{}", result.cases[0].judgement.as_ref().unwrap().text);
}

#[test]
fn a_mistake_in_a_judges_file_is_the_authors_to_mend() {
    let error = ground("import nothing_of_that_name\n").try_trial("").unwrap_err().to_string();
    assert!(error.contains("judge_lib.py") && error.contains("nothing_of_that_name"), "{error}");
}

#[test]
fn the_judge_cannot_import_what_it_judges() {
    let judge = "\
@case(worlds=[2], checks='error')
def finds_no_repository(worlds, rng):
    import importlib.util
    expect.true(importlib.util.find_spec('lib') is None, 'the repository is not importable')
";
    assert_eq!(one(judge, "").0, Passed);
}

#[test]
fn what_no_judge_could_be_sent_is_the_ranks_own_error_and_no_fault() {
    let judge = "\
@case(worlds=[2], checks='numbers')
def each_fills_its_frame(worlds, rng):
    expect.equal(worlds.open().observe('observe_lib.text', count=(16 << 20) - 100)[0], '')

@case(worlds=[2], checks='numbers')
def both_are_too_much_together(worlds, rng):
    expect.equal(worlds.open().observe('observe_lib.text', count=9 << 20)[0], '')

@case(worlds=[2], checks='numbers')
def the_next_case_runs(worlds, rng):
    expect.equal(worlds.open().observe('observe_lib.text', count=2)[0], 'xx')
";
    let result = ground(judge).trial("");
    assert_eq!((result.fault.as_ref(), result.tampering.as_slice()), (None, &[][..]));
    assert_eq!(words(&result), [Error, Error, Passed]);
    assert!(result.cases[0].vector[0].detail.as_ref().unwrap().message.contains("bytes of values"));
}

#[test]
fn a_rank_that_stops_and_reads_no_more_keeps_no_deadline_from_being_held() {
    let judge = "\
@case(worlds=[2], checks='numbers')
def goes_on_after_it(worlds, rng):
    w = worlds.open()
    w.observe('observe_lib.stop_soon', x=1)
    import time
    time.sleep(1)
    expect.equal(w.observe('observe_lib.double', deadline=2, x=np.zeros(1 << 20))[0]['rank'], 0)

@case(worlds=[2], checks='numbers')
def the_next_case_runs(worlds, rng):
    expect.equal(worlds.open().observe('observe_lib.text', count=2)[0], 'xx')
";
    let result = ground(judge).trial("");
    assert_eq!(result.fault, None);
    assert_eq!(words(&result), [Timeout, Passed]);
}

#[test]
fn calls_that_are_each_in_time_end_with_the_trials_time_as_a_timeout_and_no_fault() {
    let judge = "\
@case(worlds=[2], checks='numbers')
def many_slow_calls(worlds, rng):
    w = worlds.open()
    for _ in range(100):
        expect.equal(w.observe('observe_lib.nap', seconds=4)[0], 1)
";
    let mut ground = ground(judge);
    ground.task.public.spec.timeouts.trial = 15.0;
    let result = ground.trial("");
    assert_eq!(result.fault, None);
    assert_eq!(words(&result), [Timeout]);
}

#[test]
fn an_answer_that_comes_after_its_deadline_is_late_and_not_forged() {
    // While the stack of rank 0 is waited for, which stopped itself, the answer of rank 1 comes.
    let judge = "\
@case(worlds=[2], checks='numbers')
def late(worlds, rng):
    worlds.open().observe('observe_lib.stop_or_nap', seconds=1.5, deadline=1.0)
";
    let (outcome, _, result) = one(judge, "");
    assert_eq!(result.tampering, []);
    assert_eq!(outcome, Timeout);
}

#[test]
fn a_rank_that_is_killed_while_it_answers_crashed_and_forged_nothing() {
    let judge = "\
@case(worlds=[2], checks='numbers')
def cut(worlds, rng):
    worlds.open().observe('observe_lib.die_while_it_is_sent', mebibytes=16)
";
    let (outcome, _, result) = one(judge, "");
    assert_eq!(result.tampering, []);
    assert_eq!(outcome, Crashed, "{:?}", result.cases[0]);
    let said = format!("{:?}", result.cases[0]);
    assert!(said.contains("SIGKILL"), "{said}");
}
