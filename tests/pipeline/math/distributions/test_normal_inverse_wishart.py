"""Noisy moments of several columns made possible."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.normal_inverse_wishart import (
    Moments,
    NormalInverseWishartDistribution,
    estimate,
    project,
)
from support.noisy import noisy_statistic
from support.several import ENTRIES, plan_of, released, rows_of

CONJUGATE = {
    "normal": "NormalInverseWishart(0, 1, 6, 4)",
    "regression": "NormalInverseGammaRegression([0, 0, 0], [1, 1, 1], 3, 1)",
    "origin": "NormalInverseGammaRegression([0, 0], [1, 1], 3, 1)",
}


@pytest.mark.parametrize("name", ENTRIES)
def test_whatever_the_noise_the_projected_moments_are_possible(name: str) -> None:
    plan = plan_of(ENTRIES[name])
    rng = np.random.default_rng(7)
    values = rng.laplace(0, plan.scale, (300, len(plan.components)))
    values[:50, 0] += 100 * 3 * 2.0**32
    sums = project(noisy_statistic(plan, np.rint(values)))
    assert_possible(sums)
    assert (sums.n == 0).any()
    data = rows_of(200, rng)
    unharmed = released(ENTRIES[name], data)
    raw, kept = estimate(unharmed), project(unharmed)
    assert kept.products == pytest.approx(raw.products, rel=1e-9)
    assert kept.total == pytest.approx(raw.total, rel=1e-9)
    posterior = posterior_of(noisy_statistic(plan, np.rint(values)), prior=CONJUGATE[name], method="plug-in")
    for parameter in posterior.parameters:
        assert np.isfinite(posterior.mean(parameter)).all()
        assert (posterior.sd(parameter) > 0).all()


def assert_possible(sums: Moments) -> None:
    room = 1e-9 * (1 + sums.n)
    assert (sums.n >= 0).all()
    assert (np.abs(sums.total) <= (sums.n + room)[:, None]).all()
    assert (np.abs(sums.products) <= (sums.n + room)[:, None, None]).all()
    assert (np.linalg.eigvalsh(sums.scatter).min(axis=1) >= -room).all()


def test_means_that_are_given_have_no_spread_however_few_the_rows() -> None:
    """With f of 1, 2 and 5: a covariance may have no mean, but what is known stays known."""
    size, freedom = 2, np.array([1.0, 2.0, 5.0])
    given = NormalInverseWishartDistribution(
        loc=np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]),
        precision=np.full(3, np.inf),
        df=freedom + size - 1.0,
        scale=np.tile(np.eye(size), (3, 1, 1)),
        names=("a", "b"),
    )
    assert given.mean("mean") == pytest.approx(given.loc)
    assert given.sd("mean").tolist() == np.zeros((3, size)).tolist()
    assert np.isinf(given.mean("variance")[:2]).all()
    assert np.isfinite(given.mean("variance")[2]).all()


@pytest.mark.slow
def test_one_row_leaves_means_with_a_mean_and_a_spread() -> None:
    """Under the default prior, which states where means are before there is any row."""
    of_one_row = released(ENTRIES["normal"], rows_of(1, np.random.default_rng(7)))
    posterior = posterior_of(of_one_row, method="plug-in")
    assert np.isfinite(posterior.mean("mean")).all()
    assert (np.isfinite(posterior.sd("mean")) & (posterior.sd("mean") > 0.0)).all()
