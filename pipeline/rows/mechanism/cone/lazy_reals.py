"""Random reals of which only a beginning is known: an interval of random bits, lengthened when asked.

A `Real` of length L and digits d is a number between ``d / 2**L`` and ``(d + 1) / 2**L``. Whatever is decided
about it holds for every number in that interval, so that a decision is one about the real itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.pipeline.rows.mechanism.cone.bits import Bits


@dataclass(slots=True, repr=False)
class Real:
    """A non-negative real, known to `length` bits after the binary point.

    Parameters
    ----------
    digits : int
        The largest integer that is at most ``2**length`` times the real.
    length : int
    """

    digits: int
    length: int

    def lengthen(self, bits: Bits) -> None:
        """Learn one more word of its bits."""
        self.digits = (self.digits << bits.width) | bits.word()
        self.length += bits.width

    def at(self, length: int) -> int:
        """Return the digits of a length that is at most its own."""
        return self.digits >> (self.length - length)


def uniform(bits: Bits) -> Real:
    """Return a real that is uniform between 0 and 1, known to one word."""
    # proof: uniform
    return Real(bits.word(), bits.width)


def is_less(first: Real, second: Real, bits: Bits) -> bool:
    """Tell whether one real is less than another; lengthen the shorter, or both, until that is decided."""
    # proof: uniform
    while True:
        length = min(first.length, second.length)
        left, right = first.at(length), second.at(length)
        if left != right:
            return left < right
        for real in (first, second):
            if real.length == length:
                real.lengthen(bits)


def coin(bits: Bits) -> bool:
    """Return a fair coin: the last bit of a word."""
    return bool(bits.word() & 1)
