"""Totals from 0 on: of which statistics the first component is one, and what its lattice's step is."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.hierarchy import SUMMED

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def total_step(plan: StatisticPlan) -> Fraction | None:
    """Return a lattice step of the first component in the column's unit; None of others."""
    if plan.family not in SUMMED:
        return None
    total = next(quantity for quantity in plan.quantities if quantity.name == "total")
    if set(total.coefficients) != {0} or total.public_n_coefficient != 0:
        return None
    return Fraction(total.coefficients[0])
