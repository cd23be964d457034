"""Posteriors of one sum by dense sums over every N and a fine rule in the sum: slow, and of no cleverness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.typing import Floats

_REACH = 60.0
"""Scales of the noise on both sides of a kink beyond which nothing is summed."""

Marginal = tuple["Callable[[Floats, float], Floats]", "Callable[[Floats, float], tuple[Floats, Floats]]"]
"""Log probability or density of a total given N; mean and mean square of the parameter given both."""


def bernoulli(a: float, b: float) -> Marginal:
    """Beta binomial totals of one trial a record."""

    def log_prob(total: Floats, n: float) -> Floats:
        ways = gammaln(n + 1) - gammaln(total + 1) - gammaln(n - total + 1)
        return np.asarray(ways + betaln(a + total, b + n - total) - betaln(a, b))

    def moments(total: Floats, n: float) -> tuple[Floats, Floats]:
        mean = (a + total) / (a + b + n)
        return mean, mean * (a + total + 1) / (a + b + n + 1)

    return log_prob, moments


def poisson(a: float, b: float) -> Marginal:
    """Gamma Poisson totals."""

    def log_prob(total: Floats, n: float) -> Floats:
        ways = gammaln(a + total) - gammaln(a) - gammaln(total + 1)
        return np.asarray(ways - a * np.log1p(n / b) - total * np.log1p(b / n))

    def moments(total: Floats, n: float) -> tuple[Floats, Floats]:
        mean = (a + total) / (b + n)
        return mean, mean * (a + total + 1) / (b + n)

    return log_prob, moments


def exponential(a: float, b: float) -> Marginal:
    """Totals of exponential values, in the column's unit."""

    def log_prob(total: Floats, n: float) -> Floats:
        constant = gammaln(n + a) - gammaln(a) - gammaln(n) + a * np.log(b)
        return np.asarray(constant + (n - 1) * np.log(total) - (n + a) * np.log(b + total))

    def moments(total: Floats, n: float) -> tuple[Floats, Floats]:
        mean = (a + n) / (b + total)
        return mean, mean * (a + n + 1) / (b + total)

    return log_prob, moments


def dense_moments(
    marginal: Marginal,
    released: Sequence[float],
    *,
    scale: float,
    reach: float,
    step: float | None,
    most_n: int,
    of_none: tuple[float, float],
) -> tuple[float, float]:
    """Return mean and standard deviation under a flat prior of N in 0..most_n.

    Parameters
    ----------
    released : (float, float)
        Noisy A and ``reach`` N - A, in lattice steps.
    step : float or None
        T's unit per step where totals are positive numbers; None where they are whole.
    of_none : (float, float)
        Mean and mean square of the parameter under its prior.
    """
    log_prob, moments = marginal
    first, second = released
    weights = [-(abs(first) + abs(second)) / scale]
    means, squares = [weights[0] + np.log(of_none[0])], [weights[0] + np.log(of_none[1])]
    for n in range(1, most_n + 1):
        kinks = sorted((first, reach * n - second))
        if step is None:
            end = min(kinks[1] + _REACH * scale, n) if reach == 1 else kinks[1] + _REACH * scale
            amount = np.arange(max(0, np.floor(kinks[0] - _REACH * scale)), np.floor(end) + 1)
            log_rule, total = np.zeros(len(amount)), amount
        else:
            amount, log_rule = _fine_rule(kinks, scale)
            total = amount * step
            log_rule = log_rule + np.log(step)
        if not len(amount):
            continue
        noise = (np.abs(first - amount) + np.abs(second - (reach * n - amount))) / scale
        weight = log_prob(total, n) + log_rule - noise
        mean, square = moments(total, n)
        weights.append(logsumexp(weight))
        means.append(logsumexp(weight + np.log(mean)))
        squares.append(logsumexp(weight + np.log(square)))
    mass = logsumexp(weights)
    mean, square = np.exp(logsumexp(means) - mass), np.exp(logsumexp(squares) - mass)
    return float(mean), float(np.sqrt(square - mean**2))


def _fine_rule(kinks: list[float], scale: float) -> tuple[Floats, Floats]:
    """Panels of half a scale about the kinks, and geometric ones towards 0."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    steps = np.arange(-2 * _REACH, 2 * _REACH + 1) * scale / 2
    ends = np.concatenate([kinks[0] + steps, kinks[1] + steps, np.geomspace(1e-9, 1.0, 200) * scale])
    ends = np.unique(ends[ends > 0])
    half = np.diff(ends)[:, None] / 2
    amount = (ends[:-1, None] + half) + half * nodes
    return amount.ravel(), np.log(half * weights).ravel()
