"""The scalar families: estimates, plug-in posteriors and likelihoods against sums over rows and scipy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from suffice.errors import SpecError
from suffice.pipeline.ask.inference.chosen_priors import default_prior
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES, NO_SUMS
from suffice.pipeline.families.shared.one_sum import OneSum, project
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.mixtures import SpreadGamma, SpreadInverseGamma, SpreadScale
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.moment_columns import NormalSums
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


@dataclass(frozen=True)
class Case:
    """A family, rows of it within its bounds, and what statisticians know of it."""

    entry: dict[str, Any]
    draw: Callable[[np.random.Generator], np.ndarray]
    statistic: Callable[[np.ndarray], np.ndarray]
    log_density: Callable[[np.ndarray, float], np.ndarray]
    parameter: str
    values: tuple[float, float]
    prior: Prior
    default: Prior | SpreadScale
    posterior: Callable[[float, float], Any]
    """From n and the total to scipy's distribution, under `prior`."""


N = 400
CASES: dict[str, Case] = {
    "binomial": Case(
        {"trials": "9"},
        lambda rng: rng.binomial(9, 0.3, N).astype(float),
        lambda x: x,
        lambda x, p: stats.binom.logpmf(x, 9, p),
        "probability",
        (0.2, 0.7),
        Beta(2, 3),
        Beta(1, 1),
        lambda n, t: stats.beta(2 + t, 3 + 9 * n - t),
    ),
    "geometric": Case(
        {"upper": "200"},
        lambda rng: rng.geometric(0.3, N) - 1.0,
        lambda x: x,
        lambda x, p: stats.geom.logpmf(x, p, loc=-1),
        "probability",
        (0.2, 0.7),
        Beta(2, 3),
        Beta(1, 1),
        lambda n, t: stats.beta(2 + n, 3 + t),
    ),
    "negative_binomial": Case(
        {"successes": "2.5", "upper": "400"},
        lambda rng: rng.negative_binomial(2.5, 0.3, N).astype(float),
        lambda x: x,
        lambda x, p: stats.nbinom.logpmf(x, 2.5, p),
        "probability",
        (0.2, 0.7),
        Beta(2, 3),
        Beta(1, 1),
        lambda n, t: stats.beta(2 + 2.5 * n, 3 + t),
    ),
    "poisson": Case(
        {"upper": "100"},
        lambda rng: rng.poisson(4, N).astype(float),
        lambda x: x,
        stats.poisson.logpmf,
        "rate",
        (2.0, 5.0),
        Gamma(2, 3),
        Gamma(1, 0.02),
        lambda n, t: stats.gamma(2 + t, scale=1 / (3 + n)),
    ),
    "exponential": Case(
        {"upper": "100"},
        lambda rng: rng.exponential(2.0, N),
        lambda x: x,
        lambda x, r: stats.expon.logpdf(x, scale=1 / r),
        "rate",
        (0.2, 0.7),
        Gamma(2, 3),
        SpreadGamma(100),
        lambda n, t: stats.gamma(2 + n, scale=1 / (3 + t)),
    ),
    "gamma": Case(
        {"shape": "2.5", "upper": "100"},
        lambda rng: rng.gamma(2.5, 2.0, N),
        lambda x: x,
        lambda x, r: stats.gamma.logpdf(x, 2.5, scale=1 / r),
        "rate",
        (0.2, 0.7),
        Gamma(2, 3),
        SpreadGamma(40),
        lambda n, t: stats.gamma(2 + 2.5 * n, scale=1 / (3 + t)),
    ),
    "weibull": Case(
        {"shape": "1.7", "upper": "40"},
        lambda rng: 3 * rng.weibull(1.7, N),
        lambda x: x**1.7,
        lambda x, r: stats.weibull_min.logpdf(x, 1.7, scale=r ** (-1 / 1.7)),
        "rate",
        (0.1, 0.4),
        Gamma(2, 3),
        SpreadGamma(40**1.7),
        lambda n, t: stats.gamma(2 + n, scale=1 / (3 + t)),
    ),
    "pareto": Case(
        {"minimum": "2", "upper": "1e9"},
        lambda rng: 2 * (1 + rng.pareto(3.0, N)),
        lambda x: np.log(x / 2),
        lambda x, a: stats.pareto.logpdf(x, a, scale=2),
        "shape",
        (1.5, 4.0),
        Gamma(2, 3),
        SpreadGamma(float(np.log(1e9 / 2))),
        lambda n, t: stats.gamma(2 + n, scale=1 / (3 + t)),
    ),
    "laplace": Case(
        {"location": "-3", "half_range": "50"},
        lambda rng: rng.laplace(-3, 2, N),
        lambda x: np.abs(x + 3),
        lambda x, b: stats.laplace.logpdf(x, -3, b),
        "scale",
        (1.5, 4.0),
        InverseGamma(2.5, 3),
        SpreadInverseGamma(50),
        lambda n, t: stats.invgamma(2.5 + n, scale=3 + t),
    ),
    "normal_known_mean": Case(
        {"mean": "5", "half_range": "20"},
        lambda rng: rng.normal(5, 3, N),
        lambda x: (x - 5) ** 2,
        lambda x, v: stats.norm.logpdf(x, 5, np.sqrt(v)),
        "variance",
        (4.0, 11.0),
        InverseGamma(2.5, 3),
        SpreadInverseGamma(400),
        lambda n, t: stats.invgamma(2.5 + n / 2, scale=3 + t / 2),
    ),
    "normal_known_variance": Case(
        {"variance": "9", "lower": "-10", "upper": "40"},
        lambda rng: rng.normal(12, 3, N),
        lambda x: x,
        lambda x, m: stats.norm.logpdf(x, m, 3),
        "mean",
        (11.0, 13.5),
        Normal(2, 0.5),
        Normal(15, 12.5),
        lambda n, t: stats.norm((2 / 0.25 + t / 9) / (4 + n / 9), 1 / np.sqrt(4 + n / 9)),
    ),
}


def plan_of(family: str, *, public_n: bool = False) -> StatisticPlan:
    entry = {"family": family, **CASES[family].entry}
    if family not in {"binomial", "geometric", "negative_binomial", "poisson"}:
        entry["lattice_bits"] = "24"
    return statistic_plan(entry, epsilon="0.5", public_n=public_n)


def released(family: str, n: float, total: float, *, public_n: bool = False) -> NoisyStatistic:
    """A statistic whose components, rounded to integers, say this n and total."""
    plan = plan_of(family, public_n=public_n)
    lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)
    if public_n:
        lowest = -(2**24) if family == "normal_known_variance" else 0
        step = (upper - lower) / plan.l1_sensitivity
        return noisy_statistic(
            plan, np.array([[round((total - lower * n) / step + lowest * n)]]), public_n=int(n)
        )
    first = (total - lower * n) / (upper - lower) * (plan.partition_total or 0)
    second = (upper * n - total) / (upper - lower) * (plan.partition_total or 0)
    return noisy_statistic(plan, np.array([[round(first), round(second)]]))


def test_every_case_is_of_a_family_with_one_sum() -> None:
    """Families without a case here are checked against themselves by the contract's suite."""
    assert {"binomial", "exponential", "normal_known_variance"} <= set(CASES)
    assert all(FAMILIES[family].latent for family in CASES)


@pytest.mark.parametrize("public_n", [False, True])
@pytest.mark.parametrize("family", CASES)
def test_the_plug_in_posterior_is_the_closed_form(family: str, public_n: bool) -> None:
    case = CASES[family]
    total = float(np.sum(case.statistic(case.draw(np.random.default_rng(7)))))
    statistic = released(family, N, total, public_n=public_n)
    assert statistic.quantity("n")[0][0] == pytest.approx(N, rel=1e-6)
    assert statistic.quantity("total")[0][0] == pytest.approx(total, rel=1e-5)
    posterior = posterior_of(statistic, prior=case.prior, method="plug-in")
    distribution = case.posterior(N, total)
    assert posterior.parameters == (case.parameter,)
    assert posterior.mean(case.parameter)[0] == pytest.approx(distribution.mean(), rel=1e-4)
    assert posterior.sd(case.parameter)[0] == pytest.approx(distribution.std(), rel=1e-4)
    for q in (0.01, 0.5, 0.9):
        assert posterior.quantile(case.parameter, q)[0] == pytest.approx(distribution.ppf(q), rel=1e-4)
    # Dvoretzky, Kiefer, Wolfowitz with a false alarm of 4e-9: 9e-8 for all.
    drawn = np.sort(posterior.sample(20_000)[case.parameter][:, 0])
    assert np.max(np.abs(distribution.cdf(drawn) - np.arange(20_000) / 20_000)) < np.sqrt(20 / 40_000) + 2e-3


@pytest.mark.parametrize("family", CASES)
def test_the_log_likelihood_is_that_of_the_rows(family: str) -> None:
    """But for what does not depend on the parameter; over arrays of both cells and parameters.

    Differences may be near 0, and both are sums of thousands: errors were 1.4e-12 at most in 4,400 cells.
    """
    case = CASES[family]
    rng = np.random.default_rng(7)
    cells = [case.draw(rng), case.draw(rng)[:100]]
    sums = OneSum(
        n=np.array([float(len(rows)) for rows in cells]),
        total=np.array([np.sum(case.statistic(rows)) for rows in cells]),
    )
    constants = plan_of(family).parameters
    first, second = case.values
    likelihood = FAMILIES[family].log_likelihood(np.array([[first], [second]]), sums, constants)
    assert likelihood.shape == (2, 2)
    for cell, rows in enumerate(cells):
        expected = np.sum(case.log_density(rows, first)) - np.sum(case.log_density(rows, second))
        assert likelihood[0, cell] - likelihood[1, cell] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_log_likelihoods_of_the_other_families_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(7)
    counts = np.array([[30.0, 70.0]])
    bernoulli = FAMILIES["bernoulli"].log_likelihood(np.array([0.3]), counts, None)
    assert bernoulli[0] == pytest.approx(70 * np.log(0.3) + 30 * np.log(0.7))
    categorical = FAMILIES["categorical"].log_likelihood(np.array([[0.7, 0.3]]), counts, None)
    assert categorical[0] == pytest.approx(bernoulli[0])
    x = rng.normal(3, 2, N)
    z = (x - 1) / 8
    sums = NormalSums(
        n=np.array([float(N)]),
        total=np.array([z.sum()]),
        total_of_squares=np.array([np.sum(z * z)]),
        centre=1.0,
        half_range=8.0,
    )
    pairs = np.array([[3.0, 4.0], [2.0, 5.0]])
    normal = FAMILIES["normal"].log_likelihood(pairs[:, :1], pairs[:, 1:], sums, None)
    density = [np.sum(stats.norm.logpdf(x, mean, np.sqrt(variance))) for mean, variance in pairs]
    assert normal[0, 0] - normal[1, 0] == pytest.approx(density[0] - density[1], rel=1e-9, abs=1e-9)
    assert FAMILIES["lognormal"].log_likelihood is FAMILIES["normal"].log_likelihood


@pytest.mark.parametrize("family", CASES)
def test_sums_are_made_possible_and_default_priors_are_public(family: str) -> None:
    plan = plan_of(family)
    lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)
    total = plan.partition_total or 0
    rows = np.array([[-3, -4], [-total, 11 * total], [11 * total, -total]], dtype=object)
    sums = project(noisy_statistic(plan, rows))
    assert sums.n == pytest.approx([0, 10, 10])
    assert sums.total == pytest.approx([0, 10 * lower, 10 * upper])
    statistic = noisy_statistic(plan, rows[:1])
    prior = default_prior(statistic)
    expected = CASES[family].default
    assert type(prior) is type(expected)
    names = ["upper"] if isinstance(expected, SpreadScale) else [field.name for field in fields(expected)]
    for name in names:
        assert getattr(prior, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    empty, given = posterior_of(statistic, method="plug-in"), CASES[family].prior
    assert np.isfinite(empty.credible_interval(CASES[family].parameter)).all()
    assert posterior_of(statistic, prior=given, method="plug-in").prior == given
    aware = unrestricted_posterior(statistic)
    assert aware.prior == prior
    assert 0.0 < aware.sd(CASES[family].parameter)[0] <= np.inf


def test_lognormal_is_normal_on_logarithms() -> None:
    bounds = {"lower": "0.5", "upper": "90"}
    plan = statistic_plan({"family": "lognormal", **bounds}, epsilon="0.5", public_n=False)
    steps = 2**16
    low, high = np.log(0.5), np.log(90)
    y = np.random.default_rng(7).uniform(low, high, N)
    lattice = np.rint((y - (low + high) / 2) / ((high - low) / 2) * steps).astype(int)
    row = [
        int(np.sum(each))
        for each in ((steps - lattice) ** 2, 2 * (steps**2 - lattice**2), (steps + lattice) ** 2)
    ]
    statistic = noisy_statistic(plan, np.array([row], dtype=object))
    assert statistic.quantity("n")[0][0] == N
    assert statistic.quantity("total")[0][0] == pytest.approx(y.sum(), rel=1e-4)
    assert statistic.quantity("total_of_squares")[0][0] == pytest.approx(np.sum(y * y), rel=1e-4)
    prior = NormalInverseGamma(1, 2, 3, 4)
    posterior = posterior_of(statistic, prior=prior, method="plug-in")
    loc = (2 * 1 + y.sum()) / (2 + N)
    scale = 4 + (np.sum((y - y.mean()) ** 2) + 2 * N * (y.mean() - 1) ** 2 / (2 + N)) / 2
    assert posterior.parameters == ("log_mean", "log_variance")
    assert posterior.mean("log_mean")[0] == pytest.approx(loc, rel=1e-4)
    assert posterior.mean("log_variance")[0] == pytest.approx(scale / (2 + N / 2), rel=1e-4)
    # Within six errors: 2e-9 each of three.
    draws = posterior.sample(4000)
    assert draws["log_mean"].mean() == pytest.approx(loc, abs=6 * posterior.sd("log_mean")[0] / np.sqrt(4000))
    for parameter in posterior.parameters:
        below = np.mean(draws[parameter] < posterior.quantile(parameter, 0.3)[0])
        assert below == pytest.approx(0.3, abs=6 * np.sqrt(0.21 / 4000))


@pytest.mark.parametrize("family", [*CASES, "lognormal"])
def test_a_null_counts_as_the_stated_value_of_the_column(family: str) -> None:
    entry = CASES[family].entry if family in CASES else {"lower": "0.5", "upper": "90"}
    spec = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "x"},
            "privacy": {"epsilon": "1", "neighboring": "replace_one"},
            "statistics": {"s": {"family": family, "column": "x", "nulls": {"value": "3"}, **entry}},
        }
    )
    job = chunk_job(spec)

    def sums(values: list[float | None]) -> list[int]:
        batch = pa.record_batch({"x": pa.array(values, pa.float64(), from_pandas=False)})
        exact: list[list[int]] = to_python(sum_batches([batch], job))["s"].tolist()
        return exact[0]

    assert sums([3.0]) != sums([8.0])
    assert sums([None, float("nan"), 8.0]) == sums([3.0, 3.0, 8.0])


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ({"family": "uniform", "lower": 0, "upper": 1}, "no exponential family: .* not sums"),
        ({"family": "pareto", "upper": 5}, "needs its public minimum: .*smallest value"),
        ({"family": "pareto", "minimum": 5, "upper": 5}, "minimum must be below upper"),
        ({"family": "pareto", "minimum": 5, "upper": "5.000001"}, "too close to minimum"),
        ({"family": "lognormal", "lower": 0, "upper": 5}, "above 0"),
        ({"family": "lognormal", "lower": 6, "upper": 5}, "lower must be below upper"),
        ({"family": "lognormal", "lower": 5, "upper": "5.000001"}, "too narrow"),
        ({"family": "weibull", "shape": 200, "upper": 1000}, "too large or too small"),
        ({"family": "gamma", "shape": 0, "upper": 1}, "above 0"),
        ({"family": "exponential", "upper": -1}, "above 0"),
        ({"family": "exponential", "upper": 1, "lattice_bits": 25}, r"2\.\.24"),
        ({"family": "binomial", "trials": 0}, r"1\.\.1000000000"),
        ({"family": "negative_binomial", "successes": 0, "upper": 3}, "above 0"),
        ({"family": "normal_known_variance", "variance": 0, "lower": 0, "upper": 1}, "above 0"),
        ({"family": "normal_known_variance", "variance": 1, "lower": 2, "upper": 1}, "lower must be below"),
        ({"family": "laplace", "location": "1e20", "half_range": 1}, "too narrow"),
        ({"family": "normal_known_mean", "mean": "1e20", "half_range": 1}, "too narrow"),
    ],
)
def test_what_makes_no_sense_is_refused(entry: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as caught:
        load_spec(
            {
                "name": "n",
                "dataset": "d",
                "source": {"parquet": "x"},
                "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
                "statistics": {"s": {"column": "x", **entry}},
            }
        )
    assert caught.value.exit_status == 2
    assert "statistics.s" in str(caught.value)
    assert not set(NO_SUMS) & set(FAMILIES)
