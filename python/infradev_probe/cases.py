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
    """What the decorator was given. ``twin`` maps the expected value of the last comparison to a wrong one; ``exact`` names a case."""

    worlds: tuple[int, ...]
    checks: str
    traits: tuple[str, ...]
    twin: Callable[[Any], Any] | None
    exact: str | None = None


def case(
    *,
    worlds: Sequence[int],
    checks: str,
    traits: Sequence[str] = (),
    twin: Callable[[Any], Any] | None = None,
    exact: str | None = None,
) -> Callable[[_F], _F]:
    """Make a function of ``worlds`` (and ``rng``) a case at each of the world sizes ``worlds``.

    ``checks`` is one of :data:`CHECKS`; ``traits`` are free words. When the case has passed, its last comparison is made
    again against a perturbed expectation, or against ``twin(expected)``, and must then fail: a comparison that passes
    both is toothless, and the case an error.

    ``exact`` names a case of the same file, at the same world sizes, that asks the same on inputs on which the right algorithm is
    exact in the working type: where that one passes and this one does not, what lacks is precision and not the algorithm.
    """
    if checks not in CHECKS:
        raise ValueError(f"checks={checks!r} is none of {', '.join(CHECKS)}")
    sizes = tuple(worlds)
    if not sizes or not all(isinstance(size, int) and size > 0 for size in sizes) or len(set(sizes)) != len(sizes):
        raise ValueError(f"worlds={worlds!r} must be different positive sizes")
    if isinstance(traits, str):
        raise ValueError("traits is a list of words")
    if exact is not None and checks not in ("numbers", "precision"):
        raise ValueError(f"exact={exact!r} is for checks of numbers and precision; this one checks {checks}")

    def mark(function: _F) -> _F:
        setattr(function, _MARK, Case(sizes, checks, tuple(traits), twin, exact))
        return function

    return mark


def case_of(value: object) -> Case | None:
    """What :func:`case` was given for this function, if it is one."""
    found = getattr(value, _MARK, None)
    return found if isinstance(found, Case) else None
