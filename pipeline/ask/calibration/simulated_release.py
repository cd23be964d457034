"""The generative model of a released statistic: how its data, sums and noise come about, for simulations.

Predictors of simulated regressions follow their prior, stated distributions, or rows that are public.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference.any_joint_prior import draw
from suffice.pipeline.ask.inference.bounded_records import can_be_of_bounded
from suffice.pipeline.ask.inference.chosen_priors import predictor_prior_for
from suffice.pipeline.ask.inference.model import Model
from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, MODELLED, NOISE_AWARE, PosteriorTerms
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.ask.posterior.choice_of_engine import inferred, posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.by_name import named_distribution
from suffice.pipeline.math.priors.coefficients import NonConjugate
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform, parse_n_prior
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic, rows_alone
from suffice.pipeline.terms.statistics.measure import CodeCounts
from suffice.pipeline.terms.statistics.moment_columns import is_linear
from suffice.pipeline.terms.statistics.sensitivity import Design
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.density import ScipyDistribution
    from suffice.pipeline.math.priors.mixtures import Mixture
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Counts, Floats

    AnyPredictors: TypeAlias = (
        str | ScipyDistribution | Sequence[str | ScipyDistribution] | Mapping[str, Any] | None
    )


ROWS_FROM = (".csv", ".parquet")
"""Endings of files that hold public rows."""
_FARTHEST, _LOOKED_AT = 1000.0, 1000
"""Half ranges from the middle of a column's bounds that predictors may lie off, and rows that are looked at.

Where sums without clipping do not fit what a release can hold, nothing can be said of them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorRows:
    """Predictors of simulated rows, the same world for every data set.

    Attributes
    ----------
    name : str
        What they are, for outputs.
    draw : callable
        How many rows, a generator -> predictors, (n_rows, n_predictors).
    """

    name: str
    draw: Callable[[int, np.random.Generator], Floats] = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def __call__(self, _n_data_sets: int, rng: np.random.Generator) -> Callable[[Counts], Floats]:
        """Return what draws the predictors of rows, given the data set of each."""
        return lambda data_set: self.draw(len(data_set), rng)


def predictor_rows(plan: StatisticPlan, given: AnyPredictors) -> PredictorRows:
    """Read what predictors are like.

    Parameters
    ----------
    plan : StatisticPlan
        Of a regression.
    given : str, distribution of scipy.stats, sequence of them, or mapping
        Texts such as ``Normal(0, 1)`` or frozen univariate distributions, one for all predictors or one each
        in their order; or public rows: the name of a .csv or .parquet file with a column for every predictor,
        or such columns by name. Rows are drawn from these with replacement.

    Raises
    ------
    UsageError
        Where a column is missing, not of finite numbers, or far outside of its bounds.
    PriorError
        Where a distribution cannot be read, or they are neither one nor as many as predictors.
    """
    names = [column.name for column in plan.parameters.columns[:-1]]
    if isinstance(given, Mapping):
        return _resampled(plan, names, given, "given rows")
    if isinstance(given, str) and given.lower().endswith(ROWS_FROM):
        return _resampled(plan, names, _columns_of(given, names), f"rows of {Path(given).name}")
    each = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if len(each) not in {1, len(names)}:
        message = (
            f"{plan.name} has {len(names)} predictors: give one distribution for all or one each, "
            f"not {len(each)}"
        )
        raise PriorError(message)
    named = [_distribution(predictor) for predictor in each] * (len(names) if len(each) == 1 else 1)
    texts = [text for text, _ in named]

    def draw(rows: int, rng: np.random.Generator) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is out of reach
            return np.column_stack([distribution.rvs(rows, random_state=rng) for _, distribution in named])

    _require_within_reach(plan, draw(_LOOKED_AT, np.random.default_rng(0)))
    return PredictorRows(name=", ".join(texts[: len(each)]), draw=draw)


def _distribution(given: object) -> tuple[str, Any]:
    if isinstance(given, str):
        return named_distribution(given)
    density = None if isinstance(given, Density) else Density.of(given)
    if density is None:
        message = (
            "predictors are drawn from a distribution by its name, as Normal(0, 1), a frozen one of "
            f"scipy.stats, or public rows, not {given!r}"
        )
        raise PriorError(message)
    return density.name, given


def _columns_of(path: str, names: list[str]) -> dict[str, Any]:
    """Read columns of a public file."""
    import pyarrow as pa  # rarely needed
    import pyarrow.csv
    import pyarrow.parquet

    if "://" in path:  # which may hold a password, so that it is not repeated
        message = (
            "predictors: an address is not read: give a local .csv or .parquet file, or columns in Python"
        )
        raise UsageError(message)
    try:
        with Path(path).open("rb") as file:
            read = pyarrow.csv.read_csv if path.lower().endswith(".csv") else pyarrow.parquet.read_table
            table = read(file)
        names_present = table.column_names
    except (OSError, ValueError, pa.ArrowException):  # ValueErrors are of NUL, and of names that are no UTF-8
        message = f"predictors: {path} cannot be read as the file that its ending says"
        raise UsageError(message) from None
    repeated = [name for name in names if names_present.count(name) > 1]
    if repeated:
        message = f"predictors: {path} has more than one column {repeated[0]!r}"
        raise UsageError(message)
    return {name: table.column(name).to_pylist() for name in names if name in names_present}


def _require_within_reach(plan: StatisticPlan, rows: Floats) -> None:
    """Refuse predictors so far outside of their bounds that the bounds were not meant for them."""
    for column, values in zip(plan.parameters.columns[:-1], rows.T, strict=True):
        lower, upper = float(column.lower), float(column.upper)
        if not (np.abs(values - (lower + upper) / 2) <= _FARTHEST * (upper - lower) / 2).all():
            message = (
                f"predictors: those for {column.name} lie more than {_FARTHEST:.0f} half ranges off the "
                "middle of its bounds: state them in the column's unit"
            )
            raise UsageError(message)


def _resampled(plan: StatisticPlan, names: list[str], columns: Mapping[str, Any], text: str) -> PredictorRows:
    missing = [name for name in names if name not in columns]
    if missing:
        message = f"predictors: {text} have no column {missing[0]!r}, a predictor of {plan.name}"
        raise UsageError(message)
    try:
        rows = np.column_stack([np.asarray(columns[name], dtype=np.float64) for name in names])
    except (TypeError, ValueError):
        rows = np.empty((0, len(names)))
    if not len(rows) or not np.isfinite(rows).all():
        message = f"predictors: {text} must be finite numbers, at least one row, in columns of one length"
        raise UsageError(message)
    _require_within_reach(plan, rows)
    return PredictorRows(
        name=f"{len(rows)} {text}", draw=lambda count, rng: rows[rng.integers(0, len(rows), count)]
    )


_REDRAWN = 1000
"""Times that parameters outside of what bounded records can have are drawn again."""
MOST_RECORDS = 10**10
"""Records that a simulation may have to draw one by one."""

_FELT = 1e-6
"""Share of a parameter by which clipping must move it to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeModel:
    """How data sets and their noisy sums come about, and how their posteriors are computed.

    Attributes
    ----------
    entry : StatisticSpec
        The statistic's entry in the spec.
    plan : StatisticPlan
        What the posterior believes of the components and their noise.
    scale : float
        Of the noise that is simulated; that of the plan but for experiments.
    public_n : int or None
        The number of records, where it is public.
    max_total_rows, cells_summed : int
        As in ``NoisyStatistic``.
    method : str
        Of the posterior.
    prior : Prior, Mixture, Density, Independent or JointDensity
        The truth is drawn from it, and the posterior starts from it.
    n_prior : NPrior
        The number of records is drawn from it.
    believed_n_prior : NPrior or None
        What the posterior believes of N; None where it has no use for a prior of N.
    clipping : str
        Whether the posterior models clipping, where it can.
    predictor_prior : Prior or None
        What the posterior believes of a regression's predictors; None of other families.
    predictors : PredictorRows or None
        What they are drawn from; None: from their prior.
    """

    entry: StatisticSpec
    plan: StatisticPlan
    scale: float
    public_n: int | None
    max_total_rows: int
    method: str
    prior: Prior | Mixture | NonConjugate
    n_prior: NPrior
    believed_n_prior: NPrior | None
    clipping: str = BY_EVIDENCE
    predictor_prior: Prior | None = None
    predictors: PredictorRows | None = None
    cells_summed: int = 1

    @property
    def terms(self) -> PosteriorTerms:
        """The terms of the posterior of what is simulated."""
        is_noise_aware = self.method == NOISE_AWARE
        return PosteriorTerms(
            prior=self.prior,
            n_prior=self.believed_n_prior,
            method=self.method,
            clipping=self.clipping,
            predictor_prior=self.predictor_prior if is_noise_aware else None,
        )

    @property
    def family(self) -> Family:
        """The statistic's family."""
        return FAMILIES[self.plan.family]

    def truth(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw parameters from the prior, a row a data set: as far as the posterior takes them for possible.

        Raises
        ------
        UsageError
            Where hardly any of the prior can be of records within the bounds.
        """
        truth = draw(self.prior, self.family, self.plan.parameters, size, rng)
        if not self.is_of_bounded_records:
            return truth
        for _ in range(_REDRAWN):
            outside = ~can_be_of_bounded(truth.reshape(len(truth), -1).T, self.plan)
            if not np.any(outside):
                return truth
            number = int(np.count_nonzero(outside))
            truth[outside] = draw(self.prior, self.family, self.plan.parameters, number, rng)
        message = (
            f"prior {self.prior}: hardly any of it can be of records within the bounds of "
            f"{self.plan.name}: give a prior closer to what is possible, or judge clipping modelled"
        )
        raise UsageError(message)

    @property
    def is_of_bounded_records(self) -> bool:
        """Whether the posterior is of records as the bounds leave them, and its prior restricted to these."""
        is_modelled = self.clipping == MODELLED and self.family.models_clipping
        return self.method == NOISE_AWARE and not is_modelled

    def judged(self, truth: Floats) -> Floats:
        """Return what a posterior of clipped records is asked for.

        The parameters themselves where clipping is modelled; else those of records as the bounds leave
        them: what posteriors of ever more of these tend to.
        """
        outside = self.family.outside
        if outside is None or not self.is_of_bounded_records:
            return truth
        columns = truth.reshape(len(truth), -1).T
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shifts = outside(*columns, self.plan.parameters).shifts
        # A millionth is less than any posterior resolves, but would take a truth off a point of its prior.
        felt = np.isfinite(shifts) & (np.abs(shifts) > _FELT * np.abs(columns))
        moved = columns + np.where(felt, shifts, 0.0)
        return moved.T.reshape(truth.shape)

    def sizes(self, size: int, rng: np.random.Generator) -> Counts:
        """Draw numbers of records from their prior, as far as the posterior believes them possible."""
        drawn = self.n_prior.sample(size, rng)
        least = 0 if self.believed_n_prior is None else self.family.least_rows(self.plan.parameters)
        while np.any(few := drawn < least):
            drawn[few] = self.n_prior.sample(int(np.count_nonzero(few)), rng)
        return drawn

    @property
    def is_slow(self) -> bool:
        """Whether every posterior takes a good part of a second.

        By MCMC, or by quadrature: of two parameters, of a density, or of a sum of noises.
        """
        is_clipped = self.clipping == MODELLED and self.family.mean_and_variance is not None
        by_quadrature = isinstance(self.prior, NonConjugate) or is_clipped or self.cells_summed > 1
        return self.method == NOISE_AWARE and (by_quadrature or self.family.by_mcmc(self.plan.parameters))

    def sums(self, truth: Floats, sizes: Counts, rng: np.random.Generator) -> SimulatedSums:
        """Draw data sets with these parameters and numbers of records, and sum them.

        Raises
        ------
        UsageError
            Where no data of the family can be simulated.
        """
        if self.family.simulate is None:
            raise _not_simulated(self.plan)
        if self.predictor_prior is None or self.family.normal_predictors is None:
            return self.family.simulate(self.entry, truth, sizes, rng)
        constants = self.plan.parameters
        world = self.predictors or self.family.normal_predictors(
            self.predictor_prior, len(constants.columns) - 1, is_linear(constants)
        )
        return self.family.simulate(self.entry, truth, sizes, rng, world)

    def noise(self, size: int, rng: np.random.Generator) -> Counts:
        """Draw noise for the components of so many data sets, (size, n_components)."""
        if self.plan.cone is not None:
            return simulated_noise(self.plan, (size,), rng, self.cells_summed)
        return discrete_laplace(self.scale, (size, len(self.plan.components)), rng, self.cells_summed)

    def posterior(self, sums: NDArray[np.object_], noise: Counts) -> Posterior:
        """Return the posterior of exact sums behind noise."""
        return inferred(self.noisy(sums, noise), self.terms)

    def noisy(self, sums: NDArray[np.object_], noise: Counts) -> NoisyStatistic:
        """Return exact sums with noise on their components, as a release states them."""
        totals = self.family.totals(self.entry, self.plan.design, sums)
        return NoisyStatistic(
            plan=self.plan,
            values=np.clip(totals + noise.astype(object), *self.plan.value_limits),
            groups={},
            public_n=self.public_n,
            max_total_rows=self.max_total_rows,
            cells_summed=self.cells_summed,
        )


def unseen_cell(plan: StatisticPlan, n: int, max_total_rows: int, cells_summed: int = 1) -> NoisyStatistic:
    """Return a cell of which nothing was released: zeros, and `n` records where their number is public."""
    return NoisyStatistic(
        plan=plan,
        values=np.zeros((1, len(plan.components)), dtype=np.int64).astype(object),
        groups={},
        public_n=n if plan.design is Design.MINIMAL else None,
        max_total_rows=max_total_rows,
        cells_summed=cells_summed,
    )


def generative_model_of(
    statistic: NoisyStatistic,
    entry: Mapping[str, Any],
    method: str = NOISE_AWARE,
    prior: AnyPrior = None,
    n_prior: NPrior | int | str | None = None,
    predictor_prior: Prior | str | None = None,
    predictors: AnyPredictors = None,
) -> GenerativeModel:
    """Return the generative model of a released statistic, from its plan and its entry in the canonical plan.

    Raises
    ------
    UsageError, PriorError
        Where no data of the family can be simulated, or the method or a prior does not fit.
    """
    # Records are simulated one by one, as if each were a unit.
    statistic = cells_of(rows_alone(statistic), None)
    plan = statistic.plan
    family = FAMILIES[plan.family]
    if family.simulate is None:
        raise _not_simulated(plan)
    spec = Model.of(statistic, entry).entry
    if family.block(spec, plan.design is Design.MINIMAL).components != plan.components:
        message = f"{plan.name} was released with other components by another version: it cannot be simulated"
        raise UsageError(message)
    if predictors is not None and family.normal_predictors is None:
        message = f"{plan.name} is {plan.family}, which has no predictors: leave predictors out"
        raise UsageError(message)
    world = None if predictors is None else predictor_rows(plan, predictors)
    drawn_from = _n_prior(statistic, n_prior)
    believed = None if plan.design is Design.MINIMAL or method != NOISE_AWARE else drawn_from
    cell = dataclasses.replace(
        statistic,
        values=statistic.values[:1],
        groups={column: keys[:1] for column, keys in statistic.groups.items()},
    )
    # The posterior of a real cell: what is wrong with the method or the prior is said before any simulation.
    posterior = posterior_of(
        cell, method=method, prior=prior, n_prior=believed, predictor_prior=predictor_prior
    )
    return GenerativeModel(
        entry=spec,
        plan=plan,
        scale=plan.scale,
        public_n=statistic.public_n,
        max_total_rows=statistic.max_total_rows,
        cells_summed=statistic.cells_summed,
        method=method,
        prior=posterior.prior,
        n_prior=drawn_from,
        believed_n_prior=believed,
        predictor_prior=predictor_prior_for(statistic, predictor_prior),
        predictors=world,
    )


def require_drawable(generative_model: GenerativeModel, n_records: int) -> None:
    """Refuse more than ``MOST_RECORDS`` records, unless they are drawn as counts, and name the ways out."""
    if n_records > MOST_RECORDS and not isinstance(
        generative_model.family.measure(generative_model.entry), CodeCounts
    ):
        message = (
            f"{n_records} records would have to be drawn, more than {MOST_RECORDS}: ask for fewer "
            "simulations or fewer records each"
        )
        raise UsageError(message)


def require_positive(name: str, value: object) -> None:
    """Refuse what is no integer above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        message = f"{name} must be an integer above 0, not {value!r}"
        raise UsageError(message)


def noisy_sizes(statistic: NoisyStatistic) -> Floats:
    """Return the noisy numbers of records of cells.

    Raises
    ------
    UsageError
        Where the statistic does not tell the number of records.
    """
    plan = statistic.plan
    quantity = next((quantity for quantity in plan.quantities if quantity.name == "n"), None)
    if quantity is not None:
        return statistic.estimates(quantity)
    if plan.partition_total is not None:
        return np.asarray(np.sum(statistic.values, axis=1).astype(np.float64) / plan.partition_total)
    message = f"{plan.name} does not tell the number of records: give a prior of N"
    raise UsageError(message)


def default_n_prior(statistic: NoisyStatistic) -> Uniform:
    """Return the uniform prior on ``0..2 N0``, N0 the median noisy number of records, at least 1."""
    n = float(np.median(noisy_sizes(statistic)))
    return Uniform(0, 2 * max(1, round(n)))


def _not_simulated(plan: StatisticPlan) -> UsageError:
    message = f"{plan.name} is {plan.family}, of which no data can be simulated yet"
    return UsageError(message)


def _n_prior(statistic: NoisyStatistic, n_prior: NPrior | int | str | None) -> NPrior:
    if statistic.plan.design is Design.MINIMAL:
        if n_prior is not None:
            message = f"N is public in this release ({statistic.public_n}): leave the prior of N out"
            raise UsageError(message)
        return Fixed(statistic.known_n)
    if n_prior is None:
        return default_n_prior(statistic)
    if isinstance(n_prior, str):
        return parse_n_prior(n_prior)
    return n_prior if isinstance(n_prior, Reciprocal | Uniform | Fixed) else Fixed(n_prior)
