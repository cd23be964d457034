"""A regression's posterior by simulation from its prior: moments are drawn, and weighed by the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from support.joint import plan_of, spec_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

ENTRY: dict[str, Any] = {
    "family": "linear_regression",
    "predictors": {"x": {"lower": "-1", "upper": "1"}},
    "outcome": {"y": {"lower": "-1", "upper": "1"}},
}
STEPS = 1 << 16
ROWS = 40
PREDICTORS = "NormalInverseWishart(0, 20, 30, 3)"
"""Of the predictor's mean and variance, which is about 0.1."""


def matrix(plan: Any, epsilon: str) -> Floats:
    """Return the components of moments n, x, y, xx, xy and yy in half ranges, as releases sum them."""
    powers = [0, 1, 1, 2, 2, 2]
    unit = np.zeros((6, 6), dtype=object)
    for place, power in enumerate(powers):
        unit[place, place] = STEPS**power
    spec = spec_of(ENTRY, epsilon=epsilon, public_n=False).statistics["s"]
    return FAMILIES["linear_regression"].totals(spec, plan.design, unit).astype(np.float64).T


def released(epsilon: str, slope: float, noise: tuple[float, ...]) -> NoisyStatistic:
    """Release moments of a fit of this slope, and noise of so many scales."""
    plan = plan_of(ENTRY, epsilon=epsilon, public_n=False)
    xx, residual = 0.1, 0.03
    moments = ROWS * np.array([1.0, 0.05, 0.1, xx, slope * xx, slope**2 * xx + residual])
    values = matrix(plan, epsilon) @ moments + np.array(noise) * plan.scale
    return noisy_statistic(plan, np.rint(values)[None])


@dataclass(frozen=True, slots=True)
class Simulated:
    """Means and standard deviations of slope, intercept and sd; how probable a slope of exactly 0 is."""

    mean: Floats
    sd: Floats
    effective: float
    zero: float


def simulated(
    statistic: NoisyStatistic,
    epsilon: str,
    draw: Callable[[int, np.random.Generator], tuple[Floats, Floats]],
    rng: np.random.Generator,
    blocks: int = 20,
    size: int = 200_000,
) -> Simulated:
    """Weigh draws of the prior.

    `draw` returns slope, intercept and sd, (3, n), and logs of the prior's density over what it draws from.
    """
    components = matrix(statistic.plan, epsilon)
    values = statistic.values[0].astype(np.float64)
    totals = np.zeros(9)
    for _ in range(blocks):
        theta, log_weight = draw(size, rng)
        slope, intercept, sd = theta
        # The predictor: NIW of one column, an inverse gamma variance and a normal mean given that.
        variance = 1.5 / rng.standard_gamma(15.0, size)
        mean = np.sqrt(variance / 20.0) * rng.standard_normal(size)
        # Moments of n rows: averages, and scatter by Bartlett's decomposition.
        x_bar = mean + np.sqrt(variance / ROWS) * rng.standard_normal(size)
        e_bar = sd / np.sqrt(ROWS) * rng.standard_normal(size)
        chi, second = np.sqrt(rng.chisquare(ROWS - 1, size)), np.sqrt(rng.chisquare(ROWS - 2, size))
        cross = rng.standard_normal(size)
        sxx = variance * chi**2
        sxe = np.sqrt(variance) * sd * chi * cross
        see = sd**2 * (cross**2 + second**2)
        y_bar = intercept + slope * x_bar + e_bar
        sxy = slope * sxx + sxe
        syy = slope**2 * sxx + 2.0 * slope * sxe + see
        n = float(ROWS)
        moments = np.stack(
            [
                np.full(size, n),
                n * x_bar,
                n * y_bar,
                sxx + n * x_bar**2,
                sxy + n * x_bar * y_bar,
                syy + n * y_bar**2,
            ]
        )
        distance = np.abs(values[:, None] - components @ moments).sum(axis=0) / statistic.plan.scale
        # One shift for all blocks, so that they add up.
        weight = np.exp(log_weight - distance + 6.0)
        totals[0] += weight.sum()
        totals[1] += (weight**2).sum()
        totals[2:5] += theta @ weight
        totals[5:8] += theta**2 @ weight
        totals[8] += weight[slope == 0.0].sum()
    mean = totals[2:5] / totals[0]
    return Simulated(
        mean=mean,
        sd=np.sqrt(totals[5:8] / totals[0] - mean**2),
        effective=float(totals[0] ** 2 / totals[1]),
        zero=float(totals[8] / totals[0]),
    )
