"""Official mode: what pytest says on a rank, under everything that tests do."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Iterator

import pytest
from driver import Harness, RankEnd, collect, finish, run_all, run_case


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(tmp_path_factory.mktemp("official")) as harness:
        yield harness


class Tree:
    def __init__(self, root: Path, harness: Harness) -> None:
        self.root, self.harness = root, harness

    def write(self, name: str, source: str) -> Tree:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return self

    def open(self, *files: str, **options: Any) -> tuple[RankEnd, list[str], dict[str, dict[str, Any]]]:
        launched = self.harness.official(self.root, list(files), **options)
        self.launched = launched
        ids, failures, self.begun = collect(launched.ranks[0])
        return launched.ranks[0], ids, failures

    def outcomes(self, *files: str, **options: Any) -> dict[str, str]:
        """Outcomes by the part of the id after ``::``, all cases run in order."""
        end, ids, failures = self.open(*files, **options)
        assert not failures, failures
        self.reports = {key.split("::", 1)[1]: report for key, report in run_all(end, ids).items()}
        finish(end)
        self.harness.end(self.launched)
        return {key: report["outcome"] for key, report in self.reports.items()}


@pytest.fixture
def tree(tmp_path: Path, harness: Harness) -> Tree:
    root = tmp_path / "tree"
    root.mkdir()
    return Tree(root, harness)


def test_each_kind_of_end_has_its_outcome(tree: Tree) -> None:
    tree.write(
        "test_x.py",
        """
        import sys, unittest, pytest
        @pytest.fixture
        def broken(): raise ValueError("no fixture")
        @pytest.fixture
        def late():
            yield
            raise ValueError("late")
        def test_pass(): pass
        def test_fail(): assert 1 == 2
        def test_skip(): pytest.skip("not here")
        @pytest.mark.skip(reason="mark")
        def test_skip_mark(): pass
        @pytest.mark.xfail
        def test_xfail(): assert 0
        @pytest.mark.xfail
        def test_xpass(): pass
        @pytest.mark.xfail(strict=True)
        def test_xpass_strict(): pass
        @pytest.mark.xfail(raises=KeyError)
        def test_xfail_other(): raise ValueError
        @pytest.mark.xfail(run=False)
        def test_xfail_norun(): pass
        def test_xfail_call(): pytest.xfail("dyn")
        def test_setup(broken): pass
        def test_teardown(late): pass
        def test_exit(): sys.exit(0)
        def test_interrupt(): raise KeyboardInterrupt
        def test_pytest_exit(): pytest.exit("stop")
        def test_after(): pass
        def test_no_fixture(nothing): pass
        class T(unittest.TestCase):
            def test_u_pass(self): pass
            def test_u_fail(self): self.assertEqual(1, 2)
            def test_u_skip(self): self.skipTest("u")
            @unittest.expectedFailure
            def test_u_xfail(self): self.fail()
            @unittest.expectedFailure
            def test_u_xpass(self): pass
            def test_u_sub(self):
                for i in range(3):
                    with self.subTest(i=i): self.assertNotEqual(i, 1)
        """,
    )
    assert tree.outcomes("test_x.py") == {
        "test_pass": "passed",
        "test_fail": "failed",
        "test_skip": "skipped",
        "test_skip_mark": "skipped",
        "test_xfail": "xfailed",
        "test_xpass": "xpassed",
        "test_xpass_strict": "failed",
        "test_xfail_other": "failed",
        "test_xfail_norun": "xfailed",
        "test_xfail_call": "xfailed",
        "test_setup": "error",
        "test_teardown": "error",
        "test_exit": "failed",
        "test_interrupt": "failed",
        "test_pytest_exit": "failed",
        "test_after": "passed",
        "test_no_fixture": "error",
        "T::test_u_pass": "passed",
        "T::test_u_fail": "failed",
        "T::test_u_skip": "skipped",
        "T::test_u_xfail": "xfailed",
        "T::test_u_xpass": "failed",
        "T::test_u_sub": "failed",
    }
    fail = tree.reports["test_fail"]
    assert (fail["exception"], fail["file"], fail["line"]) == ("AssertionError", "test_x.py", 10)
    assert fail["message"].startswith("assert 1 == 2") and "def test_fail" in fail["longrepr"]
    assert tree.reports["test_exit"]["exception"] == "SystemExit"
    assert tree.reports["test_interrupt"]["exception"] == "KeyboardInterrupt"
    assert tree.reports["test_skip"]["exception"] == "Skipped" and tree.reports["test_skip"]["message"] == "not here"
    assert tree.reports["test_setup"]["message"] == "no fixture"
    assert tree.reports["test_teardown"]["message"] == "late"
    assert tree.reports["test_no_fixture"]["message"] == "fixture 'nothing' not found"
    assert [name for name, report in tree.reports.items() if report["rewritten"]] == []


def test_fixtures_live_as_long_as_upstream_s(tree: Tree) -> None:
    tree.write(
        "conftest.py",
        """
        import pytest
        @pytest.fixture(scope="session", autouse=True)
        def whole():
            print("session up", flush=True); yield; print("session down", flush=True)
        """,
    )
    for name in "ab":
        tree.write(
            f"test_{name}.py",
            f"""
            import pytest
            @pytest.fixture(scope="module", autouse=True)
            def part():
                print("{name} up", flush=True); yield; print("{name} down", flush=True)
            def test_1(): print("1", flush=True)
            def test_2(): print("2", flush=True)
            """,
        )
    tree.outcomes("test_a.py", "test_b.py")
    told = [line.lstrip(".") for line in tree.launched.ranks[0].log.read_text().splitlines()]
    told = [line for line in told if line.split()[-1:] in (["up"], ["down"]) or line in ("1", "2")]
    assert told == ["session up", "a up", "1", "2", "a down", "b up", "1", "2", "b down", "session down"]


def test_another_case_than_the_promised_one_still_runs(tree: Tree) -> None:
    source = """
        import pytest
        @pytest.fixture(scope="module", autouse=True)
        def part(): yield
        def test_1(caplog): pass
        def test_2(caplog): pass
        """
    tree.write("test_a.py", source).write("test_b.py", source)
    end, ids, _ = tree.open("test_a.py", "test_b.py")
    assert run_case(end, ids[0], ids[1])["outcome"] == "passed"
    assert run_case(end, ids[3], ids[2])["outcome"] == "passed"
    assert run_case(end, ids[3], None)["outcome"] == "passed"
    assert run_case(end, "test_a.py::test_9")["outcome"] == "not_collected"
    assert run_case(end, ids[0], "test_a.py::test_9")["outcome"] == "passed"
    finish(end)


def test_a_file_that_does_not_collect_costs_no_other(tree: Tree) -> None:
    tree.write("test_good.py", "def test_a(): pass\n")
    tree.write("test_import.py", "import math\nimport no_such_module\n")
    tree.write("test_syntax.py", "def test_a(:\n")
    tree.write("test_exit.py", "import sys\nsys.exit(3)\n")
    tree.write("test_interrupt.py", "raise KeyboardInterrupt\n")
    tree.write("test_pytest_exit.py", "import pytest\npytest.exit('all of it')\n")
    tree.write("test_skipped.py", "import pytest\npytest.skip('no gpu', allow_module_level=True)\n")
    tree.write("test_raises.py", "x = 1\nraise ValueError('at import')\n")
    tree.write("pkg/__init__.py", "raise RuntimeError('package')\n").write("pkg/test_p.py", "def test_a(): pass\n")
    tree.write("sub/conftest.py", "import also_missing\n").write("sub/test_s.py", "def test_a(): pass\n")
    tree.write("exits/conftest.py", "import sys; sys.exit(1)\n").write("exits/test_e.py", "def test_a(): pass\n")
    names = "import syntax exit interrupt pytest_exit skipped raises".split()
    files = [f"test_{name}.py" for name in names] + ["pkg/test_p.py", "sub/test_s.py", "test_gone.py", "test_good.py"]
    end, ids, failures = tree.open(*files)
    assert ids == ["test_good.py::test_a"]
    assert set(failures) == set(files) - {"test_good.py"}
    assert {name: failure["exception"] for name, failure in failures.items()} == {
        "test_import.py": "ModuleNotFoundError",
        "test_syntax.py": "SyntaxError",
        "test_exit.py": "SystemExit",
        "test_interrupt.py": "KeyboardInterrupt",
        "test_pytest_exit.py": "_pytest.outcomes.Exit",
        "test_skipped.py": "Skipped",
        "test_raises.py": "ValueError",
        "pkg/test_p.py": "RuntimeError",
        "sub/test_s.py": "ModuleNotFoundError",
        "test_gone.py": "FileNotFoundError",
    }
    assert "also_missing" in failures["sub/test_s.py"]["message"]
    assert failures["test_raises.py"]["line"] == 2
    assert tree.begun == [f"test_{name}.py" for name in names] + ["pkg/test_p.py", "test_good.py"]
    assert run_case(end, ids[0])["outcome"] == "passed"
    finish(end)


@pytest.mark.parametrize(
    ("conftest", "exception"),
    [
        ("import sys; sys.exit(1)", "SystemExit"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("raise RuntimeError('root')", "RuntimeError"),
        ("import pytest; pytest.skip('x', allow_module_level=True)", "Skipped"),
        ("pytest_plugins = ['no_such_plugin']", "ModuleNotFoundError"),
        ("def pytest_collection(): raise RuntimeError('hook')", "RuntimeError"),
        ("def pytest_configure(): raise RuntimeError('hook')", "RuntimeError"),
        ("import pytest\ndef pytest_configure(): raise pytest.UsageError('usage')", "UsageError"),
    ],
)
def test_a_root_conftest_that_breaks_the_session_is_told_for_each_file(
    tree: Tree, conftest: str, exception: str
) -> None:
    tree.write("conftest.py", conftest).write("test_a.py", "def test_a(): pass").write("test_b.py", "def test_a(): pass")
    end, ids, failures = tree.open("test_a.py", "test_b.py")
    assert ids == []
    assert sorted(failures) == ["test_a.py", "test_b.py"]
    # pytest's own types live in other modules from version to version
    assert {failure["exception"].rpartition(".")[2] for failure in failures.values()} == {exception}
    assert run_case(end, "test_a.py::test_a")["outcome"] == "not_collected"
    finish(end)


def test_a_plugin_that_is_not_installed_is_told(tree: Tree) -> None:
    tree.write("test_a.py", "def test_a(): pass")
    end, ids, failures = tree.open("test_a.py", plugins=["no_such_plugin"])
    assert ids == [] and "no_such_plugin" in failures["test_a.py"]["message"]
    finish(end)


def test_a_plugin_given_by_name_is_loaded(tree: Tree) -> None:
    tree.write("their_plugin.py", "import pytest\n@pytest.fixture\ndef seven(): return 7\n")
    tree.write("test_a.py", "def test_a(seven): assert seven == 7")
    assert tree.outcomes("test_a.py", plugins=["their_plugin"]) == {"test_a": "passed"}


REWRITERS = {
    "makereport wrapper": """
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            outcome = yield
            report = outcome.get_result(); report.outcome = "passed"; report.longrepr = None
        """,
    "excinfo taken away": """
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            call.excinfo = None
            yield
        """,
    "makereport replaced": """
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_makereport(item, call):
            return pytest.TestReport(item.nodeid, item.location, {}, "passed", None, call.when)
        """,
    "logreport": """
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(report): report.outcome = "passed"
        """,
    "call swallowed": """
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_call(item):
            outcome = yield
            outcome.force_result(None)
        """,
}


@pytest.mark.parametrize("way", REWRITERS)
def test_a_hook_that_turns_failures_into_passes_is_seen(tree: Tree, way: str) -> None:
    tree.write("conftest.py", "import pytest\n" + textwrap.dedent(REWRITERS[way]))
    tree.write("test_a.py", "def test_good(): pass\ndef test_bad(): assert 1 == 2, 'kept'\n")
    assert tree.outcomes("test_a.py") == {"test_good": "passed", "test_bad": "failed"}
    assert [report["rewritten"] for report in tree.reports.values()] == [False, True]
    assert tree.reports["test_bad"]["message"].startswith("kept")


def test_a_hook_that_takes_the_runner_s_place_never_passes(tree: Tree) -> None:
    tree.write(
        "conftest.py",
        """
        import pytest
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item, nextitem):
            for when in ("setup", "call", "teardown"):
                item.ihook.pytest_runtest_logreport(
                    report=pytest.TestReport(item.nodeid, item.location, {}, "passed", None, when))
            return True
        """,
    )
    tree.write("test_a.py", "def test_bad(): assert 0\n")
    assert tree.outcomes("test_a.py") == {"test_bad": "error"}
    assert tree.reports["test_bad"]["rewritten"]


def test_ids_are_verbatim_and_long_texts_bounded(tree: Tree) -> None:
    tree.write("pytest.ini", "[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = True\n")
    tree.write(
        "test_a.py",
        """
        import pytest
        @pytest.mark.parametrize("x", ["é ü", "a/b::c", "line\\nbreak", "\\udc80", "y" * 5000, '"quote"', "[]"], ids=str)
        def test_id(x): assert not x, "m" * 100_000
        class Rude(Exception):
            def __str__(self): raise RuntimeError("no text")
        def test_rude(): raise Rude
        """,
    )
    end, ids, _ = tree.open("test_a.py")
    names = [number.split("::", 1)[1] for number in ids]
    assert names[0] == "test_id[é ü]" and names[1] == "test_id[a/b::c]" and "\\udc80" in names[3]
    assert len(names[4]) == 5000 + len("test_id[]")
    for number in ids:
        report = run_case(end, number)
        assert report["outcome"] == "failed"
        assert len(report["message"]) <= 2000 and len(report["longrepr"]) <= 16_000
    assert report["exception"] == "test_a.Rude"
    finish(end)


def test_many_cases_come_in_chunks(tree: Tree) -> None:
    tree.write("test_a.py", "import pytest\n@pytest.mark.parametrize('i', range(2500))\ndef test_i(i): pass\n")
    end, ids, _ = tree.open("test_a.py")
    assert len(ids) == len(set(ids)) == 2500
    finish(end)


def test_warnings_as_errors_in_the_ini_do_not_reach_the_kit(tree: Tree) -> None:
    tree.write("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "-x --nonsense"\nfilterwarnings = ["error"]\ncache_dir = "x"\nno_such_option = 3\n')
    tree.write("test_a.py", "import warnings\ndef test_a(): pass\ndef test_b(): warnings.warn('now')\ndef test_c(): pass\n")
    assert tree.outcomes("test_a.py") == {"test_a": "passed", "test_b": "failed", "test_c": "passed"}


def test_names_that_would_resolve_elsewhere_are_told(tree: Tree) -> None:
    tree.write("mine/__init__.py", "").write("space/mod.py", "").write("alone.py", "").write("pytest/__init__.py", "")
    tree.write("test_a.py", "def test_a(): pass")
    end, _, _ = tree.open("test_a.py", top_level=["mine", "space", "alone", "pytest", "nothing"])
    assert end.hello is not None and end.hello.header["outside"] == ["pytest", "nothing"]
    finish(end)


def test_a_skip_on_one_rank_is_that_rank_s(tree: Tree) -> None:
    tree.write("test_a.py", "import os, pytest\ndef test_a():\n    if os.environ['RANK'] == '1': pytest.skip('me')\n")
    launched = tree.harness.official(tree.root, ["test_a.py"], size=3)
    outcomes = []
    for end in launched.ranks:
        ids, _, _ = collect(end)
        outcomes.append(run_case(end, ids[0])["outcome"])
    assert outcomes == ["passed", "skipped", "passed"]
    tree.harness.end(launched)


def test_a_test_that_patches_json_sockets_and_hashlib_changes_no_report(tree: Tree) -> None:
    tree.write(
        "test_a.py",
        """
        import hashlib, json, os, socket, struct, time, traceback
        def no(*a, **k): raise RuntimeError("patched")
        def test_a():
            for owner, names in ((json, ["dumps", "loads"]), (json.JSONEncoder, ["encode", "iterencode"]),
                    (json.JSONDecoder, ["decode", "raw_decode"]), (socket.socket, ["sendmsg", "recvmsg", "send"] ),
                    (hashlib, ["blake2s"]), (struct, ["pack", "unpack"]), (traceback, ["format_exception", "walk_tb"])):
                for name in names:
                    try: setattr(owner, name, no)
                    except (TypeError, AttributeError): pass
        def test_b(): assert 0
        """,
    )
    end, ids, _ = tree.open("test_a.py")
    end.channel.send({"type": "run", "id": ids[0], "next": ids[1]})
    end.expect("started")
    assert end.expect("report").header["outcome"] == "passed"


def test_asyncio_tests_run_under_their_plugin_given_by_name(tree: Tree) -> None:
    pytest.importorskip("pytest_asyncio")
    tree.write("pytest.ini", "[pytest]\nasyncio_mode = auto\n")
    tree.write("test_a.py", "import asyncio\nasync def test_good(): await asyncio.sleep(0)\nasync def test_bad(): assert 0\n")
    assert tree.outcomes("test_a.py", plugins=["pytest_asyncio"]) == {"test_good": "passed", "test_bad": "failed"}


def test_a_case_that_finds_the_plugin_cannot_report_through_it(tree: Tree) -> None:
    tree.write(
        "test_a.py",
        """
        import sys, gc
        def test_forges(request):
            forged = {"type": "report", "id": request.node.nodeid, "outcome": "passed"}
            for plugin in request.config.pluginmanager.get_plugins():
                if hasattr(plugin, "_tell"):
                    try: plugin._tell(forged)
                    except RuntimeError as refused: assert "while a case runs" in str(refused)
                    else: raise SystemExit("told")
            frame, seen = sys._getframe(), []
            while frame:
                seen += [type(value).__name__ for value in frame.f_locals.values()]
                frame = frame.f_back
            assert "Official" in seen and not {"Channel", "socket", "Launcher"} & set(seen)
            assert 0, "an honest end"
        """,
    )
    assert tree.outcomes("test_a.py") == {"test_forges": "failed"}
    assert "an honest end" in tree.reports["test_forges"]["message"]


def test_what_a_case_prints_before_it_dies_is_in_its_log(tree: Tree) -> None:
    tree.write("test_a.py", "import os\ndef test_a():\n    print('last words')\n    os._exit(3)\n")
    end, ids, _ = tree.open("test_a.py")
    end.channel.send({"type": "run", "id": ids[0], "next": None})
    assert tree.harness.exit_of(tree.launched.number, 0) == (3, None)
    assert "last words" in end.log.read_text()
    tree.harness.end(tree.launched)


def test_a_child_that_comes_out_of_its_case_tells_nothing(tree: Tree) -> None:
    tree.write(
        "test_x.py",
        """
        import os, pytest
        def test_child_fails():
            pid = os.fork()
            if pid == 0:
                raise ValueError("the child's own")
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
        def test_child_passes():
            pid = os.fork()
            if pid:
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
                pytest.xfail("the parent's own")
        def test_after(): pass
        """,
    )
    assert tree.outcomes("test_x.py") == {"test_child_fails": "passed", "test_child_passes": "xfailed", "test_after": "passed"}


def test_the_last_word_has_the_status_of_the_session_and_whether_a_hook_made_it(tree: Tree) -> None:
    tree.write("test_x.py", "def test_pass(): pass")
    for hook, told in (("", (0, False)), ("def pytest_sessionfinish(session): session.exitstatus = 3", (3, True))):
        tree.write("conftest.py", hook)
        end, ids, _ = tree.open("test_x.py")
        run_all(end, ids)
        end.channel.send({"type": "finish"})
        bye = end.expect("bye").header
        assert (bye["exit"], bye["hooked"]) == told
        tree.harness.end(tree.launched)
