r"""What a statistic's error is expected to be, from public expectations: sampling and noise, by first order.

With :math:`m` the mean that a record adds to the components, n the records of a cell, and :math:`\theta(m)`
the parameters that exact totals :math:`n m` would give,

.. math::
    \operatorname{Var} \theta \approx \frac{I(\theta)^{-1}}{n}
        + \frac{\sigma^2}{n^2} \sum_j \left(\frac{\partial \theta}{\partial m_j}\right)^2

the first term by the Fisher information of one record, the second by noise of variance :math:`\sigma^2` on
each component. Both are read off one conjugate posterior of so many records that its prior counts for
nothing: its variance is the first, and what moving a component moves its mean by gives the second. It is of
first order in the noise: too low where the noise is as large as the totals.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import SpecError
from suffice.pipeline.ask.calibration.simulated_release import predictor_rows, unseen_cell
from suffice.pipeline.ask.inference.any_joint_prior import draw
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression, design_of
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart, project
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.spec.assumed import Assumed, parameter_entries, typical_values
from suffice.pipeline.spec.compiled_statistics import compile_statistics
from suffice.pipeline.terms.declaration.fields import QuantileEntry, RowsOf, sample_entry
from suffice.pipeline.terms.released.noisy_statistic import rows_alone, rows_plan
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan
from suffice.pipeline.terms.statistics.exponential_draws import SCORE_BITS
from suffice.pipeline.terms.statistics.measure import CodeCounts
from suffice.pipeline.terms.statistics.moment_columns import is_linear
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats

ASSUMED, RELEASED, PRIOR = "assumed", "released", "prior"
MANY = 10**15
"""Records beside which a conjugate prior of a few says nothing."""
_STEP = 1e-8
"""By which a component is moved: a part of itself, or of the largest where they may have either sign."""
WORLDS = 64
"""Draws of what is not stated, or cells of an earlier release, whose median is taken."""
_RECORDS, _RECORDS_OF_MANY = 1 << 17, 1 << 14
"""Records drawn of one world, and of each of many: means miss by .003 and .008 standard deviations."""
_LEAST_SPREAD = 10.0 * _STEP
"""Of predictors in any direction, in squared half ranges: there quotients of differences are right to 1 %."""
_ENTRIES = 1 << 22
"""Numbers that are in memory together."""
_MOST_CLIPPED = 0.5
"""Of records of typical values, those that may lie beyond the bounds."""
_SEED = 0
"""Of the records that stand for typical values, so that a plan is the same each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """What is expected of one statistic in its median cell.

    Attributes
    ----------
    statistic, parameter : str
        The parameter, or the entry of one as ``probability[UA]``, whose error counts; ``rank`` of a drawn
        quantile, or of a histogram's median, as a share of the records.
    n : float
        Records in the cell.
    trust : {"assumed", "released", "prior"}
        Where its typical values are from.
    weight : float
    sampling_sd : float
        Standard deviation of the posterior without noise, in the parameter's unit.
    cost : float
        Variance that noise adds over that of sampling, at a loss of 1; it goes as ``1 / loss^power``.
    power : float
        In epsilon 2 of noise that is added and of a drawn quantile, 1 of a sample; in rho 1 and 1/2.
    by_variance : float
        What noise of variance 1 on each component adds, over sampling, on a cone noise at a rate of 1; 0 of a
        sample.
    clipped_share : float
        Of such records, those beyond the bounds.
    world : int or None
        Which of its typical cells is the median one; None of a rank, which has none.
    """

    statistic: str
    parameter: str
    n: float
    trust: str
    weight: float
    sampling_sd: float
    cost: float
    power: float
    by_variance: float = field(repr=False)
    clipped_share: float
    world: int | None = field(default=None, repr=False)

    def added(self, plan: StatisticPlan) -> float:
        """Return the variance that a plan's noise adds over that of sampling."""
        if isinstance(plan.sample, QuantilePlan):
            spread = 2.0 * float(plan.sample.rank_scale) ** 2 / plan.sample.draws
            return spread / (self.n * self.sampling_sd) ** 2
        if isinstance(plan.sample, SamplePlan):  # the mean of its draws
            return float(plan.sample.temperature) / plan.sample.draws
        if plan.cone is not None:
            return self.by_variance / float(plan.cone.rate) ** 2
        return self.by_variance * rows_plan(plan).component_noise_sd ** 2

    def inflation(self, plan: StatisticPlan) -> float:
        """Return by how much a plan's noise widens the posterior, in standard deviations."""
        return math.sqrt(1.0 + self.added(plan))

    def sd(self, plan: StatisticPlan) -> float:
        """Return the expected standard deviation of the posterior, in the parameter's unit."""
        return self.sampling_sd * self.inflation(plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worlds:
    """Typical cells: what a record adds to each component on average, (n_worlds, n_components), and n."""

    means: Floats
    n: Floats
    trust: str
    clipped_share: float = 0.0


def expected_errors(spec: Spec, release: Release | None = None) -> tuple[ExpectedError, ...]:
    """Return what is expected of each statistic: from an earlier release where it has it, else as assumed.

    Parameters
    ----------
    spec : Spec
        What its ``assume`` does not state is drawn from default priors.
    release : Release, optional
        An earlier one, whose noisy numbers are public.

    Raises
    ------
    SpecError
        Where the number of records is neither stated nor released, or such records tell nothing.
    UsageError
        Where the release has a statistic of the same name that is another.
    """
    return tuple(expected_error(spec, name, entry, release) for name, entry in spec.statistics.items())


def expected_error(
    spec: Spec,
    name: str,
    entry: StatisticSpec,
    release: Release | None = None,
    *,
    world: int | None = None,
) -> ExpectedError:
    """Return what is expected of one statistic with this entry.

    In its median typical cell, or in a stated one: ``world`` is that of the statistic with another entry, so
    that the two are compared in the same cell.
    """
    assumed = spec.assume or Assumed()
    if isinstance(sample_entry(entry), QuantileEntry):
        return _of_quantile(assumed, name, entry, plan_of(spec, name, entry))
    cost_of_sample = _cost_of_sample(plan_of(spec, name, entry))
    plan = plan_of(spec, name, spec.bound(without_sample(entry)))
    stated = assumed.of(name)
    if is_judged_by_rank(entry) and not stated.typical and stated.counts in {None, RANK}:
        return _of_histogram(assumed, name, entry, plan)
    rows = rows_plan(plan)
    worlds = _released(name, rows, release) or _simulated(assumed, name, entry, rows)
    regular = np.flatnonzero(_are_regular(rows, worlds.means))
    if not len(regular):
        raise _untold(name, worlds)
    worlds = dataclasses.replace(worlds, means=worlds.means[regular], n=worlds.n[regular])
    sampling, noise = variances(rows, worlds.means)
    family = FAMILIES[plan.family]
    names = [
        f"{parameter}[{of}]" if of else parameter
        for parameter, entries in parameter_entries(family, plan.parameters).items()
        for of in entries or ("",)
    ]
    counts = stated.counts
    counted = [counts is None or text == counts or text.startswith(f"{counts}[") for text in names]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(sampling > 0.0, noise / sampling, np.nan)[:, counted] / worlds.n[:, None]
    ratio = np.where(np.isfinite(ratio), ratio, np.nan)
    worst = np.where(np.isnan(ratio), -np.inf, ratio).max(axis=1)
    usable = np.flatnonzero(np.isfinite(worst))
    if not len(usable) or (worlds.trust == ASSUMED and worlds.clipped_share > _MOST_CLIPPED):
        raise _untold(name, worlds)
    median = usable[np.argsort(worst[usable])[(len(usable) - 1) // 2]]
    place = median if world is None else np.searchsorted(regular, world)
    if place not in usable or (world is not None and regular[place] != world):
        raise _untold(name, worlds)
    position = np.flatnonzero(counted)[int(np.nanargmax(ratio[place]))]
    cells = plan.n_cells if family.of_release else 1
    by_variance = float(worst[place]) * cells
    if plan.cone is not None:  # its rate is epsilon by the records that a unit changes
        cost = float(plan.loss.amount / plan.cone.rate) ** 2 * by_variance
    else:
        # The variance of noise is 2 b^2, with b = Delta_1 / epsilon, or b^2 = Delta_2^2 / 2 rho.
        at_one = 2.0 * float(plan.l1_sensitivity) ** 2 if plan.l2_squared is None else float(plan.l2_squared)
        cost = at_one * (rows.scale / plan.scale) ** 2 * by_variance
    power = 2.0 if plan.l2_squared is None else 1.0
    return ExpectedError(
        statistic=name,
        parameter=names[position],
        n=float(np.median(worlds.n[usable])),
        trust=worlds.trust,
        weight=float(stated.weight),
        sampling_sd=float(np.nanmedian(np.sqrt(sampling[usable, position] / worlds.n[usable]))),
        cost=cost if cost_of_sample is None else cost_of_sample,
        power=power if cost_of_sample is None else power / 2,
        by_variance=by_variance if cost_of_sample is None else 0.0,
        clipped_share=worlds.clipped_share,
        world=int(regular[place]),
    )


def _untold(name: str, worlds: _Worlds) -> SpecError:
    if worlds.trust == RELEASED:
        rule = "the noise of the earlier release leaves no cell of which an error can be told"
        return SpecError(f"statistics.{name}", rule, "state typical values, and divide without a release")
    rule = "no error can be expected: records of such values are all alike, or lie beyond the bounds"
    return SpecError(f"assume.statistics.{name}", rule, "state typical values within the bounds")


def _are_regular(plan: StatisticPlan, means: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell in which worlds the coefficients of a regression follow from the moments, (n_worlds,).

    They do not where predictors are constant, as where all lie beyond a bound, or depend on each other: a
    matrix is singular there but for rounding, and what its inverse says is no error of a release. All worlds
    of statistics without coefficients are regular.
    """
    if FAMILIES[plan.family].prior is not NormalInverseGammaRegression:
        return np.ones(len(means), dtype=bool)
    gram = design_of(project(_cells_of_many(plan, means)), plan.parameters).gram / MANY
    return np.asarray(np.linalg.eigvalsh(gram)[:, 0] >= _LEAST_SPREAD)


def plan_of(spec: Spec, name: str, entry: StatisticSpec) -> StatisticPlan:
    """Compile one statistic, at its share of the spec."""
    shares = sum((of.share for of in spec.statistics.values()), Fraction(0))
    (plan,) = compile_statistics(spec, [(name, entry)], shares)
    return plan


RANK = "rank"
"""What counts of a drawn quantile and of a histogram: how far a rank is off, as a share of the records."""


def is_judged_by_rank(entry: StatisticSpec) -> bool:
    """Tell whether what counts is a rank unless something else is stated."""
    return entry.family == "histogram" or isinstance(sample_entry(entry), QuantileEntry)


def _of_histogram(assumed: Assumed, name: str, entry: StatisticSpec, plan: StatisticPlan) -> ExpectedError:
    r"""Return what is expected of the rank of a histogram's median.

    Half of its K bins are added up, each with noise of variance :math:`v`. Of n records that are drawn anew
    the median's rank is binomial. So, over sampling, noise adds :math:`\lceil K / 2 \rceil v / (n / 4)`,
    whatever the column is like; the width of bins is left out.
    """
    n, n_bins = _records(assumed, name, entry, plan), len(plan.components)
    by_variance = math.ceil(n_bins / 2) / (n / 4.0)
    # The variance of noise is 2 b^2, with b = Delta_1 / epsilon, or b^2 = Delta_2^2 / 2 rho.
    at_one = 2.0 * float(plan.l1_sensitivity) ** 2 if plan.l2_squared is None else float(plan.l2_squared)
    return ExpectedError(
        statistic=name,
        parameter=RANK,
        n=n,
        trust=ASSUMED,
        weight=float(assumed.of(name).weight),
        sampling_sd=math.sqrt(0.25 / n),
        cost=at_one * by_variance,
        power=2.0 if plan.l2_squared is None else 1.0,
        by_variance=by_variance,
        clipped_share=0.0,
    )


def _of_quantile(assumed: Assumed, name: str, entry: StatisticSpec, plan: StatisticPlan) -> ExpectedError:
    r"""Return what is expected of the mean of m draws of a quantile.

    Of narrow bins the rank of a draw is Laplace about the quantile's, with the rank scale :math:`\tau`. Of n
    records that are drawn anew the quantile's rank is binomial. So, over sampling, draws add

    .. math:: \frac{2 \tau^2 / m}{n q (1 - q)}, \qquad \tau = m R / \varepsilon, \qquad
              \tau = R \sqrt{m / 8 \rho}

    with R the range of a change of the rank errors, in records. The width of bins adds to neither.
    """
    if not isinstance(plan.sample, QuantilePlan):
        message = f"{name} is no drawn quantile"
        raise TypeError(message)
    n, q, draws = _records(assumed, name, entry, plan), float(plan.sample.quantile), plan.sample.draws
    largest_change = plan.sample.range_sensitivity / (plan.sample.quantile.denominator << SCORE_BITS)
    at_one = draws * largest_change**2 if plan.loss.rho is None else largest_change**2 / 8.0
    return ExpectedError(
        statistic=name,
        parameter=RANK,
        n=n,
        trust=ASSUMED,
        weight=float(assumed.of(name).weight),
        sampling_sd=math.sqrt(q * (1.0 - q) / n),
        cost=2.0 * at_one / (n * q * (1.0 - q)),
        power=2.0 if plan.loss.rho is None else 1.0,
        by_variance=0.0,
        clipped_share=0.0,
    )


def _cost_of_sample(plan: StatisticPlan) -> float | None:
    r"""Return what a sample costs: the mean of its m draws adds T / m.

    .. math:: T = m R / \varepsilon, \qquad T = R \sqrt{m / 8 \rho}

    R is the range of the scores, in nats. Where the temperature is 1 a larger loss adds nothing.
    """
    if not isinstance(plan.sample, SamplePlan):
        return None
    largest_change = plan.sample.range_sensitivity / (1 << SCORE_BITS)
    return largest_change if plan.loss.rho is None else largest_change / math.sqrt(8 * plan.sample.draws)


def without_sample(entry: StatisticSpec) -> StatisticSpec:
    """Return an entry as it would be without its sample."""
    return entry.model_copy(update={"sample": None}) if getattr(entry, "sample", None) is not None else entry


def _simulated(assumed: Assumed, name: str, entry: StatisticSpec, plan: StatisticPlan) -> _Worlds:
    """Draw records of typical values, or of values that the default prior draws."""
    family, stated = FAMILIES[plan.family], assumed.of(name)
    rng = np.random.default_rng(_SEED)
    of_predictors = family.normal_predictors is not None and not stated.predictors
    size = 1 if stated.typical and not of_predictors else WORLDS
    if stated.typical:
        values = np.array([typical_values(stated.typical, family, plan.parameters)] * size)
        truth = values[:, 0] if values.shape[1] == 1 else values
    else:
        truth = draw(family.default_prior(plan.parameters), family, plan.parameters, size, rng)
    is_counted = isinstance(family.measure(entry), CodeCounts)
    records = MANY if is_counted else _RECORDS if size == 1 else _RECORDS_OF_MANY
    further = []
    if family.normal_predictors is not None and family.default_predictor_prior is not None:
        prior = family.default_predictor_prior(plan.parameters)
        width, linear = len(plan.parameters.columns) - 1, is_linear(plan.parameters)
        drawn = family.normal_predictors(prior, width, linear)
        further = [predictor_rows(plan, list(stated.predictors)) if stated.predictors else drawn]
    if family.simulate is None:
        rule = f"{family.name} cannot be simulated"
        raise SpecError(f"assume.statistics.{name}", rule, "divide by an earlier release")
    sums = family.simulate(entry, truth, np.full(size, records), rng, *further)
    means = np.asarray(family.totals(entry, plan.design, sums.clipped), dtype=np.float64) / records
    return _Worlds(
        means=means,
        n=np.full(size, _records(assumed, name, entry, plan)),
        trust=ASSUMED if stated.typical else PRIOR,
        clipped_share=sums.n_clipped / (records * size),
    )


def _records(assumed: Assumed, name: str, entry: StatisticSpec, plan: StatisticPlan) -> float:
    """Return the records of a cell, as the statistic counts them."""
    stated = assumed.of(name).n
    if stated is not None:
        return float(stated)
    family = FAMILIES[plan.family]
    counts = "units" if entry.rows_of is RowsOf.UNITS or family.name == "rows_per_unit" else "rows"
    whole = getattr(assumed, counts)
    if whole is None:
        rule = f"the number of {counts} is not stated, on which every error depends"
        way_out = f"write assume: {{{counts}: 100000}}, those of all cells, or divide by an earlier release"
        raise SpecError(f"assume.{counts}", rule, f"{way_out}; n of statistics.{name} states a cell's")
    return float(whole) / (1 if family.of_release else plan.n_cells)


def _released(name: str, plan: StatisticPlan, release: Release | None) -> _Worlds | None:
    """Take cells of an earlier release, spread over the order of their sizes; None where it has none."""
    if release is None or name not in release or name in release.sampled:
        return None
    noisy = rows_alone(release.statistic(name))
    like = noisy.plan
    if (like.family, like.components, like.parameters, like.design, like.groups) != (
        plan.family, plan.components, plan.parameters, plan.design, plan.groups,
    ):  # fmt: skip
        rule = "the earlier release has another statistic of this name: other bounds, categories or groups"
        raise SpecError(f"statistics.{name}", rule, "state its typical values, and divide without a release")
    if FAMILIES[plan.family].of_release:
        noisy = noisy.summed()
    n = _released_records(noisy)
    cells = np.flatnonzero(n >= 1.0)
    if not len(cells):
        rule = "the noise of the earlier release leaves no cell with a record"
        raise SpecError(f"statistics.{name}", rule, "state typical values, and divide without a release")
    ordered = cells[np.argsort(n[cells], kind="stable")]
    chosen = ordered[np.unique(np.linspace(0, len(ordered) - 1, WORLDS).astype(int))]
    means = noisy.values[chosen].astype(np.float64) / n[chosen, None]
    return _Worlds(means=means, n=n[chosen], trust=RELEASED)


def _released_records(noisy: NoisyStatistic) -> Floats:
    if noisy.plan.design is Design.MINIMAL:
        return np.full(len(noisy.values), float(noisy.known_n))
    quantity = next((of for of in noisy.plan.quantities if of.name == "n"), None)
    if quantity is not None:
        return noisy.estimates(quantity)
    total = noisy.plan.partition_total or 1
    records: Floats = np.sum(noisy.values, axis=1).astype(np.float64) / total
    return records


def variances(plan: StatisticPlan, means: Floats) -> tuple[Floats, Floats]:
    r"""Return the variance by sampling for one record, and by noise of variance 1 on each component.

    On a cone the noise is that at a rate of 1, with its covariances.

    Parameters
    ----------
    plan : StatisticPlan
        Of rows alone.
    means : ndarray of float64
        What a record adds to each component on average, a row a world.

    Returns
    -------
    sampling, noise : ndarray of float64
        A row a world, a column for each entry of the parameters in order: of n records they are divided by n
        and by n squared.
    """
    is_positive = plan.design is Design.PARTITION_OF_UNITY
    reach = np.abs(means) if is_positive else np.broadcast_to(np.abs(means).max(axis=1)[:, None], means.shape)
    steps = np.maximum(np.rint(_STEP * reach * MANY), 1.0) / MANY
    sampling, noise = [], []
    for mean, step in zip(means, steps, strict=True):
        (centre,), (variance,) = _estimates(plan, mean[None, :])
        gradients = []
        rows = max(1, _ENTRIES // (2 * max(len(mean), len(centre))))
        for start in range(0, len(mean), rows):
            part = np.arange(start, min(start + rows, len(mean)))
            moves = np.zeros((len(part), len(mean)))
            moves[np.arange(len(part)), part] = step[part]
            estimates, _ = _estimates(plan, np.concatenate([mean + moves, mean - moves]))
            ahead, behind = np.split(estimates, 2)
            gradients.append((ahead - behind) / (2.0 * step[part, None]))
        sampling.append(variance * MANY)
        noise.append(_noise_variance(plan, np.concatenate(gradients)))
    return np.array(sampling), np.array(noise)


def _noise_variance(plan: StatisticPlan, gradient: Floats) -> Floats:
    """Return the variance that noise gives to numbers with this gradient, (n_components, n_numbers)."""
    if plan.cone is None:
        return np.asarray(np.sum(gradient**2, axis=0))
    at_rate_1 = dataclasses.replace(plan.cone, rate=Fraction(1)).covariance
    return np.asarray(np.einsum("ik,ij,jk->k", gradient, at_rate_1, gradient))


def _estimates(plan: StatisticPlan, means: Floats) -> tuple[Floats, Floats]:
    """Return posterior means and variances of ``MANY`` records, a row for each row of means."""
    posterior = posterior_of(_cells_of_many(plan, means), method="plug-in", prior=conjugate_prior(plan))
    of_each = [
        (posterior.mean(name).reshape(len(means), -1), posterior.sd(name).reshape(len(means), -1))
        for name in posterior.parameters
    ]
    mean, sd = (np.concatenate(part, axis=1) for part in zip(*of_each, strict=True))
    return mean, sd**2


def _cells_of_many(plan: StatisticPlan, means: Floats) -> NoisyStatistic:
    """Return exact statistics of ``MANY`` records, a cell for each row of means."""
    values = np.empty(means.shape, dtype=object)
    values[:] = [[round(number * MANY) for number in row] for row in means.tolist()]
    return dataclasses.replace(unseen_cell(plan, MANY, MANY), values=values)


def conjugate_prior(plan: StatisticPlan) -> Prior:
    """Return a conjugate prior worth a few records."""
    family: Family = FAMILIES[plan.family]
    if family.prior is NormalInverseWishart:
        return NormalInverseWishart(0.0, 1.0, len(plan.parameters.columns) + 1.0, 1.0)
    if family.prior is NormalInverseGammaRegression:
        return NormalInverseGammaRegression(0.0, 1.0, 1.0, 1.0)
    prior = family.default_prior(plan.parameters)
    component: Prior = prior.components[0] if isinstance(prior, Mixture) else prior
    return component
