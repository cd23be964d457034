"""Likelihoods of a released statistic's cells, as populations take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import LINES
from suffice.pipeline.ask.inference.referenced_cells import ReferencedCells
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.rate_cells import RateCells
from suffice.pipeline.math.engines.pooled.sized_cells import sized
from suffice.pipeline.math.engines.several_counts import is_mixture_of_poisson
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.engines.pooled.cells import CellsSource
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


def line_of(statistic: NoisyStatistic) -> Line:
    """Return the line on which the parameters of cells have a population.

    Raises
    ------
    UsageError
        Where the family's parameters are none of those that populations are of.
    """
    plan = statistic.plan
    line = _line(FAMILIES[plan.family])
    if line is None:
        can = [name for name, each in FAMILIES.items() if _line(each) is not None]
        message = (
            f"{plan.name} is {plan.family}: pooled cells have probabilities, a rate, a scale, or a mean "
            f"and a variance, in the families {', '.join(can)}"
        )
        raise UsageError(message)
    return line


def _line(family: Family) -> Line | None:
    if family.mean_and_variance is not None:
        return Line.IDENTITY
    if family.name == "categorical":
        return Line.LOGIT
    line = LINES.get(family.prior) if family.latent is not None else None
    # A mean alone has no unit but that of its bounds, which its family may lack.
    return None if line is Line.IDENTITY else line


def cells_source(statistic: NoisyStatistic, n_prior: NPrior) -> CellsSource:
    """Return the likelihoods of cells: with the size of each where that is latent, else without.

    Raises
    ------
    UsageError
        Where cells have several parameters.
    """
    plan = statistic.plan
    if FAMILIES[plan.family].latent is None:
        message = (
            f"{plan.name} is {plan.family}, of several parameters: pool its cells without covariates, "
            "neighbours and time"
        )
        raise UsageError(message)
    counts = [observation.values.astype(np.float64) for observation in statistic.observations]
    scales = np.array([observation.plan.scale for observation in statistic.observations])
    first, second = (
        np.stack([each[:, place] for each in counts], axis=1)
        if plan.design is Design.PARTITION_OF_UNITY
        else None
        for place in (0, -1)
    )
    if first is not None and second is not None:
        if plan.family == "bernoulli" and is_mixture_of_poisson(
            n_prior, np.stack([first, second], axis=1), scales
        ):
            true, false = (NoisyCount(values=each, scales=scales) for each in (second, first))
            return CountCells(true=true, false=false, n_prior=n_prior)
        if plan.family == "poisson" and not isinstance(n_prior, Fixed):
            bound = float(plan.parameters.upper or 0)
            return RateCells(total=first, rest=second, scales=scales, bound=bound, n_prior=n_prior)
    return ReferencedCells.of(statistic, n_prior)


def pool_source(statistic: NoisyStatistic, n_prior: NPrior) -> CellsSource:
    """Return the likelihoods of the cells of one pool: their sizes have one law where nobody names another.

    A prior of the number of records that is not the default one stays as it is.
    """
    source = cells_source(statistic, n_prior)
    return sized(source) if isinstance(n_prior, Reciprocal) else source
