"""Which lines of some files run, told case by case: for the one run of golden that decides which cases a mutant needs.

Lines that run while modules are imported, tests are collected and wider fixtures are set up belong to no case alone: they
count for every case (``shared``). Threads that Python starts are followed, other processes are not: a case that
starts one is ``wide``, it may reach anything, and so may all where a module or a wider fixture starts a Python, or one of
:mod:`multiprocessing`'s outlives its case. What torch would compile (``torch.compile``, ``torch.jit.script``) is run as it is written. Before Python 3.12 threads that a library starts of itself (autograd's for
a device) are not followed either.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib.machinery
import multiprocessing.process
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Iterator, Sequence

_STARTS_PROCESSES = ("os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.spawn", "os.system", "subprocess.Popen")
Line = tuple[int, int]


class Places:
    """Files by whatever path leads to them: a module that was found by ``tests/..`` or through a link says so in its code."""

    def __init__(self, files: Sequence[str]) -> None:
        self._real = {os.path.realpath(file): index for index, file in reversed(list(enumerate(files)))}
        self._known: dict[str, int | None] = {file: index for index, file in enumerate(files)}

    def of(self, path: str) -> int | None:
        """The number of the file that a path leads to."""
        try:
            return self._known[path]
        except KeyError:
            found = None if path.startswith("<") else self._real.get(os.path.realpath(path))
            self._known[path] = found
            return found


class Reach:
    """Follows the lines of ``files`` (absolute paths) from :meth:`start` on; a line is (index of its file, number)."""

    def __init__(self, files: Sequence[str]) -> None:
        self._index = Places(files)
        self._own: set[Line] = set()
        self._shared: set[Line] = set()
        self._told: set[Line] = set()
        self._wide = False
        self._all_wide = False
        self._depth = 1  # above 0: what runs belongs to every case
        self._traces = False

    def start(self) -> None:
        _compile_nothing()
        sys.addaudithook(self._audit)
        self._watch_imports()
        self._watch_processes()
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is not None and monitoring.get_tool(monitoring.COVERAGE_ID) is None:
            self._monitor(monitoring)
        else:
            self._traces = True
            threading.settrace(self._enter)
            sys.settrace(self._enter)
            self._watch_threads()

    @contextlib.contextmanager
    def case(self) -> Iterator[None]:
        """What runs inside belongs to one case; :meth:`take` it afterwards."""
        self._depth -= 1
        try:
            yield
        finally:
            self._depth += 1

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """What runs inside belongs to every case."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def take(self) -> dict[str, Any]:
        """The lines of the case that ran, and the shared ones not told before."""
        if self._traces and sys.gettrace() != self._enter:  # a test took the place of the tracer
            self._wide = True
            sys.settrace(self._enter)
        self._all_wide = self._all_wide or bool(multiprocessing.process.active_children())
        shared = self._shared - self._told
        self._told |= shared
        reached = {"own": sorted(self._own), "shared": sorted(shared), "wide": self._wide or self._all_wide}
        self._own, self._wide = set(), False
        return reached

    # -- what runs ---------------------------------------------------------------------------------------------------

    def _add(self, line: Line) -> None:
        (self._shared if self._depth > 0 else self._own).add(line)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        index = self._index.of(frame.f_code.co_filename)
        if index is None:
            return None
        add = self._add

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                add((index, frame.f_lineno))
            return line

        add((index, frame.f_lineno))
        return line

    def _monitor(self, monitoring: Any) -> None:
        tool, events = monitoring.COVERAGE_ID, monitoring.events
        monitoring.use_tool_id(tool, "infradev reach")

        def entered(code: CodeType, offset: int) -> Any:
            index = self._index.of(code.co_filename)
            if index is not None:
                monitoring.set_local_events(tool, code, events.LINE)
                self._add((index, code.co_firstlineno))
            return monitoring.DISABLE

        def line(code: CodeType, number: int) -> Any:
            index = self._index.of(code.co_filename)
            if index is not None:
                self._add((index, number))

        monitoring.register_callback(tool, events.PY_START, entered)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)

    def _watch_imports(self) -> None:
        loader: Any = importlib.machinery.SourceFileLoader
        execute = loader.exec_module

        def exec_module(this: Any, module: Any) -> None:
            with self.shared():
                execute(this, module)

        loader.exec_module = exec_module

    def _watch_processes(self) -> None:
        """multiprocessing starts a Python by a call of which no audit event tells."""
        kind: Any = multiprocessing.process.BaseProcess
        start = kind.start

        def noting(this: Any) -> None:
            self._began_process(True)
            start(this)

        kind.start = noting

    def _watch_threads(self) -> None:
        """threading's own threads are followed by its ``settrace``; others begin here."""
        module: Any = _thread
        start = module.start_new_thread

        def start_followed(function: Any, arguments: Any, named: Any = None) -> int:
            def followed(*arguments: Any, **named: Any) -> None:
                sys.settrace(self._enter)
                function(*arguments, **named)

            return int(start(followed, arguments, named or {}))

        module.start_new_thread = start_followed

    def _began_process(self, is_python: bool) -> None:
        if self._depth == 0:
            self._wide = True
        elif is_python:
            self._all_wide = True  # another program than the repository's tells nothing of its lines

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _STARTS_PROCESSES:
            return
        forks = event in ("os.fork", "os.forkpty")
        self._began_process(forks or any(word in str(arguments) for word in ("python", "torchrun", os.getcwd())))


def _compile_nothing() -> None:
    """What is compiled runs without its lines being told. What is not the same then answers otherwise than golden's other run, and
    such cases are run anew without being followed."""
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # read when torch._dynamo is imported, which `import torch` alone does not do
    dynamo: Any = sys.modules.get("torch._dynamo.config")
    if dynamo is not None:
        dynamo.disable = True
    script: Any = sys.modules.get("torch.jit._state")
    if script is not None:
        script.disable()
