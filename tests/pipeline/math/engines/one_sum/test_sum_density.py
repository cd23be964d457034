"""Densities behind noisy sums: beside mixtures of much finer blocks, and what they integrate to."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.many_cells import FEWEST_CELLS, SPREAD
from suffice.pipeline.math.engines.one_sum.nodes import resolve
from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from support.generative_models import generative_model_for, noise_aware_families
from support.noisy import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

LARGEST = 0.01
"""Of the highest density."""
MASS = 1e-3
"""Of what lies between quantiles at a ten thousandth, whose levels are off as well."""
TAIL = 1e-4
MOST = 30
SIZES = np.array([0, 1, 3, 30, 200, 10**6])
NAMES = [name for name in noise_aware_families() if FAMILIES[name].latent is not None]


def sums_of(name: str, epsilon: str, *, default: bool) -> tuple[NoisySums, Update]:
    """Cells of no records, of few and of many, always the same."""
    rng = np.random.default_rng(11)
    model = generative_model_for(name, n=10**6, epsilon=epsilon, public_n=False)
    truth = model.truth(len(SIZES), rng)
    few = np.minimum(SIZES, 1000)
    clipped = model.sums(truth, few, rng).clipped
    clipped = clipped * np.maximum(SIZES // 1000, 1)[:, None]
    noise = discrete_laplace(model.plan.scale, clipped.shape, rng)
    prior = model.family.default_prior(model.plan.parameters) if default else model.prior
    latent = model.family.latent
    assert latent is not None
    made: tuple[NoisySums, Update] = latent(model.noisy(clipped, noise), prior, model.n_prior)
    return made


def mass_of(posterior: LatentSumPosterior) -> Floats:
    """What densities integrate to, on the line, between quantiles."""
    line = coordinate_of(posterior.prior_distribution()).line
    ends = posterior.quantiles(posterior.name, [TAIL, 1.0 - TAIL], 0, np.random.default_rng(0))
    low, high = line.position(ends).T
    position = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 121)
    density = posterior.density(posterior.name, line.parameter(position))
    mass: Floats = np.trapezoid(density * np.exp(line.log_slope(position)), position, axis=1)
    return mass + 2.0 * TAIL


def of_finer_pairs(sums: NoisySums, update: Update, points: Floats) -> Floats:
    """Densities of all pairs of blocks that are finer, neither merged nor smoothed."""
    pairs, marginal = resolve(sums, evenly=True, finer=8), sums.marginal
    cell, n, total, weight = pairs.cell, pairs.n, pairs.total, pairs.weight
    if isinstance(marginal, SpreadGammaGamma):
        shares = marginal.shares(total, n) * weight
        component, pair = np.nonzero(shares > 1e-9)
        cell, n, total = cell[pair], n[pair], total[pair] + marginal.shifts[component]
        weight = shares[component, pair]
    given = coordinate_of(update(n, total))
    position = given.line.position(points)
    density = np.empty(points.shape)
    for column, at in enumerate(position.T):
        density[:, column] = np.bincount(cell, weight * np.exp(given.log_density(at[cell])), sums.n_cells)
    return density * np.exp(-given.line.log_slope(position))


@pytest.mark.slow
@pytest.mark.parametrize("default", [True, False], ids=["default", "conjugate"])
@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "1"])
@pytest.mark.parametrize("name", NAMES)
def test_densities_are_those_of_finer_pairs_and_integrate_to_one(
    name: str, epsilon: str, *, default: bool
) -> None:
    sums, update = sums_of(name, epsilon, default=default)
    posterior = LatentSumPosterior.of(sums, update)
    levels = np.linspace(0.02, 0.98, 17).tolist()
    points = posterior.quantiles(posterior.name, levels, 0, np.random.default_rng(0))
    # Of more records than that finer blocks of sums leave ripples of those of N.
    few = np.flatnonzero(SIZES <= MOST)
    density = posterior.density(posterior.name, points)[few]
    expected = of_finer_pairs(sums, update, points)[few]
    assert np.all(np.max(np.abs(density - expected), axis=1) < LARGEST * np.max(expected, axis=1))
    assert mass_of(posterior) == pytest.approx(1.0, abs=MASS)


def test_the_density_of_a_hidden_rate_is_that_of_finer_pairs() -> None:
    """A prior of many scales behind wide noise has shoulders that are its own, and no nodes of a rule."""
    sums, update = sums_of("exponential", "0.3", default=True)
    posterior = LatentSumPosterior.of(sums.take(np.arange(4)), update)
    points = posterior.quantiles("rate", [0.02, 0.1, 0.3, 0.5, 0.8, 0.97], 0, np.random.default_rng(0))
    expected = of_finer_pairs(posterior.sums, update, points)
    away = np.max(np.abs(posterior.density("rate", points) - expected), axis=1)
    assert np.all(away < LARGEST * np.max(expected, axis=1))


@pytest.mark.parametrize("name", ["exponential", "poisson", "negative_binomial", "binomial"])
def test_the_density_of_a_cell_that_has_no_records_is_its_prior_s(name: str) -> None:
    """Noise of a hundredth of a record leaves no other N."""
    sums, update = sums_of(name, "400", default=False)
    posterior = LatentSumPosterior.of(sums.take(np.array([0])), update)
    prior = posterior.prior_distribution()
    points = prior.quantiles(posterior.name, [0.1, 0.5, 0.9], 0, np.random.default_rng(0))
    density = posterior.density(posterior.name, points)
    assert density == pytest.approx(prior.density(posterior.name, points), rel=1e-6)


@pytest.mark.slow
def test_densities_of_many_cells_are_those_of_few() -> None:
    """Loops and arrays share all but the evidence."""
    importlib.import_module(SPREAD.module)
    sums, update = sums_of("exponential", "0.3", default=True)
    few = LatentSumPosterior.of(sums, update)
    many = LatentSumPosterior.of(sums.take(np.resize(np.arange(len(SIZES)), FEWEST_CELLS)), update)
    assert many.by_loops
    points = few.quantiles("rate", [0.1, 0.3, 0.5, 0.7, 0.9], 0, np.random.default_rng(0))
    some_of_many = many.take(np.arange(len(SIZES))).density("rate", points)
    assert some_of_many == pytest.approx(few.density("rate", points), rel=2e-3)
