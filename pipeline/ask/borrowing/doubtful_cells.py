r"""Cells of which the population is to be doubted, with what each says alone beside the pooled answer.

An outlier in a small cell is drawn to the others, and nothing tells that it is one. In simulated releases of
which 2 % of cells lie three logits off (``benchmarks/pooled_populations.py``), intervals of 95 % under the
default population held 60 of 61 of these where size times epsilon was at least ``TOLD``, and 37 of 60 below.
So doubtful are

- small cells, of which a released number of records times epsilon is below ``TOLD``;
- outliers, which are more probably ones than not; of a walk, cells to which a jump leads;
- misfits, which the population of all others does not expect (``population_check``).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ConflictWarning
from suffice.pipeline.ask.inference.bounded_records import n_quantity
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats, Mask

TOLD = 30.0
SMALL, OUTLIER, MISFIT, JUMP = "small", "outlier", "misfit", "jump"


def size_times_epsilon(statistic: NoisyStatistic, n_prior: Any) -> Floats:
    """Return released numbers of records times epsilon, (n_cells,); infinite where none was released."""
    n_map, n_cells = n_quantity(statistic), len(statistic.values)
    if isinstance(n_prior, Fixed):
        size = np.full(n_cells, float(n_prior.support[0]))
    elif n_map is None:
        return np.full(n_cells, np.inf)
    else:
        size = np.asarray(statistic.estimates(n_map), dtype=np.float64)
    epsilon = sum(float(each.plan.loss.amount) for each in statistic.observations)
    return np.asarray(np.maximum(size, 0.0) * epsilon, dtype=np.float64)


def reasons(told: Floats, is_outside: Mask, is_misfit: Mask, outside: str = OUTLIER) -> list[str]:
    """Return why each cell is doubtful, of sizes times epsilon and masks; empty where it is not."""
    why = np.full(len(told), "", dtype=object)
    why[told < TOLD] = SMALL
    why[is_misfit] = MISFIT
    why[is_outside] = outside
    return [str(each) for each in why]


def beside_alone(pooled: Posterior, alone: Posterior, why: list[str], mass: float) -> list[dict[str, Any]]:
    """Return one row a doubtful cell: keys, why, the pooled interval, and that of the cell alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)  # the table says why cells are doubted
        together, apart = (
            posterior.credible_interval(mass=mass, interval=pooled.default_interval, rng=0)
            for posterior in (pooled, alone)
        )
    return [
        {
            **{column: keys[cell] for column, keys in pooled.groups.items()},
            "why": reason,
            "lower": float(together[cell, 0]),
            "upper": float(together[cell, 1]),
            "alone_lower": float(apart[cell, 0]),
            "alone_upper": float(apart[cell, 1]),
        }
        for cell, reason in enumerate(why)
        if reason
    ]


def small_cells_text(why: list[str]) -> str:
    """Say how many cells are too small to tell an outlier; empty where none is."""
    n = why.count(SMALL)
    if not n:
        return ""
    return (
        f"{n} of {len(why)} cells have a size times epsilon below {TOLD:g}: an outlier among them is not "
        "told, and is drawn to the others; pooled.doubtful() and --json show each alone beside it"
    )
