"""Exact errors of one draw of a probability, sums over all counts: what simulations are held against."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betainc

Floats = NDArray[np.floating]


def error_of_a_sample(n_records: int, *, truth: float, least: float, tempered: float) -> float:
    """E|draw - truth| of Beta(1 + ones / T, 1 + zeros / T) on [least, 1 - least], over the law of ones."""
    ones = np.arange(n_records + 1)
    errors = truncated_beta_error(
        1.0 + ones / tempered, 1.0 + (n_records - ones) / tempered, least, 1.0 - least, truth
    )
    return float(stats.binom.pmf(ones, n_records, truth) @ errors)


def error_of_laplace(n_records: int, *, truth: float, scale: float) -> float:
    """E|draw - truth| of Beta(1 + y1, 1 + y0), both counts noisy and clipped at 0."""
    furthest = int(20 * scale)
    noise = np.arange(-furthest, furthest + 1)
    chance = math.tanh(0.5 / scale) * np.exp(-np.abs(noise) / scale)
    values = np.arange(n_records + furthest + 1)

    def noisy(count: int) -> Floats:
        clipped = np.clip(count + noise, 0, None)
        return np.bincount(clipped, weights=chance, minlength=values.size).astype(np.float64)

    errors = truncated_beta_error(1.0 + values[:, None], 1.0 + values[None, :], 0.0, 1.0, truth)
    weights = stats.binom.pmf(np.arange(n_records + 1), n_records, truth)
    return float(
        sum(weight * (noisy(ones) @ errors @ noisy(n_records - ones)) for ones, weight in enumerate(weights))
    )


def truncated_beta_error(first: Floats, second: Floats, low: float, high: float, truth: float) -> Floats:
    """E|X - truth| of a truncated Beta, in closed form."""
    mean = first / (first + second)

    def within(left: float, right: float) -> tuple[Floats, Floats]:
        chance = betainc(first, second, right) - betainc(first, second, left)
        return chance, mean * (betainc(first + 1.0, second, right) - betainc(first + 1.0, second, left))

    (under, sum_under), (over, sum_over) = within(low, truth), within(truth, high)
    error: Floats = (truth * under - sum_under + sum_over - truth * over) / (under + over)
    return error
