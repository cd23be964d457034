"""Noisy statistics as a consumer gets them: real plans, simulated noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.statistics.statistic_plan import StatisticPlan


COLUMNLESS = frozenset({"contingency", "naive_bayes", "bayesian_network"})
"""Families that name their columns in their own way."""
NO_NULLS = COLUMNLESS | {"categorical", "markov_chain"}
"""Families that count every row where every column has `other`."""


def statistic_plan(statistic: dict[str, Any], *, epsilon: str, public_n: bool) -> StatisticPlan:
    """The only statistic's plan; with a public N it counts every row, nulls as well."""
    if statistic["family"] not in COLUMNLESS:
        statistic = {"column": "x", **statistic}
    if public_n and statistic["family"] not in NO_NULLS:
        statistic = {**statistic, "nulls": {"value": "0"}}
    spec = {
        "name": "simulated",
        "dataset": "simulated",
        "source": {"parquet": "rows/"},
        "privacy": {
            "epsilon": epsilon,
            "neighboring": "replace_one" if public_n else "add_or_remove_one",
            "unit": {"column": "who", "max_rows": "1"} if statistic["family"] == "markov_chain" else "row",
        },
        "statistics": {"measured": statistic},
    }
    (plan,) = compile_plan(load_spec(spec)).statistics
    return plan


def noisy_statistic(
    plan: StatisticPlan,
    values: NDArray[Any],
    *,
    public_n: int | None = None,
    groups: dict[str, list[str | int]] | None = None,
) -> NoisyStatistic:
    """Released values (n_cells, n_components), integers of any size."""
    cells = len(values)
    entries = np.empty(values.shape, dtype=object)
    entries[:] = [[int(entry) for entry in row] for row in values]
    return NoisyStatistic(
        plan=plan,
        values=entries,
        groups={"cell": list(range(cells))} if groups is None else groups,
        public_n=public_n,
        max_total_rows=10**12,
    )


def discrete_laplace(scale: float, size: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
    """Differences of geometric numbers: a simulation, not a mechanism."""
    success = -np.expm1(-1.0 / scale)
    noise: NDArray[np.int64] = rng.geometric(success, size) - rng.geometric(success, size)
    return noise
