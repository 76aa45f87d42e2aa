"""Who reads source and code while modules are imported is told, and what needs neither is not."""

from __future__ import annotations

import importlib
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterator

import pytest

from infradev_probe.readers import Readers

SOURCE = '''\
import inspect
import sys


def first(x):
    """Says so."""
    return x + 1


def second(x):
    return [y + 2 for y in range(x)]


class Third:
    def go(self):
        return 3


'''


class Watched:
    """A module of its own name that is imported under watch."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def __call__(self, after: str = "", then: Callable[[Any], Any] = lambda module: None) -> tuple[ModuleType, Readers]:
        self.count += 1
        path = self.folder / f"watched_{self.folder.name}_{self.count}.py"
        path.write_text(SOURCE + after)
        importlib.invalidate_caches()
        readers = Readers(str(self.folder), [str(path)])
        readers.start()
        try:
            module = importlib.import_module(path.stem)
            then(module)
        finally:
            readers.stop()
        return module, readers


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(linecache, "cache", linecache.cache)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Watched(tmp_path)


def names(readers: Readers) -> set[str]:
    return {code.co_name for code in readers.codes if not code.co_name.startswith("<")}


@pytest.mark.parametrize(
    "after",
    [
        "",
        "import warnings\nwarnings.simplefilter('always')\nwarnings.warn('shown with its line')\n",
        "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.format_exc()\n",
        "SIGNATURE = inspect.signature(first), inspect.signature(Third)\n",
        "KIND = inspect.isgeneratorfunction(first), inspect.iscoroutinefunction(second)\n",
        "WHERE = inspect.getfile(first), inspect.getmodule(first), inspect.getframeinfo(sys._getframe())\n",
        "import dataclasses, functools, contextlib\nsecond = functools.wraps(first)(contextlib.contextmanager(second))\n",
        "import typing\nHINTS = typing.get_type_hints(first)\n",
        "FOUND = inspect.getsource(inspect)\n",
    ],
)
def test_what_reads_no_code_of_a_function_is_not_told(watched: Watched, after: str) -> None:
    _, readers = watched(after)
    assert (readers.whole, names(readers)) == (set(), set())
    _, again = watched("", lambda module: importlib.reload(module))
    assert (again.whole, names(again)) == (set(), set())


@pytest.mark.parametrize(
    "after, read",
    [
        ("KEPT = inspect.getsource(first)\n", {"first"}),
        ("inspect.getsource(first)\ninspect.getsource(second)\n", {"first", "second"}),
        ("KEPT = inspect.getsourcelines(Third().go)\n", {"go"}),
        ("KEPT = first.__code__\n", {"first"}),
        ("KEPT = inspect.getmembers(first)\n", {"first"}),
        ("KEPT = Third().go.__code__.co_consts\n", {"go"}),
        ("import gc\nKEPT = gc.get_referents(first)\n", {"first"}),
        ("KEPT = sys._getframe().f_code\n", {"first", "second", "Third", "go"}),
        ("import operator\nKEPT = operator.attrgetter('__code__')(second)\n", {"second"}),
    ],
)
def test_functions_that_are_read_are_told_by_their_code(watched: Watched, after: str, read: set[str]) -> None:
    _, readers = watched(after)
    assert (readers.whole, names(readers)) == (set(), read)


@pytest.mark.parametrize(
    "after",
    [
        "KEPT = open(__file__).read()\n",
        "import os\nKEPT = os.open(__file__, os.O_RDONLY)\n",
        "import pathlib\nKEPT = pathlib.Path(__file__).read_bytes()\n",
        "KEPT = __loader__.get_source(__name__)\n",
        "KEPT = __loader__.get_code(__name__)\n",
        "KEPT = inspect.getsource(Third)\n",
        "KEPT = inspect.getsource(sys.modules[__name__])\n",
        "KEPT = inspect.findsource(first)\n",
        "KEPT = inspect.getframeinfo(sys._getframe(), context=50)\n",
        "import linecache\nKEPT = linecache.getline(__file__, 7)\n",
        "import warnings, linecache\nwarnings.warn('shown with its line')\nKEPT = linecache.getlines(__file__)\n",
        "import runpy\nif __name__ != 'twice':\n    runpy.run_path(__file__, run_name='twice')\n",
    ],
)
def test_a_file_of_which_more_is_read_is_told_whole(watched: Watched, after: str) -> None:
    module, readers = watched(after)
    assert readers.whole == {module.__file__}


def test_a_file_is_known_by_any_of_its_paths(watched: Watched, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    module, readers = watched("", lambda module: open(link / Path(module.__file__).name).close())
    assert readers.whole == {module.__file__}


def test_what_is_read_afterwards_is_not_told(watched: Watched) -> None:
    module, readers = watched()
    linecache.getlines(str(module.__file__))
    assert module.first.__code__ and (readers.whole, readers.codes) == (set(), set())
    assert sys.modules[module.__name__] is module
