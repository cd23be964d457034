r"""The chance of a noisy count given the mean of a Poisson count, in closed form, and the count given both.

Model. A count k is Poisson with mean :math:`\mu`, and discrete Laplace noise of scale b is added,

.. math:: A(\mu; y) = \frac{1 - q}{1 + q} \sum_{k \ge 0} \mathrm{Poisson}(k \mid \mu) \, q^{|y - k|},
    \qquad q = e^{-1 / b}. \qquad (1)

Both sides of the kink are sums of another Poisson law. For :math:`y \ge 0`,

.. math::
    F = \sum_{k \le y} = q^y e^{\mu (1 / q - 1)} \, P\bigl(\mathrm{Poisson}(\mu / q) \le y\bigr), \qquad
    G = \sum_{k > y} = q^{-y} e^{-\mu (1 - q)} \, P\bigl(\mathrm{Poisson}(\mu q) > y\bigr), \qquad (2)

and below 0 all of it is :math:`q^{-y} e^{-\mu (1 - q)}`. Given the mean and y, the count is on the lower side
with the chance F / (F + G), and has there the law Poisson(:math:`\mu / q`) up to y, on the other side
Poisson(:math:`\mu q`) above y.

Method. Probabilities of (2) are incomplete gamma functions. Where one is too small for a number, the side is
its largest term times a sum of ratios,

.. math::
    F = \mathrm{Poisson}(y \mid \mu) \sum_j \prod_{i < j} \frac{q (y - i)}{\mu}, \qquad
    G = q \, \mathrm{Poisson}(y + 1 \mid \mu) \sum_j \prod_{i = 1}^{j} \frac{q \mu}{y + 1 + i}, \qquad (3)

of positive terms that fall. Both are exact but for rounding.

Symbols: :math:`\mu`: ``mean``, > 0; y: ``noisy``, a whole number; q: ``decay``, in (0, 1); all broadcast.

References
----------
DLMF 8.4.10. Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms. 2012.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats, Mask

_SMALLEST = 1e-200
"""Probabilities below it are worked out by (3)."""
_LAST = 1e-17
_ROUNDS = 4
"""Of drawing from a whole law what is wanted of one side; what is left is inverted."""


def log_emission(mean: Floats, noisy: Floats, decay: Floats) -> Floats:
    """Return log A of (1)."""
    lower, upper = log_sides(mean, noisy, decay)
    total: Floats = np.logaddexp(lower, upper) + np.log((1.0 - decay) / (1.0 + decay))
    return total


def log_sides(mean: Floats, noisy: Floats, decay: Floats) -> tuple[Floats, Floats]:
    """Return log F and log G of (2), without the constant of the noise."""
    from scipy.special import gammainc, gammaincc

    mu, y, q = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (mean, noisy, decay)))
    below = y < 0.0
    m = np.where(below, 0.0, y)
    # P(Poisson(x) <= m) is the upper incomplete gamma function of m + 1 at x.
    at_most, above = gammaincc(m + 1.0, mu / q), gammainc(m + 1.0, mu * q)
    with np.errstate(divide="ignore"):
        lower = m * np.log(q) + mu * (1.0 / q - 1.0) + np.log(at_most)
        upper = -m * np.log(q) - mu * (1.0 - q) + np.log(above)
    small = at_most < _SMALLEST
    lower[small] = _lower_by_ratios(mu[small], m[small], q[small])
    small = above < _SMALLEST
    upper[small] = _upper_by_ratios(mu[small], m[small], q[small])
    upper = np.where(below, -y * np.log(q) - mu * (1.0 - q), upper)
    return np.where(below, -np.inf, lower), upper


def _log_poisson(k: Floats, mu: Floats) -> Floats:
    from scipy.special import gammaln

    log_probability: Floats = k * np.log(mu) - mu - gammaln(k + 1.0)
    return log_probability


def _lower_by_ratios(mu: Floats, m: Floats, q: Floats) -> Floats:
    """(3), below."""
    if not mu.size:
        return mu
    term, total, i = np.ones_like(mu), np.ones_like(mu), 0.0
    while np.any(term > _LAST * total):
        term = term * np.maximum(q * (m - i) / mu, 0.0)
        total += term
        i += 1.0
    return _log_poisson(m, mu) + np.log(total)


def _upper_by_ratios(mu: Floats, m: Floats, q: Floats) -> Floats:
    """(3), above."""
    if not mu.size:
        return mu
    term, total, i = np.ones_like(mu), np.ones_like(mu), 1.0
    while np.any(term > _LAST * total):
        term = term * (q * mu / (m + 1.0 + i))
        total += term
        i += 1.0
    return np.log(q) + _log_poisson(m + 1.0, mu) + np.log(total)


def counts_given(mean: Floats, noisy: Floats, decay: Floats, rng: np.random.Generator) -> Floats:
    """Draw latent counts given means and noisy counts; the count of a mean of 0 is 0.

    Independent draws of the exact law. Shaped as the broadcast arguments.
    """
    shape = np.broadcast_shapes(mean.shape, noisy.shape, decay.shape)
    mu, y, q = (np.broadcast_to(each, shape).ravel() for each in (mean, noisy, decay))
    result = np.zeros(len(mu))
    some = np.flatnonzero(mu > 0.0)
    lower, upper = log_sides(mu[some], y[some], q[some])
    is_lower = np.log(rng.random(len(some))) < lower - np.logaddexp(lower, upper)
    for side, chosen in ((True, some[is_lower]), (False, some[~is_lower])):
        result[chosen] = _of_side(mu[chosen], y[chosen], q[chosen], lower=side, rng=rng)
    return result.reshape(shape)


def _of_side(mu: Floats, y: Floats, q: Floats, *, lower: bool, rng: np.random.Generator) -> Floats:
    """Draw counts of one side of the kink: whole laws by turns, then what is left by inversion."""
    rate = mu / q if lower else mu * q
    result = np.full(len(mu), np.nan)
    left = np.arange(len(mu))
    for turn in range(2 * _ROUNDS):
        if turn % 2 == 0:
            # The whole Poisson law, kept where it is on the side; useless where the side is far from it.
            near = np.abs(rate[left] - y[left]) < 10.0 * np.sqrt(rate[left]) + 10.0
            drawn = np.full(len(left), np.nan)
            drawn[near] = rng.poisson(rate[left][near])
            fits = (drawn <= y[left]) if lower else (drawn > y[left])
        else:
            drawn, fits = _by_geometric(mu[left], y[left], q[left], lower=lower, rng=rng)
        result[left[fits]] = drawn[fits]
        left = left[~fits]
    result[left] = _inverted(mu[left], y[left], q[left], lower=lower, rng=rng)
    return result


def _by_geometric(
    mu: Floats, y: Floats, q: Floats, *, lower: bool, rng: np.random.Generator
) -> tuple[Floats, Mask]:
    """Draw distances from y of geometric laws, and keep them with the chance that (3) has over these."""
    from scipy.special import gammaln

    first = q * y / mu if lower else q * mu / (np.maximum(y, 0.0) + 2.0)
    usable = (first < 1.0 - 1e-9) & (y >= 0.0)
    ratio = np.clip(np.where(usable, first, 0.5), 1e-300, 1.0 - 1e-9)
    distance = np.floor(np.log(rng.random(len(mu))) / np.log(ratio))
    if lower:
        possible = distance <= y
        d, base = np.minimum(distance, np.maximum(y, 0.0)), np.maximum(y, 1.0)
        # prod_{i < d} (y - i) / y
        log_chance = gammaln(y.clip(0.0) + 1.0) - gammaln(y.clip(0.0) - d + 1.0) - d * np.log(base)
        return y - d, usable & possible & (np.log(rng.random(len(mu))) < log_chance)
    base = np.maximum(y, 0.0) + 2.0
    # prod_{i = 1..d} (y + 2) / (y + 1 + i)
    log_chance = distance * np.log(base) - gammaln(base + distance) + gammaln(base)
    return y + 1.0 + distance, usable & (np.log(rng.random(len(mu))) < log_chance)


def _inverted(mu: Floats, y: Floats, q: Floats, *, lower: bool, rng: np.random.Generator) -> Floats:
    """Invert the distribution function of one side."""
    from scipy.special import gammainc, gammaincc

    if not len(mu):
        return mu
    # Below 0 the upper side is the whole law of Poisson(mu q).
    rate = mu / q if lower else mu * q
    m = np.maximum(y, -1.0)
    u = rng.random(len(mu))
    low = np.where(lower, 0.0, m + 1.0)
    if lower:
        wanted = u * gammaincc(m + 1.0, rate)
        high = m.copy()
    else:
        wanted = u * np.where(m < 0.0, 1.0, gammainc(np.maximum(m, 0.0) + 1.0, rate))
        high = np.maximum(m + 1.0, rate) + 40.0 * np.sqrt(rate + m + 2.0) + 40.0
    while np.any(low < high):
        middle = np.floor((low + high) / 2.0)
        # P(Poisson > middle) falls: the least count at which it is at most what is wanted.
        at_most, above = gammaincc(middle + 1.0, rate), gammainc(middle + 1.0, rate)
        reached = at_most >= wanted if lower else above <= wanted
        low, high = np.where(reached, low, middle + 1.0), np.where(reached, middle, high)
    return low
