"""Statistics of three columns: their specs, and their sums without noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.measure import MomentSums
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

X = {"lower": 2, "upper": 12}
W = {"lower": "-0.5", "upper": 4}
Y = {"lower": -20, "upper": 30}
ENTRIES: dict[str, dict[str, Any]] = {
    "normal": {"family": "multivariate_normal", "columns": {"x": X, "w": W, "y": Y}, "noise": "laplace"},
    "regression": {
        "family": "linear_regression",
        "predictors": {"x": X, "w": W},
        "outcome": {"y": Y},
        "noise": "laplace",
    },
    "origin": {
        "family": "linear_regression",
        "predictors": {"x": X, "w": W},
        "outcome": {"y": Y},
        "intercept": False,
        "noise": "laplace",
    },
}


def with_nulls(entry: dict[str, Any]) -> dict[str, Any]:
    """Every physical row counts: each column says what a null stands for."""

    def column(bounds: dict[str, Any]) -> dict[str, Any]:
        return {**bounds, "nulls": {"value": 3}}

    return {
        key: {name: column(bounds) for name, bounds in value.items()}
        if key in {"columns", "predictors", "outcome"}
        else value
        for key, value in entry.items()
    }


def spec_of(entry: dict[str, Any], *, minimal: bool = False, **more: Any) -> Any:
    content = {
        "name": "n",
        "dataset": "d",
        "source": {"parquet": "x"},
        "privacy": {"epsilon": "1", "neighboring": "replace_one" if minimal else "add_or_remove_one"},
        "statistics": {"s": with_nulls(entry) if minimal else entry},
    }
    return load_spec({**content, **more})


def plan_of(entry: dict[str, Any], *, minimal: bool = False, **more: Any) -> StatisticPlan:
    (plan,) = compile_plan(spec_of(entry, minimal=minimal, **more)).statistics
    return plan


def lattice_sums(rows: np.ndarray) -> np.ndarray:
    """Return exact moments of integer rows (n, d), Python integers."""
    ones = np.concatenate([np.ones((len(rows), 1), int), rows.astype(int)], axis=1).astype(object)
    first, second = np.triu_indices(rows.shape[1] + 1)
    return np.array([(ones[:, first] * ones[:, second]).sum(axis=0)], dtype=object)


def released(entry: dict[str, Any], data: np.ndarray, *, minimal: bool = False) -> NoisyStatistic:
    """The statistic of rows, on a fine lattice and without noise."""
    fine = {**entry, "lattice_bits": 24}
    spec = spec_of(fine, minimal=minimal)
    (plan,) = compile_plan(spec).statistics
    measure = FAMILIES[plan.family].measure(spec.statistics["s"])
    assert isinstance(measure, MomentSums)
    lattice = np.stack(
        [of.quantiser.quantise(column) for of, column in zip(measure.of, data.T, strict=True)], axis=1
    )
    totals = FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, lattice_sums(lattice))
    return noisy_statistic(plan, totals, public_n=len(data) if minimal else None)


def rows_of(n: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(7, 1.2, n)
    w = rng.normal(1.8, 0.4, n) + 0.2 * (x - 7)
    y = 3.0 + 1.5 * x - 4.0 * w + rng.normal(0, 1.5, n)
    return np.clip(np.stack([x, w, y], axis=1), [2, -0.5, -20], [12, 4, 30])
