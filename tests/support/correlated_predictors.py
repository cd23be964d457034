"""Regressions with correlated predictors whose coefficients nobody drew from a prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.linear_regression import LinearRegressionSpec, simulate
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.joint import plan_of, spec_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

COEFFICIENTS = (1.0, -0.5, 0.5)
"""Of predictors of standard deviation 1 within bounds of 5; residuals have 1, the outcome bounds of 10."""
MASSES = (0.5, 0.8, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCoverage:
    """What intervals of coefficients hold.

    Attributes
    ----------
    shares : tuple of float
        Of truths within intervals of ``MASSES``, over cells and coefficients.
    held : int
        Truths of the first coefficient, one a cell, within its 95 % interval.
    towards_0, away : int
        Intervals of 95 % that miss the truth: that end on its side of 0, before it or beyond 0; and others.
    width : float
        The median width of those of 95 % over that of least squares without noise, of its covariance.
    """

    shares: tuple[float, ...]
    held: int
    towards_0: int
    away: int
    width: float


def fixed_release(
    size: int, correlation: float, n: int | NDArray[np.int64], *, cells: int, rng: np.random.Generator
) -> NoisyStatistic:
    """Release regressions on normal predictors at epsilon 1; nothing is clipped.

    `n` is the number of rows of each cell, or of every one.
    """
    bounds = {"lower": "-5", "upper": "5"}
    entry: dict[str, Any] = {
        "family": "linear_regression",
        "noise": "laplace",
        "predictors": {f"x{position}": bounds for position in range(size)},
        "outcome": {"y": {"lower": "-10", "upper": "10"}},
    }
    plan = plan_of(entry, epsilon="1", public_n=False)
    spec = spec_of(entry, epsilon="1", public_n=False).statistics["s"]
    assert isinstance(spec, LinearRegressionSpec)
    root = np.linalg.cholesky(covariance_of(size, correlation))

    def world(_n_data_sets: int, rng: np.random.Generator) -> Callable[[NDArray[np.int64]], Floats]:
        return lambda data_set: np.asarray(rng.standard_normal((len(data_set), size)) @ root.T)

    truth = np.tile([*COEFFICIENTS[:size], 0.0, 1.0], (cells, 1))
    sums = simulate(spec, truth, np.broadcast_to(n, cells), rng, world)
    totals = FAMILIES["linear_regression"].totals(spec, plan.design, sums.unclipped)
    noise = discrete_laplace(plan.scale, totals.shape, rng).astype(object)
    return noisy_statistic(plan, totals + noise)


def covariance_of(size: int, correlation: float) -> Floats:
    """Return the covariance of predictors."""
    return np.full((size, size), correlation) + (1.0 - correlation) * np.eye(size)


def fixed_coverage(
    size: int, correlation: float, n: int, *, cells: int, rng: np.random.Generator, prior: str | None = None
) -> FixedCoverage:
    """Return the coverage under the default prior, or another one of the coefficients; epsilon is 1."""
    coefficients = np.array(COEFFICIENTS[:size])
    posterior = posterior_of(fixed_release(size, correlation, n, cells=cells, rng=rng), prior=prior)
    drawn = posterior.distribution.sample(4000, rng)["coefficient"]
    shares = []
    for mass in MASSES:
        low, high = np.quantile(drawn, [(1.0 - mass) / 2.0, (1.0 + mass) / 2.0], axis=0)
        held = (low <= coefficients) & (coefficients <= high)
        shares.append(float(held.mean()))
    towards = np.where(coefficients > 0.0, high < coefficients, low > coefficients)
    away = np.where(coefficients > 0.0, low > coefficients, high < coefficients)
    least_squares = 2.0 * 1.96 * np.sqrt(np.diag(np.linalg.inv(covariance_of(size, correlation))) / n)
    return FixedCoverage(
        shares=tuple(shares),
        held=int(held[:, 0].sum()),
        towards_0=int(towards.sum()),
        away=int(away.sum()),
        width=float(np.median((high - low) / least_squares)),
    )
