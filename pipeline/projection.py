"""Projections of noisy statistics onto what exact statistics can be, for the plug-in posterior."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.families.contract import combination
from suffice.pipeline.sensitivity import Design

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.release import NoisyStatistic

    Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalSums:
    """Projected sums of a normal statistic, of z = (x - centre) / half_range.

    Attributes
    ----------
    n, total, total_of_squares : ndarray of shape (n_cells,), float64
        Rows, sum of z, sum of z^2; all zero where the noisy n is not positive.
    centre, half_range : float
        In the column's unit.
    """

    n: Floats
    total: Floats
    total_of_squares: Floats
    centre: float
    half_range: float


def project_bernoulli(statistic: NoisyStatistic) -> Floats:
    """Counts of false and true, (n_cells, 2): within 0..N where N is public, else at least 0."""
    values = statistic.values.astype(np.float64)
    if statistic.plan.design is not Design.MINIMAL:
        return np.maximum(values, 0.0)
    n = float(_public_n(statistic))
    true = np.clip(values[:, 0], 0.0, n)
    return np.stack([n - true, true], axis=1)


def project_categorical(statistic: NoisyStatistic) -> Floats:
    """Counts (n_cells, n_categories): nearest with sum N where N is public, else at least 0."""
    values = statistic.values.astype(np.float64)
    if statistic.plan.design is not Design.MINIMAL:
        return np.maximum(values, 0.0)
    return project_simplex(values, float(_public_n(statistic)))


def project_simplex(values: Floats, total: float) -> Floats:
    """The nearest vectors (rows of values) that are nowhere negative and sum to the total."""
    descending = -np.sort(-values, axis=1)
    ranks = np.arange(1.0, values.shape[1] + 1.0)
    excess = (np.cumsum(descending, axis=1) - total) / ranks
    kept = np.sum(descending > excess, axis=1)
    # With a total of 0 nothing is kept: then the largest entry sets the threshold.
    threshold = np.take_along_axis(excess, np.maximum(kept - 1, 0)[:, None], axis=1)
    projected: Floats = np.maximum(values - threshold, 0.0)
    return projected


def project_poisson(statistic: NoisyStatistic) -> tuple[Floats, Floats]:
    """N and total, each (n_cells,): n >= 0 and 0 <= total <= upper * n."""
    n, _ = statistic.quantity("n")
    total, _ = statistic.quantity("total")
    n = np.maximum(n, 0.0)
    return n, np.clip(total, 0.0, float(statistic.plan.parameters.upper or 0) * n)


def project_normal(statistic: NoisyStatistic) -> NormalSums:
    """N, sum and sum of squares in half ranges: n >= 0, |t| <= n, t^2 / n <= q <= n."""
    lower = statistic.plan.parameters.lower or Fraction(0)
    upper = statistic.plan.parameters.upper or Fraction(0)
    centre, half_range = (lower + upper) / 2, (upper - lower) / 2
    maps = {quantity.name: quantity for quantity in statistic.plan.quantities}
    n_map, total_map, squares_map = maps["n"], maps["total"], maps["total_of_squares"]
    # Combined in exact fractions: far from zero, a difference of rounded sums would lose its digits.
    total = statistic.estimates(
        combination("total", [(1 / half_range, total_map), (-centre / half_range, n_map)])
    )
    squares = statistic.estimates(
        combination(
            "total_of_squares",
            [
                (1 / half_range**2, squares_map),
                (-2 * centre / half_range**2, total_map),
                (centre**2 / half_range**2, n_map),
            ],
        )
    )
    n = np.maximum(statistic.estimates(n_map), 0.0)
    total = np.clip(total, -n, n)
    least = np.divide(total**2, n, out=np.zeros_like(n), where=n > 0.0)
    return NormalSums(
        n=n,
        total=total,
        total_of_squares=np.clip(squares, least, np.maximum(n, least)),
        centre=float(centre),
        half_range=float(half_range),
    )


def _public_n(statistic: NoisyStatistic) -> int:
    if statistic.public_n is None:
        message = "a minimal statistic without a public N"
        raise ValueError(message)
    return statistic.public_n
