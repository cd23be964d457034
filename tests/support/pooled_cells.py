"""Small releases of cells to pool: probabilities and rates of simulated records, some of them few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import suffice
from support.noisy import discrete_laplace
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

STATISTICS: dict[str, Any] = {
    "ill": {"family": "bernoulli", "column": "c"},
    "visits": {"family": "poisson", "column": "d", "upper": 6},
}
REGIONS = ["north", "south"]


def make_cells(folder: Path, towns: int = 6, *, epsilon: str = "2", **changes: Any) -> Release:
    """Publish probabilities and rates of towns in two regions, with the noise of the plan, and open them.

    One town of the south is an outlier. Keys are as in a spec; records are simulated, and so is the noise.
    """
    groups = {"region": REGIONS, "town": {"range": [1, towns]}}
    privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one"}
    plan = make_plan(**{"groups": groups, "statistics": STATISTICS, "privacy": privacy, **changes})
    rng = np.random.default_rng(11)
    cells = plan.n_cells
    size = rng.integers(30, 200, cells)
    chance = np.concatenate([rng.beta(6, 54, cells - cells // 2), rng.beta(20, 60, cells // 2)])
    chance[-1] = 0.9
    ill = rng.binomial(size, chance)
    visits = np.array(
        [rng.poisson(3.0 * part + 0.5, n).clip(0, 6).sum() for part, n in zip(chance, size, strict=True)]
    )
    exact = {"ill": [size - ill, ill], "visits": [visits, 6 * size - visits]}
    values = {
        each.name: (
            np.stack(exact[each.name], axis=1) + discrete_laplace(each.scale, (cells, 2), rng)
        ).astype(object)
        for each in plan.statistics
    }
    return suffice.open_release(str(publish(folder, plan, values)))
