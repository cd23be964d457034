"""How often intervals of regressions hold truths that are not from the prior, behind cone noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support.cone_calibration import moments_of
from support.joint import STEPS, plan_of, spec_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

LEVELS = (0.5, 0.8, 0.95)
CORRELATION = 0.8
"""Of neighbouring predictors; of others its powers, each with a sign."""
LOG_ROWS = (2.5, 4.0)
"""Decimal logarithms of the fewest and the most rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regressions:
    """Released regressions, and their coefficients (n, k) in the columns' units."""

    slopes: Floats
    statistic: NoisyStatistic


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Which intervals hold the truth, (levels, n, k), and the largest R-hat."""

    held: NDArray[np.bool_]
    r_hat: float

    @property
    def shares(self) -> Floats:
        """Of every level."""
        return np.asarray(self.held.mean(axis=(1, 2)))

    @property
    def errors(self) -> Floats:
        """Their standard errors, coefficients of one release taken together."""
        each = self.held.mean(axis=2)
        return np.asarray(each.std(axis=1, ddof=1) / np.sqrt(each.shape[1]))


def regressions(
    predictors: int, epsilon: str, size: int, rng: np.random.Generator, *, alone: bool = False
) -> Regressions:
    """Draw truths, moments of rows and noise; with `alone` P without Q.

    Slopes are uniform in -1..1, residual standard deviations in .1...3, those of predictors in .15...4 and
    their means in -.2...2, whatever a prior says of them. Rows are from 316 to 10,000, even on a logarithmic
    scale.
    """
    d = predictors + 1
    n = np.rint(10.0 ** rng.uniform(*LOG_ROWS, size)).astype(np.int64)
    correlation = CORRELATION ** np.abs(np.subtract.outer(np.arange(predictors), np.arange(predictors)))
    sds = rng.uniform(0.15, 0.4, (size, predictors)) * rng.choice([-1.0, 1.0], (size, predictors))
    root_x = sds[:, :, None] * np.linalg.cholesky(correlation)
    slopes = rng.uniform(-1.0, 1.0, (size, predictors))
    root = np.zeros((size, d, d))
    root[:, :-1, :-1] = root_x
    root[:, -1, :-1] = np.einsum("ck,ckj->cj", slopes, root_x)
    root[:, -1, -1] = rng.uniform(0.1, 0.3, size)
    mean_x = rng.uniform(-0.2, 0.2, (size, predictors))
    mean = np.column_stack([mean_x, np.einsum("ck,ck->c", slopes, mean_x)])
    return Regressions(
        slopes=slopes, statistic=_released(moments_of(n, mean, root, rng), epsilon, rng, alone=alone)
    )


def _released(sums: NDArray[Any], epsilon: str, rng: np.random.Generator, *, alone: bool) -> NoisyStatistic:
    d = int(np.sqrt(2 * sums.shape[1])) - 1
    unit = {"lower": -1, "upper": 1}
    entry = {
        "family": "linear_regression",
        "predictors": {f"x{column}": unit for column in range(d - 1)},
        "outcome": {"y": unit},
        "noise": "cone",
    }
    plan = plan_of(entry, epsilon=epsilon, public_n=False)
    spec = spec_of(entry, epsilon=epsilon, public_n=False)
    totals = FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, sums)
    drawn = simulated_noise(plan, (len(sums),), rng)
    if alone and plan.cone is not None:
        law = LatentConeNoise.of(plan.cone, totals)
        at = law.points.at(law.points.draw(len(sums), rng))
        drawn = np.rint((at.t * at.components * law.unit).T * STEPS**2)
    return noisy_statistic(plan, totals + drawn.astype(object))


def held(data: Regressions, **terms: Any) -> Held:
    """Ask for posteriors under the default priors, and look at central intervals of the slopes."""
    posterior = posterior_of(data.statistic, **terms)
    shape, inside = data.slopes.shape, []
    for level in LEVELS:
        low, high = (np.asarray(side).reshape(shape) for side in posterior.interval(level, "coefficient"))
        inside.append((low <= data.slopes) & (data.slopes <= high))
    return Held(held=np.stack(inside), r_hat=float(posterior.diagnostics.get("largest_r_hat", 1.0)))


def together(parts: list[Held]) -> Held:
    """Return what several runs have measured."""
    return Held(
        held=np.concatenate([part.held for part in parts], axis=1), r_hat=max(part.r_hat for part in parts)
    )
