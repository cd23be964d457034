"""One random matrix of the cone, rounded: the exact path, in Python integers.

It is a function of a stream of words. `fast_matrix` computes the same function where words of 64 bits decide
at the first attempt, and leaves the others to this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from suffice.pipeline.rows.mechanism.cone.exponential import exponential, exponentials
from suffice.pipeline.rows.mechanism.cone.gaussian import gaussian_pair
from suffice.pipeline.rows.mechanism.cone.intervals import Interval, inner_product, root, rounded_quotient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from suffice.pipeline.rows.mechanism.cone.bits import Bits
    from suffice.pipeline.rows.mechanism.cone.gaussian import GaussianPair
    from suffice.pipeline.rows.mechanism.cone.intervals import Signed
    from suffice.pipeline.rows.mechanism.cone.lazy_reals import Real

FIRST_WORDS = 2
"""Words that every real has when entries are rounded for the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConeShape:
    r"""Which cone, and the size of its matrices.

    .. math:: M^2 P = c \, t \, G, \qquad c = M^2 / \text{rate}, \quad t \sim \mathrm{Gamma}(D)

    Parameters
    ----------
    columns : int
        ``d``.
    linear : bool
        Whether the first moments belong to the components.
    size : Fraction
        ``c``.
    """

    columns: int
    linear: bool
    size: Fraction

    @property
    def n_components(self) -> int:
        """``D``: ``p (p + 1) / 2`` with ``p = d + 1``; without first moments ``1 + d (d + 1) / 2``."""
        return 1 + self.columns * (self.columns + 1) // 2 + (self.columns if self.linear else 0)

    @property
    def dimension(self) -> int:
        """The dimension n of the ball that rows lie in: ``d + 2``; without first moments ``d + 1``."""
        return self.columns + (2 if self.linear else 1)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield row and column of every component, in their order."""
        for first, second in combinations_with_replacement(range(self.columns + 1), 2):
            if self.linear or first > 0 or second == 0:
                yield first, second


@dataclass(slots=True, repr=False)
class _Row:
    """A Gaussian vector of n + 2 dimensions: the first n, divided by its norm, are uniform in the ball."""

    pairs: list[GaussianPair]
    beside: Real

    def coordinates(self, dimension: int, length: int) -> list[Signed] | None:
        """Return the first n coordinates in units of ``2**-length``; None where one is not narrow."""
        coordinates: list[Signed] = []
        for pair in self.pairs:
            magnitudes = pair.magnitudes(length)
            if magnitudes is None:
                return None
            coordinates.extend(zip(magnitudes, pair.signs, strict=True))
        return coordinates[:dimension]

    def norm(self, coordinates: list[Signed], length: int) -> Interval | None:
        """Return the norm of all n + 2 dimensions in units of ``2**-length``; None where it is not narrow."""
        beside = self.beside.at(length)
        low = sum(x.low * x.low for x, _ in coordinates) + (beside << length)
        high = sum(x.high * x.high for x, _ in coordinates) + ((beside + 1) << length)
        return root(Interval(low, high), len(coordinates), length)


def matrix(shape: ConeShape, bits: Bits) -> list[int]:
    """Return the components of one matrix of the cone, each rounded to the nearest integer."""
    # proof: slice
    # proof: cone-density
    parts = exponentials(shape.n_components, bits)  # t is their sum
    rows = [_row(shape.dimension, bits) for _ in range(shape.columns)]
    reals = [*parts, *(real for row in rows for real in _reals(row))]
    words = FIRST_WORDS
    while True:
        length = words * bits.width
        for real in reals:
            while real.length < length:
                real.lengthen(bits)
        rounded = _rounded(shape, parts, rows, length)
        if rounded is not None:
            return rounded
        words += 1


def _row(dimension: int, bits: Bits) -> _Row:
    # proof: ball
    pairs = [gaussian_pair(bits) for _ in range((dimension + 1) // 2)]
    return _Row(pairs, exponential(bits))


def _reals(row: _Row) -> Iterator[Real]:
    for pair in row.pairs:
        yield from pair.reals()
    yield row.beside


def _rounded(shape: ConeShape, parts: list[Real], rows: list[_Row], length: int) -> list[int] | None:
    """Return the rounded components; None where reals of this length do not decide all of them."""
    unit, n = 1 << length, shape.dimension
    # With first moments row 0 is the first unit vector; without them its products are not asked for.
    coordinates: list[list[Signed]] = [[(Interval(unit, unit), False), *[(Interval(0, 0), False)] * (n - 1)]]
    norms = [Interval(unit, unit)]
    for row in rows:
        known = row.coordinates(n, length)
        size = None if known is None else row.norm(known, length)
        if known is None or size is None:
            return None
        coordinates.append(known)
        norms.append(size)
    digits = sum(part.at(length) for part in parts)
    # c t in units of 2^-length, without the denominator of c
    factor = shape.size.numerator
    gamma = Interval(factor * digits, factor * (digits + len(parts)))
    rounded = []
    for i, j in shape.entries():
        # c t <x_i, x_j> / (|x_i| |x_j|)
        positive, negative = inner_product(coordinates[i], coordinates[j])
        scale = shape.size.denominator << length
        norm = Interval(norms[i].low * norms[j].low * scale, norms[i].high * norms[j].high * scale)
        value = rounded_quotient(positive, negative, gamma, norm)
        if value is None:
            return None
        rounded.append(value)
    return rounded
