"""Bytecode of what is installed, for ranks whose own goes to a private prefix.

``sys.pycache_prefix`` keeps a ``.pyc`` that lies in the tree from ever running, but it hides what an environment was built
with as well: each rank would compile the installed modules that the launcher has not imported anew (measured on
Megatron-LM's tests: 1,700 modules, 6.6 of 10.3 seconds). Modules of the interpreter and of its packages, which are mounted
read-only, are therefore read from the bytecode beside them; all else keeps to the prefix.
"""

from __future__ import annotations

import importlib
import marshal
import os
import sys
from _imp import _fix_co_filename
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any, Callable, Sequence, cast

#: Validated by the time and size of the source: what compileall and installers write.
_BY_TIME = MAGIC_NUMBER + bytes(4)
_HEADER = 16


class InstalledLoader(SourceFileLoader):
    """As its base, with the bytecode beside the source where that belongs to it."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return _beside(path) or super().get_code(fullname)


def _beside(path: str) -> CodeType | None:
    """The code of ``path``'s bytecode; None where there is none, or it is another source's, or validated otherwise."""
    folder, file = os.path.split(path)
    stem = file.rpartition(".")[0]
    try:
        with open(f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}.pyc", "rb") as stream:
            data = stream.read()
        source = os.stat(path)
    except OSError:
        return None
    stamp = (int(source.st_mtime) & 0xFFFF_FFFF).to_bytes(4, "little") + (source.st_size & 0xFFFF_FFFF).to_bytes(4, "little")
    if data[:_HEADER] != _BY_TIME + stamp:
        return None
    try:
        code = marshal.loads(memoryview(data)[_HEADER:])
    except (EOFError, TypeError, ValueError):
        return None
    if not isinstance(code, CodeType):
        return None
    _fix_co_filename(code, path)  # an environment is moved after it was compiled
    return code


def use_installed(folders: Sequence[str], but: Sequence[str]) -> None:
    """Let modules below ``folders``, not below ``but``, come from the bytecode beside them."""
    inside, outside = _below(folders), _below(but)
    finder = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (InstalledLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )

    def hook(path: str) -> Any:
        place = os.path.join(os.path.abspath(path), "")
        if not place.startswith(inside) or place.startswith(outside):
            raise ImportError(f"{path} is not installed")
        return finder(path)

    if not sys.flags.optimize:  # other bytecode, by another name
        sys.path_hooks.insert(0, cast(Callable[[str], Any], hook))
        sys.path_importer_cache.clear()
    importlib.invalidate_caches()


def _below(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(os.path.join(os.path.abspath(folder), "") for folder in folders)
