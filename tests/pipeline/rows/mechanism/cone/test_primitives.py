"""Every primitive on every string of bits, against rational bounds of its exact law.

What bits of a depth decide is a lower bound of the exact probability, and an upper one with what they leave
open added. There is no chance in these tests. Wrong primitives must leave the bounds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.pipeline.rows.mechanism.cone.exponential import exponential, exponentials
from suffice.pipeline.rows.mechanism.cone.gaussian import quarter_disc
from suffice.pipeline.rows.mechanism.cone.lazy_reals import Real, coin, is_less, uniform
from support.cone_bits import exponential_bounds, law

if TYPE_CHECKING:
    from suffice.pipeline.rows.mechanism.cone.bits import Bits

DEPTH = 15
PI = Fraction(333, 106), Fraction(355, 113)  # below and above


def cell(real: Real) -> tuple[int, int]:
    """Return the whole part of a real and its first bit behind the point."""
    return divmod(real.at(1), 2)


def exact_cell(whole: int, bit: int) -> tuple[Fraction, Fraction]:
    r"""Bound ``exp(-whole) (exp(-bit / 2) - exp(-(bit + 1) / 2))`` from below and above."""
    low, high = exponential_bounds(Fraction(1))
    start, stop = exponential_bounds(Fraction(bit, 2)), exponential_bounds(Fraction(bit + 1, 2))
    return low**whole * (start[0] - stop[1]), high**whole * (start[1] - stop[0])


def is_exponential(primitive: object) -> bool:
    decided, is_open = law(primitive, cell, DEPTH)  # type: ignore[arg-type]
    assert sum(decided.values()) + is_open == 1
    if is_open > Fraction(1, 4):
        return False
    return all(
        decided.get((whole, bit), Fraction(0)) <= exact_cell(whole, bit)[1]
        and exact_cell(whole, bit)[0] <= decided.get((whole, bit), Fraction(0)) + is_open
        for whole in range(DEPTH)
        for bit in (0, 1)
    )


def test_exponential_variables_have_their_law() -> None:
    decided, is_open = law(exponential, cell, DEPTH)
    assert is_open < Fraction(1, 5), "few strings of that depth ask for more"
    assert is_exponential(exponential)
    assert decided[0, 0] > Fraction(1, 3), "of .393"


def even_runs(bits: Bits) -> Real:
    """Keep runs of even length, which have the density ``1 - exp(-x)``."""
    whole = 0
    while True:
        first = last = uniform(bits)
        is_odd = True
        while is_less(following := uniform(bits), last, bits):
            last, is_odd = following, not is_odd
        if not is_odd:
            return Real((whole << first.length) | first.digits, first.length)
        whole += 1


def rising_runs(bits: Bits) -> Real:
    """Compare the other way round: the density is that of ``1 - x``."""
    whole = 0
    while True:
        first = last = uniform(bits)
        is_odd = True
        while is_less(last, following := uniform(bits), bits):
            last, is_odd = following, not is_odd
        if is_odd:
            return Real((whole << first.length) | first.digits, first.length)
        whole += 1


def one_word(bits: Bits) -> Real:
    """Take equal words for a run's end: what finite precision would do."""
    whole = 0
    while True:
        first = last = bits.word()
        is_odd = True
        while (following := bits.word()) < last:
            last, is_odd = following, not is_odd
        if is_odd:
            return Real((whole << 1) | first, 1)
        whole += 1


@pytest.mark.parametrize("wrong", [even_runs, rising_runs, one_word])
def test_a_wrong_exponential_variable_is_caught(wrong: object) -> None:
    assert not is_exponential(wrong)


def test_a_sum_of_two_has_the_law_gamma() -> None:
    """``P(t < 1) = 1 - 2 / e``; the whole parts of both decide some of it, and bound the rest."""

    def both(bits: Bits) -> int:
        first, second = exponentials(2, bits)
        length = min(first.length, second.length)
        total = first.at(length) + second.at(length)
        return -1 if total + 2 <= 1 << length else int(total >= 1 << length)  # below 1, open, above

    decided, is_open = law(both, int, 15)
    low, high = (1 - 2 * bound for bound in reversed(exponential_bounds(Fraction(1))))
    assert decided[-1] <= high
    assert low <= decided[-1] + decided[0] + is_open
    assert decided[1] <= 1 - low


def test_the_point_is_uniform_in_the_quarter_disc() -> None:
    """A quarter of the square near 0 has the share ``(1/4) / (pi/4)``; the two beside it are alike."""
    decided, is_open = law(quarter_disc, lambda point: (point[0].at(1), point[1].at(1)), 16)
    assert is_open < Fraction(1, 16)
    assert decided[0, 0] <= 1 / PI[0]
    assert decided[0, 0] + is_open >= 1 / PI[1]
    assert decided[0, 1] == decided[1, 0]
    assert decided[1, 1] < decided[0, 1] < decided[0, 0]

    def square(bits: Bits) -> tuple[Real, Real]:
        return uniform(bits), uniform(bits)

    wrong, left = law(square, lambda point: (point[0].at(1), point[1].at(1)), 16)
    assert wrong[0, 0] + left < 1 / PI[1], "points of the square must not pass"


def test_comparisons_are_fair_and_right() -> None:
    def compared(bits: Bits) -> tuple[bool, int, int]:
        first, second = uniform(bits), uniform(bits)
        is_first = is_less(first, second, bits)
        assert first.length == second.length
        return is_first, first.digits, second.digits

    decided, is_open = law(compared, lambda value: value, 14)
    assert is_open == Fraction(1, 128), "seven equal bits each"
    assert all((first < second) is is_first for is_first, first, second in decided)
    assert sum(chance for (is_first, _, _), chance in decided.items() if is_first) == (1 - is_open) / 2


def test_a_longer_real_is_compared_by_the_bits_that_both_have() -> None:
    long = Real(0b1011, 4)

    def compared(bits: Bits) -> tuple[bool, int]:
        short = uniform(bits)
        return is_less(short, long, bits), short.length

    decided, is_open = law(compared, lambda value: value, 4)
    assert sum(chance for event, chance in decided.items() if event[0]) == Fraction(11, 16)
    assert is_open == Fraction(1, 16)


def test_a_coin_is_fair() -> None:
    assert law(coin, int, 1) == ({0: Fraction(1, 2), 1: Fraction(1, 2)}, Fraction(0))
