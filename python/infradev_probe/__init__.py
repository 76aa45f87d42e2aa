"""What runs beside the code under test, and the judge's side of a probe.

Observers (in the sandbox) use ``observer`` and ``rank``; judges (in the trusted process) use ``case``, ``expect`` and
``per_rank``. The names are resolved on first use, so that neither half imports the other, and importing the package
imports no torch, numpy or pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import expect as expect
    from .cases import case as case
    from .observers import observer as observer, rank as rank
    from .worlds import per_rank as per_rank

__all__ = ["case", "expect", "observer", "per_rank", "rank"]

_HOMES = {
    "observer": ("observers", "observer"),
    "rank": ("observers", "rank"),
    "case": ("cases", "case"),
    "per_rank": ("worlds", "per_rank"),
    "expect": ("expect", None),
}


def __getattr__(name: str) -> Any:
    import importlib

    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    home = importlib.import_module(f"{__name__}.{module}")
    value = home if attribute is None else getattr(home, attribute)
    globals()[name] = value
    return value
