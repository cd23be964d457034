"""Counts under a flat prior with N private: mixtures of tilts against sums, enumeration and pieces of N."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.distributions.dirichlet import sample_dirichlet
from suffice.pipeline.math.engines.multinomial.count_posterior import count_posterior, piece_posterior
from suffice.pipeline.math.engines.multinomial.flat_prior import (
    Rule,
    TiltMixture,
    resolve,
    truncated_geometric_moments,
)
from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts, log_factor_of_n
from suffice.pipeline.math.engines.multinomial.sampling import guide_to, look_up
from suffice.pipeline.math.priors.record_count import NPrior, Reciprocal, Uniform
from support.latent_counts import (
    DRAWS,
    LARGEST_DISTANCE,
    PAIRS,
    TRIPLES,
    Enumeration,
    distance,
    noisy_counts,
    observed_again,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FAR: list[NPrior] = [Reciprocal(10**12), Uniform(0, 10**6)]
"""Priors whose bound no cell of these tests comes near."""
IMPOSSIBLE = [[-9.0, -2.0, -30.0], [0.0, 0.0, 0.0], [40.0, -40.0, 1.0]]


def mixture_of(counts: NoisyCounts) -> TiltMixture:
    """The distribution of the counts, of which every cell is a mixture of tilts."""
    ((_, distribution),) = count_posterior(counts).parts
    assert isinstance(distribution, TiltMixture)
    return distribution


@pytest.mark.parametrize("n_prior", FAR)
@pytest.mark.parametrize("categories", [2, 3, 5, 50, 3000])
def test_tilts_make_up_what_n_adds_to_the_weight(categories: int, n_prior: NPrior) -> None:
    counts = noisy_counts([[0.0] * categories], [1.0] * categories, 1.0, n_prior)
    rule = Rule.of(counts)
    n = np.array([0.0, 1.0, 2.0, 30.0, 1e3, float(min(10**12, n_prior.support[1]))])
    for more in range(3):
        log_terms = rule.log_density[more] - rule.tilt * n[:, None]
        top = np.max(log_terms, axis=1)
        total = top + np.log(np.sum(np.exp(log_terms - top[:, None]), axis=1))
        rising = sum(np.log(categories + n + factor) for factor in range(more))
        assert total == pytest.approx(log_factor_of_n(counts, n) - rising, abs=1e-10)


@pytest.mark.parametrize("fall", [1e-12, 1e-4, 0.0003, 0.3, 5.0, 900.0])
@pytest.mark.parametrize("length", [1, 2, 7, 999, 1001])
def test_moments_of_truncated_geometric_distributions_are_those_of_their_sums(
    fall: float, length: int
) -> None:
    distances = np.arange(float(length))
    weight = np.exp(-fall * distances)
    weight /= weight.sum()
    expected = float(weight @ distances)
    mean, variance = truncated_geometric_moments(np.array([fall]), np.array([float(length)]))
    assert mean[0] == pytest.approx(expected, rel=1e-11, abs=1e-15)
    assert variance[0] == pytest.approx(float(weight @ (distances - expected) ** 2), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n_prior", FAR)
@pytest.mark.parametrize(
    ("noisy", "scale"),
    [(PAIRS, 0.5), (PAIRS, 2.0), (TRIPLES, 0.3), (TRIPLES, 0.9), (IMPOSSIBLE, 0.9)],
)
def test_moments_equal_enumeration(noisy: list[list[float]], scale: float, n_prior: NPrior) -> None:
    counts = noisy_counts(noisy, [1.0] * len(noisy[0]), scale, n_prior)
    distribution = mixture_of(counts)
    for cell in range(len(noisy)):
        mean, sd = Enumeration(counts, cell).moments()
        assert np.max(np.abs(distribution.mean[cell] - mean) / sd) < 1e-8
        assert distribution.sd[cell] == pytest.approx(sd, rel=1e-8)


@pytest.mark.parametrize("n_prior", FAR)
def test_counts_seen_through_several_noises_equal_enumeration(n_prior: NPrior) -> None:
    counts = noisy_counts(TRIPLES, [1.0] * 3, 0.9, n_prior)
    observed = np.array(TRIPLES)
    counts = observed_again(counts, (observed[::-1].copy(), 0.7), (observed, 3.0))
    distribution = mixture_of(counts)
    for cell in range(len(observed)):
        mean, sd = Enumeration(counts, cell).moments()
        assert np.max(np.abs(distribution.mean[cell] - mean) / sd) < 1e-8
        assert distribution.sd[cell] == pytest.approx(sd, rel=1e-8)


DRAWN = [([3.0, 5.0], 2.0), ([-6.0, 1.0], 2.0), ([4.0, 0.0, 2.0], 0.9)]


@pytest.mark.slow
@pytest.mark.parametrize("n_prior", FAR)
@pytest.mark.parametrize(("noisy", "scale"), DRAWN)
def test_draws_follow_the_enumerated_distribution(noisy: list[float], scale: float, n_prior: NPrior) -> None:
    counts = noisy_counts([noisy], [1.0] * len(noisy), scale, n_prior)
    if len(noisy) == 2:
        counts = observed_again(counts, (counts.totals.values + 5.0, 4.0))
    draws = count_posterior(counts).sample(DRAWS, np.random.default_rng())
    enumeration = Enumeration(counts, 0)
    assert draws.shape == (DRAWS, 1, len(noisy))
    for category in range(len(noisy)):
        assert distance(draws[:, 0, category], enumeration, category) < LARGEST_DISTANCE


def test_draws_at_one_tilt_are_found_out() -> None:
    """Their distance is 0.14, six limits: it is missed with a chance under exp(-500), by that inequality."""
    counts = noisy_counts([[3.0, 5.0]], [1.0, 1.0], 2.0, FAR[0])
    distribution = mixture_of(counts)
    steep = np.searchsorted(Rule.of(counts).tilt, np.array([2.0]))
    single = dataclasses.replace(distribution, first=steep, number=np.ones(1, dtype=np.int64))
    draws = sample_dirichlet(
        1.0 + single.sample_counts(DRAWS, np.random.default_rng()), np.random.default_rng()
    )
    assert distance(draws[:, 0, 0], Enumeration(counts, 0), 0) > LARGEST_DISTANCE


@pytest.mark.slow
def test_cells_are_as_pieces_of_n_have_them_and_those_near_the_bound_are_left_to_pieces() -> None:
    """From small to large counts and noise; some cells come near the bound of N, and are told."""
    rng = np.random.default_rng(7)
    told = set()
    for scale, largest, categories in ((0.3, 300, 5), (2.0, 300, 3), (8.0, 3000, 2), (30.0, 10**6, 4)):
        n = np.floor(largest ** rng.random(20)).astype(np.int64)
        exact = np.stack([rng.multinomial(size, rng.dirichlet(np.ones(categories))) for size in n])
        noise = np.rint(rng.laplace(0.0, scale, exact.shape))
        noise[0] = -2.0 * exact[0]
        noise[1] = (largest - n[1]) // categories
        counts = noisy_counts((exact + noise).tolist(), [1.0] * categories, scale, Uniform(0, largest))
        mixture, inside = resolve(counts)
        pieces = piece_posterior(counts)
        assert np.max((np.abs(mixture.mean - pieces.mean) / pieces.sd)[inside]) < 1e-6
        assert mixture.sd[inside] == pytest.approx(pieces.sd[inside], rel=1e-5)
        assert mixture.log_evidence[inside] == pytest.approx(pieces.log_evidence[inside], abs=1e-6)
        together = count_posterior(counts)
        assert np.max(np.abs(together.mean - pieces.mean) / pieces.sd) < 1e-6
        assert together.sample(3, rng).shape == (3, 20, categories)
        told |= set(inside.tolist())
        assert not inside[1]
    assert told == {False, True}


def test_many_categories_are_summed_up_and_drawn() -> None:
    """A table of 2,000 combinations, most of them rare; draws against moments.

    By Bernstein's inequality a false alarm has the chance 1e-8.
    """
    rng = np.random.default_rng(7)
    noisy = rng.multinomial(3000, rng.dirichlet(np.full(2000, 0.05))) + np.rint(rng.laplace(0.0, 2.0, 2000))
    posterior = count_posterior(noisy_counts([noisy.tolist()], [1.0] * 2000, 2.0, Reciprocal(10**12)))
    assert np.sum(posterior.mean) == pytest.approx(1.0, abs=1e-9)
    draws = posterior.sample(1000, np.random.default_rng())[:, 0]
    nats = np.log(2 * 2000 / 1e-8)
    limit = np.sqrt(2.0 * posterior.sd[0] ** 2 * nats / 1000) + nats / 3000
    assert np.all(np.abs(draws.mean(axis=0) - posterior.mean[0]) < limit)


def test_guided_searches_find_what_searches_find() -> None:
    """Rows of few and of many entries with next to no probability: more steps than a guide is followed."""
    tables = np.full((3, 200), 1e-9)
    tables[0, 3], tables[1] = 1.0, 0.3 ** np.arange(200.0)
    tables[2, 120:140] = 1.0
    cumulative = np.cumsum(tables, axis=1) / np.sum(tables, axis=1, keepdims=True)
    cumulative[:, -1] = 1.0
    flat = (cumulative + np.arange(3.0)[:, None]).ravel()
    rows = np.tile(np.arange(3), 20_000)
    places = look_up(flat, guide_to(flat, 3), rows, np.random.default_rng(4))
    target = rows + np.random.default_rng(4).random(rows.shape) * (1.0 - 2.0**-38)
    assert np.array_equal(places, np.searchsorted(flat, target, side="right"))
    assert np.array_equal(places // 200, rows)
