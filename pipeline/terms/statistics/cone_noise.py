r"""Noise on a cone of moments: what it is, how many numbers it has, and how they vary together.

A record of d bounded columns on lattices, :math:`X_i \in -M..M`, adds the matrix :math:`H = z z^T` of
:math:`z = (M, X_1, \dots, X_d)`. The noise is

.. math:: \mathrm{round}(M^2 P) - \mathrm{round}(M^2 Q), \qquad
          P, Q \sim \propto e^{-\lambda \ell(P)} \text{ on } K

with K the cone of positive semidefinite matrices whose diagonal entries are at most the first,
:math:`\ell(P) = P_{00}`, and :math:`\lambda` epsilon by the records that a unit changes. Without first
moments, the entries :math:`(0, i)` are left out of H, of K and of the noise. Privacy in `sensitivity.md`:
cone-privacy and cone-moments.

P is :math:`t G / \lambda` with :math:`t \sim \mathrm{Gamma}(D)` and G the Gram matrix of points of
:math:`\mathbb{R}^m`: one of the unit sphere for row 0 and one of the unit ball for every column, m being
:math:`d + 2`; without first moments of the columns' points alone, m being :math:`d + 1`, beside
:math:`G_{00} = 1`. So, with :math:`c = E |x_i|^2 = m / (m + 2)` and :math:`E t^2 = D (D + 1)`,

.. math::
    \operatorname{var} P_{00} &= D / \lambda^2 &
    \operatorname{var} P_{0i} &= D (D + 1) / (m + 2) \lambda^2 \\
    \operatorname{var} P_{ii} &= [D (D + 1) m / (m + 4) - D^2 c^2] / \lambda^2 &
    \operatorname{var} P_{ij} &= D (D + 1) m / (m + 2)^2 \lambda^2 \\
    \operatorname{cov}(P_{00}, P_{ii}) &= D c / \lambda^2 &
    \operatorname{cov}(P_{ii}, P_{jj}) &= D c^2 / \lambda^2

and 0 for all other pairs, in which some point stands an odd number of times. Q doubles each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.documents import Positive, printed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.typing import Floats

Pair = tuple[int, int]
TAIL_BITS = 100
"""Values saturate where one of P and Q reaches with a probability of at most 2**-100."""


@printed("rate columns linear steps")
@dataclass(frozen=True, kw_only=True)
class ConeNoise:
    """Noise on the cone of moments of some columns, independent from cell to cell.

    Parameters
    ----------
    rate : Fraction
        Epsilon by the records that a unit changes at most: K of K rows a unit, and twice that under
        ``replace_one``.
    columns : int, >= 1
        d.
    linear : bool
        Whether first moments are released.
    steps : int, >= 1
        M.
    """

    rate: Fraction
    columns: Positive
    linear: bool
    steps: Positive

    def __post_init__(self) -> None:
        """Refuse what is no noise."""
        if self.rate <= 0 or self.columns < 1 or self.steps < 1:
            message = "noise on a cone has a rate above 0, and at least one column and one step"
            raise ValueError(message)

    def __str__(self) -> str:
        of = "moments" if self.linear else "moments of second order"
        return (
            f"on the cone of {of} of {self.columns} columns, at a rate of {float(self.rate):.6g}, with "
            f"{self.n_components} integers drawn together"
        )

    @property
    def size(self) -> int:
        """Rows of the Gram matrix: the columns, and before them row 0 where first moments are released."""
        return self.columns + int(self.linear)

    @property
    def dimension(self) -> int:
        """m, of the space that the points of the Gram matrix are in."""
        return self.size + 1

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The entry of the matrix that each component is, in order."""
        every = combinations_with_replacement(range(self.columns + 1), 2)
        return tuple((i, j) for i, j in every if self.linear or i > 0 or j == 0)

    @property
    def n_components(self) -> int:
        """D."""
        return (0 if self.linear else 1) + self.size * (self.size + 1) // 2

    def factor(self, pair: Pair) -> int:
        """Return how many times the moment a component is: M**2 of n, M of a sum, 1 of a product."""
        return int(self.steps ** pair.count(0))

    def covariance_of(self, first: Pair, second: Pair) -> Fraction:
        """Return the covariance of the noise on two entries, in squares of lattice units.

        It is that before rounding to integers, which moves a standard deviation by at most 1.
        """
        t, m = self.n_components, self.dimension  # E t is D
        t_squared = t * (t + 1)
        c = Fraction(m, m + 2)
        unit = 2 * (Fraction(self.steps) ** 2 / self.rate) ** 2
        (i, j), (k, other) = first, second
        if first == second:
            if i == j:
                fourth = Fraction(1) if i == 0 else Fraction(m, m + 4)
                mean = Fraction(1) if i == 0 else c
                return unit * (t_squared * fourth - (t * mean) ** 2)
            # E <x, y>^2 = E |x|^2 E |y|^2 / m of independent points without a direction
            return unit * t_squared * (Fraction(1) if i == 0 else c) * c / m
        if i == j and k == other:
            return unit * t * (Fraction(1) if i == 0 else c) * (Fraction(1) if k == 0 else c)
        return Fraction(0)

    def variance_of(self, coefficients: Mapping[int, Fraction]) -> Fraction:
        """Return the variance of the noise on a linear map of components, by position, exactly."""
        pairs = self.pairs
        alone = sum(
            (a**2 * self.covariance_of(pairs[place], pairs[place]) for place, a in coefficients.items()),
            Fraction(0),
        )
        # The others of a pair are 0 but between diagonal entries.
        diagonal = [
            (pairs[place], a) for place, a in coefficients.items() if pairs[place][0] == pairs[place][1]
        ]
        together = (
            2 * a * b * self.covariance_of(first, second)
            for (first, a), (second, b) in combinations(diagonal, 2)
        )
        return alone + sum(together, Fraction(0))

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the components' noise, shape (D, D), float64, in squares of lattice units."""
        import numpy as np  # plans are made without it

        pairs = self.pairs
        covariance = np.zeros((len(pairs), len(pairs)))
        diagonal = [place for place, (i, j) in enumerate(pairs) if i == j]
        for place, pair in enumerate(pairs):
            covariance[place, place] = float(self.covariance_of(pair, pair))
        for place in diagonal:
            for other in diagonal:
                covariance[place, other] = float(self.covariance_of(pairs[place], pairs[other]))
        return covariance

    @cached_property
    def reach(self) -> int:
        """What no component's noise exceeds in magnitude, but with probability 2**-99 a cell.

        An entry of G is at most 1 in magnitude, so that one of P and Q is at most t / rate.
        """
        # proof: cone-reach
        return 2 * math.ceil(self.steps**2 * gamma_bound(self.n_components, TAIL_BITS) / self.rate + 1)


@lru_cache
def gamma_bound(shape: int, bits: int) -> int:
    r"""Return a whole number that Gamma(D) exceeds with probability 2**-bits at most.

    .. math:: P(t > x) = e^{-x} \sum_{k < D} x^k / k! \le
              \sum_{k < D} \frac{x^k}{k!} \Big/ \sum_{k \le n} \frac{x^k}{k!}

    for every n: a ratio of whole numbers, in exact arithmetic. The least such number above D at n = 2 x.

    Parameters
    ----------
    shape : int, >= 1
        D.
    bits : int, >= 1
    """
    # proof: cone-reach
    low, high = shape, shape + bits
    while not _is_beyond(high, shape, bits):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_beyond(middle, shape, bits) else (middle, high)
    return high


def _is_beyond(x: int, shape: int, bits: int) -> bool:
    last = 2 * x
    below = every = term = math.factorial(last)  # x^k / k! times last!, each a whole number
    for k in range(1, last + 1):
        term = term * x // k
        every += term
        if k < shape:
            below += term
    return below << bits <= every
