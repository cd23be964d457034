"""What a statistic sums and releases beside its rows' sums.

They are products of units where its entry says ``within_unit: true``, and counts of the records that clipping
moved where it says ``count_clipped``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.terms.statistics.beside_sums import beside_rows
from suffice.pipeline.terms.statistics.measure import (
    LARGEST_UNIT_SUM,
    N_PRODUCTS,
    N_SIDES,
    CodeCounts,
    CountedPowers,
    PowerSums,
    SideColumn,
    UnitProducts,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.contract import Family, UnitMoments
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.measure import Measure
    from suffice.pipeline.terms.statistics.sensitivity import Block
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def measure_counting(family: Family, entry: StatisticSpec) -> CountedPowers:
    """Return what is summed of rows, and of their sides."""
    powers = family.measure(entry)
    if family.clipping_bounds is None or not isinstance(powers, PowerSums):
        message = f"{family.name} does not count what clipping moved"
        raise ValueError(message)
    nulls = getattr(entry, "nulls", None)
    side = SideColumn.of(
        powers.of.column, *family.clipping_bounds(entry), None if nulls is None else nulls.value
    )
    return CountedPowers(of=powers, side=side)


def measure_within(rows: Measure) -> UnitProducts:
    """Return what is summed of rows and units, of what is summed of rows."""
    if not isinstance(rows, CodeCounts | PowerSums):
        message = f"products of what a unit adds are of two sums of rows, not of {type(rows).__name__}"
        raise TypeError(message)
    return UnitProducts(of=rows)


def block_within(family: Family, entry: StatisticSpec, rows: Block) -> Block:
    """Return the block of rows and units, of that of rows."""
    parameters = family.parameters(entry)
    lower, upper = parameters.lower, parameters.upper
    return beside_rows(
        rows,
        entry.max_rows,
        _moments(family).components,
        lower=Fraction(0) if lower is None else lower,
        upper=Fraction(1) if upper is None else upper,
    )


def totals_of(family: Family, entry: StatisticSpec, plan: StatisticPlan, sums: NDArray[Any]) -> NDArray[Any]:
    """Return exact totals (n_cells, n_components), in Python integers, of exact sums (n_cells, n_sums)."""
    shared = plan.within_unit
    if plan.counted is not None:
        counts = sums[:, -N_SIDES:] * plan.counted.weight
        return np.concatenate([family.totals(entry, plan.design, sums[:, :-N_SIDES]), counts], axis=1)
    if shared is None:
        return family.totals(entry, plan.design, sums)
    rows = family.totals(entry, plan.design, sums[:, :-N_PRODUCTS])
    units = _moments(family).totals(entry, sums[:, -N_PRODUCTS:])
    return np.concatenate([rows * shared.row_weight, units], axis=1)


def most_rows(measure: UnitProducts) -> int:
    """Return the largest ``max_rows`` under which products of what a unit adds can be summed."""
    rows = measure.of
    return LARGEST_UNIT_SUM // (1 if isinstance(rows, CodeCounts) else rows.of.quantiser.largest_magnitude)


def _moments(family: Family) -> UnitMoments:
    if family.unit_moments is None:
        message = f"{family.name} releases nothing of units"
        raise ValueError(message)
    return family.unit_moments
