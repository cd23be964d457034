"""Pooled categories: evidence beside sums over all counts, and answers beside those of a Beta population."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.category_cells import CategoryCells
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.dirichlet import pooled_categories
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.priors.record_count import Reciprocal

SCALE = 2.0
COUNTS = np.array([[3.0, 8.0, 1.0], [-2.0, 15.0, 4.0], [0.0, 0.0, -1.0]])


def cells(values: np.ndarray) -> CategoryCells:
    return CategoryCells.of(values[:, :, None], np.array([SCALE]))


def enumerated(alpha: np.ndarray, released: np.ndarray, most: int = 44) -> float:
    """Sums over all counts below `most`: Dirichlet-multinomial, 1 / (N + 1), and the noise."""
    n = np.array(list(itertools.product(range(most), repeat=3)), dtype=np.float64)
    whole = np.sum(n, axis=1)
    log_weight = gammaln(np.sum(alpha)) + gammaln(whole + 1.0) - gammaln(whole + np.sum(alpha))
    log_weight += np.sum(gammaln(n + alpha) - gammaln(alpha) - gammaln(n + 1.0), axis=1)
    log_weight -= np.log(whole + 1.0) + np.sum(np.abs(released - n), axis=1) / SCALE
    return float(np.log(np.sum(np.exp(log_weight)))) + 3.0 * float(np.log(np.tanh(0.5 / SCALE)))


@pytest.mark.parametrize("about", [1.0, 20.0, 400.0], ids=["few", "some", "many"])
def test_evidence_is_that_of_sums_over_all_counts(about: float) -> None:
    centre = about * np.array([0.25, 0.6, 0.15])
    nodes = cells(COUNTS).nodes(np.arange(3), centre)
    for factor in (1.0, 2.0):
        alpha = factor * centre
        exact = np.array([enumerated(alpha, row) for row in COUNTS])
        np.testing.assert_allclose(nodes.log_evidence(alpha), exact, atol=0.001)
        # Control: a population with other shares is told apart.
        assert np.max(np.abs(nodes.log_evidence(alpha * [1.5, 1.0, 1.0]) - exact)) > 0.005


@pytest.mark.slow
def test_two_categories_are_a_beta_population() -> None:
    rng = np.random.default_rng(4)
    true = rng.binomial(80, rng.beta(4.0, 12.0, 30))
    values = np.stack([true, 80 - true], axis=1).astype(np.float64)
    success = -np.expm1(-1.0 / SCALE)
    values += rng.geometric(success, values.shape) - rng.geometric(success, values.shape)
    answer = pooled_categories(cells(values), "probability")
    counts = [NoisyCount(values=values[:, [place]], scales=np.array([SCALE])) for place in (0, 1)]
    source = CountCells(true=counts[0], false=counts[1], n_prior=Reciprocal(10**12))
    beta = pooled_distribution(source, POPULATIONS[Line.LOGIT]["beta"], "probability", Line.LOGIT)
    sd = beta.sd("probability")
    # 2,000 draws tell a mean to .022 standard deviations, and a standard deviation to .016 of itself.
    np.testing.assert_allclose(
        answer.mean("probability")[:, 0], beta.mean("probability"), atol=0.12 * sd.min()
    )
    np.testing.assert_allclose(answer.sd("probability")[:, 0], sd, rtol=0.1)
    spread, of_spread = answer.moments_of(answer.spread)
    assert answer.settled
    assert float(spread) > 2.0 * float(of_spread)
    drawn = answer.sample(500, rng)["probability"]
    np.testing.assert_allclose(np.sum(drawn, axis=2), 1.0)
    assert np.all((answer.own_share > 0.0) & (answer.own_share < 1.0))


@pytest.mark.slow
def test_fewer_cells_than_categories_leave_more_than_a_point() -> None:
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.full(12, 20.0), 6)
    counts = np.stack([rng.multinomial(150, each) for each in shares]) + rng.laplace(0.0, SCALE, (6, 12))
    answer = pooled_categories(cells(np.rint(counts)), "probability")
    # Six cells' scores have no rank along six directions: one point of 256 counted.
    assert answer.effective > 10.0
