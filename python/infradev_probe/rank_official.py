"""Official mode: upstream's tests under pytest in this rank, one case at a time as the harness asks.

Collection and teardown are pytest's own: a case runs with the ``nextitem`` that the harness names, so that module and
session fixtures live as long as they do upstream. Where a later case turns out to be another one, what it does not
share is torn down first. Failures of collection, whatever raises them (a module, a conftest, an ``__init__``,
``sys.exit`` at import), cost the files below them and no others.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.metadata
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterable, NoReturn

import pytest

from .failures import describe, frames_of, message_of
from .frames import Channel, Frame
from .outcomes import CaseRecord

if TYPE_CHECKING:
    from .reach import Reach

_CHUNK = 1000
_STACK = 4
_now, _exit, _pid = time.monotonic, os._exit, os.getpid
#: Hooks by which a conftest or a plugin may decide how the session ends, after the last case.
_AT_END = ("pytest_runtestloop", "pytest_sessionfinish", "pytest_terminal_summary", "pytest_unconfigure")
Tell = Callable[[dict[str, Any]], None]


def preload() -> None:
    """Import what every pytest session loads, once, in the launcher."""
    from _pytest import config

    for name in config.default_plugins:
        importlib.import_module(f"_pytest.{name}")
    for name in ("_pytest.assertion.rewrite", "_pytest._py.path", "_pytest.python_api", "unittest.case", "doctest"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def run(job: list[Any]) -> None:
    """Serve the channel of ``job`` ([channel, args], emptied) until ``finish``, then end the process."""
    from .rank_setup import followed, outside

    args: dict[str, Any] = job.pop()
    root, files = args["root"], list(args["files"])
    strangers = outside(args["top_level"], args["import_roots"])
    if args["mode"] == "template":
        from .template import Template

        session: Official = Template(job.pop(), args, strangers)
    else:
        session = Official(job.pop(), root, files, followed(args))
        session._tell({"type": "hello", "rank": args["rank"], "pid": os.getpid(), "outside": strangers})
    present = [file for file in files if os.path.exists(os.path.join(root, file))]
    sys.argv = ["pytest", *present]
    for file in files:
        if file not in present:
            session.tell_uncollectable([file], "FileNotFoundError", f"{file} is not in the tree", None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    arguments = [f"--rootdir={root}", "-o", "addopts=", "-p", "no:cacheprovider", "--import-mode=append"]
    # options of plugins that are not loaded are unknown here; where warnings are errors that would end the session
    arguments += ["--capture=no", "-q", "-W", "ignore::pytest.PytestConfigWarning"]
    for name in args["plugins"]:
        arguments += ["-p", _plugin(name)]
    status = 0
    if present:
        try:
            status = int(pytest.main(arguments + present, plugins=[session]))
        except BaseException as error:  # sys.exit in a conftest, an internal error of a plugin
            traceback.print_exc()
            session.note(error)
            status = 1
    session.conclude()
    sys.stdout.flush()
    sys.stderr.flush()
    session._tell({"type": "bye", "exit": status, "hooked": session.hooked})
    _exit(0)


def _gated(channel: Channel) -> tuple[Tell, Callable[[], Frame], Callable[[bool], None]]:
    """(tell, ask, shut): the channel in closures, nothing to be told while shut, and no word with another process than this one."""
    send, receive, closed, owner, pid, leave = channel.send, channel.receive, False, _pid(), _pid, _exit

    def tell(message: dict[str, Any]) -> None:
        if pid() != owner:  # a child that a module or a case forked, and that runs on here
            leave(1)
        if closed:
            raise RuntimeError("nothing is told while a case runs")
        send(message)

    def ask() -> Frame:
        if pid() != owner:
            leave(1)
        return receive()

    def shut(value: bool) -> None:
        nonlocal closed
        closed = value

    return tell, ask, shut


def _plugin(name: str) -> str:
    """The name by which pytest loads a plugin: its entry point's, where ``name`` is its package or distribution."""
    module = name.replace("-", "_")
    entries = importlib.metadata.entry_points(group="pytest11")
    if name in {entry.name for entry in entries}:
        return name
    return next((entry.name for entry in entries if entry.value.split(".")[0].split(":")[0] == module), name)


class Official:
    """The pytest plugin, and the state of the one session of this process."""

    def __init__(self, channel: Channel, root: str, files: list[str], reach: Reach | None = None) -> None:
        self._root, self._files, self._reach = root, files, reach
        self._places = {file: os.path.realpath(os.path.join(root, file)) for file in files}
        self._known: dict[str, list[str]] = {}
        self._told: set[str] = set()  # files with an uncollectable message or an item
        self._begun: set[str] = set()
        self._broken: set[str] = set()  # files below a conftest that failed when pytest started
        self._trouble: BaseException | None = None
        self._collected = False
        self._finished = False
        self._items: dict[str, pytest.Item] = {}
        self._session: Any = None
        self._record: CaseRecord | None = None
        self._promised: tuple[pytest.Item, pytest.Item | None] | None = None
        self.hooked = False  # whether a conftest or a plugin that is not pytest's has a say when the session ends
        self._tell, self._ask, self._shut = _gated(channel)

    # -- collection --------------------------------------------------------------------------------------------------

    def note(self, error: BaseException) -> None:
        """Remember why the session could not go on; told for every file that has nothing else."""
        if self._trouble is None:
            self._trouble = error

    def tell_uncollectable(self, files: Iterable[str], exception: str, message: str, line: int | None) -> None:
        for file in files:
            if file in self._broken:  # told already, when pytest started
                continue
            self._told.add(file)
            self._tell(
                {"type": "uncollectable", "file": file, "exception": exception, "message": message[:2000], "line": line}
            )

    def _below(self, path: str) -> list[str]:
        """The given files that are ``path`` or lie below the folder ``path``."""
        if path not in self._known:  # asked once for each item
            real = os.path.realpath(os.path.join(self._root, path))
            folder = real.rstrip("/") + os.sep
            self._known[path] = [file for file, place in self._places.items() if place == real or place.startswith(folder)]
        return self._known[path]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Generator[None, Any, None]:
        outcome = yield
        if outcome.excinfo is not None:
            # pytest would give up on every file; only those below the conftest lost what they need
            error = outcome.excinfo[1]
            traceback.print_exception(*outcome.excinfo)
            outcome.force_result(None)
            lost = self._below(self._conftest_of(error))
            self._tell_error(lost, error)
            self._broken.update(lost)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        if self._broken:  # before pytest 8 such a file would end the whole collection
            config.args = [name for name in config.args if not self._broken.intersection(self._below(name))]

    def _conftest_of(self, error: BaseException) -> str:
        """The folder whose conftest raised ``error`` as pytest started; the root where it does not show."""
        path = getattr(error, "path", None)
        if path is None:
            base = os.path.realpath(self._root) + os.sep
            for file, _, _ in reversed(frames_of(error.__traceback__)):
                if os.path.basename(file) == "conftest.py" and os.path.realpath(file).startswith(base):
                    path = file
                    break
        return self._root if path is None else os.path.dirname(str(path))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_cmdline_main(self) -> Generator[None, Any, None]:
        outcome = yield
        if outcome.excinfo is not None:
            self.note(outcome.excinfo[1])

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_cmdline_parse(self) -> Generator[None, Any, None]:
        outcome = yield
        if outcome.excinfo is not None:
            self.note(outcome.excinfo[1])

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.note(excinfo.value)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        # pytest's own faulthandler plugin has just pointed fatal signals at a copy of stderr
        faulthandler.enable(file=_STACK, all_threads=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if isinstance(collector, pytest.File):
            for file in self._below(str(collector.path)):
                if file not in self._begun:
                    self._begun.add(file)
                    self._tell({"type": "collecting", "file": file})

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        outcome = yield
        error = outcome.excinfo[1] if outcome.excinfo is not None else None
        if error is None:
            report = outcome.get_result()
            call = getattr(report, "call", None)
            if call is None or call.excinfo is None:
                return
            error = call.excinfo.value
        else:  # sys.exit or an interrupt at import: an error of this file, not the end of the session
            outcome.force_result(pytest.CollectReport(collector.nodeid, "failed", repr(error), None))
        self._tell_error(self._below(str(getattr(collector, "path", self._root))), error)

    def _tell_error(self, files: list[str], error: BaseException) -> None:
        # pytest wraps what a conftest or a module raised; the cause names the culprit
        cause = getattr(error, "cause", None)
        cause = cause if isinstance(cause, BaseException) else error.__cause__ or error
        about = describe(cause, self._root)
        # of a wrapped error pytest's own message is a whole traceback
        message = about["message"] or message_of(error)
        self.tell_uncollectable(files, about["exception"], message, about["line"])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        session = self._session
        if session is not None and report.nodeid == session.nodeid and getattr(session, "_notfound", None):
            # pytest would end the session here, for a file that its configuration or a broken folder hides
            for argument, _ in session._notfound:
                files = [file for file in self._below(str(argument).split("::")[0]) if file not in self._told]
                self.tell_uncollectable(files, "NotFound", f"pytest finds no collector for {argument}", None)
            session._notfound = []

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, None]:
        outcome = yield
        if outcome.excinfo is not None:
            self.note(outcome.excinfo[1])

    def _tell_collected(self, items: list[pytest.Item]) -> None:
        for item in items:
            files = self._below(str(item.path))
            if not self._broken.intersection(files):
                self._items.setdefault(wire_id(item), item)
                self._told.update(files)
        self._tell_missing()
        ids = list(self._items)
        chunks = [ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK)] or [[]]
        for number, chunk in enumerate(chunks, 1):
            self._tell({"type": "collected", "ids": chunk, "more": number < len(chunks)})
        self._collected = True

    def _tell_missing(self) -> None:
        if self._trouble is not None:
            self._tell_error([file for file in self._files if file not in self._told], self._trouble)

    # -- the loop ----------------------------------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, None]:
        self._tell_collected(session.items)
        self._serve(session)
        self.hooked = _is_hooked(session.config)
        session.items = []  # for the loops of pytest and of plugins nothing is left
        session.testsfailed = 0
        yield

    def conclude(self) -> None:
        """After pytest returned: where it never came to the loop, say so and wait for the end."""
        if not self._collected:
            self._tell_collected([])
        if not self._finished:
            self._serve(None)

    def _serve(self, session: pytest.Session | None) -> None:
        while True:
            frame = self._ask()
            if frame.type == "finish":
                self._finished = True
                return
            if frame.type != "run":
                raise RuntimeError(f"unknown message {frame.type!r}")
            number = frame.header["id"]
            item = self._items.get(number)
            if item is None or session is None:
                self._tell(_not_collected(number))
                continue
            following = self._items.get(frame.header.get("next") or "")
            self._tell({"type": "started", "id": number})
            self._settle(session, item)
            message = self._run(item, following)
            self._promised = (item, following)
            self._tell({"type": "report", "id": number, **message})

    def _settle(self, session: pytest.Session, item: pytest.Item) -> None:
        """Where another case than the promised one follows, tear down what it does not share."""
        if self._promised is None or self._promised[1] is item:
            return
        try:
            session._setupstate.teardown_exact(item)
        except BaseException:  # belongs to cases already told; the log keeps it
            traceback.print_exc()

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> dict[str, Any]:
        record = self._record = CaseRecord(item.nodeid, self._root)
        began, rank = _now(), _pid()
        self._shut(True)
        try:
            with self._reach.case() if self._reach else contextlib.nullcontext():
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException as error:  # pytest.exit and interrupts leave pytest's runner, without teardown
            record.escaped(error)
            try:
                item.session._setupstate.teardown_exact(following)
            except BaseException:
                traceback.print_exc()
        finally:
            self._shut(False)
            self._record = None
        if _pid() != rank:
            _leave(record)
        item.session.shouldstop = item.session.shouldfail = False
        message = record.message(_now() - began)
        return {**message, "reached": self._reach.take()} if self._reach else message

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, None]:
        wider = self._reach is not None and fixturedef.scope != "function"
        with self._reach.shared() if self._reach and wider else contextlib.nullcontext():
            yield

    # -- sensors -----------------------------------------------------------------------------------------------------
    # innermost around setup, call and teardown: what they raise before any other hook can swallow it

    def _sense(self, phase: str, outcome: Any) -> None:
        if self._record is not None and outcome.excinfo is not None:
            self._record.raised(phase, outcome.excinfo[1])

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, None]:
        self._sense("setup", (yield))

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None, Any, None]:
        self._sense("call", (yield))

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, None]:
        self._sense("teardown", (yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        record = self._record
        if record is not None:
            record.called(call)
        outcome = yield
        if record is not None:
            record.called(call)  # pytest's unittest support puts the exception in only now
            if outcome.excinfo is None:
                record.reported(outcome.get_result(), made=True)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._record is not None:
            self._record.reported(report)


def _leave(record: CaseRecord) -> NoReturn:
    """End a child that a case forked and that came out of it: under pytest it would run the other cases, too, and end with 1 where
    one fails. What it makes of the case is not the rank's report."""
    outcome = record.message(0.0)["outcome"]
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _exit(0 if outcome in ("passed", "skipped", "xfailed") else 1)


def _is_hooked(config: pytest.Config) -> bool:
    own = ("_pytest.", "infradev_probe.")
    for name in _AT_END:
        for found in getattr(config.hook, name).get_hookimpls():
            if not str(getattr(found.function, "__module__", "")).startswith(own):
                return True
    return False


def wire_id(item: pytest.Item) -> str:
    """The node id; what UTF-8 can't carry (lone surrogates) is written as an escape."""
    return item.nodeid.encode("utf-8", "backslashreplace").decode("utf-8")


def _not_collected(number: str) -> dict[str, Any]:
    return {
        "type": "report",
        "id": number,
        "outcome": "not_collected",
        "exception": None,
        "message": "no case of this id was collected on this rank",
        "file": None,
        "line": None,
        "duration_s": 0.0,
        "longrepr": "",
        "rewritten": False,
    }
