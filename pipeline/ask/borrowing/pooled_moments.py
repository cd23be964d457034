"""Means and variances of pooled cells: a population of each, both integrated over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import conjugate_default
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.mean_variance.likelihood import TooManyError
from suffice.pipeline.math.engines.pooled.moment_cells import UNIT, MomentCells
from suffice.pipeline.math.engines.pooled.moment_pools import OF_LEVELS, pooled_moments
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.moment_pools import MomentPool
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsPrior:
    """The prior of pooled means and variances, in words.

    Attributes
    ----------
    population : str
        Of means; log standard deviations are normal.
    interval : (float, float)
        Middle and half width of the bounds.
    """

    population: str
    interval: tuple[float, float]
    has_slope: ClassVar[bool] = False

    def __str__(self) -> str:
        centre, half_range = self.interval
        unit = UNIT * half_range
        return (
            f"a population of means, {self.population}, and one of log standard deviations, normal, both "
            f"integrated over: location of means Logistic({centre:g}, {unit:g}), spread "
            f"HalfNormal({unit:g}), a quarter of the bounds' width; location of standard deviations over "
            f"{half_range:g}, on the log scale, Logistic({OF_LEVELS.centre:g}, {OF_LEVELS.scale:g}), spread "
            "HalfNormal(1)"
        )


def moments_of_pool(statistic: NoisyStatistic, n_prior: NPrior, population: str) -> MomentPool:
    """Return the posterior of the means and variances of one pool.

    Raises
    ------
    UsageError
        Where the noise of a cell is so wide that there would be too many sums.
    """
    family, parameters = FAMILIES[statistic.plan.family], statistic.plan.parameters
    assert family.mean_and_variance is not None  # noqa: S101 - the caller chose it
    first, second = (space.name for space in family.parameter_spaces(parameters))
    noisy = family.mean_and_variance.noisy(statistic, conjugate_default(family, parameters), n_prior)
    try:
        return pooled_moments(
            MomentCells(noisy=noisy),
            POPULATIONS[Line.IDENTITY][population],
            (first, second),
            family.mean_and_variance.interval(parameters),
        )
    except TooManyError:
        message = (
            f"{statistic.plan.name}: the noise of a cell is so wide that its likelihood has too many sums: "
            "leave it out with where, or ask for each cell alone, without pooled"
        )
        raise UsageError(message) from None
