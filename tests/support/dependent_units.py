"""Units whose rows are alike, as releases with ``within_unit: true`` have them: simulated noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.noisy import discrete_laplace, noisy_statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats

BERNOULLI = {"family": "bernoulli", "column": "x"}
NORMAL = {"family": "normal", "column": "x", "lower": "-10", "upper": "10"}
MAX_ROWS = 3


def plan_of_units(entry: dict[str, str], *, max_rows: int = MAX_ROWS, epsilon: str = "1") -> StatisticPlan:
    """The only statistic's plan, with ``within_unit: true``."""
    spec = {
        "name": "simulated",
        "dataset": "simulated",
        "source": {"parquet": "rows/"},
        "privacy": {
            "epsilon": epsilon,
            "neighboring": "add_or_remove_one",
            "unit": {"column": "u", "max_rows": str(max_rows)},
        },
        "statistics": {"measured": {**entry, "within_unit": "true"}},
    }
    (plan,) = compile_plan(load_spec(spec)).statistics
    return plan


def bernoulli_units(
    plan: StatisticPlan, sizes: NDArray[np.int64], truth: Floats, correlation: float, rng: np.random.Generator
) -> NoisyStatistic:
    """Cells of beta binomial units: sizes (n_cells, n_units), the truth (n_cells,)."""
    chance = np.broadcast_to(truth[:, None], sizes.shape)
    if correlation:
        weight = (1.0 - correlation) / correlation
        chance = rng.beta(np.maximum(weight * chance, 1e-9), np.maximum(weight * (1.0 - chance), 1e-9))
    true = rng.binomial(sizes, chance)
    false = sizes - true
    rows = np.stack([false.sum(axis=1), true.sum(axis=1)], axis=1)
    return with_noise(plan, rows.astype(object), products_of(false, true), rng)


def normal_units(
    plan: StatisticPlan,
    shape: tuple[int, int],
    truth: tuple[float, float],
    correlation: float,
    rng: np.random.Generator,
) -> NoisyStatistic:
    """So many cells, units of ``MAX_ROWS`` rows each, whose shifts have their part of the variance."""
    largest = 1 << (plan.parameters.lattice_bits or 0)
    mean, sd = truth
    shifts = rng.normal(mean, sd * np.sqrt(correlation), (*shape, 1))
    values = shifts + rng.normal(0.0, sd * np.sqrt(1.0 - correlation), (*shape, MAX_ROWS))
    lattice = np.rint(np.clip(values / 10.0, -1.0, 1.0) * largest).astype(np.int64)
    first, last = largest - lattice, largest + lattice
    basis = (first * first, 2 * first * last, last * last)
    rows = np.stack([part.sum(axis=(1, 2)) for part in basis], axis=1)
    return with_noise(plan, rows.astype(object), products_of(first.sum(axis=2), last.sum(axis=2)), rng)


def products_of(first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[Any]:
    """Sums over units, the last axis, of f^2, 2 f s and s^2."""
    products = (first * first, 2 * first * last, last * last)
    return np.stack([part.astype(object).sum(axis=1) for part in products], axis=1)


def with_noise(
    plan: StatisticPlan, rows: NDArray[Any], units: NDArray[Any], rng: np.random.Generator
) -> NoisyStatistic:
    """Rows weighted, beside units, with noise of the plan's distribution."""
    assert plan.within_unit is not None
    totals = np.concatenate([rows * plan.within_unit.row_weight, units], axis=1)
    if plan.scale < 2**20:
        return noisy_statistic(plan, totals + discrete_laplace(plan.scale, totals.shape, rng).astype(object))
    noise = rng.laplace(0.0, plan.scale, totals.shape)
    return noisy_statistic(plan, totals + np.rint(noise).astype(np.int64).astype(object))
