"""What the number of rows that a spec states makes of bins: of histograms, and of quantiles drawn among them.

All numbers are the spec's own: nothing is read and nothing is spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.assumed import typical_values
from suffice.pipeline.spec.compiled_statistics import compile_statistics
from suffice.pipeline.terms.statistics.bins_in_words import coarse_line
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan, bargain_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from fractions import Fraction

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def judged_bins(spec: Spec, statistics: Iterable[StatisticPlan], shares: Fraction) -> tuple[str, ...]:
    """Compare drawn quantiles with histograms, and warn of bins that are too wide; a sentence each.

    Parameters
    ----------
    spec : Spec
    statistics : iterable of StatisticPlan
        Compiled of it.
    shares : Fraction
        Of all statistics together.
    """
    return tuple(line for statistic in statistics for line in _judged(spec, statistic, shares) if line)


def _judged(spec: Spec, statistic: StatisticPlan, shares: Fraction) -> Iterator[str]:
    rows, bins = rows_in_cell(spec, statistic), statistic.parameters.bins
    if isinstance(statistic.sample, QuantilePlan):
        if rows is not None:
            counted = spec.statistics[statistic.name].model_copy(update={"sample": None})
            (histogram,) = compile_statistics(spec, [(statistic.name, counted)], shares)
            yield bargain_line(statistic.name, statistic.sample, histogram.component_noise_sd, rows)
    elif bins is not None:
        typical = {} if spec.assume is None else spec.assume.of(statistic.name).typical
        family = FAMILIES[statistic.family]
        of_bins = typical_values(typical, family, statistic.parameters) if typical else []
        yield coarse_line(statistic, bins, rows, of_bins)


def rows_in_cell(spec: Spec, statistic: StatisticPlan) -> float | None:
    """Return how many records of a cell the spec assumes, or expects at least; None where it says neither."""
    assumed = spec.assume
    whole: float | None = None
    if assumed is not None:
        stated = assumed.of(statistic.name).n
        if stated is not None:
            return float(stated)
        whole = assumed.rows or assumed.units
    if whole is None and spec.expect is not None:
        whole = spec.expect.floor
    return None if whole is None else whole / statistic.n_cells
