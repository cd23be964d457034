"""Draws of Beta and Dirichlet distributions that are cut off above 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.not_a_release import check_positive
from suffice.errors import UsageError

if TYPE_CHECKING:
    from suffice.typing import Floats

_LEAST_MASS = 1e-250
"""Below it the mass of an interval is no longer accurate in floats, and tails are drawn by rejection."""
_MOST_PROPOSALS = 10_000
"""Proposals for one draw of a Dirichlet before rejection is given up."""


def draw_truncated_beta(
    first: Floats, second: Floats, low: Floats, high: Floats, rng: np.random.Generator
) -> Floats:
    r"""Draw Beta(first, second) given that it lies between `low` and `high`.

    Law
        Density proportional to :math:`x^{a - 1} (1 - x)^{b - 1}` on [low, high]: the distribution function is
        inverted from its smaller tail; where the interval's mass is below 1e-250, rejection under an
        exponential that touches the log density at the nearer end. Both are exact up to float rounding.

    Parameters
    ----------
    first, second : ndarray of any common shape, float64
        a and b, above 0.
    low, high : ndarray that broadcasts to it, float64
        0 < low <= high < 1.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of the common shape, float64
    """
    from scipy.special import betainc, betaincinv

    first, second, low, high = np.broadcast_arrays(first, second, low, high)
    # Mirrored where most mass lies below the interval: differences of a small tail keep their digits.
    mirrored = betainc(first, second, low) > 0.5
    a, b = np.where(mirrored, second, first), np.where(mirrored, first, second)
    left, right = np.where(mirrored, 1.0 - high, low), np.where(mirrored, 1.0 - low, high)
    from_left, to_right = betainc(a, b, left), betainc(a, b, right)
    drawn = betaincinv(a, b, from_left + rng.random(a.shape) * (to_right - from_left))
    is_far = to_right < _LEAST_MASS
    if is_far.any():
        drawn[is_far] = 1.0 - _draw_beta_tail(
            b[is_far], a[is_far], 1.0 - right[is_far], 1.0 - left[is_far], rng
        )
    return np.clip(np.where(mirrored, 1.0 - drawn, drawn), low, high)


def _draw_beta_tail(
    first: Floats, second: Floats, low: Floats, high: Floats, rng: np.random.Generator
) -> Floats:
    """Draw from an upper tail so far out that its density only falls."""
    # A power below 1 only falls: it is left to the acceptance. The log density of the rest is concave.
    power = np.maximum(first - 1.0, 0.0)
    rest = np.minimum(first - 1.0, 0.0)
    fall = (second - 1.0) / (1.0 - low) - power / low
    drawn = np.empty_like(low)
    ahead = np.arange(low.size)
    while ahead.size:
        start, rate = low[ahead], fall[ahead]
        width = high[ahead] - start
        step = -np.log1p(rng.random(ahead.size) * np.expm1(-rate * width)) / rate
        value = start + step
        log_accept = power[ahead] * np.log(value / start) + rate * step + rest[ahead] * np.log(value / start)
        log_accept += (second[ahead] - 1.0) * np.log1p(-step / (1.0 - start))
        accepted = -rng.standard_exponential(ahead.size) < log_accept
        drawn[ahead[accepted]] = value[accepted]
        ahead = ahead[~accepted]
    return drawn


def draw_truncated_dirichlet(
    parameters: Floats, least: float, *, draws: int = 1, rng: np.random.Generator
) -> Floats:
    r"""Draw Dirichlet(parameters) given that every entry is at least `least`, by rejection.

    Law
        Density proportional to :math:`\prod_j x_j^{\alpha_j - 1}` on the simplex with every
        :math:`x_j \ge a_0`; exact.

    Parameters
    ----------
    parameters : ndarray of shape (K,), float64
        Above 0.
    least : float
        a0, 0 < a0 < 1 / K.
    draws : int, >= 1
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (draws, K), float64

    Raises
    ------
    UsageError
        If ten thousand proposals a draw were not enough: ``move_truncated_dirichlet`` has no such limit.
    """
    parameters = np.asarray(parameters, dtype=np.float64)
    check_least(least, parameters.size)
    kept: list[Floats] = []
    n_kept = proposed = 0
    while n_kept < draws:
        if proposed > _MOST_PROPOSALS * draws:
            raise UsageError(
                "hardly any draw of this Dirichlet lies above least: use rounds of Gibbs on pairs"
            )
        size = min(max(draws, 1000), 100_000)
        drawn = rng.dirichlet(parameters, size=size)
        drawn = drawn[(drawn >= least).all(axis=1)]
        kept.append(drawn)
        n_kept += len(drawn)
        proposed += size
    return np.concatenate(kept)[:draws]


def move_truncated_dirichlet(
    values: Floats, parameters: Floats, least: float, *, rounds: int = 1, rng: np.random.Generator
) -> Floats:
    r"""Move values towards Dirichlet(parameters) with every entry at least `least`: Gibbs on random pairs.

    Law
        In a round every entry is in one of K // 2 random pairs, the odd one out stays. Given all else,
        :math:`x_i / (x_i + x_j)` is Beta(:math:`\alpha_i, \alpha_j`) on :math:`[a_0 / s, 1 - a_0 / s]`,
        :math:`s = x_i + x_j`. The truncated Dirichlet is invariant under a round; it is the law in the limit
        of many rounds only.

    Parameters
    ----------
    values : ndarray of shape (..., K), float64
        Distributions with entries of at least `least`.
    parameters : ndarray of shape (..., K), float64
    least : float
        a0, 0 < a0 < 1 / K.
    rounds : int, >= 1
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (..., K), float64
    """
    parameters = np.broadcast_to(parameters, values.shape)
    n_entries = values.shape[-1]
    check_least(least, n_entries)
    values = values.copy()
    for _ in range(rounds):
        order = rng.permuted(np.broadcast_to(np.arange(n_entries), values.shape), axis=-1)
        left, right = order[..., 0 : n_entries - 1 : 2], order[..., 1:n_entries:2]
        sums = np.take_along_axis(values, left, axis=-1) + np.take_along_axis(values, right, axis=-1)
        low = np.minimum(least / sums, 0.5)
        share = draw_truncated_beta(
            np.take_along_axis(parameters, left, axis=-1),
            np.take_along_axis(parameters, right, axis=-1),
            low,
            1.0 - low,
            rng,
        )
        np.put_along_axis(values, left, np.maximum(share * sums, least), axis=-1)
        np.put_along_axis(values, right, np.maximum((1.0 - share) * sums, least), axis=-1)
    return values


def check_least(least: float, n_entries: int) -> None:
    """Refuse a truncation that leaves nothing of a simplex of `n_entries`."""
    check_positive(least=least)
    if not least * n_entries < 1:
        raise UsageError(f"least must be below 1 / {n_entries}: {n_entries} entries add up to 1")
