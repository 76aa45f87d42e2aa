"""What a judge says it expects. Each call is recorded with what came beside it; a broken one raises.

    expect.close(got, want, dtype="float32", reduction=32)     numbers, within a derived tolerance
    expect.equal(got, want)                                    values, shapes, nested structures, exactly
    expect.between(number, low, high)
    expect.true(condition, "what it says")
    with expect.raises(world, "ValueError", match="capacity"): world.observe(...)
    with expect.finishes(world, within=10.0): world.observe(...)

Each takes ``what=``, words for the report, and ``twin=``: a wrong expectation that must fail when the case has passed.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

if TYPE_CHECKING:
    from .worlds import World

_HERE = os.path.dirname(os.path.abspath(__file__))
_RECORD_LIMIT = 200
_UNSET: Any = object()


class ExpectationFailed(AssertionError):
    """What came back is not what the judge expected. ``entries``: the ranks' entries, where it is about them."""

    entries: list[dict[str, Any]] | None = None


class Recorder:
    """The expectations of one run of one case, and how to make the last one again with a perturbed expectation."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.count = 0
        self.last: Callable[[Any], bool] | None = None  # expected -> whether it would pass
        self.expected: Any = None
        self.twin: Any = _UNSET
        self.exact = True

    def toothless(self, twin: Callable[[Any], Any] | None) -> str | None:
        """Why the case proves nothing, or None. Call once, after it has passed."""
        from .comparison import NothingToPerturb, perturb, short

        if self.last is None:
            return "the case expected nothing through expect: it can't fail for a wrong answer"
        if self.twin is not _UNSET:
            wrong = self.twin
        elif twin is not None:
            wrong = twin(self.expected)
        else:
            try:
                wrong = perturb(self.expected, exact=self.exact)
            except NothingToPerturb as reason:
                return f"its last expectation has no teeth: {reason}"
        if self.last(wrong):
            return f"its last expectation passes a wrong answer too: expected {short(self.expected)}, passes {short(wrong)}"
        return None


_recorder: Recorder | None = None


def _start(recorder: Recorder | None) -> None:
    """The judge's side: record into this one from now on."""
    global _recorder
    _recorder = recorder


def _line() -> int | None:
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(_HERE) or "contextlib" in frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_lineno if frame is not None else None


def _settle(
    kind: str,
    what: str,
    ok: bool,
    expected: str,
    got: str,
    detail: str,
    *,
    again: Callable[[Any], bool],
    value: Any,
    twin: Any = _UNSET,
    entries: list[dict[str, Any]] | None = None,
    exact: bool = True,
) -> None:
    if _recorder is not None:
        _recorder.count += 1
        _recorder.last, _recorder.expected, _recorder.twin = again, value, twin
        _recorder.exact = exact
        entry = {"kind": kind, "what": what, "ok": ok, "expected": expected, "got": got, "detail": detail[:500]}
        if len(_recorder.made) >= _RECORD_LIMIT:
            _recorder.made.pop()  # the first ones, and always the last
        _recorder.made.append({**entry, "line": _line()})
    if not ok:
        subject = f"{what}: " if what else ""
        failure = ExpectationFailed(f"{subject}{detail or f'got {got}, expected {expected}'}")
        failure.entries = entries
        raise failure


def close(
    got: Any,
    want: Any,
    *,
    dtype: str | None = None,
    reduction: int = 1,
    accumulate: str | None = None,
    steps: int = 2,
    scale: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    what: str = "",
    twin: Any = _UNSET,
) -> None:
    """``got`` is ``want`` within what right arithmetic may differ by (see ``tolerance``), or within rtol and atol.

    ``dtype`` is the type that the result was computed in; by default ``got``'s own. Arrays of integers and bools have
    to be equal.
    """
    from .comparison import compare, short
    from .tolerance import is_floating, tolerance

    if rtol is not None or atol is not None:
        relative, absolute = rtol or 0.0, atol or 0.0
        limit: Any = lambda expected: relative * abs(expected) + absolute
    else:
        name = dtype or _dtype_of(got)
        if name is not None and is_floating(name):
            rule = tolerance(name, reduction, accumulate=accumulate, steps=steps)
            limit = lambda expected: rule.limit(expected, scale)
        else:
            limit = None
    again = lambda expected: compare(got, expected, limit).ok
    result = compare(got, want, limit)
    exact = limit is None
    sides = (short(want), short(got), result.detail)
    _settle("close", what, result.ok, *sides, again=again, value=want, twin=twin, exact=exact)


def _dtype_of(value: Any) -> str | None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        names = [name for name in map(_dtype_of, value) if name is not None]
        return names[0] if names else None
    if isinstance(value, float):
        return "float64"
    return getattr(getattr(value, "dtype", None), "name", None)


def equal(got: Any, want: Any, *, what: str = "", twin: Any = _UNSET) -> None:
    """``got`` is exactly ``want``: shapes, structure, every element."""
    from .comparison import compare, short

    result = compare(got, want)
    again = lambda expected: compare(got, expected).ok
    _settle("equal", what, result.ok, short(want), short(got), result.detail, again=again, value=want, twin=twin)


def between(number: float, low: float, high: float, *, what: str = "") -> None:
    """``low <= number <= high``. Its twin: the number just outside of each finite bound."""

    def inside(x: float) -> bool:
        return low <= x <= high

    outer = [high + max(1.0, abs(high))] * math.isfinite(high) + [low - max(1.0, abs(low))] * math.isfinite(low)
    text = f"{low:g} to {high:g}"
    # no finite bound leaves no wrong number: then the range passes its own twin
    again = lambda _: not outer or any(inside(x) for x in outer)
    _settle("between", what, inside(number), text, f"{number:g}", "", again=again, value=0.0)


def true(condition: Any, what: str = "", *, twin: Any = _UNSET) -> None:
    """``condition`` holds. ``twin``: a condition that must not hold."""
    again = lambda expected: bool(expected) == bool(condition) if twin is _UNSET else bool(expected)
    _settle("true", what, bool(condition), "true", repr(condition)[:200], "", again=again, value=True, twin=twin)


@contextlib.contextmanager
def raises(
    world: World, exception: str, *, match: str | None = None, ranks: Sequence[int] | None = None, what: str = ""
) -> Iterator[None]:
    """The calls of ``world`` inside raise ``exception`` on every rank asked, or on ``ranks`` whatever the others do.

    ``exception`` is the name of the type or one of its bases, with or without its module; ``match`` a regular expression
    for the message. A missing name or a hollow body never counts.
    """
    from .worlds import WorldFailure

    entries: list[dict[str, Any]] | None = None
    try:
        yield
    except WorldFailure as failure:
        if failure.world is not world:
            raise
        entries = failure.entries
    asked = [] if entries is None else [e for e in entries if ranks is None or e["rank"] in ranks]

    def holds(name: Any) -> bool:
        return bool(asked) and all(_raised(entry, name, match) for entry in asked)

    got = "nothing was raised" if entries is None else "; ".join(_entry_text(entry) for entry in asked)[:500]
    text = exception + (f" matching {match!r}" if match else "")
    _settle("raises", what, holds(exception), text, got, "", again=holds, value=exception, entries=entries)


def _raised(entry: dict[str, Any], name: str, match: str | None) -> bool:
    if entry["status"] != "raised" or entry.get("kind") in ("missing", "hollow", "unencodable"):
        return False
    known = [entry.get("exception") or "", *(entry.get("mro") or [])]
    if name not in known and name not in [each.rsplit(".", 1)[-1] for each in known]:
        return False
    return match is None or re.search(match, entry.get("message") or "") is not None


def _entry_text(entry: dict[str, Any]) -> str:
    from .worlds import entry_text

    return entry_text(entry)


@contextlib.contextmanager
def finishes(world: World, *, within: float, what: str = "") -> Iterator[None]:
    """The calls of ``world`` inside come back within ``within`` seconds, on the judge's clock."""
    from .worlds import WorldFailure

    began = time.monotonic()
    entries: list[dict[str, Any]] | None = None
    late = False
    try:
        with world._within(within):
            yield
    except WorldFailure as failure:
        entries = failure.entries
        if failure.world is not world or not any(entry["status"] == "timeout" for entry in entries):
            raise
        late = True
    elapsed = time.monotonic() - began

    def holds(seconds: Any) -> bool:
        return not late and elapsed <= seconds

    got = "no end" if late else f"{elapsed:.3f} s"
    # perturbing adds to a number, and more time is no wrong answer: the twin is no time at all
    _settle(
        "finishes", what, holds(within), f"within {within:g} s", got, "", again=holds, value=within, twin=0.0, entries=entries
    )
