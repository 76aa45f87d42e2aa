"""Which lines of some files run, told case by case: for the one run of golden that decides which cases a mutant needs.

Lines that run while modules are imported, tests are collected and wider fixtures are set up belong to no case alone: they
count for every case (``shared``). Threads that :mod:`threading` starts are followed, other processes are not: a case that
starts one is ``wide``, it may reach anything, and so may all where a module or a wider fixture starts a Python. What
torch would compile (``torch.compile``, ``torch.jit.script``) is run as it is written. Before Python 3.12 threads that a library starts of itself (autograd's for
a device) are not followed either.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Iterator, Sequence

_STARTS_PROCESSES = ("os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.spawn", "os.system", "subprocess.Popen")
Line = tuple[int, int]


class Reach:
    """Follows the lines of ``files`` (absolute paths) from :meth:`start` on; a line is (index of its file, number)."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = {file: index for index, file in enumerate(files)}
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
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is not None and monitoring.get_tool(monitoring.COVERAGE_ID) is None:
            self._monitor(monitoring)
        else:
            self._traces = True
            threading.settrace(self._enter)
            sys.settrace(self._enter)

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
        shared = self._shared - self._told
        self._told |= shared
        reached = {"own": sorted(self._own), "shared": sorted(shared), "wide": self._wide or self._all_wide}
        self._own, self._wide = set(), False
        return reached

    # -- what runs ---------------------------------------------------------------------------------------------------

    def _add(self, line: Line) -> None:
        (self._shared if self._depth > 0 else self._own).add(line)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        index = self._files.get(frame.f_code.co_filename)
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
            if code.co_filename in self._files:
                monitoring.set_local_events(tool, code, events.LINE)
                self._add((self._files[code.co_filename], code.co_firstlineno))
            return monitoring.DISABLE

        def line(code: CodeType, number: int) -> Any:
            self._add((self._files[code.co_filename], number))

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

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _STARTS_PROCESSES:
            return
        if self._depth == 0:
            self._wide = True
        elif event in ("os.fork", "os.forkpty") or any(word in str(arguments) for word in ("python", "torchrun", os.getcwd())):
            self._all_wide = True  # another program than the repository's tells nothing of its lines


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
