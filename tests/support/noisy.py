"""Noisy statistics as a consumer gets them: real plans, simulated noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from support.entries import counting_nulls, entry_of, privacy_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def statistic_plan(statistic: dict[str, Any], *, epsilon: str, public_n: bool) -> StatisticPlan:
    """The only statistic's plan; with a public N it counts every row, nulls as well."""
    statistic = entry_of(statistic["family"], statistic)
    if public_n:
        statistic = counting_nulls(statistic)
    spec = {
        "name": "simulated",
        "dataset": "simulated",
        "source": {"parquet": "rows/"},
        "privacy": privacy_of(statistic["family"], epsilon=epsilon, public_n=public_n),
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
