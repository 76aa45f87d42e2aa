"""Who reads the source or the code of a function without running it, while modules are imported and tests collected.

``exec(inspect.getsource(f))``, ``torch.jit.script(f)`` or ``FunctionType(f.__code__.replace(...), ...)`` make something of golden's
text that outlives a change of ``f.__code__``. CPython tells an audit hook of each file that is opened and of each read of a
function's ``__code__`` (docs.python.org: "Audit events table"); what asks for names of arguments, kinds of functions or places in a
file is told apart by the function that asks. What C code reads by CPython's own calls is not told.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import sys
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Sequence

from .reach import Places

_OPTIMIZED = 0x1  # CO_OPTIMIZED: the code of a function, not of a module or a class
#: What shows lines of a file in a message.
_SHOWN = ("warnings", "traceback")
#: Functions of inspect that ask a code for its arguments, kind or place alone.
_OF_SHAPE = {
    "_signature_from_function", "_signature_is_functionlike", "_signature_is_builtin", "_has_code_flag", "getfile", "findsource", "unwrap"
}  # fmt: skip
#: The event by which a function is asked for what it refers to, its code among it.
_REFERENTS = "gc.get_referents"


class Readers:
    """Follows who reads ``files`` (absolute paths), or code of them, from :meth:`start` to :meth:`stop`."""

    def __init__(self, root: str, files: Sequence[str]) -> None:
        self._root = os.path.join(root, "")
        self._files = {place: file for file in files if (place := _place(file)) is not None}
        self._places = Places(files)
        #: files of which more was read than single functions
        self.whole: set[str] = set()
        #: codes that were read
        self.codes: set[CodeType] = set()
        self._on = False

    def start(self) -> None:
        sys.addaudithook(self._hear)  # stays as long as the process
        linecache.cache = self._lines = _Unkept(linecache.cache, self._files)
        self._on = True

    def stop(self) -> None:
        self._on = False
        self._lines.forgotten = {}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on or event not in ("open", "object.__getattr__", _REFERENTS):
            return
        self._on = False  # what is asked here is told as well
        try:
            reader = sys._getframe(1)
            if event == "open":
                self._opened(arguments[0], reader)
            elif event == _REFERENTS:
                for thing in arguments[0]:
                    self._take(thing)
            elif arguments[1] == "__code__":
                if not _of_shape(reader):
                    self._take(arguments[0])
            elif arguments[1] == "f_code" and reader.f_code.co_filename.startswith(self._root):
                self._take(arguments[0])
        finally:
            self._on = True

    def _take(self, thing: Any) -> None:
        """``thing`` was read: a function, a method, a code, or a frame, whose code holds those of its functions."""
        if isinstance(thing, MethodType):
            thing = thing.__func__
        if isinstance(thing, FunctionType):
            thing = thing.__code__
        elif isinstance(thing, FrameType):
            thing = thing.f_code
            if thing.co_flags & _OPTIMIZED:  # it runs: that is known by its lines
                return
        if isinstance(thing, CodeType) and self._places.of(thing.co_filename) is not None:
            self._add(thing)

    def _add(self, code: CodeType) -> None:
        self.codes.add(code)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add(constant)

    def _opened(self, path: Any, reader: FrameType) -> None:
        file = self._file_of(path)
        if file is None or _imports(reader):
            return
        asks = _asks_lines(reader)
        if asks is None:
            self.whole.add(file)
        elif _module(asks) == "inspect" and asks.f_code.co_name == "findsource":
            self._sought(file, asks)
        elif not _shows(asks):
            self.whole.add(file)

    def _sought(self, file: str, finds: FrameType) -> None:
        """``inspect.findsource`` was asked; by whom decides how much of the file comes out."""
        asks = finds.f_back
        if asks is None or _shows(asks):
            return
        thing = finds.f_locals.get("object")
        by = asks.f_code.co_name if _module(asks) == "inspect" else ""
        if by == "getframeinfo" and asks.f_locals.get("context", 1) <= 1:
            return  # the line that runs
        if by == "getsourcelines" and isinstance(thing, (FunctionType, MethodType, CodeType)):
            self._take(thing)
        else:
            self.whole.add(file)

    def _file_of(self, path: Any) -> str | None:
        """The followed file that a path leads to, or whose bytecode it is."""
        if isinstance(path, int):  # its own opening was told
            return None
        try:
            path = os.fsdecode(path)
            place = _place(importlib.util.source_from_cache(path) if path.endswith(".pyc") else path)
        except (TypeError, ValueError, NotImplementedError):
            return None
        return None if place is None else self._files.get(place)


class _Unkept(dict[str, Any]):
    """linecache's, that keeps no line of these files: each time that they are asked for, the file is opened."""

    def __init__(self, kept: dict[str, Any], forgotten: dict[tuple[int, int], str]) -> None:
        super().__init__(kept)
        self.forgotten = forgotten

    def __setitem__(self, name: str, entry: Any) -> None:
        if not self.forgotten or _place(name) not in self.forgotten:
            super().__setitem__(name, entry)


def _place(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _of_shape(reader: FrameType) -> bool:
    module = _module(reader)
    if module == "inspect":
        return reader.f_code.co_name in _OF_SHAPE
    return module in ("typing", "typing_extensions", __package__) or module.startswith(("_pytest.", f"{__package__}."))


def _shows(asks: FrameType) -> bool:
    return _module(asks) in _SHOWN or _module(asks).startswith("_pytest.")


def _imports(reader: FrameType) -> bool:
    """Whether a file is opened to be imported, by the import system or by pytest, which rewrites asserts."""
    names: list[str] = []
    frame: FrameType | None = reader
    while frame is not None and frame.f_code.co_filename == "<frozen importlib._bootstrap_external>" and len(names) < 3:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    if names == ["get_data", "get_code", "exec_module"]:
        return True
    for _ in range(4):  # pathlib's own frames between
        if frame is None:
            return False
        if _module(frame) == "_pytest.assertion.rewrite":
            return frame.f_code.co_name in ("_rewrite_test", "_read_pyc")
        frame = frame.f_back
    return False


def _asks_lines(reader: FrameType) -> FrameType | None:
    """Who asks linecache for lines; None where it is not linecache that opens the file."""
    if _module(reader) != "tokenize":
        return None
    frame = reader.f_back
    if frame is None or _module(frame) != "linecache":
        return None
    while frame is not None and _module(frame) == "linecache":
        frame = frame.f_back
    return frame
