"""Posteriors behind noise on a cone are calibrated, and are not where noise is taken for another."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from suffice.pipeline.ask.inference.posterior_terms import PLUG_IN
from suffice.pipeline.ask.pooling.pool import observed_again
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.engines.multivariate import column_posterior, hmc
from suffice.pipeline.math.engines.multivariate.compiled_target import KERNEL
from support.cone_calibration import (
    chances,
    moments_of,
    prior_of,
    ranks,
    ranks_of_regressions,
    released,
    simulated,
)

ALARM = 2e-8
"""Of a quantity by chi square in the limit; by enumeration 1.2e-7 of 80 ranks in 8 bins, 5e-7 for all."""


@pytest.fixture(autouse=True)
def _short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as many states as ranks need: errors of chains are wide beside nothing that is tested."""
    monkeypatch.setattr(column_posterior, "lengths", lambda _n_cells: (8, 64))
    monkeypatch.setattr(hmc, "DOUBLINGS", 0)


@pytest.mark.slow
def test_ranks_are_uniform_and_those_without_noise_are_not() -> None:
    rng = np.random.default_rng()
    data = simulated(2, "0.3", 80, rng)
    assert chances(ranks(data, 200, rng), 8).min() > ALARM
    # The control: noise is ignored.
    assert chances(ranks(data, 200, rng, PLUG_IN), 8).min() < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("public_n", [None, pytest.param(500, marks=pytest.mark.audit)])
def test_a_second_release_narrows_the_posterior(public_n: int | None) -> None:
    """Of one kind of noise or of both. Noise of sd .010 in covariances stands beside sampling of sd .004."""
    rng = np.random.default_rng(7)
    root = np.repeat(np.diag([0.3, 0.3])[None], 8, axis=0)
    sums = moments_of(np.full(8, 500), np.zeros((8, 2)), root, rng)
    first, second, other = (
        released(sums, "0.6", rng, public_n=public_n, noise=noise) for noise in ("cone", "cone", "laplace")
    )
    alone, twice, mixed = (
        np.mean(posterior_of(statistic, prior=prior_of(2)).sd("covariance"))
        for statistic in (first, observed_again([first, second]), observed_again([first, other]))
    )
    assert twice < 0.9 * alone
    assert mixed < 0.97 * alone


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize(("columns", "size"), [(2, 1000), (4, 700), (7, 300)])
def test_ranks_of_more_columns_are_uniform(columns: int, size: int, epsilon: str) -> None:
    """4,000 simulations in all."""
    rng = np.random.default_rng()
    shares = np.concatenate(
        [ranks(simulated(columns, epsilon, 100, rng), 300, rng) for _ in range(size // 100)]
    )
    assert chances(shares, 10).min() > ALARM


@pytest.mark.audit
def test_ranks_beside_a_public_n_are_uniform() -> None:
    rng = np.random.default_rng()
    shares = np.concatenate([ranks(simulated(2, "0.3", 100, rng, public_n=100), 300, rng) for _ in range(5)])
    assert chances(shares, 10).min() > ALARM


@pytest.mark.audit
@pytest.mark.parametrize(
    ("predictors", "epsilon", "noise"), [(2, "0.3", "cone"), (4, "0.3", "cone"), (2, "1", "laplace")]
)
def test_ranks_of_regressions_by_compiled_loops_are_uniform(
    predictors: int, epsilon: str, noise: str
) -> None:
    """Truths from the default priors, of which no scale is known."""
    importlib.import_module(KERNEL)
    rng = np.random.default_rng()
    shares = np.concatenate(
        [ranks_of_regressions(predictors, epsilon, 100, 300, rng, noise) for _ in range(5)]
    )
    assert chances(shares, 10).min() > ALARM


@pytest.mark.audit
def test_noise_without_its_second_matrix_is_told() -> None:
    """The control of the above: P alone."""
    rng = np.random.default_rng()
    assert chances(ranks(simulated(2, "1", 200, rng, alone=True), 300, rng), 10).min() < ALARM
