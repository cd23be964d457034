"""Working out posteriors a block of cells at a time.

Cells are independent given the release, so what is worked out of one block needs no other.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.cell_blocks import CellBlocks
from suffice.pipeline.terms.released.within_unit import rows_alone
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.cell_blocks import CellProgress
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


BLOCK_CELLS = 1024
MCMC_CELLS = 256
"""Chains of so many cells take little longer than those of one, and still end within a minute or so."""
BLOCK_ENTRIES = 4096
"""Numbers that a block's parameter has at most: 4000 draws of them take 130 MB."""


def block_cells(plan: StatisticPlan) -> int:
    """Return how many cells of a statistic are worked on together."""
    family = FAMILIES[plan.family]
    entries = max(1, len(entry_names(family.labels(plan.parameters))))
    most = MCMC_CELLS if family.by_mcmc(plan.parameters) else BLOCK_CELLS
    return max(1, min(most, BLOCK_ENTRIES // entries))


def in_blocks(
    statistic: NoisyStatistic,
    posterior: Callable[[NoisyStatistic], Posterior],
    progress: CellProgress | None = None,
) -> Posterior:
    """Work out a posterior block by block.

    Parameters
    ----------
    statistic : NoisyStatistic
        All cells.
    posterior : callable
        Some of its cells -> their posterior.
    progress : callable, optional
        Gets the number of cells that are done, and of all, after each block.
    """
    n_cells = len(statistic.values)
    n_blocks = -(-n_cells // block_cells(statistic.plan))
    if n_blocks <= 1:
        found = posterior(statistic)
        if progress is not None:
            progress(n_cells, n_cells)
        return found
    parts = []
    for cells in np.array_split(np.arange(n_cells), n_blocks):
        parts.append(posterior(statistic.take(cells)))
        if progress is not None:
            progress(int(cells[-1]) + 1, n_cells)
    return dataclasses.replace(
        parts[0],
        groups=statistic.groups,
        distribution=CellBlocks(blocks=tuple(part.distribution for part in parts)),
        observed=(rows_alone(statistic),),
        models_clipping=_of_cells([part.models_clipping for part in parts]),
        design_effect=_of_cells([part.design_effect for part in parts]),
    )


def _of_cells(parts: Sequence[Any]) -> Any:
    """Join what is known of every cell, or of none."""
    return None if parts[0] is None else np.concatenate(parts)
