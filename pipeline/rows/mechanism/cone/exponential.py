"""Exponential and gamma variables by comparisons of uniform ones (von Neumann 1951)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.rows.mechanism.cone.lazy_reals import Real, is_less, uniform

if TYPE_CHECKING:
    from suffice.pipeline.rows.mechanism.cone.bits import Bits


def exponential(bits: Bits) -> Real:
    r"""Return a real with density ``exp(-x)`` on ``x > 0``.

    A run of uniform reals falls as long as each is less than the one before. A run of odd length gives its
    first real as the fraction; one of even length raises the whole part by 1, and another run is drawn.

    References
    ----------
    von Neumann 1951, "Various techniques used in connection with random digits".
    """
    # proof: exponential
    whole = 0
    while True:
        first = last = uniform(bits)
        is_odd = True
        while is_less(following := uniform(bits), last, bits):
            last, is_odd = following, not is_odd
        if is_odd:
            return Real((whole << first.length) | first.digits, first.length)
        whole += 1


def exponentials(number: int, bits: Bits) -> list[Real]:
    """Return independent exponential variables; their sum has the law Gamma(number)."""
    # proof: gamma
    return [exponential(bits) for _ in range(number)]
