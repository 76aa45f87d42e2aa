"""Comparing what came back with what was expected, element by element, and perturbing an expectation."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

import numpy

TEXT_LIMIT = 500


class Difference(NamedTuple):
    """``ok``, and in words where and how far apart."""

    ok: bool
    detail: str


#: The allowed |got - want| for a float64 array ``want``; None: exact.
Limit = Callable[[Any], Any] | None
_NONE = Difference(True, "")


def short(value: Any) -> str:
    """A bounded text of a value: arrays by dtype, shape and their first elements."""
    if isinstance(value, numpy.ndarray):
        first = ", ".join(f"{element}" for element in value.ravel()[:8].tolist())
        dots = ", …" if value.size > 8 else ""
        text = f"{value.dtype.name}{list(value.shape)} [{first}{dots}]"
    elif isinstance(value, (list, tuple)) and any(isinstance(part, numpy.ndarray) for part in value):
        text = "[" + "; ".join(short(part) for part in value[:8]) + "]"
    else:
        text = repr(value)
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"


def _numeric(value: Any) -> bool:
    return isinstance(value, (numpy.ndarray, numpy.generic)) or (
        isinstance(value, (int, float)) and not isinstance(value, bool)
    )


def compare(got: Any, want: Any, limit: Limit = None, place: str = "") -> Difference:
    """Whether ``got`` is ``want``, nested lists, tuples and dicts included. NaN is equal to NaN, and to nothing else."""
    if isinstance(got, dict) and isinstance(want, dict):
        if got.keys() != want.keys():
            return Difference(False, f"{place or 'value'}: keys {short(list(got))}, expected {short(list(want))}")
        pairs = [(got[key], want[key], f"{place}[{key!r}]") for key in want]
    elif isinstance(got, (list, tuple)) and isinstance(want, (list, tuple)):
        if type(got) is not type(want) or len(got) != len(want):
            kinds = f"a {type(got).__name__} of {len(got)}, expected a {type(want).__name__} of {len(want)}"
            return Difference(False, f"{place or 'value'}: {kinds}")
        pairs = [(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(got, want))]
    elif _numeric(got) and _numeric(want):
        return _compare_arrays(numpy.asarray(got), numpy.asarray(want), limit, place)
    elif type(got) is type(want) and not isinstance(got, numpy.ndarray) and got == want:
        return _NONE
    elif isinstance(got, list) and isinstance(want, numpy.ndarray):
        return Difference(False, f"{place or 'value'}: a list of {len(got)}, expected an array of shape {want.shape}")
    else:
        return Difference(False, f"{place or 'value'}: {short(got)}, expected {short(want)}")
    worst = _NONE
    for a, b, where in pairs:
        result = compare(a, b, limit, where)
        if not result.ok:
            return result
        worst = max(worst, result, key=lambda each: len(each.detail))
    return worst


def _compare_arrays(got: Any, want: Any, limit: Limit, place: str) -> Difference:
    where = place or "value"
    if got.shape != want.shape:
        return Difference(False, f"{where}: shape {got.shape}, expected {want.shape}")
    if got.size == 0:
        return _NONE
    if limit is None:
        wrong = ~((got == want) | ((got != got) & (want != want)))
        if not wrong.any():
            return _NONE
        index = tuple(int(i[0]) for i in numpy.nonzero(wrong)) if got.ndim else ()
        count = int(wrong.sum())
        return Difference(False, f"{where}{list(index)}: {got[index]}, expected {want[index]} ({count} of {got.size} differ)")
    if got.dtype.kind == "c" or want.dtype.kind == "c":
        parts = [(got.real, want.real), (got.imag, want.imag)]
        results = [_compare_arrays(a, b, limit, place) for a, b in parts]
        return next((result for result in results if not result.ok), results[0])
    a, b = got.astype(numpy.float64), want.astype(numpy.float64)
    allowed = numpy.broadcast_to(limit(b), b.shape)
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    with numpy.errstate(invalid="ignore", over="ignore"):
        distance = numpy.where(same, 0.0, numpy.abs(a - b))
        distance = numpy.where(numpy.isfinite(distance), distance, math.inf)
        # where the expectation is not finite, near is not enough
        excess = numpy.where(numpy.isfinite(b) & numpy.isfinite(allowed), distance - allowed, distance)
        ratio = numpy.where(distance == 0, 0.0, distance / numpy.maximum(allowed, 5e-324))
    worst = numpy.unravel_index(int(numpy.argmax(ratio)), ratio.shape)
    index = tuple(int(i) for i in worst)
    wrong = int((excess > 0).sum())
    text = f"{where}{list(index)}: |{a[index]:.9g} - {b[index]:.9g}| = {distance[index]:.3g}, allowed {allowed[index]:.3g}"
    if wrong:
        return Difference(False, f"{text} ({wrong} of {a.size} too far)")
    return Difference(True, f"worst {text}")


class NothingToPerturb(Exception):
    """The expectation holds no element that could be wrong."""


def perturb(want: Any, *, exact: bool = True) -> Any:
    """``want`` with one element clearly wrong.

    A number is off by half its size or the array's typical size, whichever is more; an integer that is compared exactly
    by one.
    """
    if isinstance(want, dict):
        return _first(list(want.items()), lambda pairs: dict(pairs), exact)
    if isinstance(want, (list, tuple)):
        kind = type(want)
        return _first(list(enumerate(want)), lambda pairs: kind(value for _, value in pairs), exact)
    if isinstance(want, bool):
        return not want
    if isinstance(want, str):
        return want + "?"
    if isinstance(want, bytes):
        return want + b"?"
    if want is None:
        return 0
    if not _numeric(want):
        raise NothingToPerturb(f"no way to perturb a {type(want).__name__}: give twin=")
    array = numpy.array(want)
    if array.size == 0:
        raise NothingToPerturb("an empty array: nothing was compared")
    if array.dtype.kind == "b":
        array[(0,) * array.ndim] = not array[(0,) * array.ndim]
        return array
    if array.dtype.kind in "iu" and exact:
        place = (0,) * array.ndim
        array[place] = int(array[place]) + (1 if array[place] < numpy.iinfo(array.dtype).max else -1)
        return array
    work = array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64)
    finite = numpy.where(numpy.isfinite(work), numpy.abs(work), 0.0)
    index = numpy.unravel_index(int(numpy.argmax(finite)), finite.shape)
    largest = float(finite.max()) or 1.0
    typical = largest * float(numpy.sqrt(numpy.mean((finite / largest) ** 2))) or 1.0
    base = work[index] if numpy.isfinite(work[index]) else 0.0
    work[index] = base + max(0.5 * float(finite[index]), typical)
    return work


def _first(items: list[tuple[Any, Any]], build: Callable[[list[tuple[Any, Any]]], Any], exact: bool) -> Any:
    for position, (key, value) in enumerate(items):
        try:
            changed = perturb(value, exact=exact)
        except NothingToPerturb:
            continue
        return build(items[:position] + [(key, changed)] + items[position + 1 :])
    raise NothingToPerturb("no element in it: nothing was compared")
