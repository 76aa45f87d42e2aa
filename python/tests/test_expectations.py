"""Tolerances are derived, comparisons say where, perturbations are felt."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

from infradev_probe import expect
from infradev_probe.comparison import NothingToPerturb, compare, perturb, short
from infradev_probe.expect import ExpectationFailed
from infradev_probe.tolerance import gamma, tolerance


def test_the_bound_is_higham_s() -> None:
    unit = 2.0**-24
    assert gamma(10, unit) == pytest.approx(10 * unit / (1 - 10 * unit))
    rule = tolerance("float32", 1000)
    assert rule.scaled == gamma(1000, unit) and rule.relative == gamma(2, unit)
    assert tolerance("bfloat16", 1000).scaled == gamma(1000, unit), "narrow types add in float32"
    assert tolerance("bfloat16", 100, accumulate="bfloat16").scaled == gamma(100, 2.0**-8)
    assert tolerance("float64").scaled == 0
    with pytest.raises(ValueError, match="no bound"):
        tolerance("bfloat16", 256, accumulate="bfloat16")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("length", [1, 7, 64, 1000, 4096])
@pytest.mark.parametrize("order", ["forward", "backward", "pairwise"])
def test_right_products_of_any_order_are_within_the_tolerance(dtype: str, length: int, order: str) -> None:
    rng = np.random.default_rng(length)
    kind = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    inner = np.float64 if dtype == "float64" else np.float32
    x, y = (rng.standard_normal((20, length)).astype(kind) for _ in range(2))
    terms = x.astype(inner) * y.astype(inner)
    if order == "backward":
        terms = terms[:, ::-1]
    if order == "pairwise":
        total = terms.sum(axis=1, dtype=inner)
    else:
        total = np.zeros(20, inner)
        for column in terms.T:
            total = (total + column).astype(inner)
    got = total.astype(kind)
    reference = (x.astype(np.longdouble) * y.astype(np.longdouble)).sum(axis=1).astype(np.float64)
    expect.close(got, reference, dtype=dtype, reduction=length)
    magnitudes = np.abs(x.astype(np.float64) * y.astype(np.float64)).sum(axis=1)
    expect.close(got, reference, dtype=dtype, reduction=length, scale=magnitudes)


def test_adding_in_a_narrow_type_is_outside_of_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 512)).astype(ml_dtypes.bfloat16)
    total = np.zeros(20, ml_dtypes.bfloat16)
    for column in x.T:
        total = (total + column).astype(ml_dtypes.bfloat16)
    with pytest.raises(ExpectationFailed, match="too far"):
        expect.close(total, x.astype(np.float64).sum(axis=1), dtype="bfloat16", reduction=512)


WRONG: list[tuple[Any, Any, str]] = [
    (np.zeros(3), np.zeros(4), r"value: shape \(3,\), expected \(4,\)"),
    (np.zeros((1, 3)), np.zeros(3), "shape"),
    ({"a": np.zeros(2)}, {"b": np.zeros(2)}, "keys"),
    ({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]}, r"\['a'\]\[1\]"),
    ([1], (1,), "a list of 1, expected a tuple of 1"),
    (np.array([1.0, np.nan]), np.array([1.0, 2.0]), r"value\[1\]"),
    (np.array([np.inf]), np.array([1.0]), r"value\[0\]"),
    (np.array([1.0]), np.array([np.inf]), r"value\[0\]"),
    (np.array([np.inf]), np.array([-np.inf]), r"value\[0\]"),
    (np.array([1, 2]), np.array([1, 3]), r"value\[1\]: 2, expected 3 \(1 of 2 differ\)"),
    ("a", "b", "'a', expected 'b'"),
    (True, 1, "True, expected 1"),
    (None, 0.0, "None, expected 0.0"),
]


@pytest.mark.parametrize(("got", "want", "words"), WRONG, ids=lambda value: short(value)[:30])
def test_a_difference_is_told_by_its_place(got: Any, want: Any, words: str) -> None:
    with pytest.raises(ExpectationFailed, match=words):
        expect.close(got, want)
    with pytest.raises(ExpectationFailed):
        expect.equal(got, want)


@pytest.mark.parametrize(
    "want",
    [
        1, 1.5, 0.0, True, "x", b"x", None, np.zeros(3), np.ones((2, 2), "int8"), np.full(3, 127, "int8"), np.array([2**64 - 1], "uint64"),
        np.array(True), np.array(1.0), np.array([np.nan]), np.array([1e300, 1e-300]), [np.zeros(0), np.ones(1)], {"a": ({"b": 1},)},
        np.array([1 + 2j], "complex64"), np.array([1.5], ml_dtypes.bfloat16),
    ],
    ids=short,
)  # fmt: skip
def test_a_perturbed_expectation_is_another_one(want: Any) -> None:
    assert compare(want, want).ok
    assert not compare(want, perturb(want)).ok
    assert not compare(want, perturb(want, exact=False), lambda expected: 1e-3 * abs(expected)).ok


@pytest.mark.parametrize("want", [[], {}, np.zeros(0), [np.zeros((0, 3)), ()], object()], ids=lambda v: type(v).__name__)
def test_nothing_in_it_is_nothing_to_perturb(want: Any) -> None:
    with pytest.raises(NothingToPerturb):
        perturb(want)


def test_between_takes_its_bounds_in() -> None:
    expect.between(2, 2, 3)
    expect.between(3, 2, 3)
    for number in (1.999, 3.001, float("nan")):
        with pytest.raises(ExpectationFailed):
            expect.between(number, 2, 3)


def test_texts_are_bounded() -> None:
    assert len(short("x" * 10_000)) <= 500
    assert short(np.arange(1e6)).startswith("float64[1000000] [0.0, 1.0") and len(short(np.arange(1e6))) < 100
