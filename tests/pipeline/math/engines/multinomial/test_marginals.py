"""Quantiles and densities of probabilities from their law, against enumeration and many draws."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import betainc

from suffice.pipeline.math.engines.multinomial import marginals
from suffice.pipeline.math.engines.multinomial.count_posterior import CountsDistribution, count_posterior
from suffice.pipeline.math.engines.multinomial.marginals import TOLERANCE, marginal_quantiles
from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.latent_counts import (
    PAIRS,
    TRIPLES,
    Enumeration,
    noisy_counts,
    observed_again,
    rest_of_known_sum,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

LEVELS = (0.001, 0.025, 0.2, 0.5, 0.8, 0.975, 0.999)
FALSE_ALARM = 1e-6
PROBLEMS = [
    *itertools.product(
        [PAIRS],
        [[1.0, 1.0], [0.1, 3.0], [0.01, 0.01], [50.0, 80.0]],
        [0.5, 2.0],
        [Fixed(12), Uniform(0, 40), Uniform(5, 6), Reciprocal(60)],
    ),
    *itertools.product(
        [TRIPLES],
        [[1.0, 1.0, 1.0], [0.1, 3.0, 40.0]],
        [1.3],
        [Fixed(12), Uniform(7, 40), Reciprocal(60)],
    ),
]


def law(counts: NoisyCounts) -> tuple[Floats, Floats]:
    posterior = count_posterior(counts)
    return marginal_quantiles(counts, posterior.mean, posterior.sd, LEVELS)


def outside(counts: NoisyCounts, values: Floats, error: Floats) -> Floats:
    """By how much levels that enumeration has for quantiles are further off than is stated."""
    cells, categories = counts.shape
    off = np.empty(values.shape)
    for cell in range(cells):
        every = Enumeration(counts, cell)
        for category in range(categories):
            levels = every.cdf(category, values[cell, category])
            off[cell, category] = np.abs(levels - LEVELS) - error[cell, category]
            # A quantile that is 0 or 1 in float64 has the level of all that is.
            ends = (values[cell, category] < 1e-300) | (values[cell, category] > 1.0 - 1e-15)
            off[cell, category, ends] = -1.0
    return off


@pytest.mark.parametrize(("noisy", "concentration", "scale", "n_prior"), PROBLEMS)
def test_levels_of_quantiles_equal_enumeration_within_the_error_that_is_stated(
    noisy: list[list[float]], concentration: list[float], scale: float, n_prior: NPrior
) -> None:
    counts = noisy_counts(noisy, concentration, scale, n_prior)
    values, error = law(counts)
    settled = np.all(error <= TOLERANCE, axis=1)
    assert np.mean(settled) >= 0.8
    assert np.max(outside(counts, values, error)[settled]) < 0.0
    assert np.all(np.diff(values, axis=2) >= 0.0)


def test_another_count_is_seen() -> None:
    counts = noisy_counts(TRIPLES, [1.0, 1.0, 1.0], 0.5, Uniform(0, 40))
    values, error = law(counts)
    moved = noisy_counts([[4.0, 5.0, 2.0], *TRIPLES[1:]], [1.0, 1.0, 1.0], 0.5, Uniform(0, 40))
    assert np.max(outside(moved, values, error)[0]) > 0.02


@pytest.mark.parametrize("n_prior", [Fixed(12), Uniform(0, 40)])
def test_several_releases_equal_enumeration(n_prior: NPrior) -> None:
    counts = observed_again(
        noisy_counts(TRIPLES, [1.0, 0.5, 2.0], 1.0, n_prior),
        (np.array([[1.0, 7.0, -3.0], [3.0, 3.0, 3.0], [0.0, 8.0, 1.0]]), 2.0),
    )
    values, error = law(counts)
    assert np.all(error <= TOLERANCE)
    assert np.max(outside(counts, values, error)) < 0.0


def test_densities_are_those_of_the_quantiles() -> None:
    counts = noisy_counts(TRIPLES, [1.0, 1.0, 1.0], 1.0, Reciprocal(1000))
    posterior = count_posterior(counts)
    distribution = CountsDistribution(posterior)
    values, _ = law(counts)
    points = values[:, :, 1:2] + (values[:, :, 5:6] - values[:, :, 1:2]) * np.linspace(0.0, 1.0, 801)
    density = distribution.density("probability", points)
    assert density is not None
    # Between the quantiles at 2.5 and 97.5 % lies .95.
    between = np.sum((density[..., 1:] + density[..., :-1]) / 2.0 * np.diff(points), axis=-1)
    assert np.max(np.abs(between - 0.95)) < 2.0 * TOLERANCE


def test_blocks_of_cells_and_single_cells_have_the_same_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = random_cells(5, 12, 0.3, 40, 1.0, Reciprocal(10**6), np.random.default_rng(7))
    whole, error = law(counts)
    monkeypatch.setattr(marginals, "_AT_ONCE", 1)
    monkeypatch.setattr(marginals, "_NUMBERS", 1)
    single, _ = law(counts)
    sd = count_posterior(counts).sd[:, :, None]
    assert np.all(error <= TOLERANCE)
    assert np.max(np.abs(single - whole)[:, :, 1:-1] / sd) < 0.05


def test_one_category_has_the_probability_one() -> None:
    counts = noisy_counts([[3.0], [-1.0]], [1.0], 1.0, Uniform(0, 10))
    distribution = CountsDistribution(count_posterior(counts))
    rng = np.random.default_rng(7)
    assert np.all(distribution.quantiles("probability", LEVELS, 100, rng) == 1.0)
    assert np.all(distribution.level_errors(100, rng) == 0.0)
    assert not distribution.is_from_draws


def random_cells(
    categories: int,
    cells: int,
    epsilon: float,
    n: int,
    concentration: float,
    n_prior: NPrior,
    rng: np.random.Generator,
    releases: int = 1,
    *,
    lone: bool = False,
) -> NoisyCounts:
    """Cells whose truths do not follow the prior: even, skewed, or all in one category."""
    shares = np.eye(categories)[rng.integers(0, categories, cells)] if lone else None
    shares = rng.dirichlet(np.full(categories, 0.7), cells) if shares is None else shares
    counts = np.array([rng.multinomial(n, each) for each in shares])
    scales = [1.0 / epsilon * (1.0 + release) for release in range(releases)]
    noisy = [(counts + discrete_laplace(scale, counts.shape, rng)).astype(np.float64) for scale in scales]
    return NoisyCounts.of(
        NoisyTotals.of_counts(noisy, scales),
        concentration=np.full(categories, concentration),
        n_prior=n_prior,
    )


def excess(counts: NoisyCounts, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """By how much levels by draws are further off than is stated and chance explains; and the errors."""
    posterior = count_posterior(counts)
    values, error = marginal_quantiles(counts, posterior.mean, posterior.sd, LEVELS)
    drawn = posterior.sample(draws, rng)
    # Hoeffding, for every level of every probability.
    chance = math.sqrt(math.log(2.0 * values.size * 256 / FALSE_ALARM) / (2.0 * draws))
    below, up_to = (
        np.stack([np.mean(compare(drawn, values[..., i]), axis=0) for i in range(len(LEVELS))], axis=-1)
        for compare in (np.less, np.less_equal)
    )
    off = np.maximum(np.maximum(below - LEVELS, LEVELS - up_to), 0.0)
    # Draws of what is left by others are rounded to 0 there.
    off = np.where(values < 1e-15, 0.0, off)
    return off - error[:, :, None] - chance, error


@pytest.mark.parametrize(("categories", "epsilon", "n"), [(5, 1.0, 1000), (30, 0.5, 300)])
def test_levels_of_draws_are_those_asked_for(categories: int, epsilon: float, n: int) -> None:
    counts = random_cells(categories, 3, epsilon, n, 1.0, Reciprocal(10**9), np.random.default_rng(7))
    off, error = excess(counts, 10_000, np.random.default_rng())
    assert np.all(error <= TOLERANCE)
    assert np.max(off) < 0.0


def test_one_category_that_holds_all_of_a_known_number_has_the_levels_of_draws() -> None:
    counts = random_cells(12, 1, 0.1, 10**6, 2.0, Fixed(10**6), np.random.default_rng(7), lone=True)
    off, error = excess(counts, 20_000, np.random.default_rng())
    assert np.all(error <= TOLERANCE)
    assert np.max(off) < 0.0


@pytest.mark.parametrize("concentration", [0.1, 0.5, 2.0])
def test_what_one_category_leaves_of_a_known_number_is_resolved_down_to_none(concentration: float) -> None:
    noisy = [[1e9 + 103.0, 13.0, 91.0, -527.0, -71.0]]
    counts = noisy_counts(noisy, [concentration] * 5, 73.5, Fixed(10**9))
    values, error = law(counts)
    rest = rest_of_known_sum(counts, 4000)
    others = np.arange(4001.0)
    levels = rest @ betainc(
        concentration + 1e9 - others[:, None], 4.0 * concentration + others[:, None], values[0, 0]
    )
    assert np.all(error <= TOLERANCE)
    assert np.all(np.abs(levels - LEVELS) < error[0, 0])


def test_bounds_of_n_that_no_pair_of_nodes_meets_are_not_resolved() -> None:
    noisy = [[158_759.0, 45_511.0, 795_610.0]]
    counts = noisy_counts(noisy, [1.0] * 3, 74.0, Uniform(999_997, 1_000_004))
    posterior = count_posterior(counts)
    _, error = marginals._by_rule(counts, marginals.RULES[0], posterior.mean, posterior.sd, LEVELS)
    assert np.all(np.isinf(error))
    # Panels of densities are finer. At their means they are as high as normal ones, to a tenth.
    density = CountsDistribution(posterior).density("probability", posterior.mean[:, :, None])
    assert density is not None
    assert density[:, :, 0] * posterior.sd * math.sqrt(2.0 * math.pi) == pytest.approx(
        np.ones((1, 3)), rel=0.1
    )


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_random_cells_hold_their_errors() -> None:
    rng = np.random.default_rng()
    settled = []
    for turn in range(256):
        categories = int(rng.choice([2, 3, 5, 30, 200], p=[0.25, 0.25, 0.25, 0.2, 0.05]))
        epsilon = float(np.exp(rng.uniform(math.log(0.01), math.log(8.0))))
        n = int(rng.choice([0, 1, 5, 30, 300, 5000, 10**6]))
        concentration = 1.0 if turn % 2 else float(rng.choice([0.01, 0.1, 0.5, 2.0, 10.0, 50.0]))
        public = turn % 5 == 0
        private: NPrior = Reciprocal(10**9) if turn % 3 else Uniform(0, 10**7)
        n_prior = Fixed(n) if public else private
        case = (categories, epsilon, n, concentration, str(n_prior), turn % 4)
        counts = random_cells(
            categories, 1, epsilon, n, concentration, n_prior, rng, 1 + (turn % 7 == 0), lone=turn % 4 == 0
        )
        off, error = excess(counts, 100_000 if categories <= 30 else 5_000, rng)
        good = np.all(error <= TOLERANCE, axis=1)
        settled.append(bool(good[0]))
        assert np.max(off[good], initial=-1.0) < 0.0, case
    assert np.mean(settled) > 0.85
