"""A template: a rank that has collected the tests of golden's tree once, and forks ranks which go on from there.

Trying a variant of a tree needs ranks that differ from golden's by a function or two. Instead of starting pytest and
importing the repository again, such a rank is forked after collection, and what its file says of those functions is put
in the place of golden's code. What golden did while it was imported has to outlive a fork: the harness first has golden's own
cases run in such ranks, twice. A variant fits only where that is the same as importing it: what its module and its classes
do when they are imported must not differ, each changed function must be found, and nothing may have read its source or its code: what
reads them is followed (``readers``), and a decorator may have read them. What does not fit says so, and is tried by ranks that start from nothing.

Only for variants that the harness made itself: the repository has run in the process that forks the ranks.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
import tempfile
import traceback
from types import AsyncGeneratorType, CellType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, Generator, Iterator, NoReturn

import pytest

from .frames import Channel, FrameError
from .launcher import Fault, Launcher
from .rank_official import Official, _gated, _is_hooked
from .reach import Places
from .readers import Readers

#: What differs from launch to launch: a module that reads one of these while it is collected is not the same in every rank.
_OWN = {
    "RANK", "LOCAL_RANK", "GROUP_RANK", "MASTER_PORT", "HOME", "TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"
}  # fmt: skip
#: Decorators that hold the function itself and ask for its code when it is called, by the last part of their name.
_TRANSPARENT = {
    "property", "cached_property", "setter", "getter", "deleter", "staticmethod", "classmethod", "abstractmethod", "override", "final",
    "contextmanager", "asynccontextmanager", "wraps", "lru_cache", "cache", "no_grad", "enable_grad", "inference_mode", "dataclass"
}  # fmt: skip
#: Where what is at work has its code.
_AT_WORK: dict[Any, str] = {GeneratorType: "gi_code", CoroutineType: "cr_code", AsyncGeneratorType: "ag_code"}
_OPTIMIZED = 0x1  # CO_OPTIMIZED: the code of a function, not of a module or a class


class Unfit(Exception):
    """This variant, or this tree, needs ranks that start from nothing."""


class _Watch:
    """Notes which of a launch's own variables are read."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._kind: Any = type(os.environ)
        self._plain = self._kind.__getitem__

    def start(self) -> None:
        plain, seen = self._plain, self.seen

        def noting(environ: Any, key: Any) -> Any:
            if key in _OWN:
                seen.add(key)
            return plain(environ, key)

        self._kind.__getitem__ = noting

    def stop(self) -> None:
        self._kind.__getitem__ = self._plain


# -- code ------------------------------------------------------------------------------------------------------------


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in _inner(code):
        yield from _all_codes(inner)


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def _plain_constants(code: CodeType) -> list[str]:
    # by their text too: 1, True and 1.0 are equal, 0.0 and -0.0 as well
    return ["code" if isinstance(constant, CodeType) else f"{type(constant)}{constant!r}" for constant in code.co_consts]


def _does_the_same(was: CodeType, becomes: CodeType) -> bool:
    """Whether two codes differ in nothing but lines, their inner codes apart."""
    names = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_argcount", "co_kwonlyargcount")
    return (
        all(getattr(was, name) == getattr(becomes, name) for name in names)
        and _plain_constants(was) == _plain_constants(becomes)
        and getattr(was, "co_exceptiontable", b"") == getattr(becomes, "co_exceptiontable", b"")
    )


def _looks_the_same(was: CodeType, becomes: CodeType) -> bool:
    """Whether functions of two codes look the same to what asks for their arguments, their kind and their docstring."""

    def looks(code: CodeType) -> Any:
        arguments = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)
        names = code.co_varnames[:arguments]
        made = FunctionType(code, {}, None, None, tuple(CellType() for _ in code.co_freevars))
        return code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, names, made.__doc__

    return bool(looks(was) == looks(becomes))


def _all_the_same(was: CodeType, becomes: CodeType) -> bool:
    return _does_the_same(was, becomes) and all(map(_all_the_same, _inner(was), _inner(becomes)))


class _Pairs:
    """Which code of golden's file becomes which of the variant's."""

    def __init__(self, was: CodeType, becomes: CodeType) -> None:
        #: (golden's, the variant's, whether importing the file makes a function of it)
        self.changed: list[tuple[CodeType, CodeType, bool]] = []
        #: inner codes of golden's that have no counterpart
        self.gone: list[CodeType] = []
        self._pair(was, becomes, at_import=True)

    def _pair(self, was: CodeType, becomes: CodeType, at_import: bool) -> None:
        if was == becomes:
            return
        old, new = _inner(was), _inner(becomes)
        alike = [code.co_name for code in old] == [code.co_name for code in new]
        if was.co_flags & _OPTIMIZED:
            self.changed.append((was, becomes, at_import))
            if not alike:
                self._lose(old)
                return
        elif not alike or not _does_the_same(was, becomes):
            raise Unfit(f"it changes what {was.co_name} does when it is imported")
        inside = at_import and not was.co_flags & _OPTIMIZED
        for first, second in zip(old, new):
            self._pair(first, second, inside)

    def _lose(self, codes: list[CodeType]) -> None:
        for code in codes:
            self.gone.append(code)
            self._lose(_inner(code))


def _last_name(decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""


def _opaque(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, int]]:
    """(name, first line) of each function that is, or lies, under a decorator which may have read it."""
    for node in ast.iter_child_nodes(tree):
        opaque = inside
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            opaque = inside or any(_last_name(decorator) not in _TRANSPARENT for decorator in node.decorator_list)
            if opaque:
                yield node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        yield from _opaque(node, opaque)


class _File:
    """A file of golden's, with the functions that live of it."""

    def __init__(self, path: str, living: list[FunctionType], at_work: set[CodeType], readers: Readers) -> None:
        with open(path, "rb") as file:
            source = file.read()
        self.path = path
        self.read_whole, self.read = path in readers.whole, readers.codes
        self.code: CodeType = compile(source, path, "exec", dont_inherit=True)
        self.opaque = set(_opaque(ast.parse(source)))
        self.functions: dict[CodeType, list[FunctionType]] = {}
        for function in living:
            self.functions.setdefault(function.__code__, []).append(function)
        #: codes that no change of a function reaches: of generators at work, and of functions made of a changed copy
        known = set(_all_codes(self.code))
        self.fixed = {_place(code) for code in at_work} | {_place(code) for code in self.functions if code not in known}

    def become_what_is_laid(self) -> None:
        """Give each function the code that the file has now; raises :class:`Unfit` before any has it."""
        if self.read_whole:
            raise Unfit("collection reads its source")
        with open(self.path, "rb") as file:
            pairs = _Pairs(self.code, compile(file.read(), self.path, "exec", dont_inherit=True))
        if any(code in self.functions for code in pairs.gone):
            raise Unfit("it drops a function that lives")
        for code in (*pairs.gone, *(was for was, _, _ in pairs.changed)):
            if _place(code) in self.fixed:
                raise Unfit(f"code of {code.co_name} is at work already")
        if any(code in self.read for code in pairs.gone):
            raise Unfit("it drops a function whose source or code was read")
        todo: list[tuple[FunctionType, CodeType]] = []
        for was, becomes, at_import in pairs.changed:
            living = self.functions.get(was, [])
            opaque = (was.co_name, was.co_firstlineno) in self.opaque or was in self.read
            if opaque and _all_the_same(was, becomes):
                continue  # on other lines alone
            if opaque or (at_import and not living) or was.co_freevars != becomes.co_freevars:
                raise Unfit(f"{was.co_name} cannot be replaced where it is")
            if living and not _looks_the_same(was, becomes):
                raise Unfit(f"{was.co_name} has other arguments or another docstring")
            todo += [(function, becomes) for function in living]
        for function, becomes in todo:
            function.__code__ = becomes


def _living(paths: list[str]) -> tuple[dict[str, list[FunctionType]], dict[str, set[CodeType]]]:
    """The functions of each file, and the codes of its generators and coroutines that have begun or wait to."""
    places = Places(paths)

    def file_of(code: CodeType) -> str | None:
        index = places.of(code.co_filename)
        return None if index is None else paths[index]

    functions: dict[str, list[FunctionType]] = {path: [] for path in paths}
    at_work: dict[str, set[CodeType]] = {path: set() for path in paths}
    for thing in gc.get_objects():
        kind: Any = type(thing)
        if kind is FunctionType:
            file = file_of(thing.__code__)
            if file is not None:
                functions[file].append(thing)
        elif kind in _AT_WORK:
            code: CodeType = getattr(thing, _AT_WORK[kind])
            file = file_of(code)
            if file is not None:
                at_work[file].add(code)
    return functions, at_work


# -- the session -----------------------------------------------------------------------------------------------------


class Template(Official):
    """pytest's session in the template, and in each rank that is forked of it."""

    def __init__(self, channel: Channel, args: dict[str, Any], outside: list[str]) -> None:
        super().__init__(channel, args["root"], list(args["files"]))
        self._channel: Channel | None = channel
        self._followed = [os.path.join(args["root"], path) for path in args["followed"]]
        self._outside = outside
        self._given = dict(os.environ)
        self._watch = _Watch()
        self._readers = Readers(args["root"], self._followed)
        self._readers.start()  # before plugins are imported
        self._unfit = ""
        self._tell = self._hear

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "uncollectable" and not self._unfit:
            self._unfit = f"{message['file']} is not collected: {message['exception']}: {message['message']}"

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Generator[None, Any, None]:
        self._watch.start()
        yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, None]:
        files = self._become_rank(self._forked())
        # Who tries a variant asks which case rejects it and by what exception, which the sensors tell. pytest's own account of it
        # parses every file of the traceback anew.
        session.config.option.tbstyle = "no"
        self._files, self._known = files, {}
        self._places = {file: place for file, place in self._places.items() if file in files}
        self._tell_collected([item for item in session.items if self._below(str(item.path))])
        self._serve(session)
        self.hooked = _is_hooked(session.config)
        session.items = []
        session.testsfailed = 0
        yield

    def conclude(self) -> None:
        if self._channel is not None:  # the template itself, whose session never came to its loop
            self._refuse(self._unfit or f"pytest did not come to run tests: {self._trouble!r}")
        super().conclude()

    def _refuse(self, why: str) -> NoReturn:
        """Answer the harness's greeting with why there is no template."""
        assert self._channel is not None
        try:
            self._channel.rekey(bytes.fromhex(self._channel.receive().header["key"]))
            self._channel.send({"type": "fault", "message": why[:2000]})
        finally:
            os._exit(0)

    def _forked(self) -> list[Any]:
        """Fork ranks on request; returns in a rank, with its job."""
        self._watch.stop()
        self._readers.stop()
        assert self._channel is not None
        if self._watch.seen:
            self._unfit = f"{', '.join(sorted(self._watch.seen))} decides what is collected"
        elif len(os.listdir("/proc/self/task")) > 1:
            self._unfit = "collection has started threads"
        if self._unfit:
            self._refuse(self._unfit)
        try:
            living, at_work = _living(self._followed)
            self._replaceable = {path: _File(path, living[path], at_work[path], self._readers) for path in self._followed}
            after = dict(os.environ)
            self._set = {name: value for name, value in after.items() if self._given.get(name) != value}
            self._unset = [name for name in self._given if name not in after]
            launcher = Launcher(self._channel)
            launcher.start()
            job = launcher.serve()
        except (Fault, FrameError, OSError, KeyError, SyntaxError, ValueError):
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        if job is None:
            os._exit(0)
        self._channel = None
        return job

    def _become_rank(self, job: list[Any]) -> list[str]:
        _, channel, args = job
        job.clear()
        self._tell, self._ask, self._shut = _gated(channel)
        os.environ.update(self._set)
        for name in self._unset:
            os.environ.pop(name, None)
        tempfile.tempdir = None  # of the launch's own folder, not of the template's
        unfit = ""
        try:
            for path in args["replaced"]:
                file = self._replaceable.get(os.path.join(args["root"], path))
                if file is None:
                    raise Unfit(f"{path} is not followed")
                file.become_what_is_laid()
        except (Unfit, SyntaxError, ValueError, RecursionError) as error:
            unfit = str(error) or type(error).__name__
        self._tell({"type": "hello", "rank": args["rank"], "pid": os.getpid(), "outside": self._outside, "unfit": unfit or None})
        if unfit:
            os._exit(0)
        return list(args["files"])
