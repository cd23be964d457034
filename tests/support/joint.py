"""Simulated statistics of two columns: parameters from a prior, moments from the model, no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.linear_regression import default_predictor_prior
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

    Floats = NDArray[np.float64]

STEPS = 2.0**16


def spec_of(entry: dict[str, Any], *, epsilon: str, public_n: bool) -> Spec:
    """Return the spec of one statistic; with a public N every row counts."""
    if public_n:
        entry = {
            key: {name: {**bounds, "nulls": {"value": "0"}} for name, bounds in value.items()}
            if isinstance(value, dict)
            else value
            for key, value in entry.items()
        }
    return load_spec(
        {
            "name": "simulated",
            "dataset": "simulated",
            "source": {"parquet": "rows/"},
            "privacy": {
                "epsilon": epsilon,
                "neighboring": "replace_one" if public_n else "add_or_remove_one",
            },
            "statistics": {"s": entry},
        }
    )


def plan_of(entry: dict[str, Any], *, epsilon: str, public_n: bool) -> StatisticPlan:
    """Return its plan."""
    (plan,) = compile_plan(spec_of(entry, epsilon=epsilon, public_n=public_n)).statistics
    return plan


def true_regression(mean: Floats, covariance: Floats) -> Floats:
    """Return slope, intercept and residual variance of the second column on the first."""
    slope = covariance[:, 0, 1] / covariance[:, 0, 0]
    residual = covariance[:, 1, 1] - slope * covariance[:, 0, 1]
    return np.stack([slope, mean[:, 1] - slope * mean[:, 0], residual], axis=1)


def simulate(
    entry: dict[str, Any],
    prior: Any,
    sizes: NDArray[np.int64],
    *,
    epsilon: str,
    public_n: bool,
    rng: np.random.Generator,
) -> tuple[Floats, NDArray[Any]]:
    """Draw parameters, one row a data set, and the exact components of data of these sizes within -1..1.

    Sums of squares and products come from a Wishart distribution, so that no rows are drawn; nothing is
    clipped.
    """
    linear = entry.get("intercept", True)
    count = len(sizes)
    plan = plan_of(entry, epsilon=epsilon, public_n=public_n)
    if isinstance(prior, NormalInverseWishart | SpreadNormalInverseWishart):
        if isinstance(prior, SpreadNormalInverseWishart):
            mean, covariance = prior.sample(count, rng, 2)
        else:
            mean, covariance = _niw(prior, 2, count, rng)
        truth = np.column_stack([mean, covariance[:, 0, 0], covariance[:, 1, 1], covariance[:, 0, 1]])
    else:
        mean, covariance, truth = _regression(plan, prior, count, linear=linear, rng=rng)
    root = np.linalg.cholesky(covariance)
    n = sizes.astype(np.float64)
    total = np.zeros((count, 2))
    scatter_rows = n
    if linear:
        drawn = np.einsum("cij,cj->ci", root, rng.standard_normal((count, 2)))
        total = n[:, None] * mean + np.sqrt(n)[:, None] * drawn
        scatter_rows = n - 1
    factor = np.zeros((count, 2, 2))
    factor[:, 0, 0] = np.sqrt(rng.chisquare(scatter_rows))
    factor[:, 1, 1] = np.sqrt(rng.chisquare(scatter_rows - 1))
    factor[:, 1, 0] = rng.standard_normal(count)
    factor = root @ factor
    products = factor @ np.swapaxes(factor, 1, 2) + total[:, :, None] * total[:, None, :] / n[:, None, None]
    moments = np.column_stack(
        [
            n,
            np.rint(total * STEPS),
            *(np.rint(products[:, i, j] * STEPS**2) for i, j in ((0, 0), (0, 1), (1, 1))),
        ]
    )
    sums = np.empty(moments.shape, dtype=object)
    sums[:] = [[int(number) for number in row] for row in moments]
    spec = spec_of(entry, epsilon=epsilon, public_n=public_n)
    return truth, FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, sums)


def _niw(
    prior: NormalInverseWishart, size: int, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    loc, precision, df, scale = prior.of(size)
    drawn = stats.invwishart(df, scale).rvs(count, random_state=rng)
    covariance = np.asarray(drawn, dtype=np.float64).reshape(count, size, size)
    root = np.linalg.cholesky(covariance / precision)
    return loc + np.einsum("cij,cj->ci", root, rng.standard_normal((count, size))), covariance


def _regression(
    plan: StatisticPlan, prior: Any, count: int, *, linear: bool, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return means, covariances and the regression's parameters; predictors from their stated prior."""
    mean_x, covariance_x = default_predictor_prior(plan.parameters).sample(count, rng, 1)
    variance_x = covariance_x[:, 0, 0]
    size = 2 if linear else 1
    loc, precision, concentration, scale = prior.of(size)
    variance = scale / rng.standard_gamma(concentration, count)
    root = np.linalg.cholesky(np.linalg.inv(precision))
    beta = loc + np.sqrt(variance)[:, None] * (rng.standard_normal((count, size)) @ root.T)
    slope = beta[:, 0]
    intercept = beta[:, 1] if linear else np.zeros(count)
    mean = np.column_stack([mean_x[:, 0], intercept + slope * mean_x[:, 0]])
    covariance = np.empty((count, 2, 2))
    covariance[:, 0, 0] = variance_x
    covariance[:, 0, 1] = covariance[:, 1, 0] = slope * variance_x
    covariance[:, 1, 1] = variance + slope**2 * variance_x
    return mean, covariance, np.column_stack([beta, variance])
