"""What a family says of itself: everything that other rooms and the tests ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.terms.statistics.measure import FirstRow, UnitMean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.clipped_record import ClippedRecord, Outside
    from suffice.pipeline.families.shared.parameter_space import (
        ParameterSpace,
        SampledParameter,
        SampledQuantile,
    )
    from suffice.pipeline.families.shared.smoothness import Smooth
    from suffice.pipeline.math.distributions.distribution import Distribution, Prior
    from suffice.pipeline.math.distributions.regions import Region
    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.pipeline.terms.statistics.measure import Measure
    from suffice.pipeline.terms.statistics.moment_columns import NormalSums
    from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, NeighboringRelation
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums


class ColumnType(StrEnum):
    """What a column of an example holds."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A small statistic, as a spec states it.

    Parameters
    ----------
    entry : dict
        The entry without ``family``; numbers are text, as YAML gives them.
    columns : dict of str to ColumnType
        The columns that it reads, and what they hold.
    """

    entry: Mapping[str, Any]
    columns: Mapping[str, ColumnType]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeCase:
    """A statistic and a prior under which fewer than one record in 10^5 is clipped.

    Posteriors are calibrated in it: clipping decides nothing there. The predictors of a regression are the
    exception; their prior is as wide as their bounds.

    Parameters
    ----------
    entry : dict
        The entry without ``family``, as in ``Example``.
    prior : str or None
        The prior that parameters are drawn from, as text; None for the default prior.
    """

    entry: Mapping[str, Any]
    prior: str | None = None


PredictorWorld: TypeAlias = (
    "Callable[[int, np.random.Generator], Callable[[NDArray[np.int64]], NDArray[np.float64]]]"
)
"""The number of data sets, a generator -> the data set of each row -> its predictors, a row each."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Stands for what a family does not have, and says why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAndVariance:
    """What posteriors under any prior of a mean and a variance take of a family.

    Parameters
    ----------
    interval : callable
        The constants -> centre and half range, in the column's unit.
    project : callable
        The noisy statistic -> possible sums that are nearest to it, taken for exact by the plug-in.
    noisy : callable
        The noisy statistic, a conjugate prior, the prior of N -> the noisy sums, as their engine takes them.
    """

    interval: Callable[[Constants], tuple[float, float]]
    project: Callable[[NoisyStatistic], NormalSums]
    noisy: Callable[[NoisyStatistic, Any, NPrior], NoisyMoments]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitMoments:
    """What a family releases of units beside their rows, where its entry says ``within_unit: true``.

    Parameters
    ----------
    components : tuple of str
        Names of the squares of a unit's first part, twice the product, and the squares of its last part.
    totals : callable
        The spec's entry, exact sums of products (n_cells, 3) as ``UnitProducts`` has them, Python integers ->
        exact totals of those components, of the same shape.
    """

    components: tuple[str, str, str]
    totals: Callable[[Any, NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfUnits:
    """What a family sums with ``rows_of: units``, where each unit counts once and as much as a record.

    Parameters
    ----------
    measure : callable
        What is summed of rows -> what is summed of units.
    sentence, sentence_in_cells : str
        What the parameters are then of: without groups, and with them.
    """

    measure: Callable[[Any], Measure]
    sentence: str
    sentence_in_cells: str


ONE_ROW_A_UNIT = OfUnits(
    measure=lambda rows: FirstRow(of=rows),
    sentence="of units: one row of each unit, chosen by hash",
    sentence_in_cells="of units: one row of each unit, chosen by hash, in its cell",
)
UNIT_MEANS = OfUnits(
    measure=lambda rows: UnitMean(of=rows),
    sentence="of units: the mean of each unit's rows; the variance is that of these means",
    sentence_in_cells=(
        "of units: the mean of each unit's rows in one cell; the variance is that of these means"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One exponential family: what is released of it, and its posteriors.

    `docs/contributing/a-family.md` adds one, step by step.

    Parameters
    ----------
    name : str
        As written in a spec.
    spec : type of StatisticSpec
        The model of its entry in a spec.
    measure : callable
        The spec's entry -> what a pass over the data computes.
    block : callable
        The spec's entry, whether N is public -> the components released.
    totals : callable
        The spec's entry, the block's design, exact sums of shape (n_cells, n_sums), Python integers ->
        exact totals of shape (n_cells, n_components), Python integers.
    parameters : callable
        The spec's entry -> the constants of its posterior.
    prior : type
        Its conjugate prior.
    spread_prior : type or None
        One with latent scales, where the family takes it as well.
    default_predictor_prior : callable or None
        The constants -> the prior of its predictors' mean and covariance; None where it has no predictors.
    normal_predictors : callable or None
        A prior of predictors, how many there are, whether there is an intercept -> a world of predictors.
    default_prior : callable
        The constants -> a prior that rests on them alone, a mixture perhaps.
    plug_in : callable
        The noisy statistic, a prior -> the conjugate update that takes the projected statistic for exact.
    log_likelihood : callable
        The posterior's parameters in order, exact or projected sums, the constants -> the log likelihood
        but for what does not depend on the parameters; arrays broadcast.
    noise_aware : callable or None
        The noisy statistic, a prior, the prior of N -> the exact posterior given all its observations; None
        where there is none yet. Where there is a ``mean_and_variance`` the prior may be a mixture.
    simulate : callable or None
        The spec's entry, draws of the prior with one row a data set, its numbers of records, a generator ->
        the exact sums of data sets that the model draws; None where no data can be simulated yet. Where there
        are predictors, a world that they are drawn from may follow.
    parameter_spaces : callable
        The constants -> its parameters in the order of its likelihood, as models of one's own give them.
    jax_likelihood : callable or Absent
        The noisy statistic, the prior of N, the parameters as JAX arrays by name, latent numbers, then the
        prior of predictors where there are any -> the log likelihood of every cell, (n_cells,), but for a
        constant; traced by JAX.
    n_latent : callable
        The constants -> how many latent numbers of every cell that likelihood takes: standard normal ones
        over which it is a mean; 0 where everything latent is summed or integrated.
    smoothness : Smooth
        How much one record can change its likelihood.
    example : Example
        A small statistic of this family.
    generative_case : GenerativeCase
        A statistic and a prior under which its posterior can be calibrated.
    latent : callable or None
        The noisy statistic, a prior, the prior of N -> the latent sums, and what N and S make of the prior;
        of families with one parameter, None of the others.
    truth : callable
        The prior, the constants, how many, a generator -> draws of the prior, a row each, as ``simulate``
        takes them: the posterior's parameters in order, each with all its entries.
    least_rows : callable
        The constants -> the fewest rows that the noise-aware posterior believes possible.
    by_mcmc : callable
        The constants -> whether the noise-aware posterior takes MCMC.
    takes_mixtures : bool
        Whether mixtures of its conjugate prior are taken though it has no ``latent`` sums.
    predicts : bool
        Whether new rows depend on nothing but its parameters.
    disjoint : callable or None
        Noisy statistics of data sets that share their parameters, a prior, the priors of N -> the posterior
        given all of them, where it is no product of the posteriors of each; None elsewhere. Where there are
        predictors, their prior may follow.
    adds_up : bool
        Whether disjoint data are pooled by adding up what was released of them.
    outside : callable or None
        Parameters in order, each (n_cells,), and the constants -> the share of the model's records beyond
        the bounds, and where clipping them moves the parameters; None where nothing is clipped, or where
        it is not worked out.
    clipping_bounds : callable or None
        The spec's entry -> the values of the column below and above which clipping moves a record, to the
        lowest and the highest lattice value; None where records beyond bounds are not counted.
    clipped_record : ClippedRecord or None
        The chances of one record's values once it is clipped, of families with one sum; None where posteriors
        do not model its clipping.
    limits : callable or None
        The constants -> the least and the largest value that its one parameter can have where each record's T
        is within its bounds: the mean of T is. None where every value can be.
    region : callable or None
        The constants -> the region that its parameters lie in where every record is within its bounds, of
        several columns; None of others.
    mean_and_variance : MeanAndVariance or None
        Where the parameters are a mean and a variance: what posteriors under any prior of both take.
    unit_moments : UnitMoments or None
        What it releases of units beside their rows; None where it has no such form.
    of_units : OfUnits or None
        What it sums with ``rows_of: units``; None where it does not take that.
    of_whole_units : callable or None
        The spec's entry -> what its parameters are of, where it takes all rows of a unit by its nature, and
        so needs a column unit.
    of_release : bool
        Whether its parameters are of the whole release: posteriors sum all cells.
    refused_under : callable
        The spec's entry under a column unit -> the rule that it breaks there, None where it breaks none.
    sampled : SampledParameter or None
        Its one parameter, where draws of a posterior on a grid can be released instead of noisy components.
    sampled_quantile : SampledQuantile or None
        Where draws of a quantile can be released instead of noisy components; None elsewhere.
    interval : {"central", "highest-density"}
        The kind of its posteriors' intervals where none is asked for.
    cone_error : callable or None
        The spec's entry, whether N may be public, the neighbouring relation -> the expected squared error of
        what relates its columns under noise on a cone, over that under Laplace noise; None where noise is on
        no cone.
    relates : str
        What that is of, in words: ``coefficient``, ``correlation``.
    mean : str
        The column's mean in its parameters and constants, as text, where it is none of them; else empty.
    n_categories : callable
        The spec's entry -> how many declared categories it counts in every cell; 1 where it counts none.
    tables : callable
        The spec's entry -> the tables that it counts.
    labels : callable
        The constants -> how the entries along the last axis of parameters are called, by name; nothing
        where parameters are one number a cell.
    """

    name: str
    spec: type[StatisticSpec]
    measure: Callable[[Any], Measure]
    block: Callable[[Any, bool], Block]
    totals: Callable[[Any, Design, NDArray[Any]], NDArray[Any]]
    parameters: Callable[[Any], Constants]
    prior: type[Prior]
    default_prior: Callable[[Constants], Any]
    plug_in: Callable[[NoisyStatistic, Any], Distribution]
    log_likelihood: Callable[..., NDArray[np.float64]]
    noise_aware: Callable[[NoisyStatistic, Any, NPrior], Distribution] | None
    simulate: Callable[..., SimulatedSums] | None
    parameter_spaces: Callable[[Constants], tuple[ParameterSpace, ...]]
    jax_likelihood: Callable[..., Any] | Absent
    n_latent: Callable[[Constants], int] = field(default=lambda _parameters: 0)
    smoothness: Smooth
    example: Example
    generative_case: GenerativeCase
    latent: (
        Callable[
            [NoisyStatistic, Any, NPrior],
            tuple[NoisySums, Callable[[NDArray[np.float64], NDArray[np.float64]], Distribution]],
        ]
        | None
    ) = None
    truth: Callable[[Any, Constants, int, np.random.Generator], NDArray[np.float64]] = field(
        default=lambda prior, _parameters, size, rng: prior.sample(size, rng)
    )
    least_rows: Callable[[Constants], int] = field(default=lambda _parameters: 0)
    by_mcmc: Callable[[Constants], bool] = field(default=lambda _parameters: False)
    spread_prior: type[Prior] | None = None
    default_predictor_prior: Callable[[Constants], Prior] | None = None
    normal_predictors: Callable[[Any, int, bool], PredictorWorld] | None = None
    takes_mixtures: bool = False
    predicts: bool = True
    disjoint: Callable[..., Distribution] | None = None
    adds_up: bool = False
    outside: Callable[..., Outside] | None = None
    clipping_bounds: Callable[[Any], tuple[Fraction, Fraction]] | None = None
    clipped_record: ClippedRecord | None = None
    limits: Callable[[Constants], tuple[float, float]] | None = None
    region: Callable[[Constants], Region] | None = None
    mean_and_variance: MeanAndVariance | None = None
    unit_moments: UnitMoments | None = None
    of_units: OfUnits | None = None
    of_whole_units: Callable[[Any], str] | None = None
    of_release: bool = False
    refused_under: Callable[[Any], str | None] = field(default=lambda _spec: None)
    sampled: SampledParameter | None = None
    sampled_quantile: SampledQuantile | None = None
    cone_error: Callable[[Any, bool, NeighboringRelation], Fraction] | None = None
    relates: str = ""
    interval: str = CENTRAL
    mean: str = ""
    n_categories: Callable[[Any], int] = field(default=lambda _spec: 1)
    tables: Callable[[Any], tuple[CountTable, ...]] = field(default=lambda _spec: ())
    labels: Callable[[Constants], Mapping[str, tuple[str | None, ...]]] = field(
        default=lambda _parameters: {}
    )

    @property
    def needs_unit(self) -> bool:
        """Whether it takes all rows of a unit by its nature, and so needs a column unit."""
        return self.of_whole_units is not None

    @property
    def drawn(self) -> SampledParameter | SampledQuantile | None:
        """What can be drawn instead of noisy components, and by which sums; None where nothing can."""
        return self.sampled or self.sampled_quantile

    @property
    def models_clipping(self) -> bool:
        """Whether noise-aware posteriors take records for clipped, wherever that matters."""
        return self.clipped_record is not None or self.mean_and_variance is not None

    def parameter_names(self, parameters: Constants) -> tuple[str, ...]:
        """Return the names of its parameters, in the order of its likelihood."""
        return tuple(space.name for space in self.parameter_spaces(parameters))
