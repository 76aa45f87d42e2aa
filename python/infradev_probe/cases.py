"""The ``case`` decorator: what a judge's function promises to check, and at which world sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Sequence, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_MARK = "__infradev_case__"

CHECKS = (
    "numbers",
    "precision",
    "shape",
    "state",
    "memory",
    "traffic",
    "time",
    "liveness",
    "condition",
    "error",
)


@dataclass(frozen=True)
class Case:
    """What the decorator was given. ``twin`` maps the expected value of the last comparison to a wrong one."""

    worlds: tuple[int, ...]
    checks: str
    traits: tuple[str, ...]
    twin: Callable[[Any], Any] | None


def case(
    *, worlds: Sequence[int], checks: str, traits: Sequence[str] = (), twin: Callable[[Any], Any] | None = None
) -> Callable[[_F], _F]:
    """Make a function of ``worlds`` (and ``rng``) a case at each of the world sizes ``worlds``.

    ``checks`` is one of :data:`CHECKS`; ``traits`` are free words. When the case has passed, its last comparison is made
    again against a perturbed expectation, or against ``twin(expected)``, and must then fail: a comparison that passes
    both is toothless, and the case an error.
    """
    if checks not in CHECKS:
        raise ValueError(f"checks={checks!r} is none of {', '.join(CHECKS)}")
    sizes = tuple(worlds)
    if not sizes or not all(isinstance(size, int) and size > 0 for size in sizes) or len(set(sizes)) != len(sizes):
        raise ValueError(f"worlds={worlds!r} must be different positive sizes")
    if isinstance(traits, str):
        raise ValueError("traits is a list of words")

    def mark(function: _F) -> _F:
        setattr(function, _MARK, Case(sizes, checks, tuple(traits), twin))
        return function

    return mark


def case_of(value: object) -> Case | None:
    """What :func:`case` was given for this function, if it is one."""
    found = getattr(value, _MARK, None)
    return found if isinstance(found, Case) else None
