"""Probabilities of categories of pooled cells: one Dirichlet population, integrated over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.pooled.category_cells import CategoryCells
from suffice.pipeline.math.engines.pooled.dirichlet import pooled_categories
from suffice.pipeline.math.engines.several_counts import is_mixture_of_poisson
from suffice.pipeline.math.priors.record_count import Reciprocal
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.dirichlet import CategoryPool
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


@dataclass(frozen=True, slots=True)
class DirichletPrior:
    """The prior of pooled probabilities, in words.

    Attributes
    ----------
    population : str
    """

    population: str
    has_slope: ClassVar[bool] = False

    def __str__(self) -> str:
        return (
            f"one population, {self.population}, integrated over: its mean uniform over probabilities, its "
            "concentration 1 at least and such that the standard deviation of the logit of a category of an "
            "equal share is HalfNormal(1)"
        )


def categories_of_pool(statistic: NoisyStatistic, n_prior: NPrior) -> CategoryPool:
    """Return the posterior of the probabilities of one pool.

    Raises
    ------
    UsageError
        Where the number of records is public, or has another prior than the default.
    """
    plan = statistic.plan
    counts = np.stack([each.values.astype(np.float64) for each in statistic.observations], axis=2)
    scales = np.array([float(each.plan.scale) for each in statistic.observations])
    if (
        plan.design is not Design.PARTITION_OF_UNITY
        or not isinstance(n_prior, Reciprocal)
        or not is_mixture_of_poisson(n_prior, counts, scales)
    ):
        message = (
            f"{plan.name}: categories are pooled where the number of records is private, under its default "
            f"prior and far below that prior's upper end, not under {n_prior}: leave n_prior out, or ask for "
            "each cell alone, without pooled"
        )
        raise UsageError(message)
    (space,) = FAMILIES[plan.family].parameter_spaces(plan.parameters)
    return pooled_categories(CategoryCells.of(counts, scales), space.name)
