"""Recorded bits for the sampler of cone noise, and decision trees of its primitives."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from suffice.pipeline.rows.mechanism.cone.bits import BufferedBits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.rows.mechanism.cone.bits import Bits

T = TypeVar("T")
E = TypeVar("E")


class RecordedBits(BufferedBits):
    """Words of a list, each 64 bits; behind it those of a generator with a fixed seed."""

    def __init__(self, words: NDArray[np.uint64], seed: int = 0) -> None:
        super().__init__()
        self.recorded = words
        self.generator = np.random.default_rng(seed)

    def _fresh(self, number: int) -> NDArray[np.uint64]:
        words, self.recorded = self.recorded[:number], self.recorded[number:]
        beyond = self.generator.integers(0, 2**64, number - len(words), dtype=np.uint64)
        return np.concatenate([words, beyond])


class NarrowBits:
    """Words of a few bits, of a generator with a fixed seed: most roundings take several attempts."""

    def __init__(self, width: int, seed: int) -> None:
        self.width = width
        self.generator = np.random.default_rng(seed)

    def word(self) -> int:
        return int(self.generator.integers(0, 1 << self.width))


class _Asked(Exception):  # noqa: N818 - it says that a path goes on
    """More bits are asked for than a path has."""


class _Path:
    width = 1

    def __init__(self, bits: tuple[int, ...]) -> None:
        self.bits = bits
        self.position = 0

    def word(self) -> int:
        if self.position == len(self.bits):
            raise _Asked
        self.position += 1
        return self.bits[self.position - 1]


def outcomes(primitive: Callable[[Bits], T], depth: int) -> Iterator[tuple[T | None, Fraction]]:
    """Yield what a primitive returns for every string of at most `depth` bits, with its probability.

    Paths that ask for more bits are yielded as None.
    """
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = waiting.pop()
        try:
            value = primitive(_Path(path))
        except _Asked:
            if len(path) == depth:
                yield None, Fraction(1, 1 << depth)
            else:
                waiting += [(*path, 0), (*path, 1)]
        else:
            yield value, Fraction(1, 1 << len(path))


def law(
    primitive: Callable[[Bits], T], event: Callable[[T], E], depth: int
) -> tuple[dict[E, Fraction], Fraction]:
    """Return the probability of every event that strings of `depth` bits decide, and what they leave open."""
    decided: dict[E, Fraction] = {}
    is_open = Fraction(0)
    for value, chance in outcomes(primitive, depth):
        if value is None:
            is_open += chance
        else:
            decided[event(value)] = decided.get(event(value), Fraction(0)) + chance
    return decided, is_open


def exponential_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Return rational bounds of ``exp(-x)``, ``0 <= x <= 1``: two partial sums of an alternating series."""
    term, total, sums = Fraction(1), Fraction(0), []
    for k in range(1, 24):
        total += term
        sums.append(total)
        term *= -x / k
    return min(sums[-2:]), max(sums[-2:])
