"""Interval arithmetic: what short reals decide longer ones confirm, and ends hold the real between them."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, product
from math import isqrt
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from suffice.pipeline.rows.mechanism.cone import matrix as exact
from suffice.pipeline.rows.mechanism.cone.intervals import (
    Interval,
    inner_product,
    root,
    root_of_quotient,
    rounded_quotient,
)
from suffice.pipeline.rows.mechanism.cone.matrix import ConeShape
from support.cone_bits import NarrowBits

if TYPE_CHECKING:
    from suffice.pipeline.rows.mechanism.cone.lazy_reals import Real

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
    one, nothing = Interval(1, 1), Interval(0, 0)
    half = Fraction(1, 2)
    for low, width, other, wide in product(range(12), range(4), range(14), range(3)):
        value = rounded_quotient(
            Interval(low, low + width), Interval(other, other + wide), one, Interval(2, 2)
        )
        ends = Fraction(low - other - wide, 2), Fraction(low + width - other, 2)
        sign = 1 if ends[1] > 0 else -1
        least, most = sorted(abs(end) for end in ends)
        if ends[0] < 0 < ends[1]:
            least = Fraction(0)
        nearest = [sign * k for k in range(14) if k - half <= least and most < k + half]
        assert nearest == ([] if value is None else [value])
    assert rounded_quotient(nothing, Interval(2, 3), one, Interval(2, 2)) is None, "1 or 3 halves"
