"""Judge and ranks together: what a probe's author writes, and whose every failure is."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Iterator

import pytest
from driver import Harness
from relay import Relay

OBSERVERS = '''
from infradev_probe import observer, rank
import numpy as np

@observer
def add(x, y=1):
    return {"sum": x + y, "rank": rank.rank, "size": rank.size, "kind": type(x).__name__}

@observer
def keep(x):
    rank.state.x = x

@observer
def kept():
    return rank.state.x

@observer
def fail(on=(0,), how="ValueError"):
    import os, time
    if rank.rank in on:
        if how == "exit": os._exit(5)
        if how == "segv": os.kill(os.getpid(), 11)
        if how == "hang": time.sleep(600)
        if how == "SystemExit": raise SystemExit(3)
        if how == "object": return object()
        if how == "set": return {"inner": [1, {2}]}
        raise {"ValueError": ValueError}[how]("capacity is 3")

@observer
def reach(what):
    import engine
    if what == "module": import no_such_module
    if what == "from": from engine import nothing
    if what == "attribute": engine.nothing
    if what == "method": engine.Layer().nothing()
    if what == "argument": engine.work(1, new=2)
    if what == "missing argument": engine.work()
    if what == "init argument": engine.Layer(hidden=3)
    if what == "name": undefined
    if what == "inside name": engine.inside_name()
    if what == "inside attribute": engine.inside_attribute()
    if what == "inside type": engine.inside_type()
    if what == "hollow": engine.hollow()
    if what == "not implemented": engine.not_implemented()

def plain(): return 1
'''

ENGINE = """
class Layer: pass
def work(x): return x
def inside_name(): return undefined_name
def inside_attribute(): return None.shape
def inside_type(): return 1 + "x"
def hollow(): raise NotImplementedError("hollow: engine.hollow")
def not_implemented(): raise NotImplementedError("later")
"""


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(tmp_path_factory.mktemp("judge")) as harness:
        yield harness


class Bench:
    def __init__(self, folder: Path, harness: Harness) -> None:
        self.harness, self.probes, self.tree = harness, folder / "probes", folder / "tree"
        self.probes.mkdir()
        self.tree.mkdir()
        (self.probes / "observe_x.py").write_text(OBSERVERS)
        (self.tree / "engine.py").write_text(ENGINE)

    def judge(self, source: str, name: str = "judge_x.py") -> Bench:
        head = "import numpy as np\nfrom infradev_probe import case, expect, per_rank\n"
        (self.probes / name).write_text(head + textwrap.dedent(source))
        return self

    def relay(self, world: int = 2) -> Relay:
        return Relay(self.harness, self.probes, self.tree, world)

    def one(self, body: str, world: int = 2, decorator: str = "", seed: int = 1) -> dict[str, Any]:
        """The report of a case with this body."""
        options = f"worlds=[{world}], checks='numbers'{decorator}"
        self.judge(f"@case({options})\ndef one(worlds, rng):\n" + textwrap.indent(textwrap.dedent(body), "    "))
        with self.relay(world) as relay:
            assert relay.uncollectable == []
            self.relayed = relay
            return relay.run(f"probes/judge_x.py::one[world={world}]", seed)


@pytest.fixture
def bench(tmp_path: Path, harness: Harness) -> Bench:
    return Bench(tmp_path, harness)


def test_cases_are_collected_for_their_world_sizes_only(bench: Bench) -> None:
    bench.judge(
        """
        import pytest
        def helper(): pass
        def test_not_a_case(): assert 0
        @case(worlds=[2, 4], checks="numbers", traits=["moe"])
        def both(worlds, rng): pass
        @case(worlds=[1], checks="state")
        def single(worlds): pass
        @case(worlds=[2], checks="shape")
        @pytest.mark.parametrize("n", [1, 2])
        def many(worlds, n): pass
        """
    )
    with bench.relay(2) as relay:
        ids = [case["id"] for case in relay.cases]
    assert ids[0] == "probes/judge_x.py::both[world=2]" and len(ids) == 3
    assert {key: value for key, value in relay.cases[0].items() if key != "id"} == {
        "checks": "numbers",
        "traits": ["moe"],
        "worlds": [2, 4],
        "line": 7,
    }
    with bench.relay(1) as relay:
        assert [case["id"] for case in relay.cases] == ["probes/judge_x.py::single[world=1]"]


def test_a_case_names_the_one_that_asks_the_same_on_exact_inputs(bench: Bench) -> None:
    bench.judge(
        """
        @case(worlds=[1, 2], checks="precision", exact="on_small_integers")
        def on_any_numbers(worlds, rng): pass
        @case(worlds=[2], checks="numbers")
        def on_small_integers(worlds, rng): pass
        """
    )
    with bench.relay(2) as relay:
        assert [case.get("exact") for case in relay.cases] == ["probes/judge_x.py::on_small_integers[world=2]", None]
        assert not relay.uncollectable
    with bench.relay(1) as relay:
        told = relay.uncollectable[0]["message"]
    assert told == "exact='on_small_integers' names no other case of the file at world size 1"


def test_exact_inputs_are_for_checks_of_numbers(bench: Bench) -> None:
    bench.judge("@case(worlds=[2], checks='state', exact='y')\ndef x(worlds): pass")
    with bench.relay(2) as relay:
        assert "is for checks of numbers and precision; this one checks state" in relay.uncollectable[0]["message"]


def test_a_judge_file_that_does_not_collect_is_told_beside_the_others(bench: Bench) -> None:
    bench.judge("import nothing_of_the_kind", "judge_a.py")
    bench.judge("@case(worlds=[2], checks='speed')\ndef x(worlds): pass", "judge_b.py")
    bench.judge("@case(worlds=[2], checks='time')\ndef x(rng): pass", "judge_c.py")
    bench.judge("raise SystemExit(1)", "judge_d.py")
    bench.judge("@case(worlds=[2], checks='time')\ndef good(worlds): pass", "judge_e.py")
    with bench.relay(2) as relay:
        told = {each["file"]: (each["exception"], each["message"]) for each in relay.uncollectable}
        assert [case["id"] for case in relay.cases] == ["probes/judge_e.py::good[world=2]"]
    assert told["probes/judge_a.py"][0] == "ModuleNotFoundError"
    assert "checks='speed' is none of numbers" in told["probes/judge_b.py"][1]
    assert "must take the argument worlds" in told["probes/judge_c.py"][1]
    assert told["probes/judge_d.py"][0] == "SystemExit"


def test_what_does_not_import_is_told_in_the_author_s_words(bench: Bench) -> None:
    bench.judge("x = 1\ndef (", "judge_a.py")
    bench.judge("import nothing_of_the_kind", "judge_b.py")
    with bench.relay(2) as relay:
        told = {each["file"]: (each["message"], each["line"]) for each in relay.uncollectable}
    assert told == {
        "probes/judge_a.py": ("invalid syntax", 4),
        "probes/judge_b.py": ("No module named 'nothing_of_the_kind'", 3),
    }


def test_inputs_reach_each_rank_and_values_come_back(bench: Bench) -> None:
    report = bench.one(
        """
        xs = [rng.standard_normal((3, 2)).astype("float32") for _ in range(2)]
        w = worlds.open()
        seen = w.observe("observe_x.add", x=per_rank(xs), y=2)
        expect.equal([s["rank"] for s in seen], [0, 1])
        expect.equal({s["kind"] for s in seen} == {"ndarray"}, True)
        expect.close(np.concatenate([s["sum"] for s in seen]), np.concatenate(xs).astype("float64") + 2)
        w.observe("x.keep", ranks=[1], x=b"bytes")
        expect.equal(w.observe("x.kept", ranks=[1]), [b"bytes"])
        """
    )
    assert report["outcome"] == "passed", report
    assert [each["kind"] for each in report["expectations"]] == ["equal", "equal", "close", "equal"]
    assert report["expectations"][2]["line"] == 11 and report["expectations"][2]["ok"]


def test_a_wrong_number_is_the_expectation_s_failure_with_both_sides_told(bench: Bench) -> None:
    report = bench.one(
        """
        w = worlds.open()
        seen = w.observe("observe_x.add", x=np.arange(4.0))
        expect.close(seen[0]["sum"], np.arange(4.0) + 1.5, what="shifted")
        """
    )
    assert (report["outcome"], report["cause"], report["line"]) == ("failed", "expectation", 8)
    assert report["exception"] == "infradev_probe.expect.ExpectationFailed"
    assert report["message"].startswith("shifted: value[0]: |1 - 1.5| = 0.5, allowed")
    last = report["expectations"][-1]
    assert not last["ok"] and last["got"].startswith("float64[4] [1.0, 2.0") and "1.5, 2.5" in last["expected"]


def test_the_seed_makes_the_inputs(bench: Bench) -> None:
    body = "expect.true(False, str(rng.integers(1 << 60)))"
    told = [bench.one(body, seed=seed)["message"] for seed in (5, 5, 2**64 - 1)]
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("assert 1 == 2", "expectation"),
        ("raise KeyError('x')", "judge"),
        ("worlds.open(size=9)", "judge"),
        ("worlds.open(tree='golden')", "judge"),
        ("worlds.open().observe('x.fail')", "world"),
        ("worlds.open().observe('x.no_such')", "world"),
        ("import pytest; pytest.skip('not today')", "judge"),
        ("import sys; sys.exit(0)", "judge"),
        ("raise KeyboardInterrupt", "judge"),
        ("pass", "judge"),
    ],
)
def test_whose_a_failure_is(bench: Bench, body: str, cause: str) -> None:
    report = bench.one(body)
    assert report["outcome"] == ("error" if cause == "judge" else "failed") and report["cause"] == cause, report


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("ValueError", "raised", "rank 0 raised ValueError: capacity is 3"),
        ("SystemExit", "raised", "rank 0 raised SystemExit: 3"),
        ("object", "raised", "value is a builtins.object"),
        ("set", "raised", "value['inner'][1] is a builtins.set"),
        ("exit", "crashed", "rank 0 crashed: exit code 5"),
        ("segv", "crashed", "rank 0 crashed: signal 11"),
    ],
)
def test_what_goes_wrong_on_a_rank_is_told_typed(bench: Bench, how: str, status: str, words: str) -> None:
    report = bench.one(f"worlds.open().observe('x.fail', how={how!r})")
    assert report["cause"] == "world" and words in report["message"], report["message"]
    assert [each["status"] for each in report["ranks"]] == [status, "returned"]
    assert report["exception"] == "infradev_probe.worlds.WorldFailure"


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("module", "missing"),
        ("from", "missing"),
        ("attribute", "missing"),
        ("method", "missing"),
        ("argument", "missing"),
        ("missing argument", "missing"),
        ("init argument", "missing"),
        ("name", "missing"),
        ("inside name", "missing"),
        ("inside attribute", "other"),
        ("inside type", "other"),
        ("hollow", "hollow"),
        ("not implemented", "other"),
    ],
)
def test_a_missing_name_is_told_from_a_wrong_answer(bench: Bench, what: str, kind: str) -> None:
    report = bench.one(f"worlds.open().observe('x.reach', what={what!r})", world=1)
    assert report["ranks"][0]["kind"] == kind, report["ranks"]
    assert "traceback" in report["ranks"][0] and report["ranks"][0]["mro"][-1] == "BaseException"


def test_expected_errors_pass_by_name_base_and_message(bench: Bench) -> None:
    report = bench.one(
        """
        w = worlds.open()
        with expect.raises(w, "ValueError", match="capacity", ranks=[1]):
            w.observe("x.fail", on=[1])
        with expect.raises(w, "Exception"):
            w.observe("x.fail", on=[0, 1])
        """
    )
    assert report["outcome"] == "passed", report


@pytest.mark.parametrize(
    "body",
    [
        "with expect.raises(w, 'ValueError'): w.observe('x.fail', on=[1])",
        "with expect.raises(w, 'KeyError'): w.observe('x.fail', on=[0, 1])",
        "with expect.raises(w, 'ValueError', match='other words'): w.observe('x.fail', on=[0, 1])",
        "with expect.raises(w, 'ValueError'): w.observe('x.fail', on=[])",
        "with expect.raises(w, 'Exception'): w.observe('x.reach', what='attribute')",
        "with expect.raises(w, 'NotImplementedError'): w.observe('x.reach', what='hollow')",
        "with expect.raises(w, 'Exception'): w.observe('x.fail', on=[0, 1], how='exit')",
    ],
)
def test_an_error_other_than_the_expected_fails(bench: Bench, body: str) -> None:
    report = bench.one(f"w = worlds.open()\n{body}")
    assert (report["outcome"], report["cause"]) == ("failed", "expectation"), report


def test_liveness_is_an_expectation(bench: Bench) -> None:
    report = bench.one(
        """
        w = worlds.open()
        with expect.finishes(w, within=20):
            w.observe("x.kept_or_not" if False else "x.keep", x=1)
        with expect.finishes(w, within=0.2):
            w.observe("x.fail", on=[1], how="hang")
        """
    )
    assert (report["outcome"], report["cause"]) == ("failed", "expectation"), report
    assert [each["ok"] for each in report["expectations"]] == [True, False]
    assert [each["status"] for each in report["ranks"]] == ["returned", "timeout"]


def test_several_worlds_handles_kill_and_close(bench: Bench) -> None:
    report = bench.one(
        """
        a, b = worlds.open(), worlds.open(size=1, tree="base")
        expect.equal((a.size, b.size), (2, 1))
        handle = a.start("x.add", x=2)
        expect.equal([v["sum"] for v in handle.wait()], [3, 3])
        expect.equal(handle.poll(), handle.wait())
        a.close()
        b.kill(0)
        try:
            b.observe("x.kept")
        except Exception as failure:
            expect.equal(failure.entries, [{"rank": 0, "status": "gone"}])
        """
    )
    assert report["outcome"] == "passed", report


def test_meters_are_read_around_a_block(bench: Bench) -> None:
    report = bench.one(
        """
        w = worlds.open(network="per_rank")
        with w.meter.traffic(per_rank=True) as t:
            w.observe("x.keep", x=1)
        expect.between(t[1].received, 9, 11)
        expect.between(t.total.sent, 40, 40)
        with w.meter.memory() as m:
            pass
        expect.between(m.peak_bytes, 60, 60)
        """
    )
    assert report["outcome"] == "passed", report
    assert [(each["what"], each["op"]) for each in bench.relayed.meters] == [
        ("traffic", "start"),
        ("traffic", "stop"),
        ("memory", "start"),
        ("memory", "stop"),
    ]


@pytest.mark.parametrize(
    ("body", "decorator"),
    [
        ("pass", ""),
        ("expect.close(1.0, 2.0, atol=10.0)", ""),
        ("expect.between(3, float('-inf'), float('inf'))", ""),
        ("expect.close(np.zeros(0), np.zeros(0))", ""),
        ("expect.equal([], [])", ""),
        ("expect.equal(1, 1, twin=1)", ""),
        ("expect.close(1.0, 1.0)", ", twin=lambda want: want + 1e-17"),
        ("expect.true(True, twin=True)", ""),
    ],
)
def test_a_case_without_teeth_is_an_author_s_error(bench: Bench, body: str, decorator: str) -> None:
    report = bench.one(body, decorator=decorator)
    assert (report["outcome"], report["cause"]) == ("error", "judge")
    assert report["exception"] == "infradev_probe.judge.Toothless", report


@pytest.mark.parametrize(
    "body",
    [
        "expect.close(np.float32([1, 2]), [1.0, 2.0] and np.array([1.0, 2.0]))",
        "expect.close({'a': [np.zeros(3)]}, {'a': [np.zeros(3)]})",
        "expect.equal({'a': (None, 'x')}, {'a': (None, 'x')})",
        "expect.equal(np.array([2**63 - 1]), np.array([2**63 - 1]))",
        "expect.equal(np.array([True]), np.array([True]))",
        "expect.between(3, 2, float('inf'))",
        "expect.close(np.array([1000, 3]), np.array([1001, 3]), rtol=0.01)",
        "expect.true(1 < 2)",
        "expect.close(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))",
    ],
)
def test_a_passing_case_has_its_last_comparison_perturbed(bench: Bench, body: str) -> None:
    report = bench.one(body)
    assert report["outcome"] == "passed", report


def test_an_unknown_case_is_an_error(bench: Bench) -> None:
    bench.judge("@case(worlds=[2], checks='time')\ndef x(worlds): pass")
    with bench.relay(2) as relay:
        assert relay.run("probes/judge_x.py::y[world=2]")["outcome"] == "error"
