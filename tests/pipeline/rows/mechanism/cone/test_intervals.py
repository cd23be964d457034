"""Interval arithmetic: what short reals decide longer ones confirm, and ends hold the real between them."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, product
from math import isqrt
from typing import cast

import numpy as np
import pytest

from suffice.pipeline.rows.mechanism.cone import matrix as exact
from suffice.pipeline.rows.mechanism.cone.gaussian import GaussianPair
from suffice.pipeline.rows.mechanism.cone.intervals import (
    Interval,
    inner_product,
    root,
    root_of_quotient,
    rounded_quotient,
)
from suffice.pipeline.rows.mechanism.cone.lazy_reals import Real
from suffice.pipeline.rows.mechanism.cone.matrix import ConeShape
from support.cone_bits import NarrowBits

LONG = 320


@pytest.mark.parametrize(("columns", "linear"), [(1, True), (2, True), (3, False)])
def test_short_reals_decide_as_long_ones_do(
    columns: int, linear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of 6 bits: most matrices take several attempts, and none is changed by 320 bits more."""
    shape = ConeShape(columns=columns, linear=linear, size=Fraction(7, 3))
    attempts, decided = 0, 0
    rounded = exact._rounded

    def checked(*arguments: object) -> list[int] | None:
        nonlocal attempts, decided
        attempts += 1
        _, parts, rows, length = cast("tuple[ConeShape, list[Real], list[exact._Row], int]", arguments)
        value = rounded(*arguments)  # type: ignore[arg-type]
        if value is not None:
            decided += 1
            for real in [*parts, *chain.from_iterable(map(exact._reals, rows))]:
                while real.length < LONG:
                    real.lengthen(bits)
            assert value == rounded(shape, parts, rows, LONG), length
        return value

    monkeypatch.setattr(exact, "_rounded", checked)
    bits = NarrowBits(6, 1)
    for _ in range(60):
        exact.matrix(shape, bits)
    assert decided == 60
    assert attempts > 100, "the first attempt seldom decides"


def test_ends_hold_what_lies_between_them() -> None:
    generator = np.random.default_rng(5)
    length = 24
    for _ in range(300):
        energy, low = (int(x) for x in generator.integers(1, 1 << 26, 2))
        square = Interval(low, low + int(generator.integers(0, 6)))
        factor = root_of_quotient(energy, square, length)
        if factor is not None:
            # 2^length sqrt(E / s) at both ends, to 40 more bits
            least = isqrt((energy << 2 * length + 80) // square.high)
            most = isqrt(((energy + 1) << 2 * length + 80) // square.low)
            assert factor.low << 40 <= least + 1
            assert most <= factor.high << 40
        norm = root(Interval(low, low + 3), 2, length)
        assert norm is not None
        assert norm.low**2 <= low
        assert norm.high**2 >= low + 3
    assert root_of_quotient(1 << 24, Interval(1, 40), length) is None, "too wide"
    assert root(Interval(0, 3), 2, length) is None, "not told from 0"


def test_an_inner_product_holds_every_product_between_the_ends() -> None:
    left = [(Interval(2, 3), True), (Interval(0, 1), False), (Interval(5, 5), True)]
    right = [(Interval(7, 9), False), (Interval(4, 6), True), (Interval(1, 2), True)]
    assert inner_product(left, right) == (Interval(5, 10), Interval(14, 33))


def test_a_rounding_is_returned_only_where_both_ends_agree() -> None:
    """All small intervals: the integer is nearest to both ends, or there is none."""
    unity, nothing = Interval(1, 1), Interval(0, 0)
    half = Fraction(1, 2)
    for low, width, other, wide in product(range(12), range(4), range(14), range(3)):
        value = rounded_quotient(
            Interval(low, low + width), Interval(other, other + wide), unity, Interval(2, 2)
        )
        ends = Fraction(low - other - wide, 2), Fraction(low + width - other, 2)
        sign = 1 if ends[1] > 0 else -1
        least, most = sorted(abs(end) for end in ends)
        if ends[0] < 0 < ends[1]:
            least = Fraction(0)
        nearest = [sign * k for k in range(14) if k - half <= least and most < k + half]
        assert nearest == ([] if value is None else [value])
    assert rounded_quotient(nothing, Interval(2, 3), unity, Interval(2, 2)) is None, "1 or 3 halves"


@pytest.mark.parametrize("ends", list(product((0, 1), repeat=3)))
def test_magnitudes_hold_those_of_every_longer_real(ends: tuple[int, int, int]) -> None:
    """Reals of 12 bits, continued by zeros or by ones: what is then known lies between the ends."""
    generator = np.random.default_rng(7)

    def longer(digits: int, end: int) -> Real:
        return Real((digits << 388) + (end << 388) - end, 400)

    n_narrow = 0
    for small in (0, 0, 0, 9):
        for _ in range(60):
            energy, a, b = (int(x) for x in generator.integers(0, (1 << 13, 1 << (12 - small), 2800)))
            short = GaussianPair(Real(energy, 12), Real(a, 12), Real(b, 12), (False, False))
            known = short.magnitudes(12)
            long_energy, long_a, long_b = map(longer, (energy, a, b), ends)
            if known is None:
                continue
            n_narrow += 1
            long = GaussianPair(long_energy, long_a, long_b, (False, False)).magnitudes(400)
            assert long is not None
            for wide, narrow in zip(known, long, strict=True):
                assert wide.low << 388 <= narrow.high
                assert narrow.low <= wide.high << 388
    assert n_narrow > 100


def test_a_sum_that_may_reach_a_half_is_undecided() -> None:
    """Three parts, known to 24 bits each, add up to some units less than 1/2, or to three more."""
    shape, half = ConeShape(columns=1, linear=True, size=Fraction(1)), 1 << 23
    energy, a, b = (Real(digits << 12, 24) for digits in (2000, 1500, 1500))
    pair = GaussianPair(energy, a, b, (False, True))
    row = exact._Row([pair, pair], Real(9000 << 12, 24))
    for first, value in ((half - 4, [0, 0, 0]), (half - 2, None), (half - 1, None), (half, [1, 0, 0])):
        parts = [Real(first, 24), Real(0, 24), Real(0, 24)]
        assert exact._rounded(shape, parts, [row], 24) == value
