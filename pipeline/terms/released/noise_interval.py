"""Intervals of the noise alone: how far a released quantity may lie from its exact value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.block import Quantity
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def noise_half_width(plan: StatisticPlan, quantity: Quantity, mass: float = 0.95) -> float:
    """Return a distance within which a quantity's noise stays with at least the given probability.

    The least such distance where one component makes the quantity. Where several do, that of one Laplace
    variable with the same standard deviation, which is no less than theirs for a mass of 0.95 or more, and
    what the rounding of each to the lattice may add.

    Parameters
    ----------
    plan : StatisticPlan
    quantity : Quantity
        One of the plan's.
    mass : float, in [0.95, 1)

    Returns
    -------
    float, >= 0
        In the quantity's unit.
    """
    weights = [abs(float(weight)) for weight in quantity.coefficients.values() if weight != Fraction(0)]
    if not weights:
        return 0.0
    tail = -math.log1p(-mass)
    if len(weights) == 1:
        # P(|noise| > k) = 2 q^(k+1) / (1 + q), q = e^(-1/scale): the least k for which that is 1 - mass.
        q = math.exp(-1.0 / plan.scale)
        steps = math.ceil(plan.scale * (tail + math.log(2.0 / (1.0 + q))) - 1.0 - 1e-9)
        return weights[0] * max(steps, 0)
    return plan.scale * tail * math.sqrt(sum(weight**2 for weight in weights)) + sum(weights)
