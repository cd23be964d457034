"""Likelihoods of one parameter: against sums over N and S, their stated error, and today's posteriors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference.any_prior import LINES
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.likelihood import Likelihood, likelihood_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from support.noisy import noisy_statistic, statistic_plan
from support.published import make_release
from support.unrestricted import free

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

ENTRIES: dict[str, dict[str, Any]] = {
    "bernoulli": {},
    "binomial": {"trials": "3"},
    "poisson": {"upper": "6"},
    "geometric": {"upper": "8"},
    "negative_binomial": {"upper": "8", "successes": "2"},
    "exponential": {"upper": "8"},
    "gamma": {"upper": "8", "shape": "2"},
    "weibull": {"upper": "8", "shape": "2"},
    "pareto": {"minimum": "1", "upper": "50"},
    "laplace": {"location": "-3", "half_range": "8"},
    "normal_known_mean": {"mean": "5", "half_range": "4"},
    "normal_known_variance": {"variance": "4", "lower": "-2", "upper": "10"},
}
REACH = {"bernoulli": 1, "binomial": 3, "poisson": 6, "geometric": 8}
SUMS: dict[str, Callable[[Floats, int, Floats], Floats]] = {
    "bernoulli": lambda s, n, p: np.asarray(stats.binom.logpmf(s, n, p)),
    "binomial": lambda s, n, p: np.asarray(stats.binom.logpmf(s, 3 * n, p)),
    "poisson": lambda s, n, rate: np.asarray(stats.poisson.logpmf(s, n * rate)),
    "geometric": lambda s, n, p: np.asarray(stats.nbinom.logpmf(s, n, p)),
}


def released(
    family: str, shares: list[list[float]], *, epsilon: str = "0.8", public_n: int | None = None
) -> NoisyStatistic:
    """Noisy components in multiples of one record's share."""
    plan = statistic_plan(
        {"family": family, **ENTRIES[family]}, epsilon=epsilon, public_n=public_n is not None
    )
    reach = 1 if family == "bernoulli" else plan.partition_total or round(plan.l1_sensitivity)
    values = np.rint(np.array(shares) * reach).astype(np.int64)
    return noisy_statistic(plan, values[:, -len(plan.components) :], public_n=public_n)


def asked(statistic: NoisyStatistic, n_prior: NPrior | None = None) -> Likelihood:
    """Its likelihood, worked out anew."""
    answer = likelihood_of(statistic, n_prior, lambda posterior: posterior, uuid4().hex)
    assert isinstance(answer, Likelihood)
    return answer


def enumerated(
    statistic: NoisyStatistic,
    n_prior: NPrior,
    theta: Floats,
    *,
    cell: int = 0,
    wider: float = 1.0,
    components: int = 2,
) -> Floats:
    """The sum over N and S, term by term; by `wider` noise, or of fewer components, it is a mutant."""
    family, scale = statistic.plan.family, statistic.plan.scale * wider
    values = statistic.values[cell].astype(np.float64)[:components]
    if family == "bernoulli":
        values = values[::-1]
    terms = []
    for n in range(n_prior.support[0], n_prior.support[1] + 1):
        total = np.arange(1500.0) if n else np.zeros(1)
        log_sum = SUMS[family](total, n, theta[:, None]) if n else np.zeros((len(theta), 1))
        noise = np.abs(values[0] - total)
        if len(values) == 2:
            noise = noise + np.abs(values[1] - (REACH[family] * n - total))
        log_n = n_prior.log_prob(np.array([float(n)]))[0]
        terms.append(np.logaddexp.reduce(log_sum - noise / scale + log_n, axis=1))
    return np.asarray(np.logaddexp.reduce(terms, axis=0))


def held_out(likelihood: Likelihood, size: int = 40) -> Floats:
    """Random parameters over all of the first cell's table."""
    low, high = likelihood.tables.table.ends
    position = np.random.default_rng(5).uniform(low[0], high[0], size)
    inner = np.random.default_rng(6).normal(0.0, 2.0, size)
    line = LINES[FAMILIES[likelihood.family].prior]
    return line.parameter(np.concatenate([position, np.clip(inner, low[0], high[0])]))


CELLS: list[tuple[str, list[float], str]] = [
    ("bernoulli", [7, 3], "0.8"),
    ("bernoulli", [-4, 2], "0.8"),
    ("bernoulli", [60, 30], "0.05"),
    ("binomial", [4, 7], "0.8"),
    ("poisson", [5, 4], "0.8"),
    ("geometric", [4, 7], "0.8"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "row", "epsilon"), CELLS, ids=str)
@pytest.mark.parametrize("n_prior", [Uniform(0, 60), Reciprocal(80), Fixed(11)], ids=str)
def test_it_is_the_sum_over_latent_pairs_to_its_error(
    family: str, row: list[float], epsilon: str, n_prior: NPrior
) -> None:
    statistic = released(family, [row], epsilon=epsilon)
    likelihood = asked(statistic, n_prior)
    theta = held_out(likelihood)
    exact = enumerated(statistic, n_prior, theta)
    known = exact > likelihood.tables.table.top[0] - likelihood.depth[0] + 0.1
    assert known.sum() >= 20
    missed = np.abs(likelihood.log_prob(theta)[0] - exact)[known]
    # Ratios of conjugate densities have seven digits.
    assert np.max(missed) <= likelihood.error[0] + 1e-6
    assert likelihood.error[0] <= 2e-3
    if np.ptp(exact) < 0.1:  # of so few records so far from what was released nothing is known
        return
    # Other noise, and another prior of N, are seen, whatever constant is taken off.
    for mutant in (
        enumerated(statistic, n_prior, theta, wider=1.1),
        enumerated(statistic, Fixed(3), theta),
    ):
        apart = (mutant - exact)[known]
        assert np.ptp(apart) > 5 * likelihood.error[0] + 1e-4


def test_a_component_that_is_forgotten_is_seen() -> None:
    statistic = released("binomial", [[4, 7]])
    likelihood = asked(statistic, Uniform(0, 60))
    theta = held_out(likelihood)
    mutant = enumerated(statistic, Uniform(0, 60), theta, components=1)
    assert np.ptp(mutant - likelihood.log_prob(theta)[0]) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("family", ENTRIES)
@pytest.mark.parametrize("public", [False, True])
def test_posteriors_are_todays(family: str, public: bool) -> None:
    statistic = released(family, [[20, 40], [25, 35]], public_n=60 if public else None)
    likelihood = asked(statistic)
    prior = FAMILIES[family].default_prior(statistic.plan.parameters)
    if not isinstance(prior, FAMILIES[family].prior):  # spread over scales: its largest
        prior = prior.components[-1]
    # Both before they are restricted to what bounded records can have, which cuts each by rules of its kind.
    now = free(likelihood.posterior(prior))
    today = free(posterior_of(statistic, prior=prior, clipping="ignored"))
    (name,) = today.parameters
    sd = today.sd(name)
    assert np.max(np.abs(now.mean(name) - today.mean(name)) / sd) < 2e-3
    assert np.max(np.abs(now.sd(name) / sd - 1.0)) < 5e-3
    for level in (0.025, 0.5, 0.975):
        apart = np.abs(now.quantile(name, level) - today.quantile(name, level)) / sd
        assert np.max(apart) < 0.04


def test_a_new_density_has_the_answer_that_it_has_without() -> None:
    statistic = released("bernoulli", [[70, 30], [9, 4]])
    prior = stats.truncnorm(-3, 7, loc=0.3, scale=0.1)
    now = asked(statistic).posterior(prior)
    today = posterior_of(statistic, prior=prior, clipping="ignored")
    np.testing.assert_allclose(now.mean("probability"), today.mean("probability"), atol=1e-5)
    np.testing.assert_allclose(now.sd("probability"), today.sd("probability"), rtol=1e-3)


def test_trillions_of_records() -> None:
    statistic = released("bernoulli", [[3 * 10**11, 10**11]])
    likelihood = asked(statistic, Reciprocal(10**13))
    spread = np.sqrt(0.25 * 0.75 / 4e11)
    theta = 0.25 + spread * np.linspace(-4.0, 4.0, 9)
    value = likelihood.log_prob(theta)[0]
    np.testing.assert_allclose(value - value[4], -0.5 * np.linspace(-4.0, 4.0, 9) ** 2, atol=1e-3)


def test_shapes_and_ends() -> None:
    likelihood = asked(released("bernoulli", [[7, 3], [2, 9], [30, 1]]))
    assert likelihood.log_prob(0.3).shape == (3, 1)
    same = likelihood.log_prob([0.1, 0.5])
    assert same.shape == (3, 2)
    each = likelihood.log_prob(np.array([[0.1, 0.5]] * 3))
    np.testing.assert_array_equal(same, each)
    assert np.all(np.isneginf(likelihood.log_prob([-0.1, 1.1])))
    assert np.all(np.isfinite(likelihood.log_prob([0.0, 1.0])))
    assert "3 cells" in repr(likelihood)
    with pytest.raises(UsageError, match=r"shape \(n,\) or \(3, n\), not \(2, 2\)"):
        likelihood.log_prob(np.full((2, 2), 0.5))
    with pytest.raises(UsageError, match="NaN"):
        likelihood.log_prob([np.nan])


def test_its_tables_can_be_taken_away() -> None:
    pytest.importorskip("xarray")
    likelihood = asked(released("bernoulli", [[7, 3], [2, 9], [30, 1]]))
    taken = likelihood.to_xarray()
    assert taken.attrs["line"] == "logit"
    theta = np.array([1e-4, 0.2, 0.5, 0.97])
    for number in range(3):
        panels = taken.isel(panels=np.flatnonzero(taken["cell"].values == number))
        position = np.log(theta) - np.log1p(-theta)
        left, right = panels["left"].values, panels["right"].values
        panel = np.searchsorted(left, position, side="right") - 1
        share = (2.0 * position - right[panel] - left[panel]) / (right[panel] - left[panel])
        value = np.sum(panels["powers"].values[panel] * share[:, None] ** np.arange(9), axis=1)
        np.testing.assert_allclose(value, likelihood.log_prob(theta)[number], atol=1e-12)


def test_what_it_does_not_take_is_refused() -> None:
    likelihood = asked(released("poisson", [[5, 4]]), Fixed(60))
    with pytest.raises(PriorError, match="its prior must be"):
        likelihood.posterior(Beta(1, 1))
    with pytest.raises(PriorError, match="disagree so much"):
        likelihood.posterior(stats.lognorm(0.01, scale=5000.0))


@pytest.mark.slow
def test_noise_that_is_far_too_wide_is_refused_by_key() -> None:
    statistic = released("poisson", [[400, 300]], epsilon="0.0005")
    keyed = dataclasses.replace(statistic, groups={"year": [2024], "place": ["a"]})
    with pytest.raises(UsageError, match=r"of year=2024 and place=a is not resolved.*n_prior.*posterior\("):
        asked(keyed, Reciprocal(10**6))


@pytest.mark.parametrize("theta", ["a", "0.3", [1j], {}, [[0.1, 0.2], [0.3]], None, [True]], ids=str)
def test_what_is_no_number_is_refused(theta: object) -> None:
    with pytest.raises(UsageError, match="theta has to be a real number"):
        asked(released("bernoulli", [[7, 3]])).log_prob(theta)


FAR_BELOW: list[tuple[str, list[float], NPrior]] = [
    ("binomial", [123, 180], Uniform(0, 60)),
    ("binomial", [123, 180], Uniform(0, 30)),
    ("binomial", [123, 180], Reciprocal(60)),
    ("bernoulli", [202, 98], Uniform(0, 100)),
]


@pytest.mark.parametrize(("family", "row", "n_prior"), FAR_BELOW, ids=str)
def test_priors_of_n_that_end_below_what_was_released(family: str, row: list[float], n_prior: NPrior) -> None:
    statistic = released(family, [row])
    likelihood = asked(statistic, n_prior)
    theta = np.concatenate([np.linspace(0.01, 0.65, 10), np.linspace(0.7, 0.999, 40)])
    exact = enumerated(statistic, n_prior, theta)
    assert np.max(np.abs(likelihood.log_prob(theta)[0] - exact)) <= likelihood.error[0] + 1e-6
    assert likelihood.error[0] <= 1e-3
    # Nodes of one N that are too far apart would have a prior that is narrow see them singly.
    prior = stats.uniform(0.78, 0.04)
    inside = np.linspace(0.78, 0.82, 41)
    weight = np.exp(enumerated(statistic, n_prior, inside) - np.max(exact))
    mean = np.trapezoid(weight * inside, inside) / np.trapezoid(weight, inside)
    for posterior in (
        likelihood.posterior(prior),
        posterior_of(statistic, prior=prior, n_prior=n_prior, clipping="ignored"),
    ):
        assert abs(posterior.mean()[0] - mean) < 2e-3 * posterior.sd()[0]


def test_a_release_keeps_what_it_worked_out(tmp_path: Path) -> None:
    release = make_release(tmp_path)
    first = next(name for name in release if FAMILIES[release.plan_of(name).family].latent is not None)
    likelihood = release.likelihood(first)
    assert isinstance(likelihood, Likelihood)
    assert release.likelihood(first) is likelihood
    assert release[first].likelihood() is likelihood
    assert release.likelihood(first, n_prior=Uniform(0, 10**13)) is not likelihood
    posterior = likelihood.posterior(
        FAMILIES[likelihood.family].default_prior(release.plan_of(first).parameters)
    )
    assert posterior.releases == (release.named,)


def test_families_of_several_columns_are_refused() -> None:
    columns = {"x": {"lower": "-1", "upper": "1"}, "y": {"lower": "-1", "upper": "1"}}
    plan = statistic_plan({"family": "multivariate_normal", "columns": columns}, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.ones((1, len(plan.components)), dtype=object))
    with pytest.raises(UsageError, match=r"several parameters.*suffice\.numpyro"):
        likelihood_of(statistic, None, lambda posterior: posterior, "several")


@pytest.mark.parametrize(
    ("row", "epsilon"),
    [
        ([7, 3], "0.8"),
        ([-4, 2], "0.8"),
        pytest.param([60, 30], "0.05", marks=pytest.mark.slow),
        ([3, 250], "0.8"),
    ],
    ids=str,
)
def test_counts_are_summed_over_by_their_means(row: list[float], epsilon: str) -> None:
    statistic = released("bernoulli", [row], epsilon=epsilon)
    likelihood = asked(statistic)
    assert likelihood.error[0] <= 2e-5
    assert likelihood.depth[0] == 40.0
    theta = held_out(likelihood, 20)
    # Beyond what noise may have added there is nothing, and no constant is left out.
    n_prior = Reciprocal(10**12)
    most = int(sum(row) + 50 * statistic.plan.scale)
    cut = enumerated(statistic, Reciprocal(most), theta)
    exact = cut - Reciprocal(most).log_prob(np.zeros(1)) + n_prior.log_prob(np.zeros(1))
    known = exact > likelihood.tables.table.top[0] - 30.0
    assert known.sum() >= 10
    assert np.max(np.abs(likelihood.log_prob(theta)[0] - exact)[known]) <= likelihood.error[0] + 1e-6


def test_a_rate_of_a_known_number_is_one_noisy_count() -> None:
    statistic = released("poisson", [[5, 4], [30, -2]])
    likelihood = asked(statistic, Fixed(40))
    assert np.all(likelihood.error <= 1.1e-5)
    for cell in range(2):
        theta = held_out(likelihood, 20)
        exact = enumerated(statistic, Fixed(40), theta, cell=cell)
        known = exact > likelihood.tables.table.top[cell] - 30.0
        missed = np.abs(likelihood.log_prob(theta)[cell] - exact)[known]
        assert np.max(missed) <= likelihood.error[cell] + 1e-7


@pytest.mark.parametrize(
    "prior",
    [
        "0.5*Point(0.3) + 0.5*Beta(1, 1)",
        "Points({0.1: 0.2, 0.4: 0.8})",
        pytest.param("Truncated(Beta(2, 2), 0.2, 0.25)", marks=pytest.mark.slow),
        "Mixture(0.5, Beta(1, 9), 0.5, Beta(9, 1))",
        "0.3*Uniform(0, 0.2) + 0.7*Uniform(0.15, 0.9)",
    ],
)
def test_points_and_sums_of_densities(prior: str) -> None:
    statistic = released("bernoulli", [[70, 30], [9, 4]])
    likelihood = asked(statistic)
    now = likelihood.posterior(prior)
    today = posterior_of(statistic, prior=prior, clipping="ignored")
    np.testing.assert_allclose(now.mean("probability"), today.mean("probability"), atol=2e-5)
    np.testing.assert_allclose(now.sd("probability"), today.sd("probability"), rtol=2e-3, atol=1e-9)


@pytest.mark.slow
def test_many_cells_are_those_of_few() -> None:
    rows = np.random.default_rng(8).integers(-3, 90, (1100, 2)).tolist()
    statistic = released("bernoulli", rows)
    likelihood, last = asked(statistic), asked(statistic.take(np.arange(1090, 1100)))
    theta = np.array([1e-3, 0.2, 0.6])
    np.testing.assert_allclose(likelihood.log_prob(theta)[1090:], last.log_prob(theta), atol=3e-5)
    both = [each.posterior(stats.beta(2, 5)) for each in (likelihood, last)]
    np.testing.assert_allclose(both[0].mean("probability")[1090:], both[1].mean("probability"), atol=1e-7)
    draws = both[0].sample(200, rng=1)["probability"]
    apart = (draws.mean(axis=0) - both[0].mean("probability")) / both[0].sd("probability") * np.sqrt(200.0)
    # Of 1100 normal numbers none is beyond 6 but with a chance of 2e-6.
    assert np.max(np.abs(apart)) < 6.0
