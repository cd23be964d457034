r"""The chance of what was released of a Poisson count given its mean, in closed form, and the count given it.

Model. A count k is Poisson with mean :math:`\mu`. What was released of it has the chance w(k), which is

.. math::
    w(k) = e^{a_i + t_i k}, \qquad e_i < k \le e_{i + 1}, \qquad e_0 = -1, \quad e_S = \infty. \qquad (1)

Of R releases with discrete Laplace noise of the scales :math:`b_r` it is the product of their noises, with
kinks at what they released, exactly. Of a sum of m noises it is their law, whose logarithm is taken for
straight between knots .1 or .2 standard deviations apart: within .006 nats, and .05 farther out than five of
these. Each piece is a sum of another Poisson law,

.. math::
    A(\mu) = \sum_k \mathrm{Poisson}(k \mid \mu) \, w(k) = \sum_i e^{a_i + \mu (\rho_i - 1)} \,
    P\bigl(e_i < \mathrm{Poisson}(\mu \rho_i) \le e_{i + 1}\bigr), \qquad \rho_i = e^{t_i}. \qquad (2)

Given the mean, the count is in the piece i with a chance proportional to its term, and there has the law
Poisson(:math:`\mu \rho_i`) between the ends.

Method. Probabilities of (2) are differences of incomplete gamma functions, in their tail. Where
one is too small for a number, the piece is its largest term, at the end n that is nearest to
:math:`\mu \rho`, times a sum of ratios,

.. math::
    \mathrm{Poisson}(n \mid \mu) \, w(n) \sum_j \prod_{i < j} \frac{n - i}{\mu \rho} \quad\text{or}\quad
    \mathrm{Poisson}(n \mid \mu) \, w(n) \sum_j \prod_{i = 1}^{j} \frac{\mu \rho}{n + i}, \qquad (3)

of positive terms that fall. Both are exact but for rounding.

Symbols: :math:`\mu`: ``mean``, > 0; a: ``level``, t: ``slope``, (n_pieces, ...); e: ``edges``, (n_pieces + 1,
...), whole numbers; m: ``noises``; 1 / b: ``rate``; all broadcast behind the first axis.

References
----------
DLMF 8.4.10. Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms. 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.laplace_sums import log_mass_of_sum

if TYPE_CHECKING:
    from suffice.typing import Floats, Mask

_SMALLEST = 1e-200
"""Probabilities below it are worked out by (3)."""
_LAST = 1e-17
_ROUNDS = 4
"""Of drawing from a whole law what is wanted of one piece; what is left is inverted."""
_KNOTS = np.array([*np.arange(0.0, 1.0, 0.1), *np.arange(1.0, 3.0, 0.2), *np.geomspace(3.0, 45.0, 18)])
"""In standard deviations of a sum of noises, on either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The chance w(k) of what was released given a count, as (1); made by ``of_product`` or ``of_sum``.

    Attributes
    ----------
    edges : ndarray of shape (n_pieces + 1, ...), float64
    level, slope : ndarray of shape (n_pieces, ...), float64
    """

    edges: Floats
    level: Floats
    slope: Floats

    @classmethod
    def of_product(cls, noisy: Floats, rate: Floats) -> Self:
        """Return the chance of several releases of one count, (n_releases, ...) each."""
        noisy, rate = np.broadcast_arrays(noisy, rate)
        order = np.argsort(noisy, axis=0, kind="stable")
        y, r = np.take_along_axis(noisy, order, axis=0), np.take_along_axis(rate, order, axis=0)
        none = np.zeros((1, *y.shape[1:]))
        # Rates of the kinks below the count, and at it or above.
        below = np.concatenate([none, np.cumsum(r, axis=0)])
        weighed = np.concatenate([none, np.cumsum(r * y, axis=0)])
        constant = np.sum(np.log(np.tanh(r / 2.0)), axis=0)
        return cls(
            edges=np.concatenate([none - 1.0, np.maximum(y, -1.0), none + np.inf]),
            level=2.0 * weighed - weighed[-1] + constant,
            slope=below[-1] - 2.0 * below,
        )

    @classmethod
    def of_sum(cls, noisy: Floats, scale: float, noises: int) -> Self:
        """Return the chance of a count behind so many noises of one scale, shaped as `noisy`."""
        knots = np.unique(np.ceil(_KNOTS * scale * np.sqrt(2.0 * noises)))
        knots = np.concatenate([-knots[:0:-1], knots])
        log_law = _log_law(int(knots[-1]), noises, scale)[np.abs(knots).astype(np.int64)]
        inner = np.diff(log_law) / np.diff(knots)
        slope = np.concatenate([[1.0 / scale], inner, [-1.0 / scale]])
        at = np.concatenate([[0], np.arange(len(knots))])
        behind = (slice(None), *(None,) * noisy.ndim)
        none = np.zeros((1, *noisy.shape))
        return cls(
            edges=np.concatenate([none - 1.0, np.maximum(noisy + knots[behind], -1.0), none + np.inf]),
            level=log_law[at][behind] - slope[behind] * (noisy + knots[at][behind]),
            slope=np.broadcast_to(slope[behind], (len(slope), *noisy.shape)),
        )

    def at(self, index: tuple[Any, ...]) -> Self:
        """Return those of some places."""
        every = (slice(None), *index)
        return type(self)(edges=self.edges[every], level=self.level[every], slope=self.slope[every])

    def log_weight(self, k: float) -> Floats:
        """Return log w of one count."""
        is_there = (self.edges[:-1] < k) & (k <= self.edges[1:])
        log_w: Floats = np.sum(np.where(is_there, self.level + self.slope * k, 0.0), axis=0)
        return log_w


@lru_cache(maxsize=8)
def _log_law(most: int, noises: int, scale: float) -> Floats:
    return log_mass_of_sum(most, noises, scale)


def log_emission(mean: Floats, pieces: Pieces) -> Floats:
    """Return log A of (2)."""
    total: Floats | None = None
    for level, slope, low, high in zip(
        pieces.level, pieces.slope, pieces.edges[:-1], pieces.edges[1:], strict=True
    ):
        part = _log_piece(*np.broadcast_arrays(mean, level, slope, low, high))
        total = part if total is None else np.logaddexp(total, part)
    if total is None:
        message = "what was released says something of every count"
        raise ValueError(message)
    return total


def _log_piece(mu: Floats, level: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        rate = mu * np.exp(slope)
        mass = _mass(rate, low, high)
        result: Floats = level + mu * np.expm1(slope) + np.log(mass)
    small = (mass < _SMALLEST) & (low < high)
    if np.any(small):
        few = [each[small] for each in (mu, level, slope, rate, low, high)]
        result[small] = _by_ratios(*few)
    return np.where(low < high, result, -np.inf)


def _mass(rate: Floats, low: Floats, high: Floats) -> Floats:
    """Return P(low < Poisson(rate) <= high), in the tail where it is small."""
    from scipy.special import gammainc, gammaincc

    # P(Poisson(x) <= n) is the upper incomplete gamma function of n + 1 at x.
    if np.all(low == -1.0):
        return np.asarray(gammaincc(high + 1.0, rate))
    if np.all(high == np.inf):
        return np.asarray(gammainc(low + 1.0, rate))
    mass = np.empty_like(rate)
    is_above = rate < low + 1.0
    x, m, n = (each[is_above] for each in (rate, low, high))
    mass[is_above] = gammainc(m + 1.0, x) - gammainc(n + 1.0, x)
    x, m, n = (each[~is_above] for each in (rate, low, high))
    mass[~is_above] = gammaincc(n + 1.0, x) - gammaincc(m + 1.0, x)
    return np.maximum(mass, 0.0)


def _by_ratios(mu: Floats, level: Floats, slope: Floats, rate: Floats, low: Floats, high: Floats) -> Floats:
    """(3)."""
    from scipy.special import gammaln

    n = np.clip(np.floor(rate), low + 1.0, high)
    is_down = rate >= n + 1.0
    term, total, i = np.ones_like(mu), np.ones_like(mu), 0.0
    while np.any(term > _LAST * total):
        # Below the least count nothing is left to divide, by a rate that may be 0.
        down = np.divide(n - i, rate, out=np.zeros_like(rate), where=n - i > low + 1.0)
        up = np.where(n + i < high, rate / (n + i + 1.0), 0.0)
        term = term * np.where(is_down, down, up)
        total += term
        i += 1.0
    result: Floats = level + slope * n + n * np.log(mu) - mu - gammaln(n + 1.0) + np.log(total)
    return result


def counts_given(mean: Floats, pieces: Pieces, rng: np.random.Generator) -> Floats:
    """Draw latent counts given means and what was released; the count of a mean of 0 is 0.

    Independent draws of the exact law. Shaped as the means, with which the pieces broadcast.
    """
    result = np.zeros(mean.size)
    kept = np.flatnonzero(mean.ravel() > 0.0)
    mu = mean.ravel()[kept]

    def flat(each: Floats) -> Floats:
        return np.broadcast_to(each, mean.shape).reshape(-1)[kept]

    # One piece after the other is taken with its chance among those so far.
    chosen, total = np.zeros(len(kept), dtype=np.int64), np.full(len(kept), -np.inf)
    for number in range(len(pieces.level)):
        ends = (flat(pieces.edges[side]) for side in (number, number + 1))
        part = _log_piece(mu, flat(pieces.level[number]), flat(pieces.slope[number]), *ends)
        total = np.logaddexp(total, part)
        is_possible = part > -np.inf
        chance = part - np.where(is_possible, total, 0.0)
        chosen[np.log(rng.random(len(kept))) < chance] = number
    for number in np.unique(chosen):
        at = np.flatnonzero(chosen == number)
        rate = mu[at] * np.exp(flat(pieces.slope[number])[at])
        low, high = (flat(pieces.edges[side])[at] for side in (number, number + 1))
        result[kept[at]] = _between(rate, low, high, rng)
    return result.reshape(mean.shape)


def _between(rate: Floats, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Draw Poisson counts above `low` and up to `high`: whole laws by turns, then by inversion."""
    result = np.full(len(rate), np.nan)
    left = np.arange(len(rate))
    for turn in range(2 * _ROUNDS):
        if not len(left):
            return result
        if turn % 2 == 0:
            # The whole Poisson law, kept where it is between; useless where the ends are far from it.
            reach = 10.0 * np.sqrt(rate[left]) + 10.0
            near = (low[left] - reach < rate[left]) & (rate[left] < high[left] + reach)
            drawn = np.full(len(left), np.nan)
            drawn[near] = rng.poisson(rate[left][near])
            fits = (low[left] < drawn) & (drawn <= high[left])
        else:
            drawn, fits = _by_geometric(rate[left], low[left], high[left], rng)
        result[left[fits]] = drawn[fits]
        left = left[~fits]
    result[left] = _inverted(rate[left], low[left], high[left], rng)
    return result


def _by_geometric(rate: Floats, low: Floats, high: Floats, rng: np.random.Generator) -> tuple[Floats, Mask]:
    """Draw distances from the nearer end of geometric laws, kept with the chance that (3) has over these."""
    from scipy.special import gammaln

    is_down = rate >= high + 1.0
    n = np.where(is_down, high, low + 1.0)
    usable = is_down | (rate < low + 2.0)
    n = np.where(usable, n, 0.0)
    ratio = np.where(is_down, n / rate, rate / (n + 1.0))
    usable &= ratio < 1.0 - 1e-9
    ratio = np.clip(np.where(usable, ratio, 0.5), 1e-300, 1.0 - 1e-9)
    d = np.floor(np.log(rng.random(len(rate))) / np.log(ratio))
    drawn = np.where(is_down, n - d, n + d)
    fits = usable & (low < drawn) & (drawn <= high)
    d = np.where(fits, d, 0.0)
    # prod_{i < d} (n - i) / n, and prod_{i = 1..d} (n + 1) / (n + i).
    down = gammaln(n + 1.0) - gammaln(np.where(is_down, n - d, n) + 1.0) - d * np.log(np.maximum(n, 1.0))
    up = d * np.log(n + 1.0) - gammaln(n + d + 1.0) + gammaln(n + 1.0)
    fits &= np.log(rng.random(len(rate))) < np.where(is_down, down, up)
    return drawn, fits


def _inverted(rate: Floats, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Invert the distribution function between the ends."""
    none = np.zeros_like(rate)

    def log_mass(until: Floats) -> Floats:
        return _log_piece(rate, none, none, low, until)

    wanted = np.log(rng.random(len(rate))) + log_mass(high)
    first, most = low + 1.0, np.maximum(low + 1.0, rate) + 40.0 * np.sqrt(rate + low + 2.0) + 40.0
    last = np.minimum(high, np.floor(most))
    while np.any(first < last):
        middle = np.floor((first + last) / 2.0)
        # The least count up to which there is what is wanted.
        reached = log_mass(middle) >= wanted
        first, last = np.where(reached, first, middle + 1.0), np.where(reached, middle, last)
    return first
