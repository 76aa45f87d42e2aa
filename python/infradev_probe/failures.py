"""How an exception is told: qualified type, bounded message, where it happened, a bounded traceback.

The functions used are bound when this module is loaded, in the launcher, before any code of the repository.
"""

from __future__ import annotations

import os
import traceback
import types
from typing import Any, Callable

MESSAGE_LIMIT = 2_000
TRACE_LIMIT = 16_000

_walk_tb = traceback.walk_tb
_format: Callable[..., list[str]] = traceback.format_exception
_realpath, _join, _sep = os.path.realpath, os.path.join, os.sep


def qualified(kind: type[BaseException]) -> str:
    """``ValueError`` for a builtin, ``package.module.Name`` otherwise."""
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", None) else f"{module}.{kind.__qualname__}"


def bounded(text: str, limit: int) -> str:
    """``text`` with its middle cut out where it is longer than ``limit`` characters; the end says most."""
    if len(text) <= limit:
        return text
    mark = f"\n[... {len(text)} characters in all ...]\n"
    head = (limit - len(mark)) // 4
    return text[:head] + mark + text[len(text) - (limit - len(mark) - head) :]


def message_of(error: BaseException) -> str:
    """``str(error)``, bounded; an exception whose ``__str__`` raises says so."""
    try:
        return bounded(str(error), MESSAGE_LIMIT)
    except Exception as inner:
        return f"<the message of this {type(error).__name__} raised {type(inner).__name__}>"


def frames_of(trace: types.TracebackType | None) -> list[tuple[str, int, types.FrameType]]:
    """(file, line, frame) from the outermost to where it was raised."""
    return [(frame.f_code.co_filename, line, frame) for frame, line in _walk_tb(trace)]


def relative(file: str, root: str) -> str:
    """``file`` relative to ``root`` where it lies inside, else unchanged."""
    real, base = _realpath(file), _realpath(root)
    return real[len(base) + 1 :] if real.startswith(base + _sep) else file


def location(trace: types.TracebackType | None, root: str) -> tuple[str | None, int | None]:
    """The deepest place inside ``root``, else the deepest at all: (file, line)."""
    frames = frames_of(trace)
    base = _realpath(root) + _sep
    for file, line, _ in reversed(frames):
        if _realpath(file).startswith(base):
            return relative(file, root), line
    return (frames[-1][0], frames[-1][1]) if frames else (None, None)


def trace_of(error: BaseException) -> str:
    """The formatted traceback, bounded."""
    try:
        return bounded("".join(_format(type(error), error, error.__traceback__)), TRACE_LIMIT)
    except Exception as inner:
        return f"<the traceback could not be formatted: {type(inner).__name__}>"


def describe(error: BaseException, root: str) -> dict[str, Any]:
    """``exception``, ``message``, ``file``, ``line`` of an exception, as the protocol's messages carry them."""
    file, line = location(error.__traceback__, root)
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        # not where it was compiled; str(error) would say file and line once more
        file, line = relative(error.filename, root), error.lineno
        message = bounded(str(error.msg), MESSAGE_LIMIT)
        return {"exception": qualified(type(error)), "message": message, "file": file, "line": line}
    return {"exception": qualified(type(error)), "message": message_of(error), "file": file, "line": line}
