r"""A posterior sample beside the Laplace release, at equal loss: whose estimates err less, without data.

Both mechanisms answer for the same simulated data sets. The one adds discrete Laplace noise to exact sums,
and the posterior is worked out from those; the other releases draws of

.. math:: P(g) \propto \pi_g \exp(\log L(\theta_g) / T)

over the points of a public grid, T the temperature that the sample's range and loss make. Samples are
simulated from exact sums here: that protects nobody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from suffice.errors import UsageError, bounded_message
from suffice.pipeline.ask.calibration.simulated_release import (
    MOST_RECORDS,
    generative_model_of,
    require_drawable,
    require_positive,
    unseen_cell,
)
from suffice.pipeline.ask.inference.chosen_priors import n_prior_for
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.parameter_space import Support
from suffice.pipeline.math.parameters.arguments import generator
from suffice.pipeline.math.priors.mixtures import log_prior_on_points
from suffice.pipeline.spec.compiled_statistics import score_tables
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.documents import Count, Measured, Method, printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.fields import SampleEntry, canonical, sample_entry
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.statistics.sample_plan import TABLE_BITS, SamplePlan
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.families.shared.parameter_space import ParameterSpace
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanError:
    """A mean absolute error over simulated data sets.

    Attributes
    ----------
    value : float
        In the parameter's unit; not finite where a posterior has no mean.
    standard_error : float
        Its Monte Carlo error.
    """

    value: Measured
    standard_error: Measured

    @classmethod
    def of(cls, errors: Floats) -> Self:
        """Average the absolute errors of so many data sets, at least two."""
        spread = float(errors.std(ddof=1)) / math.sqrt(len(errors))
        return cls(value=float(errors.mean()), standard_error=spread)

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.standard_error:.2g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedErrors:
    """Errors of both mechanisms with one number of records.

    Attributes
    ----------
    n : int
        Records in a cell.
    laplace_mean, laplace_draw : MeanError
        Of the Laplace posterior's mean, and of one draw of that posterior.
    sample_draw, sample_mean : MeanError
        Of one draw of the sample, and of the mean of its draws.
    """

    n: Count
    laplace_mean: MeanError
    laplace_draw: MeanError
    sample_draw: MeanError
    sample_mean: MeanError


_ERRORS = {
    "laplace_mean": "Laplace, mean",
    "laplace_draw": "Laplace, one draw",
    "sample_draw": "sample, one draw",
    "sample_mean": "sample, mean of draws",
}


@printed(
    "statistic parameter truth epsilon?=loss.epsilon rho?=loss.rho method prior n_prior=prior_of_n draws "
    "temperature within simulations errors"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorComparison:
    """One statistic by either mechanism, at equal loss; made by ``beside_sample``.

    Attributes
    ----------
    statistic, parameter : str
    truth : float
        The parameter that data were drawn with, in its unit.
    loss : PrivacyLoss
        The statistic's part, which either costs.
    method : str
        Of the Laplace posterior.
    prior : str
        Both start from it: the Laplace posterior as it is, the sample on its grid.
    n_prior : str
        Of a private N, as the Laplace posterior believes it; empty where it has no use for one.
    draws : int
        Of the sample.
    temperature : float, >= 1
        Of the sample.
    within : tuple of Fraction
        The ends of the sample's grid: a truth beyond them is never drawn.
    simulations : int
        Data sets of each size.
    errors : tuple of ComparedErrors
        One for each number of records, as asked for.
    """

    statistic: str
    parameter: str
    truth: float
    loss: PrivacyLoss
    method: Method
    prior: str
    n_prior: str
    draws: Count
    temperature: float
    within: tuple[Fraction, Fraction]
    simulations: Count
    errors: tuple[ComparedErrors, ...]

    @property
    def prior_of_n(self) -> str | None:
        """The prior of N; None where the posterior has no use for one."""
        return self.n_prior or None

    def __str__(self) -> str:
        rows = [[str(errors.n), *(str(getattr(errors, name)) for name in _ERRORS)] for errors in self.errors]
        lower, upper = self.within
        beyond = (
            ""
            if float(lower) <= self.truth <= float(upper)
            else f"this truth lies beyond the sample's {format_number(lower)}..{format_number(upper)}: it is "
            "never drawn\n"
        )
        believed = f", N: {self.n_prior}" if self.n_prior else ""
        return (
            f"{self.statistic}: {self.parameter} {self.truth:g}, prior {self.prior}, "
            f"{self.loss} either way\n"
            f"Laplace posterior: {self.method}{believed}; sample: draws {self.draws}, temperature "
            f"{self.temperature:.6g}\n{beyond}"
            f"mean absolute error (its standard error), {self.simulations} simulations\n\n"
            + text_table(["n", *_ERRORS.values()], rows)
        )


_ENTRIES = 1 << 22
"""Probabilities of grid points that are in memory together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleLaw:
    """What draws of a posterior sample follow, given exact sums.

    Attributes
    ----------
    prior : str
    points : ndarray of shape (n_points,), float64
        Of the grid, in the parameter's unit.
    log_prior, slopes, offsets : ndarray of shape (n_points,), float64
        Log prior weights, and what a lattice unit of T adds to the log likelihood and a record takes off.
    temperature : float, >= 1
    draws : int, > 0
    """

    prior: str
    points: Floats
    log_prior: Floats
    slopes: Floats
    offsets: Floats
    temperature: float
    draws: int

    @classmethod
    def of(cls, plan: StatisticPlan, entry: StatisticSpec) -> SampleLaw:
        """Return the law of a sampled statistic, its tables in float64."""
        stated, sample = sample_entry(entry), plan.sample
        if not isinstance(stated, SampleEntry) or not isinstance(sample, SamplePlan):
            message = f"{plan.name} states no sample"
            raise ValueError(message)  # noqa: TRY004 - it says of what it is
        tables = score_tables(entry, stated)
        unit = float(1 << TABLE_BITS)
        values = sample.values()
        return cls(
            prior=sample.prior,
            points=values,
            log_prior=log_prior_on_points(sample.prior, values),
            slopes=np.array([slope / unit for slope in tables.slopes]),
            offsets=np.array([offset / unit for offset in tables.offsets]),
            temperature=float(sample.temperature),
            draws=sample.draws,
        )

    def sample(self, n: Floats, total: Floats, rng: np.random.Generator) -> Floats:
        """Draw the samples of data sets with so many records and lattice units, (n_data_sets, draws)."""
        rows = max(1, _ENTRIES // len(self.points))
        parts = [self._sample(n[at : at + rows], total[at : at + rows], rng) for at in range(0, len(n), rows)]
        return np.concatenate(parts)

    def _sample(self, n: Floats, total: Floats, rng: np.random.Generator) -> Floats:
        log_likelihood = total[:, None] * self.slopes - n[:, None] * self.offsets
        log_weights = self.log_prior + log_likelihood / self.temperature
        below = np.cumsum(np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), axis=1)
        heights = rng.random((len(below), self.draws)) * below[:, -1:]
        drawn = [
            np.searchsorted(row, height, side="right") for row, height in zip(below, heights, strict=True)
        ]
        points: Floats = self.points[np.minimum(drawn, len(self.points) - 1)]
        return points


SIMULATIONS = 1000
SLOW_SIMULATIONS = 100
"""Where the prior is a density, and a posterior takes some tenths of a second."""


def beside_sample(
    spec: Spec,
    *,
    n: Sequence[int],
    truth: float | Mapping[str, float],
    method: str = NOISE_AWARE,
    n_prior: NPrior | int | str | None = None,
    simulations: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ErrorComparison, ...]:
    """Compare a posterior sample with a Laplace release, for each statistic that states a sample.

    Of each simulated data set: the absolute error of the Laplace posterior's mean, of one draw of it, of one
    draw of the sample, and of the mean of the sample's draws. Both start from the prior that the sample
    states, and each costs the statistic's whole part of the loss. No data are read and nothing is spent.

    Parameters
    ----------
    spec : Spec
        With ``sample`` on one statistic or more; the others are left out.
    n : sequence of int, each > 0
        Records in a cell.
    truth : float or mapping
        The parameter that data are drawn with; by statistic where there are several.
    method : {"noise-aware", "plug-in"}
        Of the Laplace posterior.
    n_prior : optional
        What a noise-aware posterior believes of a private N; its default otherwise.
    simulations : int, > 1, optional
        Data sets of each size; by default ``SIMULATIONS``, or ``SLOW_SIMULATIONS`` under a density.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.
    progress : callable, optional
        Told how many sizes are done, of how many.

    Returns
    -------
    tuple of ErrorComparison
        In declared order.

    Raises
    ------
    UsageError, PriorError
        Where no statistic states a sample, or a truth is missing, unknown or impossible.
    """
    source = generator(rng)
    if simulations is not None:
        require_positive("simulations", simulations)
        if simulations == 1:
            message = "simulations: one alone has no standard error: ask for 2 or more"
            raise UsageError(message)
    for size in n:
        require_positive("n", size)
        if size > MOST_RECORDS:
            message = f"n {size}: at most {MOST_RECORDS} records are simulated in a cell"
            raise UsageError(bounded_message(message))
    if not n:
        message = "n: name one number of records or more"
        raise UsageError(message)
    compiled = compile_plan(spec).statistics
    sampled = [
        (statistic, statistic.sample) for statistic in compiled if isinstance(statistic.sample, SamplePlan)
    ]
    truths = _truths([statistic for statistic, _ in sampled], truth)
    comparisons: list[ErrorComparison] = []
    total = len(n) * len(sampled)
    for statistic, sample in sampled:
        entry = spec.statistics[statistic.name]
        law, true_parameter, errors = SampleLaw.of(statistic, entry), truths[statistic.name], []
        for size in n:
            model = _laplace_release(spec, statistic.name, law.prior, size, method, n_prior)
            repeats = simulations or (SLOW_SIMULATIONS if model.is_slow else SIMULATIONS)
            errors.append(compared_errors(model, law, true_parameter, size, repeats, source))
            if progress is not None:
                progress(len(comparisons) * len(n) + len(errors), total)
        comparisons.append(
            ErrorComparison(
                statistic=statistic.name,
                parameter=_space(model).name,
                truth=true_parameter,
                loss=model.plan.loss,
                method=method,
                prior=str(model.prior),
                n_prior="" if model.believed_n_prior is None else str(model.believed_n_prior),
                draws=law.draws,
                temperature=law.temperature,
                within=sample.within,
                simulations=repeats,
                errors=tuple(errors),
            )
        )
    return tuple(comparisons)


def compared_errors(
    model: GenerativeModel, law: SampleLaw, truth: float, n: int, repeats: int, rng: np.random.Generator
) -> ComparedErrors:
    """Simulate so many data sets of `n` records with this truth, and both releases of each.

    The model is that of the statistic as it would be without its sample: sums with Laplace noise.
    """
    require_drawable(model, n * repeats)
    sums = model.sums(np.full(repeats, truth), np.full(repeats, n, dtype=np.int64), rng).clipped
    posterior = model.posterior(sums, model.noise(repeats, rng))
    sample = law.sample(*_records_and_total(model, sums), rng)

    def error(estimates: Floats) -> MeanError:
        return MeanError.of(np.abs(estimates - truth))

    parameter = _space(model).name
    return ComparedErrors(
        n=n,
        laplace_mean=error(posterior.mean(parameter)),
        laplace_draw=error(posterior.sample(1, rng)[parameter][0]),
        sample_draw=error(sample[:, 0]),
        sample_mean=error(sample.mean(axis=1)),
    )


def _laplace_release(
    spec: Spec, name: str, prior: str, n: int, method: str, n_prior: NPrior | int | str | None
) -> GenerativeModel:
    """Return the generative model of a statistic as it would be without its sample."""
    entry = spec.bound(spec.statistics[name].model_copy(update={"sample": None}))
    alone = spec.model_copy(update={"statistics": {**spec.statistics, name: entry}})
    (plan,) = (each for each in compile_plan(alone).statistics if each.name == name)
    cell = unseen_cell(plan, n, spec.max_total_rows)
    believed = n_prior if plan.design is Design.MINIMAL else n_prior_for(cell, n_prior)
    return generative_model_of(cell, cast("dict[str, Any]", canonical(entry)), method, prior, believed)


def _records_and_total(model: GenerativeModel, sums: NDArray[np.object_]) -> tuple[Floats, Floats]:
    """Return the records of each data set, and their sum of T from its lower bound in lattice units."""
    sampled = model.family.sampled
    if sampled is None:
        message = f"{model.plan.family} has no sample"
        raise ValueError(message)
    n, total = np.asarray(sampled.totals(model.entry, sums), dtype=np.float64).T
    return n, total


def _space(model: GenerativeModel) -> ParameterSpace:
    (space,) = model.family.parameter_spaces(model.plan.parameters)
    return space


def _truths(sampled: Sequence[StatisticPlan], truth: float | Mapping[str, float]) -> dict[str, float]:
    """Return the truth of each statistic that states a sample; refuse missing and impossible ones."""
    names = [statistic.name for statistic in sampled]
    if not names:
        message = (
            "no statistic of the spec states a sample, so there is nothing to compare: give one a sample, "
            "as sample: {draws: 1, within: [0.005, 0.5], grid: 1025}"
        )
        raise UsageError(message)
    given = dict(truth) if isinstance(truth, Mapping) else dict.fromkeys(names, truth)
    if len(names) > 1 and not isinstance(truth, Mapping):
        message = f"truth: several statistics state a sample, so give each its own: {', '.join(names)}"
        raise UsageError(message)
    if given.keys() != set(names):
        message = (
            f"truth: the statistics that state a sample are {', '.join(names)}: give one for each of them"
        )
        raise UsageError(message)
    for statistic in sampled:
        _require_possible(statistic, given[statistic.name])
    return given


_RANGES = {
    Support.REAL: (-math.inf, math.inf, "a number"),
    Support.POSITIVE: (0.0, math.inf, "above 0"),
    Support.PROBABILITY: (0.0, 1.0, "between 0 and 1"),
}


def _require_possible(statistic: StatisticPlan, truth: float) -> None:
    (space,) = FAMILIES[statistic.family].parameter_spaces(statistic.parameters)
    least, most, words = _RANGES[space.support]
    if isinstance(truth, bool) or not least < truth < most:
        message = f"truth {truth!r}: the {space.name} of {statistic.name} is {words}"
        raise UsageError(message)
