"""Whether clipping matters: shares and biases against simulation, and warnings where they belong."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import PLUG_IN
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.clipping_report import THRESHOLD
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.clipped_record import normal_outside
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.statistics.measure import PowerSums
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


def plug_in_before_clipping(statistic: NoisyStatistic, **terms: Any) -> Posterior:
    """A posterior that was to be of records before clipping, and knows no model of that."""
    return dataclasses.replace(posterior_of(statistic, method="plug-in", **terms), before_clipping=True)


RECORDS = 200_000
CLIPPED: dict[str, tuple[dict[str, str], tuple[float, ...]]] = {
    "poisson": ({"upper": "5"}, (3.0,)),
    "geometric": ({"upper": "6"}, (0.3,)),
    "negative_binomial": ({"successes": "2.5", "upper": "9"}, (0.4,)),
    "exponential": ({"upper": "2"}, (0.8,)),
    "gamma": ({"shape": "2.5", "upper": "4"}, (0.9,)),
    "weibull": ({"shape": "1.7", "upper": "2"}, (0.5,)),
    "pareto": ({"minimum": "2", "upper": "9"}, (1.5,)),
    "laplace": ({"location": "1", "half_range": "4"}, (2.0,)),
    "normal": ({"lower": "-2", "upper": "3"}, (1.5, 2.25)),
    "normal_known_mean": ({"mean": "1", "half_range": "2"}, (1.5,)),
    "normal_known_variance": ({"variance": "2.25", "lower": "-2", "upper": "3"}, (1.5,)),
    "lognormal": ({"lower": "0.2", "upper": "9"}, (1.0, 1.4)),
}
"""By family: bounds, and parameters under which 2 to 25 % of records lie beyond them."""
TYPICAL: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(CLIPPED, (1.0,)),
    "poisson": (4.0,),
    "geometric": (0.66,),
    "negative_binomial": (0.66,),
    "normal": (0.3, 0.55),
    "lognormal": (0.3, 0.55),
    "normal_known_variance": (0.0,),
}
"""Parameters beside the wide bounds of the generative cases."""
Z = float(stats.norm.isf(1e-6 / (2 * 2 * len(CLIPPED) * 3)))
"""Of one check, two-sided: 1e-6 over shares and at most two moments of all families, twice over."""


def repeated(truth: tuple[float, ...], times: int) -> Floats:
    """Parameters as ``simulate`` takes them: of one number a data set, or of several."""
    return np.full(times, truth[0]) if len(truth) == 1 else np.tile(truth, (times, 1))


def moments(family: str, truth: tuple[float, ...], constants: Mapping[str, Fraction]) -> tuple[float, float]:
    """Mean of T without bounds; and the variance, of families in which it is a parameter beside the mean."""
    first = truth[0]
    shape, successes = float(constants.get("shape", 1)), float(constants.get("successes", 1))
    mean = {
        "geometric": (1 - first) / first,
        "negative_binomial": successes * (1 - first) / first,
        "exponential": 1 / first,
        "gamma": shape / first,
        "weibull": 1 / first,
        "pareto": 1 / first,
    }
    return mean.get(family, first), truth[-1]


@pytest.mark.parametrize("family", list(CLIPPED))
def test_shares_and_shifts_are_those_of_simulated_records(family: str) -> None:
    """Clipped records have the moments of unclipped ones at the parameters they are said to move to."""
    keys, truth = CLIPPED[family]
    generative_model = generative_model_for(family, n=1, method=PLUG_IN, conditions=(keys, None))
    parameters = generative_model.family.parameters(generative_model.entry)
    assert generative_model.family.outside is not None
    shares = generative_model.family.outside(*(np.array([value]) for value in truth), parameters)
    share = float(shares.share[0])
    assert 0.02 < share < 0.25
    measure = generative_model.family.measure(generative_model.entry)
    assert isinstance(measure, PowerSums)
    sizes = np.ones(RECORDS, dtype=np.int64)
    assert generative_model.family.simulate is not None
    drawn = generative_model.family.simulate(
        generative_model.entry, repeated(truth, RECORDS), sizes, np.random.default_rng()
    )
    assert abs(drawn.n_clipped / RECORDS - share) < Z * math.sqrt(share * (1 - share) / RECORDS)
    quantiser = measure.of.quantiser
    lower, upper = float(parameters.lower or 0), float(parameters.upper or 0)
    step = (upper - lower) / (quantiser.highest - quantiser.lowest)
    x = lower + step * (drawn.clipped[:, 1].astype(np.float64) - quantiser.lowest)
    there = tuple(value + float(shift[0]) for value, shift in zip(truth, shares.shifts, strict=True))
    mean, variance = moments(family, there, parameters.constants)
    without, _ = moments(family, truth, parameters.constants)
    error = x.std() / math.sqrt(RECORDS)
    assert abs(x.mean() - mean) < Z * error
    if len(truth) == 2:
        squares = (x - x.mean()) ** 2
        error = squares.std() / math.sqrt(RECORDS)
        assert abs(squares.mean() - variance) < Z * error
        assert abs(squares.mean() - truth[1]) > 3 * Z * error  # the control: without any shift
    else:
        assert abs(x.mean() - without) > 3 * Z * error  # the control: without any shift


@pytest.mark.parametrize(
    ("mean", "variance", "lower", "upper"), [(1.5, 2.25, -2.0, 1.8), (-9.0, 4.0, -8.0, 3.0)]
)
def test_clipped_normal_moments_are_integrals(
    mean: float, variance: float, lower: float, upper: float
) -> None:
    outside = normal_outside(np.array([mean]), np.array([variance]), lower, upper)
    distribution = stats.norm(mean, math.sqrt(variance))
    below, above = distribution.cdf(lower), distribution.sf(upper)
    first = distribution.expect(lb=lower, ub=upper) + lower * below + upper * above
    second = distribution.expect(np.square, lb=lower, ub=upper) + lower**2 * below + upper**2 * above
    assert outside.share[0] == pytest.approx(below + above)
    assert mean + outside.shifts[0][0] == pytest.approx(first)
    assert variance + outside.shifts[1][0] == pytest.approx(second - first**2)


def test_families_with_bounds_say_what_lies_beyond_them() -> None:
    silent = {name for name, family in FAMILIES.items() if family.outside is None}
    assert {"bernoulli", "binomial", "categorical", "contingency"} <= silent
    assert set(CLIPPED) <= set(FAMILIES) - silent


def exponential(upper: str, n: int) -> Posterior:
    """A posterior of n records whose clipped mean was 1, next to no noise, N public."""
    plan = statistic_plan(
        {"family": "exponential", "upper": upper, "nulls": {"value": "0"}}, epsilon="20", public_n=True
    )
    total = round(n / float(upper) * 2**16)
    statistic = noisy_statistic(plan, np.array([[total]], dtype=object), public_n=n)
    return plug_in_before_clipping(statistic, prior="Gamma(0.001, 0.001)")


def test_one_percent_clipped_matters_to_ten_thousand_records_and_not_to_twenty() -> None:
    """exp(-4.605) = 1 % beyond, 1 % of the mean lost: 1 sd of 10,000 records, and 0.045 of 20."""
    upper = str(math.log(100))
    many, few = exponential(upper, 10_000).clipping, exponential(upper, 20).clipping
    assert many is not None
    assert few is not None
    assert many.share == pytest.approx(0.01, rel=1e-3)
    assert many.bias == pytest.approx(1.0, rel=0.02)
    assert many.is_warned.tolist() == [True]
    assert few.bias == pytest.approx(0.045, rel=0.05)
    assert few.is_warned.tolist() == [False]


def test_intervals_cover_where_there_is_no_warning_and_not_where_there_is() -> None:
    """1,500 data sets of 10,000 records whose rates have the prior, 1 % clipped on average over it.

    Without a warning intervals cover 94.3 % or more; an alarm of chance below 1e-6. The control: where
    there is one they do not cover nearly as much, so an estimate that warns at random fails.
    """
    rng = np.random.default_rng()
    upper, n = 8 * (100 ** (1 / 8) - 1), 10_000  # the mean of exp(-rate upper) under Gamma(8, 8) is 1 %
    rates = rng.gamma(8, 1 / 8, 1500)
    means = np.array([np.minimum(rng.standard_exponential(n) / rate, upper).mean() for rate in rates])
    plan = statistic_plan(
        {"family": "exponential", "upper": f"{upper:.9f}", "nulls": {"value": "0"}},
        epsilon="1",
        public_n=True,
    )
    totals = np.array([[round(n * mean / upper * 2**16)] for mean in means], dtype=object)
    posterior = plug_in_before_clipping(noisy_statistic(plan, totals, public_n=n), prior="Gamma(8, 8)")
    assert posterior.clipping is not None
    warned = posterior.clipping.is_warned
    low, high = posterior.credible_interval("rate").T
    held = (low < rates) & (rates < high)
    assert 0.3 < warned.mean() < 0.65
    assert stats.binom.cdf(held[~warned].sum(), (~warned).sum(), 0.943) > 1e-6
    assert stats.binom.cdf(held[warned].sum(), warned.sum(), 0.9) < 1e-6


def test_the_threshold_is_where_an_interval_covers_94_percent() -> None:
    covered = stats.norm.cdf(1.96 - THRESHOLD) - stats.norm.cdf(-1.96 - THRESHOLD)
    assert covered == pytest.approx(0.943, abs=5e-4)


@pytest.mark.parametrize("family", list(CLIPPED))
def test_wide_bounds_are_no_alarm(family: str) -> None:
    """Under these parameters less than one record in 10^12 is beyond the bounds: a thousand never warn."""
    generative_model = generative_model_for(family, n=1000, method=PLUG_IN)
    assert generative_model.family.simulate is not None
    sums = generative_model.family.simulate(
        generative_model.entry, repeated(TYPICAL[family], 1), np.array([1000]), np.random.default_rng(7)
    )
    totals = generative_model.family.totals(
        generative_model.entry, generative_model.plan.design, sums.clipped
    )
    statistic, prior = noisy_statistic(generative_model.plan, totals), FAMILIES[family].generative_case.prior
    posteriors = [plug_in_before_clipping(statistic, prior=prior)]
    if family not in UNCLIPPED:
        terms: dict[str, Any] = {"prior": prior, "n_prior": Uniform(0, 2000)}
        posteriors.append(posterior_of(statistic, clipping="modelled", **terms))
    for posterior in posteriors:
        assert posterior.clipping is not None
        assert posterior.clipping.share < 1e-9
        assert not posterior.clipping.is_warned.any()


@pytest.mark.parametrize("family", list(CLIPPED))
def test_any_released_values_give_a_share(family: str) -> None:
    """No records, all at either bound, impossible sums, more than there can be: never an error."""
    generative_model = generative_model_for(
        family, n=1, method=PLUG_IN, conditions=(CLIPPED[family][0], None)
    )
    scale = generative_model.plan.partition_total or 1
    width = len(generative_model.plan.components)
    rows = [[0] * width, [-(10**9) * scale] * width, [10**12 * scale] * width]
    rows += [[10**9 * scale * (point == position) for point in range(width)] for position in range(width)]
    report = plug_in_before_clipping(
        noisy_statistic(generative_model.plan, np.array(rows, dtype=object))
    ).clipping
    assert report is not None
    assert np.all((report.share >= 0.0) & (report.share <= 1.0))
    assert not np.isnan(report.bias).any()


def test_a_prior_beyond_the_bounds_warns() -> None:
    plan = statistic_plan({"family": "exponential", "upper": "1"}, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.zeros((1, 2), dtype=object))
    report = plug_in_before_clipping(statistic, prior="Gamma(1, 1e30)").clipping
    assert report is not None
    assert (report.share[0], report.bias[0], report.is_warned[0]) == (1.0, math.inf, True)


def test_what_has_no_mean_is_no_number_and_no_warning() -> None:
    laplace = {"family": "laplace", "location": "0", "half_range": "4"}
    plan = statistic_plan(laplace, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.zeros((1, 2), dtype=object))
    report = plug_in_before_clipping(statistic, prior="InverseGamma(0.5, 1)").clipping
    assert report is not None
    assert (math.isnan(report.share[0]), math.isnan(report.bias[0]), report.is_warned[0]) == (
        True,
        True,
        False,
    )
    report = plug_in_before_clipping(statistic, prior="InverseGamma(1.5, 1)").clipping
    assert report is not None
    assert report.share[0] > 0.0
    assert report.bias[0] == 0.0


UNCLIPPED = [
    name
    for name, family in FAMILIES.items()
    if family.clipped_record is None and family.mean_and_variance is None and family.noise_aware is not None
]


@pytest.mark.slow
@pytest.mark.parametrize("name", UNCLIPPED)
def test_clipping_is_not_modelled_where_there_is_no_model_of_it(name: str) -> None:
    plan = generative_model_for(name, n=60).plan
    statistic = noisy_statistic(plan, np.full((1, len(plan.components)), 40))
    with pytest.raises(UsageError, match="there is no model of clipped records; leave clipping out"):
        posterior_of(statistic, clipping="modelled")
