//! Each failure is attributed to its own case and rank, and costs that case only.

mod ground;

use ground::{Ground, outcomes};
use infradev_model::Outcome::{self, *};

const HEAD: &str = "import os, signal, socket, sys, time\nRANK = int(os.environ['RANK'])\n";

/// Runs test functions on two ranks, with an innocent case before and after; gives the middle one's result.
fn between_innocents(body: &str) -> (Vec<Outcome>, String, u32) {
    between_innocents_within(10.0, body)
}

/// The same where a case may take so many seconds.
fn between_innocents_within(seconds: f64, body: &str) -> (Vec<Outcome>, String, u32) {
    let text = format!("{HEAD}\ndef test_before():\n    pass\n\n{body}\n\ndef test_later():\n    pass\n");
    let mut ground = Ground::new(2, &[("lib/__init__.py", "")], &[("tests/test_x.py", &text)], &[]);
    ground.task.public.spec.timeouts.case = seconds;
    let result = ground.trial("");
    assert_eq!(result.fault, None);
    let by_id = outcomes(&result);
    let ids: Vec<&str> = by_id.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(
        ids,
        ["tests/test_x.py::test_before", "tests/test_x.py::test_x", "tests/test_x.py::test_later"]
    );
    assert_eq!(by_id[0].1, [Passed, Passed], "an innocent case before");
    assert_eq!(by_id[2].1, [Passed, Passed], "an innocent case after");
    let details = result.cases[1].vector.iter().filter_map(|entry| entry.detail.as_ref());
    let said = details
        .map(|detail| format!("{}: {}", detail.exception, detail.message))
        .collect::<Vec<_>>()
        .join("\n");
    (by_id[1].1.clone(), said, result.launches)
}

#[test]
fn a_pass_on_every_rank_needs_one_launch() {
    let (vector, _, launches) = between_innocents("def test_x():\n    assert True");
    assert_eq!((vector, launches), (vec![Passed, Passed], 1));
}

#[test]
fn a_failure_alike_on_all_ranks_goes_on_in_place() {
    let (vector, said, launches) = between_innocents("def test_x():\n    assert 1 == 2");
    assert_eq!((vector, launches), (vec![Failed, Failed], 1));
    assert!(said.contains("AssertionError"), "{said}");
}

#[test]
fn a_crash_is_the_crashing_ranks_own() {
    let (vector, said, launches) = between_innocents(
        "def test_x():\n    if RANK == 1:\n        os.kill(os.getpid(), signal.SIGSEGV)\n    time.sleep(60)",
    );
    assert_eq!((vector, launches), (vec![PeerAbort, Crashed], 2));
    assert!(said.contains("SIGSEGV"), "{said}");
}

#[test]
fn a_rank_that_ends_between_two_cases_is_no_accident_that_another_try_passes_over() {
    // The thread waits until no case runs: until the main thread has left the file.
    let test = "\
import os, sys, threading

SEEN = threading.Event()

def between():
    main = threading.main_thread().ident
    def runs():
        frame = sys._current_frames()[main]
        while frame is not None and frame.f_code.co_filename != __file__:
            frame = frame.f_back
        return frame is not None
    SEEN.set()
    while runs():
        pass
    os._exit(0)

def test_leaves_a_thread():
    threading.Thread(target=between, daemon=True).start()
    SEEN.wait()

def test_after():
    pass

def test_last():
    pass
";
    let ground = Ground::new(2, &[("lib/__init__.py", "")], &[("tests/test_x.py", test)], &[]);
    let result = ground.trial("");
    assert_eq!((&result.fault, &result.tampering), (&None, &vec![]));
    let found = outcomes(&result);
    let bad: Vec<&str> = found
        .iter()
        .filter(|(_, vector)| vector.contains(&Crashed))
        .map(|(id, _)| id.rsplit("::").next().unwrap_or_default())
        .collect();
    // Where the thread is quicker than the report it is the case's own end.
    assert!(bad == ["test_after"] || bad == ["test_leaves_a_thread"], "{found:?}");
    assert_eq!(found[2].1, [Passed, Passed], "{found:?}");
}

#[test]
fn an_exit_from_within_a_test_is_a_crash() {
    let (vector, said, _) = between_innocents("def test_x():\n    if RANK == 0:\n        os._exit(0)");
    assert_eq!(vector, [Crashed, Passed]);
    assert!(said.contains("exit 0"), "{said}");
}

#[test]
fn a_hang_is_a_timeout_of_the_hanging_rank_with_its_stack() {
    let (vector, said, _) = between_innocents(
        "def test_x():\n    if RANK == 1:\n        hang_here()\n\ndef hang_here():\n    time.sleep(600)",
    );
    assert_eq!(vector, [Passed, Timeout]);
    assert!(said.contains("hang_here"), "{said}");
}

#[test]
fn a_failure_before_a_collective_does_not_blame_the_rank_that_waits() {
    let (vector, said, _) = between_innocents(
        "def test_x():\n    if RANK == 0:\n        raise KeyError('first')\n    time.sleep(600)",
    );
    assert_eq!(vector, [Failed, PeerAbort]);
    assert!(said.contains("KeyError"), "{said}");
}

#[test]
fn a_skip_on_one_rank_is_kept_apart() {
    let (vector, _, _) =
        between_innocents("import pytest\ndef test_x():\n    if RANK == 1:\n        pytest.skip('not here')");
    assert_eq!(vector, [Passed, Skipped]);
}

#[test]
fn a_case_collected_on_one_rank_only_says_so() {
    let (vector, _, _) = between_innocents("if RANK == 0:\n    def test_x():\n        pass");
    assert_eq!(vector, [Passed, NotCollected]);
}

#[test]
fn ten_gigabytes_of_output_cost_neither_memory_nor_the_case() {
    let (vector, _, _) = between_innocents_within(
        120.0,
        "def test_x():\n    block = b'garbage\\xff\\x00' * 131072\n    for _ in range(10240 if RANK == 0 else 1):\n        \
         os.write(1, block)",
    );
    assert_eq!(vector, [Passed, Passed]);
}

#[test]
fn a_daemon_in_a_session_of_its_own_dies_with_its_world() {
    let body = "def test_x():\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            \
                os.execv('/bin/sleep', ['sleep-of-a-test', '7777'])\n        os._exit(0)";
    let (vector, _, _) = between_innocents(body);
    assert_eq!(vector, [Passed, Passed]);
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.starts_with(b"sleep-of-a-test"))
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_file_that_crashes_on_collection_costs_no_other_file() {
    let good = "def test_good():\n    pass\n";
    let bad = format!("{HEAD}\nif RANK == 1:\n    os._exit(9)\ndef test_bad():\n    pass\n");
    let ground = Ground::new(
        2,
        &[("lib/__init__.py", "")],
        &[("tests/test_bad.py", &bad), ("tests/test_good.py", good)],
        &[],
    );
    let result = ground.trial("");
    assert_eq!(outcomes(&result), [("tests/test_good.py::test_good".to_string(), vec![Passed, Passed])]);
    assert!(
        result.notes.iter().any(|note| note.contains("tests/test_bad.py") && note.contains("rank 1")),
        "{:?}",
        result.notes
    );
}

#[test]
fn memory_over_the_limit_is_said_to_be_that() {
    let (vector, said, _) = between_innocents(
        "def test_x():\n    if RANK == 1:\n        hog = [bytearray(64 << 20) for _ in range(40)]\n    time.sleep(0.01)",
    );
    assert_eq!(vector[1], Crashed, "{said}");
    assert!(said.contains("OutOfMemory"), "{said}");
}

#[test]
fn eight_ranks_keep_their_places() {
    let text = format!(
        "{HEAD}\ndef test_x():\n    assert os.environ['WORLD_SIZE'] == '8'\n    assert RANK != 5\n\ndef test_later():\n    pass\n"
    );
    let ground = Ground::new(8, &[("lib/__init__.py", "")], &[("tests/test_x.py", &text)], &[]);
    let by_id = outcomes(&ground.trial(""));
    let mut vector = vec![Passed; 8];
    vector[5] = Failed;
    assert_eq!(by_id[0].1, vector);
    assert_eq!(by_id[1].1, vec![Passed; 8]);
}
