r"""Posteriors of what records are once the public bounds have clipped them, and where more is modelled.

The mean of numbers within bounds lies within them. A posterior of records as bounds leave them is therefore
that under the prior given that region, whoever gave the prior: it says what else is believed of it. Records
before clipping have no such limits.

Where clipping is modelled by evidence, a release counts the records that clipping moved, and a cell has
evidence where

.. math:: P(E \ge \hat n_{\mathrm{moved}}) \le \alpha / c, \qquad \alpha = 10^{-4},

of one of its c counts, with E that count's noise and c = 2 for one release: of 10,000 cells in which no
record was moved, one is taken for clipped. Discrete noise is at most a step above the continuous one of the
same scale, whose tail is exact.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.expected_records import QuantityNoise
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import PartlyClipped
from suffice.pipeline.math.distributions.laplace_sums import upper_tail
from suffice.pipeline.math.distributions.regions import within_several
from suffice.pipeline.math.distributions.within_limits import within, within_region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.block import Quantity
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats, Mask


BY_EVIDENCE, MODELLED, IGNORED = "by-evidence", "modelled", "ignored"
WAYS = (BY_EVIDENCE, MODELLED, IGNORED)
"""Of treating clipped records: modelled where the release counts them, wherever it can matter, or nowhere."""
FALSE_ALARM = 1e-4
"""Chance that a cell in which clipping moved no record is taken for one that it did."""
_MOVED = ("n_below", "n_above")


def require_way_of_clipping(clipping: str) -> None:
    """Refuse what is no way of treating clipped records.

    Raises
    ------
    UsageError
    """
    if clipping not in WAYS:
        message = f"clipping is {BY_EVIDENCE}, {MODELLED} or {IGNORED}, not {clipping!r}"
        raise UsageError(message)


def refuse_to_model(plan: StatisticPlan, clipping: str) -> None:
    """Refuse to model the clipping of several columns: there is no such model.

    Raises
    ------
    UsageError
    """
    if clipping == MODELLED and FAMILIES[plan.family].region is not None:
        message = (
            f"clipping of {plan.name} cannot be {MODELLED}: of {plan.family} there is no model of clipped "
            "records; leave clipping out, and parameters are of the records as the public bounds leave them"
        )
        raise UsageError(message)


def cells_to_model(parts: Sequence[NoisyStatistic], clipping: str) -> Mask:
    """Return in which cells clipping may be modelled, where it matters: (n_cells,).

    Parameters
    ----------
    parts : sequence of NoisyStatistic
        One, or several of disjoint data, cell by cell; with their counts of moved records, if they have any.
    clipping : {"by-evidence", "modelled", "ignored"}
    """
    cells = np.full(len(parts[0].values), clipping == MODELLED)
    if clipping == BY_EVIDENCE:
        cells |= evidence_of_clipping(*(observation for part in parts for observation in part.observations))
    return cells


def evidence_of_clipping(*statistics: NoisyStatistic) -> Mask:
    """Return in which cells a released count of moved records is beyond what noise alone does.

    The chance of a false alarm is that of all counts of a cell together.
    """
    counts = [
        (statistic, quantity)
        for statistic in statistics
        for quantity in statistic.plan.quantities
        if quantity.name in _MOVED
    ]
    cells = np.zeros(len(statistics[0].values), dtype=bool)
    for statistic, count in counts:
        cells |= _noise_alone(statistic, count) <= FALSE_ALARM / len(counts)
    return cells


def _noise_alone(statistic: NoisyStatistic, count: Quantity) -> Floats:
    """Return the chance that noise alone is as large as a count, or a little more: (n_cells,)."""
    noise = QuantityNoise.of(statistic, count, None)
    step = float(np.abs(noise.of_quantity) @ noise.counts)
    beyond = statistic.estimates(count) - step
    scales = np.tile(noise.scale * np.abs(noise.of_quantity), (len(beyond), 1))
    nothing = np.zeros(len(beyond))
    return upper_tail(beyond, scales, noise.counts, nothing, nothing)


def of_bounded_records(distribution: Distribution, plan: StatisticPlan) -> Distribution:
    """Return a distribution given that its parameters are those that records within the bounds can have.

    Cells that model clipping are left alone: they are of records before clipping.
    """
    if isinstance(distribution, PartlyClipped):
        return dataclasses.replace(distribution, plain=of_bounded_records(distribution.plain, plan))
    family = FAMILIES[plan.family]
    if family.limits is not None:
        return within(distribution, family.limits(plan.parameters))
    if family.mean_and_variance is not None:
        centre, half_range = family.mean_and_variance.interval(plan.parameters)
        return within_region(distribution, (centre - half_range, centre + half_range))
    if family.region is not None:
        return within_several(distribution, family.region(plan.parameters))
    return distribution


def can_be_of_bounded(parameters: Floats, plan: StatisticPlan) -> Mask:
    """Return which parameters, (n_parameters, n), those of records within the bounds can be: (n,)."""
    family = FAMILIES[plan.family]
    if family.limits is not None:
        low, high = family.limits(plan.parameters)
        return np.asarray((parameters[0] >= low) & (parameters[0] <= high))
    if family.mean_and_variance is not None:
        centre, half_range = family.mean_and_variance.interval(plan.parameters)
        mean, variance = parameters
        return np.asarray(variance <= (half_range - (mean - centre)) * (half_range + (mean - centre)))
    if family.region is not None:
        region = family.region(plan.parameters)
        return region.inside(region.named(parameters))
    return np.ones(parameters.shape[1], dtype=bool)
