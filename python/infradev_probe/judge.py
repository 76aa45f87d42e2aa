"""The judge: a pytest session in the trusted process, where no repository is mounted.

Functions under @case in ``judge_*.py`` are collected for this trial's world size and run one at a time as the harness
asks. A case's failure says whose it is: the expectation's, a rank's, or the judge's own (an author's error, which counts
for nothing).
"""

from __future__ import annotations

import inspect
import os
import signal
import socket
import sys
import time
from typing import Any, Generator

import pytest

from . import expect
from .cases import case_of
from .failures import TRACE_LIMIT, bounded, describe, trace_of
from .frames import ZERO_KEY, Channel, ChannelClosed, FrameError
from .installed import packages
from .worlds import Refused, WorldFailure, Worlds

SCHEMA = 1
_CHUNK = 1000


class Toothless(Exception):
    """A case passed, and would have passed with a wrong expectation too."""


class Line:
    """The judge's requests while a case runs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._calls = 0

    def request(self, header: dict[str, Any], payload: bytes = b"") -> tuple[dict[str, Any], Any]:
        """Send one request and return (header, payload) of its reply; :class:`Refused` if the harness refuses."""
        self._calls += 1
        call = self._calls
        try:
            self._channel.send({**header, "call": call}, payload)
            reply = self._channel.receive()
        except (ChannelClosed, ConnectionError):
            # the harness has given the case up; there is no one to tell
            os._exit(0)
        if reply.header.get("call") != call:
            raise FrameError(f"a reply to call {reply.header.get('call')} where {call} was asked")
        if reply.type == "refused":
            raise Refused(f"{header['type']}: {reply.header.get('message')}")
        return reply.header, reply.payload


class Judge:
    """The pytest plugin of the one session of this process."""

    def __init__(self, channel: Channel, probes: str, world: int, device: str) -> None:
        self._channel, self._probes, self._world, self._device = channel, probes, world, device
        self._line = Line(channel)
        self._seed = 0
        self._errors: list[tuple[str, BaseException]] = []
        self._items: dict[str, pytest.Function] = {}
        self._collected = self._finished = False

    # -- collection --------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, name: str, obj: object) -> list[Any] | None:
        found = case_of(obj)
        if found is None or self._world not in found.worlds:
            return []
        if "worlds" not in inspect.signature(obj).parameters:  # type: ignore[arg-type]
            raise pytest.Collector.CollectError(f"the case {name} must take the argument worlds")
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.parametrize("worlds", [self._world], ids=[f"world={self._world}"], indirect=True)

    @pytest.fixture
    def worlds(self, request: pytest.FixtureRequest) -> Worlds:
        found = case_of(request.function)
        assert found is not None
        return Worlds(self._line, self._world, self._device, found.checks)

    @pytest.fixture
    def rng(self) -> Any:
        """A numpy Generator, seeded afresh for each run by the harness, which writes the seed down."""
        import numpy

        return numpy.random.default_rng(self._seed)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        outcome = yield
        error: BaseException | None = None
        if outcome.excinfo is not None:
            error = outcome.excinfo[1]
            outcome.force_result(pytest.CollectReport(collector.nodeid, "failed", repr(error), None))
        else:
            call = getattr(outcome.get_result(), "call", None)
            if call is not None and call.excinfo is not None:
                error = call.excinfo.value
        if error is not None:
            self._uncollectable(os.path.relpath(str(collector.path), os.path.dirname(self._probes)), error)

    def _uncollectable(self, file: str, error: BaseException) -> None:
        # What pytest raises of a syntax or import error is its own traceback; the cause is what the author wants to read.
        about = describe(error.__cause__ or error, self._probes)
        body = {name: about[name] for name in ("exception", "message", "line")}
        self._channel.send({"type": "uncollectable", "file": file, **body})

    def _tell_collected(self, items: list[Any]) -> None:
        cases = []
        for item in items:
            self._items[self._number(item)] = item
        for number, item in list(self._items.items()):
            found = case_of(item.function)
            assert found is not None
            line = inspect.unwrap(item.function).__code__.co_firstlineno
            body = {"checks": found.checks, "traits": list(found.traits), "worlds": list(found.worlds), "line": line}
            if found.exact is not None:
                body["exact"] = f"{number.split('::')[0]}::{found.exact}[world={self._world}]"
                if body["exact"] not in self._items or body["exact"] == number:
                    error = ValueError(f"exact={found.exact!r} names no other case of the file at world size {self._world}")
                    self._uncollectable(os.path.relpath(str(item.path), os.path.dirname(self._probes)), error)
            cases.append({"id": number, **body})
        chunks = [cases[start : start + _CHUNK] for start in range(0, len(cases), _CHUNK)] or [[]]
        for index, chunk in enumerate(chunks, 1):
            self._channel.send({"type": "collected", "cases": chunk, "more": index < len(chunks)})
        self._collected = True

    def _number(self, item: Any) -> str:
        return f"{os.path.basename(self._probes)}/{os.path.relpath(item.path, self._probes)}::{item.name}"

    # -- the loop ----------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._tell_collected(session.items)
        self._serve()
        return True

    def conclude(self, error: BaseException | None) -> None:
        """After pytest returned: where it never came to the loop, say so, and wait for the end."""
        if not self._collected:
            if error is not None:
                self._uncollectable(os.path.basename(self._probes), error)
            self._tell_collected([])
        if not self._finished:
            self._serve()

    def _serve(self) -> None:
        while True:
            frame = self._channel.receive()
            if frame.type == "finish":
                self._finished = True
                return
            if frame.type != "run":
                raise FrameError(f"unknown message {frame.type!r}")
            number = frame.header["id"]
            self._channel.send({"type": "started", "id": number})
            item = self._items.get(number)
            if item is None:
                error = LookupError("no case of this id was collected")
                report = self._report("error", "judge", error, expect.Recorder(), 0.0)
            else:
                report = self._run(item, frame.header["seed"])
            self._channel.send({"type": "report", "id": number, **report})

    def _run(self, item: pytest.Function, seed: int) -> dict[str, Any]:
        self._seed, self._errors = seed, []
        recorder = expect.Recorder()
        expect._start(recorder)
        began = time.monotonic()
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        except BaseException as error:  # pytest.exit, an interrupt
            self._errors.append(("call", error))
        finally:
            expect._start(None)
        wall_s = time.monotonic() - began
        if not self._errors:
            found = case_of(item.function)
            assert found is not None
            try:
                reason = recorder.toothless(found.twin)
            except Exception as error:
                return self._report("error", "judge", error, recorder, wall_s)
            if reason is None:
                return self._report("passed", None, None, recorder, wall_s)
            return self._report("error", "judge", Toothless(reason), recorder, wall_s)
        phase, first = self._errors[0]
        if isinstance(first, WorldFailure):
            return self._report("failed", "world", first, recorder, wall_s)
        if phase == "call" and isinstance(first, AssertionError):
            return self._report("failed", "expectation", first, recorder, wall_s)
        return self._report("error", "judge", first, recorder, wall_s)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[Any]) -> Generator[None, Any, None]:
        if call.excinfo is not None:
            self._errors.append((call.when, call.excinfo.value))
        yield

    def _report(
        self, outcome: str, cause: str | None, error: BaseException | None, recorder: expect.Recorder, wall_s: float
    ) -> dict[str, Any]:
        about: dict[str, Any] = {"exception": None, "message": "", "file": None, "line": None}
        if error is not None:
            about = describe(error, os.path.dirname(self._probes))
        return {
            "outcome": outcome,
            "cause": cause,
            **about,
            "duration_s": wall_s,
            "longrepr": trace_of(error) if error is not None else "",
            "expectations": recorder.made,
            "expectations_made": recorder.count,
            "ranks": _bounded_entries(getattr(error, "entries", None)),
        }


def _bounded_entries(entries: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    if entries is None:
        return None
    return [
        {key: bounded(value, TRACE_LIMIT) if isinstance(value, str) else value for key, value in entry.items()}
        for entry in entries
    ]


def main() -> None:
    """Entry of the judge process; its control channel's descriptor is in INFRADEV_CONTROL_FD."""
    fd = int(os.environ.pop("INFRADEV_CONTROL_FD"))
    os.set_inheritable(fd, False)
    channel = Channel(socket.socket(fileno=fd), ZERO_KEY)
    try:
        hello = channel.receive()
        if hello.type != "hello" or hello.header.get("schema") != SCHEMA:
            raise FrameError(f"expected hello of schema {SCHEMA}, got {hello.type} {hello.header.get('schema')}")
        channel.rekey(bytes.fromhex(hello.header["key"]))
        probes = os.path.realpath(hello.header["probes"])
        judge = Judge(channel, probes, hello.header["world"], hello.header.get("device", "cpu"))
        began = time.monotonic()
        import numpy  # noqa: F401  (what every judge imports; its time is the judge's, not the first case's)

        import_s = time.monotonic() - began
        python = ".".join(map(str, sys.version_info[:3]))
        channel.send({"type": "ready", "python": python, "packages": packages(), "import_s": import_s})
    except (FrameError, KeyError, ValueError, ImportError, OSError) as error:
        try:
            channel.send({"type": "fault", "message": f"{type(error).__name__}: {error}"[:2000]})
        except OSError:
            pass
        raise
    trouble: BaseException | None = None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's to answer
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = [f"--rootdir={os.path.dirname(probes)}", "-c", os.devnull, "-p", "no:cacheprovider", "--capture=no", "-q"]
    options += ["-o", "python_files=judge_*.py", "-o", "python_functions=*", "-o", "python_classes="]
    try:
        pytest.main([*options, probes], plugins=[judge])
    except BaseException as error:
        trouble = error
    try:
        judge.conclude(trouble)
        channel.send({"type": "bye"})
    except ChannelClosed:
        pass
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
