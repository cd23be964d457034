"""How cells of a family are pooled: by one parameter, by a mean and a variance, or by categories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.borrowing.pool import Pool, in_sentence
from suffice.pipeline.ask.borrowing.pooled_categories import DirichletPrior, categories_of_pool
from suffice.pipeline.ask.borrowing.pooled_moments import MomentsPrior, moments_of_pool
from suffice.pipeline.ask.inference.pooled_sources import pool_source
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.dictionary import TOTAL
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.engines.pooled.hyperpriors import (
    COEFFICIENT_SD,
    SLOPE_SD,
    SPREAD_SLOPE_SD,
)
from suffice.pipeline.math.engines.pooled.populations import DICTIONARY, POPULATIONS
from suffice.pipeline.math.engines.pooled.regression_distribution import regression_distribution
from suffice.pipeline.math.engines.pooled.sized_cells import SizedCells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.ask.borrowing.covariates import Design
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.engines.pooled.cells import CellsSource
    from suffice.pipeline.math.engines.pooled.dirichlet import CategoryPool
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.pipeline.math.engines.pooled.moment_pools import MomentPool
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells

SIZE_LAW = ", log(1 + size) of all cells of one law, whose location and spread they tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationPrior:
    """The prior of pooled cells, in words.

    Attributes
    ----------
    population : str
    line : Line
    has_slope, has_spread_slope : bool
        Whether the location, and the logarithm of the spread, have a slope on log size.
    has_size_law : bool
        Whether the sizes of cells have one law.
    formula : str or None
        Of covariates.
    """

    population: str
    line: Line
    has_slope: bool
    has_spread_slope: bool = False
    has_size_law: bool = False
    formula: str | None = None

    def __str__(self) -> str:
        is_logit = self.line is Line.LOGIT
        what = "logits" if is_logit else "logarithms"
        location = "Logistic(0, 1)" if is_logit else "Logistic(centre of all cells, 2)"
        slope = slopes_in_words(of_spread=self.has_spread_slope) if self.has_slope else ""
        slope += SIZE_LAW if self.has_size_law else ""
        if self.population == DICTIONARY:
            return (
                f"one population, {self.population}, integrated over: a mixture of normal laws of {what}, "
                f"their shares Dirichlet with total {TOTAL:g}{slope}"
            )
        return (
            f"one population, {self.population}, integrated over: location of {what} {location}, spread "
            f"HalfNormal(1){slope}{self._of_covariates}"
        )

    @property
    def _of_covariates(self) -> str:
        if self.formula is None:
            return ""
        return (
            f"; location depends on public covariates, {self.formula}, coefficients Normal(0, "
            f"{COEFFICIENT_SD:g}) for each standard deviation, of indicators from 0 to 1"
        )


def slopes_in_words(*, of_spread: bool) -> str:
    """Say what slopes have as hyperpriors."""
    said = f", slope on log(1 + size) Normal(0, {SLOPE_SD:g})"
    if of_spread:
        said += f", of the log spread Normal(0, {SPREAD_SLOPE_SD:g})"
    return f"{said}, for each standard deviation of log(1 + size) where that is above 1"


def _likelihoods(
    each: Sequence[NoisyStatistic], n_prior: NPrior, name: str, line: Line
) -> tuple[list[CellsSource], str, PopulationPrior]:
    """Return the likelihoods of every pool, the parameter's name, and the prior in words."""
    plan = each[0].plan
    (space,) = FAMILIES[plan.family].parameter_spaces(plan.parameters)
    sources = [pool_source(cells, n_prior) for cells in each]
    prior = PopulationPrior(
        population=name,
        line=line,
        has_slope=sources[0].has_sizes and POPULATIONS[line][name].slope,
        has_size_law=any(isinstance(source, SizedCells) for source in sources),
    )
    return sources, space.name, prior


def _of_one_parameter(
    each: Sequence[NoisyStatistic],
    named: Sequence[dict[str, str | int]],
    n_prior: NPrior,
    name: str,
    line: Line,
) -> tuple[PopulationPrior, list[PooledDistribution], list[Pool]]:
    """Return the prior, the posterior of every pool, and what is known of its population."""
    sources, parameter, prior = _likelihoods(each, n_prior, name, line)
    population = POPULATIONS[line][name]
    parts = [pooled_distribution(source, population, parameter, line) for source in sources]
    known = [Pool.of(keys, part) for keys, part in zip(named, parts, strict=True)]
    has_spread_slope = any(pool.spread_slope is not None for pool in known)
    return replace(prior, has_spread_slope=has_spread_slope), parts, known


def _of_moments(
    each: Sequence[NoisyStatistic],
    named: Sequence[dict[str, str | int]],
    n_prior: NPrior,
    name: str,
    _line: Line,
) -> tuple[MomentsPrior, list[MomentPool], list[Pool]]:
    """Return the same of means and variances: two populations a pool."""
    parts = [moments_of_pool(cells, n_prior, name) for cells in each]
    prior = MomentsPrior(population=name, interval=(parts[0].centre, parts[0].half_range))
    known = [Pool.of_moments(keys, part) for keys, part in zip(named, parts, strict=True)]
    return prior, parts, [pool for of_pool in known for pool in of_pool]


def _of_categories(
    each: Sequence[NoisyStatistic],
    named: Sequence[dict[str, str | int]],
    n_prior: NPrior,
    name: str,
    _line: Line,
) -> tuple[DirichletPrior, list[CategoryPool], list[Pool]]:
    """Return the same of categories: one population a pool, seen from every category."""
    parts = [categories_of_pool(cells, n_prior) for cells in each]
    categories = each[0].plan.parameters.categories
    known = [Pool.of_categories(keys, part, categories) for keys, part in zip(named, parts, strict=True)]
    return DirichletPrior(name), parts, [pool for of_pool in known for pool in of_pool]


def way_of(family: Family) -> Callable[..., tuple[Any, list[Any], list[Pool]]]:
    """Return how the cells of a family are pooled, by what parameters it has."""
    if family.mean_and_variance is not None:
        return _of_moments
    return _of_one_parameter if family.latent is not None else _of_categories


def of_covariates(
    design: Design,
    places: Sequence[Cells],
    each: Sequence[NoisyStatistic],
    named: Sequence[dict[str, str | int]],
    n_prior: NPrior,
    name: str,
    line: Line,
) -> tuple[PopulationPrior, list[PooledDistribution], list[Pool]]:
    """Return the same of one parameter whose location depends on covariates."""
    sources, parameter, prior = _likelihoods(each, n_prior, name, line)
    population = POPULATIONS[line][name]
    parts: list[PooledDistribution] = [
        regression_distribution(source, population, parameter, line, design.of_pool(cells, in_sentence(keys)))
        for source, cells, keys in zip(sources, places, named, strict=True)
    ]
    known = [
        Pool.of(keys, part, design.coefficients(part, parameter))
        for keys, part in zip(named, parts, strict=True)
    ]
    return replace(prior, formula=design.formula), parts, known
