"""How far right arithmetic may be from the exact value: by dtype, reduction length and accumulation type.

Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002.

- §3.1, Lemma 3.1: k roundings in a row stay within ``gamma_k = k*u / (1 - k*u)``, u the unit roundoff.
- §3.1, eq. (3.5): an inner product of length n, in any order of summation, is within ``gamma_n * sum |x_i||y_i|``.
- §4.2, eq. (4.4): a sum of n terms, in any order, is within ``(n - 1)*u * sum |x_i|`` to first order: covered by gamma_n.

So the limit for an element is ``gamma_steps(dtype) * |want| + gamma_n(accumulate) * scale + floor`` where ``scale``
is ``sum |x_i||y_i|``. Where the judge does not give it, ``sqrt(n) * max |want|`` stands for it: for terms of random sign
the sum of magnitudes is that much larger than the sum (§4.2 on random signs, and the central limit theorem).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

#: (unit roundoff, smallest positive number). FP8 as in Micikevicius et al. 2022, arXiv:2209.05433.
_TYPES = {
    "float64": (2.0**-53, 2.0**-1074),
    "float32": (2.0**-24, 2.0**-149),
    "tfloat32": (2.0**-11, 2.0**-136),
    "float16": (2.0**-11, 2.0**-24),
    "bfloat16": (2.0**-8, 2.0**-133),
    "float8_e4m3fn": (2.0**-4, 2.0**-9),
    "float8_e5m2": (2.0**-3, 2.0**-16),
}


def is_floating(dtype: str) -> bool:
    """Whether there is a rule for the type."""
    return dtype in _TYPES


def gamma(count: int, unit: float) -> float:
    """Higham's ``gamma_count``; ``ValueError`` where ``count * unit >= 1`` and the bound says nothing."""
    product = count * unit
    if product >= 1:
        raise ValueError(
            f"{count} roundings of unit {unit:g} have no bound: name a wider accumulate=, or give rtol= and atol="
        )
    return product / (1 - product)


@dataclass(frozen=True)
class Tolerance:
    """``relative * |want| + scaled * scale + floor``."""

    relative: float
    scaled: float
    floor: float
    reduction: int
    source: str

    def limit(self, want: Any, scale: Any = None) -> Any:
        """The allowed |got - want| for each element of the float64 array ``want``."""
        import numpy

        magnitude = numpy.abs(want)
        if self.scaled and scale is None:
            finite = magnitude[numpy.isfinite(magnitude)]
            scale = math.sqrt(self.reduction) * (float(finite.max()) if finite.size else 0.0)
        return self.relative * magnitude + self.scaled * (0.0 if scale is None else numpy.abs(scale)) + self.floor


def tolerance(dtype: str, reduction: int = 1, *, accumulate: str | None = None, steps: int = 2) -> Tolerance:
    """The tolerance for results of type ``dtype``.

    ``reduction``: terms that go into one element (1: none are added up). ``accumulate``: the type that they are added in;
    float32 by default for the narrower types, as matrix units and CPU kernels do. ``steps``: roundings to ``dtype`` on
    the way of one value, apart from the reduction.
    """
    if dtype not in _TYPES:
        raise ValueError(f"no rule for dtype {dtype!r}; known: {', '.join(_TYPES)}")
    unit, tiny = _TYPES[dtype]
    narrow = unit > _TYPES["float32"][0]
    inner = accumulate or ("float32" if narrow else dtype)
    if inner not in _TYPES:
        raise ValueError(f"no rule for accumulate={accumulate!r}")
    scaled = gamma(reduction, _TYPES[inner][0]) if reduction > 1 else 0.0
    return Tolerance(
        relative=gamma(steps, unit),
        scaled=scaled,
        floor=steps * tiny,
        reduction=reduction,
        source=f"gamma_{steps}({dtype})|want| + gamma_{reduction}({inner})*scale; Higham 2002, Lemma 3.1 and eq. (3.5)",
    )
