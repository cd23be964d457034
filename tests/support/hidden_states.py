"""Releases of crashes whose cells have hidden states, with known truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.making import mapping
from support.noisy import discrete_laplace
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.spec.plan import Plan

STATES = ("AK", "AL", "AR", "AZ", "CA", "CO")
YEARS, MONTHS = ("2013", "2014"), tuple(range(1, 13))
COLLISIONS = ("none", "rear", "front", "angle")
MANNER = np.array([[0.70, 0.10, 0.10, 0.10], [0.10, 0.15, 0.60, 0.15]])
"""Of the two states, by category."""
DRUNK = np.array([[0.9, 0.1], [0.45, 0.55]])
TRANSITIONS = np.array([[0.9, 0.1], [0.2, 0.8]])
ROWS = 60.0
STATISTICS: dict[str, Any] = {
    "manner": {"family": "categorical", "column": "manner", "categories": list(COLLISIONS)},
    "drunk": {"family": "bernoulli", "column": "drunk"},
}
GROUPS: dict[str, Any] = {"STATE": list(STATES), "YEAR": list(YEARS), "MONTH": {"range": [1, 12]}}


def crash_plan(**changes: Any) -> Plan:
    """Compile the spec of the release."""
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"}
    content = {"name": "crashes", "dataset": "crashes", "groups": GROUPS, "statistics": STATISTICS}
    return compile_plan(load_spec(mapping("data", **{**content, "privacy": privacy, **changes})))


def hidden_states(n_chains: int, n_times: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw states of every chain, (n_chains, n_times)."""
    states = np.empty((n_chains, n_times), dtype=np.int64)
    states[:, 0] = rng.integers(0, 2, n_chains)
    for step in range(1, n_times):
        states[:, step] = rng.random(n_chains) < TRANSITIONS[states[:, step - 1], 1]
    return states


def noisy_counts(plan: Plan, states: NDArray[np.int64], rng: np.random.Generator) -> dict[str, Any]:
    """Draw what a release of cells in these states, (n_cells,), would hold."""
    rows = rng.gamma(4.0, ROWS / 4.0, len(states))[:, None]
    values = {}
    for statistic in plan.statistics:
        emission = {"manner": MANNER, "drunk": DRUNK}[statistic.name]
        counts = rng.poisson(rows * emission[states])
        values[statistic.name] = (counts + discrete_laplace(statistic.scale, counts.shape, rng)).astype(
            object
        )
    return values


def publish_crashes(root: Path, seed: int = 1, **changes: Any) -> tuple[str, NDArray[np.int64]]:
    """Publish the release ``crashes``, and return its store and the true states, (6, 24)."""
    rng = np.random.default_rng(seed)
    plan = crash_plan(**changes)
    states = hidden_states(len(STATES), len(YEARS) * len(MONTHS), rng)
    publish(root, plan, noisy_counts(plan, states.ravel(), rng))
    return str(root), states


def publish_series(
    root: Path, labels: tuple[str, ...], seed: int = 1, **changes: Any
) -> tuple[str, NDArray[np.int64]]:
    """Publish windows of the series ``monthly``, and return the store and the true states by label."""
    rng = np.random.default_rng(seed)
    window = {"column": "day", "every": "month"}
    plan = crash_plan(**{"name": "monthly", "groups": {"STATE": list(STATES)}, "window": window, **changes})
    states = hidden_states(len(STATES), len(labels), rng)
    for position, label in enumerate(labels):
        publish(root, plan, noisy_counts(plan, states[:, position], rng), window=label)
    return str(root), states
