"""Likelihoods of a table's probabilities: against JAX's sums over counts, exact posteriors, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.counts_likelihood import CountsLikelihood
from suffice.pipeline.ask.posterior.likelihood import likelihood_of
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.priors.record_count import Uniform
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

THREE: dict[str, Any] = {"family": "categorical", "categories": ["a", "b", "c"]}
TABLE: dict[str, Any] = {"family": "contingency", "columns": {"x": ["0", "1"], "y": ["0", "1", "2"]}}


def released(entry: dict[str, Any], rows: list[list[int]]) -> NoisyStatistic:
    return noisy_statistic(statistic_plan(entry, epsilon="0.8", public_n=False), np.array(rows, dtype=object))


def asked(statistic: NoisyStatistic, n_prior: NPrior | None = None) -> CountsLikelihood:
    likelihood = likelihood_of(statistic, n_prior, lambda posterior: posterior, uuid4().hex)
    assert isinstance(likelihood, CountsLikelihood)
    return likelihood


def test_posteriors_from_it_are_the_exact_ones() -> None:
    """Draws of the prior, weighed by it, have the moments of the exact posterior."""
    statistic = released(THREE, [[14, 3, 6]])
    likelihood = asked(statistic)
    flat = Dirichlet(1).sample(40_000, np.random.default_rng(1), 3)
    weight = np.exp(likelihood.log_prob(flat)[0])
    weight /= weight.sum()
    effective = 1.0 / np.sum(weight**2)
    exact = posterior_of(statistic, prior=Dirichlet(1))
    mean, sd = weight @ flat, exact.sd("probability")[0]
    apart = np.abs(mean - exact.mean("probability")[0]) / (sd / np.sqrt(effective))
    # Six standard errors of three numbers: a false alarm in 1e8.
    assert np.max(apart) < 6.0
    plug_in = posterior_of(statistic, prior=Dirichlet(1), method="plug-in")
    spread = np.sqrt(weight @ (flat - mean) ** 2)
    np.testing.assert_allclose(spread, sd, rtol=0.05)
    assert np.max(np.abs(plug_in.sd("probability")[0] / spread - 1.0)) > 0.05


@pytest.mark.slow
def test_it_is_that_of_jax() -> None:
    pytest.importorskip("numpyro").enable_x64()
    import suffice.numpyro

    for statistic in (released(THREE, [[14, 3, 6], [0, -2, 5]]), released(TABLE, [[4, 0, 7, -1, 2, 9]])):
        n_prior = Uniform(0, 10**6)
        likelihood = asked(statistic, n_prior)
        points = np.random.default_rng(2).dirichlet(np.ones(len(likelihood.names)), 5)
        value, error = likelihood.log_prob_and_error(points)
        assert value.shape == error.shape == (len(likelihood), 5)
        assert np.max(error) < 1e-5
        # Of a prior of N with another upper end but for a constant: counts are far below either.
        other = Uniform(0, 160)
        jax = np.stack(
            [
                np.asarray(suffice.numpyro.log_likelihood(statistic, n_prior=other, probability=point))
                for point in points
            ],
            axis=1,
        )
        np.testing.assert_allclose(np.diff(value), np.diff(jax), atol=2e-5)


def test_shapes_and_names() -> None:
    likelihood = asked(released(TABLE, [[4, 0, 7, -1, 2, 9], [1, 1, 1, 1, 1, 1]]))
    assert likelihood.names[:2] == ("x=0,y=0", "x=0,y=1")
    assert "6 probabilities" in repr(likelihood)
    points = np.random.default_rng(4).dirichlet(np.ones(6), (2, 3))
    of_each = np.stack([likelihood.log_prob(points[cell])[cell] for cell in range(2)])
    np.testing.assert_allclose(likelihood.log_prob(points), of_each)
    assert np.all(np.isfinite(likelihood.log_prob([[1, 0, 0, 0, 0, 0]])))
    assert np.all(likelihood.depth >= 40)
    for wrong, why in (
        (np.full(6, 1 / 6), "shape"),
        (np.full((3, 1, 6), 1 / 6), "shape"),
        (np.full((1, 6), 0.5), "sum 1"),
        (np.array([[1.5, -0.5, 0, 0, 0, 0]]), "at least 0"),
        (np.full((1, 6), np.nan), "at least 0"),
    ):
        with pytest.raises(UsageError, match=why):
            likelihood.log_prob(wrong)


@pytest.mark.parametrize("n_prior", [60, Uniform(0, 30), Uniform(5, 10**9)], ids=str)
def test_priors_of_n_that_are_no_mixtures_are_refused(n_prior: Any) -> None:
    with pytest.raises(UsageError, match=r"suffice\.numpyro"):
        asked(released(THREE, [[14, 3, 6]]), n_prior)
