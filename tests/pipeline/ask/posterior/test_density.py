"""Densities of posteriors and priors: those of the draws, of the quantiles, and of sums by brute force."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special, stats

from suffice.errors import UsageError
from suffice.pipeline.ask.batches.part_answer import posterior_of_alike
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.curves import curve_points, spans_decades
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.bin_walk import BinWalk
from suffice.pipeline.math.priors.record_count import Uniform
from support.generative_models import generative_model_for, noise_aware_families
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

DRAWS, CELLS, RECORDS = 4000, 1, 60
FALSE_ALARM = 1e-10
"""Of one comparison: some 200 of a test together raise a false alarm in 2e-8 of its runs."""
LARGEST = math.sqrt(math.log(2.0 / FALSE_ALARM) / (2.0 * DRAWS)) + 0.005
"""Of the distance between empirical and true distribution functions (Massart), and what merging may add."""
SHIFT = 0.5
"""Standard deviations by which the control is moved: a distance of about 0.2, and LARGEST is 0.06."""
BY_DRAWS = {"naive_bayes", "bayesian_network", "markov_chain", "histogram"}
"""Families of whose noise-aware posteriors draws alone are known."""


def some_posterior(name: str, method: str, prior: Any = None) -> Posterior:
    """The posterior of one simulated release of the family's generative case, always the same."""
    rng = np.random.default_rng(7)
    model = generative_model_for(name, n=RECORDS, method=method)
    truth = model.truth(CELLS, rng)
    if name == "histogram":
        # The density of an empty bin's share has no end at 0, and no points integrate it.
        truth = np.full_like(truth, 1.0 / truth.shape[-1])
    sums = model.sums(truth, np.full(CELLS, RECORDS), rng).clipped
    noise = discrete_laplace(model.plan.scale, (CELLS, len(model.plan.components)), rng)
    n_prior = model.n_prior if method == NOISE_AWARE else None
    return unrestricted_posterior(
        model.noisy(sums, noise), method=method, prior=prior or model.prior, n_prior=n_prior
    )


def below(points: Floats, density: Floats) -> Floats:
    """Integrals of a density up to each point but the first, by the trapezoidal rule."""
    steps = (density[..., 1:] + density[..., :-1]) / 2.0 * np.diff(points, axis=-1)
    return np.cumsum(steps, axis=-1)


def distance(points: Floats, density: Floats, draws: Floats) -> float:
    """The largest distance between the distribution function of a density and that of draws."""
    farthest = 0.0
    function = below(points, density)
    for entry in np.ndindex(*points.shape[:-1]):
        drawn = np.sort(draws[(slice(None), *entry)])
        levels = np.searchsorted(drawn, points[entry]) / len(drawn)
        farthest = max(farthest, float(np.max(np.abs(levels[0] + function[entry] - levels[1:]))))
    return farthest


METHODS = [(name, PLUG_IN) for name in FAMILIES] + [(name, NOISE_AWARE) for name in noise_aware_families()]


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_densities_are_those_of_draws(name: str, method: str) -> None:
    posterior, rng = some_posterior(name, method), np.random.default_rng()
    drawn = posterior.sample(DRAWS, rng)
    for parameter in posterior.parameters:
        points = curve_points(posterior, parameter, 401, draws=DRAWS, rng=rng)
        density = posterior.density(parameter, points)
        if parameter == "covariance" or (method == NOISE_AWARE and name in BY_DRAWS):
            assert density is None
            continue
        assert density is not None
        assert density.shape == points.shape
        assert distance(points, density, drawn[parameter]) < LARGEST
        moved = drawn[parameter] + SHIFT * np.std(drawn[parameter], axis=0)
        assert distance(points, density, moved) > LARGEST


NUMBERS = [name for name, family in FAMILIES.items() if family.latent or family.mean_and_variance]


@pytest.mark.parametrize("name", NUMBERS)
def test_what_lies_between_quantiles_is_their_levels(name: str) -> None:
    """To 0.01, to which levels of quantiles are right at worst."""
    posterior = some_posterior(name, NOISE_AWARE)
    levels = np.array([0.02, 0.1, 0.5, 0.9, 0.98])
    for parameter in posterior.parameters:
        ends = np.stack([posterior.quantile(parameter, level) for level in levels], axis=-1)
        for cell, (first, second) in itertools.product(range(CELLS), itertools.pairwise(range(len(levels)))):
            points = np.linspace(ends[cell, first], ends[cell, second], 201)
            density = posterior.density(parameter, points)
            assert density is not None
            mass = below(points, density[cell])[-1]
            assert mass == pytest.approx(levels[second] - levels[first], abs=0.01)


@pytest.mark.slow
def test_densities_of_narrow_columns_do_not_ripple() -> None:
    """A mean's posterior has one peak: its density rises and falls by twice its height, and little more."""
    rng = np.random.default_rng(7)
    bounds = {"column": "x", "lower": "-60", "upper": "180"}
    model = generative_model_for("normal", n=160, epsilon="0.5", conditions=(bounds, None))
    assert model.family.simulate is not None
    sums = model.family.simulate(model.entry, np.array([[0.0, 100.0]]), np.array([160]), rng).clipped
    noise = discrete_laplace(model.plan.scale, (1, len(model.plan.components)), rng)
    posterior = unrestricted_posterior(model.noisy(sums, noise), clipping="ignored")
    points = curve_points(posterior, "mean", 201, draws=DRAWS, rng=rng)
    density = posterior.density("mean", points)
    assert density is not None
    # Of 25 simulations the largest was 2.11; without widening, 3.3 and more.
    assert np.sum(np.abs(np.diff(density[0]))) < 2.5 * np.max(density)


DENSITIES = [
    ("bernoulli", "TruncatedNormal(0.3, 0.2, 0, 1)"),
    ("poisson", "HalfNormal(3)"),
    ("normal", "Independent(mean=Normal(0, 1), variance=InverseGamma(3, 1))"),
    ("poisson", "Mixture(0.3, Gamma(1, 1), 0.7, Gamma(20, 4))"),
]


@pytest.mark.parametrize(("name", "prior"), DENSITIES)
@pytest.mark.parametrize("method", [NOISE_AWARE, PLUG_IN])
def test_densities_under_any_prior_are_those_of_draws(name: str, prior: str, method: str) -> None:
    posterior, rng = some_posterior(name, method, prior), np.random.default_rng()
    drawn = posterior.sample(DRAWS, rng)
    for parameter in posterior.parameters:
        points = curve_points(posterior, parameter, 401, draws=DRAWS, rng=rng)
        density = posterior.density(parameter, points)
        assert density is not None
        assert distance(points, density, drawn[parameter]) < LARGEST
        whole = below(points, density)[..., -1]
        assert np.all((whole > 0.99) & (whole < 1.001))


WITH_PRIOR_DENSITIES = [
    name for name, family in FAMILIES.items() if not family.spread_prior and family.prior is not BinWalk
]


@pytest.mark.parametrize("name", WITH_PRIOR_DENSITIES)
def test_densities_of_priors_are_those_of_their_draws(name: str) -> None:
    rng = np.random.default_rng()
    posterior = some_posterior(name, PLUG_IN)
    model = generative_model_for(name, n=RECORDS, method=PLUG_IN)
    truth = model.truth(DRAWS, rng)
    entries = [posterior.mean(parameter)[0].size for parameter in posterior.parameters]
    assert truth.size == DRAWS * sum(entries)
    columns = np.split(truth.reshape(DRAWS, -1), np.cumsum(entries)[:-1], axis=1)
    for parameter, drawn in zip(posterior.parameters, columns, strict=True):
        points = np.quantile(drawn, np.linspace(0.001, 0.999, 801), axis=0).T
        density = posterior.prior_density(parameter, points[0] if len(points) == 1 else points)
        assert density is not None
        assert distance(points, density.reshape(points.shape), drawn) < LARGEST
        moved = drawn + SHIFT * np.std(drawn, axis=0)
        assert distance(points, density.reshape(points.shape), moved) > LARGEST


@pytest.mark.parametrize("prior", [text for name, text in DENSITIES if name == "poisson"])
def test_densities_of_any_prior_have_a_mass_of_one(prior: str) -> None:
    posterior = some_posterior("poisson", PLUG_IN, prior)
    points = np.linspace(0.0, 60.0, 60_001)
    density = posterior.prior_density("rate", points)
    assert density is not None
    assert below(points, density)[-1] == pytest.approx(1.0, abs=1e-5)


def test_a_probability_is_a_sum_over_all_rows_and_successes() -> None:
    """Of a Bernoulli column, every N and every number of successes: to four digits of the highest."""
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="0.5", public_n=False)
    values = np.array([[11, 4]])
    posterior = unrestricted_posterior(
        noisy_statistic(plan, values), prior="Beta(1, 3)", n_prior=Uniform(0, 60)
    )
    n, ones = (grid.ravel() for grid in np.meshgrid(np.arange(61.0), np.arange(61.0)))
    n, ones = n[ones <= n], ones[ones <= n]
    log_weight = stats.betabinom(n, 1.0, 3.0).logpmf(ones)
    log_weight -= np.abs(values - np.stack([n - ones, ones], axis=1)).sum(axis=1) / plan.scale
    weight = np.exp(log_weight - special.logsumexp(log_weight))
    points = np.linspace(0.0, 0.99, 100)
    exact = np.array([weight @ stats.beta(1.0 + ones, 3.0 + n - ones).pdf(point) for point in points])
    density = posterior.density("probability", points)
    assert density is not None
    np.testing.assert_allclose(density[0], exact, rtol=0.0, atol=2e-4 * np.max(exact))


def by_enumeration(counts: Floats, n: Floats, scale: float, values: Floats) -> Floats:
    """Log probabilities of count vectors under Dirichlet(1), N uniform, and discrete Laplace noise."""
    categories = counts.shape[1]
    log_orders = special.gammaln(n + 1.0) + special.gammaln(categories) - special.gammaln(n + categories)
    log_weight = log_orders - np.sum(np.abs(values - counts), axis=1) / scale
    weight: Floats = np.exp(log_weight - special.logsumexp(log_weight))
    return weight


@pytest.mark.parametrize("n_prior", [Uniform(0, 14), None], ids=["private", "public"])
def test_probabilities_of_categories_are_sums_over_all_counts(n_prior: Uniform | None) -> None:
    """Of three categories, every vector of counts: to what merging Betas changes."""
    entry = {"family": "categorical", "column": "x", "categories": ["a", "b"], "other": "true"}
    plan = statistic_plan(entry, epsilon="0.5", public_n=n_prior is None)
    values, scale = np.array([[7, 2, 1]]), plan.scale
    statistic = noisy_statistic(plan, values, public_n=12 if n_prior is None else None)
    posterior = unrestricted_posterior(statistic, prior="Dirichlet(1)", n_prior=n_prior)
    sizes = [12] if n_prior is None else range(15)
    counts = np.array(
        [part for part in itertools.product(range(15), repeat=3) if sum(part) in sizes], dtype=float
    )
    n = counts.sum(axis=1)
    weight = by_enumeration(counts, n, scale, values[0])
    points = np.linspace(0.01, 0.99, 99)
    density = posterior.density("probability", points)
    assert density is not None
    for category in range(3):
        betas = stats.beta(1.0 + counts[:, category], 2.0 + n - counts[:, category])
        exact = np.array([weight @ betas.pdf(point) for point in points])
        np.testing.assert_allclose(density[0, category], exact, rtol=0.0, atol=2e-4 * np.max(exact))


def test_densities_of_categories_have_the_means_of_their_posteriors() -> None:
    """Behind counts below 0, N near 0 is likely; without the last N of a range means are off by a percent."""
    entry = {"family": "categorical", "column": "x", "categories": ["a", "b"], "other": "true"}
    plan = statistic_plan(entry, epsilon="0.25", public_n=False)
    posterior = unrestricted_posterior(
        noisy_statistic(plan, np.array([[20, -4, 1], [1, 1, -5]])), prior="Dirichlet(1)"
    )
    points = np.linspace(0.0, 1.0, 2001)
    density = posterior.density("probability", points)
    assert density is not None
    means = np.trapezoid(density * points, points, axis=-1)
    np.testing.assert_allclose(means, posterior.mean("probability"), rtol=1e-3)


def test_densities_end_where_parameters_do() -> None:
    posterior = some_posterior("bernoulli", PLUG_IN, "Beta(1, 1)")
    density = posterior.density("probability", [-1.0, 0.0, 1.0, 2.0])
    assert density is not None
    assert density.shape == (CELLS, 4)
    assert np.all(density[:, [0, 3]] == 0.0)
    prior = posterior.prior_density("probability", [-0.1, 0.0, 0.3, 1.0, 1.1])
    assert prior is not None
    np.testing.assert_allclose(prior, np.array([0.0, 1.0, 1.0, 1.0, 0.0]))


@pytest.mark.parametrize("points", [[np.nan], "wide", np.zeros((3, 5)), 1.0, [[1.0], [2.0, 3.0]]])
def test_points_are_refused_in_a_sentence(points: Any) -> None:
    posterior = some_posterior("bernoulli", PLUG_IN)
    with pytest.raises(UsageError, match="points must be numbers"):
        posterior.density("probability", points)
    with pytest.raises(UsageError, match="no parameter 'rate'"):
        posterior.density("rate", [0.5])


def test_cells_that_are_alike_have_the_densities_of_each() -> None:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="0.5", public_n=False)
    statistic = noisy_statistic(plan, np.array([[9, 3], [2, 8], [9, 3], [9, 3], [2, 8]]))
    alike = posterior_of_alike(statistic, lambda cells: unrestricted_posterior(cells, method=PLUG_IN), 0)
    assert len(alike.distribution.mean("probability")) == len(statistic.values)
    points = np.linspace(0.1, 0.9, 5 * 7).reshape(5, 7)
    for given in (points, points[0]):
        expected = unrestricted_posterior(statistic, method=PLUG_IN).density("probability", given)
        density = alike.density("probability", given)
        assert density is not None
        assert expected is not None
        np.testing.assert_allclose(density, expected, rtol=1e-12)


def hidden_rate() -> Posterior:
    """Of 3,000 records and a total of two noise scales: its upper end is decades above its lower one."""
    plan = statistic_plan({"family": "exponential", "column": "x", "upper": 100}, epsilon="1", public_n=False)
    unit = 1 << (plan.parameters.lattice_bits or 0)
    return posterior_of(noisy_statistic(plan, np.array([[2 * unit, 2998 * unit]])))


def test_points_of_far_tails_lie_where_the_mass_does() -> None:
    """On an even axis the tops of such densities lay between the first two points."""
    posterior = hidden_rate()
    for in_logs in (False, True):
        points = curve_points(
            posterior, "rate", 161, in_logs=in_logs, draws=DRAWS, rng=np.random.default_rng(7)
        )[0]
        assert np.all(np.diff(points) >= 0.0)
        quarter, half = (posterior.quantile("rate", level)[0] for level in (0.25, 0.5))
        assert np.sum((points > quarter) & (points < half)) >= 10


def test_a_density_of_a_hidden_rate_does_not_ripple() -> None:
    """On a logarithmic axis it rises once and falls once: nodes of the latent sum do not show."""
    posterior = hidden_rate()
    points = curve_points(posterior, "rate", 161, in_logs=True, draws=DRAWS, rng=np.random.default_rng(7))
    density = posterior.density("rate", points)
    assert density is not None
    height = (density * points)[0]
    assert np.sum(np.abs(np.diff(height))) < 2.2 * np.max(height)


def test_an_axis_is_logarithmic_where_a_positive_interval_spans_two_decades() -> None:
    posterior = hidden_rate()
    assert spans_decades(posterior, "rate", posterior.credible_interval("rate"))
    assert spans_decades(posterior, "rate", [[1.0, 100.0], [5.0, 6.0]])
    assert not spans_decades(posterior, "rate", [[1.0, 99.0], [500.0, 600.0]])
    assert not spans_decades(posterior, "rate", [[0.0, 100.0]])
    shares = some_posterior("bernoulli", NOISE_AWARE)
    assert not spans_decades(shares, "probability", [[0.001, 0.9]])


def test_a_bounded_mean_is_shown_within_its_bounds() -> None:
    plan = statistic_plan(
        {"family": "normal", "column": "x", "lower": 0, "upper": 100}, epsilon="1", public_n=False
    )
    unit = 1 << 2 * (plan.parameters.lattice_bits or 0)
    posterior = posterior_of(noisy_statistic(plan, np.array([[3 * unit, 3 * unit, unit]])))
    points = curve_points(posterior, "mean", 161, draws=DRAWS, rng=np.random.default_rng(7))
    assert points.min() >= 0.0
    assert points.max() <= 100.0


def test_a_density_of_many_records_with_a_wide_bound_does_not_ripple() -> None:
    """Nodes of a Poisson sum are farther apart than their components are wide."""
    plan = statistic_plan({"family": "poisson", "column": "x", "upper": 74_000}, epsilon="1", public_n=False)
    posterior = posterior_of(noisy_statistic(plan, np.array([[84 * 400, 74_000 * 400]])))
    points = curve_points(posterior, "rate", 401, draws=DRAWS, rng=np.random.default_rng(7))
    density = posterior.density("rate", points)
    assert density is not None
    assert np.sum(np.abs(np.diff(density[0]))) < 2.3 * np.max(density)


@pytest.mark.slow
def test_a_density_of_a_variance_over_decades_is_that_of_draws() -> None:
    plan = statistic_plan(
        {"family": "normal", "column": "x", "lower": 0, "upper": 100}, epsilon="1", public_n=False
    )
    unit = 1 << 2 * (plan.parameters.lattice_bits or 0)
    posterior = posterior_of(noisy_statistic(plan, np.array([[30 * unit, 3 * unit, unit]])))
    rng = np.random.default_rng()
    points = curve_points(posterior, "variance", 401, in_logs=True, draws=DRAWS, rng=rng)
    density = posterior.density("variance", points)
    assert density is not None
    assert points[0, -1] > 100 * points[0, 0]
    assert distance(points, density, posterior.sample(DRAWS, rng)["variance"]) < LARGEST
