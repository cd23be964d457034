"""A statistic that is released with more than its rows' sums, taken apart.

Beside them stand products of units, or counts of the rows that clipping moved.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Quantity
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyProducts:
    """Noisy sums over units of (f^2, 2 f s, s^2), f + s = k the unit's rows in the cell, in records.

    Attributes
    ----------
    values : ndarray of shape (n_cells, 3), float64
    scale : float
        Of the noise on each.
    max_rows : int
        The rows that a unit keeps at most.
    """

    values: Floats
    scale: float
    max_rows: int


def rows_alone(statistic: NoisyStatistic) -> NoisyStatistic:
    """Return the rows' sums, in the lattice of rows; the statistic itself where it has nothing beside them.

    The noise on them is discrete on a lattice that is finer by their weight, so values are no integers.
    """
    plan = statistic.plan
    further = tuple(rows_alone(observation) for observation in statistic.further)
    if plan.counted is not None:
        values = statistic.values[:, : plan.counted.sums]
        return dataclasses.replace(statistic, plan=rows_plan(plan), values=values, further=further)
    if plan.within_unit is None:
        return dataclasses.replace(statistic, further=further) if further else statistic
    rows, weight = plan.within_unit.rows, plan.within_unit.row_weight
    return dataclasses.replace(
        statistic,
        plan=rows_plan(plan),
        values=_divided(statistic.values[:, :rows], weight),
        further=further,
    )


def rows_plan(plan: StatisticPlan) -> StatisticPlan:
    """Return the plan of the rows' sums, in the lattice of rows; its noise is that of the whole block."""
    if plan.counted is not None:
        sums, total = plan.counted.sums, plan.counted.partition_total
        return dataclasses.replace(
            plan,
            design=plan.design if total is None else Design.PARTITION_OF_UNITY,
            components=plan.components[:sums],
            partition_total=total,
            quantities=_of_first(plan, sums),
            counted=None,
        )
    shared = plan.within_unit
    if shared is None:
        return plan
    of_rows = [
        dataclasses.replace(
            quantity,
            coefficients={
                position: number * shared.row_weight for position, number in quantity.coefficients.items()
            },
        )
        for quantity in _of_first(plan, shared.rows)
    ]
    return dataclasses.replace(
        plan,
        components=plan.components[: shared.rows],
        scale=plan.scale / shared.row_weight,
        partition_total=shared.unit_total,
        quantities=tuple(of_rows),
        within_unit=None,
    )


def _of_first(plan: StatisticPlan, components: int) -> tuple[Quantity, ...]:
    """Return the quantities that are maps of so many first components."""
    return tuple(
        quantity
        for quantity in plan.quantities
        if all(position < components for position in quantity.coefficients)
    )


def noisy_products(statistic: NoisyStatistic) -> NoisyProducts:
    """Return the components of units, in records.

    Raises
    ------
    ValueError
        Where the statistic is released without them.
    """
    shared = statistic.plan.within_unit
    if shared is None:
        message = f"{statistic.plan.name} is released without products of its units"
        raise ValueError(message)
    values = _divided(statistic.values[:, shared.rows :], shared.unit_total)
    return NoisyProducts(
        values=values.astype(np.float64),
        scale=statistic.plan.scale / shared.unit_total,
        max_rows=shared.max_rows,
    )


def _divided(values: NDArray[np.object_], by: int) -> NDArray[np.object_]:
    """Divide Python integers, each quotient rounded once to a float."""
    return np.asarray(values / by, dtype=object)
