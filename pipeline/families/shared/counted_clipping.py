"""What a statistic sums where its entry says ``count_clipped``: powers, and the records that moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.terms.statistics.measure import CountedPowers, PowerSums, SideColumn

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.terms.declaration.fields import StatisticSpec


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
