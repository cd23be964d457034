"""Releases of very many cells, published as if rows had been summed and noise drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support import releases
from support.noisy import discrete_laplace

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.spec.plan import Plan

STATISTIC = "measured"
FAMILIES: dict[str, dict[str, Any]] = {
    "bernoulli": {"family": "bernoulli", "column": "c"},
    "normal": {"family": "normal", "column": "d", "lower": -200, "upper": 240},
    "categorical": {"family": "categorical", "column": "k", "categories": ["a", "b", "c"]},
}
RECORDS = (20, 200)
"""Fewest and most records of a cell."""


def many_cells_plan(family: str, shops: int, days: int, *, epsilon: str = "1") -> Plan:
    """Compile a plan of one statistic in every shop (a number) and day (a text)."""
    return releases.make_plan(
        groups={"shop": {"range": ["1", str(shops)]}, "day": [f"day {day}" for day in range(days)]},
        statistics={STATISTIC: FAMILIES[family]},
        privacy={"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"},
    )


def noisy_values(plan: Plan, rng: np.random.Generator) -> NDArray[np.object_]:
    """Simulate every cell: records, their sums, noise."""
    (statistic,) = plan.statistics
    n = rng.integers(*RECORDS, plan.n_cells)
    totals: dict[str, Any] = {"n": n}
    if statistic.family == "bernoulli":
        yes = rng.binomial(n, 0.2)
        sums = np.stack([n - yes, yes], axis=1)
    elif statistic.family == "categorical":
        sums = rng.multinomial(n, [0.5, 0.3, 0.2])
    else:
        mean, sd = rng.normal(20.0, 5.0, plan.n_cells), 30.0
        totals["total"] = n * mean + np.sqrt(n) * sd * rng.normal(size=plan.n_cells)
        totals["total_of_squares"] = totals["total"] ** 2 / n + sd**2 * rng.chisquare(n - 1)
        maps = np.array(
            [
                [float(quantity.coefficients.get(place, 0)) for place in range(len(statistic.components))]
                for quantity in statistic.quantities
            ]
        )
        known = np.stack([totals[quantity.name] for quantity in statistic.quantities])
        sums = np.rint(np.linalg.solve(maps, known).T).astype(np.int64)
    return (sums + discrete_laplace(float(statistic.scale), sums.shape, rng)).astype(object)


def publish_many_cells(
    root: Path, family: str, shops: int, days: int, rng: np.random.Generator, *, epsilon: str = "1"
) -> Path:
    """Publish a release of shops times days cells, and return its directory."""
    plan = many_cells_plan(family, shops, days, epsilon=epsilon)
    return releases.publish(root, plan, {STATISTIC: noisy_values(plan, rng)})
