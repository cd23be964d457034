"""The mechanism: exact totals in, noisy totals out, once. Claims and proof in ``mechanism.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.chunk.exact_sums import Table, to_python
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.mechanism.noise import discrete_laplace
from suffice.pipeline.statistics.statistic_plan import INT64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.chunk.exact_sums import Sums
    from suffice.pipeline.declaration.fields import StatisticSpec
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan

    Values = NDArray[np.int64] | NDArray[np.object_]

BLOCK_CELLS = 1 << 14
"""Cells whose totals are Python integers at a time."""


def privatize(sums: Sums, spec: Spec, plan: Plan) -> dict[str, Values]:
    r"""Add discrete Laplace noise to every component of every statistic in every cell.

    .. math:: Y = S + Z, \qquad Z_i \sim \mathrm{DLap}(b_j) \text{ independently}

    The exact totals exist in this function and in the memory of the cluster that summed them, nowhere else.
    Call it once per charge, after the charge entered ``drawing``.

    Parameters
    ----------
    sums : Sums
        What the pass over the data summed, exact.
    spec, plan : Spec, Plan
        The spec that was charged, and its plan.

    Returns
    -------
    dict of str to ndarray of int64 or of Python integers, shape (n_cells, n_components)
        Noisy components in lattice units, by statistic, in the type that its column has by the plan; a
        value beyond that type is set to its end.
    """
    # proof: draw-once
    return {
        statistic.name: _privatize(sums[statistic.name], spec.statistics[statistic.name], statistic)
        for statistic in plan.statistics
    }


def _privatize(table: Table, entry: StatisticSpec, statistic: StatisticPlan) -> Values:
    """Draw one block's noise, and add it to the totals in Python integers, some cells at a time."""
    family = FAMILIES[statistic.family]
    shape = (len(table.low), len(statistic.components))
    noise = discrete_laplace(
        shape[0] * shape[1],
        scale=statistic.scale,
        l1_sensitivity=statistic.l1_sensitivity,
        epsilon=statistic.epsilon,
    ).reshape(shape)
    noisy: Values = noise if statistic.value_type == INT64 else np.empty(shape, dtype=object)
    for start in range(0, len(noise), BLOCK_CELLS):
        cells = slice(start, start + BLOCK_CELLS)
        part = Table(low=table.low[cells], high=None if table.high is None else table.high[cells])
        totals = family.totals(entry, statistic.design, to_python({statistic.name: part})[statistic.name])
        noisy[cells] = np.clip(totals + noise[cells].astype(object), *statistic.value_limits)
    return noisy
